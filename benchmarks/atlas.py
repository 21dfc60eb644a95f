"""The atlas: from the sweep's store to the file in the package, and to the tables of results/atlas.

    tstar sweep studies/atlas.toml --store atlas.db --workers 2 --data-root FOLDER
    python benchmarks/atlas.py export atlas.db      # → src/tstar/evidence/atlas.parquet
    python benchmarks/atlas.py tables               # → results/atlas/*.csv and figures

Every table is computed from ``tstar.atlas()``, so anyone can rebuild it without a training run.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

from tstar.evidence import (
    atlas,
    cases,
    compare,
    noise,
    scores,
    shared_exponent,
    too_hot,
)
from tstar.evidence.cases import Case
from tstar.evidence.stored import COLUMNS, FILE

ROOT = Path(__file__).resolve().parents[1]
PACKAGED = ROOT / "src" / "tstar" / "evidence" / FILE
RESULTS = ROOT / "results" / "atlas"
CORE = {"optimizer": "sgd", "lr": 0.1, "steps": 800, "scenario": "scratch", "model": ("vgg9", "vgg9-1d", "mlp")}  # fmt: skip


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


def rules_tables(found: list[Case]) -> dict[str, pd.DataFrame]:
    """Every rule on all conditions, on the core, and on each way of training."""
    parts = {"all": found, "core": chosen(found, **CORE)}
    for case in found:
        parts.setdefault(way(case), []).append(case)
    rows = []
    for name, members in parts.items():
        lost, count = noise(members)
        part = compare(scores(members)).assign(noise=lost, noise_conditions=count)
        part.insert(0, "part", name)
        rows.append(part)
    return {"conditions": scores(found), "rules": pd.concat(rows, ignore_index=True)}


def way(case: Case) -> str:
    """The way of training, in words."""
    f = case.facts
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


def bn_table(runs: pd.DataFrame) -> pd.DataFrame:
    """BN before the head against none: at T = 1 and each at its own best T, in points."""
    with_bn = {_place(c): c for c in cases(runs, "batch")}
    rows = []
    for plain in cases(runs, "none"):
        other = with_bn.get(_place(plain))
        if other is None:
            continue
        rows.append(
            {
                "dataset": plain.facts["dataset"],
                "num_features": plain.facts["num_features"],
                "none_1": 100 * plain.at(1.0),
                "batch_1": 100 * other.at(1.0),
                "none_best_T": plain.best,
                "none_best": 100 * plain.at(plain.best),
                "batch_best_T": other.best,
                "batch_best": 100 * other.at(other.best),
            }
        )
    return pd.DataFrame(rows)


def _place(case: Case) -> tuple[str, ...]:
    keys = ("dataset", "model", "num_features", "optimizer", "lr", "steps", "scenario")
    return tuple(str(case.facts.get(key)) for key in keys)


def methods_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Rivals that are trained: mean test accuracy against T = 1 and the oracle of the same condition."""
    found = {_place(c): c for c in cases(runs, "batch")}
    rows = []
    trained = runs[(runs["method"] != "fixed") & (runs["status"] == "done")]
    keys = ["dataset", "model", "num_features", "optimizer", "lr", "steps", "scenario"]
    for place, group in trained.groupby([*keys, "method"], dropna=False):
        case = found.get(tuple(str(v) for v in place[:-1]))
        if case is None:
            continue
        mine = 100 * float(group["test_accuracy"].mean())
        rows.append(
            {
                "dataset": place[0],
                "num_features": place[2],
                "rule": place[-1],
                "seeds": len(group),
                "accuracy": mine,
                "regret": 100 * case.at(case.best) - mine,
                "gain": mine - 100 * case.at(1.0),
            }
        )
    return pd.DataFrame(rows)


def tables() -> None:
    RESULTS.mkdir(parents=True, exist_ok=True)
    runs = atlas()
    found = cases(runs, "batch")
    made = rules_tables(found)
    made |= {
        "exponents": exponents_table(found),
        "cliffs": cliff_table(found),
        "bn": bn_table(runs),
        "methods": methods_table(runs),
    }
    for name, table in made.items():
        table.to_csv(RESULTS / f"{name}.csv", index=False, float_format="%.5g")
        print(f"\n{name}\n{table.head(40).to_string(index=False)}" if name != "conditions" else "")


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
