"""The analysis that the paper does not have, of the paper's own tables.

How often and by how much each method beats T = 1, data set by data set; paired tests; the
critical-difference ranking; and which variant to advise by default. The unit is the data set, not
the cell: cells of one data set are not independent, so models are averaged within it first.

``python -m research.paper.analysis`` rebuilds ``results/paper/`` and ``default_variant.json``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tstar.lab.paper
from research.paper.longform import records
from research.paper.statistics import Paired, Ranking, paired, ranking
from tstar.errors import unknown
from tstar.formula import VARIANTS
from tstar.lab.paper.catalogue import METHODS, table
from tstar.lab.statistics import holm

if TYPE_CHECKING:
    import pandas as pd

SCENARIOS = ("scratch", "finetune")
PACKAGED = Path(tstar.lab.paper.__file__).parent
DEFAULT_VARIANT = PACKAGED / "default_variant.json"
_WITHOUT_CSG = ("base", "cn")


@dataclass(frozen=True)
class Comparison:
    """A method against T = 1 over the data sets of a scenario; Holm's p is over all methods."""

    method: str
    result: Paired
    holm_p: float
    lost_on: tuple[str, ...]


def cells(scenario: str, *, footnotes: bool = False) -> pd.DataFrame:
    """The measured cells of a scenario, without label smoothing: one row a (table, block, model, data set).

    With ``footnotes`` the two cells that the paper's footnotes give again at a lower learning rate
    take the footnotes' values.
    """
    if scenario not in SCENARIOS:
        raise unknown("scenario", scenario, SCENARIOS)
    frame = records()
    if footnotes:
        for _, note in table("footnotes").iterrows():
            here = (frame["table"] == note["table"]) & (frame["method"] == note["method"])
            frame.loc[here & (frame["model"] == note["column"]), "accuracy"] = note["value"]
    frame = frame[(frame["scenario"] == scenario) & ~frame["label_smoothing"]]
    wide = frame.pivot_table(
        index=["table", "block", "model", "dataset"], columns="method", values="accuracy"
    )
    return wide[list(METHODS)]


def by_dataset(scenario: str, *, footnotes: bool = False) -> pd.DataFrame:
    """Accuracy of each method on each data set, models averaged: data sets × methods."""
    return cells(scenario, footnotes=footnotes).groupby("dataset").mean()


def against_default(scores: pd.DataFrame) -> list[Comparison]:
    """Every method against T = 1, on the rows of ``scores``."""
    names = [name for name in METHODS if name != "T=1"]
    gains = {name: scores[name] - scores["T=1"] for name in names}
    results = {name: paired(gains[name].tolist()) for name in names}
    adjusted = holm({name: results[name].wilcoxon_p for name in names})
    return [
        Comparison(
            name,
            results[name],
            p,
            tuple(str(place) for place in gains[name].index[gains[name] < -1e-9]),
        )
        for name, p in ((name, adjusted[name]) for name in names)
    ]


def rank(scores: pd.DataFrame, names: Sequence[str] = tuple(METHODS)) -> Ranking:
    """The critical-difference ranking of the methods over the rows of ``scores``."""
    return ranking(scores[list(names)].to_numpy(dtype=float), names)


def default_variant() -> dict[str, Any]:
    """The variant to advise for each scenario, with the evidence; ``without_csg`` when only K is known.

    The rule: the highest mean accuracy over the scenario's data sets, models averaged within a data
    set. Mean rank, paired test and leaving each data set out in turn say how firm that is.
    """
    return {
        **{scenario: _choice(scenario, VARIANTS) for scenario in SCENARIOS},
        "without_csg": {scenario: _choice(scenario, _WITHOUT_CSG) for scenario in SCENARIOS},
        "source": "the paper's tables, by python -m research.paper.analysis",
    }


def _choice(scenario: str, allowed: tuple[str, ...]) -> dict[str, Any]:
    scores = by_dataset(scenario)
    means = scores[list(allowed)].mean().sort_values(ascending=False)
    best, second = str(means.index[0]), str(means.index[1])
    comparison = next(c for c in against_default(scores) if c.method == best)
    versus = paired((scores[best] - scores[second]).tolist())
    kept = stability(scores, allowed).count(best)
    result = comparison.result
    evidence = (
        f"On the paper's {result.n} data sets ({_WORDS[scenario]}) {best} has the best mean accuracy, "
        f"{means[best]:.2f} % against {scores['T=1'].mean():.2f} % with the plain model: "
        f"{result.wins} wins, {result.losses} {'loss' if result.losses == 1 else 'losses'} "
        f"(Wilcoxon p = {result.wilcoxon_p:.3f}, Holm {comparison.holm_p:.3f}); "
        f"{second} comes next with {means[second]:.2f} %, which {best} beats on {versus.wins} of {result.n} "
        f"(p = {versus.wilcoxon_p:.2f}); leaving one data set out keeps the choice "
        f"{kept} times of {result.n}."
    )
    return {
        "variant": best,
        "evidence": evidence,
        "datasets": result.n,
        "wins": result.wins,
        "ties": result.ties,
        "losses": result.losses,
        "mean_gain": round(result.mean, 2),
        "worst": round(result.worst, 2),
    }


_WORDS = {"scratch": "trained from scratch", "finetune": "fine-tuned"}


def stability(scores: pd.DataFrame, allowed: Sequence[str] = VARIANTS) -> list[str]:
    """The best variant by mean accuracy with each data set left out in turn."""
    return [str(scores.drop(index=left)[list(allowed)].mean().idxmax()) for left in scores.index]


def write(folder: Path, packaged: Path = PACKAGED) -> list[Path]:
    """Rebuild the pages of ``results/paper`` in ``folder``, and the default variant in the package."""
    from research.paper.pages import pages

    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(default_variant(), indent=2, ensure_ascii=False) + "\n"
    written = [packaged / DEFAULT_VARIANT.name]
    written[0].write_text(text, encoding="utf-8")
    for name, page in pages().items():
        written.append(folder / name)
        written[-1].write_text(page, encoding="utf-8")
    return written


if __name__ == "__main__":
    import sys

    for path in write(Path(sys.argv[1] if len(sys.argv) > 1 else "results/paper")):
        print(path.name)
