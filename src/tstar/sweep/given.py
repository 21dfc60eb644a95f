"""The parts that a script hands over: functions become references, arrays a folder that workers map."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tstar import own
from tstar.errors import TstarError
from tstar.sweep import shared
from tstar.sweep.spec import OWN
from tstar.sweep.study import Study, load_tables, make_study


@contextmanager
def read_given(
    study: Study | str | Path | Mapping[str, Any],
    store: Path,
    models: Mapping[str, Callable[..., Any]],
    data: Mapping[str, Any],
    methods: Mapping[str, Callable[..., Any]],
) -> Iterator[Study]:
    """The study with its parts in place; the arrays' copies are removed afterwards."""
    if isinstance(study, Study):
        if models or data or methods:
            raise TstarError(
                "Parts are given with the tables or the file of a study, not with a Study."
            )
        yield study
        return
    for what, value in (("models", models), ("data", data), ("methods", methods)):
        if not isinstance(value, Mapping):
            raise TstarError(
                f"{what} must be a mapping from names to parts, got {type(value).__name__}."
            )
    given: dict[str, dict[str, str]] = {
        "model": {name: own.reference_to(f, f"models[{name!r}]") for name, f in models.items()},
        "method": {name: own.reference_to(f, f"methods[{name!r}]") for name, f in methods.items()},
        "dataset": {},
    }
    name, folder, text = "study", Path(), ""
    if isinstance(study, Mapping):
        tables = _named(study, given)
    elif isinstance(study, str | Path):
        tables, text = load_tables(study)
        name, folder = Path(study).stem, Path(study).parent
    else:
        raise TstarError(
            f"study must be a study, a TOML file or its tables, got {type(study).__name__}."
        )
    place = shared.folder_of(store)
    arrays = place.with_name(f"{place.name}.given")
    try:
        for key, value in data.items():
            given["dataset"][key] = _dataset(key, value, arrays)
        yield make_study(tables, name, folder, given=given, text=text)
    finally:
        shutil.rmtree(arrays, ignore_errors=True)


def _dataset(name: str, value: Any, folder: Path) -> str:
    if callable(value):
        return own.reference_to(value, f"data[{name!r}]")
    from tstar.data.yours import from_arrays

    path = shared.place(folder, name, None)
    shared.save(from_arrays(name, value), path)
    return str(path)


def _named(study: Mapping[str, Any], given: dict[str, dict[str, str]]) -> dict[str, Any]:
    """The tables with functions replaced by their names, arrays and ranges by lists."""

    def name_of(field: str, value: Any) -> Any:
        if field not in OWN or not callable(value):
            return value
        reference = own.reference_to(value, field)
        file, _, function = reference.rpartition(":")
        name = f"{Path(file).name}:{function}" if file.endswith(".py") else reference
        given.setdefault(field, {})[name] = reference
        return name

    def table(content: Any) -> Any:
        if not isinstance(content, Mapping):
            return content
        return {
            field: [name_of(field, v) for v in value]
            if isinstance(value, list)
            else name_of(field, value)
            for field, value in ((field, _plain(value)) for field, value in content.items())
        }

    changed = dict(study)
    changed["training"] = table(study.get("training", {}))
    grid = study.get("grid", [])
    changed["grid"] = [table(one) for one in grid] if isinstance(grid, list) else table(grid)
    return changed


def _plain(value: Any) -> Any:
    """A value as TOML would have it: NumPy's and torch's numbers are Python's, what has several is a list."""
    if isinstance(value, list | tuple | range):
        return [_plain(one) for one in value]
    return value.tolist() if hasattr(value, "tolist") else value
