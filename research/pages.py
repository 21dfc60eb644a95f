"""The tables in the written results, from the CSV files that the other benchmarks leave.

    python -m research.pages            # puts them into the pages of PAGES

A table stands between ``<!-- table NAME -->`` and ``<!-- end of table -->``; a test compares the pages with the files.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from research import long_runs, pages_atlas2, pilots, unseen
from research.markdown import OPTIMIZERS
from research.markdown import table as table_of
from research.paper import trained

ROOT = Path(__file__).resolve().parents[1]
PAGES = (
    *("README.md", "results/README.md", "docs/training.md", "docs/practitioners.md"),
    *("results/fit/coverage.md", "results/atlas2/README.md"),
    *("results/long/README.md", "results/pilots/README.md"),
    *("results/paper/head-init.md", "results/paper/row.md"),
)
_SLOT = re.compile(
    r"(<!-- table ([\w-]+) -->\n\n)(?:(?!<!-- ).)*?(\n*<!-- end of table -->)", re.DOTALL
)

RULES = {
    "own base, left out": "own fit of α·sqrt(M) + β, data set left out",
    "own cn, left out": "own fit with ln K, data set left out",
    "ours-base": "the paper's base",
    "ours-csg": "the paper's csg",
    "ours-cn": "the paper's cn",
    "ours-csgcn": "the paper's csg + cn",
    "default": "BN, T = 1",
    "sqrt-m": "sqrt(M)",
    "heated-up": "heated-up, sqrt(M)/16",
    "adacos-fixed": "AdaCos, fixed",
    "normface-bound": "NormFace bound",
    "insert-ln, trained": "Insert LN, trained",
    "learned-temperature, trained": "learned temperature, trained",
    "relaxed-softmax, trained": "relaxed softmax, trained",
    "heated-up, trained": "heated-up, trained",
}


def rules(part: str) -> str:
    """Every rule on a part of the atlas, the best first."""
    table = pd.read_csv(ROOT / "results/atlas/rules.csv")
    table = table[(table["part"] == part) & (table["rule"] != "oracle")].sort_values("regret")
    lines = []
    for _, row in table.iterrows():
        captured = "" if row["rule"] == "default" else _captured(row)
        lines.append([RULES[row["rule"]], _interval(row, "regret"), captured, _against(row), f"{row['worst']:.1f}"])  # fmt: skip
    return table_of(["rule", "regret", "captured", "wins / ties / losses", "worst loss"], lines)


def powers() -> str:
    """Where training gets too hot, as powers of what the training gives."""
    table = pd.read_csv(ROOT / "results/atlas/cliff_powers.csv")
    theory = {"sgd": "1/2, 1/2, -1/2", "adamw": "1, 1, 0"}
    lines = []
    for optimizer in theory:
        mine = table[table["optimizer"] == optimizer].set_index("of")
        cells = [f"{row['power']:.2f} ± {row['standard_error']:.2f}" for _, row in mine.loc[["lr·steps", "M", "K"]].iterrows()]  # fmt: skip
        lines.append([f"{OPTIMIZERS[optimizer]}, {mine['conditions'].iloc[0]} conditions", *cells, theory[optimizer]])  # fmt: skip
    return table_of(["", "lr·steps", "M", "K", "theory"], lines)


_KINDS = {"image": "images", "signal": "sensors", "text": "texts", "vector": "vectors", "fine-tuned": "fine-tuned"}  # fmt: skip


def bn() -> str:
    """What BatchNorm before the output layer adds, by kind of task."""
    table = pd.read_csv(ROOT / "results/atlas/bn_effect.csv", dtype={"T": str})
    lines = []
    for kind, part in table.groupby("kind"):
        cells = []
        for _, row in part.set_index("T").loc[["1", "cn", "best"]].iterrows():
            span = f"{row['low']:+.1f} to {row['high']:+.1f}"
            cells.append(f"{row['gain']:+.1f}" + (f" ({span})" if row["datasets"] > 2 else ""))
        count = int(part["datasets"].iloc[0])
        of = f"{part['conditions'].iloc[0]} conditions, {count} data set{'s'[: count > 1]}"
        lines.append([f"{_KINDS[kind]}: {of}", *cells])
    return table_of(["BN's gain in points", "at T = 1", "at the paper's T* (cn)", "each at its best T"], lines)  # fmt: skip


def gain() -> str:
    """BN and T against the plain model, by kind of task."""
    table = pd.read_csv(ROOT / "results/atlas/gain_by_kind.csv")
    lines = []
    for kind, part in table.groupby("kind", sort=False):
        rows = part.set_index("rule")
        cells = [
            f"{rows.loc[rule, 'mean']:+.1f} ({rows.loc[rule, 'lowest']:+.1f} to {rows.loc[rule, 'highest']:+.1f})"
            for rule in ("BN, T = 1", "BN, T of the paper's cn")
        ]
        lines.append([f"{kind}: {rows['conditions'].iloc[0]} conditions", *cells])
    return table_of(["points over the plain model: mean (lowest to highest)", "BN, T = 1", "BN, T of the paper's cn"], lines)  # fmt: skip


def coverage() -> str:
    """How often the intervals of a fit cover what they should."""
    table = pd.read_csv(ROOT / "results/fit/coverage.csv")
    lines = []
    for _, row in table.iterrows():
        shares = [f"{100 * row[c]:.0f} %" for c in ("level", "covered", "estimate_inside")]
        lines.append([row["curves"], row["coefficient"], *shares, f"{row['median_width']:.3g}"])
    return table_of(["curves", "coefficient", "level", "covered", "estimate inside", "median width"], lines)  # fmt: skip


TABLES: dict[str, Callable[[], str]] = {
    "core": lambda: rules("core"),
    "all": lambda: rules("all"),
    "rivals": lambda: rules("rivals"),
    "powers": powers,
    "bn": bn,
    "coverage": coverage,
    "gain": gain,
    **pages_atlas2.TABLES,
    "pilots": pilots.called,
    "head-init": trained.head_init,
    "row": trained.row,
    "unseen": unseen.headline,
    "long": long_runs.long_table,
    "finetuned": long_runs.finetuned_table,
}


def filled(text: str) -> str:
    """A page with its tables as the files have them."""
    return _SLOT.sub(
        lambda match: match[1] + TABLES[match[2]]() + "\n\n<!-- end of table -->", text
    )


def _interval(row: pd.Series, name: str) -> str:
    return f"{row[name]:.2f} ({row[f'{name}_low']:.2f} to {row[f'{name}_high']:.2f})"


def _captured(row: pd.Series) -> str:
    share, low, high = (100 * row[name] for name in ("captured", "captured_low", "captured_high"))
    # Of a rule that loses, the interval of a share of a small gain says nothing.
    return f"{share:.0f} % ({low:.0f} to {high:.0f})" if share > 0 else f"{share:.0f} %"


def _against(row: pd.Series) -> str:
    return f"{row['wins']:.0f} / {row['ties']:.0f} / {row['losses']:.0f}"


def main() -> None:
    for name in PAGES:
        path = ROOT / name
        path.write_text(filled(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
