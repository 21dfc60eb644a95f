"""What is typed into the page gives what Python gives, in a real browser."""

import json
import math
import re

import pytest

import tstar
from tests.browsing import all_can_be_read, looked_at
from tstar.calculator import facts
from tstar.errors import TstarError
from tstar.formula.choice import choose_variant
from tstar.formula.rules import on_one_axis

pytestmark = pytest.mark.browser

GRID = [
    (M, K, csg)
    for M in (1, 42, 512, 600, 2048, 4_000_000)
    for K in (None, 2, 3, 10, 200, 1000)
    for csg in (None, 1e-5, 0.3, 1.39, 88.72, 1234.5678)
]


# Sets the fields as a keystroke would, and reads everything that Python can be asked for. In one call, since a
# round trip for each field of each case would take minutes.
SCRIPT = """(cases) => cases.map((fields) => {
  for (const [id, text] of Object.entries(fields ?? {})) document.getElementById(id).value = text;
  if (fields) document.getElementById("csg").dispatchEvent(new Event("input", { bubbles: true }));
  const all = (selector) => [...document.querySelectorAll(selector)];
  const rows = (id, key) => Object.fromEntries(all(`#${id} tbody tr`).map(
    (row) => [row.dataset[key], row.dataset.temperature === "" ? null : Number(row.dataset.temperature)]));
  const text = (id) => document.getElementById(id).textContent;
  const head = document.getElementById("headline").dataset;
  return {
    headline: head.temperature === undefined ? null : Number(head.temperature),
    variant: head.variant,
    reason: text("reason"),
    terms: all("#terms tr").map((row) => [...row.cells].map((cell) => cell.textContent)),
    flags: all("#flags li").map((item) => item.textContent),
    notices: all("#notices li").map((item) => item.textContent),
    variants: rows("variants", "variant"),
    variantFlags: Object.fromEntries(all("#variants tbody tr").map(
      (row) => [row.dataset.variant, row.dataset.flags ? JSON.parse(row.dataset.flags) : null])),
    rules: rows("rules", "rule"),
    code: text("code"),
    errors: Object.fromEntries(["features", "classes", "csg", "base"].map((id) => [id, text(`${id}-error`)])),
    curves: all("#chart path").map((path) => path.dataset.series),
  };
})"""


def typed(M="", K="", csg="", base="") -> dict[str, str]:
    values = {"features": M, "classes": K, "csg": csg, "base": base}
    return {field: "" if value is None else str(value) for field, value in values.items()}


def fill(page, *values):
    for field, text in typed(*values).items():
        page.fill(f"#{field}", text)


def shown(page) -> dict:
    return page.evaluate(SCRIPT, [None])[0]


def python_variant(name, M, K, csg):
    try:
        return tstar.explain(M, K, csg, variant=name)
    except TstarError:
        return None


def check(page, M, K, csg, base=None, scenario=None):
    compare(shown(page), M, K, csg, base, scenario)


def said(result):
    """The notices of Python, but those that the page shows as flags."""
    ranges = ("extrapolation", "validated", "clipped")
    return [f"{n.severity}: {n.message}" for n in result.notices if n.code not in ranges]


def compare(got, M, K, csg, base=None, scenario=None):
    expected = {name: python_variant(name, M, K, csg) for name in facts()["sets"]}
    for name, value in expected.items():
        if value is None:
            assert got["variants"][name] is None, (name, M, K, csg)
            continue
        assert got["variants"][name] == pytest.approx(value.temperature, rel=1e-12), (name, M, K)
        assert got["variantFlags"][name] == [f"{f.level}: {f.message}" for f in value.flags]
    for rule in on_one_axis(M, K, csg, base_features=base):
        at = (rule.name, M, K, csg)
        if rule.temperature is None:
            assert got["rules"][rule.name] is None, at
        else:
            assert got["rules"][rule.name] == pytest.approx(rule.temperature, rel=1e-12), at
    name, reason = choose_variant(csg, scenario, has_classes=K is not None)
    answer = tstar.explain(M, K, csg, scenario=scenario)
    assert got["notices"] == said(answer)
    assert got["rules"]["advice"] == got["headline"]
    assert got["variant"] == name
    assert got["reason"] == reason
    assert got["headline"] == pytest.approx(answer.temperature, rel=1e-12)
    lines = [[term.expression, f"{term.value:+.4f}"] for term in answer.terms]
    assert got["terms"] == [*lines, ["sum", f"{answer.unclipped:+.4f}"]]
    flags = [f"{flag.level}: {flag.message}" for flag in answer.flags]
    if answer.clipped:
        flags.insert(
            0,
            f"clipped: {answer.unclipped:.4g} was clipped to the {answer.clipped}, {answer.temperature:g}",
        )
    assert got["flags"] == flags
    assert run(got["code"]) == pytest.approx(answer.temperature, rel=1e-5)
    drawn = [n for n, value in expected.items() if value is not None]
    assert got["curves"] == ["advice", *drawn, "sqrt-m"]


def run(code: str) -> float:
    """The temperature that the copied lines put into a model; 1 where they leave it as it is."""
    import torch

    if code.startswith("# Nothing to add"):
        return 1.0

    names = {"model": torch.nn.Linear(4, 3, dtype=torch.float64)}
    exec(code, names)
    return float(names["model"].temperature)


def test_every_number_and_message_is_pythons_over_a_grid(open_page):
    page = open_page()
    everything = page.evaluate(SCRIPT, [typed(*case) for case in GRID])
    for case, got in zip(GRID, everything, strict=True):
        compare(got, *case)


def test_the_training_counts_as_in_python(open_page):
    page = open_page()
    for M, K, optimizer, lr, steps in (
        (64, 10, "sgd", 0.1, 50_000),
        (64, 10, "sgd", 0.01, 800),
        (1280, 101, "sgd", 0.01, 100),
        (64, 77, "sgd", 0.01, 200),
        (16, 1000, "sgd", 1e-4, 10),
        (384, 77, "adamw", 3e-4, 120),
        (256, 77, "adamw", 0.003, 800),
        (48, 10, "sgd", 0.1, 50_000),
        (64, 10, "adamw", 3e-4, 100_000),
        (2048, 1000, "adamw", 3e-5, 100),
    ):
        fill(page, M, K)
        page.select_option("#optimizer", optimizer)
        page.fill("#lr", str(lr))
        page.fill("#steps", str(steps))
        got, expected = shown(page), tstar.explain(M, K, optimizer=optimizer, lr=lr, steps=steps)
        assert got["variant"] == "speed"
        assert got["notices"] == said(expected)
        assert got["headline"] == pytest.approx(expected.temperature, rel=1e-12)
        assert page.inner_text("#limit") == f"Your training {expected.limit_text()}."
        assert run(got["code"]) == pytest.approx(expected.temperature, rel=1e-5)
        flags = [f"{flag.level}: {flag.message}" for flag in expected.flags]
        assert [text for text in got["flags"] if not text.startswith("clipped")] == flags
    page.check("#variant-cn")  # the paper's variants stay at hand
    assert shown(page)["headline"] == pytest.approx(tstar.temperature(2048, 1000, variant="cn"))
    page.fill("#steps", "0")
    assert "must be a whole number of at least 1" in page.inner_text("#steps-error")
    assert shown(page)["headline"] is None
    page.fill("#steps", "")
    assert "Give the number of steps for a T that fits yours" in page.inner_text("#notices")


def test_everything_that_the_advice_uses_can_be_given(open_page):
    page = open_page()
    fill(page, 512, 100)
    for told in (
        {"optimizer": "sgd", "lr": 0.01, "steps": 200, "scenario": "finetune"},
        {"optimizer": "sgd", "lr": 0.1, "steps": 900, "momentum": 0.0, "batch_size": 1},
        {"optimizer": "sgd", "lr": 0.1, "steps": 900, "momentum": 0.5, "scheduler": "constant"},
        {
            "optimizer": "adamw",
            "lr": 0.001,
            "steps": 900,
            "batch_size": 4096,
            "scheduler": "linear",
        },
        {"optimizer": "lion", "lr": 1e-4, "steps": 500, "label_smoothing": 0.1},
        {"optimizer": "lion"},
        {"optimizer": "sgd", "lr": 0.01, "scenario": "finetune"},
        {"optimizer": "adamw", "steps": 100},
        {"lr": 0.3},
    ):
        ids = {"batch_size": "batch", "label_smoothing": "smoothing", "scheduler": "schedule"}
        for name in ("optimizer", "scheduler", "scenario"):
            page.select_option(f"#{ids.get(name, name)}", told.get(name, ""))
        for name in ("lr", "steps", "momentum", "batch_size", "label_smoothing"):
            page.fill(f"#{ids.get(name, name)}", str(told.get(name, "")))
        got, expected = shown(page), tstar.explain(512, 100, **told)
        assert got["headline"] == pytest.approx(expected.temperature, rel=1e-12), told
        assert got["notices"] == said(expected), told
        if expected.limit is not None:
            assert page.inner_text("#limit") == f"Your training {expected.limit_text()}."
        assert got["variant"] == expected.variant
        assert run(got["code"]) == pytest.approx(expected.temperature, rel=1e-5)
        page.check("#variant-cn")
        named = tstar.explain(512, 100, variant="cn", **told)
        assert shown(page)["notices"] == said(named), told
        assert run(shown(page)["code"]) == pytest.approx(named.temperature, rel=1e-5)


def test_the_expectation_is_that_of_python(open_page):
    from tstar.formula import similar
    from tstar.formula.training import Training

    page = open_page()
    fill(page, 64, 10)
    assert page.inner_text("#expectation") == ""
    for optimizer, lr, steps, batch, samples, norms, *tuned in (
        ("sgd", 0.1, 400, 64, 2000, "batch-norms"),
        ("sgd", 0.1, 400, 64, 2000, "batch-norms", "yes"),
        ("adamw", 0.003, 400, 32, None, "no norms", "yes"),
        ("sgd", 0.01, 1500, 16, None, "no norms"),
        ("adamw", 0.001, 300, 32, 900, "layer-norms"),
        ("sgd", 0.3, 200, None, None, "frozen"),
        ("adamw", 0.0003, 2000, 64, 2000, "frozen"),  # left without samples and norms
        ("sgd", 0.1, 500_000, 128, 50_000, "batch-norms"),  # like nothing that was measured
    ):
        page.select_option("#optimizer", optimizer)
        page.select_option("#norms", norms)
        for field, value in (("lr", lr), ("steps", steps), ("batch", batch), ("samples", samples)):
            page.fill(f"#{field}", "" if value is None else str(value))
        page.select_option("#tuned", tuned or "")
        told = Training(optimizer, lr, steps, batch_size=batch, tuned=bool(tuned))
        expected = similar.nearest(told, 64, 10, samples, norms, similar.recipe_of(told))
        text = page.inner_text("#expectation")
        got = shown(page)
        assert run(got["code"]) == pytest.approx(got["headline"], rel=1e-5)
        assert ("tstar.temper" in got["code"]) == expected.supports
        if expected.far:
            assert text == ""
            far = f"the nearest is {expected.distance:.1f} standard deviations off"
            assert far in page.inner_text("#notices")
            assert page.inner_text("#headline").startswith("Leave the model as it is")
        else:
            assert text.endswith(str(expected)), (optimizer, norms)


def test_the_norms_of_the_network_count_at_once(open_page):
    page = open_page(
        fragment="#features=64&classes=10&optimizer=sgd&lr=0.1&steps=400&batch=64&samples=2000"
    )
    before = page.inner_text("#expectation")
    page.select_option("#norms", "no norms")
    assert page.inner_text("#expectation") != before
    assert "norms=no+norms" in page.url


def test_the_temperatures_of_a_column_have_the_same_decimals(open_page):
    page = open_page(fragment="#features=512&classes=10&csg=4")
    for table in ("rules", "variants"):
        texts = page.locator(f"#{table} tbody td.n").all_inner_texts()
        numbers = [text for text in texts if text != "–"]
        assert len(numbers) >= 4
        assert all(re.fullmatch(r"\d+\.\d\d", text) for text in numbers), numbers


def test_the_advice_has_its_own_curve(open_page):
    page = open_page()
    fill(page, 512, 100)
    page.select_option("#optimizer", "sgd")
    page.fill("#lr", "0.01")
    page.fill("#steps", "200")
    page.check("#variant-cn")  # the advice stays beside what is picked
    assert "advice" in shown(page)["curves"]
    for M in (64, 300, 2048):
        height = page.evaluate(
            f"heightAt(known, 'advice', readInputs(), readTraining(readInputs()), {M})"
        )
        want = tstar.temperature(M, 100, optimizer="sgd", lr=0.01, steps=200)
        assert height == pytest.approx(want, rel=1e-12)


def test_the_address_holds_the_state(open_page):
    page = open_page()
    fill(page, 384, 77, 2.5)
    page.select_option("#optimizer", "adamw")
    page.fill("#lr", "0.0003")
    page.fill("#steps", "120")
    page.check("#variant-csg")
    first, fragment = shown(page), page.evaluate("location.hash")
    # A page of its own for each address: a change of the fragment alone may still be under way when goto returns.
    other = open_page(fragment=fragment)
    assert shown(other) == first
    other.reload()
    assert shown(other) == first
    other = open_page(fragment="#features=64&classes=10&optimizer=<b>&variant=nonsense")
    assert shown(other)["headline"] == pytest.approx(tstar.temperature(64, 10))
    assert other.input_value("#optimizer") == ""
    other.evaluate("location.hash = '#features=512'")
    other.wait_for_function("document.getElementById('features').value === '512'")
    assert shown(other)["headline"] == pytest.approx(tstar.temperature(512))


def test_an_address_is_not_written_over_before_its_event_comes(open_page):
    page = open_page()
    fill(page, 384, 77)
    # Another change of the page (here of its width) comes between the address and its event.
    got = page.evaluate("""() => {
      location.hash = "#features=512";
      update();
      return [document.getElementById("features").value, location.hash];
    }""")
    assert got == ["512", "#features=512"]


def test_fine_tuning_and_a_base_width(open_page):
    page = open_page()
    page.select_option("#scenario", "finetune")
    for M, K, csg, base in ((2048, 8, 3.85, 64), (768, 101, None, 768), (768, 37, 500.0, 100_000)):
        fill(page, M, K, csg, base)
        check(page, M, K, csg, base, "finetune")


def test_the_papers_isic_case_by_picking_from_the_lists(open_page):
    page = open_page()
    page.select_option("#model", "torchvision/resnet50")
    page.select_option("#task", "ISIC")
    page.select_option("#scenario", "finetune")
    assert "24.89" in page.inner_text("#headline")
    check(page, 2048, 8, 3.85, scenario="finetune")


@pytest.mark.parametrize(
    ("field", "text", "message"),
    [
        ("features", "", "Type M, or pick a model."),
        ("features", "0", "M must be a whole number of at least 1, got 0."),
        ("features", "-3", "M must be a whole number of at least 1, got -3."),
        ("features", "64.5", "M must be a whole number of at least 1, got 64.5."),
        ("features", "wide", "M must be a whole number of at least 1, got wide."),
        ("features", "0x40", "M must be a whole number of at least 1, got 0x40."),
        ("features", "1e999", "M must be a whole number of at least 1, got 1e999."),
        ("features", "<b>9", "M must be a whole number of at least 1, got <b>9."),
        ("classes", "1", "K must be a whole number of at least 2, got 1."),
        ("classes", "ten", "K must be a whole number of at least 2, got ten."),
        ("csg", "-1", "csg must be a number of at least 0, got -1."),
        ("csg", "3,85", "csg must be a number of at least 0, got 3,85."),
        ("csg", "NaN", "csg must be a number of at least 0, got NaN."),
        ("base", "0", "The base width must be a whole number of at least 1, got 0."),
    ],
)
def test_bad_input_is_named_where_it_stands(open_page, field, text, message):
    page = open_page(fragment="#optimizer=sgd&lr=0.1&steps=900&batch=64")
    fill(page, 64, 10, 2.0, 32)
    assert "most similar trainings" in page.inner_text("#expectation")
    page.fill(f"#{field}", text)
    got = shown(page)
    assert got["errors"] == dict.fromkeys(got["errors"], "") | {field: message}
    assert page.get_attribute(f"#{field}", "aria-invalid") == "true"
    assert got["headline"] is None  # no answer to what cannot be read
    assert got["code"] == got["reason"] == page.inner_text("#expectation") == ""
    assert got["rules"] == got["variants"] == {}
    assert got["notices"] == got["flags"] == got["curves"] == []
    for training in ("lr", "steps", "batch"):
        page.fill(f"#{training}", "")
    page.select_option("#optimizer", "")
    fill(page, 64, 10, 2.0, 32)
    check(page, 64, 10, 2.0, 32)


def test_a_csg_of_zero_leaves_the_class_count(open_page):
    page = open_page()
    fill(page, 64, 10, 0)
    got = shown(page)
    assert got["variants"]["csgcn"] is None
    assert got["headline"] == pytest.approx(tstar.temperature(64, 10))
    assert got["reason"] == choose_variant(0.0)[1]
    assert "csg > 0" in page.inner_text("#variants")


def test_typing_another_width_lets_go_of_the_model(open_page):
    page = open_page()
    page.select_option("#model", "timm/vit_tiny_patch16_224")
    assert page.input_value("#features") == "192"
    page.fill("#features", "193")
    assert page.input_value("#model") == ""
    page.select_option("#task", "CUB")
    page.fill("#csg", "75")
    assert page.input_value("#task") == ""


def test_every_listed_model_and_data_set_fills_in_its_numbers(open_page):
    page = open_page()
    known = facts()
    for group in known["models"]:
        for model in group["models"]:
            page.select_option("#model", f"{group['library']}/{model['name']}")
            assert page.input_value("#features") == str(model["features"])
    for task in known["tasks"]:
        page.select_option("#task", task["key"])
        assert float(page.input_value("#csg")) == task["csg"]
        assert page.input_value("#classes") == str(task["classes"])
        assert page.input_value("#task") == task["key"]


def test_it_works_from_the_keyboard_alone(open_page):
    page = open_page()
    page.keyboard.press("Tab")  # to the list of models
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "features"
    page.keyboard.press("Control+a")
    page.keyboard.type("512")
    page.keyboard.press("Enter")  # must not reload the page
    for _ in range(2):
        page.keyboard.press("Tab")
    page.keyboard.press("Control+a")
    page.keyboard.type("10")
    check(page, 512, 10, None)
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.name") == "variant":
            break
    assert page.evaluate("document.activeElement.value") == "cn"
    page.keyboard.press("ArrowUp")  # csg is not given, so the next one up is base
    got = shown(page)
    assert got["variant"] == "base"
    assert got["headline"] == pytest.approx(tstar.temperature(512))
    assert page.evaluate("document.activeElement.value") == "base"
    assert got["reason"] == "The variant you asked for."


def test_copy_puts_the_two_lines_on_the_clipboard(open_page):
    page = open_page(permissions=["clipboard-read", "clipboard-write"])
    page.click("#copy")
    page.wait_for_function("document.getElementById('copy').textContent === 'Copied'")
    assert page.evaluate("navigator.clipboard.readText()") == page.inner_text("#code")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 390, 820, 1400])
def test_nothing_sticks_out_and_text_has_contrast(open_page, scheme, width, tmp_path):
    page = open_page(color_scheme=scheme, viewport={"width": width, "height": 800})
    looked_at(page, f"calculator-{scheme}-{width}", tmp_path)
    all_can_be_read(page, width)
    fill(page, 4_000_000, 1000, 1e-5)
    page.select_option("#optimizer", "lion")
    page.select_option("#schedule", "linear")
    all_can_be_read(page, width)
    pairs = page.evaluate(
        """() => [...document.querySelectorAll("h1, p, td, th, li, label, code, svg text, button")].filter(
             (node) => node.textContent.trim()).map((node) => {
          let at = node, behind = "rgba(0, 0, 0, 0)";
          while (at && behind.endsWith(", 0)")) { behind = getComputedStyle(at).backgroundColor; at = at.parentElement; }
          const own = getComputedStyle(node);
          return [node.tagName === "text" ? own.fill : own.color, behind, node.textContent.slice(0, 40)];
        })"""
    )
    assert len(pairs) > 40
    for ink, paper, text in pairs:
        assert contrast(ink, paper) >= 4.5, (text, ink, paper)


def contrast(a: str, b: str) -> float:
    """The contrast of two CSS colors, as WCAG 2 defines it."""
    light = sorted(map(luminance, (a, b)))
    return (light[1] + 0.05) / (light[0] + 0.05)


def luminance(color: str) -> float:
    parts = [float(p) / 255 for p in color[color.index("(") + 1 : -1].split(",")[:3]]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return math.fsum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_the_grid_would_notice_a_changed_coefficient(open_page):
    """The comparison can fail: a page whose δ is off by a thousandth does not pass it."""
    page = open_page()
    page.evaluate("known.sets.cn.delta += 0.001")
    fill(page, 64, 10, None)
    with pytest.raises(AssertionError):
        check(page, 64, 10, None)
    assert json.dumps(facts())  # the facts themselves are plain JSON
