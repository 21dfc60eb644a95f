"""tstar: train classifiers at the softmax temperature that fits them, without a search.

The names below are loaded when they are first used, so that ``import tstar`` stays light and the
formula answers without torch. What researchers use is in ``tstar.lab``.
"""

from typing import TYPE_CHECKING

from tstar._version import __version__
from tstar.errors import TstarError, TstarWarning
from tstar.formula import Coefficients, explain, temperature
from tstar.imports import lazy

if TYPE_CHECKING:
    import tstar.lab as lab
    from tstar.advice import Recommendation, recommend
    from tstar.difficulty import csg
    from tstar.groups import param_groups
    from tstar.output_layer import find_head
    from tstar.schedule import Schedule
    from tstar.surgery import fold, load_folded, temper, untemper

_HOMES = {
    "advice": ("Recommendation", "recommend"),
    "difficulty": ("csg",),
    "groups": ("param_groups",),
    "output_layer": ("find_head",),
    "schedule": ("Schedule",),
    "surgery": ("fold", "load_folded", "temper", "untemper"),
}
_LAZY = {name: home for home, names in _HOMES.items() for name in names}

__all__ = ["Coefficients", "Recommendation", "Schedule", "TstarError", "TstarWarning", "csg"]
__all__ += ["explain", "find_head", "fold", "load_folded", "param_groups", "recommend", "temper"]
__all__ += ["temperature", "untemper"]
__getattr__ = lazy(__name__, {**_LAZY, "lab": None})


def __dir__() -> list[str]:
    return [*__all__, "__version__", "lab"]
