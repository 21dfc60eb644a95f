"""The tables of the second atlas, for :mod:`research.pages`."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from research.advising import SHIPS, TOLD
from research.markdown import OPTIMIZERS, table

RESULTS = Path(__file__).resolve().parents[1] / "results"
KINDS = {
    "batch-norms": "batch norms inside",
    "layer-norms": "layer norms inside",
    "no norms": "no norms",
    "frozen": "frozen features (linear probe)",
    "pretrained": "pretrained, all trained or by LoRA",
}
SHOWN = ("tuned plain", "BN, T = 1", "BN, T", "BN, T, rate × 3", "BN, T, rate × 10")
RIVALS = ("BN, T", "BN, T = 1", "Insert LN", "learned T", "label smoothing")


def _gain(row: pd.Series) -> str:
    return f"{row['gain']:+.1f} ({row['low']:+.1f} to {row['high']:+.1f})"


def _cells(part: str, recipes: tuple[str, ...], over: str = "plain") -> tuple[int, list[str]]:
    made = pd.read_csv(RESULTS / "atlas2/gains.csv")
    made = made[(made["part"] == part) & (made["over"] == over)].set_index("recipe")
    cells = [_gain(made.loc[name]) if name in made.index else "–" for name in recipes]
    return int(made["conditions"].max()) if len(made) else 0, cells


def _kinds() -> dict[str, str]:
    """Kinds of networks by optimizer, in words, and what the tables call them."""
    return {
        f"{kind}, {name}": f"{key}, {optimizer}"
        for key, kind in KINDS.items()
        for optimizer, name in OPTIMIZERS.items()
    }


def user_gain() -> str:
    """What recipes give over the default plain model, by kind of network and optimizer."""
    parts = {"all but fine-tuning": "all", **_kinds()}
    parts |= {"plain fits its training set": "plain fits its training set", "plain does not": "plain does not fit it"}  # fmt: skip
    parts |= {words: words for words in ("up to 300 steps", "from 1,000 steps", "5,000 steps and more")}  # fmt: skip
    parts |= {"drawn after the recipe was fixed": "drawn after the recipe was fixed"}
    lines = []
    for words, part in parts.items():
        count, cells = _cells(part, SHOWN)
        if count:
            lines.append([f"{words}: {count}", *cells])
    return table(["points over the plain model (95 %): conditions", *SHOWN], lines)


def _shipped() -> pd.DataFrame:
    return pd.read_csv(RESULTS / "atlas2/shipped.csv").set_index(["part", "over"])


def _judged(user: str = "usual") -> pd.Series:
    """What ships, the architecture left out."""
    made = pd.read_csv(RESULTS / "atlas2/advice.csv").set_index(["user", "advice", "left out"])
    return made.loc[(user, SHIPS, "architecture")]


def headline() -> str:
    """The claim in one sentence: what it is worth, over what, in which trainings."""
    ours, rows = _shipped(), pd.read_csv(RESULTS / "atlas2/conditions.csv")
    usual, told = ours.loc[("all", "plain")], ours.loc[("all", TOLD)]
    middle = rows.loc[rows["norms"] != "pretrained", ["steps", "samples", "parameters"]].median()
    return (
        f"In {usual['conditions']:.0f} **short trainings of small networks**, drawn at random (medians: {middle['steps']:.0f} steps,\n"
        f"{middle['samples']:.0f} samples, {round(middle['parameters'], -3):,.0f} parameters), the advice gained **{usual['gain']:.1f} points** of test accuracy over the\n"
        f"plain model at its usual rate (95 % interval {usual['low']:.1f} to {usual['high']:.1f}, median {usual['median']:.1f}), and **{told['gain']:.1f}** ({told['low']:.1f} to {told['high']:.1f},\n"
        f"median {told['median']:.1f}) over a model whose rate and weight decay six runs had tuned."
    )


def worth() -> str:
    """Beside a search, beyond noise, and on what was drawn later."""
    row, ours = _judged(), _shipped()
    later = "drawn after the recipe was fixed"
    low, high = (100 * share for share in sorted(_by_seed_alone()))
    ranges = pd.read_csv(RESULTS / "atlas2/coverage.csv")
    ranges = ranges.assign(inside=ranges["mean"] * ranges["size"]).groupby(["left out", "pretrained"])[["inside", "size"]].sum()  # fmt: skip
    held = {key: f"{100 * part['inside'] / part['size']:.0f}" for key, part in ranges.iterrows()}
    return (
        f"The advice costs no run, and gave {100 * row['of_search']:.0f} % of what a search of 15 runs over rate, decay and T found on its\n"
        f"selection seed. It helped {100 * row['helped']:.0f} % of the trainings beyond noise and harmed {100 * row['harmed']:.0f} %; two seeds of one recipe\n"
        f"differ by as much in {low:.0f} to {high:.0f} % a side. The recipe was chosen while looking at the first {ours.loc[('drawn before', 'plain'), 'conditions']:.0f} trainings;\n"
        f"the {ours.loc[(later, 'plain'), 'conditions']:.0f} that were drawn later gained {_gain(ours.loc[(later, 'plain')])}, and {_gain(ours.loc[(later, TOLD)])} if tuned.\n"
        f"The 80 % ranges hold {held['dataset', False]} % of all gains that were measured from scratch if the data set is new to the evidence ({held['network', False]} if the\n"
        f"network is), and {held['dataset', True]} % ({held['network', True]}) in fine-tuning."
    )


def _by_seed_alone() -> tuple[float, float]:
    """How often two runs that differ by their seed alone differ beyond the threshold, on either side."""
    rows = pd.read_csv(RESULTS / "atlas2/conditions.csv")
    rows = rows[rows["norms"] != "pretrained"]
    beyond = 2 * float(pd.read_csv(RESULTS / "atlas2/facts.csv", header=None, index_col=0)[1]["noise"])  # fmt: skip
    same = pd.concat([rows[n] - rows[f"{n}_1"] for n in ("plain", "bn", "faster_bn")]).dropna()
    return float((same < -beyond).mean()), float((same > beyond).mean())


def expect() -> str:
    """What the advice gives over the user's own model, at its usual rate and if it was tuned."""
    ours = _shipped()
    parts = {"all": "all", **_kinds()}
    inside = "batch norms inside, SGD"
    parts = {w: p for w, p in parts.items() if w != inside}
    parts |= {f"{inside}, {head} head": f"batch-norms, sgd, {head}" for head in ("native", "widened")}  # fmt: skip
    parts |= {words: words for words in ("plain fits its training set", "up to 300 steps")}
    lines = []
    for words, part in parts.items():
        if (part, "plain") in ours.index:
            both = [ours.loc[(part, over)] for over in ("plain", TOLD)]
            cells = [cell for row in both for cell in (_gain(row), f"{row['median']:+.1f}", f"{100 * row['left']:.0f} %")]  # fmt: skip
            lines.append([f"{words}: {both[0]['conditions']:.0f}", *cells])
    head = ["trainings", "mean gain (95 %)", "median", "left alone", "if tuned", "median", "left alone"]  # fmt: skip
    return table(head, lines)


def asked() -> str:
    """What was asked of the advice, the architecture left out, and what came."""
    usual, told = _judged(), _judged("tuned")
    count = _shipped().loc[("all", "plain"), "conditions"]
    lost = f"{usual['lost']:.0f} and {told['lost']:.0f} of {count:.0f}"
    lines = [
        ["mean gain over the default plain model above zero", _gain(usual)],
        ["not below the tuned model where the user has tuned", _gain(told)],
        ["every network at -0.1 or above, against both", f"the lowest {usual['worst_family']:+.1f} and {told['worst_family']:+.1f}"],
        ["no training more than a point below the user's model beyond noise", lost],
        ["70 % of what a search over rate, decay and T gains", f"{100 * usual['of_search']:.0f} %"],
    ]  # fmt: skip
    return table(["asked", "came"], lines)


def tuned_user() -> str:
    """Candidates for the advice to a user who has tuned."""
    return _candidates("tuned", "points over the tuned model, architecture left out", over=False)


def meaning() -> str:
    """What the table says, in words, with the numbers that it rests on."""
    made = pd.read_csv(RESULTS / "atlas2/gains.csv").set_index(["part", "recipe", "over"])

    def gain(part: str, recipe: str, over: str = "plain") -> str:
        return _gain(made.loc[(part, recipe, over)])

    sgd, adam, best = "optimizer: sgd", "optimizer: adamw", "BN, T, rate × 3"
    ours = _shipped()
    return (
        f"**With SGD, T adds to a better rate**: over a plain model whose rate and decay six runs had tuned, and at that\n"
        f"rate and decay, the advice gained {_gain(ours.loc[(sgd, TOLD)])}. At three times the usual rate the plain model changed by\n"
        f"{gain(sgd, 'plain, rate × 3.2')}, and the one with BN and T by {gain(sgd, best)}. **With AdamW the rate does it**: at three times the\n"
        f"rate the plain model gained {gain(adam, 'plain, rate × 3.2')}, and the one with BN and T {gain(adam, best)}; at the tuned rate the advice\n"
        f"gained {_gain(ours.loc[(adam, TOLD)])}. Much of the gain is speed: BN and T at three times the rate gained {gain('up to 300 steps', best)} in up\n"
        f"to 300 steps, and {gain('plain fits its training set', best)} where the plain model fits its training set."
    )


def facts() -> str:
    """How much was run, and how noisy it is."""
    known = pd.read_csv(RESULTS / "atlas2/facts.csv", header=None, index_col=0)[1]
    rows = pd.read_csv(RESULTS / "atlas2/conditions.csv")
    return table(
        ["runs", "complete conditions", "plain fits its training set", "spread of a difference by seed alone, from quartiles"],
        [[f"{known['runs']:,.0f}", f"{len(rows):,} ({(rows['family'] == 'probe').sum()} probes, {(rows['steps'] >= 5_000).sum()} long, {(rows['norms'] == 'pretrained').sum()} fine-tuned)",
          f"{100 * known['fits']:.0f} %", f"{known['noise']:.1f} points"]],
    )  # fmt: skip


def over_tuned() -> str:
    """The same over the plain model that six runs have tuned."""
    lines = []
    for words, part in {"all but fine-tuning": "all", "SGD": "optimizer: sgd", "AdamW": "optimizer: adamw"}.items():  # fmt: skip
        count, cells = _cells(part, SHOWN[1:], "tuned")
        lines.append([f"{words}: {count}", *cells])
    return table(["points over the tuned plain model: conditions", *SHOWN[1:]], lines)


def by_facts() -> str:
    """By M, batch, steps and K."""
    made = pd.read_csv(RESULTS / "atlas2/gains.csv")
    lines = []
    for part in [p for p in made["part"].unique() if p.startswith(("M ", "batch ", "up to", "from", "K "))]:  # fmt: skip
        count, cells = _cells(part, SHOWN)
        lines.append([f"{part}: {count}", *cells])
    return table(["points over the plain model: conditions", *SHOWN], lines)


def by_family() -> str:
    made = pd.read_csv(RESULTS / "atlas2/gains.csv")
    lines = []
    for part in [p for p in made["part"].unique() if p.startswith("family: ")]:
        count, cells = _cells(part, SHOWN)
        lines.append([f"{part.removeprefix('family: ')}: {count}", *cells])
    return table(["points over the plain model: conditions", *SHOWN], lines)


def tuning_temperatures() -> str:
    """Fine-tuning with AdamW at three times the rate, by T."""
    made = pd.read_csv(RESULTS / "atlas2/tuning_temperatures.csv")
    wide = made.pivot(index=["network", "dataset", "steps"], columns="T", values="test_accuracy")
    lines = [
        [f"{network}, {dataset}, {steps} steps", *(f"{value:.1f}" for value in row)]
        for (network, dataset, steps), row in zip(wide.index, wide.to_numpy(), strict=True)
    ]
    for words, column in (("mean of test accuracy", "test_accuracy"), ("mean of validation accuracy", "val_accuracy")):  # fmt: skip
        lines.append([words, *(f"{value:.1f}" for value in made.groupby("T")[column].mean())])
    return table(["test accuracy", *(f"T = {T:g}" for T in wide.columns)], lines)


def rivals() -> str:
    """The rivals were run in every third condition: all columns are of those."""
    made = pd.read_csv(RESULTS / "atlas2/rivals.csv").set_index("recipe")
    lines = [
        [name, f"{made.loc[name, 'conditions']:.0f}", _gain(made.loc[name])] for name in RIVALS
    ]
    return table(["at the user's rate and decay", "conditions", "points over plain (95 %)"], lines)


def advice() -> str:
    """Candidates for the advice, with parts of the atlas left out."""
    return _candidates("usual", "gain, architecture left out", over=True)


def _candidates(user: str, gain: str, over: bool) -> str:
    made = pd.read_csv(RESULTS / "atlas2/advice.csv")
    lines = []
    for name, part in made[made["user"] == user].groupby("advice", sort=False):
        rows = part.set_index("left out")
        one = rows.loc["architecture"]
        cells = [f"{rows.loc[scheme, 'gain']:+.2f}" for scheme in ("data set", "batch sizes")]
        extra = [f"{one['over_tuned']:+.2f}", f"{100 * one['of_search']:.0f} %"] if over else []
        lines.append(
            [name, _gain(one), *cells, *extra, f"{one['families']:+.2f}", f"{one['worst_family']:+.1f}",
             f"{100 * one['helped']:.0f} / {100 * one['harmed']:.0f} %", f"{one['lost']:.0f}", f"{100 * one['left']:.0f} %"]
        )  # fmt: skip
    head = ["advice", gain, "data set left out", "batch sizes left out", *(["over tuned plain", "of a full search"] if over else []),
            "mean of networks", "worst network", "helped / harmed", "lost a point beyond noise", "left alone"]  # fmt: skip
    return table(head, lines)


def rules() -> str:
    """Rules for T with BN at the user's rate, interpolated in ln T."""
    made = pd.read_csv(RESULTS / "atlas2/laws.csv")
    wide = {name: part.set_index("rule") for name, part in made.groupby("optimizer")}
    order = wide["both"].sort_values("gain", ascending=False).index
    lines = [
        [name, *(_gain(wide[o].loc[name]) for o in ("both", "sgd", "adamw"))] for name in order
    ]
    count = {o: int(wide[o]["conditions"].max()) for o in wide}
    return table(["T", f"all ({count['both']})", f"SGD ({count['sgd']})", f"AdamW ({count['adamw']})"], lines)  # fmt: skip


def terms() -> str:
    """What each factor of the law is worth: the mean gain of BN, T without it."""
    made = pd.read_csv(RESULTS / "atlas2/terms.csv")
    lines = []
    for _, row in made.iterrows():
        whole = row["term"] == "the law"
        name = "all of them (one T for all)" if whole else f"{row['term']}^{row['exponent']:g}"
        best = "" if whole else f"{row['best']:g}"
        name = f"csg^{row['best']:g} added" if row["term"] == "csg" else name
        lines.append([name, f"{row['without']:+.2f}", f"{row['lost']:.2f} ± {row['error']:.2f}", best])  # fmt: skip
    head = [f"left out of the law, which gains {made['gain'].iloc[0]:+.2f}", "gain", "lost ± s.e.", "best exponent"]  # fmt: skip
    return table(head, lines)


TABLES = {
    "headline": headline,
    "meaning": meaning,
    "atlas2-facts": facts,
    "user-gain": user_gain,
    "expect": expect,
    "worth": worth,
    "tuned-user": tuned_user,
    "asked": asked,
    "tuning-temperatures": tuning_temperatures,
    "over-tuned": over_tuned,
    "by-facts": by_facts,
    "by-family": by_family,
    "advice": advice,
    "t-rules": rules,
    "terms": terms,
    "second-rivals": rivals,
}
