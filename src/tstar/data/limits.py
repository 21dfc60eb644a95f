"""Sizes are looked at before anything is read, and one guard translates what a parser raises."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from tstar.errors import TstarError, require

T = TypeVar("T")
VARIABLE = "TSTAR_MAX_MB"
MEMORY = "TSTARMEMORY_MB"
_MEGABYTES = 256
# What a file holds counts, not how it is called: PostScript, which is a program, is never run.
_FORMATS = ("PNG", "JPEG", "BMP", "PPM", "WEBP", "TIFF", "GIF")
_RATIO = 64  # by which an ordinary compressed file may grow; bombs grow by a thousand


def most_bytes() -> int:
    """What a small file may unpack to: 256 MB, or ``$TSTAR_MAX_MB``."""
    return number_from(VARIABLE, _MEGABYTES) << 20


def most_held() -> int:
    """How many bytes of data may be kept in memory: half of this machine's, or ``$TSTARMEMORY_MB``."""
    try:
        half = (os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2) >> 20
    except (AttributeError, ValueError, OSError):  # not on Windows
        half = 4096
    return number_from(MEMORY, half) << 20


def number_from(variable: str, default: int) -> int:
    """A whole number that the environment may set."""
    given = os.environ.get(variable, "")
    if given and not given.isdecimal():
        raise TstarError(f"{variable} must be a whole number, got {given!r}.")
    return int(given[:15]) if given else default


def check_unpacked(path: Path, needed: int, packed: int) -> None:
    """Raise if ``packed`` bytes claim to hold so much more that they look like a trap."""
    allowed = max(most_bytes(), _RATIO * packed)
    if needed > allowed:
        raise TstarError(
            f"{path} would unpack from {packed:,} to {needed:,} bytes, more than the {allowed:,} that are "
            f"allowed; if it is meant to be so large, set {VARIABLE}={-(-needed >> 20)}."
        )


def check_resized(pixels: int, size: int, old: int) -> None:
    """Raise if ``pixels`` of images of ``old`` pixels each would take far more memory at size×size."""
    needed, allowed = pixels // old * size**2, max(most_bytes(), _RATIO * pixels)
    if needed > allowed:
        raise TstarError(
            f"size must leave the images at most {allowed:,} bytes, got size={size}, which takes {needed:,}; choose a "
            f"smaller one, or set {VARIABLE}={-(-needed >> 20)}."
        )


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
    """What ``make`` returns; where it cannot reach its files, one line says so."""
    try:
        return make()
    except TstarError:
        raise
    except (OSError, RuntimeError, ValueError, LookupError) as error:
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise TstarError(f"{name} could not be made: {reason[0]} {advice}") from error


def open_image(path: Path) -> Any:
    """A decoded PIL image, from a regular file of reasonable size."""
    pil = require("PIL.Image", "vision")
    if not path.is_file():  # a pipe would block
        raise TstarError(f"{path} must be a readable image, but is not a regular file.")
    with parsing(path, "a readable image"), pil.open(path, formats=_FORMATS) as image:
        pixels = image.width * image.height
        check_unpacked(path, 4 * pixels, 0)
        image.load()
        return image.copy()
