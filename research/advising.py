"""The evidence that ships, and which advice would have been worth following on the second atlas.

    python -m research.advising    # → src/tstar/evidence.json; results/atlas2/{advice,shipped,laws,coverage}.csv

A recipe is *leave* (the model as it is), *rate* (three times the rate), *bn* (BN and the law's T at the user's rate), *bn1* (BN alone),
*faster* and *fastest* (BN and the law's T at three and ten times the rate). Its gain is in points over the default plain model, the mean over the same seeds on both sides. Every
choice is made without the condition's data set, without its family of networks, or without its third of the batch sizes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from research import clustered, long_runs, standard, standard_pages, unseen
from research.conditions import KIND_OF, classes_of, nice
from research.rules_for_t import laws
from research.running import exported, identity
from research.user_gains import FOLDER, MOST, STORE, groups, noise, paired, table
from tstar.advice import MIN_SUPPORT, MIN_WEIGHT, decide
from tstar.evidence import SHARE, Measured, expect, measured, weights
from tstar.lab.data.text import DIMENSIONS
from tstar.lab.models import build
from tstar.lab.paper import table as printed
from tstar.lab.sweep.spec import Spec

Row = Any  # one row of user_gains.table
LEAVE = "leave"
TOLD = "tuned, told"  # over a tuned model whose user says so: the advice keeps its rate and decay
COLUMNS = {"rate": "plain_faster", "bn": "bn", "bn1": "bn1", "faster": "faster_bn", "fastest": "fastest_bn"}  # fmt: skip
SHIPPED = Path(__file__).resolve().parents[1] / "src" / "tstar" / "evidence.json"
# Recipe here → action there.
ACTIONS = {"rate": "rate", "bn": "bn", "faster": "bn_rate", "bn1": "bn1"}
# How networks normalize that are pretrained, or read texts.
INSIDE = {"mobilenet": "batch-norms", **dict.fromkeys(("minilm", "minilm_lora", "text-transformer"), "layer-norms"),
          **dict.fromkeys(("text-cnn", "text-lstm"), "no norms")}  # fmt: skip


def with_gains(rows: pd.DataFrame) -> pd.DataFrame:
    """The table with the gain of every recipe beside it, over the seeds that both sides have."""
    rows = rows.reset_index(drop=True).copy()
    for recipe, column in COLUMNS.items():
        rows[f"gain_{recipe}"] = paired(rows, column, "plain")[0]
        rows[f"over_tuned_{recipe}"] = paired(rows, column, "tuned")[0]
        rows[f"first_{recipe}"] = rows[column].astype(float) - rows["plain"]  # the first seed alone
    rows["gain_tuned"] = paired(rows, "tuned", "plain")[0]
    rows["gain_searched"] = rows["searched"] - rows["plain"]
    rows = rows.assign(gain_leave=0.0, over_tuned_leave=-rows["gain_tuned"], first_leave=0.0)
    low, high = rows["batch"].quantile([1 / 3, 2 / 3])
    rows["batches"] = np.select([rows["batch"] <= low, rows["batch"] <= high], ["low", "middle"], "high")  # fmt: skip
    return rows


def at_tuned(rows: pd.DataFrame) -> pd.DataFrame:
    """The same conditions for a user who has tuned: tuned plain is their own model, and rate and decay are its."""
    own = ["plain", "plain_1", "bn1", "bn1_1", "bn", "bn_1"]
    theirs = {name: rows[name.replace("plain", "tuned").replace("bn", "tuned_bn")] for name in own}
    lr = (rows["lr"] * rows["tuned_lr"]).map(nice)
    made = rows.assign(**theirs, lr=lr, decay=rows["tuned_decay"], searched=math.nan)
    made = made[made["bn"].notna()].reset_index(drop=True)
    others = [f"{column}{seed}" for name, column in COLUMNS.items() if name[:2] != "bn" for seed in ("", "_1")]  # fmt: skip
    return with_gains(made.assign(**dict.fromkeys(others, math.nan)))


# -- who gets what -------------------------------------------------------------------------------------

Fit = Callable[[pd.DataFrame], Callable[[Row], str]]


def everyone(recipe: str) -> Fit:
    return lambda train: lambda row: recipe


def decided(train: pd.DataFrame) -> Callable[[Row], str]:
    """What ``tstar.recommend`` would decide if it had only these trainings: what ships."""
    known = [Measured.from_row(entry(row)) for _, row in train.iterrows()]
    names = {action: recipe for recipe, action in ACTIONS.items()}

    def advise(row: Row) -> str:
        facts = replace(Measured.from_row(entry(row)).facts, fits=None)
        return names.get(decide(facts, known).action, LEAVE)

    return advise


def left_out(rows: pd.DataFrame, fit: Fit, by: str) -> pd.Series:
    """The recipe for each condition, chosen without those that share its value of ``by``."""
    advised = pd.Series(LEAVE, index=rows.index)
    for value in rows[by].unique():
        mine = rows[by] == value
        advise = fit(rows[~mine])
        advised[mine] = [advise(row) for _, row in rows[mine].iterrows()]
    return advised


SHIPS = "by similar trainings"
CANDIDATES: dict[str, Fit] = {
    "leave it": everyone(LEAVE),
    "rate × 3.2 for all": everyone("rate"),
    "BN, T for all": everyone("bn"),
    "BN, T, rate × 3 for all": everyone("faster"),
    "BN, T, rate × 10 for all": everyone("fastest"),
    SHIPS: decided,
}
TUNED: dict[str, Fit] = {  # where the user's rate and decay are tuned
    "leave it": everyone(LEAVE),
    "BN, T for all": everyone("bn"),
    SHIPS: decided,
}
LEFT_OUT = {"data set": "dataset", "architecture": "network", "batch sizes": "batches"}


def picked(rows: pd.DataFrame, advised: pd.Series, what: str = "gain") -> pd.Series:
    """What the advised recipe gave in each condition: over plain (``"gain"``; ``"first"``: of the first seed), or over tuned plain."""
    return pd.Series([rows.at[i, f"{what}_{recipe}"] for i, recipe in advised.items()], advised.index)  # fmt: skip


def judged(rows: pd.DataFrame, advised: pd.Series) -> dict[str, float]:
    """What an advice is worth over the user's own model, and beside a search."""
    beyond = 2 * noise(rows) / math.sqrt(2)
    gains = picked(rows, advised).fillna(0.0)
    held, over = gains.clip(-MOST, MOST), picked(rows, advised, "over_tuned").clip(-MOST, MOST)
    mean, low, high = clustered.interval(held, rows["dataset"], rows["network"])
    families = held.groupby(rows["network"]).mean()
    # The search has one seed, so that its share is taken on that.
    searched = rows["gain_searched"].clip(-MOST, MOST).mean()
    first = picked(rows, advised, "first").fillna(0.0).clip(-MOST, MOST).mean()
    lost = gains < -1 - beyond
    return {
        "gain": mean, "low": low, "high": high, "over_tuned": over.mean(), "families": families.mean(),
        "worst_family": families.min(), "helped": (gains > beyond).mean(), "harmed": (gains < -beyond).mean(),
        "worst": gains.min(), "lost": int(lost.sum()), "left": (advised == LEAVE).mean(),
        "of_search": first / searched if searched > 0 else math.nan,
    }  # fmt: skip


def candidates(rows: pd.DataFrame) -> pd.DataFrame:
    """Every candidate, for users at the usual rate and for those who have tuned."""
    made = []
    for user, some, advices in (("usual", rows, CANDIDATES), ("tuned", at_tuned(rows), TUNED)):
        for name, fit in advices.items():
            for scheme, by in LEFT_OUT.items():
                found = judged(some, left_out(some, fit, by))
                made.append({"user": user, "advice": name, "left out": scheme, **found})
    return pd.DataFrame(made)


def shipped_gains(rows: pd.DataFrame) -> pd.DataFrame:
    """What ships, chosen without the condition's network, in the parts of the atlas.

    Over plain; over tuned plain; and over tuned plain where the user says so, and its rate and decay are kept.
    """
    by, theirs = LEFT_OUT["architecture"], at_tuned(rows)
    usual, told = left_out(rows, CANDIDATES[SHIPS], by), left_out(theirs, TUNED[SHIPS], by)
    made = []
    for baseline, table_of, advised, column in (
        ("plain", rows, usual, "gain"), ("tuned", rows, usual, "over_tuned"), (TOLD, theirs, told, "gain"),
    ):  # fmt: skip
        parts = groups(table_of)
        inside, wide = parts["batch-norms, sgd"], table_of["M"] > table_of["trunk"]
        parts |= {"batch-norms, sgd, native": inside & ~wide, "batch-norms, sgd, widened": inside & wide}  # fmt: skip
        for part, mask in parts.items():
            some = table_of[mask]
            if some.empty:
                continue
            gains = picked(table_of, advised[some.index], column).fillna(0.0).clip(-MOST, MOST)
            mean, low, high = clustered.interval(gains, some["dataset"], some["network"])
            left = float((advised[some.index] == LEAVE).mean())
            made.append({"part": part, "over": baseline, "conditions": len(some), "gain": mean, "low": low, "high": high,
                         "median": gains.median(), "left": left})  # fmt: skip
    return pd.DataFrame(made)


# -- what ships ------------------------------------------------------------------------------------------

KINDS = {
    **dict.fromkeys(
        ("vit", "minilm", "minilm_lora", "text-transformer", "ViT-B/16", "SwinT"), "transformer"
    ),
    **dict.fromkeys(("mlp", "text-mlp", "mlp-no-norm", "mixer"), "mlp"),
    **dict.fromkeys(("gru", "text-lstm"), "recurrent"),
    "probe": None,
}
DOMAINS = {"vector": "table", "segment": "table", "digits": "table", "banking77": "text", "clinc150": "text"}  # fmt: skip
# The paper prints neither: parameters in millions, and the size of the usual training split.
PARAMETERS = {"ResNet50": 23.7, "EffNet-b0": 4.1, "EffNet-b5": 28.5, "RegNet-8GF": 37.5, "ConvNeXt-S": 49.5,
              "ViT-B/16": 85.9, "SwinT": 27.6}  # fmt: skip
SAMPLES = {"CIFAR10": 50_000, "CIFAR100": 50_000, "GTS": 26_640, "SAT": 21_600, "ISIC": 20_265, "CT": 6_941,
           "FLW": 1_020, "PET": 3_680, "DTD": 1_880, "CUB": 5_994}  # fmt: skip
LAYER_NORMS = ("ConvNeXt-S", "ViT-B/16", "SwinT")


def entry(row: Row) -> dict[str, Any]:
    """A training of ours as a row of the file; what is not known is left out."""
    family, data = row["family"], row["dataset"]
    probed = data.partition("_")[0] if family == "probe" else ""
    pretext = probed or family.removesuffix("_lora")
    told = row.get("kind") if isinstance(row.get("kind"), str) else "image"
    domain = {"mobilenet": "image", "minilm": "text"}.get(pretext) or DOMAINS.get(data, told)
    pretrained = row["norms"] == "pretrained"
    fits = row.get("train_accuracy")
    known = {
        "source": "long runs" if row["condition"] >= long_runs.FIRST["scratch"] else "atlas",
        "network": f"linear probe of {probed}" if probed else family,
        "dataset": data,
        "domain": DOMAINS.get(domain, domain),
        "kind": KINDS.get(family, "convnet"),
        "norms": INSIDE.get(family, row["norms"]),
        "pretrained": pretrained,
        "widened": bool(row["M"] > row.get("trunk", row["M"])),
        "tuned": bool(row.get("told", False)),
        "optimizer": row["optimizer"],
        "lr": float(f"{row['lr']:.6g}"),
        "momentum": row["momentum"] if row["optimizer"] == "sgd" else None,
        "decay": row.get("decay"),
        "steps": int(row["steps"]),
        "batch": int(row["batch"]),
        "samples": int(row["samples"]),
        "features": int(row["M"]),
        "classes": int(row["K"]),
        "parameters": round(p) if (p := row.get("parameters", math.nan)) == p else None,
        "fits": None if fits is None or fits != fits else bool(fits >= 0.99),
        "plain": round(row["plain"], 2),
        "gains": {
            action: round(row[f"gain_{recipe}"], 2)
            for recipe, action in ACTIONS.items()
            if row[f"gain_{recipe}"] == row[f"gain_{recipe}"]
        },
        "seeds": int(paired(pd.DataFrame([row]), "bn", "plain")[1].iloc[0]) or 1,
    }
    return {name: value for name, value in known.items() if value is not None and value == value}


def papers() -> Iterator[dict[str, Any]]:
    """The paper's networks × data sets, as printed: one run each, at its batch size of 128."""
    tasks, widths = printed("tasks").set_index("dataset"), printed("widths").set_index("model")
    cells = []
    for data, part in printed("models").groupby("dataset", sort=False):
        cells += [(network, data, "scratch", part, network) for network in widths.index if network in part]  # fmt: skip
    for scenario, part in printed("datasets").groupby("scenario", sort=False):
        network, how = str(scenario).split()
        cells += [(network, data, "scratch" if how == "init" else "finetune", part, data) for data in SAMPLES if data in part]  # fmt: skip
    cells += [(network, "CT", "scratch", printed("transformers"), network) for network in ("ViT-B/16", "SwinT")]  # fmt: skip
    for network, data, scenario, part, column in cells:
        accuracy = part.set_index("method")[column].astype(float)
        lr, epochs = (0.1, 200) if scenario == "scratch" else (0.01, 50)
        yield {
            "source": "paper", "network": network, "dataset": data, "domain": "image",
            "kind": KINDS.get(network, "convnet"),
            "norms": "layer-norms" if network in LAYER_NORMS else "batch-norms",
            "pretrained": scenario == "finetune", "optimizer": "sgd", "lr": lr, "momentum": 0.9, "decay": 5e-4,
            "steps": epochs * math.ceil(SAMPLES[data] / 128), "batch": 128, "samples": SAMPLES[data],
            "features": int(widths.at[network, "num_features"]), "classes": int(tasks.at[data, "num_classes"]),
            "csg": float(tasks.at[data, "csg"]), "parameters": round(1e6 * PARAMETERS[network]),
            "plain": accuracy["T=1"],
            "gains": {f"paper_{name}": round(accuracy[name] - accuracy["T=1"], 2) for name in ("cn", "csgcn")},
        }  # fmt: skip


def independent() -> Iterator[dict[str, Any]]:
    """Two trainings that were run apart from ours, with code of their own: ResNet10, M = 128.

    Pets: 200 epochs with crops, flips and rotations. Plain, decay and bn_rate have two seeds, the others
    the first one; each gain is over the plain model of the same seeds. CIFAR-10: one seed; plain reached
    83 % of its training set.
    """
    both = {
        "source": "independent", "network": "resnet", "domain": "image", "kind": "convnet",
        "norms": "batch-norms", "pretrained": False, "widened": False, "tuned": False,
        "optimizer": "sgd", "lr": 0.1, "momentum": 0.9, "decay": 5e-4, "features": 128, "seeds": 1,
    }  # fmt: skip
    gains = {"rate": 3.9, "decay": 6.9, "bn1": -1.4, "bn_rate": 4.9, "bn_rate_decay": 6.0, "paper_cn": 0.2, "paper_csgcn": 3.1}  # fmt: skip
    yield {**both, "dataset": "pets_24", "steps": 11_500, "batch": 64, "samples": 3_680, "classes": 37,
           "parameters": 312_309, "fits": True, "plain": 24.6, "gains": gains, "seeds": 2}  # fmt: skip
    yield {**both, "dataset": "cifar10_16", "steps": 10_000, "batch": 128, "samples": 50_000, "classes": 10,
           "parameters": 308_826, "fits": False, "plain": 78.0, "gains": {"bn": -1.3, "bn_rate": -1.0}}  # fmt: skip


FAMILY = {"resnet10": "resnet", "resnet10-1d": "resnet", "vgg9": "vgg", "pyramidnet10": "pyramidnet", "vit4": "vit", "convnext4": "convnext"}  # fmt: skip
PRETRAINED = {"mobilenet": 2_223_872, "minilm": 22_713_216}  # parameters, without the output layer
# Of the inputs; a table is diamonds here, a vector segment.
CHANNELS = {"text": DIMENSIONS, "image": 3, "signal": 9, "table": 9, "vector": 18}


def known_training(source: str, spec: Spec, family: str, domain: str, **measured: Any) -> dict[str, Any]:  # fmt: skip
    """A training from its plain spec, as a row of the file; ``measured`` has what the spec does not tell."""
    c, K, M = spec.config, measured["classes"], measured["features"]
    pretrained = spec.scenario == "finetune"
    if pretrained:
        size = PRETRAINED[family] + (M + 1) * K
    else:
        made = build(spec.model, K, num_features=spec.num_features, trunk_features=spec.trunk_features, in_channels=CHANNELS[domain])  # fmt: skip
        size = sum(parameter.numel() for parameter in made.parameters())
    return {
        "source": source, "network": family, "dataset": spec.dataset.rpartition(":")[2].removesuffix("_few"), "domain": DOMAINS.get(domain, domain),
        "kind": KINDS.get(family, "convnet"), "norms": INSIDE.get(family) or KIND_OF.get(family, "batch-norms"), "pretrained": pretrained,
        "widened": spec.trunk_features is not None, "tuned": False, "optimizer": c.optimizer, "lr": c.lr,
        **({"momentum": c.momentum} if c.optimizer == "sgd" else {}), "decay": c.weight_decay, "steps": c.steps, "batch": c.batch_size,
        **{name: measured[name] for name in ("samples", "features", "classes", "csg") if name in measured}, "parameters": size,
        **{name: measured[name] for name in ("fits", "plain", "gains", "seeds")},
    }  # fmt: skip


def standards() -> Iterator[dict[str, Any]]:
    """The standard atlas: the mean gain of each recipe over the seeds that it shares with plain.

    A condition is also a training at a third of the rate, and at three times the rate.
    """
    found = exported(standard_pages.FOLDER / "store.parquet")
    runs = standard_pages.gains(standard_pages.frame(found))
    for condition in standard.CONDITIONS:
        mine = runs[runs["condition"] == condition.name]
        # The short ones are one data set and length ten times: they would outvote the others.
        if condition.kind != "full" or "plain" not in set(mine["recipe"]):
            continue
        spec, model = condition.plain, condition.network
        gains = mine.groupby("recipe", sort=False)["gain"].mean().dropna()
        plain = mine[mine["recipe"] == "plain"]
        other = f"plain, head × {10 if spec.scenario == 'finetune' else 100}"  # not the advised one
        domain = standard.NOT_IMAGES.get(spec.dataset.rpartition(":")[2], "image")
        text = domain == "text" and spec.scenario == "scratch"
        known = known_training(
            "standard", spec, f"text-{model}" if text else FAMILY.get(model, model), domain,
            samples=round(found[identity(spec)]["num_train"] * (1 - spec.config.val_fraction)),
            features=condition.M, classes=condition.K, csg=condition.csg,
            fits=bool(plain["train_accuracy"].mean() >= 99), plain=round(float(plain["test_accuracy"].mean()), 2),
            gains={standard.ACTIONS[n]: round(float(g), 2) for n, g in gains.items() if n in standard.ACTIONS and n != other},
            seeds=len(plain),
        )  # fmt: skip
        yield known
        yield from at_other_rates(known, mine[mine["seed"] == 0].set_index("recipe"))


def unseen_trainings() -> Iterator[dict[str, Any]]:
    """The trainings of research.unseen, once their advice has been scored."""
    found = exported(unseen.FOLDER / "store.parquet")
    runs, advice = unseen.frame(found), unseen.predictions()
    for condition in unseen.drawn():
        mine = runs[runs["condition"] == condition.index]
        named = {"rate × 3": "rate", "decay × 3": "decay", "head × 10": "head_lr", "advice": advice["action"][condition.index]}  # fmt: skip
        gains = mine.groupby(mine["recipe"].map(named))["gain"].mean().drop("leave", errors="ignore")  # fmt: skip
        plain = mine[mine["recipe"] == "plain"]
        if gains.empty or plain.empty:
            continue
        spec, domain = condition.plain, unseen.kind_of(condition)
        yield known_training(
            "unseen", spec, condition.family, domain,
            samples=int(advice["samples"][condition.index]), features=spec.num_features, classes=classes_of(spec),
            fits=bool(found[identity(spec)]["train_accuracy"] >= 0.99), plain=round(plain["test"].mean(), 2),
            gains={name: round(gain, 2) for name, gain in gains.items()}, seeds=len(plain),
        )  # fmt: skip


def at_other_rates(known: dict[str, Any], runs: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """The same training for users at a third of its rate, and at three times it: first seed."""
    accuracy = runs["test_accuracy"]
    for base, by, others in (
        (
            "plain, rate × 0.333",
            1 / 3,
            {"rate": "plain", "slower": "plain, rate × 0.111", "bn_rate": "BN law"},
        ),
        (
            "plain, rate × 3",
            3.0,
            {"rate": "plain, rate × 9", "slower": "plain", "bn": "BN law, rate × 3"},
        ),
    ):
        if base not in accuracy:
            continue
        gains = {a: round(accuracy[name] - accuracy[base], 2) for a, name in others.items() if name in accuracy}  # fmt: skip
        fits = bool(runs["train_accuracy"][base] >= 99)
        yield known | {"lr": nice(by * known["lr"]), "fits": fits, "plain": round(accuracy[base], 2), "gains": gains, "seeds": 1}  # fmt: skip


def fit_chances(rows: Sequence[Measured]) -> np.ndarray:
    """``evidence.FITS``: whether new, untuned plain models fitted their training sets, as a logistic regression."""
    some = [r.facts for r in rows if r.facts.fits is not None and not (r.facts.pretrained or r.facts.training.tuned)]  # fmt: skip
    x = np.array([[1.0, math.log(f.passes), math.log(f.parameters / f.samples)] for f in some])
    y, found = np.array([f.fits for f in some], dtype=float), np.zeros(3)
    for _ in range(50):  # Newton's steps
        p = 1 / (1 + np.exp(-x @ found))
        found += np.linalg.solve((x.T * p * (1 - p)) @ x, x.T @ (y - p))
    return found


def shipped(every: pd.DataFrame, tuned: pd.DataFrame) -> dict[str, Any]:
    """Everything that the advice reads."""
    ours = [entry(row) for part in (every, tuned) for _, row in part.iterrows()]
    rivals = pd.read_csv(FOLDER.parent / "rivals" / "runs.csv")
    heads = rivals[rivals["rival"] == "head × 10"].groupby("condition")["gain"].mean()
    for row, made in zip(every["condition"], ours, strict=False):
        if row in heads:
            made["gains"]["head_lr"] = round(float(heads[row]), 2)
    rows = [*ours, *standards(), *unseen_trainings(), *independent(), *papers()]
    return {"format": 1, "rows": [row for row in rows if row["gains"]]}


def coverage(known: Sequence[Measured], by: str) -> pd.DataFrame:
    """Whether a gain lay in the range that the trainings with another ``by`` give, where they are near enough to state one."""
    made = []
    for mine in known:
        rest = [row for row in known if getattr(row, by) != getattr(mine, by)]
        near = weights(replace(mine.facts, fits=None), rest)
        for action, gain in mine.gains.items():
            found = expect(near, action)
            if not near or near[0][0] <= MIN_WEIGHT or found.support < MIN_SUPPORT:
                continue
            made.append({
                "left out": by, "source": mine.source, "action": action, "domain": mine.facts.domain,
                "pretrained": mine.facts.pretrained, "support": found.support,
                "inside": found.low <= gain <= found.high, "width": found.high - found.low,
            })  # fmt: skip
    return pd.DataFrame(made)


def main() -> None:
    parts = [table(exported(STORE)), *(long_runs.conditions(s) for s in ("scratch", "finetune"))]
    every = with_gains(pd.concat(parts))
    content = shipped(every, at_tuned(every).assign(told=True))
    text = ",\n".join(json.dumps(row, ensure_ascii=False, allow_nan=False) for row in content["rows"])  # fmt: skip
    SHIPPED.write_text(f'{{"format": 1, "rows": [\n{text}\n]}}\n', encoding="utf-8")
    measured.cache_clear()
    rows = every[(every["norms"] != "pretrained") & (every["condition"] < long_runs.FIRST["scratch"])].reset_index(drop=True)  # fmt: skip
    print("chance of fitting:", fit_chances(measured()).round(3))
    covered = pd.concat([coverage(measured(), by) for by in ("dataset", "network")])
    made = covered.groupby(["left out", "pretrained", "domain"])["inside"].agg(["mean", "size"])
    print(f"inside the {SHARE:.0%} range:\n{made.round(2)}\n{covered['inside'].mean():.3f}")
    for name, table_of in {"advice": candidates(rows), "shipped": shipped_gains(rows), "laws": laws(rows),
                       "coverage": made.reset_index()}.items():  # fmt: skip
        table_of.to_csv(FOLDER / f"{name}.csv", index=False, float_format="%.4g")
        print(table_of.round(2).to_string(index=False))


if __name__ == "__main__":
    main()
