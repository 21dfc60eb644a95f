"""Networks by name."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from tstar.errors import TstarError, guarded, unknown, whole
from tstar.lab import own
from tstar.lab.models import layers
from tstar.lab.models.networks import cnn4, convnext4, mixer4, pyramidnet10, resnet10, vgg9, vit4
from tstar.output_layer import find_head

if TYPE_CHECKING:
    from tstar.lab.data import DataSet

_LIBRARIES = ("torchvision", "timm", "transformers")
# What a study chooses, and a network of your own must take if it is chosen.
_CHOSEN = ("num_features", "trunk_features", "depth", "pretrained")

# Each network's trunk, and the norm of its kind.
OWN: dict[str, tuple[Callable[..., nn.Module], str]] = {
    **{"resnet10": (resnet10, "batch"), "vgg9": (vgg9, "batch")},
    **{"pyramidnet10": (pyramidnet10, "batch"), "vit4": (vit4, "layer")},
    **{"convnext4": (convnext4, "layer"), "mixer4": (mixer4, "layer")},
    **{"resnet10-1d": (resnet10, "batch"), "vgg9-1d": (vgg9, "batch")},
    **{"pyramidnet10-1d": (pyramidnet10, "batch"), "mlp": (layers.mlp, "batch")},
    **{"cnn4": (cnn4, "none"), "cnn4-1d": (cnn4, "none")},
    "mlp-no-norm": (partial(layers.mlp, norms=False), "none"),
}
FLAT = ("mlp", "mlp-no-norm")  # networks of vectors


def _network(name: str, inputs: int, width: int, m: int, k: int, depth: int | None) -> nn.Module:
    """A network of this package; a trunk narrower than M gets a last, wider layer of its kind."""
    make, norm = OWN[name]
    deep = {} if depth is None else {"depth": depth}
    if name in FLAT:
        trunk = make(inputs, width, **deep)
        trunk = trunk if width == m else nn.Sequential(trunk, make(width, m, 1))
        return layers.Network(trunk, nn.Identity(), m, k)
    nd = 1 if name.endswith("-1d") else 2
    trunk, pool = make(inputs, width, nd, **deep), layers.layer("AdaptiveAvgPool", nd, 1)
    if width == m:
        return layers.Network(trunk, pool, m, k)
    if norm == "batch":
        last = [layers.conv1(nd, width, m), layers.layer("BatchNorm", nd, m), nn.ReLU(inplace=True)]
    elif norm == "layer":
        last = [layers.conv1(nd, width, m), layers.ChannelNorm(m), nn.GELU()]
    else:
        last = [nn.Flatten(), nn.Linear(width, m), nn.ReLU(inplace=True)]
    return layers.Network(nn.Sequential(trunk, pool, *last), nn.Identity(), m, k)


def names() -> list[str]:
    """The networks of this package. Those of torchvision, timm and transformers have a prefix."""
    return list(OWN)


@guarded("models.build() failed")
def build(
    name: str,
    num_classes: int,
    *,
    num_features: int | None = None,
    in_channels: int = 3,
    seed: int | None = None,
    pretrained: bool = False,
    trunk_features: int | None = None,
    depth: int | None = None,
) -> nn.Module:
    """The network ``name`` with ``num_classes`` outputs, freshly initialized, on the CPU.

    ``module:name`` or ``file.py:name`` is a network of your own (:mod:`tstar.lab.own`), which is
    given what it takes of these arguments.

    Args:
        num_features: M, the width of the classifier's input, 512 by default; fixed elsewhere.
        in_channels: the number of input channels; for the MLPs the input's dimension.
        seed: the weights depend on it alone, and torch's global generator is left alone.
        pretrained: load the library's weights and make a new output layer.
        trunk_features: the width before a last layer that widens the pooled features to M.
        depth: the number of blocks (per stage).

    >>> build("resnet10", 10, num_features=64, seed=0).classifier
    Linear(in_features=64, out_features=10, bias=True)
    """
    chosen = {"num_features": num_features, "trunk_features": trunk_features, "depth": depth}
    asked: dict[str, Any] = {what: n for what, n in chosen.items() if n is not None}
    asked |= {"num_classes": num_classes, "in_channels": in_channels}
    for what, number in asked.items():
        whole(what, number, least=1)
    library, _, rest = name.partition("/")
    if name in OWN and pretrained:
        raise TstarError(
            f"For {name!r} no weights are published; use torchvision/NAME or timm/NAME."
        )
    with layers.own_random_numbers(seed):
        if name in OWN:
            m = num_features or 512
            return _network(name, in_channels, trunk_features or m, m, num_classes, depth)
        if rest and library in _LIBRARIES:
            if trunk_features is not None or depth is not None:
                raise TstarError(f"trunk_features and depth are not for {name!r}; leave them out.")
            from tstar.lab.models import zoo

            return zoo.build(library, rest, num_classes, num_features, in_channels, pretrained)
        if own.is_reference(name):
            return _yours(name, {**asked, "pretrained": pretrained})
    raise TstarError(
        f"{unknown('network', name, OWN)} Libraries: torchvision/NAME, timm/NAME, "
        "transformers/NAME. Your own: module:name or ./file.py:name."
    )


def _yours(reference: str, asked: dict[str, Any]) -> nn.Module:
    """A network of your own, which is given what it takes of what is asked for."""
    make = own.load(reference)
    missing = [n for n, v in asked.items() if v and n in _CHOSEN and not own.takes(make, n)]
    if missing:
        raise TstarError(f"{reference} takes no {missing[0]}; add it there, or leave it out here.")
    model: nn.Module = own.call(reference, make, returns=nn.Module, **asked)
    return model


def fitting_model(
    name: str, data: DataSet, num_features: int | None, seed: int | None, **options: Any
) -> nn.Module:
    """A model by name, with the inputs and outputs that a data set needs; see :func:`build`.

    The MLPs take images and signals as well: they are flattened first.
    """
    flat = name in FLAT and data.x_train.dim() > 2
    channels = data.x_train[0].numel() if flat else data.in_channels
    options |= {"num_features": num_features, "in_channels": channels, "seed": seed}
    model = build(name, data.num_classes, **options)
    return nn.Sequential(OrderedDict(flatten=nn.Flatten(), mlp=model)) if flat else model


def paper_init(model: nn.Module, example: Tensor, seed: int) -> None:
    """Draw the output layer's weights anew, as the paper does for all models: U(±1/√M)."""
    head = find_head(model, example)
    with layers.own_random_numbers(seed):
        layers.uniform_init(head.layer, head.num_features)
