"""Mixed precision and gradient accumulation: the loss is averaged as ever.

T and the norm's statistics stay in float32; the statistics are those of the small batches.
"""

import torch
import torch.nn.functional as F

import tstar
from digits import accuracy, data, network, show

PARTS = 2  # batches per optimizer step


def run(advised: bool, samples: int, epochs: int) -> float:
    loader, held_out = data(samples)
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    if advised:
        how = {"optimizer": optimizer, "epochs": epochs, "accumulate": PARTS}
        advice = tstar.recommend(model, loader, **how)
        print(advice)
        model = advice.apply(model, optimizer)
    for _ in range(epochs):
        for count, (x, y) in enumerate(loader, 1):
            with torch.autocast("cpu", torch.bfloat16):  # "cuda" on a GPU
                loss = F.cross_entropy(model(x), y) / PARTS
            loss.backward()
            if count % PARTS == 0:
                optimizer.step()
                optimizer.zero_grad()
    assert all(value.dtype == torch.float32 for value in model.state_dict().values() if value.ndim)
    return accuracy(tstar.fold(model.eval()), held_out)


def main(samples: int = 1797, epochs: int = 5) -> tuple[float, float]:
    return run(False, samples, epochs), run(True, samples, epochs)


if __name__ == "__main__":
    show(*main())
