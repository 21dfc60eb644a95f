"""The lab: what researchers import. Data, networks, methods, training, sweeps, fits, reports and the commands.

The core (:mod:`tstar`) never imports it. The names below are loaded when they are first used.
"""

from typing import TYPE_CHECKING

from tstar.imports import lazy

if TYPE_CHECKING:
    from tstar.lab import calculator, data, demo, methods, models, paper, report, sweep
    from tstar.lab.checking import check
    from tstar.lab.comparing import compare
    from tstar.lab.evidence import atlas
    from tstar.lab.fitting import Fit, fit
    from tstar.lab.sweep import load_runs, run_study

__all__ = ["Fit", "atlas", "check", "compare", "fit", "load_runs", "run_study"]
__all__ += ["calculator", "data", "demo", "methods", "models", "paper", "report", "sweep"]
# The others are modules themselves.
_HOMES = {
    **{"Fit": "fitting", "atlas": "evidence", "check": "checking", "compare": "comparing"},
    **{"fit": "fitting", "load_runs": "sweep", "run_study": "sweep"},
}
__getattr__ = lazy(__name__, dict.fromkeys(__all__) | _HOMES)


def __dir__() -> list[str]:
    return [*__all__]
