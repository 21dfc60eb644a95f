"""Everything of a report → one HTML file. Text is escaped here and nowhere else."""

from __future__ import annotations

import platform
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from tstar._version import __version__
from tstar.lab.report.catalogue import Plot
from tstar.lab.report.headline import Headline
from tstar.lab.report.own_tables import data_table
from tstar.lab.report.payload import curves_payload, packed, runs_payload
from tstar.lab.report.records import Records, people
from tstar.lab.report.style import INK, inline_svg, told_apart
from tstar.lab.report.tables import Table
from tstar.lab.sweep.columns import json_object
from tstar.lab.sweep.provenance import commit
from tstar.text import escaped, printable

_HERE = Path(__file__).parent
ON_PAGE = 12  # panels of one figure
RELOAD = '<meta http-equiv="refresh" content="{}">'
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
_WORDS = {"plain": "over the plain model", "bn_one": "over BN, T = 1", "best": "to the best T"}


def build_page(
    records: Records,
    command: str,
    headline: Headline | None,
    figures: Sequence[tuple[Plot, pd.DataFrame]],
    tables: Sequence[Table],
    missing: Sequence[str],
    reload: int,
) -> str:
    """The page's text; ``reload``: seconds after which it loads itself again, or 0."""
    frame = records.frame
    summary = f"What these runs cannot show, and why ({len(missing)})"
    reasons = "".join(f"<li>{escaped(reason)}</li>" for reason in missing)
    parts = {
        "title": escaped(f"Softmax temperatures: {Path(records.path).name}"),
        "reload": RELOAD.format(reload) if reload else "",
        "style": (_HERE / "page.css").read_text(encoding="utf-8"),
        "script": (_HERE / "page.js").read_text(encoding="utf-8"),
        "headline": _headline(headline, missing),
        "facts": _definitions(facts(records)) + _table(data_table(records)),
        "figure_links": _links({f"fig-{plot.name}": plot.title for plot, _ in figures}),
        "table_links": _links({f"table-{table.name}": table.title for table in tables}),
        "figures": "\n".join(_figure(plot, data, records) for plot, data in figures),
        "tables": "\n".join(map(_table, tables)),
        "missing": f"<details><summary>{summary}</summary><ul>{reasons}</ul></details>"
        if missing
        else "",
        "origin": _definitions(origin(records, command)),
        "count": f"{len(frame):,}",
        "runs": packed(runs_payload(frame)),
        "curves": packed(curves_payload([*frame.get("curves", ())])),
    }
    template = (_HERE / "template.html").read_text(encoding="utf-8")
    # One pass: what is put in is not looked at again, whatever a name contains.
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], template)


def facts(records: Records) -> list[tuple[str, str]]:
    """Pairs of a word and its value: how many runs, and the values of each axis of the study."""
    frame = records.frame
    counts = frame["status"].value_counts() if "status" in frame else {}
    told = ", ".join(f"{n:,} {name}" for name, n in counts.items())
    found = [("runs", f"{len(frame):,}" + (f" ({told})" if told else ""))]
    for column, label in _AXES.items():
        listed = values(frame[column]) if column in frame else ""
        # A loss, metric or augmentation is named if it is one's own.
        if listed and listed not in _USUAL.get(column, ()):
            found.append((label, listed))
    if "seconds" in frame and (total := float(frame["seconds"].fillna(0).sum())) > 0:
        hours = f"{total / 3600:.1f} hours" if total >= 3600 else f"{total / 60:.1f} minutes"
        found.append(("training time", hours))
    if "finished" in frame and frame["finished"].notna().any():
        ends = frame["finished"].clip(-5e10, 5e10).agg(["min", "max"])
        days = dict.fromkeys(time.strftime("%Y-%m-%d", time.gmtime(t)) for t in ends)
        found.append(("finished", " to ".join(days)))
    return found


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
    medians = "" if records.average else ", median in the paper's tables of results"
    found = [
        ("command", command),
        ("store", f"{Path(records.path).name}, SHA-256 {records.checksum}"),
        ("report made with", f"tstar {__version__}{at}, Python {platform.python_version()}"),
        ("the law", records.formula),
        ("accuracy", f"{records.metric}; {records.chosen_on} accuracy chose the best T of a grid"),
        ("average", f"{records.averaging} over seeds{medians}"),
    ]
    if "commit" in frame and (commits := values(frame["commit"])):
        found.append(("code of the runs", f"commit {commits}"))
    versions = pd.DataFrame([json_object(line) for line in set(frame.get("versions", ()))])
    return found + [(f"runs: {name}", values(versions[name])) for name in versions]


def _links(titles: Mapping[str, str]) -> str:
    items = (f'<li><a href="#{place}">{escaped(name)}</a></li>' for place, name in titles.items())
    return f"<ul>{''.join(items)}</ul>"


def _headline(found: Headline | None, missing: Sequence[str]) -> str:
    if found is None:
        reason = next((m for m in missing if m.startswith("Headline: ")), "")
        return f"<p>{escaped(reason.removeprefix('Headline: '))}</p>"
    cards = "".join(
        f'<div class="card"><strong>{line.value.value:+.2f}</strong><span>points '
        f"{_WORDS[line.over]}, better in {line.better} of {line.conditions} conditions</span>"
        f"<small>95 %: {line.value.low:+.2f} to {line.value.high:+.2f}</small></div>"
        for line in found.lines
    )
    said = "".join(f"<p>{escaped(sentence)}</p>" for sentence in found.sentences)
    return f"<div class='cards'>{cards}</div>{said}<p class='small'>{escaped(found.method)}</p>"


def _definitions(pairs: Sequence[tuple[str, str]]) -> str:
    rows = "".join(f"<dt>{escaped(word)}</dt><dd>{escaped(value)}</dd>" for word, value in pairs)
    return f"<dl>{rows}</dl>"


def _figure(plot: Plot, frame: pd.DataFrame, records: Records) -> str:
    """One small picture per panel, so that panels reflow on a phone."""
    names = [*dict.fromkeys(frame["panel"])]
    shared, rests = told_apart(names)
    pictures = [
        inline_svg(
            plot.draw(frame[frame["panel"] == name].assign(panel=rest), legend=False),
            escaped(name.replace("\n", ", ") or plot.title),
        )
        for name, rest in zip(names[:ON_PAGE], rests, strict=False)
    ]
    some = f"The first {ON_PAGE} of {len(names)} panels; this draws all:"
    command = f"{records.command('figure', plot.name)} -o {plot.name}.svg".split(" ")
    # Lines break between words: a browser breaks --metric after its hyphens.
    words = " ".join(f"<span>{escaped(word)}</span>" for word in command)
    return (
        f'<figure id="fig-{plot.name}"><h3>{escaped(plot.title)}</h3>'
        f'<p class="shared">{escaped(shared)}</p>'
        f'<p class="legend">{"".join(map(_line, plot.legend))}</p>'
        f'<div class="panels">{"".join(pictures)}</div><figcaption>{escaped(plot.reading)} '
        f"{some if len(names) > ON_PAGE else ''} <code>{words}</code></figcaption></figure>"
    )


def _line(look: Mapping[str, Any]) -> str:
    """One entry of a legend, drawn by the page."""
    ink = "currentColor" if look["color"] == INK else look["color"]
    dash, shape = _DASHES.get(look["ls"], ""), _SHAPES.get(look.get("marker", ""), "")
    line = f'<line x1="0" x2="26" y1="6" y2="6" stroke="{ink}" stroke-dasharray="{dash}"/>'
    sign = f'<text x="13" y="10" text-anchor="middle" fill="{ink}">{shape}</text>'
    drawing = (line if look["ls"] else "") + sign
    return f'<span><svg width="26" height="13">{drawing}</svg>{escaped(look["label"])}</span>'


def _table(table: Table) -> str:
    return (
        f'<section class="table" id="table-{escaped(table.name)}"><h3>{escaped(table.title)}</h3>'
        f'<div class="scroll">{table.html()}</div><p class="small">{escaped(table.note)}</p>'
        "</section>"
    )
