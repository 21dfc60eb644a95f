"""From a model and its data to a temperature with its reasons."""

from __future__ import annotations

import html
import json
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from torch import nn

from tstar.errors import TstarError, unknown
from tstar.formula.cautions import Notice, Plan, notices, read_optimizer
from tstar.formula.coefficients import Coefficients, as_coefficients, get
from tstar.formula.equation import Explanation, explain
from tstar.formula.law import MOMENTUM, family
from tstar.numbers import check_csg, whole
from tstar.surgery.finding import Head, resolve_head, unwrap

Scenario = Literal["scratch", "finetune"]


@dataclass(frozen=True)
class Recommendation:
    """A temperature, the terms it is made of, why this formula, and what to be careful about.

    ``float(advice)`` is the temperature; ``tstar.temper(model, advice)`` applies it.
    """

    temperature: float
    head: Head
    num_features: int
    num_classes: int
    csg: float | None
    reason: str
    explanation: Explanation
    notices: tuple[Notice, ...]

    @property
    def variant(self) -> str:
        return self.explanation.variant

    @property
    def warnings(self) -> tuple[Notice, ...]:
        """The notices that ask for a change of plan."""
        return tuple(notice for notice in self.notices if notice.severity == "warning")

    def __float__(self) -> float:
        return self.temperature

    def __str__(self) -> str:
        lines = [f"Train at T = {self.temperature:.4g}   ({self._facts()})"]
        lines += [f"  {term.expression:<30}{term.value:>+10.4f}" for term in self.explanation.terms]
        if self.explanation.limit is not None:
            lines.append(f"  budget: {self.explanation.limit_text()}")
        lines.append(f"  {self.reason}")
        lines += [f"  {notice.severity}: {notice.message}" for notice in self.notices]
        return "\n".join(lines)

    def _facts(self) -> str:
        csg = "" if self.csg is None else f", csg = {self.csg:.3g}"
        name = self.explanation.coefficients.name
        return f"M = {self.num_features}, K = {self.num_classes}{csg}; coefficients: {name}"

    def __rich__(self) -> Any:
        from rich.console import Group
        from rich.markup import escape
        from rich.table import Table

        terms = Table(show_header=False, box=None, pad_edge=False, padding=(0, 2))
        for term in self.explanation.terms:
            terms.add_row(f"  {term.expression}", f"{term.value:+.4f}")
        limit = [f"  budget: {text}"] if (text := self.explanation.limit_text()) else []
        colours = {"warning": "bold red", "caution": "yellow", "note": "dim"}
        lines = [
            f"[{colours[n.severity]}]{n.severity}[/] {escape(n.message)}" for n in self.notices
        ]
        title = f"[bold]Train at T = {self.temperature:.4g}[/]   [dim]{escape(self._facts())}[/]"
        return Group(title, terms, *limit, f"[dim]{escape(self.reason)}[/]", *lines)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(t.expression)}</td><td style='text-align:right'>{t.value:+.4f}</td></tr>"
            for t in self.explanation.terms
        )
        text = self.explanation.limit_text()
        limit = f"<p>budget: {html.escape(text)}</p>" if text else ""
        colours = {"warning": "#b3261e", "caution": "#8a5a00", "note": "inherit"}
        items = "".join(
            f"<li style='color:{colours[n.severity]}'><b>{n.severity}</b> {html.escape(n.message)}</li>"
            for n in self.notices
        )
        return (
            f"<div><b>Train at T = {self.temperature:.4g}</b> ({html.escape(self._facts())})"
            f"<table>{rows}</table>{limit}<p>{html.escape(self.reason)}</p><ul>{items}</ul></div>"
        )

    def to_dict(self) -> dict[str, Any]:
        """The advice as plain JSON types."""
        return {
            **self.explanation.to_dict(),
            "head": self.head.path,
            "num_features": self.num_features,
            "num_classes": self.num_classes,
            "csg": self.csg,
            "reason": self.reason,
            "notices": [vars(notice) for notice in self.notices],
        }


def recommend(
    model: nn.Module,
    data: Any = None,
    *,
    num_classes: int | None = None,
    csg: Any = None,
    variant: str | None = None,
    optimizer: Any = None,
    steps: int | None = None,
    label_smoothing: float = 0.0,
    scenario: Scenario = "scratch",
    batch_size: int | None = None,
    coefficients: Coefficients | str | None = None,
    head: str | Head | None = None,
    example_input: Any = None,
) -> Recommendation:
    """The temperature to train this model at, with its reasons and what to be careful about.

    It reads the model and the data and changes nothing: mode, gradients, buffers and random generators are as
    before.

    Args:
        model: the classifier; M and K are read from its output layer.
        data: the training set, in any form that :func:`tstar.csg` takes, or a pair of samples and labels; gives
            the difficulty, which the paper's csg and csgcn use.
        num_classes: K, where the model's output layer will be replaced later.
        csg: the difficulty, where it is known already (a number or what :func:`tstar.csg` returns).
        variant: the paper's ``"base"``, ``"csg"``, ``"cn"`` or ``"csgcn"``; chosen by evidence by default.
        optimizer: a torch optimiser, a name, or a pair such as ``("sgd", 0.1)``. With a learning rate and with
            ``steps``, and no variant named, T is no hotter than this training can learn at (:mod:`tstar.formula.law`).
        steps: the planned number of optimiser steps.
        label_smoothing: the smoothing in the loss.
        scenario: ``"scratch"`` or ``"finetune"``.
        batch_size: samples a step.
        coefficients: a fit of your own in place of the paper's; with a budget it needs optimizer and steps too.
        head: the output layer's path, where the model has several.
        example_input: an input that the model accepts, where the output layer is not found without one.
    """
    if scenario not in ("scratch", "finetune"):
        raise unknown("scenario", scenario, ("scratch", "finetune"))
    _check_plan(steps, label_smoothing, batch_size)
    if head == "all":
        raise TstarError("recommend needs one output layer, got head='all'; name one of them.")
    found = resolve_head(model, head, example_input)
    name, lr, momentum = read_optimizer(optimizer, found.layer)
    K = found.num_classes if num_classes is None else num_classes
    extra: list[Notice] = []
    if data is not None and csg is None:
        csg = _measure(data, K, extra)
    difficulty = None if csg is None else check_csg(csg)
    momentum = MOMENTUM if momentum is None else momentum
    training: dict[str, Any] = {}
    if lr is not None and steps is not None and family(name or ""):
        training = {"lr": lr, "optimizer": name, "steps": steps, "momentum": momentum}
    result, reason = _explained(
        found.num_features, K, difficulty, variant, coefficients, scenario, training
    )
    plan = Plan(
        optimizer=name,
        lr=lr,
        momentum=momentum,
        steps=steps,
        batch_size=batch_size,
        label_smoothing=label_smoothing,
        scenario=scenario,
        attention=_has_attention(unwrap(model)),
    )
    return Recommendation(
        temperature=result.temperature,
        head=found,
        num_features=found.num_features,
        num_classes=int(K),
        csg=difficulty,
        reason=reason,
        explanation=result,
        notices=(*extra, *notices(result, int(K), plan)),
    )


# The evidence is results/budget/README.md.
_AWARE = (
    "The paper's T* (cn), no hotter than your optimiser, learning rate and steps allow, as measured on the atlas of "
    "training runs; csg is no part of it."
)


def _explained(
    M: int,
    K: int,
    csg: float | None,
    variant: str | None,
    coefficients: Coefficients | str | os.PathLike[str] | None,
    scenario: str,
    training: dict[str, Any],
) -> tuple[Explanation, str]:
    """T with its terms, and why this formula."""
    if coefficients is not None:
        own = as_coefficients(coefficients)
        told = training if own.budget is not None else {}
        result = explain(M, K, csg, variant=variant, coefficients=own, **told)
        return result, f"Coefficients of your own: {own.provenance.source}."
    if variant == "budget" or (variant is None and training):
        return explain(M, K, variant="budget", **training), _AWARE
    chosen, reason = (
        (variant, "The variant you asked for.") if variant else choose_variant(csg, scenario)
    )
    usable = csg if get(chosen).gamma is not None else None
    return explain(M, K, usable, variant=chosen), reason


def choose_variant(csg: float | None, scenario: str) -> tuple[str, str]:
    """Which of the paper's variants to use, and why.

    The evidence of the paper's own tables decides (``tstar.paper``). The csg terms are used only where the
    paper has data; far below its range they are absurd (csg 0.1 at M = 64 gives 1 with csgcn and 15 with csg).
    """
    if csg is None:
        alone = _evidence()["without_csg"][scenario]
        return alone["variant"], f"csg is not known. {alone['evidence']}"
    origin = get("csgcn").provenance
    assert origin.fitted.csg is not None
    assert origin.validated.csg is not None
    low = min(origin.fitted.csg[0], origin.validated.csg[0])
    high = max(origin.fitted.csg[1], origin.validated.csg[1])
    if not low <= csg <= high:
        return "cn", (
            f"csg = {csg:.3g} is outside the paper's {low:g}–{high:g}, where its terms would be extrapolation: "
            "the class count alone corrects the temperature."
        )
    known = _evidence()[scenario]
    return known["variant"], known["evidence"]


@cache
def _evidence() -> Any:
    path = Path(__file__).parent / "paper" / "default_variant.json"
    return json.loads(path.read_text(encoding="utf-8"))


_MEASURED = 10_000  # samples that are enough for csg; the value differs little from that of more


def _measure(data: Any, num_classes: int, extra: list[Notice]) -> float | None:
    """csg of the data; a notice in place of a number where it cannot be computed."""
    from tstar.difficulty import csg

    try:
        measured = csg(data, limit=max(_MEASURED, 50 * num_classes))
    except TstarError as error:
        extra.append(
            Notice(
                "caution",
                "csg-failed",
                f"The difficulty of the data could not be measured: {error}",
            )
        )
        return None
    if len(measured.classes) != num_classes:
        extra.append(
            Notice(
                "warning",
                "class-count",
                f"The data have {len(measured.classes)} classes and the output layer {num_classes}; T* uses {num_classes}. "
                "Build the model with the number of classes of the data.",
            )
        )
    return float(measured)


def _check_plan(steps: Any, label_smoothing: Any, batch_size: Any) -> None:
    for name, value in (("steps", steps), ("batch_size", batch_size)):
        if value is not None:
            whole(name, value, least=1)
    if (
        isinstance(label_smoothing, bool)
        or not isinstance(label_smoothing, int | float)
        or not 0 <= label_smoothing < 1
    ):
        raise TstarError(f"0 <= label_smoothing < 1 must hold, got {label_smoothing!r}.")


def _has_attention(model: nn.Module) -> bool:
    return any("attention" in type(module).__name__.lower() for module in model.modules())
