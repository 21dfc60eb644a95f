"""What the doors are tried with: odd values, wounded files, and the checks of what comes back."""

from __future__ import annotations

import json
import math
import random
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

ODD: list[Any] = [
    *(0, -1, 1, 2, 3.5, 1e-320, 1e308, 10**400, 2**63, 2**64, -0.0),
    *(math.nan, math.inf, -math.inf, True, False, None, "", "64", "\x00", "x" * 5000, b"64"),
    *([], {}, (), [64], {"a": 1}, set(), object(), complex(1, 1), Fraction(1, 3), Decimal("NaN")),
    *(np.float32(64), np.int8(-3), np.True_, np.array(64), np.array([64]), np.array("64")),
    *(np.float64("nan"), np.complex128(3), np.datetime64("2020-01-01"), range(3), len, Ellipsis),
]
TOKENS = [
    *("nan", "inf", "-inf", "1e999", "-1", "0", "10" * 30, "true", "null", '""', "[]", "{}", "'"),
    *("[" * 3000, "{" * 3000, "\x00", "\u202e", "🌡", "=1+1", "@x", "[/red]", "<script>", "../../x"),
    *("2020-01-01", "0x1F", "1_0", ",", ";", "\n", "=", "#", "\\", '"'),
]


class Wrong(Exception):
    """An answer that cannot be right."""


def number(rng: random.Random, low: float = 1e-3, high: float = 1e6) -> Any:
    """Mostly a sensible number, sometimes anything."""
    if rng.random() < 0.15:
        return rng.choice(ODD)
    value = math.exp(rng.uniform(math.log(low), math.log(high)))
    return value if rng.random() < 0.5 else max(1, round(value))


def whole(rng: random.Random) -> Any:
    """Mostly a whole number, as a width or a number of classes is."""
    return (
        number(rng, 1, 1e5)
        if rng.random() < 0.2
        else rng.choice((rng.randint(2, 300), 2 ** rng.randint(1, 14)))
    )


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Flipped, cut, doubled, overwritten: a few wounds."""
    out = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at, size = rng.randrange(max(1, len(out))), rng.choice((1, 1, 2, 4, 8, 64))
        kind = rng.randrange(6)
        if kind == 0 and out:
            out[at % len(out)] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del out[at : at + size]
        elif kind == 2:
            out[at:at] = out[at : at + size] * rng.choice((1, 100))
        elif kind == 3:
            out[at : at + size] = rng.choice((b"\xff", b"\x00", b"\x7f", b"\x80")) * size
        elif kind == 4:
            out[at:at] = rng.randbytes(size)
        else:
            del out[at:]
    return bytes(out)


def mutated_text(text: str, rng: random.Random) -> str:
    """Words replaced, lines doubled, dropped and exchanged."""
    lines = text.splitlines()
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at = rng.randrange(len(lines)) if lines else 0
        kind = rng.randrange(5)
        if not lines or kind == 0:
            lines.insert(at, rng.choice(TOKENS))
        elif kind == 1:
            lines.insert(at, lines[rng.randrange(len(lines))])
        elif kind == 2:
            del lines[at]
        else:
            words = lines[at].split(" ")
            words[rng.randrange(len(words))] = rng.choice(TOKENS)
            lines[at] = " ".join(words)
    return "\n".join(lines)


def is_json(value: Any) -> None:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise Wrong(f"not JSON: {error}") from error


def positive(value: float, what: str) -> float:
    if not (math.isfinite(value) and value > 0):
        raise Wrong(f"{what} = {value!r}")
    return float(value)
