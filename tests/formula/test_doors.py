"""Whatever is given, the formula answers with a temperature and valid JSON, or with one TstarError."""

import json
import math
import random

import numpy as np
import pytest
import torch

import tstar

VALUES = [
    *(None, True, 0, -1, 1.5, math.nan, math.inf, 10**400, 10**5000, 1e308, 5e-324, 2**63, 64, 10, 0.1, 1j),
    *("x", "", b"x", "sgd", "adamw", "lion", "cosine", "finetune", [], (), {}, object(), type, lambda: 0),
    *(("sgd",), ("sgd", "x"), ("sdg", 0.1), (1, 2), ("adam", 1e-3), np.float32(0.1), np.True_, np.array("64")),
    *(np.array([1, 2]), np.array(None), np.datetime64("2020"), torch.tensor(True), torch.tensor([1.0, 2.0])),
]  # fmt: skip
NAMES = (
    *("num_features", "num_classes", "csg", "variant", "coefficients", "optimizer", "lr", "momentum", "steps"),
    *("epochs", "samples", "batch_size", "weight_decay", "scheduler", "label_smoothing", "scenario"),
)  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_no_other_error_and_no_number_outside_the_bounds(seed):
    rng = random.Random(seed)
    answered = 0
    for _ in range(1000):
        words = {"num_features": 64, "num_classes": 10}
        words |= {name: rng.choice(VALUES) for name in rng.sample(NAMES, rng.randint(1, 4))}
        try:
            result = tstar.explain(**words)
        except tstar.TstarError:
            continue
        answered += 1
        assert 0 < result.temperature <= 512
        json.dumps(result.to_dict(), allow_nan=False)
        assert result._repr_html_()
        assert str(result).startswith(("Train at T = ", "Leave the model as it is"))
    assert answered > 20  # the check sees both ends
