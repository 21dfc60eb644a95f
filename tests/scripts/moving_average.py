"""A moving average of the weights, whose statistics are measured anew.

packages: torch
outcome: folds
"""

import torch
import toy
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

import tstar
import tstar.monitor

data = toy.points()
online = tstar.temper(toy.mlp(), 4.0)
average = AveragedModel(online, multi_avg_fn=get_ema_multi_avg_fn(0.9))
optimizer = torch.optim.SGD(online.parameters(), lr=0.1, momentum=0.9)
toy.train(online, optimizer, data, 6, after=lambda: average.update_parameters(online))
model = tstar.monitor.recalibrate(average.module, toy.loader(data))
accuracy, x = toy.accuracy(model, data), data[0]
plain = tstar.fold(model)
