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
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import f_oneway, spearmanr

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
CURVE = 5  # temperatures, from which on the best T of a curve counts
PLATEAU = 0.01  # of accuracy: what two seeds differ by
CSG = 4.38  # of 5,000 images of CIFAR-10 at 32 pixels (results/csg/real_data.csv)
NEAR = 1.1  # a run within this factor of a formula's T counts as the formula's


def read_runs() -> pd.DataFrame:
    """The finished runs of the atlas with native heads and a fixed T."""
    runs = tstar.lab.atlas()
    wanted = (
        (runs["method"] == "fixed") & (runs["status"] == "done") & runs["trunk_features"].isna()
    )
    return runs[wanted].drop_duplicates([*FACTS, "norm", "temperature", "seed"])


def by_condition(runs: pd.DataFrame) -> list[pd.DataFrame]:
    """The runs of each condition, which differ in norm, T and seed alone."""
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


def accuracy(rows: pd.DataFrame, norm: str, T: float | None) -> pd.Series:
    """By seed, of the runs whose T is nearest to ``T``, if it is near enough."""
    some = rows[rows["norm"] == norm]
    distance = (np.log(some["temperature"].astype(float)) - math.log(T or math.inf)).abs()
    nearest = distance <= min(distance.min(), math.log(NEAR))
    return some[nearest].set_index("seed")["test_accuracy"]


def curve_of(rows: pd.DataFrame) -> pd.Series:
    """Accuracy with a BatchNorm by T, the mean of its seeds."""
    return rows[rows["norm"] == "batch"].groupby("temperature")["test_accuracy"].mean()


# -- numbers ---------------------------------------------------------------------------------------
def gains(conditions: Iterable[pd.DataFrame], variant: str | float) -> pd.DataFrame:
    """Points that BN with a T gained over plain on the same seeds, for each condition."""
    found = []
    for rows in conditions:
        T = variant if isinstance(variant, float) else formula(rows, variant)
        gain = (accuracy(rows, "batch", T) - accuracy(rows, "none", 1.0)).mean()
        if math.isfinite(gain):
            found.append({**rows.iloc[0][FACTS], "csg": rows["csg"].max(), "gain": 100 * gain})
    return pd.DataFrame(found)


def interval(values: pd.Series | np.ndarray) -> tuple[float, float]:
    """The 95 % interval of the mean over conditions drawn anew."""
    values, random = np.asarray(values, float), np.random.default_rng(0)
    means = random.choice(values, (4000, len(values))).mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def mean(values: pd.Series | np.ndarray, sign: str = "") -> str:
    low, high = interval(values)
    return f"{values.mean():{sign}.1f} ({low:{sign}.1f} to {high:{sign}.1f})"


def say(gain: pd.Series) -> str:
    """A gain in words: the median first, the mean with its interval, the shares."""
    return (
        f"median {gain.median():+.1f}, mean {mean(gain, '+')}, {(gain > 1).mean():.0%} gain and "
        f"{(gain < -1).mean():.0%} lose a point, n = {len(gain)}"
    )


def plateau(rows: pd.DataFrame) -> tuple[float, float] | None:
    """The lowest and highest T whose accuracy is within noise of the best, with a BatchNorm."""
    curve = curve_of(rows)
    good = curve.index[curve >= curve.max() - PLATEAU]
    return (float(good.min()), float(good.max())) if len(curve) >= CURVE else None


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
        curve = curve_of(rows)
        if T is None or len(curve) < CURVE:
            continue
        x, y = np.log(curve.index.to_numpy(float)), curve.to_numpy(float)
        found.append(100 * (y.max() - np.interp(math.log(T), x, y)))
    return np.array(found)


# -- the regime ------------------------------------------------------------------------------------
def regime() -> pd.DataFrame:
    """The finished runs in the paper's regime and in bfloat16, ``test`` in percent."""
    runs = pd.read_parquet(REGIME)
    runs = runs[(runs["status"] == "done") & (runs["amp"] == 1)]
    runs = runs.assign(test=100 * runs["test_accuracy"])
    return runs.astype({"num_features": int, "temperature": float})


def seeds_of(runs: pd.DataFrame, **arm: Any) -> pd.Series:
    """Test accuracy by seed of one arm; what is not named is the paper's."""
    facts = {"norm": "none", "temperature": 1.0, "lr": 0.1, "weight_decay": 5e-4} | arm
    for name, value in facts.items():
        runs = runs[runs[name] == value]
    return runs.set_index("seed")["test"]


def with_error(values: pd.Series, sign: str = "") -> str:
    """A mean over seeds, and its standard error where there are two."""
    if values.empty:
        return "–"
    return f"{values.mean():{sign}.1f}" + (f" ± {values.sem():.1f}" if len(values) > 1 else "")


def regime_table() -> str:
    """Accuracy of each arm, a line for each width."""
    temperatures = (1, 2, 4, 8, 16, 32)
    header = ["network", "M", "seeds", "plain", "decay × 3", "rate × 3"]
    lines = [header + [f"BN, T = {T}" for T in temperatures]]
    lines.append(["---", *["--:"] * (len(header) + len(temperatures) - 1)])
    for (model, M), some in regime().groupby(["model", "num_features"]):
        arms = [seeds_of(some), seeds_of(some, weight_decay=1.5e-3), seeds_of(some, lr=0.3)]
        arms += [seeds_of(some, norm="batch", temperature=T) for T in temperatures]
        counts = [len(arm) for arm in arms if len(arm)]
        number = f"{min(counts)}" if min(counts) == max(counts) else f"{min(counts)}–{max(counts)}"
        lines.append([model, str(M), number, *map(with_error, arms)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def differences() -> str:
    """What was expected beside what came: differences on the same seeds."""
    lines = [["network", "M", "BN, T near cn − plain", "… − decay × 3", "BN, T = 1 − plain"]]
    lines[0] += ["decay × 3 − plain", "rate × 3 − plain", "T = 32 − best T"]
    lines.append(["---", *["--:"] * 7])
    for (model, M), some in regime().groupby(["model", "num_features"]):
        curve = some[some["norm"] == "batch"]
        near = min(curve["temperature"], key=lambda T: abs(math.log(T / tstar.temperature(M, 10))))
        plain, decay = seeds_of(some), seeds_of(some, weight_decay=1.5e-3)
        bn = seeds_of(some, norm="batch", temperature=near)
        high = seeds_of(some, norm="batch", temperature=32)
        best = curve.groupby("temperature")["test"].mean().idxmax()
        pairs = [
            *((bn, plain), (bn, decay), (seeds_of(some, norm="batch"), plain), (decay, plain)),
            *((seeds_of(some, lr=0.3), plain),),
            (high, seeds_of(some, norm="batch", temperature=best)),
        ]
        cells = [with_error((one - other).dropna(), "+") for one, other in pairs]
        cells[0] += f" (T = {near:g})"
        cells[-1] = "–" if best == 32 else f"{cells[-1]} ({best:g})"
        lines.append([model, str(M), *cells])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def peak(curve: pd.Series) -> float:
    """ln T at the top of the parabola through ln T and accuracy, within the temperatures run."""
    x = np.log(curve.index.to_numpy(float))
    square, line, _ = np.polyfit(x, curve.to_numpy(float), 2)
    return float(np.clip(-line / (2 * square), x.min(), x.max())) if square < 0 else float(x.max())


def regime_exponent() -> str:
    """How the best T grows with M in the regime; the interval draws seeds anew."""
    runs = regime().query("norm == 'batch' and model == 'vgg9'")
    whole = runs.pivot_table(index=["num_features", "seed"], columns="temperature", values="test")
    whole = whole.dropna()
    widths = whole.index.get_level_values(0).unique()
    if len(widths) < 2:
        return "not yet known: one width is whole"
    random = np.random.default_rng(0)

    def tops(draw: bool) -> list[float]:
        found = []
        for M in widths:
            seeds = whole.loc[M]
            rows = random.integers(0, len(seeds), len(seeds)) if draw else range(len(seeds))
            found.append(peak(seeds.iloc[list(rows)].mean()))
        return found

    logs = np.log(np.array(widths, float))
    slopes = [np.polyfit(logs, tops(True), 1)[0] for _ in range(2000)]
    low, high = np.quantile(slopes, [0.025, 0.975])
    found = tops(False)
    ends = {math.log(whole.columns.min()), math.log(whole.columns.max())}
    if ends & {*found}:
        return "no exponent can be told: a parabola through a curve has its top at an end of it"
    best = ", ".join(f"{math.exp(T):.0f} at M = {M}" for M, T in zip(widths, found, strict=True))
    slope = np.polyfit(logs, found, 1)[0]
    return f"best T {best}: T\\* ~ M^{slope:.2f} ({low:.2f} to {high:.2f})"


def regime_noise() -> str:
    """Whether T matters at all in the regime: an analysis of variance for each width."""
    runs = regime().query("norm == 'batch' and model == 'vgg9'")
    said = []
    for M, some in runs.groupby("num_features"):
        groups = [of["test"].to_numpy() for _, of in some.groupby("temperature")]
        if min(map(len, groups)) > 1:
            means = [values.mean() for values in groups]
            p = f_oneway(*groups).pvalue
            said.append(f"{max(means) - min(means):.1f} points at M = {M} (p = {p:.2f})")
    return f"the best T beats the worst by {', '.join(said)}"


def draw() -> None:
    """Accuracy against T for each M of VGG9 in the regime, with the formulas marked."""
    import matplotlib.pyplot as plt

    runs = regime().query("model == 'vgg9'")
    widths = sorted(runs["num_features"][runs["norm"] == "batch"].unique())
    figure, panels = plt.subplots(
        1, len(widths), figsize=(3.4 * len(widths), 4), sharey=True, layout="constrained"
    )
    known = Training("sgd", lr=0.1, steps=7800, batch_size=128)
    for M, panel in zip(widths, np.atleast_1d(panels), strict=True):
        some = runs[runs["num_features"] == M]
        usual = some[(some["norm"] == "batch") & (some["lr"] == 0.1)]
        curve = usual.groupby("temperature")["test"].agg(["mean", "sem", "count"])
        panel.errorbar(curve.index, curve["mean"], curve["sem"], marker="o", color="C0")
        levels = {"plain": seeds_of(some), "decay × 3": seeds_of(some, weight_decay=1.5e-3)}
        for color, (name, level) in zip(("C7", "C3"), levels.items(), strict=True):
            if len(level):
                panel.axhline(level.mean(), color=color, linestyle=":", label=name)
        marks = {name: tstar.temperature(M, 10, CSG, variant=name) for name in FORMULAS}
        marks["law"] = law_temperature(M, 10, known)
        for name, T in marks.items():
            color, y, side = ("C2", 0.98, "top") if name == "law" else ("C1", 0.02, "bottom")
            panel.axvline(T, color=color, linestyle="--", linewidth=0.8)
            along: dict[str, Any] = {"transform": panel.get_xaxis_transform(), "rotation": 90}
            panel.text(T, y, name, ha="right", va=side, fontsize=8, **along)
        panel.set_xscale("log", base=2)
        panel.set_xticks(curve.index, [f"{T:g}" for T in curve.index])
        panel.set_title(f"M = {M}, {curve['count'].min()} seeds", fontsize=10)
        panel.set_xlabel("T")
    first = np.atleast_1d(panels)[0]
    first.set_ylabel("test accuracy with BN [%]")
    figure.legend(*first.get_legend_handles_labels(), loc="outside lower center", ncols=2)
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
    found = {
        "exponent": f"SGD, BN: T\\* ~ M^{slope:.2f} ({low:.2f} to {high:.2f}), {groups} groups that differ in M "
        f"alone; plateaus a factor of {width:.0f} wide (median)",
    }
    alone = gains(sgd, 1.0)
    groups = pd.cut(alone["num_features"].astype(int), [0, 32, 64, 128, math.inf])
    medians = [
        f"{round(gain.median(), 1) + 0.0:+.1f} (n = {len(gain)})"
        for _, gain in alone.groupby(groups, observed=True)["gain"]
    ]
    rank = spearmanr(alone["num_features"].astype(int), alone["gain"])
    found["bn"] = (
        f"{', '.join(medians)} for M up to 32, 64, 128 and above; rank correlation with M "
        f"{rank.statistic:+.2f} (p = {rank.pvalue:.4f}); all: {say(alone['gain'])}"
    )
    every_cn = gains(scratch, "cn")
    cn = every_cn[every_cn["optimizer"] == "sgd"]
    near = cn[(cn["lr"] == 0.1) & (cn["steps"] >= 800)]
    parts = {"SGD at 0.1 from 800 steps": near, "all of SGD": cn}
    parts["AdamW"] = every_cn[every_cn["optimizer"] == "adamw"]
    found["cn"] = "; ".join(f"{name}: {say(some['gain'])}" for name, some in parts.items())
    smooth = every_cn[every_cn["label_smoothing"] > 0]
    found["smoothing"] = say(smooth["gain"])
    curves = [r for r in core if r["csg"].max() > 0 and len(curve_of(r)) >= CURVE]
    rank = spearmanr([rows["csg"].max() for rows in curves], regrets(curves, 1.0))
    found["csg"] = (
        f"SGD at 0.1, 800 steps: rank correlation of csg with what T = 1 lacks to the best T "
        f"{rank.statistic:+.2f} (p = {rank.pvalue:.2f}), n = {len(curves)}"
    )
    at = {name: regrets(core, name) for name in (*FORMULAS, "sqrt(M)", "law")}
    at["T = 1"] = regrets(core, 1.0)
    listed = ", ".join(f"{name} {mean(points)}" for name, points in at.items())
    found["regret"] = f"SGD at 0.1, 800 steps, n = {len(at['cn'])}: {listed}"
    hard = regrets((rows for rows in core if rows["csg"].max() >= 4), "sqrt(M)")
    easy = regrets((rows for rows in core if rows["csg"].max() < 4), "sqrt(M)")
    found["sqrt"] = (
        f"{mean(hard)} at csg of 4 and more (n = {len(hard)}), {mean(easy)} below (n = {len(easy)})"
    )
    fine = gains(tuned, "cn")
    found["fine"] = "; ".join(
        f"{name}, {optimizer}: {', '.join(f'{g:+.0f}' for g in sorted(rows['gain']))}"
        for (name, optimizer), rows in fine.assign(
            model=fine["model"].str.split("[/:]").str[-1]
        ).groupby(["model", "optimizer"])
    )
    names = "vit|text-transformer|transformer"
    blocks = [r for r in scratch if re.search(names, str(r.iloc[0]["model"]))]
    found["transformers"] = say(gains(blocks, "cn")["gain"]) + " (four blocks)"
    return found


def main() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for name, value in numbers().items():
        text = re.sub(rf"(<!-- {name} -->).*?(<!-- / -->)", lambda m: m[1] + value + m[2], text)  # noqa: B023
        print(f"{name}: {value}")
    if len(regime()):
        found = f"With BN, {regime_noise()}; {regime_exponent()}."
        whole = "\n\n".join([regime_table(), differences(), found])
        block = r"(<!-- table regime -->\n).*?(<!-- end of table -->)"
        text = re.sub(block, lambda m: f"{m[1]}\n{whole}\n\n{m[2]}", text, flags=re.DOTALL)
        draw()
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
