"""torch.compile without a graph break, T on a schedule.

packages: torch
outcome: folds
slow: true
"""

import torch
import toy

import tstar

data = toy.points()
model = tstar.temper(toy.mlp(), 4.0)
schedule = tstar.Schedule.warmup(4.0, steps=3).drive(model)
compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for _ in range(6):
    toy.train(compiled, optimizer, data, epochs=1)
    schedule.step()
accuracy, x = toy.accuracy(model, data), data[0]
plain = tstar.fold(compiled)
