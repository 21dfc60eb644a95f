"""tstar: which softmax temperature should your classifier train at? Ask before you train.

The names below are loaded when they are first used, so that ``import tstar`` stays light and the
formula answers without torch.
"""

from typing import TYPE_CHECKING

from tstar._version import __version__
from tstar.errors import TstarError, TstarWarning
from tstar.formula.coefficients import Coefficients
from tstar.formula.equation import Explanation, explain, temperature
from tstar.lazy import lazy

if TYPE_CHECKING:
    import tstar.data as data
    import tstar.methods as methods
    import tstar.models as models
    import tstar.paper as paper
    import tstar.sweep as sweep
    from tstar.advice import recommend
    from tstar.checking.trial import check
    from tstar.difficulty import Csg, csg
    from tstar.evidence import atlas
    from tstar.fitting import Fit, fit
    from tstar.recommendation import Recommendation
    from tstar.surgery.finding import Head, find_head
    from tstar.surgery.folded import load_folded
    from tstar.surgery.head import TemperedHead
    from tstar.surgery.padding import mask_padding
    from tstar.surgery.recalibrating import recalibrate
    from tstar.surgery.reparametrization import param_groups
    from tstar.surgery.schedule import Schedule
    from tstar.surgery.speed import Speeds, speeds
    from tstar.surgery.tempering import fold, temper, untemper
    from tstar.surgery.watching import watch
    from tstar.sweep import run_study

_LAZY = {
    "Csg": "difficulty",
    "Fit": "fitting",
    "Head": "surgery.finding",
    "Recommendation": "recommendation",
    "Schedule": "surgery.schedule",
    "Speeds": "surgery.speed",
    "TemperedHead": "surgery.head",
    "atlas": "evidence",
    "check": "checking.trial",
    "csg": "difficulty",
    "find_head": "surgery.finding",
    "fit": "fitting",
    "fold": "surgery.tempering",
    "load_folded": "surgery.folded",
    "mask_padding": "surgery.padding",
    "param_groups": "surgery.reparametrization",
    "recalibrate": "surgery.recalibrating",
    "recommend": "advice",
    "run_study": "sweep",
    "speeds": "surgery.speed",
    "temper": "surgery.tempering",
    "untemper": "surgery.tempering",
    "watch": "surgery.watching",
}
_SUBPACKAGES = ("data", "methods", "models", "paper", "sweep")

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
    "recalibrate",
    "recommend",
    "run_study",
    "speeds",
    "sweep",
    "temper",
    "temperature",
    "untemper",
    "watch",
]


__getattr__ = lazy(__name__, {**_LAZY, **dict.fromkeys(_SUBPACKAGES)})


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
