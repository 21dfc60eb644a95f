"""The pages of the measured trainings: results/{atlas2,standard,rivals,unseen}/README.md.

    python -m research.atlases

The first two are made from the exports that ship with the package, as research/trainings.py reads
them. Of rivals and of trainings that were predicted first, runs.csv names every run of the export.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from research.markdown import folded, table
from research.recipes import BN_FASTER, FASTER, MOST, interval, rows, summary, two_rows
from research.recipes import by_rows as advice_of
from research.trainings import PLAIN, ROOT, Arm, Measured, measured
from tstar.law import law_temperature

RESULTS = ROOT / "results"
TEXT = Path(__file__).with_suffix(".md")
OPTIMIZERS = {"sgd": "SGD", "adamw": "AdamW"}
BN_LAW = Arm(True, "law")
ARMS = {
    "rate × 3": FASTER,
    "BN, T = 1": Arm(True),
    "BN, the law's T": BN_LAW,
    "BN, the law's T, rate × 3": BN_FASTER,
    "BN, the law's T, rate × 10": Arm(True, "law", 10.0),
}
LONGER = {
    "rate ÷ 3": Arm(rate=0.33),
    **ARMS,
    "BN, the paper's T (cn)": Arm(True, "cn"),
    "BN, the law's T, rate × 3, decay × 3": Arm(True, "law", 3.0, 3.0),
    "decay × 3": Arm(decay=3.0),
    "decay × 10": Arm(decay=10.0),
    "output layer × 10": Arm(head=10.0),
    "output layer × 100": Arm(head=100.0),
}
OWN_RIVALS = {
    "BN, the law's T": BN_LAW,
    "Insert LN": Arm(method="insert-ln"),
    "learned T": Arm(method="learned-temperature"),
    "label smoothing": Arm(method="label-smoothing"),
}
COLUMNS = ["n", "median", "mean", "80 % range", "gained", "lost", "lost > 2", "worst"]
KEY = ["optimizer", "steps", "batch_size", "samples", "num_features", "num_classes"]
Part = Callable[[Measured], bool]


def numbers(gains: Sequence[float]) -> list[str]:
    """The columns; gains are raw points over plain."""
    if not len(gains):
        return ["0", *["–"] * (len(COLUMNS) - 1)]
    g = summary(gains)
    lost = np.mean(np.array(gains) < -2)
    points = [f"{g.median:+.1f}", f"{g.mean:+.1f}", f"{g.low:+.1f} to {g.high:+.1f}"]
    return [
        str(g.n),
        *points,
        *(f"{s:.0%}" for s in (g.gained, g.lost, lost)),
        f"{min(gains):+.1f}",
    ]


def arms_table(
    every: Sequence[Measured], parts: Mapping[str, Part], arms: Mapping[str, Arm]
) -> str:
    lines = []
    for part, belongs in parts.items():
        mine = [m for m in every if belongs(m)]
        for name, arm in arms.items():
            gains = [g for m in mine if (n := m.nearest(arm)) and (g := m.gain(n)) is not None]
            if len(gains) > 2:
                lines.append([f"{part}: {name}", *numbers(gains)])
    return table(["trainings: arm", *COLUMNS], lines)


def gains_figure(folder: str, columns: Mapping[str, Sequence[float]], label: str) -> None:
    """One dot per training and arm, a bar at the median; beyond 15 points at the edge."""
    figure, axes = plt.subplots(figsize=(7, 0.4 * len(columns) + 1), layout="constrained")
    random = np.random.default_rng(0)
    for y, gains in enumerate(reversed(columns.values())):
        held = np.clip(gains, -15, 15)
        axes.plot(held, y + random.uniform(-0.25, 0.25, len(held)), ".", ms=3, color="#0072b2")
        axes.plot(np.median(gains), y, "|", ms=18, mew=2, color="#222222")
    axes.axvline(0, color="#222222", lw=0.8)
    axes.set_yticks(range(len(columns)), list(columns)[::-1])
    axes.set_xlabel(label)
    figure.savefig(RESULTS / folder / "gains.png", dpi=130, metadata={"Software": None})
    plt.close(figure)


def is_new(m: Measured, optimizer: str = "") -> bool:
    t = m.case.training
    return t.scenario == "scratch" and optimizer in ("", t.optimizer)


def whole(m: Measured) -> bool:
    return is_new(m) and m.case.norms != "frozen"


# -- the second atlas ------------------------------------------------------------------------------
def both_optimizers(words: str, belongs: Part) -> dict[str, Part]:
    return {
        f"{words}, {name}": lambda m, o=optimizer: belongs(m) and is_new(m, o)
        for optimizer, name in OPTIMIZERS.items()
    }


PARTS: dict[str, Part] = {
    **both_optimizers("native", lambda m: whole(m) and not m.widened),
    **both_optimizers("widened", lambda m: m.widened),
    **both_optimizers("linear probes", lambda m: m.case.norms == "frozen"),
    "native, 1,000 steps and more": (
        lambda m: whole(m) and not m.widened and m.case.training.steps >= 1000
    ),
    "fine-tuned": lambda m: not is_new(m),
}


def tuned_table(plain: Sequence[Measured], tuned: Sequence[Measured]) -> str:
    """What six plain runs find, and BN with the law's T at the rate and decay that they find."""
    lines = []
    for part, belongs in PARTS.items():
        some = [(m, t) for m, t in zip(plain, tuned, strict=True) if belongs(m)]
        found = []
        for m, t in some:
            mine, theirs = m.runs[PLAIN], t.runs[PLAIN]
            seeds = mine.keys() & theirs.keys()
            found.append(sum(theirs[s] - mine[s] for s in seeds) / len(seeds))
        over = [g for _, t in some if (g := t.gain(BN_LAW)) is not None]
        for name, gains in {
            "tuned plain over plain": found,
            "BN, T over tuned plain": over,
        }.items():
            lines.append([f"{part}: {name}", *numbers(gains)])
    return table(["trainings", *COLUMNS], lines)


def law_table(every: Sequence[Measured]) -> str:
    """A half, twice and four times the law's T, over the law's T."""
    lines = []
    for optimizer, words in OPTIMIZERS.items():
        for times in (0.5, 2.0, 4.0):
            gains = []
            for m in every:
                t, c = m.case.training, m.case
                if not is_new(m, optimizer):
                    continue
                wanted = times * max(law_temperature(c.num_features, c.num_classes, t), 0.5)
                arm = next((a for a in m.runs if _at(a, wanted)), None)
                if arm is not None and (g := m.gain(arm, BN_LAW)) is not None:
                    gains.append(g)
            lines.append([f"{words}, {times:g} times the law's T", *numbers(gains)])
    return table(["over the law's T", *COLUMNS], lines)


def _at(arm: Arm, T: float) -> bool:
    known = arm.temperature.replace(".", "").isdigit()
    near = known and abs(float(arm.temperature) / T - 1) < 0.03
    return arm == Arm(True, arm.temperature) and near


def atlas2() -> dict[str, str]:
    every = list(measured("atlas2"))
    new = [m for m in every if is_new(m)]
    native = [m for m in new if whole(m) and not m.widened]
    columns = {
        name: [g for m in native if (n := m.nearest(a)) and (g := m.gain(n)) is not None]
        for name, a in ARMS.items()
    }
    gains_figure("atlas2", columns, "points of test accuracy over plain, native output layers")
    steps = [m.case.training.steps for m in new]
    samples = [m.case.training.samples for m in new]
    return {
        "counts": (
            f"{len(every)} trainings, {len(new)} of them from scratch: {len(native)} native and trained whole, "
            f"{sum(m.widened for m in new)} with a widened output layer, "
            f"{sum(m.case.norms == 'frozen' for m in new)} linear probes. Medians: {np.median(steps):.0f} "
            f"steps, {np.median(samples):.0f} samples."
        ),
        "arms": arms_table(every, PARTS, ARMS),
        "tuned": tuned_table(every, list(measured("atlas2", tuned=True))),
        "law": law_table(every),
        "rivals": arms_table(
            [m for m in new if Arm(method="insert-ln") in m.runs], {"all": is_new}, OWN_RIVALS
        ),
    }


# -- the standard atlas ----------------------------------------------------------------------------
def standard() -> dict[str, str]:
    every = list(measured("standard", fewest=1))
    full = [m for m in every if len(m.runs) >= 8]
    short = [m for m in every if m.case.training.steps == 800 and m.data == "gtsrb_32"]
    parts: dict[str, Part] = both_optimizers("from scratch", is_new) | {
        "fine-tuned": lambda m: not is_new(m)
    }
    new = [m for m in full if is_new(m)]
    columns = {
        name: gains
        for name, a in LONGER.items()
        if len(gains := [g for m in new if (g := m.gain(a)) is not None]) > 2
    }
    gains_figure("standard", columns, "points of test accuracy over plain, from scratch")
    lines = []
    for m in full:
        values = [m.gain(a) for a in LONGER.values()]
        cells = ["–" if v is None else f"{v:+.1f}" for v in values]
        name = f"{m.network} M={m.case.num_features}, {m.data}, {OPTIMIZERS[m.case.training.optimizer]}"
        lines.append([name, f"{np.mean([*m.runs[PLAIN].values()]):.1f}", *cells])
    wide = []
    for m in sorted(short, key=lambda m: (m.network, m.case.num_features, m.widened)):
        name = f"{m.network} M={m.case.num_features}, {'widened' if m.widened else 'native'}"
        cells = [f"{m.gain(a):+.1f}" for a in (BN_LAW, BN_FASTER)]
        wide.append([name, f"{np.mean([*m.runs[PLAIN].values()]):.1f}", *cells])
    (paper,) = (m for m in every if m.case.training.steps > 50_000)
    protocol = [
        [f"T = {a.temperature}, {'BN' if a.norm else 'no norm'}", f"{accuracy[0]:.2f}"]
        for a, accuracy in paper.runs.items()
    ]
    return {
        "counts": f"{len(full)} trainings with all their arms, {len(new)} of them from scratch.",
        "arms": arms_table(full, parts, LONGER),
        "each": table(["training", "plain %", *LONGER], lines),
        "wide": table(["network", "plain %", "BN, the law's T", "and rate × 3"], wide),
        "protocol": table(["run", "test %"], protocol),
    }


# -- rivals, and trainings that were predicted first -----------------------------------------------
def key_of(m: Measured) -> tuple[Any, ...]:
    t, c = m.case.training, m.case
    numbers = (t.steps, t.batch_size, t.samples, c.num_features, c.num_classes)
    return (t.optimizer, *numbers)


@cache
def by_key(source: str) -> dict[tuple[Any, ...], Measured]:
    return {key_of(m): m for m in measured(source)}


def first_seed(m: Measured) -> Measured:
    runs = {arm: {0: by[0]} for arm, by in m.runs.items() if 0 in by}
    return replace(m, runs=runs)


def beside_rivals(source: str, folder: str, least: int) -> dict[str, str]:
    """Each rival on its trainings, the table of recipes on the same ones, and the difference."""
    runs = pd.read_csv(RESULTS / folder / "runs.csv")
    runs = runs[(runs["seed"] == 0) & ~runs["rival"].isin(("plain", "advice"))]
    trainings, table_of = by_key(source), advice_of(rows())
    lines, columns = [], {}
    for rival, part in runs.groupby("rival"):
        found = []
        for row in part.itertuples():
            m = trainings.get(tuple(getattr(row, name) for name in KEY))
            ours = None if m is None else table_of(first_seed(m))
            if ours is not None:
                found.append((m, float(row.gain), ours))
        if len(found) < least:
            continue
        ms, gains, ours = zip(*found, strict=True)
        held = np.clip(ours, -MOST, MOST) - np.clip(gains, -MOST, MOST)
        mean, low, high = interval(held, ms)
        over = f"{mean:+.1f} ({low:+.1f} to {high:+.1f})"
        columns[str(rival)] = gains
        same = f"{np.median(ours):+.1f} / {np.mean(ours):+.1f}"
        lines.append([str(rival), *numbers(gains), same, over])
    lines.sort(key=lambda line: -float(line[3]))
    gains_figure(folder, columns, "points of test accuracy over plain, first seed")
    head = [*COLUMNS, "the table there: median / mean", "table minus rival, capped (95 %)"]
    return {"rivals": table(["rival", *head], lines)}


def rivals() -> dict[str, str]:
    return beside_rivals("atlas2", "rivals", 30)


def unseen() -> dict[str, str]:
    runs = pd.read_csv(RESULTS / "unseen" / "runs.csv")
    names = ["network", *KEY]
    told = runs[runs["rival"] == "advice"].groupby(names)["gain"].mean()
    ranges = pd.read_csv(RESULTS / "unseen" / "predictions.csv")
    lines = [["all", *numbers(list(told))]]
    lines += [[OPTIMIZERS[o], *numbers(list(g))] for o, g in told.groupby("optimizer")]
    lines.append(["all but the best one", *numbers(sorted(told)[:-1])])
    constant = [g for m in measured("unseen") if is_new(m) and (g := two_rows(m)) is not None]
    lines.append(["one recipe for all, where it was run", *numbers(constant)])
    index = ranges.rename(columns={"batch": "batch_size", "M": "num_features"})
    joined = index.merge(told.rename("came").reset_index(), on=["optimizer", "steps", "samples"])
    acted = joined[joined["action"] != "leave"]
    inside = acted["came"].between(acted["low"], acted["high"]).mean()
    fresh = runs[runs["seed"] == 1].pivot_table(index=names, columns="rival", values="gain")
    both = fresh[["advice", "TPE, 15 runs"]].dropna()
    random = np.random.default_rng(0)
    drawn = [both.iloc[random.integers(0, len(both), len(both))].mean() for _ in range(2000)]
    shares = [100 * d["advice"] / d["TPE, 15 runs"] for d in drawn]
    low, high = np.quantile(shares, [0.025, 0.975])
    share = 100 * both["advice"].mean() / both["TPE, 15 runs"].mean()
    return beside_rivals("unseen", "unseen", 5) | {
        "advice": table(["trainings", *COLUMNS], lines),
        "inside": f"{100 * inside:.0f} % of {len(acted)}",
        "search": (
            f"{both['advice'].mean():+.1f} points against {both['TPE, 15 runs'].mean():+.1f} of the search, "
            f"{share:.0f} % ({low:.0f} to {high:.0f}) of it, on {len(both)} trainings and one fresh seed each"
        ),
    }


def main() -> None:
    parts = TEXT.read_text(encoding="utf-8").split("<!-- page ")[1:]
    pages = dict(part.split(" -->\n", 1) for part in parts)
    for folder, make in {
        "atlas2": atlas2,
        "standard": standard,
        "rivals": rivals,
        "unseen": unseen,
    }.items():
        tables = make()
        values = {n: folded("The table", v) if v.startswith("|") else v for n, v in tables.items()}
        text = pages[folder].format(**values).strip() + "\n"
        (RESULTS / folder / "README.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
