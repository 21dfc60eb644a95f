"""Every method of the paper's Table 1, and those named around it, by name.

::

    method = tstar.lab.methods.get("insert-ln")            # options as keywords: affine=False
    recipe = method.prepare(model, tstar.lab.methods.Setting(num_features=512, num_classes=100))
    loss = recipe.loss(recipe.model(x), y, x)

A name may carry options: ``"insert-ln:affine=false"``. Names are listed without importing torch.

The docstrings mark where a definition comes from: (S) read in the source named, (D) derived or
measured for this project, (K) from memory of the paper and not confirmed.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

from tstar.errors import TstarError, guarded, positive, unknown
from tstar.imports import lazy
from tstar.lab import own

if TYPE_CHECKING:
    from tstar.lab.methods.calibration import calibrate
    from tstar.lab.recipe import Method, Recipe, Setting

__all__ = ["Method", "Recipe", "Setting", "calibrate", "get", "list"]
_HOMES = dict.fromkeys(("Method", "Recipe", "Setting"), ".recipe") | {"calibrate": "calibration"}
__getattr__ = lazy(__name__, _HOMES)

# name → its file and what it needs, in the order of the paper's tables with our rows last
_METHODS: dict[str, tuple[str, str]] = {
    "default": ("common", ""),
    "advised": ("common", ""),
    "sqrt-m": ("closed_forms", ""),
    "insert-ln": ("learned", ""),
    "label-smoothing": ("common", ""),
    "relaxed-softmax": ("learned", ""),
    "temperature-check": ("temperature_check", "validation"),
    "temperature-scaling": ("calibration", "validation"),
    "kd": ("distillation", "teacher"),
    "meta-kd": ("distillation", "teacher validation"),
    "ctkd": ("distillation", "teacher"),
    "logit-standardization": ("distillation", "teacher"),
    "heated-up": ("closed_forms", ""),
    "adacos-fixed": ("closed_forms", ""),
    "normface-bound": ("closed_forms", ""),
    "learned-temperature": ("learned", ""),
    "fixed": ("closed_forms", ""),
    "ours-base": ("closed_forms", ""),
    "ours-csg": ("closed_forms", "csg"),
    "ours-cn": ("closed_forms", ""),
    "ours-csgcn": ("closed_forms", "csg"),
}


@guarded("methods.get() failed")
def get(name: str, **options: Any) -> Method:
    """The method of that name.

    Args:
        name: one of :func:`list`, with options after colons if any (``"kd:tau=2"``); or a function
            of your own, as ``module:name`` or ``file.py:name`` (:mod:`tstar.lab.own`).
        options: the method's own, by keyword.

    Raises:
        TstarError: there is no such method, or it has no such option.
    """
    from tstar.lab.recipe import Method, own_method

    if name not in _METHODS and own.is_reference(name):
        return own_method(name, options)
    base, *settings = name.split(":")
    if base not in _METHODS:
        raise unknown("method", base, _METHODS)
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals:
            raise TstarError(f"A method's option must read key=value, got {setting!r} in {name!r}.")
        options[key] = _value(text)
    family, needs = _METHODS[base]
    word, _, variant = base.partition("ours-")
    module = import_module(f"tstar.lab.methods.{family}")
    function = getattr(module, word.replace("-", "_") or "ours")
    given = {"variant": variant} if variant else {}
    chosen = given | _checked(base, function, options, given)
    candidates = module.candidates(**chosen) if hasattr(module, "candidates") else ()
    return Method(base, function, frozenset(needs.split()), chosen, candidates)


def list() -> list[str]:  # type: ignore[valid-type]
    """The names, in the order of the paper's tables with our rows last."""
    return [*_METHODS]


def _checked(
    name: str, function: Callable[..., Any], options: dict[str, Any], given: dict[str, Any]
) -> dict[str, Any]:
    """The options with their defaults: known ones, choices from their list, numbers above 0."""
    hints, parameters = get_type_hints(function), inspect.signature(function).parameters
    known = {n: p.default for n, p in parameters.items() if p.kind is p.KEYWORD_ONLY}
    known = {n: default for n, default in known.items() if n not in given}
    for key, value in options.items():
        if key not in known:
            raise unknown(f"option of method {name!r}", key, known or ["none"])
        if get_origin(hints[key]) is Literal and value not in get_args(hints[key]):
            raise unknown(key, value, get_args(hints[key]))
        if isinstance(known[key], int | float) and not isinstance(value, bool):
            positive(key, value)
    return known | options


def _value(text: str) -> Any:
    """An option as it is written in a name: true, false, a number, or a word."""
    try:
        return ast.literal_eval(text.capitalize() if text in ("true", "false") else text)
    except (ValueError, SyntaxError):
        return text
