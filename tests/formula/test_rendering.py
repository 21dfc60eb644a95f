"""One description, drawn for text, the terminal and HTML: the verdict first, formulas last."""

import dataclasses
import io

import tstar
from tstar.formula import cautions
from tstar.formula.cautions import Notice
from tstar.formula.rendering import Description, as_html, as_rich, as_text, describe


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


def test_the_text_by_hand():
    notice = Notice("caution", "x", "Mind this.")
    d = Description("Do it.", "", (notice,), ("Because.",), (("α·sqrt(M)", "+1.0000"),))
    assert as_text(d).splitlines() == [
        "Do it.",
        "  caution: Mind this.",
        "  Because.",
        "  α·sqrt(M)" + " " * 21 + "   +1.0000",
    ]
    assert as_text(dataclasses.replace(d, expectation="Two points.")).splitlines()[1] == (
        "  Two points."
    )
    assert as_html(d) == (
        "<div><b>Do it.</b><ul><li style='color:#8a5a00'><b>caution</b> Mind this.</li></ul>"
        "<p>Because.</p><table><tr><td>α·sqrt(M)</td><td style='text-align:right'>+1.0000</td>"
        "</tr></table></div>"
    )


def test_a_model_that_is_left_has_neither_reasons_nor_terms():
    result = tstar.explain(64, 10, optimizer="sgd", lr=0.1, steps=500, variant="cn")
    left = describe(result, leave=True, facts="a small model", changes=("train longer",))
    assert left.verdict == ("Leave the model as it is: no BatchNorm, no temperature; train longer.")
    assert left.reasons == ("Coefficients: cn; a small model.",)
    assert left.terms == ()
    bare = describe(result, norm=None, notices=())
    assert bare.verdict == "Train at T = 5.354, without a new norm."
    assert bare.notices == ()
    assert bare.reasons == (result.reason, "Coefficients: cn.")
    assert [value for _, value in bare.terms] == ["+3.2408", "+6.6560", "-4.5430"]


def test_an_advice_is_a_number_and_draws_itself():
    result = tstar.explain(64, 10)
    assert float(result) == result.temperature
    assert str(result) == as_text(result.describe())
    assert result._repr_html_() == as_html(result.describe())
    assert drawn(result.describe())[1].startswith(result.describe().verdict)


def test_in_the_terminal_expressions_begin_left_and_values_end_right():
    d = Description("Do it.", "", (), (), (("α", "+1.0000"), ("γ·ln csg", "+10.0000")))
    terminal = drawn(d)[1]
    first, second = [line.rstrip() for line in terminal.splitlines()[1:3]]
    assert first.index("α") == second.index("γ") == 2
    assert len(first) == len(second)
