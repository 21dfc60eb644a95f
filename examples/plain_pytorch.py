"""Plain PyTorch: ask before training, fold after it, and nothing in between changes."""

import torch

import tstar
from digits import accuracy, data, network, show, train


def run(advised: bool, samples: int, epochs: int) -> float:
    loader, held_out = data(samples)
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    if advised:
        advice = tstar.recommend(model, loader, optimizer=optimizer, epochs=epochs)
        print(advice)
        model = advice.apply(model, optimizer)
    train(model, optimizer, loader, epochs)
    plain = tstar.fold(model.eval())  # the architecture of digits.network(), with these logits
    x = held_out.tensors[0]
    assert torch.allclose(plain(x), model(x), atol=1e-4)
    return accuracy(plain, held_out)


def main(samples: int = 1797, epochs: int = 5) -> tuple[float, float]:
    return run(False, samples, epochs), run(True, samples, epochs)


if __name__ == "__main__":
    show(*main())
