"""The lab: what researchers import. Data, networks, methods, training, sweeps, fits, reports and the commands.

The core (:mod:`tstar`) never imports it. The names below are loaded when they are first used.
"""

from typing import TYPE_CHECKING

from tstar.errors import lazy

if TYPE_CHECKING:
    import tstar.lab.data as data
    import tstar.lab.methods as methods
    import tstar.lab.models as models
    import tstar.lab.paper as paper
    import tstar.lab.sweep as sweep
    from tstar.lab.checking import check
    from tstar.lab.comparing import compare
    from tstar.lab.evidence import atlas
    from tstar.lab.fitting import Fit, fit
    from tstar.lab.sweep import run_study

_LAZY = {
    "Fit": "fitting",
    "atlas": "evidence",
    "check": "checking",
    "compare": "comparing",
    "fit": "fitting",
    "run_study": "sweep",
}
_SUBPACKAGES = ("data", "methods", "models", "paper", "sweep")

__all__ = [
    "Fit",
    "atlas",
    "check",
    "compare",
    "data",
    "fit",
    "methods",
    "models",
    "paper",
    "run_study",
    "sweep",
]


__getattr__ = lazy(__name__, {**_LAZY, **dict.fromkeys(_SUBPACKAGES)})


def __dir__() -> list[str]:
    return [*__all__]
