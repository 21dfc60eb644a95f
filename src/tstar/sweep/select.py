"""Runs chosen by an expression over the store's columns, and by the study that asks for them."""

from __future__ import annotations

import ast
import json
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tstar.errors import TstarError, unknown
from tstar.sweep.columns import COLUMNS, fits

Row = Mapping[str, Any]
Asked = Iterable[tuple[object, object]]  # the columns studies and started of every run
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
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
    if not isinstance(text, str) or not fits("studies", text):
        return {}
    names = json.loads(text)
    return names if isinstance(names, dict) else {}


def _compiled(text: str) -> Callable[[Row], Any]:
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and node.id not in COLUMNS:
                raise unknown("column", node.id, COLUMNS)
            if not isinstance(node, _ALLOWED):
                raise ValueError(f"{type(node).__name__} is not part of it")
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
        return not inner if isinstance(node.op, ast.Not) else -inner
    assert isinstance(node, ast.Compare)
    left = _value(node.left, row)
    for operation, right_node in zip(node.ops, node.comparators, strict=True):
        right = _value(right_node, row)
        try:
            if not _COMPARE[type(operation)](left, right):
                return False
        except (TypeError, KeyError):  # nothing is smaller than what is not there
            return False
        left = right
    return True
