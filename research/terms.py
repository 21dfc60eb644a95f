"""Which terms the best temperature needs, once everything else is as the law has it: results/atlas2/terms.csv.

    python -m research.terms

T = c·Π xᵢ^eᵢ over the SGD conditions with BN at the user's rate. One exponent at a time is moved, c is fitted anew, and the mean gain
over plain is compared: at the law's exponent, without the term (0), and at its best. Every T stands for the nearest that was run, in
ln T: interpolation would favor the law, whose own T was run in every condition. The paper's terms are sqrt(M), ln K and ln csg;
csg, which the law has not, is added with its best exponent (``research.atlas_measured`` measures it).
"""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd

from research.running import exported
from research.user_gains import FOLDER, MOST, STORE, table

LAW = {"lr": 0.5, "M": 0.5, "K": -0.25, "batch": -0.25, "steps": 0.25, "(1 − μ)": -0.25}
TRIED = np.arange(-1.0, 1.01, 0.125)
SHIFTS = np.linspace(-1.5, 1.5, 25)  # of ln c


class Curves:
    """Gain over plain as a function of ln T, for every condition at once."""

    def __init__(self, rows: pd.DataFrame) -> None:
        self.plain = rows["plain"].to_numpy(float)
        self.curves = [
            (np.log([float(T) for T in curve]), np.array(list(curve.values())))
            for curve in map(json.loads, rows["curve"])
        ]
        self.logs = pd.DataFrame(
            {"lr": np.log(rows["lr"]), "M": np.log(rows["M"]), "K": np.log(rows["K"]), "batch": np.log(rows["batch"]),
             "steps": np.log(rows["steps"].astype(float)), "(1 − μ)": np.log(1 - rows["momentum"]),
             "csg": np.log(rows["csg"])}
        )  # fmt: skip

    def gains(self, logs: np.ndarray) -> np.ndarray:
        at = np.array(
            [
                values[np.abs(known - T).argmin()]
                for T, (known, values) in zip(logs, self.curves, strict=True)
            ]
        )
        return np.clip(at - self.plain, -MOST, MOST)

    def best(self, exponents: dict[str, float]) -> tuple[float, float, np.ndarray]:
        """ln c, the mean gain and the gains at the best c."""
        base = sum(self.logs[name] * power for name, power in exponents.items()).to_numpy()
        found = [(shift + math.log(0.61), self.gains(base + shift + math.log(0.61))) for shift in SHIFTS]  # fmt: skip
        log_c, gains = max(found, key=lambda pair: pair[1].mean())
        return log_c, float(gains.mean()), gains


def terms(rows: pd.DataFrame) -> pd.DataFrame:
    curves = Curves(rows)
    _, whole, gains = curves.best(LAW)
    constant = curves.best(dict.fromkeys(LAW, 0.0))
    made = [{"term": "the law", "exponent": math.nan, "gain": whole, "without": constant[1],
             "lost": whole - constant[1], "error": _error(gains - constant[2]), "best": math.nan, "gain_best": whole}]  # fmt: skip
    for name, power in LAW.items():
        _, without, less = curves.best({**LAW, name: 0.0})
        tried = {e: curves.best({**LAW, name: e})[1] for e in TRIED}
        best = max(tried, key=lambda e: tried[e])
        made.append({"term": name, "exponent": power, "gain": whole, "without": without, "lost": whole - without,
                     "error": _error(gains - less), "best": best, "gain_best": tried[best]})  # fmt: skip
    tried = {e: curves.best({**LAW, "csg": e}) for e in TRIED if e}
    best = max(tried, key=lambda e: tried[e][1])
    _, more, added = tried[best]
    made.append({"term": "csg", "exponent": best, "gain": whole, "without": more, "lost": whole - more,
                 "error": _error(gains - added), "best": best, "gain_best": more})  # fmt: skip
    return pd.DataFrame(made)


def _error(differences: np.ndarray) -> float:
    return float(differences.std(ddof=1) / math.sqrt(len(differences)))


def main() -> None:
    rows = table(exported(STORE)).merge(pd.read_csv(FOLDER / "measured.csv"), on="condition")
    rows = rows[(rows["optimizer"] == "sgd") & rows["csg"].notna()].reset_index(drop=True)
    made = terms(rows)
    made.to_csv(FOLDER / "terms.csv", index=False, float_format="%.4g")
    print(len(rows), made.round(2).to_string(index=False))


if __name__ == "__main__":
    main()
