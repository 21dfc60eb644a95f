"""What the first atlas says of the user's question: BN and T against the plain model, same seeds.

    python -m research.gain        # → results/atlas/gain.csv, gain_by_kind.csv, by_model.csv

Only the conditions that were also run plain (no norm, T = 1) count: 26 of the atlas. The law's coefficients are fitted without
the condition's data set. Neither learning rate nor weight decay was tuned for the plain model.
"""

from __future__ import annotations

import pandas as pd

from research.atlas import BUDGET, RESULTS, grid
from research.laws.candidates import LAWS
from research.laws.fitting import Facts, Law, fit_law, leave_one_out, left_out_rule
from tstar.curves import Curve, conditions, judge
from tstar.evidence import RULES, atlas, cases

KINDS = {
    "images": lambda f: f["domain"] == "image" and f["scenario"] == "scratch",
    "sensors": lambda f: f["domain"] == "signal",
    "texts": lambda f: f["domain"] == "text" and f["scenario"] == "scratch",
    "MobileNetV2, fine-tuned": lambda f: "mobilenet" in f["model"],
    "MiniLM, fine-tuned": lambda f: "minilm" in f["model"],
}


def gains() -> pd.DataFrame:
    """One row per condition with a plain twin and per rule: points over the plain model."""
    runs = atlas(1)
    law = left_out_rule(
        LAWS[BUDGET], leave_one_out(LAWS[BUDGET], [*map(grid, cases(runs, "batch"))])
    )
    rules = {
        "BN, T = 1": lambda f: 1.0,
        "BN, T of the law": law,
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


def model_left_out() -> pd.DataFrame:
    """Regret to the best T of the grid, the law fitted without the network's family; and that of BN with T = 1."""
    found = [grid(case) for case in cases(atlas(1), "batch")]
    law, rows = LAWS[BUDGET], []
    for model in sorted({_family(case) for case in found}):
        mine = [case for case in found if _family(case) == model]
        theta = fit_law(law, [case for case in found if _family(case) != model])
        regrets = [
            [
                100 * (case.at(case.best) - case.at(T))
                for T in (_law_temperature(law, theta, case), 1.0)
            ]
            for case in mine
        ]
        advised, one = (sum(column) / len(mine) for column in zip(*regrets, strict=True))
        rows.append({"model": model, "conditions": len(mine), "law": advised, "one": one})
    return pd.DataFrame(rows)


def _family(case: Curve) -> str:
    return str(case.facts["model"]).removesuffix("-1d")


def _law_temperature(law: Law, theta: tuple[float, ...], case: Curve) -> float:
    return float(law.temperature(theta, Facts.of([case.facts]))[0])


def main() -> None:
    table = gains()
    summary, models = by_kind(table), model_left_out()
    print(models.round(2).to_string(index=False), models[["law", "one"]].mean().round(2).to_dict())
    for name, content in {"gain": table, "gain_by_kind": summary, "by_model": models}.items():
        content.to_csv(RESULTS / f"{name}.csv", index=False, float_format="%.5g")
    print(summary.round(2).to_string(index=False))


if __name__ == "__main__":
    main()
