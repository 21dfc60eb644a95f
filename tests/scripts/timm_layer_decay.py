"""timm: layer decay and no decay for vectors from its own optimizer factory, its moving average, its reparametrization.

packages: timm
outcome: folds
slow: true
"""

import timm
import torch
import toy
from timm.optim import create_optimizer_v2
from timm.utils import ModelEmaV3
from timm.utils.model import reparameterize_model

import tstar

torch.manual_seed(0)
data = toy.images(size=32)
model = tstar.temper(timm.create_model("resnet10t", num_classes=4), 2.0)
optimizer = create_optimizer_v2(model, opt="adamw", lr=2e-3, weight_decay=0.05, layer_decay=0.8)
average = ModelEmaV3(model, decay=0.5)
toy.train(model, optimizer, data, after=lambda: average.update(model))
model = average.module
accuracy, x = toy.accuracy(model, data), data[0]
plain = reparameterize_model(model)
