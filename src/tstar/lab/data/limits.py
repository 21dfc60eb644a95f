"""Sizes are looked at before anything is read, and one guard translates what a parser raises."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from tstar.errors import TstarError
from tstar.samples import number_from

T = TypeVar("T")
VARIABLE = "TSTAR_MAX_MB"
OTHERS = 20_000  # files and folders, besides images, that a folder of images may hold
_MEGABYTES = 256
_RATIO = 64  # by which an ordinary compressed file may grow; bombs grow by a thousand


def most_bytes() -> int:
    """What a small file may unpack to: 256 MB, or ``$TSTAR_MAX_MB``."""
    return number_from(VARIABLE, _MEGABYTES) << 20


def check_unpacked(what: object, needed: int, packed: int) -> None:
    """Raise if ``packed`` bytes would grow so much that they look like a trap."""
    allowed = max(most_bytes(), _RATIO * packed)
    if needed > allowed:
        raise TstarError(
            f"{what} would grow from {packed:,} to {needed:,} bytes, but at most {allowed:,} are "
            f"allowed; if it is meant to be so large, set {VARIABLE}={-(-needed >> 20)}."
        )


def files_below(folders: Iterable[Path], endings: Container[str]) -> list[list[Path]]:
    """The files below each folder that end so, in order; hidden ones are left out.

    Breadth first, all folders side by side: a tree that holds much else is given up early.
    """
    found: dict[Path, list[Path]] = {folder: [] for folder in folders}
    waiting, others = deque((folder, folder) for folder in found), 0
    while waiting:
        top, folder = waiting.popleft()
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append((top, Path(entry.path)))
                elif os.path.splitext(entry.name)[1].lower() in endings:
                    found[top] += [Path(entry.path)] if entry.name[0] != "." else []
                    continue
                others += 1
                if others > OTHERS:
                    raise TstarError(
                        f"{top.parent} must be a folder of images, but holds more than {OTHERS:,} "
                        "other files and folders; give the folder whose folders are the classes."
                    )
    return [sorted(files) for files in found.values()]


@contextmanager
def parsing(path: os.PathLike[str] | str, must: str) -> Iterator[None]:
    """Whatever a library's parser raises becomes one error with the file's name."""
    try:
        yield
    except TstarError:
        raise
    except Exception as error:  # a damaged file can make a parser raise anything
        reason = str(error).strip() or type(error).__name__
        raise TstarError(
            f"{os.fspath(path)} must be {must}, but reading it failed: {reason}"
        ) from error


def fetched(make: Callable[[], T], name: str, advice: str) -> T:
    """What ``make`` returns; if it cannot reach its files, one line says so."""
    try:
        return make()
    except TstarError:
        raise
    except (OSError, RuntimeError, ValueError, LookupError) as error:
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise TstarError(f"{name} could not be made: {reason[0]} {advice}") from error
