"""Everything of a report → one HTML file; the template escapes every text."""

from __future__ import annotations

import platform
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from tstar._version import __version__
from tstar.lab.report.catalogue import Plot
from tstar.lab.report.headline import Headline
from tstar.lab.report.payload import curves_payload, packed, runs_payload
from tstar.lab.report.records import Records, people
from tstar.lab.report.style import INK, inline_svg, places, told_apart
from tstar.lab.report.tables import Table, data_table
from tstar.lab.sweep.columns import json_object
from tstar.lab.sweep.provenance import commit
from tstar.text import printable

ON_PAGE = 12  # panels of one figure
_AXES = {
    **{"model": "models", "num_features": "features M", "temperature": "temperatures T"},
    **{"norm": "norm before the output layer", "method": "methods", "optimizer": "optimizers"},
    **{"lr": "learning rates", "weight_decay": "weight decays"},
    **{"epochs": "epochs", "steps": "steps"},
    **{"batch_size": "batch sizes", "label_smoothing": "label smoothing", "loss": "losses"},
    **{"metric": "metric", "augment": "augmentation", "scenario": "scenarios", "seed": "seeds"},
}
_USUAL = {"loss": ("cross-entropy",), "augment": ("0", "1", "0, 1")}
_DASHES = {"--": "5 3", ":": "1.5 2.5"}
_SHAPES = {"o": "●", "s": "■", "_": "–"}
_OVER = {"plain": "over the plain model", "bn_one": "over BN, T = 1", "best": "to the best T"}


def build_page(
    records: Records,
    command: str,
    headline: Headline | None,
    figures: Sequence[tuple[Plot, pd.DataFrame]],
    tables: Sequence[Table],
    missing: Sequence[str],
) -> str:
    """The page's text."""
    from jinja2 import Environment, PackageLoader
    from markupsafe import Markup

    def shown(value: Any) -> Any:
        return value if isinstance(value, Markup) else printable(value, lines=True)

    loader = PackageLoader("tstar.lab.report", "")
    page = Environment(autoescape=True, finalize=shown, loader=loader, trim_blocks=True)
    page.filters["source"] = lambda name: Markup(loader.get_source(page, name)[0])
    reason = next((m for m in missing if m.startswith("Headline: ")), "")
    return page.get_template("template.html").render(
        title=f"Softmax temperatures: {Path(records.path).name}",
        headline=headline,
        no_headline=reason.removeprefix("Headline: "),
        over=_OVER,
        facts=facts(records),
        data=data_table(records),
        figures=[_figure(plot, frame, records) for plot, frame in figures],
        tables=tables,
        missing=missing,
        origin=origin(records, command),
        count=f"{len(records.frame):,}",
        runs=packed(runs_payload(records.frame)),
        curves=packed(curves_payload([*records.frame.get("curves", ())])),
    )


def facts(records: Records) -> list[tuple[str, str]]:
    """Pairs of a word and its value: how many runs, and the values of each axis of the study."""
    frame = records.frame
    counts = frame["status"].value_counts() if "status" in frame else {}
    by_status = ", ".join(f"{n:,} {name}" for name, n in counts.items())
    pairs = [("runs", f"{len(frame):,}" + (f" ({by_status})" if by_status else ""))]
    for column, label in _AXES.items():
        listed = values(frame[column]) if column in frame else ""
        # A loss, metric or augmentation is named if it is one's own.
        if listed and listed not in _USUAL.get(column, ()):
            pairs.append((label, listed))
    if "seconds" in frame and (total := float(frame["seconds"].fillna(0).sum())) > 0:
        hours = f"{total / 3600:.1f} hours" if total >= 3600 else f"{total / 60:.1f} minutes"
        pairs.append(("training time", hours))
    if "finished" in frame and frame["finished"].notna().any():
        ends = frame["finished"].clip(-5e10, 5e10).agg(["min", "max"])
        days = dict.fromkeys(time.strftime("%Y-%m-%d", time.gmtime(t)) for t in ends)
        pairs.append(("finished", " to ".join(days)))
    return pairs


def values(column: pd.Series, most: int = 12) -> str:
    """The distinct values of a column, in order; how many there are if they are too many."""
    distinct = sorted(column.dropna().unique(), key=lambda v: (isinstance(v, str), v))
    texts = [people(float(v)) if not isinstance(v, str) else printable(v) for v in distinct]
    if len(texts) > most:
        return f"{len(texts)} values, {texts[0]} to {texts[-1]}"
    return ", ".join(texts)


def origin(records: Records, command: str) -> list[tuple[str, str]]:
    """Where every number comes from: the command, the store, and the versions of both sides."""
    frame, code = records.frame, commit()
    at = f" (commit {code})" if code else ""
    medians = "" if records.average else ", median in heat maps and the paper's tables of results"
    pairs = [
        ("command", command),
        ("store", f"{Path(records.path).name}, SHA-256 {records.checksum}"),
        ("report made with", f"tstar {__version__}{at}, Python {platform.python_version()}"),
        ("the formula", records.formula),
        ("accuracy", f"{records.metric}; {records.chosen_on} accuracy chose the best T of a grid"),
        ("average", f"{records.averaging} over seeds{medians}"),
    ]
    if "commit" in frame and (commits := values(frame["commit"])):
        pairs.append(("code of the runs", f"commit {commits}"))
    versions = pd.DataFrame([json_object(line) for line in set(frame.get("versions", ()))])
    return pairs + [(f"runs: {name}", values(versions[name])) for name in versions]


def _figure(plot: Plot, frame: pd.DataFrame, records: Records) -> dict[str, Any]:
    """What the template shows of a figure: one small picture per panel, which reflow on a phone."""
    names = [*dict.fromkeys(frame["panel"])]
    shared, rests = told_apart(names)
    panels = (
        plot.draw(frame[frame["panel"] == name].assign(panel=rest), legend=False)
        for name, rest in zip(names[:ON_PAGE], rests, strict=False)
    )
    labels = [name.replace("\n", ", ") or plot.title for name in names]
    return {
        "plot": plot,
        "shared": shared,
        "legend": [_line(look) for look in plot.legend(frame)],
        "places": places(frame),
        "pictures": [
            inline_svg(panel, label) for panel, label in zip(panels, labels, strict=False)
        ],
        "some": f"The first {ON_PAGE} of {len(names)} panels; this draws all:"
        if len(names) > ON_PAGE
        else "",
        # Lines break between words: a browser breaks --metric after its hyphens.
        "command": f"{records.command('figure', plot.name)} -o {plot.name}.svg".split(" "),
    }


def _line(look: Mapping[str, Any]) -> dict[str, str]:
    """One entry of a legend, drawn by the page."""
    return {
        "ink": "currentColor" if look["color"] == INK else look["color"],
        "line": look["ls"],
        "dash": _DASHES.get(look["ls"], ""),
        "shape": _SHAPES.get(look.get("marker", ""), ""),
        "label": look["label"],
    }
