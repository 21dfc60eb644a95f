"""What the first atlas says of the user's question: BN and T against the plain model, same seeds.

    python -m research.gain        # → results/atlas/gain.csv, gain_by_kind.csv

Only the conditions that were also run plain (no norm, T = 1) count: 26 of the atlas. Neither learning rate nor weight
decay was tuned for the plain model.
"""

from __future__ import annotations

import pandas as pd

from research.atlas import RESULTS
from research.regret import RULES
from tstar.lab.curves import conditions, judge
from tstar.lab.evidence import atlas

KINDS = {
    "images": lambda f: f["domain"] == "image" and f["scenario"] == "scratch",
    "sensors": lambda f: f["domain"] == "signal",
    "texts": lambda f: f["domain"] == "text" and f["scenario"] == "scratch",
    "MobileNetV2, fine-tuned": lambda f: "mobilenet" in f["model"],
    "MiniLM, fine-tuned": lambda f: "minilm" in f["model"],
}


def gains() -> pd.DataFrame:
    """One row per condition with a plain twin and per rule: points over the plain model."""
    runs = atlas().query("atlas == 1")
    rules = {
        "BN, T = 1": lambda f: 1.0,
        "BN, T of the paper's cn": RULES["ours-cn"],
    }
    rows = []
    for condition in conditions(runs):
        if condition.plain() is None or condition.curve() is None:
            continue
        kind = next(name for name, fits in KINDS.items() if fits(condition.facts))
        facts = {
            name: condition.facts[name]
            for name in ("dataset", "model", "num_features", "optimizer")
        }
        for rule, temperature in rules.items():
            judged = judge(condition, temperature(condition.facts))
            if judged is not None and judged.gain is not None:
                rows.append(
                    {**facts, "kind": kind, "rule": rule, "T": judged.temperature, "plain": condition.plain(),
                     "gain": judged.gain, "seeds": judged.plain_seeds}
                )  # fmt: skip
    return pd.DataFrame(rows)


def by_kind(table: pd.DataFrame) -> pd.DataFrame:
    groups = table.groupby(["kind", "rule"], sort=False)["gain"]
    return groups.agg(conditions="size", mean="mean", lowest="min", highest="max").reset_index()


def main() -> None:
    table = gains()
    summary = by_kind(table)
    for name, content in {"gain": table, "gain_by_kind": summary}.items():
        content.to_csv(RESULTS / f"{name}.csv", index=False, float_format="%.5g")
    print(summary.round(2).to_string(index=False))


if __name__ == "__main__":
    main()
