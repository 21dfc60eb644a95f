"""Every closed-form rule for T on one axis, against M; the best T that was seen and the law, where there are runs."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tstar.evidence.regret import advised, number
from tstar.formula.rules import names, on_one_axis
from tstar.formula.training import family
from tstar.report.records import Records, Sweep
from tstar.report.style import (
    BLUE,
    GREEN,
    INK,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    literal,
    panels,
    styled,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTHS = tuple(2**i for i in range(4, 13))
BASE = 64  # µP's base width, where its rule is relative to one
_LOOKS: dict[str, tuple[str, Any]] = {
    "default": (INK, ":"),
    "sqrt-m": (ORANGE, "--"),
    "heated-up": (PURPLE, "--"),
    "adacos-fixed": (SKY, "-."),
    "normface-bound": (GREEN, "-."),
    "mup-readout": (INK, (0, (6, 2, 1, 2))),
    "ours-base": (BLUE, ":"),
    "ours-csg": (VERMILION, "-"),
    "ours-cn": (VERMILION, "--"),
    "ours-csgcn": (BLUE, "-"),
    "law": (INK, "-"),
}
# What the law knows of a training besides M and K.
_TRAINING = ("optimizer", "lr", "steps", "momentum", "batch_size", "scenario")


class RuleLine(NamedTuple):
    """A rule over all widths; NaN where it has no temperature."""

    name: str
    label: str
    temperatures: tuple[float, ...]


class Seen(NamedTuple):
    """The best T of a grid with BN, by validation accuracy, at one M."""

    num_features: int
    temperature: float


class RulesPanel(NamedTuple):
    title: str
    num_classes: int | None
    csg: float | None
    num_features: tuple[int, ...]
    lines: tuple[RuleLine, ...]
    seen: tuple[Seen, ...]


class ClosedForms(NamedTuple):
    panels: tuple[RulesPanel, ...]


def closed_forms_data(
    records: Records | None = None,
    num_classes: int | None = 10,
    csg: float | None = 3.0,
    widths: Sequence[int] = WIDTHS,
) -> ClosedForms:
    """One panel per data set that was swept with BN; without runs, one for the given K and csg."""
    sweeps = () if records is None else records.with_norm("batch", 3)
    if not sweeps:
        known = [f"K = {num_classes}" if num_classes else "", f"csg = {csg:g}" if csg else ""]
        return ClosedForms((_panel(", ".join(filter(None, known)), num_classes, csg, widths),))
    tasks: dict[tuple[str, float | None, float | None], list[Sweep]] = {}
    for sweep in sweeps:
        facts = sweep.facts
        task = (
            str(facts.get("dataset")),
            number(facts.get("num_classes")),
            number(facts.get("csg")),
        )
        tasks.setdefault(task, []).append(sweep)
    return ClosedForms(
        tuple(
            _panel(
                f"{name}: K = {'?' if classes is None else int(classes)}"
                + ("" if difficulty is None else f", csg = {difficulty:.3g}"),
                None if classes is None else int(classes),
                difficulty,
                widths,
                found,
            )
            for (name, classes, difficulty), found in tasks.items()
        )
    )


def _panel(
    title: str,
    num_classes: int | None,
    csg: float | None,
    widths: Sequence[int],
    sweeps: Sequence[Sweep] = (),
) -> RulesPanel:
    columns = [on_one_axis(M, num_classes, csg or None, base_features=BASE) for M in widths]
    lines = tuple(
        RuleLine(
            name,
            columns[0][i].label,
            tuple(math.nan if (T := rules[i].temperature) is None else T for rules in columns),
        )
        for i, name in enumerate(names())
    )
    seen = [Seen(int(s.facts["num_features"]), s.temperatures[s.best]) for s in sweeps]
    return RulesPanel(
        title, num_classes, csg, tuple(widths), (*lines, *_law(sweeps, widths)), tuple(seen)
    )


def _law(sweeps: Sequence[Sweep], widths: Sequence[int]) -> Iterator[RuleLine]:
    """tstar's own law, where all runs share one training that it knows: its T depends on the training."""
    if len({tuple(s.facts.get(name) for name in _TRAINING) for s in sweeps}) != 1:
        return
    facts = sweeps[0].facts
    known = number(facts.get("lr")) is not None and number(facts.get("steps")) is not None
    if known and family(str(facts.get("optimizer"))) in ("sgd", "adam"):
        T = [advised({**facts, "num_features": M}) for M in widths]
        found = tuple(math.nan if value is None else value for value in T)
        yield RuleLine("law", "tstar's law, for this training", found)


@styled
def draw_closed_forms(data: ClosedForms) -> Figure:
    alone = len(data.panels) == 1
    figure, every = panels(
        len(data.panels), columns=2, width=5.2 if alone else 3.6, height=3.7 if alone else 2.9
    )
    for axes, panel in zip(every, data.panels, strict=True):
        for line in panel.lines:
            if all(math.isnan(T) for T in line.temperatures):
                continue
            color, style = _LOOKS[line.name]
            axes.plot(
                panel.num_features,
                line.temperatures,
                color=color,
                ls=style,
                lw={"law": 2.8}.get(line.name, 2.0 if line.name.startswith("ours") else 1.3),
                label=line.label,
            )
        if panel.seen:
            axes.plot(
                [s.num_features for s in panel.seen],
                [s.temperature for s in panel.seen],
                "o",
                mfc="none",
                mec=INK,
                mew=1.3,
                ms=7,
                label="best T seen",
            )
        axes.set_xscale("log", base=2)
        axes.set_yscale("log", base=2)
        for which in (axes.xaxis, axes.yaxis):
            which.set_major_formatter(lambda value, _: f"{value:g}")
        axes.minorticks_off()
        axes.set_title(literal(textwrap.fill(panel.title, 44)), fontsize=8)
        axes.grid()
    figure.supxlabel("features M", fontsize=9)
    figure.supylabel("temperature T", fontsize=9)
    handles: dict[str, Any] = {}
    for axes in every:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    figure.legend([*handles.values()], [*handles], loc="outside right center")
    return figure
