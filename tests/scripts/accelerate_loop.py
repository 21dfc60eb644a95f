"""accelerate: tempered, then prepared.

packages: accelerate
outcome: folds
slow: true
"""

import torch
import toy
from accelerate import Accelerator
from torch import nn

import tstar

data = toy.points()
accelerator = Accelerator(cpu=True, mixed_precision="bf16", gradient_accumulation_steps=2)
model = tstar.temper(toy.mlp(), 4.0)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
prepared, optimizer, batches = accelerator.prepare(model, optimizer, toy.loader(data))
for _ in range(8):
    for inputs, targets in batches:
        with accelerator.accumulate(prepared):
            accelerator.backward(nn.functional.cross_entropy(prepared(inputs), targets))
            optimizer.step()
            optimizer.zero_grad()
model = accelerator.unwrap_model(prepared, keep_fp32_wrapper=False).eval()
accuracy, x = toy.accuracy(model, data), data[0]
plain = tstar.fold(model)
