"""Mixed precision: bfloat16 autocast. The buffer T stays in float32, and so do the norm's statistics."""

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader

import tstar
from digits import accuracy, data, tempered


def main(samples: int = 1797, epochs: int = 5) -> float:
    train_set, held_out = data(samples)
    model = tempered()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(epochs):
        for x, y in DataLoader(train_set, batch_size=32, shuffle=True):
            optimizer.zero_grad()
            with torch.autocast("cpu", torch.bfloat16):  # "cuda" on a GPU
                loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
    assert all(value.dtype == torch.float32 for value in model.state_dict().values() if value.ndim)
    return accuracy(tstar.fold(model.eval()), held_out)


if __name__ == "__main__":
    print(f"accuracy {main():.3f}")
