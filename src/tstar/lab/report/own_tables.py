"""Tables of ours: the law beside its rivals, every condition, every method, every data set."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from tstar.errors import TstarError
from tstar.formula import VARIANTS
from tstar.lab.curves import FACTS
from tstar.lab.curves.conditions import averaged
from tstar.lab.curves.resampling import Array, estimate, what_is_drawn
from tstar.lab.report.headline import places
from tstar.lab.report.law import of_paper
from tstar.lab.report.records import CHOSEN, Records, Sweep, said, text
from tstar.lab.report.tables import Table, marked
from tstar.lab.sweep.columns import FINAL, json_object

_BEST = "BN, best T of the grid"


def advice_table(records: Records) -> Table:
    """The law's T beside the baselines, the paper's variants and the best T, on equal terms."""
    judged = records.judged()
    both = [s for s in judged if s.condition.plain_by_seed(s.metric).keys() & set(s.curve.seeds)]
    sweeps = both or judged
    if not sweeps:
        raise TstarError("No condition has BN, three temperatures and a measured training.")
    rivals = [_rivals(sweep, plain=bool(both)) for sweep in sweeps]
    over = "plain" if both else "BN, T = 1"
    names, average = places(sweeps), records.averaging
    lines: list[dict[str, Any]] = []
    for name in rivals[0]:
        if not all(name in found for found in rivals):
            continue  # not matched: not compared
        gains = [100 * (found[name] - found[over]) for found in rivals]
        line: dict[str, Any] = {"": name}
        line["accuracy [%]"] = 100 * np.mean([averaged(found[name], average) for found in rivals])
        if name != over:
            gain = estimate(gains, names, average=average)
            line[f"over {over}"] = f"{gain.value:+.2f}"
            if len(sweeps) > 2:
                line["95 % interval"] = f"{gain.low:+.2f} to {gain.high:+.2f}"
            line["better in"] = sum(gain.mean() > 0 for gain in gains)
        if name != _BEST:
            left = [100 * averaged(found[_BEST] - found[name], average) for found in rivals]
            line["below best T"] = float(np.mean(left))
        lines.append(line | {"search": "a grid of runs" if name == _BEST else "none"})
    frame = pd.DataFrame(lines)
    where = "all with BN" if len(sweeps) == len(judged) else "those that ran plain too"
    return Table(
        "advice",
        "The law's T beside its rivals",
        frame,
        f"{records.metric.capitalize()} accuracy; differences in points. Every row is the mean "
        f"over the same {len(sweeps)} conditions ({where}), one vote each, and the same seeds "
        f"({average}). The law: {records.formula}. Best T: of the grid, by "
        f"{CHOSEN[records.chosen_on]} accuracy. Between the temperatures of the grid accuracy is "
        "linear in ln T, and constant outside it. Intervals: bootstrap over "
        f"{what_is_drawn(names)}.",
        {"accuracy [%]": 2, "below best T": 2, "better in": 0},
        marked(frame[frame[""] != _BEST]["accuracy [%]"]),
    )


def _rivals(sweep: Sweep, *, plain: bool) -> dict[str, Array]:
    """Accuracy of every rival, a number for each seed that all of them have."""
    curve, metric = sweep.curve.matched(), sweep.metric
    assert sweep.law is not None
    found: dict[str, dict[int, float]] = {}
    if plain:
        found["plain"] = sweep.condition.plain_by_seed(metric)
    if curve.index_of(1.0) is not None or not plain:
        found["BN, T = 1"] = curve.at_by_seed(1.0, metric)
    found["BN, the law's T"] = curve.at_by_seed(sweep.law, metric)
    for variant in VARIANTS:
        T = of_paper(sweep.facts, variant=variant)
        if T is not None:
            name = "" if variant == "base" else f"_{variant}"
            found[f"BN, Hasegawa & Sakai T*{name}"] = curve.at_by_seed(T, metric)
    found[_BEST] = curve.at_by_seed(curve.best, metric)
    common = sorted(set.intersection(*(set(by_seed) for by_seed in found.values())))
    if common:
        return {name: np.array([v[seed] for seed in common]) for name, v in found.items()}
    # No seed has the whole grid: averages are all there is.
    means = {name: averaged(np.array([*v.values()]), curve.average) for name, v in found.items()}
    return {name: np.array([mean]) for name, mean in means.items()}


def conditions_table(records: Records) -> Table:
    """One row per condition of the grids."""
    if not records.sweeps:
        raise TstarError("No grid of fixed temperatures was run.")
    frame = pd.DataFrame([_condition(sweep) for sweep in records.sweeps])
    outside = frame.index[frame.pop("outside")]
    shares = ("best accuracy [%]", "law's accuracy [%]", "at T = 1 [%]")
    return Table(
        "conditions",
        "Every condition: the best T and the law's",
        frame,
        f"{records.metric.capitalize()} accuracy, {records.averaging} over seeds. The best T of "
        f"the grid was chosen by {CHOSEN[records.chosen_on]} accuracy: another one than is shown "
        "may give a negative regret, the same flatters the best T. The law's T presupposes BN and "
        "is shown with it only, if the law was measured on such a training; accuracy there is "
        "interpolated in ln T, and * marks a T outside the grid, where it is taken as constant. "
        "Diverged runs count as chance.",
        {**dict.fromkeys((*shares, "± s.d.", "law's T", "regret"), 2), "csg": 3},
        signs={(row, "law's T"): "*" for row in outside},
        labels=4,
    )


def _condition(sweep: Sweep) -> dict[str, Any]:
    facts, best = sweep.facts, sweep.ranking[0]
    bn = facts.get("norm", "batch") == "batch"
    judged = sweep.judged(sweep.law) if bn and sweep.law is not None else None
    seeds, at_one = sweep.seen(best), sweep.curve.index_of(1.0)
    return {
        "data set": text(facts.get("dataset")),
        "model": text(facts.get("model")),
        "setting": sweep.setting,
        "BN": "yes" if bn else "no",
        **{k: facts.get(n) for k, n in (("M", "num_features"), ("K", "num_classes"))},
        "csg": facts.get("csg"),
        "runs": sweep.curve.runs,
        "diverged": sweep.curve.diverged,
        "best T": best,
        "best accuracy [%]": 100 * sweep.curve.at(best, sweep.metric),
        "± s.d.": 100 * float(seeds.std(ddof=1)) if len(seeds) > 1 else None,
        "law's T": judged and judged.temperature,
        "law's accuracy [%]": judged and 100 * judged.accuracy,
        "regret": judged and judged.regret,
        "at T = 1 [%]": None if at_one is None else 100 * sweep.curve.at(1.0, sweep.metric),
        "outside": judged is not None and judged.extrapolated,
    }


def methods_table(records: Records) -> Table:
    """One row per method and condition; ranked within a condition."""
    frame = records.frame
    others = frame[frame["method"].fillna("fixed") != "fixed"] if "method" in frame else frame[:0]
    if others.empty:
        raise TstarError("No method was run beside fixed temperatures.")
    # A run that failed or diverged early has no length of its own.
    names = [n for n in FACTS if n in others and n not in ("epochs", "steps", "samples")]
    several = [n for n in names if n != "dataset" and others[n].nunique(dropna=False) > 1]
    told = dict.fromkeys(["dataset", "model", "num_features", *several])
    rows: list[dict[str, Any]] = []
    marks: dict[tuple[Any, str], str] = {}
    for key, part in others.groupby(names, dropna=False, sort=True):
        facts = dict(zip(names, key, strict=True))
        where = " · ".join(filter(None, (said(name, facts.get(name)) for name in told)))
        found = [_method(str(name), own, records) for name, own in part.groupby("method")]
        # Ranked are methods with the same seeds, all finished: leaving failures out would flatter.
        seeds = [one.pop("seeds") for one in found]
        most = max(seeds, key=lambda s: (seeds.count(s), len(s)))
        fair = {
            len(rows) + i: one["accuracy [%]"]
            for i, one in enumerate(found)
            if not one["failed"] and seeds[i] == most
        }
        marks |= marked(pd.Series(fair, name="accuracy [%]"))
        rows += [{"condition": where, **one} for one in found]
    return Table(
        "methods",
        "Methods that were run by name",
        pd.DataFrame(rows).dropna(axis=1, how="all"),
        f"{records.metric.capitalize()} accuracy, {records.averaging} over n seeds; diverged runs "
        "count as chance. Best in bold, second best underlined within a condition; a method with "
        "failed runs or with other seeds is not ranked.",
        {"accuracy [%]": 2, "± s.d.": 2, "NLL": 3, "ECE": 3},
        marks,
        labels=2,
    )


def _method(name: str, runs: pd.DataFrame, records: Records) -> dict[str, Any]:
    status = runs.get("status", pd.Series("done", runs.index))
    # Accuracy [%] of the runs that ended; chance if one diverged.
    share = runs.get(f"{records.metric}_accuracy", pd.Series(np.nan, runs.index))
    if "num_classes" in runs:
        share = share.where(status != "diverged", 1 / runs["num_classes"].max())
    known = 100 * share[status.isin(FINAL)].dropna().to_numpy(float)
    T, nll, ece = runs.reindex(columns=["temperature", "nll", "ece"]).astype(float).mean()
    left = [json_object(extra).get("left") for extra in runs.get("extra", ())]
    return {
        "method": f"{name}: left as it is" if left and all(left) else name,
        "accuracy [%]": float(averaged(known, records.averaging)) if len(known) else None,
        "± s.d.": float(np.std(known, ddof=1)) if len(known) > 1 else None,
        "failed": int((status == "failed").sum()),
        "n": len(known),
        **{"T": T, "NLL": nll, "ECE": ece},
        "seeds": frozenset(runs.get("seed", ())),
    }


def data_table(records: Records) -> Table:
    """One row per data set."""
    columns = {"domain": "domain", "num_classes": "classes K", "csg": "csg"}
    columns |= {"samples": "training samples"}
    there = {name: label for name, label in columns.items() if name in records.frame}
    sets = records.frame.groupby("dataset")
    made = sets[[*there]].first().rename(columns=there).assign(runs=sets.size())
    made = made.reset_index().rename(columns={"dataset": "data set"})
    note = "csg is the cumulative spectral gradient: higher is harder."
    return Table("data", "Data sets", made, note, {"csg": 3}, labels=1 + ("domain" in there))
