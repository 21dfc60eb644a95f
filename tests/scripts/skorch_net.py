"""skorch: the tempered model as the module of a scikit-learn classifier, in a cross-validation.

packages: skorch, sklearn
outcome: folds
slow: true
"""

import torch
import toy
from sklearn.model_selection import cross_val_score
from skorch import NeuralNetClassifier
from torch import nn

import tstar

data = toy.points()
net = NeuralNetClassifier(
    tstar.temper(toy.mlp(), 4.0), criterion=nn.CrossEntropyLoss, optimizer=torch.optim.SGD, lr=0.1,
    optimizer__momentum=0.9, max_epochs=10, batch_size=32, train_split=None, verbose=0,
)  # fmt: skip
assert cross_val_score(net, data[0].numpy(), data[1].numpy(), cv=3).mean() > 0.7
net.fit(data[0].numpy(), data[1].numpy())
model = net.module_.eval()
accuracy, x = toy.accuracy(model, data), data[0]
plain = tstar.fold(model)
