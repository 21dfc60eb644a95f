"""Parts of your own: a function or class named as ``package.module:name`` or ``./file.py:name``.

A part is known by a hash of its file and of the files of yours that it imports: a changed file
gives other runs.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import re
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from tstar.errors import TstarError, unknown

_REFERENCE = re.compile(r"(.+\.py|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):([A-Za-z_]\w*)")


def is_reference(text: object) -> bool:
    """Whether a name is written as ``module:name`` or ``file.py:name``."""
    return isinstance(text, str) and _REFERENCE.fullmatch(text) is not None


def resolve(reference: str, folder: Path) -> str:
    """The reference with its file's full path. A module in ``folder`` is that file."""
    place, _, name = reference.rpartition(":")
    beside = folder / (place if place.endswith(".py") else place.replace(".", "/") + ".py")
    if not place.endswith(".py") and not beside.is_file():
        return reference
    if ".." in Path(place).parts:
        raise TstarError(f"A part must be beside the study or below, got {reference!r}.")
    return f"{beside.expanduser().resolve()}:{name}"


def reference_to(part: object, what: str) -> str:
    """The reference of a function or class that a script has."""
    name, module = getattr(part, "__qualname__", ""), str(getattr(part, "__module__", ""))
    file = getattr(sys.modules.get(module), "__file__", None)
    script = module in ("__main__", "__mp_main__")
    known = inspect.isfunction(part) or inspect.isclass(part)
    known = known and getattr(sys.modules.get(module), name, None) is part  # and not what it wraps
    if not known or not name.isidentifier() or (script and file is None):
        raise TstarError(
            f"{what} must be a function or class at the top level of a file, got "
            f"{name or type(part).__name__}."
        )
    return f"{Path(str(file)).resolve()}:{name}" if script else f"{module}:{name}"


def load(reference: str) -> Callable[..., Any]:
    """Import a part, or say what went wrong in one error that names it."""
    place, _, name = reference.rpartition(":")
    try:
        module = _file_module(Path(place)) if place.endswith(".py") else import_module(place)
    except (Exception, SystemExit) as error:
        raise failed(reference, "could not be imported", error) from error
    known: dict[str, Callable[..., Any]]
    known = {n: value for n, value in vars(module).items() if callable(value)}
    if name not in known:
        raise unknown(f"function or class in {place}", name, known)
    return known[name]


def call(
    reference: str, function: Callable[..., Any], *args: Any, returns: type = object, **offered: Any
) -> Any:
    """Call a part with those of the ``offered`` keywords that it takes; its errors name it."""
    with explained(reference):
        value = function(*args, **{k: v for k, v in offered.items() if takes(function, k)})
    if not isinstance(value, returns):
        wanted, got = f"{returns.__module__}.{returns.__name__}", type(value).__name__
        raise TstarError(f"{reference} must return an instance of {wanted}, got {got}.")
    return value


def bound(reference: str, returns: type = object) -> Callable[..., Any]:
    """A part, imported once; whatever it raises names it."""
    return partial(call, reference, load(reference), returns=returns)


@contextmanager
def explained(reference: str) -> Iterator[None]:
    """Whatever a part raises inside becomes one error that names the part and the line."""
    try:
        yield
    except TstarError:
        raise
    except Exception as error:
        raise failed(reference, "failed", error) from error


def takes(function: Callable[..., Any], name: str) -> bool:
    """Whether a function can be given this keyword."""
    parameters = inspect.signature(function).parameters
    return name in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def failed(reference: str, how: str, error: BaseException) -> TstarError:
    """One error that names the part, the error and the line."""
    if isinstance(error, TstarError):
        return error
    frames = traceback.extract_tb(error.__traceback__)
    mine = [f for f in frames if f.filename == reference.rpartition(":")[0]] or frames
    where = f" ({Path(mine[-1].filename).name}, line {mine[-1].lineno})" if mine else ""
    return TstarError(f"{reference} {how}: {type(error).__name__}: {error}{where}.")


def fingerprint(reference: str) -> str:
    """The hash of the file that a part is in, and of the files beside and below that it imports.

    They are found by reading, not by running. Of an installed package, the part's file counts.
    """
    place = reference.rpartition(":")[0]
    if place.endswith(".py"):
        file = Path(place)
        root = file.parent
    else:
        module = import_module(place)
        file = Path(str(inspect.getsourcefile(module)))
        root = file.parents[place.count(".") + hasattr(module, "__path__")]
    files = [file]
    if str(root) not in sysconfig.get_paths().values():
        with explained(reference):
            for each in files:  # which grows
                files += sorted({*_imported(each, root)} - {*files})
    content = [path.read_bytes() for path in (file, *sorted(files[1:]))]
    return hashlib.sha256(b"\0".join(content)).hexdigest()[:16]


def _imported(file: Path, root: Path) -> Iterator[Path]:
    """The files below ``root`` that a file imports anywhere, and the packages that they are in."""
    for node in ast.walk(ast.parse(file.read_bytes())):
        names, base = [], root
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module or ''}.{alias.name}".strip(".") for alias in node.names]
            base = file.parents[node.level - 1] if node.level else root
        for name in names:
            words = name.split(".")
            for n in range(len(words)):
                place = base.joinpath(*words[: n + 1])
                found = (place.with_suffix(".py"), place / "__init__.py")
                yield from (each for each in found if each.is_file())


def _file_module(path: Path) -> ModuleType:
    main = sys.modules["__main__"]
    if (file := getattr(main, "__file__", None)) and Path(file).resolve() == path:
        return main
    content = path.read_bytes()
    # Named by its content: a file that has changed is imported anew.
    name = f"_own_{path.stem}_{hashlib.sha256(str(path).encode() + content).hexdigest()[:12]}"
    if name in sys.modules:
        return sys.modules[name]
    module = sys.modules[name] = ModuleType(name)
    module.__file__ = str(path)
    sys.path.insert(0, str(path.parent))
    try:
        # Compiled here: Python's own cache would miss a change within a second.
        exec(compile(content, str(path), "exec"), module.__dict__)
    except BaseException:
        del sys.modules[name]
        raise
    finally:
        sys.path.remove(str(path.parent))
    return module
