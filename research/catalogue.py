"""Which common models the calculator lists, and their M, measured from the models themselves.

Rebuild the list with ``python -m research.catalogue``.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import torchvision

import tstar.lab.calculator

PATH = Path(tstar.lab.calculator.__file__).with_name("models.json")

_TORCHVISION = """
    alexnet convnext_tiny convnext_small convnext_base convnext_large densenet121 densenet161
    densenet169 densenet201 efficientnet_b0 efficientnet_b1 efficientnet_b2 efficientnet_b3
    efficientnet_b4 efficientnet_b5 efficientnet_b6 efficientnet_b7 efficientnet_v2_s
    efficientnet_v2_m efficientnet_v2_l googlenet inception_v3 maxvit_t mnasnet1_0 mobilenet_v2
    mobilenet_v3_small mobilenet_v3_large regnet_x_8gf regnet_y_400mf regnet_y_800mf
    regnet_y_1_6gf regnet_y_3_2gf regnet_y_8gf regnet_y_16gf regnet_y_32gf resnet18 resnet34
    resnet50 resnet101 resnet152 resnext50_32x4d resnext101_32x8d shufflenet_v2_x1_0
    shufflenet_v2_x2_0 squeezenet1_1 swin_t swin_s swin_b swin_v2_t swin_v2_s swin_v2_b vgg11
    vgg16 vgg16_bn vgg19 vit_b_16 vit_b_32 vit_l_16 vit_h_14 wide_resnet50_2 wide_resnet101_2
"""
_TIMM = """
    deit3_small_patch16_224 convnextv2_nano eva02_tiny_patch14_224 mobilenetv4_conv_small
    nfnet_f0 resnet10t tf_efficientnetv2_s vit_tiny_patch16_224 vit_small_patch16_224
    vit_base_patch16_224 vit_large_patch16_224
"""
NAMES = {
    "torchvision": _TORCHVISION.split(),
    "timm": _TIMM.split(),
    "transformers": ["bert", "distilbert", "electra", "roberta"],
}
_SIZES = {
    "bert": "bert-base",
    "distilbert": "distilbert-base",
    "electra": "electra-small",
    "roberta": "roberta-base",
}


def measure(library: str, name: str) -> int:
    """M of the library's model, which is built on the meta device: no memory, no weights."""
    from tstar.output_layer import find_head

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # notes of the libraries about old initializations
        with nowhere():
            model = _MAKERS[library](name)
        return find_head(model).num_features


def collect() -> list[dict[str, Any]]:
    """Every listed model with its M, by library."""
    return [
        {
            "library": library,
            "models": [
                {"name": name, "label": _SIZES.get(name, name), "features": measure(library, name)}
                for name in names
            ],
        }
        for library, names in NAMES.items()
    ]


@contextmanager
def nowhere() -> Iterator[None]:
    """The meta device, for all but RegNet's table of widths, whose values its constructor reads."""
    regnet = torchvision.models.regnet.BlockParams
    original = regnet.__dict__["from_init_params"]

    def on_cpu(cls: Any, *args: Any, **kwargs: Any) -> Any:
        with torch.device("cpu"):
            return original.__func__(cls, *args, **kwargs)

    regnet.from_init_params = classmethod(on_cpu)
    try:
        with torch.device("meta"):
            yield
    finally:
        regnet.from_init_params = original


def _torchvision(name: str) -> Any:
    old = {"init_weights": False, "aux_logits": False}
    options = old if name in ("googlenet", "inception_v3") else {}
    return torchvision.models.get_model(name, weights=None, **options)


def _timm(name: str) -> Any:
    import timm

    return timm.create_model(name, num_classes=10)


def _transformers(name: str) -> Any:
    """A text classifier of the library's default configuration for that architecture."""
    import transformers

    config = transformers.AutoConfig.for_model(name)
    return transformers.AutoModelForSequenceClassification.from_config(config)


_MAKERS = {"torchvision": _torchvision, "timm": _timm, "transformers": _transformers}


if __name__ == "__main__":
    PATH.write_text(json.dumps(collect(), indent=1) + "\n", encoding="utf-8")
