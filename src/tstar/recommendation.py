"""An advice as a record: what it says, its JSON, and the way back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, get_args

from torch import nn

from tstar.errors import TstarError, shown, unknown
from tstar.formula import rendering
from tstar.formula.cautions import Notice, Severity
from tstar.formula.coefficients import Coefficients, get, is_shipped
from tstar.formula.equation import Explanation
from tstar.formula.similar import Expectation
from tstar.formula.training import Training
from tstar.numbers import check_csg, positive, whole
from tstar.surgery.finding import Head
from tstar.surgery.head import known_norm, usable
from tstar.text import printable

# What of an advice's JSON makes an advice again, and what is there to be read alone.
_RESTORED = (
    "temperature", "head", "num_features", "num_classes", "csg", "norm", "backbone", "lr_factor",
    "weight_decay_factor", "leave", "training", "advised_lr", "coefficients", "reason", "notices",
)  # fmt: skip
_SAID = (
    "verdict", "computed", "variant", "paper", "unclipped", "clipped", "terms", "flags", "limit", "expectation", "evidence",
    "own_coefficients",
)  # fmt: skip


@dataclass(frozen=True)
class Recommendation(rendering.Drawn):
    """What to do with a model before training, why, and what to be careful about.

    ``float(advice)`` is the temperature; ``tstar.temper(model, advice)`` applies all of it.

    Args:
        temperature: T.
        head: the output layer.
        csg: the difficulty of the data, where it was given or measured.
        explanation: T with its terms and its reason.
        notices: what to be careful about, the gravest first.
        norm: ``"batch"`` to insert a BatchNorm before the output layer, ``None`` to insert nothing.
        backbone: c of :class:`tstar.TemperedHead`; ``None`` leaves the backbone's gradient as it is.
        lr_factor: what to multiply the learning rate by.
        weight_decay_factor: what to multiply the weight decay by.
        leave: leave the model as it is; ``temper`` then returns it unchanged.
        evidence: the most similar trainings that were measured, with what they gained over the plain model; ``None``
            where the training is not known well enough to look.
        optimizer: the live optimizer that the advice was read from, if any.
    """

    temperature: float
    head: Head
    num_features: int
    num_classes: int
    csg: float | None
    explanation: Explanation
    notices: tuple[Notice, ...]
    norm: str | None = "batch"
    backbone: float | None = None
    lr_factor: float = 1.0
    weight_decay_factor: float = 1.0
    leave: bool = False
    evidence: Expectation | None = None
    optimizer: Any = field(default=None, repr=False, compare=False)

    @property
    def variant(self) -> str:
        return self.explanation.variant

    @property
    def reason(self) -> str:
        """Why this formula."""
        return self.explanation.reason

    @property
    def expectation(self) -> str:
        """What to expect over the plain model, in words; empty where it is not known."""
        if self.evidence is None or self.evidence.far:
            return ""
        return f"With a BatchNorm and T: {self.evidence}" if self.leave else str(self.evidence)

    @property
    def training(self) -> Training:
        """How to train, the learning rate as advised."""
        return self.explanation.training

    @property
    def warnings(self) -> tuple[Notice, ...]:
        """The notices that ask for a change of plan."""
        return tuple(notice for notice in self.notices if notice.severity == "warning")

    def describe(self) -> rendering.Description:
        """What there is to say, the verdict first, before it is drawn."""
        csg = "" if self.csg is None else f", csg = {self.csg:.3g}"
        factors = (
            ("the learning rate", self.lr_factor),
            ("the weight decay", self.weight_decay_factor),
        )
        return rendering.describe(
            self.explanation,
            facts=f"M = {self.num_features}, K = {self.num_classes}{csg}",
            leave=self.leave,
            norm=self.norm,
            expectation=self.expectation,
            notices=self.notices,
            changes=tuple(
                f"multiply {what} by {factor:.3g}" for what, factor in factors if factor != 1
            ),
        )

    def to_dict(self) -> dict[str, Any]:
        """The advice as plain JSON types; :meth:`from_dict` is the way back."""
        told = self.training if self.lr_factor == 1 else at_rate(self.training, 1 / self.lr_factor)
        used = self.explanation.coefficients
        return {
            **self.explanation.to_dict(),
            "training": told.to_dict(),
            "advised_lr": self.training.lr,
            "verdict": self.describe().verdict,
            "temperature": self.temperature,
            "head": self.head.path,
            "num_features": self.num_features,
            "num_classes": self.num_classes,
            "csg": self.csg,
            "norm": self.norm,
            "backbone": self.backbone,
            "lr_factor": self.lr_factor,
            "weight_decay_factor": self.weight_decay_factor,
            "leave": self.leave,
            "expectation": self.expectation or None,
            "evidence": None if self.evidence is None else asdict(self.evidence),
            "notices": [vars(notice) for notice in self.notices],
            **({} if is_shipped(used) else {"own_coefficients": used.to_dict()}),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Recommendation:
        """The inverse of :meth:`to_dict`, as far as :func:`tstar.temper` needs it.

        Not restored: the evidence, the terms of T, and the output layer itself, of which the path is known
        (``head.layer`` is an ``nn.Identity``).
        """
        _check_fields("an advice", data, _RESTORED, _SAID)
        names = [each.name for each in fields(Training)]
        _check_fields("the training of an advice", data["training"], (), (*names, "family"))
        told = {name: data["training"][name] for name in names if name in data["training"]}
        for name in {"optimizer", "schedule"} & {*told}:
            _text(name, told[name])
        own = data.get("own_coefficients")
        if own is not None and not isinstance(own, Mapping):
            raise TstarError(f"own_coefficients must be a table of fields, got {shown(own)}.")
        if not isinstance(data["leave"], bool):
            raise TstarError(f"leave must be True or False, got {shown(data['leave'])}.")
        T, M = usable(data["temperature"]), whole("num_features", data["num_features"], least=1)
        K = whole("num_classes", data["num_classes"], least=2)
        notices = _notices(data["notices"])
        return cls(
            temperature=T,
            head=Head(_text("head", data["head"]), nn.Identity(), M, K),
            num_features=M,
            num_classes=K,
            csg=None if data["csg"] is None else check_csg(data["csg"]),
            explanation=Explanation(
                temperature=T,
                computed=T,
                unclipped=T,
                terms=(),
                flags=(),
                coefficients=get(data["coefficients"])
                if own is None
                else Coefficients.from_dict(own),
                training=Training(**{**told, "lr": data["advised_lr"]}),
                reason=_text("reason", data["reason"]),
                notices=notices,
                leave=data["leave"],
            ),
            notices=notices,
            norm=known_norm(data["norm"]),
            backbone=None if data["backbone"] is None else positive("backbone", data["backbone"]),
            lr_factor=positive("lr_factor", data["lr_factor"]),
            weight_decay_factor=positive("weight_decay_factor", data["weight_decay_factor"]),
            leave=data["leave"],
        )


def at_rate(training: Training, factor: float) -> Training:
    """The same at so many times the rate; a rate such as 0.3, not 0.30000000000000004."""
    if factor == 1 or training.lr is None:
        return training
    return replace(training, lr=float(f"{factor * training.lr:.12g}"))


def _check_fields(
    what: str, data: object, needed: tuple[str, ...], more: tuple[str, ...] = ()
) -> None:
    """Refuse JSON that is no object, lacks a field, or has one that nobody knows."""
    if not isinstance(data, Mapping):
        raise TstarError(f"{what.capitalize()} must be a table of fields, got {shown(data)}.")
    missing = [name for name in needed if name not in data]
    if missing:
        raise TstarError(
            f"{what.capitalize()} needs {', '.join(missing)}, got {shown([*data])}; give all that to_dict gave."
        )
    for name in data:
        if name not in (*needed, *more):
            raise unknown(f"field of {what}", name, (*needed, *more))


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise TstarError(f"{name} must be a string, got {shown(value)}.")
    return printable(value, lines=True)


def _notices(given: Any) -> tuple[Notice, ...]:
    """The notices of an advice that comes as JSON."""
    if not isinstance(given, list):
        raise TstarError(f"notices must be a list, got {shown(given)}.")
    for notice in given:
        _check_fields("a notice", notice, ("severity", "code", "message"))
        if notice["severity"] not in get_args(Severity):
            raise unknown("severity", notice["severity"], get_args(Severity))
    return tuple(
        Notice(n["severity"], _text("code", n["code"]), _text("message", n["message"]))
        for n in given
    )
