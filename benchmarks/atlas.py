"""The atlas: from the sweep's store to the file in the package, and to the tables of results/atlas.

    tstar sweep studies/atlas.toml --store atlas.db --workers 2 --data-root FOLDER
    python benchmarks/atlas.py export atlas.db      # → src/tstar/evidence/atlas.parquet
    python benchmarks/atlas.py tables               # → results/atlas/*.csv and figures
    python benchmarks/pages.py                      # the tables of the written results

Every table is computed from ``tstar.atlas()``, so anyone can rebuild it without a training run.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tstar.errors import TstarError
from tstar.evidence import (
    RULES,
    atlas,
    cases,
    compare,
    noise,
    scores,
    shared_exponent,
    too_hot,
)
from tstar.evidence.candidates import LAWS, clipped
from tstar.evidence.cases import Case, clusters
from tstar.evidence.laws import Law, leave_one_out, left_out_rule
from tstar.evidence.regret import Rule
from tstar.evidence.stored import COLUMNS, FILE
from tstar.fitting import per_environment
from tstar.report.style import save

ROOT = Path(__file__).resolve().parents[1]
PACKAGED = ROOT / "src" / "tstar" / "evidence" / FILE
RESULTS = ROOT / "results" / "atlas"
CORE = {"optimizer": "sgd", "lr": 0.1, "steps": 800, "scenario": "scratch", "model": ("vgg9", "vgg9-1d", "mlp")}  # fmt: skip

# What a condition is, but for T, the norm, the method and the seed.
PLACE = ("dataset", "model", "num_features", "optimizer", "lr", "steps", "scenario")


def export(stores: list[Path]) -> None:
    """The finished runs of the stores, with the columns of an analysis, in a fixed order."""
    from tstar.sweep.transfer import load_runs

    frame = pd.concat([load_runs(store) for store in stores], ignore_index=True)
    frame = frame[frame["status"].isin(("done", "diverged"))].drop_duplicates("key")
    order = ["scenario", "dataset", "model", "num_features", "norm", "method", "optimizer", "lr"]
    frame = frame.sort_values([*order, "steps", "temperature", "seed", "key"])[list(COLUMNS)]
    frame.to_parquet(PACKAGED, index=False, compression="zstd")
    print(f"{len(frame)} runs → {PACKAGED.name}, {PACKAGED.stat().st_size / 1e6:.2f} MB")


def chosen(found: list[Case], **facts: object) -> list[Case]:
    """The conditions with these facts; a tuple allows several values."""

    def fits(case: Case) -> bool:
        return all(
            case.facts.get(name) in value if isinstance(value, tuple) else case.facts.get(name) == value
            for name, value in facts.items()
        )  # fmt: skip

    return [case for case in found if fits(case)]


# The paper's own form with coefficients of ours; T is linear in them, so a box is all it needs.
OWN = {
    "own base": Law("own base", "α·sqrt(M) + β", ((-1.0, 2.0), (-8.0, 12.0)),
                    lambda theta, f: clipped(theta[0] * np.sqrt(f.M) + theta[1], 1.0)),
    "own cn": Law("own cn", "α·sqrt(M) + β + δ·ln K", ((-1.0, 2.0), (-8.0, 24.0), (-6.0, 2.0)),
                  lambda theta, f: clipped(theta[0] * np.sqrt(f.M) + theta[1] + theta[2] * np.log(f.K), 1.0)),
}  # fmt: skip
BUDGET = "min(cn, limit)"


def all_rules(found: list[Case], core: list[Case]) -> dict[str, Rule]:
    """The closed forms, the paper's form fitted on the core, and the budget fitted on everything: each
    data set judged by a fit that has not seen it."""
    rules: dict[str, Rule] = dict(RULES)
    for name, law in OWN.items():
        rules[f"{name}, left out"] = left_out_rule(law, leave_one_out(law, core))
    rules["budget, left out"] = left_out_rule(LAWS[BUDGET], leave_one_out(LAWS[BUDGET], found))
    return rules


def rules_tables(found: list[Case], runs: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Every rule on all conditions, on the core, on each way of training, and beside the trained rivals."""
    core = chosen(found, **CORE)
    rules = all_rules(found, core)
    # Coefficients fitted on the core know nothing of data sets that it lacks (the other sizes of images, joined sets).
    general = {name: rule for name, rule in rules.items() if not name.startswith("own")}
    everything = scores(found, general)
    parts = {"all": everything, "core": scores(core, rules)}
    members = {"all": found, "core": core}
    for case in found:
        members.setdefault(way(case.facts), []).append(case)
    for name, some in members.items():
        parts.setdefault(name, scores(some, general))
    trained = methods_table(runs)
    members["rivals"] = with_rivals(core, trained)
    parts["rivals"] = beside_rivals(members["rivals"], rules, trained)
    rows = []
    for name, table in parts.items():
        lost, count = noise(members[name])
        part = compare(table).assign(noise=lost, noise_conditions=count, training_runs=1)
        part.insert(0, "part", name)
        rows.append(part)
        grid = np.mean([len(case.temperatures) for case in members[name]])
        rows.append(pd.DataFrame([{"part": name, "rule": "oracle", "conditions": part["conditions"].max(), "regret": 0.0, "captured": 1.0, "training_runs": grid}]))  # fmt: skip
    return {
        "conditions": everything,
        "rules": pd.concat(rows, ignore_index=True),
        "methods": trained,
    }


def with_rivals(core: list[Case], trained: pd.DataFrame) -> list[Case]:
    """The conditions on which every trained method has been run."""
    there = trained.groupby("place")["rule"].nunique()
    full = set(there[there == trained["rule"].nunique()].index)
    return [case for case in core if "·".join(_place(case)) in full]


def beside_rivals(mine: list[Case], rules: dict[str, Rule], trained: pd.DataFrame) -> pd.DataFrame:
    """The closed forms and the trained methods on the same conditions."""
    numbers = {"·".join(_place(case)): i for i, case in enumerate(mine)}
    rows = trained[trained["place"].isin(numbers)].copy()
    rows["condition"] = [numbers[place] for place in rows["place"]]
    return pd.concat([scores(mine, rules), rows], ignore_index=True)


def way(f: Mapping[str, Any]) -> str:
    """The way of training, in words."""
    return f"{f['scenario']} {f['optimizer']} lr={f['lr']:g} steps={f['steps']:g}"


def exponents_table(found: list[Case]) -> pd.DataFrame:
    """How the best T moves with M, lr and steps, by optimiser."""
    rows = []
    for optimizer in ("sgd", "adamw"):
        mine = [
            c
            for c in found
            if c.facts["optimizer"] == optimizer and c.facts["scenario"] == "scratch"
        ]
        for variable in ("num_features", "lr", "steps"):
            try:
                e = shared_exponent(mine, variable)
            except ValueError:
                continue
            at = {b: float(np.interp(b, e.grid, e.profile)) for b in (0.0, 0.5, 1.0)}
            rows.append(
                {
                    "optimizer": optimizer,
                    "variable": variable,
                    "exponent": e.value,
                    "low": e.low,
                    "high": e.high,
                    "groups": e.groups,
                    **{f"lost_at_{b:g}": 100 * (e.profile.max() - v) for b, v in at.items()},
                }
            )
    return pd.DataFrame(rows)


def cliff_table(found: list[Case]) -> pd.DataFrame:
    """Where training gets too hot: the T where a tenth and a half of the accuracy is lost."""
    rows = []
    for case in found:
        keys = ("dataset", "model", "num_features", "num_classes", "csg", "norm", "optimizer", "lr", "steps", "scenario")  # fmt: skip
        rows.append(
            {
                **{key: case.facts.get(key) for key in keys},
                "best_temperature": case.best,
                "tenth_lost": too_hot(case, 0.1),
                "half_lost": too_hot(case),
                "accuracy_1": case.at(1.0),
                "accuracy_best": case.at(case.best),
            }
        )
    return pd.DataFrame(rows)


def cliff_powers(cliffs: pd.DataFrame) -> pd.DataFrame:
    """Least squares of ln T, where a tenth of the accuracy is lost, on ln(lr·steps), ln M and ln K, by optimiser."""
    rows = []
    for optimizer, part in cliffs.dropna(subset=["tenth_lost"]).groupby("optimizer"):
        product = part["lr"] * part["steps"]
        facts = [product, part["num_features"], part["num_classes"]]
        X = np.column_stack([np.ones(len(part)), *(np.log(column.astype(float)) for column in facts)])  # fmt: skip
        y = np.log(part["tenth_lost"].to_numpy(dtype=float))
        theta = np.linalg.lstsq(X, y, rcond=None)[0]
        variance = ((y - X @ theta) ** 2).sum() / (len(y) - len(theta))
        errors = np.sqrt(variance * np.diag(np.linalg.inv(X.T @ X)))
        for name, power, error in zip(("lr·steps", "M", "K"), theta[1:], errors[1:], strict=True):
            rows.append({"optimizer": optimizer, "of": name, "power": power, "standard_error": error, "conditions": len(y)})  # fmt: skip
    return pd.DataFrame(rows)


def bn_table(runs: pd.DataFrame) -> pd.DataFrame:
    """BN before the head against none: at T = 1, at the paper's T* (cn) and each at its own best T, in points."""
    with_bn = {_place(c): c for c in cases(runs, "batch")}
    rows = []
    for plain in cases(runs, "none"):
        other = with_bn.get(_place(plain))
        if other is None:
            continue
        rows.append(
            {
                **{
                    name: plain.facts[name]
                    for name in ("dataset", "domain", "num_features", "optimizer", "lr", "scenario")
                },
                "none_1": 100 * plain.at(1.0),
                "batch_1": 100 * other.at(1.0),
                "cn_T": (T := RULES["ours-cn"](plain.facts)),
                "none_cn": 100 * plain.at(T),
                "batch_cn": 100 * other.at(T),
                "none_best_T": plain.best,
                "none_best": 100 * plain.at(plain.best),
                "batch_best_T": other.best,
                "batch_best": 100 * other.at(other.best),
            }
        )
    return pd.DataFrame(rows)


def bn_effect(bn: pd.DataFrame) -> pd.DataFrame:
    """What BN adds, in points: the mean over conditions, with a 95 % interval over data sets that share no data."""
    rows = []
    kinds = bn["domain"].where(bn["scenario"] == "scratch", "fine-tuned")
    for kind, part in bn.groupby(kinds):
        rng = np.random.default_rng(0)
        groups = clusters([*part["dataset"].astype(str)])
        for where in ("1", "cn", "best"):
            gain = (part[f"batch_{where}"] - part[f"none_{where}"]).to_numpy(dtype=float)
            drawn = [gain[np.concatenate([groups[i] for i in rng.integers(len(groups), size=len(groups))])].mean() for _ in range(2000)]  # fmt: skip
            low, high = np.quantile(drawn, [0.025, 0.975])
            rows.append({"kind": kind, "T": where, "gain": gain.mean(), "low": low, "high": high, "least": gain.min(), "most": gain.max(), "conditions": len(gain), "datasets": len(groups)})  # fmt: skip
    return pd.DataFrame(rows)


def _place(case: Case) -> tuple[str, ...]:
    return tuple(str(case.facts.get(key)) for key in PLACE)


def methods_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Rivals that are trained, on the conditions and seeds that have a whole grid: a diverged run counts as chance."""
    found = {_place(c): c for c in cases(runs, "batch")}
    rows = []
    trained = runs[runs["method"] != "fixed"]
    for place, group in trained.groupby([*PLACE, "method"], dropna=False):
        case = found.get(tuple(str(v) for v in place[:-1]))
        if case is None:
            continue
        # Seeds count from 0, and a case has the first of them that have the whole grid.
        group = group[group["seed"] < case.seeds]
        accuracy = group["test_accuracy"].where(group["status"] == "done", 1 / case.facts["num_classes"])  # fmt: skip
        mine = 100 * float(accuracy.mean())
        rows.append(
            {
                "dataset": place[0],
                "num_features": place[2],
                "place": "·".join(str(v) for v in place[:-1]),
                "rule": f"{place[-1]}, trained",
                "seeds": len(group),
                "accuracy": mine,
                "regret": 100 * case.at(case.best) - mine,
                "gain": mine - 100 * case.at(1.0),
            }
        )
    return pd.DataFrame(rows)


def spread_table(runs: pd.DataFrame) -> pd.DataFrame:
    """α and β of every data set and network, without and with BN, and their S.D.: where both have two widths."""
    scratch = runs[(runs["scenario"] == "scratch") & (runs["lr"] == 0.1) & (runs["steps"] == 800)]
    kept = scratch[(scratch["method"] == "fixed") & (scratch["optimizer"] == "sgd")]
    widths = kept.groupby(["dataset", "model", "norm"])["num_features"].agg(lambda m: tuple(sorted(set(m))))  # fmt: skip
    both = []
    for (dataset, model), part in widths.groupby(level=[0, 1]):
        have = {norm: set(part[dataset, model, norm]) for norm in ("none", "batch") if (dataset, model, norm) in part.index}  # fmt: skip
        shared = have.get("none", set()) & have.get("batch", set())
        if len(shared) > 1:
            both.append((dataset, model, shared))
    frames = [kept[(kept["dataset"] == d) & (kept["model"] == m) & kept["num_features"].isin(s)] for d, m, s in both]  # fmt: skip
    if not frames:
        raise TstarError(
            "Two widths with and without BN must be there for some data set, got none."
        )
    frame = pd.concat(frames)
    # The same widths with and without the norm, so that only the norm differs.
    return per_environment(frame, skip=True)


def figures(found: list[Case], rules: pd.DataFrame) -> None:
    from atlas_figures import LABELS, cliffs, curves, regrets

    core = chosen(found, **CORE)
    save(curves(core), RESULTS / "curves.png")
    save(cliffs(found), RESULTS / "cliffs.png")
    for part in ("core", "all", "rivals"):
        kept = rules[rules["rule"] != "oracle"]
        save(regrets(kept, part, LABELS), RESULTS / f"regret_{part}.png")


def tables() -> None:
    RESULTS.mkdir(parents=True, exist_ok=True)
    runs = atlas()
    found = cases(runs, "batch")
    made = rules_tables(found, runs)
    made |= {
        "exponents": exponents_table(found),
        "cliffs": cliff_table(found),
        "bn": bn_table(runs),
        "spread": spread_table(runs),
    }
    made["cliff_powers"] = cliff_powers(made["cliffs"])
    made["bn_effect"] = bn_effect(made["bn"])
    for name, table in made.items():
        table.to_csv(RESULTS / f"{name}.csv", index=False, float_format="%.5g")
    figures(found, made["rules"])
    shown = made["rules"][made["rules"]["part"].isin(("all", "core", "rivals"))]
    print(shown.round(3).to_string(index=False))
    for name in ("exponents", "cliff_powers", "bn", "bn_effect", "spread"):
        print(f"\n{name}\n{made[name].round(3).to_string(index=False)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("export").add_argument("stores", nargs="+", type=Path)
    commands.add_parser("tables")
    args = parser.parse_args()
    if args.command == "export":
        export(args.stores)
    else:
        tables()


if __name__ == "__main__":
    main()
