"""The standard atlas as a page: results/standard/README.md, runs.csv and gains.png, from the runs that exist.

python -m research.standard_pages
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from research.markdown import folded, table
from research.running import Results, exported, identity
from research.standard import CONDITIONS, LEADERS, Condition, rates, roads, runs_of

FOLDER = Path(__file__).resolve().parents[1] / "results" / "standard"
SCORES = ("val_accuracy", "test_accuracy", "train_accuracy")
FIXED = {  # the recipes that every full condition has, with the head of their column
    "plain, rate × 0.333": "rate ÷ 3",
    "plain, rate × 3": "rate × 3",
    "plain, head × 10": "head × 10",
    "plain, decay × 3": "decay × 3",
    "plain, decay × 10": "decay × 10",
    "BN, T = 1": "BN, T = 1",
    "BN cn": "BN, paper's T",
    "BN law": "BN, law's T",
    "BN law, rate × 3": "and rate × 3",
    "BN law, rate × 3, decay × 3": "and decay × 3",
}
BEGIN = """# Trainings as people run them

Plain at its usual recipe, its rivals and T, on networks that are natively wide and data that they can learn, with augmentation. What
was expected is in [expectations.md](expectations.md), written before the runs; the design is in `research/standard.py`.
"""
END = """
Rebuild: `python -m research.standard --store standard.db --data-root DATA --part 1/2` (and 2/2), `tstar runs export standard.db
results/standard/store.parquet`, `python -m research.standard_pages`. One thread of a CPU.
"""


def frame(found: Results) -> pd.DataFrame:
    """One row per finished run, in the order of the list; accuracies in %, a diverged run at chance."""
    rows = []
    for condition in CONDITIONS:
        for name, spec in runs_of(condition, found).items():
            run, c = found.get(identity(spec)), spec.config
            if run is None:
                continue
            recipe = name.partition(", seed ")[0]
            where = {"condition": condition.name, "kind": condition.kind, "recipe": recipe}
            facts = {"M": condition.M, "K": condition.K, "lr": c.lr, "decay": c.weight_decay, "head_lr": c.head_lr}  # fmt: skip
            forgets = c.lr * c.weight_decay * c.steps if c.steps else np.nan
            scores = {n: 100 * (1 / condition.K if run["status"] == "diverged" else np.nan if run[n] is None else run[n]) for n in SCORES}  # fmt: skip
            rows.append({**where, "scenario": spec.scenario, "optimizer": c.optimizer, **facts, "T": spec.temperature,
                         "lr_decay_steps": forgets, "seed": spec.seed, **scores, "seconds": run["seconds"]})  # fmt: skip
    return pd.DataFrame(rows)


def complete(condition: Condition, found: Results) -> bool:
    return all(identity(spec) in found for spec in runs_of(condition, found).values())


def gains(runs: pd.DataFrame) -> pd.DataFrame:
    """Test accuracy over plain at its usual recipe, on the same seed."""
    plain = runs[runs["recipe"] == "plain"].set_index(["condition", "seed"])["test_accuracy"]
    keys = pd.MultiIndex.from_frame(runs[["condition", "seed"]])
    return runs.assign(gain=runs["test_accuracy"].to_numpy() - plain.reindex(keys).to_numpy())


def fixed_table(runs: pd.DataFrame) -> str:
    """Every recipe on seed 0, where nothing was chosen."""
    first = runs[(runs["seed"] == 0) & (runs["kind"] == "full")]
    lines = []
    for name, part in first.groupby("condition", sort=False):
        by = part.set_index("recipe")
        cells = [f"{by['gain'][recipe]:+.1f}" if recipe in by.index else "–" for recipe in FIXED]
        plain = by.loc["plain"]
        lines.append([str(name), f"{plain['test_accuracy']:.1f}", f"{plain['train_accuracy']:.0f}", *cells])  # fmt: skip
    return table(["condition", "plain %", "training %", *FIXED.values()], lines)


def chosen_table(runs: pd.DataFrame, found: Results) -> str:
    """What validation chose on seed 0, scored on the further seeds."""
    lines = []
    for condition in (c for c in CONDITIONS if c.kind == "full" and complete(c, found)):
        mine = runs[(runs["condition"] == condition.name) & (runs["seed"] > 0)]
        best = rates(condition, found)[1]
        road = {name: road for road, recipes in roads(condition).items() for name in recipes}
        for recipe, part in mine.groupby("recipe", sort=False):
            why = "usual" if recipe == "plain" else road.get(str(recipe), "best rate")
            why = "usual and best rate" if recipe == "plain" == best else why
            scores = " ".join(f"{value:.1f}" for value in part["test_accuracy"])
            lines.append([condition.name, str(recipe), why, f"{part['lr'].iloc[0]:g}", scores, f"{part['gain'].mean():+.1f}"])  # fmt: skip
    return table(["condition", "recipe", "road", "rate", "test %, fresh seeds", "gain"], lines)


def short_table(runs: pd.DataFrame) -> str:
    lines = []
    for name, part in runs[runs["kind"] == "short"].groupby("condition", sort=False):
        cells = [str(name)]
        for recipe in ("plain", "BN law", "BN law, rate × 3"):
            found = part[part["recipe"] == recipe]
            value = found["test_accuracy" if recipe == "plain" else "gain"]
            shown = f"{value.mean():.1f}" if recipe == "plain" else f"{value.mean():+.1f}"
            cells.append(f"{shown} ({len(found)})" if len(found) else "–")
        lines.append(cells)
    return table(["network", "plain %", "BN, law's T", "and rate × 3"], lines)


def paper_table(runs: pd.DataFrame) -> str:
    part = runs[runs["kind"] == "paper"]
    return table(["run", "test %"], [[r["recipe"], f"{r['test_accuracy']:.2f}"] for _, r in part.iterrows()])  # fmt: skip


def figure(runs: pd.DataFrame) -> None:
    """One dot per condition and recipe, on seed 0; a bar at the median of those from scratch, and of fine-tunings."""
    first = runs[(runs["seed"] == 0) & (runs["kind"] == "full") & runs["recipe"].isin(FIXED)]
    names = list(FIXED)
    fig, axes = plt.subplots(2, figsize=(9, 7), sharex=True)
    for axis, (scenario, title) in zip(axes, {"scratch": "From scratch", "finetune": "Fine-tuning"}.items(), strict=True):  # fmt: skip
        mine = first[first["scenario"] == scenario]
        for shift, (optimizer, part) in zip((-0.12, 0.12), mine.groupby("optimizer"), strict=False):
            label = f"{'SGD' if optimizer == 'sgd' else 'AdamW'}, {part['condition'].nunique()} conditions"
            axis.plot(part["recipe"].map(names.index) + shift, part["gain"], "o", ms=4, alpha=0.7, label=label)  # fmt: skip
        medians = mine.groupby("recipe")["gain"].median().reindex(names)
        axis.hlines(medians, np.arange(len(names)) - 0.3, np.arange(len(names)) + 0.3, color="black", label="median")  # fmt: skip
        axis.axhline(0, color="gray", lw=0.8)
        axis.set(title=title, ylabel="points over plain, usual recipe")
        axis.legend(fontsize=8)
    axes[1].set_xticks(range(len(names)), FIXED.values(), rotation=35, ha="right")
    fig.tight_layout()
    fig.savefig(FOLDER / "gains.png", dpi=130, metadata={"Software": None})
    plt.close(fig)


def sentences(runs: pd.DataFrame, found: Results) -> str:
    """How much there is, what each recipe gave from scratch and in fine-tuning, and what validation led to."""
    done = [c for c in CONDITIONS if complete(c, found)]
    tuned = sum(c.plain.scenario == "finetune" for c in done)
    full = runs[runs["kind"] == "full"]
    first = full[(full["seed"] == 0) & full["recipe"].isin(FIXED)]
    said = [f"{len(done)} of {len(CONDITIONS)} conditions are complete, {tuned} of them fine-tunings with three seeds; {len(found):,} runs."]  # fmt: skip
    for scenario, words in {"scratch": "From scratch", "finetune": "In fine-tuning"}.items():
        # Matched: of conditions that have every one of these recipes.
        per = first[first["scenario"] == scenario].pivot_table(index="condition", columns="recipe", values="gain")  # fmt: skip
        per = per.reindex(columns=list(FIXED)).dropna()
        parts = [f"{FIXED[n]} {per[n].median():+.1f} ({per[n].mean():+.1f})" for n in FIXED]
        if len(per):
            said.append(f"**{words}** ({len(per)} conditions, first seed; median and mean over plain at its usual recipe): {', '.join(parts)}.")  # fmt: skip
    led = full[(full["seed"] > 0) & (full["recipe"] != "plain")]
    kind = np.where(led["recipe"].str.startswith("plain"), "plain's own knobs", "BN with some T")
    best = led.groupby([led["scenario"], led["condition"], kind])["gain"].mean().unstack().dropna()
    for scenario, part in best.groupby("scenario"):
        ahead = [f"{name} {part[name].median():+.1f} ({part[name].mean():+.1f})" for name in part]
        said.append(f"What validation chose gained on fresh seeds, {scenario}, {len(part)} conditions that have both: {', '.join(ahead)}.")  # fmt: skip
    return "\n\n".join(said)


def main() -> None:
    found = exported(FOLDER / "store.parquet")
    runs = gains(frame(found))
    runs.to_csv(FOLDER / "runs.csv", index=False, float_format="%.5g")
    figure(runs)
    parts = [
        BEGIN,
        "![gains](gains.png)\n",
        sentences(runs, found) + "\n",
        "Points of test accuracy; a seed moves a small set's number by 1 to 3. Only complete conditions are among the chosen ones.\n",
        folded("Every recipe, first seed", fixed_table(runs)),
        folded(f"What validation chose, on fresh seeds: plain's best rate, and the best recipe of the {LEADERS} leading roads", chosen_table(runs, found)),
        folded("Native or widened (\"on 64\": a wide layer on a trunk of 64); seeds in brackets", short_table(runs)),
        folded("The paper's protocol", paper_table(runs)),
    ]  # fmt: skip
    (FOLDER / "README.md").write_text("\n".join(parts) + "\n" + END, encoding="utf-8")


if __name__ == "__main__":
    main()
