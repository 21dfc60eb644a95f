"""The pages of ``results/paper``: Markdown from the analysis, which computes; nothing is computed here."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Sequence
from importlib.metadata import version

from research.paper import analysis
from research.paper.claims import claims
from research.paper.longform import records
from research.paper.recomputed import checks
from research.paper.statistics import Ranking
from tstar._version import __version__
from tstar.formula import VARIANTS
from tstar.lab.paper.catalogue import METHODS, table

COMMAND = "python -m research.paper.analysis"
_TITLES = {"scratch": "Training from scratch", "finetune": "Fine-tuning"}


def pages() -> dict[str, str]:
    """File name → text."""
    return {
        "discrepancies.md": _discrepancies(),
        "analysis.md": _analysis(),
        "temperatures.md": _temperatures(),
    }


def grid(header: Sequence[str], rows: Iterable[Sequence[object]], texts: int = 1) -> str:
    """A Markdown table; the first ``texts`` columns are text, the others are numbers."""
    lines = [
        "| " + " | ".join(header) + " |",
        "|---" * texts + "|--:" * (len(header) - texts) + "|",
    ]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def _foot() -> str:
    libraries = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "pandas"))
    return (
        f"\nRebuild: `{COMMAND}` (tstar {__version__}, Python {platform.python_version()}, {libraries}). "
        "Nothing here is random.\n"
    )


def _discrepancies() -> str:
    found = checks()
    kinds = {
        what: [c for c in found if c.what == what] for what in dict.fromkeys(c.what for c in found)
    }
    counted = [
        (what, len(group), sum(c.exact for c in group), sum(not c.agrees for c in group))
        for what, group in kinds.items()
    ]
    beyond = [c for c in found if not c.agrees]
    digit = [c for c in found if c.agrees and not c.exact]
    return "\n".join(
        [
            "# Where the paper's print disagrees with its cells",
            "",
            "## Averages, standard deviations, differences and marks, recomputed",
            "",
            "S.D. is the population one (divided by n): the one divided by n − 1 reproduces none of them.",
            "",
            grid(("what", "printed", "reproduced to the digit", "beyond rounding"), counted),
            "",
            "Beyond what rounding of the cells explains: " + ("none." if not beyond else ""),
            *(f"- {c}" for c in beyond),
            "",
            "Another last digit, within rounding (the paper averaged unrounded numbers):",
            "",
            *(f"- {c}" for c in digit),
            "",
            "## The prose against the cells",
            "",
            "| where | the paper says | the cells say | verdict |",
            "|---|---|---|---|",
            *(f"| {c.where} | {c.says} | {c.cells} | {c.verdict} |" for c in claims()),
            _foot(),
        ]
    )


def _analysis() -> str:
    parts = [
        "# What the paper's tables say about its four variants",
        "",
        "The unit is the data set; models are averaged within it. Label smoothing is left out. All numbers "
        "are single published test accuracies, and the variants were fitted by the same authors, so p values "
        "describe these data sets and promise nothing about others. «Lost on» names the data sets where "
        "T = 1 was better. Holm is over the six methods.",
        "",
    ]
    for scenario in analysis.SCENARIOS:
        parts += _scenario(scenario)
    parts += ["## Default variant", "", "Rule: the highest mean accuracy over the data sets.", ""]
    chosen = analysis.default_variant()
    for label, source in (("with csg and K", chosen), ("with K only", chosen["without_csg"])):
        parts += [
            f"- **{_TITLES[scenario]}, {label}: {source[scenario]['variant']}.** {source[scenario]['evidence']}"
            for scenario in analysis.SCENARIOS
        ]
    parts.append(_foot())
    return "\n".join(parts)


def _scenario(scenario: str) -> list[str]:
    scores = analysis.by_dataset(scenario)
    single = analysis.cells(scenario)
    parts = [f"## {_TITLES[scenario]}: {len(scores)} data sets, {len(single)} cells", ""]
    parts += [
        grid(
            ("data set", *METHODS.values()),
            [
                *(
                    (name, *(f"{value:.2f}" for value in line))
                    for name, line in zip(scores.index, scores.to_numpy(), strict=True)
                ),
                ("mean", *(f"{value:.2f}" for value in scores.mean())),
            ],
        ),
        "",
        "Against T = 1, over data sets:",
        "",
        _against(scores),
        "",
        "Against T = 1, cell by cell (not independent; for the counts):",
        "",
        _against(single),
        "",
        _rank(analysis.rank(scores)),
        "",
        "Among the four variants alone: " + _friedman(analysis.rank(scores, VARIANTS)),
        "",
    ]
    if scenario == "scratch":
        noted = analysis.by_dataset(scenario, footnotes=True)
        others = {c.method: c.result for c in analysis.against_default(noted)}
        parts += [
            "With the footnotes' values (lr 0.01) for the two transformer cells in which csgcn did not train "
            f"at lr 0.1 (5.03 and 40.51): csgcn has mean {noted['csgcn'].mean():.2f}, "
            f"{others['csgcn'].wins}:{others['csgcn'].losses} against T = 1 "
            f"(Wilcoxon p = {others['csgcn'].wilcoxon_p:.3f}), mean gain {others['csgcn'].mean:+.2f}; "
            f"the best mean stays with {noted[list(VARIANTS)].mean().idxmax()}. "
            "These two cells alone make csgcn look worse from scratch.",
            "",
        ]
    return parts


def _against(scores: object) -> str:
    import pandas as pd

    assert isinstance(scores, pd.DataFrame)
    rows = []
    for c in analysis.against_default(scores):
        r = c.result
        lost = ", ".join(c.lost_on) if scores.index.nlevels == 1 else f"{r.losses} cells"
        rows.append(
            (
                METHODS[c.method],
                r.n,
                f"{r.wins}/{r.ties}/{r.losses}",
                f"{r.mean:+.2f}",
                f"{r.median:+.2f}",
                f"{r.worst:+.2f}",
                f"{r.sign_p:.3f}",
                f"{r.wilcoxon_p:.3f}",
                f"{c.holm_p:.3f}",
                lost or "–",
            )
        )
    header = "method,n,win/tie/loss,mean,median,worst,sign p,Wilcoxon p,Holm,lost on"
    return grid(tuple(header.split(",")), rows)


def _rank(result: Ranking) -> str:
    """The critical-difference diagram in letters: methods that share one do not differ significantly."""
    groups = result.groups()
    order = sorted(range(len(result.names)), key=lambda i: result.ranks[i])
    rows = [
        (
            METHODS[result.names[i]],
            f"{result.ranks[i]:.2f}",
            "".join(chr(97 + g) for g, group in enumerate(groups) if result.names[i] in group),
        )
        for i in order
    ]
    return (
        f"Mean rank over {result.blocks} data sets: {_friedman(result)} Methods that share a letter differ "
        "by less than the critical difference.\n\n" + grid(("method", "mean rank", "group"), rows)
    )


def _friedman(result: Ranking) -> str:
    ranks = ", ".join(
        f"{name} {rank:.2f}" for name, rank in zip(result.names, result.ranks, strict=True)
    )
    return (
        f"Friedman χ² = {result.chi2:.2f}, p = {result.chi2_p:.4f} (F form p = {result.f_p:.4f}), Nemenyi "
        f"critical difference {result.critical_difference:.2f} at 0.05 (ranks: {ranks})."
    )


def _temperatures() -> str:
    frame = records()
    ours = frame[frame["method"].isin((*VARIANTS, "T=sqrt(M)")) & (frame["table"] != "smoothing")]
    wide = ours.pivot_table(
        index=["table", "block", "model", "dataset", "num_features", "num_classes", "csg"],
        columns="method",
        values="temperature",
        sort=False,
    )[["T=sqrt(M)", *VARIANTS]]
    notes = ours.groupby(["table", "block", "model", "dataset"])["assumed"].agg(set)
    rows = []
    for key, line in zip(wide.index, wide.to_numpy(), strict=True):
        guess = any(notes.loc[key[:4]])
        rows.append(
            (
                *key[:4],
                *(f"{value:g}" for value in key[4:]),
                *(f"{v:.2f}" for v in line),
                "yes" if guess else "",
            )
        )
    task_notes = set(table("tasks")["csg_source"]) - {"printed"}
    width_notes = set(table("widths")["source"]) - {"architecture"}
    return "\n".join(
        [
            "# The temperature behind each row of «ours»",
            "",
            "By `tstar.temperature` from M, csg and K. The paper prints csg and K (not CIFAR-10's csg) and, of "
            "temperatures, only ISIC's (24.88). M follows from the architecture. Where an input is ours the last "
            "column says so:",
            "",
            *(f"- CIFAR-10's csg is {text}" for text in task_notes),
            *(f"- RegNet 8GF's M is {text}" for text in width_notes),
            "",
            grid(
                ("table", "block", "model", "data set", "M", "K", "csg", "√M", *VARIANTS, "ours"),
                rows,
                texts=4,
            ),
            _foot(),
        ]
    )
