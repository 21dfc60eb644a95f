"""Hostile inputs at the doors that read files of data and of weights: npz, CSV, image folders, checkpoints."""

from __future__ import annotations

import math
import os
import random
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from fuzz_inputs import Wrong, mutated, mutated_text


def npz(rng: random.Random, folder: Path) -> None:
    from tstar.data import load

    draw = np.random.default_rng(rng.randrange(2**32))
    shape = rng.choice([(4, 4, 3), (4, 4), (5,), (0,), (2, 2, 2, 2)])
    kind = rng.choice(["uint8", "float32", "float64", "int64", "complex64", "U2"])
    arrays: dict[str, Any] = {}
    for part, n in (("train", rng.randint(0, 20)), ("test", rng.randint(0, 8))):
        arrays[f"x_{part}"] = (draw.random((n, *shape)) * 255).astype(kind)
        y = draw.integers(0, 3, n)
        arrays[f"y_{part}"] = rng.choice(
            [y, y, y.astype(float), y * 10**7, y.astype("uint64") + 2**63, -y]
        )
    if rng.random() < 0.3:
        arrays.pop(rng.choice(list(arrays)))
    file = BytesIO()
    np.savez_compressed(file, **arrays)
    data = file.getvalue()
    path = folder / "data.npz"
    path.write_bytes(mutated(data, rng) if rng.random() < 0.6 else data)
    _sound(load(str(path)))


TEXTS = "label,text\n" + "".join(f"{i % 3},word{i} and more of it\n" for i in range(30))


def table(rng: random.Random, folder: Path) -> None:
    from tstar.data import load

    path = folder / "texts.csv"
    text = mutated_text(TEXTS, rng)
    path.write_bytes(
        mutated(text.encode(), rng) if rng.random() < 0.3 else text.encode("utf-8", "replace")
    )
    _sound(load(str(path)))


def _sound(data: Any) -> None:
    for part in ("train", "test"):
        x, y = getattr(data, f"x_{part}"), getattr(data, f"y_{part}")
        if len(x) != len(y) or (
            len(y) and not 0 <= int(y.min()) <= int(y.max()) < data.num_classes
        ):
            raise Wrong("labels outside the classes")


def images(rng: random.Random, folder: Path) -> None:
    import shutil

    from PIL import Image

    import tstar

    root = folder / "images"
    shutil.rmtree(root, ignore_errors=True)
    for label in range(rng.choice((0, 1, 2, 3, 3, 3))):
        target = root / rng.choice(
            [f"class {label}", f"[/red]{label}", f"{_turned()}{label}", ".hidden"]
        )
        target.mkdir(parents=True, exist_ok=True)
        for i in range(rng.choice((0, 1, 7, 7, 7))):
            file = BytesIO()
            mode, size = (
                rng.choice(["L", "RGB", "P", "RGBA", "1"]),
                (rng.randint(1, 9), rng.randint(1, 9)),
            )
            Image.new(mode, size, rng.randrange(2)).save(file, rng.choice(["PNG", "GIF"]))
            data = file.getvalue()
            name = f"{i}.{rng.choice(['png', 'png', 'png', 'gif', 'txt'])}"
            (target / name).write_bytes(mutated(data, rng) if rng.random() < 0.05 else data)
    float(tstar.csg(str(root)))


def _turned() -> str:
    """Turns the text after it around; nothing where a file's name cannot hold it (an ASCII locale)."""
    try:
        os.fsencode("\u202e")
    except UnicodeEncodeError:
        return ""
    return "\u202e"


def checkpoint(rng: random.Random, folder: Path) -> None:
    import torch
    from safetensors.torch import save

    import tstar
    from tstar.cli.fold_commands import _load
    from tstar.surgery.checkpoints import find_state_dict, fold_state_dict

    torch.manual_seed(0)
    model = tstar.temper(torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2)), 2.0)
    state = {key: value.clone() for key, value in model.state_dict().items()}
    name = rng.choice(list(state))
    kind = rng.randrange(4)
    if kind == 0:
        state.pop(name)
    elif kind == 1:
        state[name] = state[name].double() * rng.choice([math.nan, math.inf, -1, 0])
    elif kind == 2:
        state[name] = state[name].reshape(-1)[:1]
    if rng.random() < 0.5:
        path, data = (
            folder / "model.safetensors",
            save({k: v.contiguous() for k, v in state.items()}),
        )
    else:
        file = BytesIO()
        torch.save(state, file)
        path, data = folder / "model.pt", file.getvalue()
    path.write_bytes(mutated(data, rng) if kind == 3 else data)
    saved, _ = _load(path)
    folded = fold_state_dict(find_state_dict(saved))
    folded = folded[0] if isinstance(folded, tuple) else folded
    if kind == 3:
        return  # a flipped bit of a weight is another weight
    for key, value in folded.items():
        if key.startswith("1.") and value.is_floating_point() and not value.isfinite().all():
            raise Wrong(f"{key} is not finite")
