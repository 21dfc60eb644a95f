"""tstar: which softmax temperature should your classifier train at? Ask before you train.

The names below are loaded when they are first used, so that ``import tstar`` stays light and the
formula answers without torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tstar._version import __version__
from tstar.errors import TstarError, TstarWarning
from tstar.formula.coefficients import Coefficients
from tstar.formula.equation import Explanation, explain, temperature

if TYPE_CHECKING:
    import tstar.data as data
    import tstar.methods as methods
    import tstar.models as models
    import tstar.paper as paper
    from tstar.advice import Recommendation, recommend
    from tstar.checking.trial import check
    from tstar.difficulty import Csg, csg
    from tstar.evidence import atlas
    from tstar.fitting import Fit, fit
    from tstar.surgery.finding import Head, find_head
    from tstar.surgery.folded import load_folded
    from tstar.surgery.head import TemperedHead
    from tstar.surgery.padding import mask_padding
    from tstar.surgery.reparametrization import param_groups
    from tstar.surgery.schedule import Schedule
    from tstar.surgery.speed import Speeds, speeds
    from tstar.surgery.tempering import fold, temper, untemper

_LAZY = {
    "Csg": "tstar.difficulty",
    "Fit": "tstar.fitting",
    "Head": "tstar.surgery.finding",
    "Recommendation": "tstar.advice",
    "Schedule": "tstar.surgery.schedule",
    "Speeds": "tstar.surgery.speed",
    "TemperedHead": "tstar.surgery.head",
    "atlas": "tstar.evidence",
    "check": "tstar.checking.trial",
    "csg": "tstar.difficulty",
    "find_head": "tstar.surgery.finding",
    "fit": "tstar.fitting",
    "fold": "tstar.surgery.tempering",
    "load_folded": "tstar.surgery.folded",
    "mask_padding": "tstar.surgery.padding",
    "param_groups": "tstar.surgery.reparametrization",
    "recommend": "tstar.advice",
    "speeds": "tstar.surgery.speed",
    "temper": "tstar.surgery.tempering",
    "untemper": "tstar.surgery.tempering",
}
_SUBPACKAGES = ("data", "methods", "models", "paper")

__all__ = [
    "Coefficients",
    "Csg",
    "Explanation",
    "Fit",
    "Head",
    "Recommendation",
    "Schedule",
    "Speeds",
    "TemperedHead",
    "TstarError",
    "TstarWarning",
    "atlas",
    "check",
    "csg",
    "data",
    "explain",
    "find_head",
    "fit",
    "fold",
    "load_folded",
    "mask_padding",
    "methods",
    "models",
    "paper",
    "param_groups",
    "recommend",
    "speeds",
    "temper",
    "temperature",
    "untemper",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    if name in _SUBPACKAGES:
        return import_module(f"tstar.{name}")
    raise AttributeError(f"module 'tstar' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
