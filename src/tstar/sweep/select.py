"""Runs chosen by an expression over the store's columns, and by the study that asked for them."""

from __future__ import annotations

import ast
import json
import operator
from collections.abc import Callable, Mapping
from typing import Any

from tstar.errors import TstarError, unknown
from tstar.sweep.columns import COLUMNS

Row = Mapping[str, Any]
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


def selector(where: str | None = None, study: str | None = None) -> Callable[[Row], bool]:
    """A test of rows. ``where`` compares columns with values, joined by and, or, not, as Python writes it.

    >>> chosen = selector('model == "vgg9" and lr in (0.1, 0.01)')
    >>> chosen({"model": "vgg9", "lr": 0.1}), chosen({"model": "vgg9", "lr": 0.5})
    (True, False)
    """
    test = (lambda row: True) if where is None else _compiled(where)
    return lambda row: bool((study is None or study in _studies(row)) and test(row))


def _studies(row: Row) -> Mapping[str, Any]:
    text = row.get("studies")
    names: Mapping[str, Any] = json.loads(text) if isinstance(text, str) else {}
    return names


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
