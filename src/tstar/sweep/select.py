"""Runs chosen by an expression over the store's columns, and by the study that asks for them."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tstar.errors import TstarError, unknown
from tstar.sweep.columns import COLUMNS, MIXED, json_object

Row = Mapping[str, Any]
Asked = Iterable[tuple[object, object]]  # the columns studies and started of every run
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.eq,
    ast.IsNot: operator.ne,
    ast.In: lambda value, among: value in among,
    ast.NotIn: lambda value, among: value not in among,
}


def selector(where: str | None = None) -> Callable[[Row], bool]:
    """A test of rows. ``where`` compares columns with values, joined by and, or, not, as Python writes it.

    >>> chosen = selector('model == "vgg9" and lr in (0.1, 0.01)')
    >>> chosen({"model": "vgg9", "lr": 0.1}), chosen({"model": "vgg9", "lr": 0.5})
    (True, False)
    """
    if where is None:
        return lambda row: True
    test = _compiled(where)
    return lambda row: bool(test(row))


def asked_by(study: str | None, asked: Asked) -> Callable[[Row], bool]:
    """A test of rows: whether the study, as it was swept last, asks for them. ``None`` takes all."""
    if study is None:
        return lambda row: True
    hashes = last_started(asked)
    if study not in hashes:
        if not hashes:
            raise TstarError(
                f"No run of the store names a study that asks for it, got study={study!r}; pass where=… instead."
            )
        raise unknown("study", study, hashes)
    times = hashes[study]
    if not times:
        raise TstarError(
            f"The study {study!r} was changed, and none of the runs that it asks for now is stored; run tstar sweep first."
        )
    newest = max(times, key=times.__getitem__)
    return lambda row: studies_of(row.get("studies")).get(study) == newest


def last_started(asked: Asked) -> dict[str, dict[str, float]]:
    """Study → hash → when the last run that it asks for was started, of every run's ``studies`` and ``started``."""
    found: dict[str, dict[str, float]] = {}
    for text, started in asked:
        at = started if isinstance(started, float) and started == started else 0.0
        for name, digest in studies_of(text).items():
            times = found.setdefault(name, {})
            if digest is not None:
                times[digest] = max(times.get(digest, 0.0), at)
    return found


def studies_of(text: object) -> dict[str, str | None]:
    """Study → its hash, ``None`` where it asks for the run no longer, of a run's column ``studies``."""
    return json_object(text)


def _compiled(text: str) -> Callable[[Row], Any]:
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and node.id not in COLUMNS:
                raise TstarError(
                    f"{unknown('column', node.id, COLUMNS)} Text stands in quotes: 'model == \"vgg9\"'."
                )
            if not isinstance(node, _ALLOWED):
                raise ValueError(f"{type(node).__name__} is not part of it")
        _kind(tree)
        _check_condition(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        if isinstance(error, TstarError):
            raise
        raise TstarError(
            f"--where must compare columns with values, such as 'model == \"vgg9\" and lr == 0.1', got {text!r}: "
            f"{error.msg if isinstance(error, SyntaxError) else error}."
        ) from error
    return lambda row: _value(tree, row)


_ALLOWED = (
    *(ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub, ast.Compare, ast.Name, ast.Load),
    *(ast.Constant, ast.Tuple, ast.List, ast.cmpop),
)


def _check_condition(node: ast.expr) -> None:
    """Refuse what holds for every run or for none: a condition that names no column."""
    if isinstance(node, ast.BoolOp):
        for item in node.values:
            _check_condition(item)
    elif isinstance(node, ast.UnaryOp):
        _check_condition(node.operand)
    elif isinstance(node, ast.Tuple | ast.List) or not any(
        isinstance(part, ast.Name) for part in ast.walk(node)
    ):
        raise ValueError(f"{ast.unparse(node)} compares no column")


def _kind(node: ast.expr) -> str:
    """``"text"``, ``"number"``, ``"list"``, or ``"any"``; an error where two kinds are compared, which no run could meet."""
    if isinstance(node, ast.Name):
        if node.id in MIXED:
            return "any"
        return "text" if COLUMNS[node.id].startswith("TEXT") else "number"
    if isinstance(node, ast.Constant):
        if node.value is None:
            return "any"
        if not isinstance(node.value, str | int | float):
            raise ValueError(f"{ast.unparse(node)} is neither a number nor text")
        return "text" if isinstance(node.value, str) else "number"
    if isinstance(node, ast.Compare):
        left = node.left
        for operation, right in zip(node.ops, node.comparators, strict=True):
            _check_comparison(left, operation, right)
            left = right
    elif isinstance(node, ast.UnaryOp):
        if _kind(node.operand) != "number" and isinstance(node.op, ast.USub):
            raise ValueError(f"only numbers have a sign, and {_described(node.operand)}")
    elif isinstance(node, ast.BoolOp | ast.Tuple | ast.List):
        for item in node.values if isinstance(node, ast.BoolOp) else node.elts:
            _kind(item)
        return "number" if isinstance(node, ast.BoolOp) else "list"
    return "number"


def _check_comparison(left: ast.expr, operation: ast.cmpop, right: ast.expr) -> None:
    kinds = _kind(left), _kind(right)
    if isinstance(operation, ast.In | ast.NotIn):
        if isinstance(right, ast.Tuple | ast.List):
            for item in right.elts:
                _check_comparison(left, ast.Eq(), item)
            return
        if kinds[1] == "number":
            raise ValueError(f"in needs a list, such as (0.1, 0.01), but {_described(right)}")
    if "any" not in kinds and kinds[0] != kinds[1]:
        raise ValueError(f"{_described(left)}, but {_described(right)}")
    if "list" in kinds:
        raise ValueError("a list can only follow in or not in")


def _described(node: ast.expr) -> str:
    kind = _kind(node)
    if isinstance(node, ast.Name):
        return f"the column {node.id} holds {'text' if kind == 'text' else 'numbers'}"
    return f"{ast.unparse(node)} is {'text' if kind == 'text' else f'a {kind}'}"


def _value(node: ast.expr, row: Row) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        value = row.get(node.id)
        return None if value is None or value != value else value  # pandas has NaN, and NA
    if isinstance(node, ast.Tuple | ast.List):
        return [_value(item, row) for item in node.elts]
    if isinstance(node, ast.BoolOp):
        every = all if isinstance(node.op, ast.And) else any
        return every(_value(item, row) for item in node.values)
    if isinstance(node, ast.UnaryOp):
        inner = _value(node.operand, row)
        if isinstance(node.op, ast.Not):
            return not inner
        return None if inner is None else -inner
    assert isinstance(node, ast.Compare)
    left = _value(node.left, row)
    for operation, right_node in zip(node.ops, node.comparators, strict=True):
        right = _value(right_node, row)
        try:
            if not _COMPARE[type(operation)](left, right):
                return False
        except TypeError:  # nothing is smaller than what is not there
            return False
        left = right
    return True
