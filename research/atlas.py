"""The atlas: from the sweep's store to the file in the package, and to the tables of results/atlas.

    tstar sweep studies/atlas.toml --store atlas.db --workers 2 --data-root FOLDER
    python -m research.atlas export atlas.db      # → src/tstar/lab/evidence/atlas.parquet
    python -m research.atlas others               # results/*/store.parquet of the other sources → src/tstar/lab/evidence
    python -m research.atlas tables               # → results/atlas/*.csv and figures
    python -m research.pages                      # the tables of the written results

Every table is computed from ``tstar.lab.atlas()``, so anyone can rebuild it without a training run.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from research.atlas_figures import LABELS, cliffs, curves, regrets, too_hot
from research.left_out import OWN, left_out_rule
from research.regret import RULES, Rule, cases, compare, noise, scores
from tstar.errors import TstarError
from tstar.lab.curves import Condition, Curve
from tstar.lab.curves.resampling import clusters
from tstar.lab.evidence import FILES, atlas
from tstar.lab.fitting import per_environment
from tstar.lab.report.style import save

ROOT = Path(__file__).resolve().parents[1]
PACKAGED = ROOT / "src" / "tstar" / "lab" / "evidence" / FILES[1]
RESULTS = ROOT / "results" / "atlas"
CORE = {"optimizer": "sgd", "lr": 0.1, "steps": 800, "scenario": "scratch", "model": ("vgg9", "vgg9-1d", "mlp")}  # fmt: skip


def grid(condition: Condition, norm: str = "batch") -> Curve:
    """The condition's curve with the seeds that have all of it."""
    curve = condition.curve(norm)
    assert curve is not None
    return curve.matched()


def export(stores: list[Path], packaged: Path = PACKAGED) -> None:
    """The finished runs of the stores, with the columns of an analysis, in a fixed order."""
    from tstar.lab.sweep.transfer import load_runs

    frame = pd.concat([load_runs(store) for store in stores], ignore_index=True)
    frame = frame[frame["status"].isin(("done", "diverged"))].drop_duplicates("key")
    order = ["scenario", "dataset", "model", "num_features", "norm", "method", "optimizer", "lr"]
    columns = pd.read_parquet(PACKAGED.with_name(FILES[2])).columns
    frame = frame.sort_values([*order, "steps", "temperature", "seed", "key"]).reindex(columns=columns)  # fmt: skip
    frame.to_parquet(packaged, index=False, compression="zstd")
    print(f"{len(frame)} runs → {packaged.name}, {packaged.stat().st_size / 1e6:.2f} MB")


def chosen(found: list[Condition], **facts: object) -> list[Condition]:
    """The conditions with these facts; a tuple allows several values."""

    def fits(case: Condition) -> bool:
        return all(
            case.facts.get(name) in value if isinstance(value, tuple) else case.facts.get(name) == value
            for name, value in facts.items()
        )  # fmt: skip

    return [case for case in found if fits(case)]


def all_rules(core: list[Condition]) -> dict[str, Rule]:
    """The closed forms, and the paper's form fitted on the core, each data set left out in its turn."""
    own = {f"{name}, left out": left_out_rule(name, [*map(grid, core)]) for name in OWN}
    return {**RULES, **own}


def rules_tables(found: list[Condition]) -> dict[str, pd.DataFrame]:
    """Every rule on all conditions, on the core, on each way of training, and beside the trained rivals."""
    core = chosen(found, **CORE)
    rules = all_rules(core)
    # Coefficients fitted on the core know nothing of data sets that it lacks (the other sizes of images, joined sets).
    general = {name: rule for name, rule in rules.items() if not name.startswith("own")}
    everything = scores(found, general)
    parts = {"all": everything, "core": scores(core, rules)}
    members = {"all": found, "core": core}
    for case in found:
        members.setdefault(way(case.facts), []).append(case)
    for name, some in members.items():
        parts.setdefault(name, scores(some, general))
    trained = methods_table(found)
    members["rivals"] = with_rivals(core, trained)
    parts["rivals"] = beside_rivals(members["rivals"], rules, trained)
    rows = []
    for name, table in parts.items():
        lost, count = noise([*map(grid, members[name])])
        part = compare(table).assign(noise=lost, noise_conditions=count, training_runs=1)
        part.insert(0, "part", name)
        rows.append(part)
        runs_each = np.mean([len(grid(case).temperatures) for case in members[name]])
        rows.append(pd.DataFrame([{"part": name, "rule": "oracle", "conditions": part["conditions"].max(), "regret": 0.0, "captured": 1.0, "training_runs": runs_each}]))  # fmt: skip
    return {
        "conditions": everything,
        "rules": pd.concat(rows, ignore_index=True),
        "methods": trained,
    }


def with_rivals(core: list[Condition], trained: pd.DataFrame) -> list[Condition]:
    """The conditions on which every trained method has been run."""
    there = trained.groupby("place")["rule"].nunique()
    full = set(there[there == trained["rule"].nunique()].index)
    return [case for case in core if place(case) in full]


def beside_rivals(
    mine: list[Condition], rules: dict[str, Rule], trained: pd.DataFrame
) -> pd.DataFrame:
    """The closed forms and the trained methods on the same conditions."""
    numbers = {place(case): i for i, case in enumerate(mine)}
    rows = trained[trained["place"].isin(numbers)].copy()
    rows["condition"] = [numbers[place] for place in rows["place"]]
    return pd.concat([scores(mine, rules), rows], ignore_index=True)


def way(f: Mapping[str, Any]) -> str:
    """The way of training, in words."""
    return f"{f['scenario']} {f['optimizer']} lr={f['lr']:g} steps={f['steps']:g}"


def cliff_table(found: list[Condition]) -> pd.DataFrame:
    """Where training gets too hot: the T where a tenth and a half of the accuracy is lost."""
    rows = []
    for case in found:
        curve = grid(case)
        keys = ("dataset", "model", "num_features", "num_classes", "csg", "norm", "optimizer", "lr", "steps", "scenario")  # fmt: skip
        rows.append(
            {
                **{key: curve.facts.get(key) for key in keys},
                "best_temperature": curve.best,
                "tenth_lost": too_hot(curve, 0.1),
                "half_lost": too_hot(curve),
                "accuracy_1": curve.at(1.0),
                "accuracy_best": curve.at(curve.best),
            }
        )
    return pd.DataFrame(rows)


def cliff_powers(cliffs: pd.DataFrame) -> pd.DataFrame:
    """Least squares of ln T, where a tenth of the accuracy is lost, on ln(lr·steps), ln M and ln K, by optimizer."""
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
    """BN before the head against none, over the seeds of both: at T = 1, at the paper's T* (cn), each at its best T; in points."""
    rows = []
    for case in cases(runs, "none"):
        if case.curve() is None:
            continue
        plain, other = grid(case, "none"), grid(case)
        shared = set(plain.seeds) & set(other.seeds)
        if not shared:
            continue
        plain, other = plain.only(shared), other.only(shared)
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


def place(case: Condition) -> str:
    """The facts of a condition as a text, to join tables by."""
    return "·".join(f"{name}={value}" for name, value in case.facts.items())


def methods_table(found: list[Condition]) -> pd.DataFrame:
    """Rivals that are trained, on the conditions and seeds that have a whole grid: a diverged run counts as chance."""
    rows = []
    for case in found:
        curve = grid(case)
        for method, by_seed in case.methods.items():
            seeds = [seed for seed in curve.seeds if seed in by_seed]
            if not seeds:
                continue
            mine = 100 * float(np.mean([by_seed[seed]["test"] for seed in seeds]))
            same = curve.only(seeds)
            rows.append(
                {
                    "dataset": case.facts["dataset"],
                    "num_features": case.facts["num_features"],
                    "place": place(case),
                    "rule": f"{method}, trained",
                    "seeds": len(seeds),
                    "accuracy": mine,
                    "regret": 100 * same.at(curve.best) - mine,
                    "gain_bn": mine - 100 * same.at(1.0),
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
        raise TstarError("No data set has two widths with and without BN.")
    frame = pd.concat(frames)
    # The same widths with and without the norm, so that only the norm differs.
    return per_environment(frame, skip=True)


def figures(found: list[Condition], rules: pd.DataFrame) -> None:
    core = chosen(found, **CORE)
    save(curves([*map(grid, core)]), RESULTS / "curves.png")
    save(cliffs([*map(grid, found)]), RESULTS / "cliffs.png")
    for part in ("core", "all", "rivals"):
        kept = rules[rules["rule"] != "oracle"]
        save(regrets(kept, part, LABELS), RESULTS / f"regret_{part}.png")


def tables() -> None:
    RESULTS.mkdir(parents=True, exist_ok=True)
    runs = atlas().query("atlas == 1")
    found = cases(runs, "batch")
    made = rules_tables(found)
    made |= {
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
    for name in ("cliff_powers", "bn", "bn_effect", "spread"):
        print(f"\n{name}\n{made[name].round(3).to_string(index=False)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("export").add_argument("stores", nargs="+", type=Path)
    commands.add_parser("others")
    commands.add_parser("tables")
    args = parser.parse_args()
    if args.command == "export":
        export(args.stores)
    elif args.command == "others":
        for name in (FILES[number] for number in FILES if number > 1):
            export([ROOT / "results" / Path(name).stem / "store.parquet"], PACKAGED.with_name(name))
    else:
        tables()


if __name__ == "__main__":
    main()
