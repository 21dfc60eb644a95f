"""Killed halfway and resumed: weights, statistics, optimizer and T go on, to the same end.

packages: torch
outcome: folds
"""

import copy

import torch
import toy

import tstar


def start():
    model = tstar.temper(toy.mlp(), 4.0)
    schedule = tstar.Schedule.warmup(4.0, steps=4).drive(model)
    return model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), schedule


def run(parts, epochs):
    model, optimizer, schedule = parts
    for _ in range(epochs):
        toy.train(model, optimizer, data, epochs=1)
        schedule.step()


data = toy.points()
whole = start()
run(whole, 6)
half = start()
run(half, 3)
saved = copy.deepcopy([part.state_dict() for part in half])
resumed = start()
for part, state in zip(resumed, saved, strict=True):
    part.load_state_dict(state)
run(resumed, 3)
model = resumed[0]
assert all(
    torch.equal(a, b)
    for a, b in zip(model.state_dict().values(), whole[0].state_dict().values(), strict=True)
)
accuracy, x = toy.accuracy(model, data), data[0]
plain = tstar.fold(model)
