"""Sweeps: study (what to run), engine (where), store (SQLite), and the grid minus what is done.

The one call that does it all::

    tstar.lab.run_study("study.toml", "runs.db", workers=2)

It takes networks, data and methods of your own, too. ``load_runs(path)`` gives the runs of a store,
or of an export of one, as a pandas table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tstar.imports import lazy

if TYPE_CHECKING:
    from tstar.lab.sweep.run import Tally, run_study, run_sweep
    from tstar.lab.sweep.spec import Spec
    from tstar.lab.sweep.store import Store
    from tstar.lab.sweep.study import Study, load_study, parse_study
    from tstar.lab.sweep.transfer import export, load_runs, merge

__all__ = ["Spec", "Store", "Study", "Tally", "export", "load_runs", "load_study", "merge"]
__all__ += ["parse_study", "run_study", "run_sweep"]
_HOMES = {
    **dict.fromkeys(("Tally", "run_study", "run_sweep"), "run"),
    **dict.fromkeys(("Study", "load_study", "parse_study"), "study"),
    **dict.fromkeys(("export", "load_runs", "merge"), "transfer"),
    **{"Spec": "spec", "Store": "store"},
}
__getattr__ = lazy(__name__, _HOMES)
