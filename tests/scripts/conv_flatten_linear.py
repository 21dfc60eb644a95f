"""PyTorch's MNIST example, which ends in log_softmax, with the loader alone; calibrated and folded.

packages: torch, scipy
outcome: folds
"""

import torch
import toy
from torch import nn

import tstar
import tstar.monitor


class Net(nn.Module):
    def __init__(self, pixels=28):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(3, 8, 3), nn.Conv2d(8, 16, 3)
        self.fc1, self.fc2 = nn.Linear(16 * ((pixels - 4) // 2) ** 2, 64), nn.Linear(64, 4)

    def forward(self, x):
        x = nn.functional.max_pool2d(self.conv2(self.conv1(x).relu()).relu(), 2)
        return self.fc2(self.fc1(x.flatten(1)).relu()).log_softmax(1)


torch.manual_seed(0)
data = toy.images(size=28)
loader = toy.loader(data, batch_size=16)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
advice = tstar.recommend(model, loader, optimizer=optimizer, epochs=5, loss=nn.functional.nll_loss)
model = advice.apply(model, optimizer)
model.train()
for _ in range(5):
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.nll_loss(model(x), y).backward()
        optimizer.step()
model = tstar.monitor.recalibrate(model, loader)  # after 30 steps the statistics lag behind
accuracy, x = toy.accuracy(model, data), data[0]
noise = torch.randn(x.shape, generator=torch.Generator().manual_seed(0))
held_out = toy.loader((x + 6 * noise, data[1]))
model, found = tstar.lab.methods.calibrate(model, held_out)
assert found.val_ece_after < found.val_ece_before
plain = tstar.fold(model)
