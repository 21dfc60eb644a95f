"""A network with the inputs and outputs that a data set needs."""

import torch

from tstar.data import DataSet
from tstar.models.fitting import fitting_model


def data(*shape: int, domain: str) -> DataSet:
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(6, *shape, generator=generator), torch.arange(6) % 3
    if domain == "image":
        x = (50 * x + 128).to(torch.uint8)
    return DataSet("mine", domain, x, y, x, y, ("a", "b", "c"))


def test_inputs_and_outputs_are_the_data_sets():
    images, vectors = data(1, 8, 8, domain="image"), data(5, domain="vector")
    for name, given in (("resnet10", images), ("mlp", images), ("mlp", vectors)):
        model = fitting_model(name, given, 4, seed=0)
        assert model(given.x_train.float()).shape == (6, 3)


def test_the_seed_decides():
    images = data(1, 8, 8, domain="image")
    first, again, other = (fitting_model("mlp", images, 4, seed=s) for s in (1, 1, 2))
    assert all(
        torch.equal(a, b) for a, b in zip(first.parameters(), again.parameters(), strict=True)
    )
    assert not torch.equal(first.mlp.classifier.weight, other.mlp.classifier.weight)
