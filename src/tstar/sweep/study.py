"""A study: one TOML file that describes a grid of runs.

::

    name = "smoke"                    # [study] fields: name, about, csg
    [training]                        # one value each: any field of a run or of the protocol
    epochs = 10
    [[grid]]                          # one or several; each field a value or a list; all combinations
    dataset = ["digits"]
    model = ["resnet10"]
    num_features = [16, 64]
    norm = ["batch", "none"]
    temperature = [1, 2, 4, 8]
    seed = [0, 1, 2]
    [[grid]]
    dataset = "digits"
    model = "resnet10"
    method = ["insert-ln", "ours-cn"]
    [options.kd]                      # options of a method
    temperature = 4

Data sets are names or paths below the data root, so that a study runs on any machine.
"""

from __future__ import annotations

import itertools
import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from tstar.errors import TstarError, unknown
from tstar.sweep.spec import CONFIG_FIELDS, Spec, outside_root
from tstar.training.config import Config

_SPEC_FIELDS = tuple(
    item.name
    for item in fields(Spec)
    if item.name not in ("config", "options", "role", "data_checksum")
)
_FIELDS = (*_SPEC_FIELDS, *CONFIG_FIELDS)
_TOP = ("name", "about", "csg", "training", "grid", "options")
_KINDS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(
        ("dataset", "model", "method", "norm", "scenario", "weights", "backbone"), (str,)
    ),
    **dict.fromkeys(
        (
            *("seed", "size", "num_features", "teacher_features", "trunk_features", "depth"),
            *("classes", "train_samples", "data_seed"),
        ),
        (int,),
    ),
    **dict.fromkeys(("temperature", "label_noise"), (int, float)),
}
_NEED = {str: "a string", int: "a whole number", float: "a number"}


@dataclass(frozen=True)
class Study:
    """A study as read: its name, what it asks, whether csg is computed, and its runs."""

    name: str
    specs: tuple[Spec, ...]
    about: str = ""
    csg: bool = True

    def __len__(self) -> int:
        return len(self.specs)


def load_study(path: str | Path) -> Study:
    """Read a study from a TOML file, or say which field on which line is wrong."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TstarError(f"The study {str(path)!r} could not be read: {error}.") from error
    return parse_study(text, name=path.stem)


def parse_study(text: str, name: str = "study") -> Study:
    """A study from TOML text; ``name`` is used where the text gives none."""
    tables = _parse(text, name)
    where = _Where(name, text)
    for field in tables:
        if field not in _TOP:
            raise where.error("", field, str(unknown("field of a study", field, _TOP)))
    for field, kind in (("name", str), ("about", str), ("csg", bool)):
        if field in tables and not isinstance(tables[field], kind):
            need = "true or false" if kind is bool else "a string"
            raise where.error("", field, f"{field} must be {need}, got {tables[field]!r}.")
    base = tables.get("training", {})
    grids = tables.get("grid", [])
    if isinstance(grids, dict):
        grids = [grids]
    if not isinstance(base, dict) or not isinstance(grids, list):
        raise TstarError(f"{name}: [training] and [[grid]] must be tables.")
    options = _options(tables.get("options", {}), where)
    _check_fields(base, "training", 0, where, lists=False)
    seen: dict[str, Spec] = {}
    for index, grid in enumerate(grids):
        if not isinstance(grid, dict):
            raise TstarError(f"{name}: [[grid]] must be a table, got {grid!r}.")
        _check_fields(grid, "grid", index, where, lists=True)
        for spec in _expand(base, grid, options, index, where):
            seen.setdefault(spec.key, spec)
    if not seen:
        raise TstarError(
            f"{name}: the grid must have at least one run, but it is empty; add a [[grid]] table "
            "with dataset, model, and temperature or method."
        )
    return Study(
        tables.get("name", name),
        tuple(seen.values()),
        tables.get("about", ""),
        tables.get("csg", True),
    )


def _parse(text: str, name: str) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        tables: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TstarError(f"{name}: a study must be a TOML file, but {error}.") from error
    return tables


def _check_fields(
    table: Mapping[str, Any], header: str, index: int, where: _Where, *, lists: bool
) -> None:
    for field, value in table.items():
        if field == "seeds" and lists:
            if type(value) is not int or value < 1:
                raise where.error(
                    header,
                    field,
                    f"seeds must be a whole number of at least 1, got {value!r}.",
                    index,
                )
            continue
        if field not in _FIELDS:
            error = unknown("field", field, (*_FIELDS, "seeds") if lists else _FIELDS)
            raise where.error(header, field, str(error), index)
        if isinstance(value, list) and not lists:
            raise where.error(
                header,
                field,
                f"{field} must be one value in [training], got a list; put it into [[grid]].",
                index,
            )
        values = value if isinstance(value, list) else [value]
        if not values:
            raise where.error(header, field, f"{field} must not be an empty list.", index)
        for one in values:
            problem = _problem(field, one)
            if problem:
                raise where.error(header, field, problem, index)


def _problem(field: str, value: object) -> str | None:
    """What is wrong with one value of a field, if anything."""
    if field in CONFIG_FIELDS:
        try:
            Config(**{field: value})  # type: ignore[arg-type]
        except TstarError as error:
            return str(error)
        return None
    kinds = _KINDS[field]
    if isinstance(value, bool) or not isinstance(value, kinds):
        return f"{field} must be {_NEED[kinds[-1]]}, got {value!r}."
    if (
        isinstance(value, int)
        and field in ("size", "num_features", "teacher_features")
        and value < 1
    ):
        return f"{field} must be at least 1, got {value!r}."
    if field in ("dataset", "weights") and isinstance(value, str):
        return outside_root(field, value)
    return None


def _options(tables: object, where: _Where) -> dict[str, str]:
    """Each method's options as canonical JSON, so that a spec can be hashed and compared."""
    if not isinstance(tables, dict) or not all(isinstance(t, dict) for t in tables.values()):
        raise where.error("", "options", "options must be tables, as in [options.kd].")
    return {method: json.dumps(table, sort_keys=True) for method, table in tables.items()}


def _expand(
    base: Mapping[str, Any],
    grid: Mapping[str, Any],
    options: Mapping[str, str],
    index: int,
    where: _Where,
) -> Iterator[Spec]:
    """All combinations of one [[grid]], over the values of [training]."""
    axes = dict(base)
    axes.update(grid)
    if "seeds" in axes:
        if "seed" in grid:
            raise where.error("grid", "seeds", "give seed or seeds, not both.", index)
        axes["seed"] = list(range(axes.pop("seeds")))
    for field in ("dataset", "model"):
        if field not in axes:
            raise where.error("grid", None, f"{field} must be given.", index)
    if "temperature" not in axes and "method" not in axes:
        raise where.error("grid", None, "temperature or method must be given.", index)
    if "temperature" in axes:
        axes.setdefault("norm", "batch")
    lists = [v if isinstance(v, list) else [v] for v in axes.values()]
    for values in itertools.product(*lists):
        point = dict(zip(axes, values, strict=True))
        if point.get("temperature") is not None:
            point["temperature"] = float(point["temperature"])
        point["options"] = options.get(point.get("method", "fixed"), "{}")
        try:
            yield Spec.from_dict(point)
        except TstarError as error:
            # The field that the message speaks of first.
            places = {str(error).find(f): f for f in grid if f in str(error)}
            named = places[min(places)] if places else None
            raise where.error("grid", named, str(error), index) from error


class _Where:
    """Finds the line of a field, which TOML readers do not tell, for the error message."""

    def __init__(self, name: str, text: str) -> None:
        self.name, self.lines = name, text.splitlines()

    def error(self, header: str, field: str | None, message: str, index: int = 0) -> TstarError:
        line = self.line(header, field, index)
        place = self.name + (f", line {line}" if line else "")
        return TstarError(f"{place}: {message}")

    def line(self, header: str, field: str | None, index: int) -> int | None:
        """The line of ``field`` in the ``index``-th table ``header``; of the table without a field."""
        count: dict[str, int] = {}
        current, found = "", None
        for number, line in enumerate(self.lines, 1):
            opened = re.match(r"\s*\[\[?\s*([\w.\-]+)\s*\]\]?", line)
            if opened:
                current = opened[1]
                count[current] = count.get(current, -1) + 1
                if current == header and count[current] == index:
                    found = number
                if header == "" and field == current.partition(".")[0]:
                    return number
            here = current == header and count.get(current, 0) == index
            if field and here and re.match(rf"\s*[\"']?{re.escape(field)}[\"']?\s*=", line):
                return number
        return found
