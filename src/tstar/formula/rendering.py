"""One description of an advice, drawn for plain text, the terminal and HTML: a verdict, then reasons, formulas last."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tstar.formula.cautions import Notice
from tstar.text import escaped

if TYPE_CHECKING:
    from tstar.formula.equation import Explanation

_STYLES = {"warning": "bold red", "caution": "yellow", "note": "dim"}
_COLORS = {"warning": "#b3261e", "caution": "#8a5a00", "note": "inherit"}


@dataclass(frozen=True)
class Description:
    """What an advice says, in the order in which it is read."""

    verdict: str
    expectation: str
    notices: tuple[Notice, ...]
    reasons: tuple[str, ...]
    terms: tuple[tuple[str, str], ...]


def describe(
    result: Explanation,
    *,
    facts: str = "",
    leave: bool = False,
    norm: str | None = "batch",
    expectation: str = "",
    notices: tuple[Notice, ...] | None = None,
    changes: tuple[str, ...] = (),
) -> Description:
    """The description of an explanation, or with what is known of a model that of a recommendation."""
    basis = f"Coefficients: {result.coefficients.name}{f'; {facts}' if facts else ''}."
    limit = f"Your training {result.limit_text()}." if result.limit else ""
    compared = f"The paper's T* for 200 epochs of SGD at 0.1 would be {result.bound:.4g}:"
    reasons = (result.reason, limit, basis, compared if limit else "")
    rows = [(term.expression, f"{term.value:+.4f}") for term in result.terms]
    return Description(
        verdict=_verdict(result, leave, norm, changes),
        expectation=expectation,
        notices=result.notices if notices is None else notices,
        # A T that is not advised needs no terms: why it is not stands in the notices.
        reasons=(basis,) if leave else tuple(filter(None, reasons)),
        terms=() if leave else tuple(rows),
    )


def _verdict(result: Explanation, leave: bool, norm: str | None, changes: tuple[str, ...]) -> str:
    """One line to act on, for someone who has not read the paper."""
    also = "".join(f"; {change}" for change in changes)
    if leave:
        return f"Leave the model as it is: no BatchNorm, no temperature{also}."
    T = f"{result.temperature:.4g}"
    where = "with a BatchNorm before the output layer" if norm else "without a new norm"
    if any(notice.code == "unknown-training" for notice in result.notices):
        where += ", if you train as the paper does"
    return f"Train at T = {T}, {where}{also}."


def as_text(d: Description) -> str:
    lines = [d.verdict, *([f"  {d.expectation}"] if d.expectation else [])]
    lines += [f"  {notice.severity}: {notice.message}" for notice in d.notices]
    lines += [f"  {reason}" for reason in d.reasons]
    lines += [f"  {expression:<30}{value:>10}" for expression, value in d.terms]
    return "\n".join(lines)


def as_rich(d: Description) -> Any:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    terms = Table(show_header=False, box=None, pad_edge=False, padding=(0, 2))
    terms.add_column()
    terms.add_column(justify="right")
    for expression, value in d.terms:
        terms.add_row(Text(f"  {expression}"), value)
    notices = [
        Text.assemble((notice.severity, _STYLES[notice.severity]), f" {notice.message}")
        for notice in d.notices
    ]
    reasons = [Text(reason, style="dim") for reason in d.reasons]
    expected = [Text(d.expectation)] if d.expectation else []
    return Group(Text(d.verdict, style="bold"), *expected, *notices, *reasons, terms)


def as_html(d: Description) -> str:
    rows = "".join(
        f"<tr><td>{escaped(expression)}</td><td style='text-align:right'>{escaped(value)}</td></tr>"
        for expression, value in d.terms
    )
    items = "".join(
        f"<li style='color:{_COLORS[n.severity]}'><b>{n.severity}</b> {escaped(n.message)}</li>"
        for n in d.notices
    )
    expected = f"<p>{escaped(d.expectation)}</p>" if d.expectation else ""
    reasons = "".join(f"<p>{escaped(reason)}</p>" for reason in d.reasons)
    return f"<div><b>{escaped(d.verdict)}</b>{expected}<ul>{items}</ul>{reasons}<table>{rows}</table></div>"


class Drawn(ABC):
    """An advice that is a number, and that text, terminal and notebook show by its description."""

    temperature: float

    @abstractmethod
    def describe(self) -> Description: ...

    def __float__(self) -> float:
        return self.temperature

    def __str__(self) -> str:
        return as_text(self.describe())

    def __rich__(self) -> Any:
        return as_rich(self.describe())

    def _repr_html_(self) -> str:
        return as_html(self.describe())
