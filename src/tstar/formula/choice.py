"""The one choice of coefficients: your own, the variant named, the training law, or what the paper's tables favor."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

from tstar.errors import TstarError, shown
from tstar.formula.coefficients import Coefficients, as_coefficients, get, training_aware
from tstar.formula.training import Training

_ALIASES = {"none": "base"}  # the fit's old word for a set without corrections
REASONS = {  # {low}, {high} and {csg} are put in
    "aware": (  # the evidence is results/atlas2/README.md
        "The T at which the output layer travels as far as it did in the best of the measured trainings; csg is not used."
    ),
    "named": "The variant you asked for.",
    "no-classes": "The number of classes is not known.",
    "no-csg": "csg is not known. {evidence}",
    "outside": (
        "csg = {csg} is outside the paper's {low}–{high}, where its terms would be extrapolation: the class count alone "
        "corrects the temperature."
    ),
    "no-scenario": (
        "The paper's full formula. Its tables favor it for fine-tuning, and cn for training from scratch: pass the "
        "scenario, 'finetune' or 'scratch'."
    ),
}


def choose(
    num_classes: float | None,
    csg: float | None,
    training: Training,
    variant: str | None = None,
    coefficients: Coefficients | str | os.PathLike[str] | None = None,
) -> tuple[Coefficients, str]:
    """The set to use for what is known, and why."""
    if coefficients is not None:
        chosen = as_coefficients(coefficients)
        if variant is not None and variant_name(variant) != chosen.variant:
            raise TstarError(
                f"variant and coefficients must agree, got variant={shown(variant)} and a set of "
                f"variant {chosen.variant!r}; leave one of them out."
            )
        reason = f"Coefficients of your own: {chosen.provenance.source}."
    elif variant is not None:
        chosen, reason = get(variant_name(variant)), REASONS["named"]
    elif training.measured:
        chosen, reason = training_aware(), REASONS["aware"]
    else:
        name, reason = choose_variant(csg, training.scenario, has_classes=num_classes is not None)
        chosen = get(name)
    if chosen.budget is not None:
        _check_budget(chosen, num_classes, training)
    return chosen, reason


def choose_variant(
    csg: float | None, scenario: str | None = None, *, has_classes: bool = True
) -> tuple[str, str]:
    """Which of the paper's variants to use where the training is not known, and why.

    The paper's own tables decide (``tstar.paper``). The csg terms are used only where the paper has data; far below
    its range they are absurd (csg 0.1 at M = 64 gives 1 with csgcn and 15 with csg).
    """
    low, high = csg_range()
    outside = csg is not None and not low <= csg <= high
    if not has_classes:
        name = "base" if csg is None or outside else "csg"
        return name, REASONS["no-classes"]
    if csg is None:
        alone = evidence()["without_csg"][scenario or "scratch"]
        return alone["variant"], REASONS["no-csg"].format(evidence=alone["evidence"])
    if outside:
        ends = {"low": f"{low:g}", "high": f"{high:g}"}
        return "cn", REASONS["outside"].format(csg=f"{csg:.3g}", **ends)
    if scenario is None:
        return "csgcn", REASONS["no-scenario"]
    known = evidence()[scenario]
    return known["variant"], known["evidence"]


def uses_csg(
    training: Training,
    variant: str | None = None,
    coefficients: Coefficients | str | os.PathLike[str] | None = None,
) -> bool:
    """Whether a csg that is not known yet could change the answer."""
    low, _ = csg_range()
    return choose(2, low, training, variant, coefficients)[0].gamma is not None


def variant_name(name: str) -> str:
    """A variant's name, old words mapped: ``"none"`` is ``"base"``."""
    return _ALIASES.get(name, name) if isinstance(name, str) else name


def csg_range() -> tuple[float, float]:
    """The lowest and the highest csg for which the paper has data."""
    origin = get("csgcn").provenance
    ranges = [scope.csg for scope in (origin.fitted, origin.validated) if scope.csg is not None]
    return min(low for low, _ in ranges), max(high for _, high in ranges)


@cache
def evidence() -> Any:
    """What the paper's tables say about its variants, by scenario."""
    path = Path(__file__).parents[1] / "paper" / "default_variant.json"
    return json.loads(path.read_text(encoding="utf-8"))


def _check_budget(chosen: Coefficients, num_classes: float | None, training: Training) -> None:
    if training.missing:
        raise TstarError(
            f"lr, optimizer and steps must be given for the coefficients {chosen.name!r}, but "
            f"{' and '.join(training.missing)} {'is' if len(training.missing) == 1 else 'are'} missing; pass them, or "
            "name one of the paper's variants."
        )
    if not training.measured:
        raise TstarError(
            f"The coefficients {chosen.name!r} were measured for SGD and Adam's family, not for {training.optimizer}; "
            "leave the variant out for safe advice."
        )
    if num_classes is None:
        raise TstarError(
            f"num_classes must be given for the coefficients {chosen.name!r}; pass num_classes=…."
        )
