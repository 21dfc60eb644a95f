"""Parts of your own: functions and classes by name, as ``package.module:name`` or ``./file.py:name``.

A part is imported where it is used, in worker processes as well. Its fingerprint is a hash of its source
and of all that it names in its own file and imports from its folder or package: a changed part is another one.
Files of one folder see their neighbors, never those of another part's folder that have the same names.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import inspect
import re
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec, resolve_name
from pathlib import Path
from types import ModuleType
from typing import Any

from tstar.errors import TstarError, unknown

_PREFIX = "_own_"  # of the names under which files are imported
_REFERENCE = re.compile(r"(.+\.py|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):([A-Za-z_]\w*)")
_importing: list[str] = []
# Of each folder of parts: the modules that were imported from it, with the hash of their source.
_neighbors: dict[Path, dict[str, tuple[ModuleType, str]]] = {}


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
        with _beside(reference):
            yield
    except TstarError:
        raise
    except Exception as error:
        raise failed(reference, "failed", error) from error


def failed(reference: str, how: str, error: BaseException) -> TstarError:
    """One error that names the part and the line: the last one in the part's own file, if it is on the way."""
    frames = traceback.extract_tb(error.__traceback__)
    mine = [frame for frame in frames if frame.filename == _file_of(reference)] or frames
    where = f" ({Path(mine[-1].filename).name}, line {mine[-1].lineno})" if mine else ""
    return TstarError(f"{reference} {how}: {type(error).__name__}: {error}{where}.")


def raised_in(reference: str, error: BaseException) -> bool:
    """Whether the part's file is among the lines that an error came through."""
    file = _file_of(reference)
    return any(frame.filename == file for frame in traceback.extract_tb(error.__traceback__))


def _file_of(reference: str) -> str | None:
    place = reference.rpartition(":")[0]
    return place if place.endswith(".py") else getattr(sys.modules.get(place), "__file__", None)


def fingerprint(reference: str) -> str:
    """A hash of a part's source, of what it names in its file, and of the files of its folder or package it imports.

    They are followed from file to file; in installed packages only one step far.
    """
    part = load(reference)
    with _beside(reference):
        try:
            file = Path(inspect.getsourcefile(part) or "").resolve()
            name = part.__qualname__.partition(".")[0]
            statements = _reached(_parsed(file), name)
            package = getattr(sys.modules.get(part.__module__), "__package__", None) or ""
            installed = [Path(sysconfig.get_path(p)).resolve() for p in ("stdlib", "purelib")]
            deep = not any(place in file.parents for place in installed)
            levels = package.count(".") if deep else 0
            files = _followed(statements, file.parents[levels], package, deep)
            sources = [*statements, *map(_parsed, files)]
        except (TypeError, OSError, SyntaxError, ValueError, AttributeError) as error:
            raise TstarError(
                f"The source of {reference} must be readable, so that a changed part is noticed, but: {error}."
            ) from error
    # Unparsed: without comments, and alike in every version of Python.
    text = "\n".join(map(ast.unparse, sources))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


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
            used = _named(statement)
            todo += used - seen
            seen |= used
    return [statement for statement in tree.body if statement in kept]


def _bound(statement: ast.stmt) -> set[str]:
    """The names that a top-level statement gives a value to, or whose value it may change."""
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
        elif isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store):
            names |= _named(node.value)  # Net.width = 3, CONFIG["width"] = 3
        elif isinstance(node, ast.Expr):
            names |= _named(node)  # CONFIG.update(width=3), register(net)
    return names


def _named(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _followed(statements: Iterable[ast.stmt], folder: Path, package: str, deep: bool) -> list[Path]:
    """The files below the folder that the statements import, and (``deep``) those that these import."""
    found: list[Path] = []
    todo = [(statement, package) for statement in statements]
    for statement, package in todo:  # grows as it goes
        for name, path in _imported(statement, folder, package):
            if path in found or folder not in path.parents:
                continue
            found.append(path)
            inner = name if path.name == "__init__.py" else name.rpartition(".")[0]
            todo += [(other, inner) for other in _parsed(path).body] if deep else []
    return found


def _imported(statement: ast.stmt, folder: Path, package: str) -> Iterator[tuple[str, Path]]:
    """The modules that a statement of a file of ``package`` imports, with their files."""
    for node in ast.walk(statement):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and (package or not node.level):
            base = "." * node.level + (node.module or "")
            whole = resolve_name(base, package) if node.level else base
            names = [whole, *(f"{whole}.{alias.name}" for alias in node.names)]
        for name in names:
            loaded = getattr(sys.modules.get(name), "__file__", None)
            beside = folder.joinpath(*name.split("."))
            for path in (loaded, beside.with_suffix(".py"), beside / "__init__.py"):
                if path and Path(path).suffix == ".py" and Path(path).is_file():
                    yield name, Path(path).resolve()
                    break


@contextmanager
def _beside(reference: str) -> Iterator[None]:
    """Inside, imports find the files beside the part, as for a script, and not those of other parts' folders."""
    place = reference.rpartition(":")[0]
    if not place.endswith(".py"):
        yield
        return
    folder = Path(place).parent
    first = folder not in _neighbors
    mine = _neighbors.setdefault(folder, {})
    others = {n for other, theirs in _neighbors.items() if other != folder for n in theirs}
    hidden = {name: sys.modules.pop(name) for name in others if name in sys.modules}
    sys.modules.update({name: module for name, (module, _) in mine.items()})
    sys.path.insert(0, str(folder))
    count = len(sys.modules)
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        if first or len(sys.modules) != count:
            for name, module in list(sys.modules.items()):
                if name not in mine and (file := _found_in(folder, name, module)) is not None:
                    mine[name] = module, _hash(file)
        sys.modules.update(hidden)


def _found_in(folder: Path, name: str, module: ModuleType) -> Path | None:
    """The module's file (of a package without one, its folder), where it was imported from this folder."""
    if name.partition(".")[0] in ("tstar", "__main__", "__mp_main__"):
        return None
    known = getattr(module, "__dict__", {})
    path = known.get("__file__") or next(iter(known.get("__path__") or ()), None)
    base = folder.joinpath(*name.split("."))
    fitting = (f"{base}.py", str(base / "__init__.py"), str(base))
    return Path(path) if path in fitting else None


def _hash(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else ""


def _forget_changed(folder: Path) -> None:
    """Where a file of the folder has changed, all of its modules are imported anew: any may have imported it."""
    mine = _neighbors.get(folder, {})
    if any(_hash(Path(getattr(m, "__file__", None) or "")) != old for m, old in mine.values()):
        for name in _neighbors.pop(folder):
            sys.modules.pop(name, None)
        for name, module in list(sys.modules.items()):
            if name.startswith(_PREFIX) and Path(str(module.__file__)).parent == folder:
                del sys.modules[name]


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
    _forget_changed(path.parent)
    # Named by its content: a file that has changed is imported anew.
    name = f"{_PREFIX}{path.stem}_{hashlib.sha256(str(path).encode() + content).hexdigest()[:12]}"
    if name in sys.modules:
        return sys.modules[name]
    module = ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module
    importlib.invalidate_caches()  # a neighbor may be new
    try:
        with _beside(f"{path}:"):
            # Compiled here: Python's own cache would take a file changed within a second for the old one.
            exec(compile(content, str(path), "exec"), module.__dict__)
    except BaseException:
        del sys.modules[name]
        raise
    return module
