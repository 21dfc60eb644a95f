"""Hostile inputs at the doors that take models and trainings: temper, speeds, recalibrate, watch, schedulers, --where."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from fuzz_inputs import ODD, Wrong


def state() -> tuple[Any, ...]:
    """What no call may change: generators, threads, gradients, the default type."""
    import torch

    drawn = np.random.get_state()[1:3]  # noqa: NPY002
    return (
        random.getstate(),
        bytes(drawn[0]),
        drawn[1],
        bytes(torch.get_rng_state().numpy()),
        torch.get_num_threads(),
        torch.is_grad_enabled(),
        torch.get_default_dtype(),
    )


def unchanged(door: Callable[[random.Random, Path], None]) -> Callable[[random.Random, Path], None]:
    """A door that is also a finding where it leaves the process in another state."""

    def watched(rng: random.Random, folder: Path) -> None:
        before = state()
        try:
            door(rng, folder)
        finally:
            if state() != before:
                raise Wrong("the state of the process was changed")

    return watched


def _network(rng: random.Random) -> Any:
    import torch
    from torch import nn

    with torch.random.fork_rng():
        torch.manual_seed(rng.randrange(99))
        return nn.Sequential(
            nn.Linear(4, 8), rng.choice([nn.ReLU(), nn.Dropout(0.3)]), nn.Linear(8, 3)
        )


def _batch(rng: random.Random) -> Any:
    import torch

    generator = torch.Generator().manual_seed(rng.randrange(99))
    x = torch.randn(rng.choice((0, 1, 2, 9, 16)), rng.choice((4, 4, 4, 3)), generator=generator)
    kinds = (
        x,
        x,
        x,
        [x, None],
        (x,),
        {"input": x},
        x.double(),
        x * math.nan,
        x.numpy(),
        x.to("meta"),
    )
    return rng.choice(ODD) if rng.random() < 0.2 else rng.choice(kinds)


@unchanged
def surgery(rng: random.Random, folder: Path) -> None:
    """Temper, and then what is asked of a tempered model."""
    import torch

    import tstar

    model = _network(rng)
    plain = {name: value.clone() for name, value in model.state_dict().items()}
    options: dict[str, Any] = {}
    for name, values in {
        "head": ["2", "0", ["2"], "all", []],
        "norm": ["batch", "layer", None],
        "backbone": [None, 1.5, "matched"],
        "steps": [1, 50, 10**9],
        "loss": ["cross_entropy", "mse"],
        "optimizer": ["sgd", ("sgd", 0.1)],
        "inplace": [True, False, None],
        "example_input": [None],
    }.items():
        if rng.random() < 0.2:
            options[name] = rng.choice(ODD if rng.random() < 0.3 else values)
    if rng.random() < 0.3:
        state_dict: dict[Any, Any] = dict(tstar.temper(model, 2.0).state_dict())
        name = rng.choice(list(state_dict))
        state_dict[name] = rng.choice([None, 3, state_dict[name] * rng.choice([0, -1, math.nan])])
        options["state_dict"] = rng.choice([state_dict, plain, *ODD])
    T = rng.choice(ODD) if rng.random() < 0.2 else math.exp(rng.uniform(-90, 90))
    try:
        tempered = tstar.temper(model, T, **options)
    except tstar.TstarError:
        now = model.state_dict()
        if now.keys() != plain.keys() or any(not torch.equal(now[n], v) for n, v in plain.items()):
            raise Wrong("a refused temper changed the model") from None
        raise
    for head in tempered.modules():
        if isinstance(head, tstar.TemperedHead) and not 0 < float(head.temperature) < math.inf:
            raise Wrong(f"T = {float(head.temperature)}")
    batch = _batch(rng)
    kind = rng.randrange(3)
    if kind == 0:
        measured = tstar.speeds(tempered, batch, rng.choice([("sgd", 0.1), "adam", *ODD]))
        if not math.isfinite(measured.head):
            raise Wrong(f"speed = {measured.head}")
    elif kind == 1:
        tstar.recalibrate(
            tempered, rng.choice([[batch], batch]), batches=rng.choice([None, 1, *ODD])
        )
        if not all(b.isfinite().all() for b in tempered.buffers()):
            raise Wrong("statistics that are not finite")
    else:
        tstar.watch(tempered, batch=batch, optimizer=("sgd", 0.1))()


@unchanged
def schedule(rng: random.Random, folder: Path) -> None:
    """Advice for a live optimizer and its scheduler."""
    import torch
    from torch.optim import lr_scheduler as schedules

    import tstar

    model = _network(rng)
    optimizer = rng.choice([torch.optim.SGD, torch.optim.AdamW])(model.parameters(), lr=0.1)
    length = rng.choice([1, 10, 10**5, 10**9, 10**30])
    scheduler = rng.choice(
        [
            lambda: schedules.StepLR(optimizer, length),
            lambda: schedules.CosineAnnealingLR(optimizer, length),
            lambda: schedules.ExponentialLR(optimizer, 0.9),
            lambda: schedules.LambdaLR(optimizer, lambda step: rng.choice([1.0, math.nan, 0.0])),
            lambda: schedules.ConstantLR(optimizer),
        ]
    )()
    options: dict[str, Any] = {"steps": length} if rng.random() < 0.5 else {"epochs": length}
    options |= {"samples": 1000, "batch_size": 10}
    if rng.random() < 0.3:
        options[rng.choice(list(options))] = rng.choice(ODD)
    if rng.random() < 0.3:
        optimizer.param_groups[0][rng.choice(["lr", "momentum", "params", "max_lr"])] = rng.choice(
            ODD
        )
    given = rng.choice(ODD) if rng.random() < 0.1 else scheduler
    T = tstar.recommend(model, optimizer=optimizer, scheduler=given, **options).temperature
    if not 0 < T < math.inf:
        raise Wrong(f"T = {T}")


_WORDS = (
    *(
        "lr",
        "model",
        "temperature",
        "seed",
        "status",
        "nothing",
        "0.1",
        "1e999",
        "'vgg9'",
        "None",
        "True",
        "9**9",
    ),
    *(
        "==",
        "!=",
        "<",
        ">=",
        "in",
        "not in",
        "is",
        "and",
        "or",
        "not",
        "-",
        "(",
        ")",
        "[",
        "]",
        ",",
        ".",
        "**",
    ),
    *(
        "lambda",
        "__import__('os')",
        ":=",
        "\x00",
        "\u202e",
        "#",
        "\n",
        "('a', 'b')",
        "(0.1, 1)",
        "lr == 0.1",
    ),
)


@unchanged
def where(rng: random.Random, folder: Path) -> None:
    """An expression that chooses runs."""
    from tstar.sweep.select import selector

    words = [rng.choice(_WORDS) for _ in range(rng.choice((1, 3, 3, 5, 9)))]
    text = (
        " ".join(words) if rng.random() < 0.7 else f"lr {rng.choice(_WORDS)} {rng.choice(_WORDS)}"
    )
    if rng.random() < 0.05:
        text = rng.choice(["(", "not ", "-", "lr == ", "["]) * rng.choice((90, 5000)) + text
    chosen = selector(text)
    for row in ({"lr": 0.1, "model": "vgg9"}, {"lr": None}, {}):
        if not isinstance(chosen(row), bool):
            raise Wrong("neither true nor false")
