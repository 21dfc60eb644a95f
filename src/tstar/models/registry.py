"""From a name to a network."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from torch import nn

from tstar import own
from tstar.errors import TstarError, unknown
from tstar.models.cnn import cnn4
from tstar.models.convnext import convnext4
from tstar.models.layers import Network, conv1, global_pool, norm, own_random_numbers
from tstar.models.mixer import mixer4
from tstar.models.mlp import mlp
from tstar.models.pyramidnet import pyramidnet10
from tstar.models.resnet import resnet10
from tstar.models.vgg import vgg9
from tstar.models.vit import vit4
from tstar.numbers import whole
from tstar.surgery.layers import ChannelNorm

DEFAULT_FEATURES = 512  # M of the networks at full width

_BATCH_NORMED: dict[str, Callable[..., nn.Module]] = {
    "resnet10": resnet10,
    "vgg9": vgg9,
    "pyramidnet10": pyramidnet10,
}
_LAYER_NORMED: dict[str, Callable[..., nn.Module]] = {
    "vit4": vit4,
    "convnext4": convnext4,
    "mixer4": mixer4,
}
_LIBRARIES = ("torchvision", "timm", "transformers")
# What a study chooses, and a network of your own must take where it is chosen.
_CHOSEN = ("num_features", "trunk_features", "depth", "pretrained")


Depth = dict[str, int]  # {"depth": n}, or empty for the network's own


# What stands between the pooled features of a narrow trunk and M wide ones, as in MobileNetV3: norm and activation are
# those of the network, none where it has none.
def _widened_batch(nd: int, width: int, m: int) -> list[nn.Module]:
    return [conv1(nd, width, m), norm(nd, m), nn.ReLU(inplace=True)]


def _widened_layer(nd: int, width: int, m: int) -> list[nn.Module]:
    return [conv1(nd, width, m), ChannelNorm(m), nn.GELU()]


def _widened_plain(nd: int, width: int, m: int) -> list[nn.Module]:
    return [nn.Flatten(), nn.Linear(width, m), nn.ReLU(inplace=True)]


def _convolutional(
    make: Callable[..., nn.Module],
    widened: Callable[[int, int, int], list[nn.Module]],
    nd: int,
    inputs: int,
    width: int,
    m: int,
    k: int,
    depth: Depth,
) -> nn.Module:
    trunk, pool = make(inputs, width, nd, **depth), global_pool(nd)
    if width == m:
        return Network(trunk, pool, m, k)
    return Network(nn.Sequential(trunk, pool, *widened(nd, width, m)), nn.Identity(), m, k)


def _perceptron(norms: bool, inputs: int, width: int, m: int, k: int, depth: Depth) -> nn.Module:
    trunk = mlp(inputs, width, **depth, norms=norms)
    if width != m:
        trunk = nn.Sequential(trunk, mlp(width, m, 1, norms=norms))
    return Network(trunk, nn.Identity(), m, k)


OWN: dict[str, Callable[[int, int, int, int, Depth], nn.Module]] = {
    **{n: partial(_convolutional, trunk, _widened_batch, 2) for n, trunk in _BATCH_NORMED.items()},
    **{n: partial(_convolutional, trunk, _widened_layer, 2) for n, trunk in _LAYER_NORMED.items()},
    **{
        f"{n}-1d": partial(_convolutional, trunk, _widened_batch, 1)
        for n, trunk in _BATCH_NORMED.items()
    },
    "mlp": partial(_perceptron, True),
    "cnn4": partial(_convolutional, cnn4, _widened_plain, 2),
    "cnn4-1d": partial(_convolutional, cnn4, _widened_plain, 1),
    "mlp-no-norm": partial(_perceptron, False),
}
FLAT = ("mlp", "mlp-no-norm")  # networks of vectors


def names() -> list[str]:
    """The networks of this package. Those of torchvision, timm and transformers have a prefix."""
    return list(OWN)


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

    ``num_features`` is M, the width of the classifier's input: any positive number for the networks
    of this package (512 by default); for those of other libraries it is only compared with theirs.
    ``in_channels`` is the number of input channels, for the MLPs the input's dimension. With ``seed``
    the weights depend on nothing but the seed, and torch's global generator is left alone.
    ``trunk_features``, for the networks of this package, is the width of all but a last layer (with the network's
    norm and activation) that widens the pooled features to M, as MobileNetV3 has it; ``depth`` their number of blocks (per stage).
    ``pretrained`` loads the library's weights and makes a new output layer.

    ``module:name`` or ``file.py:name`` is a network of your own (:mod:`tstar.own`): a function that is given
    what it takes of ``num_classes``, ``in_channels``, ``num_features``, ``depth``, …

    >>> build("resnet10", 10, num_features=64, seed=0).classifier
    Linear(in_features=64, out_features=10, bias=True)
    """
    asked: dict[str, Any] = {
        "num_classes": num_classes,
        "in_channels": in_channels,
        "num_features": num_features,
        "trunk_features": trunk_features,
        "depth": depth,
    }
    for what, number in asked.items():
        if number is not None or what in ("num_classes", "in_channels"):
            whole(what, number, least=1)
    library, _, rest = name.partition("/")
    with own_random_numbers(seed):
        if rest and library in _LIBRARIES:
            if trunk_features is not None or depth is not None:
                raise TstarError(
                    f"trunk_features and depth belong to the networks of this package; leave them out for {name!r}."
                )
            from tstar.models import zoo

            return zoo.build(library, rest, num_classes, num_features, in_channels, pretrained)
        if name not in OWN:
            reference = own.named(name, "tstar.models")
            if reference is None:
                raise _unknown_network(name)
            return _yours(reference, {**asked, "pretrained": pretrained})
        if pretrained:
            raise TstarError(
                f"pretrained=True needs a network of a library, but got {name!r}, for which no "
                "weights are published; use torchvision/NAME, timm/NAME or transformers/NAME."
            )
        m = num_features or DEFAULT_FEATURES
        deep = {} if depth is None else {"depth": depth}
        return OWN[name](in_channels, trunk_features or m, m, num_classes, deep)


def _yours(reference: str, asked: dict[str, Any]) -> nn.Module:
    """A network of your own: a function or class that is given what it takes of what is asked for."""
    make = own.load(reference)
    missing = [n for n, v in asked.items() if v and n in _CHOSEN and not own.takes(make, n)]
    if missing:
        raise TstarError(f"{reference} takes no {missing[0]}; add it there, or leave it out here.")
    model = own.call(reference, make, **{n: v for n, v in asked.items() if v is not None})
    if not isinstance(model, nn.Module):
        raise TstarError(f"{reference} must return a torch.nn.Module, got {type(model).__name__}.")
    return model


def _unknown_network(name: str) -> TstarError:
    error = unknown("network", name, OWN)
    return TstarError(
        f"{error} Networks of libraries: {', '.join(f'{x}/NAME' for x in _LIBRARIES)}; "
        "of your own: module:name or ./file.py:name."
    )
