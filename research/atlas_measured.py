"""What is measured of each condition of the second atlas before any training: csg of its training samples, its network's size.

python -m research.atlas_measured DATA          # → results/atlas2/measured.csv, what is missing in it
"""

from __future__ import annotations

import argparse

import pandas as pd

import tstar
from research.conditions import draw
from research.user_gains import FOLDER
from tstar.errors import TstarError
from tstar.lab.data import DataSet
from tstar.lab.sweep.execute import DataKey, build_model, inputs_for, load_data
from tstar.lab.sweep.spec import Spec

FILE = FOLDER / "measured.csv"


def difficulty(spec: Spec, data: DataSet, root: str) -> float | None:
    """``None`` where csg cannot be computed (token ids, too few samples of a class)."""
    try:
        return float(tstar.csg(data, seed=0))
    except TstarError as error:
        print(spec.dataset, error)
        return None


def parameters(spec: Spec, data: DataSet, root: str) -> int:
    """Of the plain network, frozen ones included."""
    model = build_model(spec, inputs_for(spec, data, root), root)
    return sum(parameter.numel() for parameter in model.parameters())


MEASURED = {"csg": difficulty, "parameters": parameters}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data_root")
    root = parser.parse_args().data_root
    conditions = pd.read_csv(FOLDER / "conditions.csv")["condition"]
    table = pd.read_csv(FILE).set_index("condition")
    known = {name: table[name].to_dict() if name in table else {} for name in MEASURED}
    for condition in map(int, conditions):
        missing = [name for name in MEASURED if condition not in known[name]]
        if not missing:
            continue
        spec = draw(condition).plain
        data = load_data(DataKey.of(spec), root)
        for name in missing:
            known[name][condition] = MEASURED[name](spec, data, root)
    made = pd.DataFrame(known).rename_axis("condition").sort_index()
    made.to_csv(FILE, float_format="%.5g")


if __name__ == "__main__":
    main()
