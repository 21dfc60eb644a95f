"""The lab: what researchers import. Data, networks, methods, training, sweeps, fits, reports and the commands.

The core (:mod:`tstar`) never imports it. The names below are loaded when they are first used.
"""

from typing import TYPE_CHECKING

from tstar.errors import lazy

if TYPE_CHECKING:
    from tstar.lab import calculator as calculator
    from tstar.lab import data as data
    from tstar.lab import demo as demo
    from tstar.lab import methods as methods
    from tstar.lab import models as models
    from tstar.lab import paper as paper
    from tstar.lab import report as report
    from tstar.lab import sweep as sweep
    from tstar.lab.checking import check as check
    from tstar.lab.cli.package_commands import info as info
    from tstar.lab.cli.package_commands import receipt as receipt
    from tstar.lab.comparing import compare as compare
    from tstar.lab.evidence import atlas as atlas
    from tstar.lab.fitting import Fit as Fit
    from tstar.lab.fitting import fit as fit
    from tstar.lab.sweep import load_runs as load_runs
    from tstar.lab.sweep import run_study as run_study

_LAZY = {
    **{"Fit": "fitting", "atlas": "evidence", "check": "checking", "compare": "comparing"},
    **{"fit": "fitting", "info": "cli.package_commands", "receipt": "cli.package_commands"},
    **{"load_runs": "sweep", "run_study": "sweep"},
}
_MODULES = ("calculator", "data", "demo", "methods", "models", "paper", "report", "sweep")
_HOMES = {**_LAZY, **dict.fromkeys(_MODULES)}
__all__ = sorted(_HOMES)
__getattr__ = lazy(__name__, _HOMES)


def __dir__() -> list[str]:
    return [*__all__]
