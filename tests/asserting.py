"""Finds asserts that cannot fail."""

from __future__ import annotations

import ast


def vacuous(tree: ast.AST) -> list[int]:
    """Lines of asserts that hold whatever the code under test does.

    A conditional without parentheses (``assert a == 1 if b else 2``), a tuple or a list, a constant, and a comparison
    of a thing with itself.
    """
    return [n.lineno for n in ast.walk(tree) if isinstance(n, ast.Assert) and _holds(n.test)]


def _holds(test: ast.expr) -> bool:
    if isinstance(test, ast.IfExp):  # one branch compares, and the other was meant to be compared
        branches = (test.body, test.orelse)
        compared = {isinstance(branch, ast.Compare | ast.UnaryOp) for branch in branches}
        return len(compared) == 2 or any(map(_holds, branches))
    if isinstance(test, ast.BoolOp):
        each = [_holds(value) for value in test.values]
        return any(each) if isinstance(test.op, ast.Or) else all(each)
    if isinstance(test, ast.Compare):
        sides = [ast.dump(side) for side in (test.left, *test.comparators)]
        calls = any(isinstance(n, ast.Call) for n in ast.walk(test))  # may differ from call to call
        return len({*sides}) == 1 and not calls
    if isinstance(test, ast.Constant):
        return bool(test.value)
    filled = isinstance(test, ast.Tuple | ast.List | ast.Set) and bool(test.elts)
    return filled or isinstance(test, ast.GeneratorExp | ast.Lambda | ast.JoinedStr)
