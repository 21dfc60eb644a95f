"""Make the table of recipes from the measured trainings, and compare it with other ways to advise.

    python -m research.recipes      # → src/tstar/recipes.json, results/recipes/README.md

research/recipes.toml has the rows that one remembers and what else was thought of. A candidate
becomes a row only if it beats what would be advised without it beyond its error, and still does
where other networks and other data sets alone decide. What version 0.2 advised without the
training's network and data set is recorded in results/recipes/kernel.csv; its code is in commit
d901fcb.
"""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import tstar
from research.markdown import table as as_table
from research.trainings import (
    PLAIN,
    ROOT,
    SOURCES,
    Arm,
    Measured,
    from_the_fresh_test,
    from_the_paper,
    measured,
)
from tstar.recipes import Gain, Row, cells, facts

FOLDER = ROOT / "results" / "recipes"
SHIPPED = Path(tstar.__file__).with_name("recipes.json")
MOST = 10.0  # points: in comparisons a gain counts at most so much, so that no one run decides
DRAWS = 2000
USUAL_DECAY = {"sgd": 5e-4, "adam": 0.01}
HIGHEST_HEAD_RATE = 0.01  # of Adam's family
NEW = {"scenario": "scratch", "tuned": False}
TUNED = {"scenario": "scratch", "tuned": True}
PRETRAINED = {"scenario": "finetune", "tuned": False}
WORDS = {  # of sources
    "atlas2": "second atlas",
    "long": "long runs",
    "standard": "standard atlas",
    "unseen": "unseen trainings",
    "adamw": "AdamW by classes",
    "fresh": "fresh test",
    "paper": "the paper",
}


# -- the rows --------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Thought(Row):
    """A row that was thought of: no row of the table changes the decay or the head's rate alone.

    ``decay`` is in multiples of the usual one, ``head_rate`` of the rate of the training.
    """

    decay: float | None = None
    head_rate: float | None = None

    @property
    def changes(self) -> bool:
        return super().changes or self.decay is not None or self.head_rate is not None


@dataclass(frozen=True)
class Candidate:
    """A row, and how it comes into the table.

    ``rule``: "base" is always there; "printed" has the paper's numbers; a "veto" is for the harms
    of the rows after it.
    """

    row: Row
    rule: str = ""


@cache
def candidates() -> list[Candidate]:
    text = Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    made = []
    for entry in tomllib.loads(text)["rows"]:
        rule = entry.pop("rule", "")
        made.append(Candidate(Thought(**entry, known=entry["do"] != "not known."), rule))
    return made


def base() -> list[Row]:
    return [c.row for c in candidates() if c.rule == "base" and NEW.items() <= c.row.where.items()]


# -- what an advice gained -------------------------------------------------------------------------
Advice = Callable[[Measured], float | None]  # points over plain; nothing if it was not measured


def wanted(m: Measured, row: Thought) -> Arm:
    """The row in multiples of the user's numbers, which it never lowers."""
    t = m.case.training
    rate = decay = head = 1.0
    if row.rate is not None:
        rate = max(1.0, row.rate * m.case.usual_lr / t.lr)
    if row.decay is not None and t.weight_decay:
        decay = max(1.0, round(row.decay * USUAL_DECAY[t.family] / t.weight_decay, 2))
    if row.head_rate is not None:
        highest = HIGHEST_HEAD_RATE / t.lr if t.family == "adam" else row.head_rate
        head = float(f"{max(1.0, min(row.head_rate, highest)):.3g}")
    T = row.temperature
    return Arm(row.norm is not None, "1" if T is None else str(T), rate, decay, head)


def gain(m: Measured, row: Thought) -> float | None:
    """Of the arm that was run nearest to the row's rate, within a factor of two."""
    return always(wanted(m, row))(m) if row.changes else 0.0


def by_rows(rows: Sequence[Row]) -> Advice:
    return lambda m: gain(m, first(m, rows))


def first(m: Measured, rows: Sequence[Row]) -> Row:
    """The row that counts."""
    known = facts(m.case)
    return next(row for row in rows if row.meets(known))


def always(arm: Arm) -> Advice:
    """The same for all, in multiples of the user's rate."""

    def advise(m: Measured) -> float | None:
        nearest = m.nearest(arm)
        return None if nearest is None else m.gain(nearest)

    return advise


BN_FASTER, FASTER = Arm(True, "law", 3.0), Arm(rate=3.0)
ACTIONS = {  # of version 0.2
    "leave": PLAIN,
    "rate": FASTER,
    "decay": Arm(decay=3.0),
    "bn": Arm(True, "law"),
    "bn1": Arm(True),
    "bn_rate": BN_FASTER,
    "paper_cn": Arm(True, "cn"),
    "paper_csgcn": Arm(True, "csgcn"),
}


@cache
def _recorded() -> dict[tuple[Any, ...], str]:
    rows = pd.read_csv(FOLDER / "kernel.csv")
    names = ["optimizer", "steps", "batch_size", "samples", "num_features", "num_classes"]
    keys = zip(*(rows[name] for name in names), rows["tuned"].astype(bool), rows["lr"], strict=True)
    return {
        (*key[:-1], f"{key[-1]:.2g}"): a for key, a in zip(keys, rows["without_both"], strict=True)
    }


def version_2(m: Measured) -> float | None:
    """What similar trainings said, without the training's network and data set."""
    t, c = m.case.training, m.case
    key = (t.optimizer, t.steps, t.batch_size, t.samples, c.num_features, c.num_classes, t.tuned)
    action = _recorded().get((*key, f"{t.lr:.2g}"))
    if action is None:
        return None
    if action == "head_lr":
        return m.gain(Arm(head=100.0 if t.scenario == "finetune" else 10.0))
    return always(ACTIONS[action])(m)


# -- statistics ------------------------------------------------------------------------------------
def interval(values: np.ndarray, some: Sequence[Measured]) -> tuple[float, float, float]:
    """Mean and 95 % interval: networks and data sets are drawn anew, both at once."""
    random = np.random.default_rng(0)
    weights = np.ones((DRAWS, len(values)))
    for names in ([m.network for m in some], [m.data for m in some]):
        _, which = np.unique(names, return_inverse=True)
        count = which.max() + 1
        drawn = random.multinomial(count, np.full(count, 1 / count), DRAWS)
        weights *= drawn[:, which]
    weights = weights[weights.sum(1) > 0]
    means = (weights @ values) / weights.sum(1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(values.mean()), float(low), float(high)


def summary(gains: Sequence[float]) -> Gain:
    g = np.array(gains)
    low, high = np.quantile(g, [0.1, 0.9])
    shares = (float(np.mean(g > 1)), float(np.mean(g < -1)))
    points = (np.median(g), g.mean(), low, high)
    return Gain(len(g), *(round(float(p), 2) for p in points), *(round(s, 3) for s in shares))


def paired(
    every: Sequence[Measured], one: Advice, other: Advice
) -> tuple[list[Measured], np.ndarray]:
    """The trainings in which both were measured and differ, and the differences of capped gains."""
    both = [(m, one(m), other(m)) for m in every]
    both = [(m, a, b) for m, a, b in both if a is not None and b is not None and a != b]
    held = [np.clip(a, -MOST, MOST) - np.clip(b, -MOST, MOST) for _, a, b in both]
    return [m for m, _, _ in both], np.array(held, dtype=float)


def one_network(some: Sequence[Measured]) -> bool:
    return len({m.network.removesuffix("_lora") for m in some}) == 1


def left_out(some: Sequence[Measured], values: np.ndarray) -> float:
    """The mean if a training counts only where other networks and data sets would choose the row.

    Of one network only the data sets can be left out.
    """
    chosen, alone = [], one_network(some)
    for m, value in zip(some, values, strict=True):
        others = [(alone or m.network != o.network) and m.data != o.data for o in some]
        rest = values[others]
        believed = len(rest) > 2 and rest.mean() > rest.std(ddof=1) / len(rest) ** 0.5
        chosen.append(value if believed else 0.0)
    return float(np.mean(chosen))


# -- the table -------------------------------------------------------------------------------------
@cache
def trainings() -> tuple[Measured, ...]:
    """All, once for users as they were drawn and once for those who have tuned."""
    ours = [m for tuned in (False, True) for s in SOURCES for m in measured(s, tuned=tuned)]
    return (*ours, *from_the_fresh_test(), *from_the_paper())


@dataclass(frozen=True)
class Tried:
    """What a candidate gained over the rows that would else count."""

    candidate: Candidate
    some: Sequence[Measured]
    difference: tuple[float, float, float]
    left_out: float

    @property
    def passes(self) -> bool:
        return self.difference[1] > 0 and self.left_out > 0

    @property
    def verdict(self) -> str:
        if not self.some:
            return "no: fewer than two trainings"
        if self.candidate.rule in ("printed", "veto"):
            return f"row: {self.candidate.rule}"
        return f"row{' (one network)' * one_network(self.some)}" if self.passes else "no"

    @property
    def row(self) -> bool:
        return self.candidate.rule == "base" or self.verdict.startswith("row")


def attempt(candidate: Candidate, before: Sequence[Row], after: Sequence[Row]) -> Tried:
    """Beside what the other rows advise; the paper's printed numbers are over plain alone."""
    nothing = Tried(candidate, (), (0.0, 0.0, 0.0), 0.0)
    if candidate.rule == "base":
        return nothing
    row, paper = candidate.row, candidate.rule == "printed"
    every = [*before, row, *after]
    mine = [m for m in trainings() if first(m, every) is row and (m.source == "paper") == paper]
    other: Advice = always(PLAIN) if paper else by_rows([*before, *after])
    some, values = paired(mine, lambda m: gain(m, row), other)
    if len(some) < 2:
        return nothing
    return Tried(candidate, some, interval(values, some), left_out(some, values))


@cache
def attempts() -> tuple[Tried, ...]:
    """One after the other; of those that come later only the base counts."""
    every = candidates()
    before: list[Row] = []
    tried = []
    for number, candidate in enumerate(every, 1):
        after = [later.row for later in every[number:] if later.rule == "base"]
        tried.append(attempt(candidate, before, after))
        if tried[-1].row:
            before.append(candidate.row)
    return tuple(tried)


def rows() -> list[Row]:
    """The table without its gains."""
    return [t.candidate.row for t in attempts() if t.row]


def with_gains() -> list[Row]:
    """Every row with what the trainings gained that meet it: native output layers and widened ones."""
    made = []
    every = rows()
    for row in every:
        paper = row.source.startswith("printed")
        mine = [m for m in trainings() if first(m, every) is row and (m.source == "paper") == paper]
        known = [(m, g) for m in mine if row.changes and (g := gain(m, row)) is not None]
        parts = {
            name: [g for m, g in known if m.widened == wide]
            for name, wide in {"native": False, "widened": True}.items()
        }
        sources = Counter(WORDS[m.source] for m, _ in known)
        text = ", ".join(f"{name} {count}" for name, count in sources.items())
        text += f"; {len({m.network for m, _ in known})} networks" if known else ""
        numbers = {name: summary(gains) for name, gains in parts.items() if gains}
        made.append(
            replace(row, source=f"{row.source} ({text})" if row.source else text, **numbers)
        )
    return made


# -- the page --------------------------------------------------------------------------------------
def new(source: str) -> Callable[[Measured], bool]:
    return lambda m: m.source == source and facts(m.case).items() >= NEW.items()


def native_whole(m: Measured) -> bool:
    return new("atlas2")(m) and not m.widened and m.case.norms != "frozen"


SETS: dict[str, Callable[[Measured], bool]] = {
    "Second atlas, new": new("atlas2"),
    "Of these native and trained whole": native_whole,
    "Standard atlas, new": new("standard"),
    "Unseen trainings, new": new("unseen"),
    "AdamW by classes, ten and more": lambda m: new("adamw")(m) and m.case.num_classes >= 10,
    "AdamW by classes, fewer": lambda m: new("adamw")(m) and m.case.num_classes < 10,
    "Tuned users": lambda m: facts(m.case).items() >= TUNED.items(),
    "Fine-tuned": lambda m: m.source != "paper" and facts(m.case).items() >= PRETRAINED.items(),
}


def advices(every: Sequence[Measured]) -> dict[str, Advice]:
    tuned = any(m.case.training.tuned for m in every)
    constants = {
        "BN, the law's T, your rate × 3": always(BN_FASTER),
        "your rate × 3": always(FASTER),
        "SGD: BN, the law's T, your rate × 3; Adam: your rate × 3": two_rows,
        "the two rows, up to three times the usual rate": by_rows([*base(), *rows()[-2:]]),
    }
    if tuned:
        constants = {"BN, the law's T, your rate": always(Arm(True, "law"))}
    return {"the table": by_rows(rows()), "similar trainings, version 0.2": version_2} | constants


def two_rows(m: Measured) -> float | None:
    sgd = m.case.training.family == "sgd"
    return always(BN_FASTER if sgd else FASTER)(m)


def compared(name: str) -> str:
    every = [m for m in trainings() if SETS[name](m) and m.runs.get(PLAIN)]
    known = advices(every)
    lines = []
    for title, advise in known.items():
        gains = np.array([g for m in every if (g := advise(m)) is not None])
        if not len(gains):
            continue
        g = summary(gains)
        some, values = paired(every, known["the table"], advise)
        both = [m for m in every if advise(m) is not None and known["the table"](m) is not None]
        over = "–"
        if len(some) > 1:
            zeros = {id(m): v for m, v in zip(some, values, strict=True)}
            mean, low, high = interval(np.array([zeros.get(id(m), 0.0) for m in both]), both)
            over = f"{mean:+.2f} ({low:+.2f} to {high:+.2f})"
        held = np.clip(gains, -MOST, MOST).mean()
        shares = [f"{share:.0%}" for share in (g.gained, g.lost, float(np.mean(gains < -2)))]
        numbers = [f"{v:+.1f}" for v in (g.median, g.mean, held)]
        lines.append([title, str(g.n), *numbers, *shares, f"{gains.min():+.1f}", over])
    head = ["advice", "n", "median", "mean", "mean, capped", "gained", "lost", "lost > 2", "worst"]
    return as_table([*head, "table minus this (95 %)"], lines)


def candidates_table() -> str:
    lines = []
    for t in attempts():
        if t.candidate.rule == "base":
            continue
        row, networks = t.candidate.row, len({m.network for m in t.some})
        mean, low, high = t.difference
        over = f"{mean:+.2f} ({low:+.2f} to {high:+.2f})" if t.some else "–"
        n = f"{len(t.some)} ({networks})" if t.some else "0"
        rest = f"{t.left_out:+.2f}" if t.some else "–"
        lines.append([f"{row.name}: {row.do}", n, over, rest, t.verdict])
    head = ["candidate", "n (networks)", "gain over the other rows (95 %)", "left out", "verdict"]
    return as_table(head, lines)


def harm(table: Sequence[Row]) -> str:
    """Of the trainings as drawn, and of users who have tuned."""
    ours = [m for m in trainings() if m.source != "paper"]
    parts = []
    for words, where in {"new": NEW, "tuned": TUNED, "fine-tuned": PRETRAINED}.items():
        some = [m for m in ours if where.items() <= facts(m.case).items()]
        gains = np.array([g for m in some if (g := by_rows(table)(m)) is not None])
        lost = f"{np.mean(gains < -2):.1%} lost more than two points"
        parts.append(f"of {len(gains)} {words} trainings {lost} (worst {gains.min():+.1f})")
    return "; ".join(parts) + "."


def page(table: Sequence[Row]) -> str:
    vetoes = [t.candidate.row for t in attempts() if t.candidate.rule == "veto"]
    drawn = [m for m in trainings() if not m.case.training.tuned]
    count = Counter(m.source for m in drawn)
    header, *body = cells(table)
    values = {
        "table": as_table(header, body, left=2),
        "harms": f"Harms: {harm(rows())}",
        "veto": harm([row for row in rows() if row not in vetoes]),
        "sources": ", ".join(f"{WORDS[name]} {n}" for name, n in count.items()),
        "steps": np.median([m.case.training.steps for m in drawn if m.source != "paper"]),
        "candidates": candidates_table(),
        "sets": "\n\n".join(f"### {name}\n\n{compared(name)}" for name in SETS),
    }
    return Path(__file__).with_suffix(".md").read_text(encoding="utf-8").format(**values)


def main() -> None:
    table = with_gains()
    blank = {item.name: item.default for item in fields(Row)}
    entries = [
        {name: value for name, value in asdict(row).items() if value != blank.get(name)}
        for row in table
    ]
    text = json.dumps({"rows": entries}, indent=1, ensure_ascii=False)
    SHIPPED.write_text(text + "\n", encoding="utf-8")
    (FOLDER / "README.md").write_text(page(table), encoding="utf-8")


if __name__ == "__main__":
    main()
