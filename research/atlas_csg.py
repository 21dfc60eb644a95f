"""How hard the data of each condition of the second atlas are: csg of its training samples.

python -m research.atlas_csg DATA          # → results/atlas2/csg.csv, what is missing in it
"""

from __future__ import annotations

import argparse

import pandas as pd

import tstar
from research.conditions import draw
from research.user_gains import FOLDER
from tstar.errors import TstarError
from tstar.sweep.execute import DataKey, load_data

FILE = FOLDER / "csg.csv"


def measure(condition: int, data_root: str) -> float | None:
    """``None`` where csg cannot be computed (token ids, too few samples of a class)."""
    data = load_data(DataKey.of(draw(condition).plain), data_root)
    try:
        return float(tstar.csg(data, seed=0))
    except TstarError as error:
        print(condition, error)
        return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data_root")
    root = parser.parse_args().data_root
    rows = pd.read_csv(FOLDER / "conditions.csv")
    known = pd.read_csv(FILE).set_index("condition")["csg"].to_dict() if FILE.exists() else {}
    for condition in rows["condition"]:
        if condition not in known:
            known[condition] = measure(int(condition), root)
    table = pd.DataFrame({"condition": list(known), "csg": list(known.values())})
    table.sort_values("condition").to_csv(FILE, index=False, float_format="%.5g")


if __name__ == "__main__":
    main()
