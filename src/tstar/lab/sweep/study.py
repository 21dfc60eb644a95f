"""A study: one TOML file that describes a grid of runs; docs/study.md lists what it may hold.

Data sets are names or paths below the data root. Parts of your own (:mod:`tstar.lab.own`) are
modules, or files beside the study. A script may give functions, and data that it has in memory.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tstar.errors import LARGEST_FILE, TstarError, guarded, shown, unknown, whole
from tstar.lab import own
from tstar.lab.sweep.spec import FIELDS, OWN, STUDY, Places, Spec, check_below_root, is_absolute
from tstar.lab.training.config import check_kind

if TYPE_CHECKING:
    from tstar.lab.data import DataSet

# What a study may hold, and of which kind.
_TOP: dict[str, tuple[Any, str]] = {
    **dict.fromkeys(("name", "about"), (str, "a string")),
    "csg": (bool, "true or false"),
    **dict.fromkeys(("training", "options"), (dict, "a table")),
    "grid": ((dict, list), "tables: [[grid]]"),
}
_MOST_RUNS = 1_000_000


@dataclass(frozen=True)
class Study:
    """A study as read: its name and runs, whether csg is computed, where its own parts are.

    ``data`` are the sets that a script gave, by name.
    """

    name: str
    specs: tuple[Spec, ...]
    about: str = ""
    csg: bool = True
    places: Places = dataclasses.field(default_factory=dict)
    data: Mapping[str, DataSet] = dataclasses.field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.specs)

    def part(self, number: int, of: int) -> Study:
        """The runs that job ``number`` (from 1) of ``of`` does: every ``of``-th of them."""
        if not 1 <= number <= of:
            raise TstarError(f"A part must be 1/N to N/N, got {number}/{of}.")
        return dataclasses.replace(self, specs=self.specs[number - 1 :: of])

    @property
    def hash(self) -> str:
        """A hash of all runs that the study asks for."""
        return hashlib.sha256("".join(spec.key for spec in self.specs).encode()).hexdigest()[:12]


@guarded("load_study() failed")
def load_study(path: str | Path, changes: Sequence[str] = ()) -> Study:
    """Read a study from a TOML file; ``changes`` are as on the command line: ``["lr=0.03"]``."""
    path = Path(path)
    with guarded(f"The study {str(path)!r} could not be read; check the path"):
        if path.exists() and not (path.is_file() and path.stat().st_size <= LARGEST_FILE):
            raise TstarError(f"The study {str(path)!r} must be a regular file of at most 1 MB.")
        text = path.read_text(encoding="utf-8")
    return parse_study(text, path.stem, path.parent, changes)


@guarded("parse_study() failed")
def parse_study(
    text: str, name: str = "study", folder: str | Path = ".", changes: Sequence[str] = ()
) -> Study:
    """A study from TOML text; ``name`` is its default, ``folder`` has its own parts."""
    with guarded(f"{name}: a study must be a TOML file"):
        tables = tomllib.loads(text)
    return make_study(tables, name, folder, changes=changes)


def make_study(
    tables: Mapping[str, Any],
    name: str = "study",
    folder: str | Path = ".",
    *,
    given: Places | None = None,
    changes: Sequence[str] = (),
) -> Study:
    """A study from the tables of its TOML file; ``given`` are parts that have a name already."""
    for key, value in tables.items():
        if key not in _TOP:
            raise TstarError(f"{name}: {unknown('field of a study', key, _TOP)}")
        kind, need = _TOP[key]
        if not isinstance(value, kind):
            raise TstarError(f"{name}: {key} must be {need}, got {shown(value)}.")
    base, grids, options = (tables.get(key, {}) for key in ("training", "grid", "options"))
    grids = grids if isinstance(grids, list) else [grids] if grids else []
    if not all(isinstance(table, dict) for table in (*grids, *options.values())):
        raise TstarError(f"{name}: [[grid]] and [options.METHOD] must be tables.")
    base, grids = changed(base, [_with_seeds(grid) for grid in grids], changes)
    # As canonical JSON, so that a spec can be hashed and compared.
    written = {method: json.dumps(table, sort_keys=True) for method, table in options.items()}
    parts = Sources(Path(folder), given or {})
    with _named(f"{name}, [training]"):
        _check_fields(base, parts, lists=False)
    seen: dict[str, Spec] = {}
    for number, grid in enumerate(grids, 1):
        with _named(f"{name}, [[grid]] {number}"):
            _check_fields(grid, parts, lists=True)
            for spec in _expand({**base, **grid}, written, parts):
                seen.setdefault(spec.key, spec)
    if not seen:
        raise TstarError(
            f"{name}: the grid is empty; add a [[grid]] with dataset, model and temperature."
        )
    # Another name: the runs of the study as it is written are still asked for.
    full = " ".join((tables.get("name", name), *changes))
    if len(full) > 200:
        raise TstarError(f"A study's name must have at most 200 characters, got {len(full)}.")
    about, csg = tables.get("about", ""), tables.get("csg", True)
    return Study(full, tuple(seen.values()), about, csg, parts.places)


def script_study(tables: Mapping[str, Any]) -> Study:
    """A study from a script's tables: parts may be functions, axes arrays or ranges, data arrays.

    Data in memory are named after what they hold, so that no others are taken for them.
    """
    from tstar.lab.data.files import from_arrays  # needs torch, as a study file does not

    given: dict[str, dict[str, str]] = {}
    data: dict[str, DataSet] = {}

    def plain(field: str, value: Any) -> Any:
        if _is_axis(value):
            return [plain(field, one) for one in value]
        if field in OWN and callable(value):
            reference = own.reference_to(value, field)
            name = Path(reference).name  # not this machine's path
            given.setdefault(field, {})[name] = reference
            return name
        if field == "dataset" and not isinstance(value, str):
            loaded = from_arrays("arrays", value)
            name = f"{loaded.name}-{loaded.checksum()[:8]}"
            data[name] = loaded
            return name
        return value.tolist() if hasattr(value, "tolist") else value

    def table(content: Any) -> Any:
        if isinstance(content, Mapping):
            return {field: plain(field, value) for field, value in content.items()}
        return [table(one) for one in content] if isinstance(content, list) else content

    written = {key: table(tables[key]) for key in ("training", "grid") if key in tables}
    return dataclasses.replace(make_study({**tables, **written}, given=given), data=data)


def _is_axis(value: Any) -> bool:
    """Whether it is a list of values, and not one data set: the arrays of its parts."""
    arrays = isinstance(value, list | tuple) and any(getattr(x, "ndim", 0) for x in value)
    return isinstance(value, list | tuple | range) and not arrays


@contextmanager
def _named(table: str) -> Iterator[None]:
    """Errors inside begin with the table that they are about."""
    try:
        yield
    except TstarError as error:
        raise TstarError(f"{table}: {error}") from error


def _with_seeds(grid: Mapping[str, Any]) -> dict[str, Any]:
    """``seeds = 3`` is short for ``seed = [0, 1, 2]``."""
    table = dict(grid)
    if "seeds" in table:
        if "seed" in table:
            raise TstarError("Give seed or seeds, not both.")
        seeds = whole("seeds", table.pop("seeds"), least=1, most=_MOST_RUNS)
        table["seed"] = list(range(seeds))
    return table


def changed(
    base: Mapping[str, Any], grids: Sequence[Mapping[str, Any]], changes: Sequence[str]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The tables with keys set from the command line, ``lr=0.03`` or ``seed=0,1``.

    A key is changed in the grids that have it; else in [training] if it is there; else in all.
    ``epochs`` replace ``steps``.
    """
    training, tables = dict(base), [dict(grid) for grid in grids]
    for word in changes:
        key, equals, text = word.partition("=")
        if not equals:
            raise TstarError(f"A change must be KEY=VALUE, such as seed=0,1, got {word!r}.")
        if key not in (*STUDY, "seeds"):
            raise unknown("key of a change", key, (*STUDY, "seeds"))
        for table in (training, *tables) if key == "epochs" else ():
            table.pop("steps", None)  # they would hide the epochs
        values = [_value(one) for one in text.split(",")]
        ((key, value),) = _with_seeds({key: values if len(values) > 1 else values[0]}).items()
        having = [table for table in tables if key in table]
        in_base = not having and key in base and not isinstance(value, list)
        for table in [training] if in_base else having or tables:
            table[key] = value
    return training, tables


def _value(text: str) -> Any:
    """A value as TOML reads it; a word that TOML cannot read is text."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


class Sources:
    """The parts of your own that a study names: where each is, and the hash of its file."""

    def __init__(self, folder: Path, given: Places) -> None:
        self.folder = folder
        self.places: dict[str, dict[str, str]] = {key: dict(known) for key, known in given.items()}
        self._hashes: dict[str, str] = {}

    def find(self, field: str, value: object) -> str | None:
        """The place of a part, which is imported: a broken one is reported now. Else ``None``."""
        if field not in OWN or not isinstance(value, str):
            return None
        known = self.places.get(field, {})
        if value not in known:
            if not own.is_reference(value):
                return None
            if is_absolute(value):
                raise TstarError(
                    f"{field} must be a module or a file beside the study, got {value!r}."
                )
            self.places.setdefault(field, known)[value] = own.resolve(value, self.folder)
        place = known[value]
        if place not in self._hashes:
            own.load(place)
            self._hashes[place] = own.fingerprint(place)
        return place

    def hash(self, point: Mapping[str, Any]) -> str | None:
        """A hash of the files of all parts of one run; data have a checksum of their own."""
        found = {field: self.find(field, point.get(field)) for field in OWN if field != "dataset"}
        hashes = [f"{field} {self._hashes[place]}" for field, place in found.items() if place]
        return hashlib.sha256("\n".join(hashes).encode()).hexdigest()[:16] if hashes else None


def _check_fields(table: Mapping[str, Any], parts: Sources, *, lists: bool) -> None:
    for field, value in table.items():
        if field not in STUDY:
            raise unknown("field", field, (*STUDY, "seeds") if lists else STUDY)
        if value == [] or (isinstance(value, list) and not lists):
            need = "have a value" if value == [] else "be one value in [training]"
            raise TstarError(f"{field} must {need}, got {shown(value)}; lists stand in [[grid]].")
        for one in value if isinstance(value, list) else [value]:
            if parts.find(field, one) is None:
                _check(field, one)


def _check(field: str, value: object) -> None:
    """One value of a field, so that the error names the table that it stands in."""
    item = FIELDS[field]
    check_kind(item, value)
    if (check := item.metadata["check"]) is not None:
        check(field, value)
    elif field in ("dataset", "weights"):
        check_below_root(field, str(value))


def _expand(axes: dict[str, Any], options: Mapping[str, str], parts: Sources) -> Iterator[Spec]:
    """All combinations of the values of one [[grid]] and [training]."""
    for missing in {"dataset", "model"} - {*axes}:
        raise TstarError(f"{missing} must be given.")
    if not {"temperature", "method"} & {*axes}:
        raise TstarError("temperature or method must be given.")
    if "temperature" in axes:
        axes.setdefault("norm", "none")
    lists = [v if isinstance(v, list) else [v] for v in axes.values()]
    if (runs := math.prod(map(len, lists))) > _MOST_RUNS:
        raise TstarError(f"{runs:,} runs are more than {_MOST_RUNS:,}.")
    for values in itertools.product(*lists):
        point = dict(zip(axes, values, strict=True))
        point["options"] = options.get(point.get("method", "fixed"), "{}")
        yield Spec(**point, source=parts.hash(point))
