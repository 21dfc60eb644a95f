"""Everything of a report → one HTML file. Text is escaped here and nowhere else."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tstar.report.catalogue import Plot
from tstar.report.headline import Headline
from tstar.report.page.payload import curves_payload, packed, runs_payload
from tstar.report.page.summary import datasets_table, facts, origin
from tstar.report.records import Records
from tstar.report.tables.cells import Table
from tstar.report.tables.markup import to_html
from tstar.text import escaped

_HERE = Path(__file__).parent


@dataclass(frozen=True)
class Drawn:
    """A figure as it goes into a page: its pictures as HTML, and how many more its command draws."""

    plot: Plot
    pictures: tuple[str, ...]
    more: int = 0


def build_page(
    records: Records,
    *,
    title: str,
    command: str,
    headline: Headline | None,
    figures: Sequence[Drawn],
    tables: Sequence[Table],
    missing: Sequence[str],
) -> str:
    """The page's text."""
    frame = records.frame
    payload = json.dumps(runs_payload(frame), separators=(",", ":"), ensure_ascii=False)
    curves = curves_payload(frame["curves"].tolist() if "curves" in frame.columns else [])
    links = [f'<a href="#fig-{d.plot.name}">{escaped(d.plot.title)}</a>' for d in figures]
    parts = {
        "title": escaped(title),
        "style": (_HERE / "page.css").read_text(encoding="utf-8"),
        "script": (_HERE / "page.js").read_text(encoding="utf-8"),
        "headline": _headline(headline),
        "facts": _definitions(facts(records)) + _table(datasets_table(records)),
        "links": " ".join(links),
        "toc": _contents(links, tables),
        "figures": "\n".join(_figure(drawn, records) for drawn in figures),
        "tables": "\n".join(
            # Parts of one table have one note: it is said once.
            _table(t if i == 0 or t.note != tables[i - 1].note else replace(t, note="As above."))
            for i, t in enumerate(tables)
        ),
        "missing": _missing(missing),
        "origin": _definitions(origin(records, command)),
        "count": f"{len(frame):,}",
        "runs": packed(payload.encode()),
        "curves": packed(curves),
    }
    template = (_HERE / "template.html").read_text(encoding="utf-8")
    # One pass: what is put in is not looked at again, whatever a name contains.
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], template)


def _contents(links: Sequence[str], tables: Sequence[Table]) -> str:
    """The list that stays beside the page where there is room for it."""
    names = [
        f'<a href="#table-{escaped(t.name)}">{escaped(t.title.partition("]: ")[2] or t.title)}</a>'
        for t in tables
    ]
    sections = (
        ('<a href="#headline">Result</a>', ()),
        ('<a href="#run">What was run</a>', ()),
        ('<a href="#figures">Figures</a>', links),
        ('<a href="#tables">Tables</a>', names),
        ('<a href="#runs">Runs</a>', ()),
        ('<a href="#origin">Where the numbers come from</a>', ()),
    )
    items = [
        f"<li>{link}"
        + (f"<ul>{''.join(f'<li>{x}</li>' for x in under)}</ul>" if under else "")
        + "</li>"
        for link, under in sections
    ]
    return f"<ul>{''.join(items)}</ul>"


def _headline(found: Headline | None) -> str:
    if found is None:
        return (
            "<p>These runs have no grid of temperatures with BatchNorm, so that nothing can be said about "
            "the formula.</p>"
        )
    cards = []
    for gain in found.gains:
        over = {"plain": "the plain model", "bn_one": "BN, T = 1"}[gain.baseline]
        cards.append(
            _card(
                f"{gain.gain.value:+.2f}",
                f"points over {over}, better in {gain.better} of {gain.conditions} conditions",
                f"95 %: {gain.gain.low:+.2f} to {gain.gain.high:+.2f}",
            )
        )
    cards.append(
        _card(
            found.distance,
            f"points {found.side} the best T of the grid, in {found.conditions} conditions",
            f"95 %: {found.span}",
        )
    )
    sentences = "".join(f"<p>{escaped(sentence)}</p>" for sentence in found.sentences)
    return (
        f'<div class="cards">{"".join(cards)}</div>{sentences}'
        f"<p class='small'>{escaped(found.method)}</p>"
    )


def _card(number: str, what: str, interval: str) -> str:
    return (
        f'<div class="card"><strong>{escaped(number)}</strong><span>{escaped(what)}</span>'
        f"<small>{escaped(interval)}</small></div>"
    )


def _definitions(pairs: Sequence[tuple[str, str]]) -> str:
    rows = "".join(f"<dt>{escaped(word)}</dt><dd>{escaped(value)}</dd>" for word, value in pairs)
    return f"<dl>{rows}</dl>"


def _figure(drawn: Drawn, records: Records) -> str:
    plot = drawn.plot
    total = len(drawn.pictures) + drawn.more
    more = (
        f" The first {len(drawn.pictures)} of {total} pictures; this draws all:"
        if drawn.more
        else ""
    )
    command = (
        f"{records.command('figure', plot.name)} -o {plot.name}.svg"
        if plot.takes_runs
        else f"tstar figure {plot.name} -o {plot.name}.svg"
    )
    return (
        f'<figure id="fig-{escaped(plot.name)}"><h3>{escaped(plot.title)}</h3>{"".join(drawn.pictures)}'
        f"<figcaption>{escaped(plot.reading + more)} {_code(command)}</figcaption></figure>"
    )


def _code(command: str) -> str:
    """A command whose lines break between words: a browser breaks --metric after its hyphens."""
    words = " ".join(f"<span>{escaped(word)}</span>" for word in command.split(" "))
    return f"<code>{words}</code>"


def _table(table: Table) -> str:
    source = f" {_code(table.command)}" if table.command else ""
    notes = "".join(f"<p class='small'>{escaped(text)}</p>" for text in table.notes)
    return (
        f'<section class="table" id="table-{escaped(table.name)}"><h3>{escaped(table.title)}</h3>'
        f'<div class="scroll">{to_html(table)}</div>'
        f"<p class='small'>{escaped(table.note)}{source}</p>{notes}</section>"
    )


def _missing(reasons: Sequence[str]) -> str:
    if not reasons:
        return ""
    items = "".join(f"<li>{escaped(reason)}</li>" for reason in reasons)
    return f"<details><summary>What these runs cannot show, and why ({len(reasons)})</summary><ul>{items}</ul></details>"
