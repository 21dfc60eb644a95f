"""Parts of your own: functions and classes by name, as ``package.module:name`` or ``./file.py:name``.

A part is imported where it is used, in worker processes as well. Its fingerprint is a hash of its source
and of all that it names in its own file and in files of its folder: a changed part is another one.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import inspect
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec, resolve_name
from pathlib import Path
from types import ModuleType
from typing import Any

from tstar.errors import TstarError, unknown

_REFERENCE = re.compile(r"(.+\.py|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):([A-Za-z_]\w*)")
_importing: list[str] = []


def is_reference(text: object) -> bool:
    """Whether a name is written as ``module:name`` or ``file.py:name``."""
    return isinstance(text, str) and _REFERENCE.fullmatch(text) is not None


def resolve(reference: str, folder: Path) -> str:
    """The reference with its file's full path. A module that lies in ``folder`` is meant as that file."""
    place, name = _split(reference)
    beside = folder / (place if place.endswith(".py") else place.replace(".", "/") + ".py")
    if place.endswith(".py") or beside.is_file():
        return f"{beside.expanduser().resolve()}:{name}"
    return reference


@cache
def entry_points(group: str) -> dict[str, str]:
    """The parts that installed packages offer under ``tstar.models``, ``tstar.data`` or ``tstar.methods``."""
    from importlib.metadata import entry_points

    return {point.name: point.value for point in entry_points(group=group)}


def named(name: str, group: str) -> str | None:
    """The reference that a name stands for, if it does: itself, or what an installed package offers under it."""
    return name if is_reference(name) else entry_points(group).get(name)


def reference_to(part: object, what: str) -> str:
    """The reference of a function or class that a script has."""
    name = getattr(part, "__qualname__", "")
    if not (inspect.isfunction(part) or inspect.isclass(part)) or not name.isidentifier():
        raise TstarError(
            f"{what} must be a function or class at the top level of a file, so that worker processes "
            f"can import it; got {part!r}."
        )
    file = getattr(sys.modules.get(part.__module__), "__file__", None)
    if part.__module__ not in ("__main__", "__mp_main__"):
        return f"{part.__module__}:{name}"
    if file is None:
        raise TstarError(
            f"{what} is defined in an interactive session, which worker processes cannot import; "
            f"put {name!r} into a file and import it from there."
        )
    return f"{Path(file).resolve()}:{name}"


def load(reference: str) -> Callable[..., Any]:
    """Import a part, or say what went wrong in one error that names it."""
    place, name = _split(reference)
    _importing.append(reference)
    try:
        module = _file_module(Path(place)) if place.endswith(".py") else _module(place)
    except TstarError:
        raise
    except (Exception, SystemExit) as error:
        raise failed(reference, "could not be imported", error) from error
    finally:
        _importing.pop()
    part = getattr(module, name, None)
    if part is None:
        raise unknown(f"name in {place}", name, [n for n in vars(module) if n[:1] != "_"])
    if not callable(part):
        raise TstarError(f"{reference} must be a function or a class, got {type(part).__name__}.")
    result: Callable[..., Any] = part
    return result


def importing() -> str | None:
    """The part that is being imported now, if any."""
    return _importing[-1] if _importing else None


def call(reference: str, function: Callable[..., Any], *args: Any, **offered: Any) -> Any:
    """Call a part with those of the ``offered`` keywords that it takes; its errors name it."""
    with explained(reference):
        return function(*args, **{k: v for k, v in offered.items() if takes(function, k)})


def takes(function: Callable[..., Any], name: str) -> bool:
    """Whether a function can be given this keyword."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # some that are written in C do not tell
        return False
    return name in parameters or any(
        p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values()
    )


@contextmanager
def explained(reference: str) -> Iterator[None]:
    """Whatever a part raises inside becomes one error that names the part and the line."""
    try:
        yield
    except TstarError:
        raise
    except Exception as error:
        raise failed(reference, "failed", error) from error


def failed(reference: str, how: str, error: BaseException) -> TstarError:
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return TstarError(f"{reference} {how}: {type(error).__name__}: {error}{where}.")


def fingerprint(reference: str) -> str:
    """A hash of a part's source and of what it names in its file and in files of its folder."""
    part = load(reference)
    try:
        file = Path(inspect.getsourcefile(part) or "")
        name = part.__qualname__.partition(".")[0]
        tree = ast.parse(file.read_text(encoding="utf-8"))
    except (TypeError, OSError, SyntaxError, AttributeError) as error:
        raise TstarError(
            f"The source of {reference} must be readable, so that a changed part is noticed, but: {error}."
        ) from error
    digest = hashlib.sha256()
    for statement in _reached(tree, name):
        digest.update(ast.dump(statement).encode())
        for other in _imported(statement, file, part.__module__):
            digest.update(other.read_bytes())
    return digest.hexdigest()[:16]


def _reached(tree: ast.Module, name: str) -> list[ast.stmt]:
    """The top-level statements that ``name`` is made of, in the file's order."""
    binding: dict[str, list[ast.stmt]] = {}
    for statement in tree.body:
        if isinstance(statement, ast.If) and "__name__" in ast.dump(statement.test):
            continue
        for bound in _bound(statement):
            binding.setdefault(bound, []).append(statement)
    todo, seen, kept = [name], {name}, set[ast.stmt]()
    while todo:
        for statement in binding.get(todo.pop(), []):
            kept.add(statement)
            used = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
            todo += used - seen
            seen |= used
    return [statement for statement in tree.body if statement in kept]


def _bound(statement: ast.stmt) -> set[str]:
    """The names that a top-level statement gives a value to."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {statement.name}
    names = set()
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.alias):
            names.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
    return names


def _imported(statement: ast.stmt, file: Path, module: str) -> Iterator[Path]:
    """The files below the part's own folder that a statement imports."""
    for node in ast.walk(statement):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            package = module.rpartition(".")[0]
            if not node.level or package:
                whole = resolve_name(base, package) if node.level else base
                names = [whole, *(f"{whole}.{alias.name}" for alias in node.names)]
        for name in names:
            found = getattr(sys.modules.get(name), "__file__", None)
            path = Path(found) if found else file.parent / f"{name.replace('.', '/')}.py"
            if path.is_file() and file.resolve().parent in path.resolve().parents:
                yield path


def _split(reference: str) -> tuple[str, str]:
    found = _REFERENCE.fullmatch(reference)
    if found is None:
        raise TstarError(
            f"A part of your own is written as package.module:name or ./file.py:name, got {reference!r}."
        )
    return found[1], found[2]


def _module(name: str) -> ModuleType:
    if find_spec(name.partition(".")[0]) is None:
        raise TstarError(
            f"The module {name!r} was not found; install it, or name a file beside the study: ./{name}.py:…"
        )
    return importlib.import_module(name)


def _file_module(path: Path) -> ModuleType:
    main = sys.modules.get("__main__")
    if getattr(main, "__file__", None) and Path(main.__file__).resolve() == path.resolve():  # type: ignore[union-attr, arg-type]
        return main  # type: ignore[return-value]
    try:
        content = path.read_bytes()
    except OSError as error:
        raise TstarError(f"The file {str(path)!r} could not be read: {error.strerror}.") from error
    # Named by its content: a file that has changed is imported anew.
    name = f"_own_{path.stem}_{hashlib.sha256(str(path).encode() + content).hexdigest()[:12]}"
    if name in sys.modules:
        return sys.modules[name]
    module = ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module
    sys.path.insert(0, str(path.parent))  # its neighbors, as for a script
    try:
        # Compiled here: Python's own cache would take a file changed within a second for the old one.
        exec(compile(content, str(path), "exec"), module.__dict__)
    except BaseException:
        del sys.modules[name]
        raise
    finally:
        sys.path.remove(str(path.parent))
    return module
