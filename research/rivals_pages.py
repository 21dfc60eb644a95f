"""The rivals as a page: results/rivals/README.md, runs.csv and gains.png, from the runs that exist.

python -m research.rivals_pages
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from research.advising import entry, with_gains
from research.conditions import draw
from research.markdown import folded, table
from research.rivals import ATLAS, PASSES, SEARCH, drawn, runs_of
from research.running import Results, exported
from research.second_atlas import accuracy
from tstar.advice import decide
from tstar.evidence import Measured, measured

FOLDER = Path(__file__).resolve().parents[1] / "results" / "rivals"
LAST = "Lightning's older finder"  # the last rival of the first pass
ADVICE = "the advice, family left out"
BLOCKS = {"leave": "plain", "rate": "rate × 3", "bn": "BN law", "bn1": "BN, T = 1", "bn_rate": "BN law, rate × 3", "head_lr": "head × 10"}  # fmt: skip
HARM = 3.0  # points: below plain by more counts as harmed (a seed's own difference has a deviation of 3.7)
BEGIN = """# What a user would pick instead

Rivals of T that need no run of search, on trainings drawn from the second atlas, with the same steps, seeds and data; and the price of
a search. The design is in `research/rivals.py`, the parts in `research/rival_parts.py`.
"""
END = """
Rebuild: `python -m research.rivals --store rivals.db --data-root DATA`, `tstar runs export rivals.db results/rivals/store.parquet`,
`python -m research.rivals_pages`.
"""


def load() -> Results:
    return exported(ATLAS / "store.parquet") | exported(FOLDER / "store.parquet")


def frame(found: Results) -> pd.DataFrame:
    """One row per finished run: the gain in points over the plain model of the same seed."""
    rows = []
    for index in drawn():
        condition = draw(index)
        c = condition.plain.config
        for which in PASSES:
            for name, spec in runs_of(condition, which, found).items():
                plain = replace(condition.plain, seed=spec.seed)
                test, base = accuracy(found, spec), accuracy(found, plain)
                if test is None or base is None or name.startswith("TPE, run") or name.endswith("the search"):  # fmt: skip
                    continue
                rows.append({"condition": index, "family": condition.family, "optimizer": c.optimizer, "steps": c.steps, "rival": name,
                             "seed": spec.seed, "lr": spec.config.lr, "test": 100 * test, "gain": 100 * (test - base)})  # fmt: skip
    return pd.DataFrame(rows)


def with_advice(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs, and those that the advice would have chosen without its evidence of the same family of networks, once more."""
    rows = with_gains(pd.read_csv(ATLAS / "conditions.csv")).set_index("condition", drop=False)
    chosen = []
    for index in runs["condition"].unique():
        row = rows.loc[index]
        facts = replace(Measured.from_row(entry(row)).facts, fits=None)
        action = decide(facts, [m for m in measured() if m.network != row["family"]]).action
        mine = runs[(runs["condition"] == index) & (runs["rival"] == BLOCKS[action])]
        chosen.append(mine.assign(rival=ADVICE))
    return pd.concat([runs, *chosen])


def summary(runs: pd.DataFrame) -> pd.DataFrame:
    """Of each rival: mean, error, median, worst, share harmed, and the share of a 15-run search in the same conditions and seed."""
    search = runs[runs["rival"] == f"TPE, {SEARCH[1]} runs"].set_index("condition")["gain"]
    rows = []
    for name, part in runs[runs["rival"] != "plain"].groupby("rival", sort=False):
        per = part.groupby("condition")["gain"].mean()  # of the seeds that there are
        both = per.index.intersection(search.index)
        share = per[both].mean() / search[both].mean() if len(both) else np.nan
        error = per.std() / np.sqrt(len(per)) if len(per) > 1 else np.nan
        rows.append({"rival": name, "n": len(per), "runs": len(part), "gain": per.mean(), "error": error, "median": per.median(),
                     "worst": per.min(), "harmed": (per < -HARM).mean(), "helped": (per > HARM).mean(), "of_search": share, "n_search": len(both)})  # fmt: skip
    return pd.DataFrame(rows).sort_values("gain", ascending=False)


def matched(runs: pd.DataFrame) -> pd.DataFrame:
    """Only conditions in which the first pass is done, and rivals that all of them have; of the search, seed 1."""
    first = runs[(runs["seed"] == 0) | runs["rival"].str.startswith("TPE")]
    whole = set(first.loc[first["rival"] == LAST, "condition"])
    first = first[first["condition"].isin(whole)]
    count = first.groupby("rival")["condition"].nunique()
    return first[first["rival"].map(count) == len(whole)]


def rows_of(lines: pd.DataFrame) -> str:
    head = ["rival", "n", "gain", "±", "median", "worst", "helped %", "harmed %", "of a 15-run search (n)"]  # fmt: skip
    cells = [
        [r["rival"], f"{r['n']}", f"{r['gain']:+.1f}", f"{r['error']:.1f}", f"{r['median']:+.1f}", f"{r['worst']:+.1f}",
         f"{100 * r['helped']:.0f}", f"{100 * r['harmed']:.0f}",
         f"{100 * r['of_search']:.0f} % ({r['n_search']})" if r["n_search"] else "–"]
        for _, r in lines.iterrows()
    ]  # fmt: skip
    return table(head, cells)


def figure(lines: pd.DataFrame) -> None:
    fig, axis = plt.subplots(figsize=(8, 0.27 * len(lines) + 1))
    order = lines.sort_values("gain")
    ours = order["rival"].str.startswith(("BN law", ADVICE))
    axis.barh(order["rival"], order["gain"], xerr=order["error"], color=np.where(ours, "#c44e52", "#8da0b8"))  # fmt: skip
    axis.plot(order["median"], order["rival"], "k|", ms=9, label="median")
    axis.axvline(0, color="gray", lw=0.8)
    axis.set_xlim(max(order["gain"].min() * 1.2, -12), order["gain"].max() * 1.6 + 1)
    axis.set_xlabel("points over plain (mean and its error)")
    axis.legend()
    fig.tight_layout()
    fig.savefig(FOLDER / "gains.png", dpi=130, metadata={"Software": None})
    plt.close(fig)


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    runs = frame(load())
    runs.to_csv(FOLDER / "runs.csv", index=False, float_format="%.5g")
    runs = with_advice(runs)
    chosen = matched(runs)
    if chosen.empty:
        raise SystemExit("No condition has every rival yet.")
    same = summary(chosen)
    figure(same)
    is_ours = same["rival"].str.startswith(("BN law", ADVICE))
    ours, others = same[is_ours], same[~is_ours]
    best = " · ".join(f"{r['rival']} {r['gain']:+.1f} (median {r['median']:+.1f})" for _, r in others.head(3).iterrows())  # fmt: skip
    blocks = " · ".join(f"{r['rival']} {r['gain']:+.1f} (median {r['median']:+.1f})" for _, r in ours.iterrows())  # fmt: skip
    last = " · ".join(f"{r['rival']} {r['gain']:+.1f}" for _, r in others.tail(3).iterrows())
    text = (
        f"On the {same['n'].max()} conditions that have every rival, first seed: the best rivals gain {best}. The advice and its blocks gain "
        f"{blocks}. The last are {last}; the newer finder of Lightning ends near a rate of 1e-7 (its issue 21141), the older one does not."
    )
    parts = [
        BEGIN,
        "![gains](gains.png)\n",
        text + "\n",
        folded(f"Matched conditions, first seed; helped and harmed by more than {HARM:g} points; a search is scored on a fresh seed", rows_of(same)),
    ]  # fmt: skip
    (FOLDER / "README.md").write_text("\n".join(parts) + "\n" + END, encoding="utf-8")


if __name__ == "__main__":
    main()
