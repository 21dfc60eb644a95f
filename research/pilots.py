"""Does a short training tell which recipe wins at full length?

    python -m research.pilots run --store pilots.db --data-root DATA
    tstar runs export pilots.db results/pilots/store.parquet
    python -m research.pilots tables && python -m research.pages

Trainings of 1,000 steps and more that have been run at full length (the second atlas, the standard atlas) are run again with 3, 5 and
10 % of their steps, each with a schedule of its own and the law's T for its length: plain, three times the rate, three times the decay
and BN with the law's T, at the usual rate and at three times it. A *call* is the sign of the difference to plain in validation accuracy,
the mean of two seeds; it is judged where the difference in test accuracy at full length is clear.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pandas as pd
import torch

from research import standard, standard_pages
from research.conditions import Condition, predicted
from research.conditions import draw as drawn
from research.markdown import table
from research.running import Results, exported, run_all
from research.second_atlas import STEP, accuracy
from tstar.lab.sweep.spec import Spec
from tstar.lab.sweep.store import Store

FOLDER = Path(__file__).resolve().parents[1] / "results" / "pilots"
SHARES, SEEDS, LEAST = (0.05, 0.1, 0.03), (0, 1), 1000
CLEAR = 2.0  # points at full length, beyond which a difference is clear
WAYS = {"rate": "rate × 3", "decay": "decay × 3", "bn": "BN, T", "bn_rate": "BN, T, rate × 3"}
# In the table of the second atlas.
COLUMNS = {"rate": "plain_faster", "bn": "bn", "bn_rate": "faster_bn"}


def shorter(plain: Spec, share: float) -> Spec:
    steps = max(20, round(share * (plain.config.steps or 0)))
    return replace(plain, config=replace(plain.config, steps=steps))


def of_atlas(condition: Condition, share: float) -> dict[str, Spec]:
    short = replace(condition, plain=shorter(condition.plain, share))
    fast = short.at(lr=3.0)
    specs = {"plain": short.plain, "rate": short.at(lr=STEP)}
    for name, at in (("bn", short.plain), ("bn_rate", fast)):
        specs[name] = replace(at, norm="batch", temperature=predicted(at))
    return specs


def of_standard(condition: standard.Condition, share: float) -> dict[str, Spec]:
    short = replace(condition, plain=shorter(condition.plain, share))
    bn = {"bn": short.with_norm(short.law()), "bn_rate": short.with_norm(short.law(3.0), lr=3)}
    return {"plain": short.plain, "rate": short.at(lr=3.0), "decay": short.at(decay=3), **bn}


def full_length() -> Iterator[tuple[str, str, float, dict[float, dict[str, Spec]], dict[str, float]]]:  # fmt: skip
    """Each training: its name, kind, steps, the short runs by share, and what each way gained in the end."""
    rows = pd.read_csv(FOLDER.parent / "atlas2" / "conditions.csv")
    whole = ~rows["norms"].isin(("pretrained", "frozen"))
    for _, row in rows[(rows["steps"] >= LEAST) & whole].iterrows():
        number = int(row["condition"])
        gains = {way: row[column] - row["plain"] for way, column in COLUMNS.items()}
        specs = {share: of_atlas(drawn(number), share) for share in SHARES}
        yield str(number), row["family"], row["steps"], specs, gains
    runs = standard_pages.gains(standard_pages.frame(exported(standard_pages.FOLDER / "store.parquet")))  # fmt: skip
    runs = runs.assign(way=runs["recipe"].map(standard.ACTIONS))
    for condition in (c for c in standard.CONDITIONS if c.kind == "full"):
        mine = runs[(runs["condition"] == condition.name) & runs["way"].isin(WAYS)]
        gains = mine.groupby("way")["gain"].mean().to_dict()
        if gains.keys() == WAYS.keys():
            specs = {share: of_standard(condition, share) for share in SHARES}
            yield condition.name, condition.network, condition.plain.config.steps, specs, gains


def calls(found: Results) -> pd.DataFrame:
    """One row for each way, share and training that was run: the pilot's difference and the one at full length."""
    rows = []
    for name, kind, steps, by_share, gains in full_length():
        for share, specs in by_share.items():
            scores = {way: [accuracy(found, replace(s, seed=n), "val_accuracy") for n in SEEDS] for way, s in specs.items()}  # fmt: skip
            if any(None in part for part in scores.values()):
                continue
            means = {way: 100 * sum(part) / len(part) for way, part in scores.items()}
            for way in (way for way in WAYS if way in gains and way in means):
                rows.append({"training": name, "network": kind, "steps": steps, "share": share, "way": way,
                             "pilot": means[way] - means["plain"], "full": gains[way]})  # fmt: skip
    return pd.DataFrame(rows).dropna()


def judged(rows: pd.DataFrame) -> pd.DataFrame:
    """Of the clear cases: how many were called right; a tie of the pilot is half right."""
    clear = rows[rows["full"].abs() > CLEAR]
    same = (clear["pilot"] * clear["full"] > 0) + 0.5 * (clear["pilot"] == 0)
    made = clear.assign(right=same.astype(float), up=clear["full"] > 0)
    parts = [made.assign(part="all"), made.assign(part=made["way"].map(WAYS))]
    parts.append(made.assign(part=made["up"].map({True: "gained at full length", False: "lost at full length"})))  # fmt: skip
    parts.append(made.assign(part=made["network"]))
    return pd.concat(parts).groupby(["part", "share"])["right"].agg(["mean", "size"]).reset_index()


def draw(rows: pd.DataFrame) -> None:
    import matplotlib.pyplot as plt

    some = rows[rows["share"] == max(SHARES)]
    figure, axis = plt.subplots(figsize=(6, 4))
    for way, part in some.groupby("way"):
        axis.plot(
            part["pilot"].clip(-20, 20), part["full"].clip(-20, 20), "o", ms=4, label=WAYS[str(way)]
        )
    axis.axhspan(-CLEAR, CLEAR, color="0.93")
    axis.axhline(0, color="0.6", lw=0.8)
    axis.axvline(0, color="0.6", lw=0.8)
    axis.set_xlabel(f"over plain in a pilot of {max(SHARES):.0%}, points of validation accuracy")
    axis.set_ylabel("at full length, test accuracy")
    axis.legend()
    figure.tight_layout()
    figure.savefig(FOLDER / "calls.png", dpi=130, metadata={"Software": None})
    plt.close(figure)


def called() -> str:
    """The table of the page."""
    made = judged(pd.read_csv(FOLDER / "calls.csv"))
    cells = made.assign(text=[f"{100 * m:.0f} % of {n}" for m, n in zip(made["mean"], made["size"], strict=True)])  # fmt: skip
    wide = cells.pivot(index="part", columns="share", values="text").fillna("–")
    lines = [[str(part), *row] for part, row in zip(wide.index, wide.to_numpy(), strict=True)]
    return table(["clear cases called right, by the share of the steps", *(f"{100 * s:g} %" for s in wide.columns)], lines)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("what", choices=("run", "tables"))
    parser.add_argument("--store", type=Path)
    parser.add_argument("--data-root")
    given = parser.parse_args()
    if given.what == "tables":
        rows = calls(exported(FOLDER / "store.parquet"))
        rows.to_csv(FOLDER / "calls.csv", index=False, float_format="%.5g")
        draw(rows)
        return
    torch.set_num_threads(1)
    with Store(given.store, create=True) as store:
        for name, _, _, by_share, _ in full_length():
            pilots = (replace(s, seed=n) for ways in by_share.values() for s in ways.values() for n in SEEDS)  # fmt: skip
            for outcome in run_all(store, pilots, given.data_root, "pilots"):
                print(name, outcome.key, outcome.status, flush=True)


if __name__ == "__main__":
    main()
