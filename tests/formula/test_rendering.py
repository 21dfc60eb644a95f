"""One description, drawn for text, the terminal and HTML: the verdict first, formulas last."""

import dataclasses
import io

import tstar
from tstar.formula import cautions
from tstar.formula.cautions import Notice
from tstar.formula.rendering import as_html, as_rich, as_text


def drawn(description):
    from rich.console import Console

    console = Console(record=True, width=200, file=io.StringIO())
    console.print(as_rich(description), highlight=False)
    return [as_text(description), console.export_text(), as_html(description)]


def test_every_drawing_says_the_same_in_the_same_order():
    d = tstar.explain(
        64, 10, optimizer="sgd", lr=0.01, steps=200, batch_size=1, label_smoothing=0.1
    ).describe()
    d = dataclasses.replace(d, expectation="About two points.")
    parts = [d.verdict, d.expectation, *(n.message for n in d.notices), *d.reasons]
    parts += [expression for expression, _ in d.terms]
    assert len(d.notices) >= 2
    for text in drawn(d):
        plain = text.replace("&#x27;", "'")
        places = [plain.index(part) for part in parts]
        assert places == sorted(places)


def test_nothing_in_it_is_markup():
    d = tstar.explain(64, 10).describe()
    bad = Notice("caution", "x", "[red]<script>alert(1)</script>[/red]")
    text, terminal, page = drawn(dataclasses.replace(d, notices=(bad,), reasons=("[bold]",)))
    assert "[red]<script>" in text
    assert "[red]<script>" in terminal
    assert "[bold]" in terminal
    assert "<script>" not in page


def test_the_limits_in_the_texts_are_the_constants():
    assert f"{cautions.FITTED_STEPS:,} to" in cautions.TEXTS["few-steps"][1]
    assert f"below {cautions.FEWEST_CLASSES} classes" in cautions.TEXTS["few-classes"][1]
