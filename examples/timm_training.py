"""timm's conventions: its optimizer factory leaves the inserted norm without decay, its EMA carries T along,
and its reparameterize_model folds the head."""

import timm
import torch
from timm.optim import create_optimizer_v2
from timm.utils import ModelEmaV3, reparameterize_model

import tstar
from digits import accuracy, data, show, train
from tstar.output_layer import tempered_heads

HOW = {"opt": "sgd", "lr": 0.1, "momentum": 0.9, "weight_decay": 1e-4}


def run(advised: bool, samples: int, epochs: int) -> float:
    loader, held_out = data(samples)
    torch.manual_seed(0)
    model = timm.create_model("test_resnet", in_chans=1, num_classes=10)
    optimizer = create_optimizer_v2(model, **HOW)
    if advised:
        advice = tstar.recommend(model, loader, optimizer=optimizer, epochs=epochs)
        print(advice)
        model = advice.apply(model, optimizer)
        norms = [head.norm for head in tempered_heads(model).values() if head.norm is not None]
        bare = {id(p) for g in optimizer.param_groups if not g["weight_decay"] for p in g["params"]}
        assert all(id(p) in bare for norm in norms for p in norm.parameters())

    ema = ModelEmaV3(model, decay=0.9)
    train(model, optimizer, loader, epochs, after=lambda: ema.update(model))

    averaged = ema.module.eval()
    plain = reparameterize_model(averaged)  # tstar.fold(averaged) does the same
    assert not tempered_heads(plain)
    x = held_out.tensors[0]
    assert torch.allclose(plain(x), averaged(x), atol=1e-4)
    return accuracy(plain, held_out)


def main(samples: int = 1797, epochs: int = 5) -> tuple[float, float]:
    return run(False, samples, epochs), run(True, samples, epochs)


if __name__ == "__main__":
    show(*main())
