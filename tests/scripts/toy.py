"""Data that a script can learn in seconds."""

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset


def points(n: int = 256, classes: int = 4) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(n) % classes
    centers = 2 * torch.randn(classes, 10, generator=generator)
    return centers[y] + torch.randn(n, 10, generator=generator), y


def images(n: int = 96, classes: int = 4, size: int = 16) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(n) % classes
    patterns = 2 * torch.randn(classes, 3, size, size, generator=generator)
    return patterns[y] + torch.randn(n, 3, size, size, generator=generator), y


def tokens(n: int = 96, classes: int = 3) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(n) % classes
    return 5 + 10 * y[:, None] + torch.randint(10, (n, 8), generator=generator), y


def loader(data: tuple[Tensor, Tensor], batch_size: int = 32) -> DataLoader:
    return DataLoader(
        TensorDataset(*data), batch_size, shuffle=True, generator=torch.Generator().manual_seed(0)
    )


def mlp(classes: int = 4) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, classes))


def bert(**others):
    """A small BERT for the three classes of :func:`tokens`."""
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1}
    config = BertConfig(vocab_size=40, num_attention_heads=2, num_labels=3, **sizes, **others)
    return BertForSequenceClassification(config)


def train(model, optimizer, data, epochs=5, after=lambda: None):
    model.train()
    for _ in range(epochs):
        for x, y in loader(data):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            after()


def accuracy(model: nn.Module, data: tuple[Tensor, Tensor]) -> float:
    """In eval mode."""
    x, y = data
    with torch.no_grad():
        out = model.eval()(x)
    return float(((out if isinstance(out, Tensor) else out.logits).argmax(1) == y).float().mean())
