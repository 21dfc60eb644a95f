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

Data sets are names or paths below the data root, so that a study runs on any machine. Parts of your own
(:mod:`tstar.own`) are modules, or files beside the study.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import math
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from tstar import numbers, own
from tstar.errors import TstarError, unknown
from tstar.sweep.spec import CONFIG_FIELDS, KINDS, OWN, Places, Spec, check_below_root, is_absolute
from tstar.training.config import Config

SPEC_FIELDS = tuple(
    item.name
    for item in fields(Spec)
    if item.name not in ("config", "options", "role", "source", "data_checksum")
)
_FIELDS = (*SPEC_FIELDS, *CONFIG_FIELDS)
_TOP = ("name", "about", "csg", "training", "grid", "options")
_MOST_RUNS = 1_000_000
_MOST = 2**31  # of whole numbers, seeds among them


@dataclass(frozen=True)
class Study:
    """A study as read: its name, what it asks, whether csg is computed, its runs, and where its own parts are."""

    name: str
    specs: tuple[Spec, ...]
    about: str = ""
    csg: bool = True
    places: Places = dataclasses.field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.specs)

    def part(self, number: int, of: int) -> Study:
        """The runs that job ``number`` (from 1) of ``of`` does: every ``of``-th of them."""
        if not 1 <= number <= of:
            raise TstarError(f"A part must be 1/N to N/N, got {number}/{of}.")
        return dataclasses.replace(self, specs=self.specs[number - 1 :: of])

    @property
    def hash(self) -> str:
        """Of all runs that the study asks for."""
        return hashlib.sha256("".join(spec.key for spec in self.specs).encode()).hexdigest()[:12]


def load_study(path: str | Path) -> Study:
    """Read a study from a TOML file, or say which field on which line is wrong."""
    tables, text = load_tables(path)
    return make_study(tables, Path(path).stem, Path(path).parent, text=text)


def load_tables(path: str | Path) -> tuple[dict[str, Any], str]:
    """The tables of a study's file, and its text."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise TstarError(f"The study {str(path)!r} does not exist; check the path.") from None
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise TstarError(f"The study {str(path)!r} could not be read: {error}.") from error
    return _parse(text, path.stem), text


def parse_study(text: str, name: str = "study", folder: str | Path = ".") -> Study:
    """A study from TOML text; ``name`` is used where the text gives none, ``folder`` has its own parts."""
    return make_study(_parse(text, name), name, folder, text=text)


def make_study(
    tables: Mapping[str, Any],
    name: str = "study",
    folder: str | Path = ".",
    *,
    given: Places | None = None,
    text: str = "",
) -> Study:
    """A study from the tables of its TOML file; ``given`` are parts that are known by a name already."""
    where = _Where(name, text)
    for key in tables:
        if key not in _TOP:
            raise where.error("", key, str(unknown("field of a study", key, _TOP)))
    for key, kind in (("name", str), ("about", str), ("csg", bool)):
        if key in tables and not isinstance(tables[key], kind):
            need = "true or false" if kind is bool else "a string"
            raise where.error("", key, f"{key} must be {need}, got {tables[key]!r}.")
    base = tables.get("training", {})
    grids = tables.get("grid", [])
    if isinstance(grids, dict):
        grids = [grids]
    if not isinstance(base, dict) or not isinstance(grids, list):
        raise TstarError(f"{name}: [training] and [[grid]] must be tables.")
    options = _options(tables.get("options", {}), where)
    parts = Parts(Path(folder), given or {})
    _check_fields(base, "training", 0, where, parts, lists=False)
    seen: dict[str, Spec] = {}
    for index, grid in enumerate(grids):
        if not isinstance(grid, dict):
            raise TstarError(f"{name}: [[grid]] must be a table, got {grid!r}.")
        _check_fields(grid, "grid", index, where, parts, lists=True)
        for spec in _expand(base, grid, options, index, where, parts):
            seen.setdefault(spec.key, spec)
    if not seen:
        raise TstarError(
            f"{name}: the grid is empty; add a [[grid]] table with dataset, model, and temperature or method."
        )
    return Study(
        tables.get("name", name),
        tuple(seen.values()),
        tables.get("about", ""),
        tables.get("csg", True),
        parts.places,
    )


class Parts:
    """The parts of your own that a study names: where each is, and what its source is."""

    def __init__(self, folder: Path, given: Places) -> None:
        self.folder = folder
        self.places: dict[str, dict[str, str]] = {key: dict(known) for key, known in given.items()}
        self._prints: dict[str, str] = {}

    def find(self, field: str, value: object) -> str | None:
        """Where a part is; ``None`` for what tstar has itself."""
        if field not in OWN or not isinstance(value, str):
            return None
        known = self.places.get(field, {})
        if value not in known:
            place = own.resolve(value, self.folder) if own.is_reference(value) else None
            if place is None and OWN[field]:
                place = own.entry_points(OWN[field]).get(value)
            if place is None:
                return None
            self.places.setdefault(field, known)[value] = place
        return known[value]

    def imported(self, field: str, value: object) -> bool:
        """Whether it is a part of your own; it is imported, so that a broken one is told at its line."""
        if own.is_reference(value) and is_absolute(str(value)):
            raise TstarError(f"{field} must be a module or a file beside the study, got {value!r}.")
        place = self.find(field, value)
        if place is not None and own.is_reference(place) and place not in self._prints:
            self._prints[place] = own.fingerprint(place)
        return place is not None

    def source(self, point: Mapping[str, Any]) -> str | None:
        """The fingerprint of all parts of one run. Data are known by the checksum of their arrays."""
        prints = []
        for field in OWN:
            place = self.find(field, point.get(field))
            if place is not None and field != "dataset":
                self.imported(field, point[field])
                prints.append(f"{field} {self._prints[place]}")
        return combined(prints) if prints else None


def combined(prints: list[str]) -> str:
    return hashlib.sha256("\n".join(prints).encode()).hexdigest()[:16]


def _parse(text: str, name: str) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        tables: dict[str, Any] = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise TstarError(f"{name}: a study must be a TOML file, but {error}.") from error
    return tables


def _check_fields(
    table: Mapping[str, Any],
    header: str,
    index: int,
    where: _Where,
    parts: Parts,
    *,
    lists: bool,
) -> None:
    for field, value in table.items():
        if field == "seeds" and lists:
            try:
                numbers.whole("seeds", value, least=1, most=_MOST_RUNS)
            except TstarError as error:
                raise where.error(header, field, str(error), index) from error
            continue
        if field not in _FIELDS:
            strange = unknown("field", field, (*_FIELDS, "seeds") if lists else _FIELDS)
            raise where.error(header, field, str(strange), index)
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
            try:
                if not parts.imported(field, one):
                    _check(field, one)
            except TstarError as error:
                raise where.error(header, field, str(error), index) from error


def _check(field: str, value: object) -> None:
    """Raise what is wrong with one value of a field, if anything."""
    if field in CONFIG_FIELDS:
        Config(**{field: value})  # type: ignore[arg-type]
    elif KINDS[field] == "int":
        least = 0 if field in ("seed", "data_seed") else 1
        numbers.whole(field, value, least=least, most=_MOST - 1)
    elif KINDS[field] == "float":
        numbers.number(field, value)
    elif not isinstance(value, str):
        raise TstarError(f"{field} must be a string, got {value!r}.")
    elif field in ("dataset", "weights"):
        check_below_root(field, value)


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
    parts: Parts,
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
    if (runs := math.prod(map(len, lists))) > _MOST_RUNS:
        raise where.error("grid", None, f"{runs:,} runs are more than {_MOST_RUNS:,}.", index)
    for values in itertools.product(*lists):
        point = dict(zip(axes, values, strict=True))
        if point.get("temperature") is not None:
            point["temperature"] = numbers.number("temperature", point["temperature"])
        point["options"] = options.get(point.get("method", "fixed"), "{}")
        try:
            yield Spec.from_dict({**point, "source": parts.source(point)})
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
