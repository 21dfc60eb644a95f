"""Sweeps: study (what to run), engine (where), store (SQLite), and the grid minus what is done.

The one call that does it all::

    tstar.sweep.sweep("study.toml", "runs.db", workers=2)

``load_runs(path)`` gives the runs of a store, or of an export of one, as a pandas table.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tstar.lazy import lazy

if TYPE_CHECKING:
    from tstar.sweep.run import Tally, run_sweep
    from tstar.sweep.spec import Spec
    from tstar.sweep.store import Store
    from tstar.sweep.study import Study, load_study, parse_study
    from tstar.sweep.transfer import export, load_runs, merge

_LAZY = {
    "Spec": "spec",
    "Store": "store",
    "Study": "study",
    "Tally": "run",
    "export": "transfer",
    "load_runs": "transfer",
    "load_study": "study",
    "merge": "transfer",
    "parse_study": "study",
    "run_sweep": "run",
}
__all__ = [
    "Spec",
    "Store",
    "Study",
    "Tally",
    "export",
    "load_runs",
    "load_study",
    "merge",
    "parse_study",
    "run_sweep",
    "sweep",
]


__getattr__ = lazy(__name__, _LAZY)


def sweep(
    study: Study | str | Path,
    store: str | Path,
    *,
    engine: str = "local",
    workers: int | None = None,
    address: str | None = None,
    data_root: str | None = None,
    device: str = "auto",
    update: Callable[[Tally], None] = lambda tally: None,
    say: Callable[[str], None] = lambda text: None,
    max_runs: int | None = None,
) -> Tally:
    """Do every run of a study that the store does not have yet.

    Args:
        study: a study, or the path of its TOML file.
        store: the SQLite file of results; made if it does not exist.
        engine: ``"local"`` (processes of this machine) or ``"ray"``.
        workers: runs at once; by default one a GPU, or one a core.
        address: of a Ray cluster.
        data_root: the folder below which data sets are found; ``TSTAR_DATA`` by default.
        device: of the local engine: ``"auto"``, ``"cpu"``, ``"cuda"``, …
        update: called with the tally as the sweep goes on. say: called with a line of text now and then.
        max_runs: stop after so many results.
    """
    from tstar.errors import unknown
    from tstar.sweep.plan import make_plan
    from tstar.sweep.run import run_sweep
    from tstar.sweep.store import Store
    from tstar.sweep.study import Study, load_study

    if engine not in ("local", "ray"):
        raise unknown("engine", engine, ("local", "ray"))
    read = study if isinstance(study, Study) else load_study(study)
    with Store(store, create=True) as opened:
        plan = make_plan(read, opened, data_root=data_root, say=say)
        if engine == "ray":
            from tstar.sweep.ray_engine import RayEngine

            chosen: Any = RayEngine(workers, address)
        else:
            from tstar.sweep.engine import LocalEngine

            chosen = LocalEngine(workers, device)
        return run_sweep(
            plan, opened, chosen, data_root=data_root, update=update, max_runs=max_runs
        )
