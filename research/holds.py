"""Does the paper hold? Its claims beside what the runs say: docs/does-the-paper-hold.md.

    python -m research.holds    # → the page's tables, docs/figures/regime.png

Read are the atlas that ships (``tstar.lab.atlas()``) and the runs in the paper's own regime
(results/regime). Two runs are compared if they differ in norm and T alone; a *condition* is a training
without its seeds. Native heads are those that the network makes; widened ones are left out. Intervals
resample conditions.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd

import tstar
from tstar.law import law_temperature
from tstar.training import Training

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "does-the-paper-hold.md"
FIGURE = ROOT / "docs" / "figures" / "regime.png"
REGIME = ROOT / "results" / "regime" / "store.parquet"
FACTS = [
    *("atlas", "dataset", "size", "num_classes", "classes", "samples", "label_noise"),
    *("data_seed", "model", "num_features", "depth", "scenario", "weights", "optimizer", "lr"),
    *("head_lr", "momentum", "weight_decay", "schedule", "epochs", "steps", "batch_size"),
    *("label_smoothing", "val_fraction", "augment"),
]
FORMULAS = ("base", "cn", "csg", "csgcn")
PLATEAU = 0.01  # of accuracy: what two seeds differ by
NEAR = 1.1  # a run within this factor of a formula's T counts as the formula's


def read_runs() -> pd.DataFrame:
    """The finished runs of the atlas with native heads and a fixed T; the seeds' mean of each."""
    runs = tstar.lab.atlas()
    wanted = (
        (runs["method"] == "fixed") & (runs["status"] == "done") & runs["trunk_features"].isna()
    )
    runs = runs[wanted].drop_duplicates([*FACTS, "norm", "temperature", "seed"])
    groups = runs.groupby([*FACTS, "norm", "temperature"], dropna=False)
    return groups.agg(accuracy=("test_accuracy", "mean"), csg=("csg", "max")).reset_index()


def by_condition(runs: pd.DataFrame) -> list[pd.DataFrame]:
    """The rows of each condition, which differ in norm and T alone."""
    return [rows for _, rows in runs.groupby(FACTS, dropna=False)]


def formula(rows: pd.DataFrame, variant: str) -> float | None:
    """T of the paper's variant, of the root of M, or of our law for a condition."""
    row = rows.iloc[0]
    M, K, csg = int(row["num_features"]), int(row["num_classes"]), rows["csg"].max()
    if variant == "sqrt(M)":
        return math.sqrt(M)
    if variant == "law":
        known = {name: row[name] for name in ("lr", "steps", "momentum", "batch_size")}
        return law_temperature(M, K, Training(row["optimizer"], scenario=row["scenario"], **known))
    if "csg" in variant and not csg > 0:
        return None
    return tstar.temperature(M, K, csg if "csg" in variant else None, variant=variant)


def accuracy(rows: pd.DataFrame, norm: str, T: float | None) -> float | None:
    """Of the run whose T is nearest to ``T``, if it is near enough."""
    some = rows[rows["norm"] == norm]
    if T is None or some.empty:
        return None
    distance = (np.log(some["temperature"].astype(float)) - math.log(T)).abs()
    nearest = distance.idxmin()
    return float(some["accuracy"][nearest]) if distance[nearest] <= math.log(NEAR) else None


# -- numbers ---------------------------------------------------------------------------------------
def gains(conditions: Iterable[pd.DataFrame], variant: str | float) -> pd.DataFrame:
    """Points that BN with a T gained over plain, for each condition that has both."""
    found = []
    for rows in conditions:
        T = variant if isinstance(variant, float) else formula(rows, variant)
        with_bn, plain = accuracy(rows, "batch", T), accuracy(rows, "none", 1.0)
        if with_bn is not None and plain is not None:
            facts = rows.iloc[0][FACTS].to_dict()
            found.append({**facts, "csg": rows["csg"].max(), "gain": 100 * (with_bn - plain)})
    return pd.DataFrame(found)


def interval(values: pd.Series | np.ndarray) -> tuple[float, float]:
    """The 95 % interval of the mean over conditions drawn anew."""
    values, random = np.asarray(values, float), np.random.default_rng(0)
    means = random.choice(values, (4000, len(values))).mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def say(gain: pd.Series) -> str:
    """A gain in words: the median first, the mean with its interval, the shares."""
    if len(gain) < 3:
        return f"n = {len(gain)}"
    low, high = interval(gain)
    return (
        f"median {gain.median():+.1f}, mean {gain.mean():+.1f} ({low:+.1f} to {high:+.1f}), "
        f"{(gain > 1).mean():.0%} gain and {(gain < -1).mean():.0%} lose a point, n = {len(gain)}"
    )


def plateau(rows: pd.DataFrame) -> tuple[float, float] | None:
    """The lowest and highest T whose accuracy is within noise of the best, with a BatchNorm."""
    curve = rows[rows["norm"] == "batch"]
    good = curve["temperature"][curve["accuracy"] >= curve["accuracy"].max() - PLATEAU]
    return (float(good.min()), float(good.max())) if len(curve) >= 5 else None


def exponents(conditions: Iterable[pd.DataFrame]) -> tuple[float, tuple[float, float], int, float]:
    """How the best T (the middle of its plateau) grows with M, over groups that differ in M alone.

    Returns the exponent, its interval over groups drawn anew, the groups, the plateaus' median width.
    """
    groups: dict[tuple[str, ...], list[tuple[float, float]]] = {}
    widths = []
    for rows in conditions:
        ends, row = plateau(rows), rows.iloc[0]
        if ends is None or row["optimizer"] != "sgd" or row["scenario"] != "scratch":
            continue
        widths.append(ends[1] / ends[0])
        name = tuple(str(row[fact]) for fact in FACTS if fact != "num_features")
        point = (math.log(row["num_features"]), math.log(ends[0] * ends[1]) / 2)
        groups.setdefault(name, []).append(point)
    centered = [
        np.array(points) - np.mean(points, axis=0) for points in groups.values() if len(points) > 1
    ]
    random = np.random.default_rng(0)
    draws = [random.integers(0, len(centered), len(centered)) for _ in range(2000)]
    slopes = [_slope([centered[i] for i in draw]) for draw in draws]
    low, high = np.quantile(slopes, [0.025, 0.975])
    return _slope(centered), (low, high), len(centered), float(np.median(widths))


def _slope(groups: list[np.ndarray]) -> float:
    x, y = np.concatenate(groups).T
    return float((x * y).sum() / (x * x).sum())


def regrets(conditions: Iterable[pd.DataFrame], variant: str | float) -> np.ndarray:
    """Points below the best T of each curve, by the curve's line over ln T."""
    found = []
    for rows in conditions:
        T = variant if isinstance(variant, float) else formula(rows, variant)
        curve = rows[rows["norm"] == "batch"].sort_values("temperature")
        if T is None or len(curve) < 5:
            continue
        x, y = np.log(curve["temperature"].astype(float)), curve["accuracy"].astype(float)
        found.append(100 * (y.max() - np.interp(math.log(T), x, y)))
    return np.array(found)


# -- the regime ------------------------------------------------------------------------------------
def regime() -> pd.DataFrame:
    """Mean accuracy, seeds and standard error of each arm in the paper's regime, in percent."""
    runs = pd.read_parquet(REGIME)
    runs = runs[runs["status"] == "done"].assign(test=lambda d: 100 * d["test_accuracy"])
    arms = ["model", "num_features", "norm", "temperature", "lr", "weight_decay"]
    table = runs.groupby(arms)["test"].agg(["mean", "count", "sem"]).reset_index()
    return table.rename(columns={"mean": "accuracy", "count": "seeds"})


def regime_table() -> str:
    lines = [
        "| network | M | norm | T | rate | decay | accuracy [%] | seeds |",
        "|---|--:|---|--:|--:|--:|--:|--:|",
    ]
    for row in regime().itertuples():
        error = "" if row.seeds < 2 else f" ± {row.sem:.1f}"
        norm = "BN" if row.norm == "batch" else "none"
        lines.append(
            f"| {row.model} | {row.num_features} | {norm} | {row.temperature:g} | {row.lr:g} | "
            f"{row.weight_decay:g} | {row.accuracy:.1f}{error} | {row.seeds} |"
        )
    return "\n".join(lines)


def draw() -> None:
    """Accuracy against T for each M in the regime, with the formulas marked."""
    import matplotlib.pyplot as plt

    arms = regime()
    usual = arms[(arms["lr"] == 0.1) & (arms["weight_decay"] == 5e-4) & (arms["model"] == "vgg9")]
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for color, (M, rows) in zip(
        ("C0", "C1", "C2", "C3"), usual.groupby("num_features"), strict=False
    ):
        curve = rows[rows["norm"] == "batch"].sort_values("temperature")
        axes.errorbar(
            curve["temperature"],
            curve["accuracy"],
            curve["sem"],
            marker="o",
            color=color,
            label=f"M = {M} ({curve['seeds'].min()} seeds)",
        )
        for accuracy_ in rows["accuracy"][rows["norm"] == "none"]:
            axes.axhline(accuracy_, color=color, linestyle=":", linewidth=1)
        known = Training("sgd", lr=0.1, steps=7800, batch_size=128)
        marks = {"cn": tstar.temperature(M, 10), "law": law_temperature(M, 10, known)}
        marks["base"] = tstar.temperature(M, variant="base")
        for name, T in marks.items():
            axes.axvline(T, color=color, linestyle="--", linewidth=0.7)
            top = {"transform": axes.get_xaxis_transform(), "rotation": 90, "va": "top"}
            axes.text(T, 0.98, f" {name}", color=color, ha="right", fontsize=8, **top)
    axes.set_xscale("log", base=2)
    axes.set_xlabel("T, with a BatchNorm before the output layer")
    axes.set_ylabel("test accuracy [%]")
    axes.set_title("VGG9, 5,000 images of CIFAR-10, 200 epochs; dotted: plain", fontsize=10)
    axes.legend()
    FIGURE.parent.mkdir(exist_ok=True)
    figure.savefig(FIGURE, dpi=150)
    plt.close(figure)


# -- the page --------------------------------------------------------------------------------------
def numbers() -> dict[str, str]:
    """What our runs say to each claim."""
    every = by_condition(read_runs())
    scratch = [rows for rows in every if rows.iloc[0]["scenario"] == "scratch"]
    sgd = [rows for rows in scratch if rows.iloc[0]["optimizer"] == "sgd"]
    core = [r for r in sgd if r.iloc[0]["lr"] == 0.1 and r.iloc[0]["steps"] == 800]
    tuned = [rows for rows in every if rows.iloc[0]["scenario"] == "finetune"]
    slope, (low, high), groups, width = exponents(every)
    said = {
        "exponent": f"SGD, BN: T\\* ~ M^{slope:.2f} ({low:.2f} to {high:.2f}), {groups} groups that differ in M "
        f"alone; plateaus a factor of {width:.0f} wide (median)",
        "bn": say(gains(sgd, 1.0)["gain"]),
    }
    cn = gains(sgd, "cn")
    near = cn[(cn["lr"] == 0.1) & (cn["steps"] >= 800)]
    said["cn"] = f"SGD at 0.1 from 800 steps: {say(near['gain'])}; all of SGD: {say(cn['gain'])}"
    known = near[near["csg"] > 0]
    rank = known[["csg", "gain"]].corr("spearman").iloc[0, 1]
    said["csg"] = f"rank correlation of csg and gain {rank:+.2f}, n = {len(known)}"
    at = {name: regrets(core, name) for name in (*FORMULAS, "sqrt(M)", "law")}
    listed = ", ".join(f"{name} {points.mean():.1f}" for name, points in at.items())
    said["regret"] = (
        f"points below the best T (SGD at 0.1, 800 steps, n = {len(at['cn'])}): {listed}, "
        f"T = 1 {regrets(core, 1.0).mean():.1f}"
    )
    hard = [rows for rows in core if rows["csg"].max() >= 4]
    easy = [rows for rows in core if rows["csg"].max() < 4]
    said["sqrt"] = (
        f"sqrt(M) is {regrets(hard, 'sqrt(M)').mean():.1f} points below the best T at csg of 4 and more "
        f"(n = {len(hard)}), {regrets(easy, 'sqrt(M)').mean():.1f} below (n = {len(easy)})"
    )
    fine = gains(tuned, "cn")
    said["fine"] = "; ".join(
        f"{name}, {optimizer}: {', '.join(f'{g:+.0f}' for g in sorted(rows['gain']))}"
        for (name, optimizer), rows in fine.assign(
            model=fine["model"].str.split("[/:]").str[-1]
        ).groupby(["model", "optimizer"])
    )
    names = "vit|text-transformer|transformer"
    blocks = [r for r in scratch if re.search(names, str(r.iloc[0]["model"]))]
    said["transformers"] = say(gains(blocks, "cn")["gain"]) + " (new networks of four blocks)"
    return said


def main() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for name, value in numbers().items():
        text = re.sub(rf"(<!-- {name} -->).*?(<!-- / -->)", lambda m: m[1] + value + m[2], text)  # noqa: B023
        print(f"{name}: {value}")
    if REGIME.exists():
        block = r"(<!-- table regime -->\n).*?(<!-- end of table -->)"
        text = re.sub(block, rf"\1\n{regime_table()}\n\n\2", text, flags=re.DOTALL)
        draw()
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
