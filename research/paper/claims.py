"""What the paper's prose says about its tables, next to what the cells say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from research.paper.longform import records
from research.paper.statistics import paired_variance_p
from tstar.formula import VARIANTS, temperature
from tstar.lab.paper.catalogue import SPECS, table

if TYPE_CHECKING:
    import pandas as pd

Verdict = Literal["holds", "partly", "does not hold"]


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, the section it stands in, and the verdict of the cells."""

    where: str
    says: str
    cells: str
    verdict: Verdict


def claims() -> list[Claim]:
    """Statements of the paper that its own numbers can judge."""
    return [*_prints(), *_environments(), *_corrections(), *_measured(), *_smoothing()]


def _verdict(held: int, total: int) -> Verdict:
    return "holds" if held == total else "partly" if held else "does not hold"


def _prints() -> Iterator[Claim]:
    """Places where two prints of the same thing differ."""
    alpha = float(table("coefficients").set_index("variant").loc["csgcn", "alpha"])
    full = temperature(2048, 8, 3.85, variant="csgcn")
    other = full - (alpha - 0.3191) * 2048**0.5
    yield Claim(
        "introduction, equation of T*_csgcn",
        "α = 0.3191",
        f"the table and the conclusion have {alpha}",
        "does not hold",
    )
    yield Claim(
        "ISIC, ResNet50",
        "T*_csgcn = 24.88",
        f"α = {alpha} gives {full:.3f}; α = 0.3191 gives {other:.3f}, which rounds to the print",
        "partly",
    )
    yield Claim(
        "table of corrections, row label",
        "ResNet 9",
        "the text and the other tables have ResNet10",
        "does not hold",
    )
    deep = table("environments").set_index(["dataset", "model"]).loc[("CIFAR100", "ResNet10")]
    whole = table("corrections")["CIFAR100"].max()
    yield Claim(
        "table of environments, block CIFAR100",
        "CIFAR100",
        f"ResNet10 reaches {deep['accuracy_bn']:.2f} there and at most {whole:.2f} on the 100 classes "
        "in the table of corrections: the block must be the ten superclasses (CIFAR100@10) of the figures",
        "does not hold",
    )
    yield Claim(
        "evaluation on eight data sets",
        "each correction formula derives from CIFAR10/100 and Tiny ImageNet",
        "the table of corrections fits on CIFAR-100, four of its subsets and Tiny ImageNet, not on CIFAR-10",
        "partly",
    )


def _environments() -> Iterator[Claim]:
    frame = table("environments")
    rows = frame[frame["dataset"] != ""]
    p_alpha = paired_variance_p(rows["alpha"].tolist(), rows["alpha_bn"].tolist())
    p_beta = paired_variance_p(rows["beta"].tolist(), rows["beta_bn"].tolist())
    yield Claim(
        "optimization of the coefficients",
        "BN makes the coefficients more stable (S.D. of α 2.17 to 1.86)",
        f"nine environments; equal variances are not rejected (Pitman-Morgan p = {p_alpha:.2f} for α, "
        f"{p_beta:.2f} for β)",
        "partly",
    )
    better = int((rows["gain"] > 0).sum())
    yield Claim(
        "optimization of the coefficients",
        "accuracy at T* is higher with BN",
        f"higher in {better} of {len(rows)} environments, by {rows['gain'].mean():.2f} points on average",
        _verdict(better, len(rows)),
    )


def _corrections() -> Iterator[Claim]:
    frame = table("corrections").set_index(["optimization", "correction"])
    gaps = [
        float(frame.loc[("GO", name), "avg"] - frame.loc[("CO", name), "avg"])
        for name in VARIANTS[1:]
    ]
    yield Claim(
        "effect of the task",
        "global optimization exceeds cross-validation on average",
        f"by {min(gaps):.2f} to {max(gaps):.2f} points",
        _verdict(sum(gap > 0 for gap in gaps), len(gaps)),
    )
    gammas = table("coefficients").set_index("variant")["gamma"]
    yield Claim(
        "task correction and its appendix",
        "γ > 0; and: T must be lowered as the difficulty rises",
        f"γ = {gammas['csg']} with csg alone and {gammas['csgcn']:+} with csg and K: the two statements "
        "exclude each other, and each fits one of the two sets",
        "partly",
    )


def _measured() -> Iterator[Claim]:
    cells = records()
    plain = cells[~cells["label_smoothing"]]
    wide = plain.pivot_table(
        index=["table", "block", "model", "dataset"], columns="method", values="accuracy"
    )
    wins = int((wide["base"] > wide["T=1"]).sum())
    yield Claim(
        "introduction",
        "T* = 0.7239·sqrt(M) − 4.706 consistently outperforms T = 1",
        f"better in {wins} of {len(wide)} measured cells",
        _verdict(wins, len(wide)),
    )
    for block, variant in (("CIFAR10", "base"), ("CIFAR100", "csg")):
        part = table("models").query("dataset == @block").set_index("method")["avg"]
        yield Claim(
            "convolutional networks",
            f"best average on {block}: {variant}",
            f"{part.idxmax()}, {part.max():.2f}",
            _verdict(int(part.idxmax() == variant), 1),
        )
    by = _means(plain[plain["table"] == "datasets"])
    gains = {
        block: float(line[list(VARIANTS)].max() - line["T=1"]) for block, line in by.iterrows()
    }
    yield Claim(
        "evaluation on eight data sets",
        "no differences in the trends across the three scenarios",
        "the best variant gains "
        + ", ".join(f"{gain:.2f} ({block})" for block, gain in gains.items())
        + " points on average over T = 1; plain T* loses to T = 1 in both fine-tuning scenarios",
        "partly",
    )


def _smoothing() -> Iterator[Claim]:
    """With against without label smoothing, on the five data sets that both tables have."""
    cells = records()
    shared = SPECS["smoothing"].values
    usual = cells[(cells["table"] == "datasets") & cells["dataset"].isin(shared)]
    usual = usual[usual["model"] == "ResNet50"].assign(block=lambda f: f["scenario"])
    smooth = cells[cells["table"] == "smoothing"].assign(block=lambda f: f["scenario"])
    without, with_ls = _means(usual), _means(smooth)
    change = with_ls - without
    falls = [
        (block, name) for block in change.index for name in VARIANTS if change.loc[block, name] < 0
    ]
    yield Claim(
        "label smoothing",
        "the proposed method decreases with label smoothing",
        "; ".join(
            f"{block}: " + ", ".join(f"{name} {change.loc[block, name]:+.2f}" for name in VARIANTS)
            for block in change.index
        ),
        _verdict(len(falls), 2 * len(VARIANTS)),
    )
    rises = change["T=1"]
    yield Claim(
        "label smoothing",
        "T = 1 improves with label smoothing",
        ", ".join(f"{block} {value:+.2f}" for block, value in rises.items()),
        _verdict(int((rises > 0).sum()), len(rises)),
    )
    ahead = without[list(VARIANTS)].sub(with_ls["T=1"], axis=0)
    count = int((ahead > 0).to_numpy().sum())
    yield Claim(
        "label smoothing",
        "the method without label smoothing outperforms T = 1 with it on average",
        "; ".join(
            f"{block}: " + ", ".join(f"{name} {ahead.loc[block, name]:+.2f}" for name in VARIANTS)
            for block in ahead.index
        ),
        _verdict(count, ahead.size),
    )


def _means(cells: pd.DataFrame) -> pd.DataFrame:
    """Mean accuracy of each method within each block."""
    return cells.pivot_table(index="block", columns="method", values="accuracy", aggfunc="mean")
