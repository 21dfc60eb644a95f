"""The classifiers of torchvision and timm: how each is listed, built small, and fed the smallest input it takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from coverage_contract import CLASSES, call, tensors

HUGE = (
    "vit_h_14",
)  # 631 million parameters; RegNet's 638 million cannot be built on the meta device
SIZES = (32, 64, 28, 56, 96, 112, 128, 160, 192, 224, 256, 384)


class NoClassifier(Exception):
    """The architecture has no classifier to temper."""


class NotBuilt(Exception):
    """The library itself could not build or run the plain model here."""


def torchvision_names() -> list[str]:
    from torchvision import models

    return list(models.list_models(models))


def timm_names() -> list[str]:
    import timm

    return sorted(timm.list_models())


def timm_family(name: str) -> str:
    from timm.models import _registry

    return str(_registry._model_to_module[name])


def torchvision_model(name: str, device: str = "cpu") -> tuple[nn.Module, Any, int | None]:
    from torchvision.models import get_model

    options: dict[str, Any] = {"num_classes": CLASSES, "weights": None}
    if "googlenet" in name or "inception" in name:
        options["init_weights"] = False  # only spares the slow initialization
    with torch.device(device):
        model = get_model(name, **options)
    if device == "meta":
        return model, torch.randn(2, 3, 224, 224, device="meta"), None
    sizes = (224,) if name.startswith("vit_") else (*SIZES, 299)
    return model, first_that_runs(model, [noise(3, s) for s in sizes]), None


def timm_model(name: str, device: str = "cpu") -> tuple[nn.Module, Any, int | None]:
    import timm

    def build(device: str, **options: Any) -> nn.Module:
        with torch.device(device):
            return timm.create_model(name, num_classes=CLASSES, **options)  # type: ignore[no-any-return]

    try:
        sketch = build("meta")  # for what it declares; costs no initialization
    except Exception as error:
        raise NotBuilt(f"{type(error).__name__}: {error}") from error
    if not hasattr(sketch, "get_classifier"):
        raise NoClassifier("an encoder without get_classifier()")
    classifier = sketch.get_classifier()  # type: ignore[operator]
    if classifier is None or isinstance(classifier, nn.Identity):
        raise NoClassifier("get_classifier() has no layer even with num_classes set")
    config: Any = sketch.pretrained_cfg
    features = getattr(sketch, "head_hidden_size", None)
    if isinstance(classifier, nn.Module) and not isinstance(classifier, nn.Linear | nn.Conv2d):
        # An MLP is declared by what goes into it, SAM by the width before its neck; M is what the last layer takes.
        layers = [module for module in classifier.modules() if isinstance(module, nn.Linear)]
        features = layers[-1].in_features if layers else features
    channels, _, default = config["input_size"]
    if device == "meta":
        return sketch, torch.randn(2, *config["input_size"], device="meta"), features
    sizes = [s for s in SIZES if s < default]
    if not config.get("fixed_input_size"):
        smallest = config.get("min_input_size")
        sizes = [s for s in sizes if smallest is None or s >= smallest[-1]] + [default]
        model = build("cpu")
        return model, first_that_runs(model, [noise(channels, s) for s in sizes]), features
    for size in sizes:  # a fixed input size is an argument of the architecture
        try:
            build("meta", img_size=size)
            small = build("cpu", img_size=size)
            return small, first_that_runs(small, [noise(channels, size)]), features
        except Exception:
            continue
    model = build("cpu")
    return model, first_that_runs(model, [noise(channels, default)]), features


def noise(channels: int, size: int) -> Callable[[], Tensor]:
    return lambda: torch.randn(2, channels, size, size)


def first_that_runs(model: nn.Module, inputs: list[Callable[[], Any]]) -> Any:
    """The first input on which the plain model runs, with finite outputs, in both modes."""
    buffers = [(buffer, buffer.clone()) for buffer in model.buffers()]
    last: Exception | None = None
    for make in inputs:
        example = make()
        try:
            for training in (False, True):
                model.train(training)
                with torch.no_grad():
                    outputs = tensors(call(model, example))
                if not all(output.isfinite().all() for output in outputs):
                    raise ValueError("the plain model's own output is not finite")
            for buffer, value in buffers:
                buffer.copy_(value)
            return example
        except Exception as error:
            last = error
    raise NotBuilt(f"{type(last).__name__}: {last}")
