r"""The temperature that suits a way of training: a law of our own, beside the paper's formula.

Dividing logits by T is a head that starts at 1/T and, with SGD, learns at lr/T² (``groups.py``).
Its inputs are batch-normed, ‖h‖² ≈ M, so one step moves a sample's own logit by about lr·M/T² of
its gradient. Steps on different batches point in different directions: over a run the head travels
like a random walk, with the root of the number of steps. More classes, larger batches and less
momentum make it shorter, as fewer steps would, steps/(K·B·(1 − μ)). T gives it a fixed length:

    SGD     T = 0.61·sqrt(lr·M)·(steps/(K·B·(1 − μ)))^(1/4), from 0.25 to 64

With Adam, whose steps do not see the gradient's scale, accuracy hardly depends on T: 2 from
scratch, and 0.5 in fine-tuning, in which a new head has few steps to grow.

0.61 was fitted on the first atlas; the second tested the law (results/atlas2). At the paper's own
setting the two agree: M = 512, K = 10, 7,800 steps of 128 at 0.1 give 12.2, its ``base`` 11.7.
Pure Python. Whether to use this T is for the table of recipes to say.
"""

from __future__ import annotations

from tstar.errors import TstarError
from tstar.training import MOMENTUM, Training

SGD, POWER = 0.61, 0.25
ADAM = {"scratch": 2.0, "finetune": 0.5}
LOWEST, HIGHEST = 0.25, 64.0
BATCH_SIZE = 64  # samples per step, if not known


def law_temperature(num_features: int, num_classes: int, training: Training) -> float:
    """T for M features, K classes and a training whose optimizer, rate and steps are known.

    >>> training = Training("sgd", lr=0.1, steps=7800, batch_size=128)
    >>> round(law_temperature(512, 10, training), 1)
    12.2
    """
    if training.family == "adam":
        return ADAM[training.scenario or "scratch"]
    if training.family != "sgd" or training.lr is None or training.steps is None:
        raise TstarError(
            "The law needs SGD with lr and steps, or Adam's family; got "
            f"optimizer={training.optimizer!r}, lr={training.lr}, steps={training.steps}."
        )
    momentum = MOMENTUM if training.momentum is None else training.momentum
    batch_size = training.batch_size or BATCH_SIZE
    travel = training.steps / (num_classes * batch_size * (1 - momentum))
    T: float = SGD * (training.lr * num_features) ** 0.5 * travel**POWER
    return min(max(T, LOWEST), HIGHEST)
