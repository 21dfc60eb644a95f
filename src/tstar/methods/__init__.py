"""Every method of the paper's Table 1, and those named around it, by name.

::

    method = tstar.methods.get("insert-ln")            # options as keywords: affine=False
    recipe = method.prepare(model, tstar.methods.Facts(num_features=512, num_classes=100))
    loss = recipe.loss(recipe.model(x), y, x)

A name may carry options and smoothed labels: ``"insert-ln:affine=false"``,
``"ours-cn+label-smoothing"``. Names are looked up without importing torch.

The docstrings mark where a definition comes from: (S) read in the source named, (D) derived or measured for this
project, (K) from memory of the paper and not confirmed.

Not here, though the paper names them: adaptive temperature scaling, dynamic label smoothing, and the
temperatures of contrastive losses.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tstar import own
from tstar.errors import TstarError, unknown
from tstar.lazy import lazy

if TYPE_CHECKING:
    from tstar.methods.interface import Facts, Method, Recipe
    from tstar.methods.searching import Search, Trial, search
    from tstar.methods.temperature_scaling import Calibration, calibrate

# name → module, class, and what the class is given
_METHODS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "default": ("default", "Default", {}),
    "advised": ("advised", "Advised", {}),
    "sqrt-m": ("sqrt_m", "SqrtM", {}),
    "insert-ln": ("insert_ln", "InsertLN", {}),
    "label-smoothing": ("label_smoothing", "LabelSmoothing", {}),
    "relaxed-softmax": ("relaxed_softmax", "RelaxedSoftmax", {}),
    "temperature-check": ("temperature_check", "TemperatureCheck", {}),
    "temperature-scaling": ("temperature_scaling", "TemperatureScaling", {}),
    "kd": ("kd", "KD", {}),
    "meta-kd": ("meta_kd", "MetaKD", {}),
    "ctkd": ("ctkd", "CTKD", {}),
    "logit-standardization": ("logit_standardization", "LogitStandardization", {}),
    "heated-up": ("heated_up", "HeatedUp", {}),
    "adacos-fixed": ("adacos", "AdaCosFixed", {}),
    "normface-bound": ("normface", "NormFaceBound", {}),
    "learned-temperature": ("learned_temperature", "LearnedTemperature", {}),
    "fixed": ("fixed", "Fixed", {}),
    "ours-base": ("ours", "Ours", {"variant": "base"}),
    "ours-csg": ("ours", "Ours", {"variant": "csg"}),
    "ours-cn": ("ours", "Ours", {"variant": "cn"}),
    "ours-csgcn": ("ours", "Ours", {"variant": "csgcn"}),
}
_LAZY = {
    "Calibration": "temperature_scaling",
    "Facts": "interface",
    "Method": "interface",
    "Recipe": "interface",
    "Search": "searching",
    "Trial": "searching",
    "calibrate": "temperature_scaling",
    "search": "searching",
}
_SMOOTHED = "+label-smoothing"

__all__ = [
    "Calibration",
    "Facts",
    "Method",
    "Recipe",
    "Search",
    "Trial",
    "calibrate",
    "get",
    "list",
    "search",
]


def get(name: str, **options: Any) -> Method:
    """The method of that name.

    Args:
        name: one of :func:`list`, with options after colons if any (``"kd:tau=2"``) and
            ``+label-smoothing`` at the end if wanted; or one of your own, as ``module:name`` or
            ``file.py:name`` (:mod:`tstar.own`).
        options: the method's own, by keyword.
    """
    reference = None if name in _METHODS else own.named(name, "tstar.methods")
    if reference is not None:
        from tstar.methods.yours import make

        return make(reference, options)
    plain, smoothed, rest = name.partition(_SMOOTHED)
    if smoothed and rest:
        raise TstarError(f"{_SMOOTHED!r} must end a method's name, got {name!r}.")
    base, *settings = plain.split(":")
    if base not in _METHODS:
        raise unknown("method", base, _METHODS)
    module, kind, given = _METHODS[base]
    cls = getattr(import_module(f"tstar.methods.{module}"), kind)
    allowed = _options(cls, given)
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals:
            raise TstarError(f"A method's option must read key=value, got {setting!r} in {name!r}.")
        options[key] = _value(text)
    for key in options:
        if key not in allowed:
            raise _no_such_option(base, key, allowed)
    method: Method = cls(**given, **options)
    if smoothed:
        from tstar.methods.label_smoothing import Smoothed

        return Smoothed(method)
    return method


def list() -> list[str]:  # type: ignore[valid-type]
    """The names, in the order of the paper's tables with our rows last."""
    return [*_METHODS]


def _options(cls: type, given: dict[str, Any]) -> tuple[str, ...]:
    from dataclasses import fields

    return tuple(f.name for f in fields(cls) if f.init and f.name not in given)


def _value(text: str) -> bool | int | float | str:
    """An option as it is written in a name: true, false, a number, or a word."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _no_such_option(method: str, key: str, allowed: tuple[str, ...]) -> TstarError:
    if not allowed:
        return TstarError(f"Method {method!r} takes no options, got {key!r}.")
    return unknown(f"option of method {method!r}", key, allowed)


__getattr__ = lazy(__name__, _LAZY)
