"""What the distillation methods share: the divergence, a frozen teacher, and the two parts of the loss."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, fields

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tstar.errors import TstarError
from tstar.methods.common import Loss, Plain, cross_entropy, missing, plain_copy
from tstar.methods.interface import Facts, Recipe
from tstar.numbers import positive
from tstar.surgery.finding import find_head


def divergence(
    student: Tensor,
    teacher: Tensor,
    student_temperature: float | Tensor,
    teacher_temperature: float | Tensor | None = None,
) -> Tensor:
    r"""τ_s·τ_t·KL(softmax(z_t/τ_t) ‖ softmax(z_s/τ_s)), summed over classes, the mean over the batch.

    Symbols: z_s ``student`` and z_t ``teacher`` logits (B, K). With one temperature the factor is
    Hinton's τ², which keeps the gradient's size as τ grows; the product for two is ours.
    """
    tau_s = student_temperature
    tau_t = tau_s if teacher_temperature is None else teacher_temperature
    if student.shape != teacher.shape:
        raise TstarError(
            "Teacher and student must give one logit for each of the same classes, got shapes "
            f"{tuple(teacher.shape)} and {tuple(student.shape)}; train a teacher on this data set."
        )
    log_q = F.log_softmax(teacher / tau_t, dim=1)
    log_p = F.log_softmax(student / tau_s, dim=1)
    return tau_s * tau_t * F.kl_div(log_p, log_q, reduction="batchmean", log_target=True)


class Teacher:
    """A frozen copy of the teacher, in eval mode whatever the original's, on the batch's device."""

    def __init__(self, method: str, facts: Facts) -> None:
        if facts.teacher is None:
            raise missing(
                method, "a teacher", "pass a trained model with the same classes as Facts.teacher."
            )
        try:
            classes = find_head(facts.teacher).num_classes
        except TstarError:
            classes = facts.num_classes  # unknown until its first output, which divergence() checks
        if classes != facts.num_classes:
            raise TstarError(
                f"The teacher must have the student's {facts.num_classes} classes, got {classes}; "
                "train a teacher on this data set."
            )
        self._model = copy.deepcopy(facts.teacher).eval().requires_grad_(False)

    @torch.no_grad()
    def __call__(self, inputs: Tensor) -> Tensor:
        logits: Tensor = self._model.to(inputs.device)(inputs)
        return logits


@dataclass(frozen=True)
class Distillation(Plain):
    """L = w_ce·CE(z_s, y) + w_kd·soft(z_s, z_t); the methods say what ``soft`` is, and their own weights."""

    ce_weight: float = 0.1
    kd_weight: float = 0.9
    name = "distillation"
    needs = frozenset({"teacher"})

    def __post_init__(self) -> None:
        for field in fields(self):
            positive(field.name, getattr(self, field.name))

    def loss(self, facts: Facts, soft: Callable[[Tensor, Tensor], Tensor]) -> Loss:
        """The loss, with a teacher of its own."""
        teacher, hard = Teacher(self.name, facts), cross_entropy(facts)

        def loss(logits: Tensor, targets: Tensor, inputs: Tensor) -> Tensor:
            softened = soft(logits, teacher(inputs))
            return self.ce_weight * hard(logits, targets, inputs) + self.kd_weight * softened

        return loss

    def distilled(
        self, model: nn.Module, facts: Facts, soft: Callable[[Tensor, Tensor], Tensor]
    ) -> Recipe:
        """A copy of the model with that loss."""
        loss = self.loss(facts, soft)
        recipe = plain_copy(model, facts)
        recipe.loss = loss
        return recipe
