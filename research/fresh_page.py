"""The tables of results/fresh/README.md, of as many trainings as are whole: all arms, both seeds."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import t as student

from research import fresh
from research.markdown import OPTIMIZERS, fill, table

SCENARIOS = {"scratch": "from scratch", "finetune": "fine-tuned"}
TABLE = "the table"
DRAWS = 2000
FEWEST = 5  # trainings, from which on an interval is printed
MOST = 10.0  # points, that a gain or a loss counts at most where it is capped
HEAD = ["n", "as plain", "mean (95 %)", "capped", "median", "gained", "lost", "lost > 2", "worst"]


def gains(training: fresh.Drawn, found: fresh.Results) -> Iterator[dict[str, Any]]:
    """A row for each arm of a whole training: points over plain, the mean of both seeds."""
    known = fresh.whole(training, found)
    if known is None:
        return
    numbers, by_seed = known
    came = {
        arm: np.array([fresh.points(specs[arm], training, found) for specs in by_seed])
        for arm in by_seed[0]
    }
    keys = {arm: fresh.identity(spec) for arm, spec in by_seed[0].items()}
    different = {key: arm for arm, key in keys.items()}
    noise = noise_of([came[arm] for arm in different.values()])
    predicted = fresh.predictions()[training.number, numbers]
    low, high = predicted.low, predicted.high
    for arm, key in keys.items():
        if arm == "plain":
            continue
        gain = (came[arm] - came["plain"]).mean()
        yield {
            **{name: getattr(training, name) for name in ("number", "scenario")},
            "kind": "frozen trunk" if training.norms == "frozen" else training.kind,
            "optimizer": OPTIMIZERS[training.optimizer],
            "user": "tuned" if training.tuned else "as drawn",
            "row": predicted.row,
            "inside": None if low is None else int(low <= gain <= high),
            **{"arm": arm, "gain": gain, "noise": noise, "as plain": key == keys["plain"]},
        }


def noise_of(pairs: Sequence[np.ndarray]) -> float:
    """What 95 % of the differences between two equal arms stay below: each is a mean of two seeds.

    The seeds of a run differ by the same standard deviation in all arms of a training.
    """
    deviation = np.mean([np.var(pair, ddof=1) for pair in pairs]) ** 0.5
    return float(student.ppf(0.975, len(pairs)) * deviation)  # sqrt(2 / 2) times it


def mean(values: pd.Series) -> str:
    """With the interval over trainings that are drawn anew."""
    x = values.to_numpy(float)
    if len(x) < FEWEST:
        return f"{x.mean():+.2f}" if len(x) else "–"
    drawn = x[np.random.default_rng(0).integers(0, len(x), (DRAWS, len(x)))].mean(1)
    low, high = np.quantile(drawn, [0.025, 0.975])
    return f"{x.mean():+.2f} ({low:+.2f} to {high:+.2f})"


def cells(part: pd.DataFrame) -> list[str]:
    """``HEAD``; gained and lost: by more than a point, and in brackets by more than noise, too."""
    gain, noise = part["gain"], part["noise"]
    words = [
        f"{(sign * gain > 1).mean():.0%} ({(sign * gain > noise.clip(1)).mean():.0%})"
        for sign in (1, -1)
    ]
    counts = [str(len(gain)), str(part["as plain"].sum())]
    points = [mean(gain), f"{gain.clip(-MOST, MOST).mean():+.2f}", f"{gain.median():+.2f}"]
    return [*counts, *points, *words, f"{(gain < -2).mean():.0%}", f"{gain.min():+.1f}"]


def arms_table(part: pd.DataFrame) -> str:
    """Every arm over plain, and the table of recipes minus the arm, training by training."""
    by_arm = part.pivot(index="number", columns="arm", values="gain")
    lines = [
        [
            *[arm, *cells(part[part["arm"] == arm])],
            "–" if arm == TABLE else mean(by_arm[TABLE] - by_arm[arm]),
        ]
        for arm in part["arm"].unique()
    ]
    return table(["points over plain", *HEAD, "the table minus this (95 %)"], lines)


def parts_table(part: pd.DataFrame) -> str:
    mine = part[part["arm"] == TABLE]
    groups = [group for name in ("optimizer", "kind") for group in mine.groupby(name)]
    return table(["the table", *HEAD], [[str(value), *cells(some)] for value, some in groups])


def rows_table(every: pd.DataFrame) -> str:
    """What each row predicted, and how often what came lies in its 80 % range.

    Where a user of a search will stand is not known before; each of its ends has the same row.
    """
    asked = [(t, fresh.predictions()[t.number, next(fresh.stands(t))]) for t in fresh.drawn()]
    table_rows, lines = every[every["arm"] == TABLE], []
    for scenario, row in dict.fromkeys((t.scenario, p.row) for t, p in asked):
        mine = [p for t, p in asked if (t.scenario, p.row) == (scenario, row)]
        came = table_rows[(table_rows["row"] == row) & (table_rows["scenario"] == scenario)]
        first, inside, expected = mine[0], "–", "–" if mine[0].known else "not known"
        if first.low is not None:
            expected = f"{first.median:+.1f} ({first.low:+.1f} to {first.high:+.1f})"
            inside = f"{came['inside'].sum():.0f} of {len(came)}"
        words = SCENARIOS[scenario]  # a frozen trunk's row is one from scratch
        name = row if row.startswith(words) else f"{words}: {row}"
        lines.append([name, str(len(mine)), expected, mean(came["gain"]), inside])
    head = ["row", "trainings", "predicted: median (80 % range)", "came: mean (95 %)", "inside"]
    tuning = [p.known for t, p in asked if t.scenario == "finetune"]
    total = table_rows["inside"].dropna()
    words = (
        f"Inside its range: {total.sum():.0f} of {len(total)}. Not known: {tuning.count(False)} of"
    )
    return f"{table(head, lines)}\n\n{words} {len(tuning)} fine-tunings."


def every_training(part: pd.DataFrame) -> str:
    """What each arm gained in each training."""
    names = [*part["arm"].unique()]
    by_arm = part.pivot(index="number", columns="arm", values="gain")
    drawn = {t.number: t for t in fresh.drawn()}
    lines = []
    for number, gain in by_arm[names].iterrows():
        t = drawn[number]
        what = f"{number} {t.network}{', frozen' * (t.norms == 'frozen')}, {t.dataset}"
        how = f"{OPTIMIZERS[t.optimizer]}{', tuned' * t.tuned}"
        points = [f"{value:+.1f}" for value in gain]
        lines.append([f"{what}: {how}, {t.steps:,} steps, K = {t.num_classes}", *points])
    return table(["points over plain", *names], lines)


def search_table(every: pd.DataFrame, found: fresh.Results) -> str:
    """The table beside a search of plain's rate and decay by 15 runs, where both are whole."""
    lines, both = [], []
    for training in fresh.searched():
        numbers, left = fresh.search_grid(training, found)
        mine = every[(every["number"] == training.number) & (every["arm"] == TABLE)]
        if left or numbers is None or mine.empty:
            continue

        def score(at: fresh.Numbers, one: fresh.Drawn = training) -> float:
            specs = [fresh.plain(one, at, seed) for seed in fresh.SEEDS]
            return float(np.mean([fresh.points(spec, one, found) for spec in specs]))

        gain = score(numbers) - score(fresh.own_numbers(training))
        both.append((mine["gain"].item(), gain))
        where = f"{numbers[0]:g}, {numbers[1]:g}"
        lines.append([str(training.number), where, f"{gain:+.2f}", f"{both[-1][0]:+.2f}"])
    if not both:
        return ""
    ours, theirs = np.mean(both, axis=0)
    share = f" ({ours / theirs:.0%})" if len(both) == fresh.SEARCHED and theirs > 1 else ""
    lines.append(["mean", "", f"{theirs:+.2f}", f"{ours:+.2f}{share}"])
    return table(["training", "its rate, decay", "search of 15 runs", "the table"], lines)


def page(found: fresh.Results, commit: str) -> str:
    """The tables as Markdown."""
    columns = ("number", "scenario", "row", "arm", "gain", "inside")
    every = pd.DataFrame([row for t in fresh.drawn() for row in gains(t, found)] or None)
    every = every if len(every) else pd.DataFrame(columns=columns)
    counts, parts = [], ["### What each row predicted", rows_table(every)]
    for scenario, words in SCENARIOS.items():
        part = every[every["scenario"] == scenario]
        drawn = sum(t.scenario == scenario for t in fresh.drawn())
        counts.append(f"{part['number'].nunique()} of {drawn} {words}")
        if len(part):
            parts += [f"### {words.capitalize()}", arms_table(part), parts_table(part)]
            for group, some in part.groupby("user" if scenario == "scratch" else "optimizer"):
                parts += [f"#### {words.capitalize()}, {group}", arms_table(some)]
            parts.append(every_training(part))
    if beside := search_table(every, found):
        parts += ["### Beside a search of 15 runs", beside]
    first = f"Predicted in commit {commit}. Trainings that are whole: {' and '.join(counts)}."
    return "\n\n".join([first, *parts])


def predicted_in() -> str:
    """The commit of the predictions."""
    words = ["git", "log", "-1", "--format=%h", "--", "predictions.csv"]
    return subprocess.check_output(words, cwd=fresh.FOLDER, text=True).strip()


def main() -> None:
    fill(fresh.FOLDER / "README.md", "fresh", page(fresh.exported(), predicted_in()))
