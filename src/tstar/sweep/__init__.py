"""Sweeps: study (what to run), engine (where), store (SQLite), and the grid minus what is done.

The one call that does it all::

    tstar.sweep.sweep("study.toml", "runs.db", workers=2)

:func:`run_study` takes networks, data and methods of your own from Python. ``load_runs(path)`` gives the runs of a store, or of an export of one, as a pandas table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tstar.lazy import lazy

if TYPE_CHECKING:
    from tstar.sweep.run import Tally, run_sweep
    from tstar.sweep.spec import Spec
    from tstar.sweep.store import Store
    from tstar.sweep.study import Study, load_study, parse_study
    from tstar.sweep.transfer import export, load_runs, merge
    from tstar.sweep.writers import writer

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
    "writer": "writers",
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
    "run_study",
    "run_sweep",
    "sweep",
    "writer",
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
    gpus_per_run: float | None = None,
    checkpoint: float | None = None,
    update: Callable[[Tally], None] = lambda tally: None,
    on_run: Callable[[Mapping[str, Any]], None] | None = None,
    say: Callable[[str], None] = lambda text: None,
    max_runs: int | None = None,
    part: tuple[int, int] | None = None,
) -> Tally:
    """Do every run of a study that the store does not have yet.

    Args:
        study: a study, or the path of its TOML file.
        store: the SQLite file of results; made if it does not exist.
        engine: ``"local"`` (processes of this machine) or ``"ray"``.
        workers: runs at once; by default one per GPU, or one per core.
        address: of a Ray cluster.
        data_root: the folder below which data sets are found; ``TSTAR_DATA`` by default.
        device: ``"auto"``, ``"cpu"``, ``"cuda"``, …; an error where there is none.
        gpus_per_run: a share of a GPU for each run, such as 0.25: four runs at once on each.
        checkpoint: minutes between the checkpoints of a run, from which a killed one goes on; none by default.
        update: called with the tally as the sweep goes on. say: called with a line of text now and then.
        on_run: called with each run that was stored, as a mapping of the store's columns
            (:mod:`tstar.sweep.writers` has some for TensorBoard, MLflow and W&B).
        max_runs: stop after so many results.
        part: (i, n) does every n-th run from the i-th on, for jobs that share no store.
    """
    import shutil

    from tstar.errors import TstarError, unknown
    from tstar.numbers import positive, whole
    from tstar.sweep.engine import ENGINES, LocalEngine
    from tstar.sweep.plan import make_plan
    from tstar.sweep.run import run_sweep
    from tstar.sweep.shared import folder_of
    from tstar.sweep.store import Store
    from tstar.sweep.study import Study, load_study

    _refuse_workers()
    if engine not in ENGINES:
        raise unknown("engine", engine, ENGINES)
    for what, value in (("workers", workers), ("max_runs", max_runs)):
        if value is not None:
            whole(what, value, least=1)
    if checkpoint is not None:
        positive("checkpoint", checkpoint)
    if on_run is not None and not callable(on_run):
        raise TstarError(f"on_run must be a function of a run's row, got {on_run!r}.")
    # A device that is not there is told before the data are read.
    chosen: Any = LocalEngine(workers, device, gpus_per_run) if engine == "local" else None
    read = study if isinstance(study, Study) else load_study(study)
    name = (read.name, read.hash)
    if part is not None:
        read = read.part(*part)
    with Store(store, create=True) as opened:
        folder = folder_of(opened.path)
        try:
            plan = make_plan(read, opened, data_root=data_root, say=say, folder=str(folder))
            if engine == "ray":
                from tstar.sweep.ray_engine import RayEngine

                chosen = RayEngine(workers, address, device, gpus=gpus_per_run)
            return run_sweep(
                plan,
                opened,
                chosen,
                data_root=data_root,
                folder=str(folder),
                study=name,
                part=part is not None,
                update=update,
                on_run=on_run,
                max_runs=max_runs,
                checkpoint=checkpoint,
            )
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def run_study(
    study: Study | str | Path | Mapping[str, Any],
    store: str | Path,
    *,
    models: Mapping[str, Callable[..., Any]] | None = None,
    data: Mapping[str, Any] | None = None,
    methods: Mapping[str, Callable[..., Any]] | None = None,
    **options: Any,
) -> Tally:
    """A study with parts of your own, from Python.

    ::

        def make(num_classes, in_channels, num_features=64): ...   # at the top level of your script

        if __name__ == "__main__":
            tstar.run_study(
                {"training": {"epochs": 5}, "grid": {"dataset": "mine", "model": "mine", "temperature": [1, 4, 16]}},
                store="runs.db",
                models={"mine": make},
                data={"mine": (x_train, y_train, x_test, y_test)},
            )

    Args:
        study: a study, its TOML file, or the tables of one; in tables, own parts may be the functions themselves.
        store: the SQLite file of results; made if it does not exist.
        models: networks by the names that the study uses: functions that return an ``nn.Module``.
        data: data sets by name: four arrays, a ``tstar.data.DataSet``, or functions that return them.
        methods: methods by name: functions ``f(model, facts)`` that return a ``tstar.methods.Recipe``.
        options: those of :func:`sweep`.
    """
    from tstar.sweep.given import read_given

    _refuse_workers()
    with read_given(study, Path(store), models or {}, data or {}, methods or {}) as read:
        return sweep(read, store, **options)


def _refuse_workers() -> None:
    """A script without a ``__main__`` guard starts its sweep again in every worker that imports it."""
    import multiprocessing
    import os

    from tstar import own
    from tstar.sweep.engine import UNGUARDED, unguarded

    if own.importing() is not None:
        raise unguarded()
    if multiprocessing.current_process().name == "tstar-worker":
        os._exit(UNGUARDED)
