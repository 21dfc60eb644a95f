"""The page in a real browser: what is typed is answered, kept in the address, and can be read."""

import re

import pytest

from tests.browsing import SIZES, all_can_be_read, looked_at, opened
from tstar.formula import temperature
from tstar.lab.calculator import write
from tstar.law import law_temperature
from tstar.training import Training

pytestmark = pytest.mark.browser
TRAINING = {"features": "512", "classes": "10", "lr": "0.1", "steps": "7800", "batch": "128"}


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    return write(tmp_path_factory.mktemp("calculator") / "calculator.html")


@pytest.fixture
def open_page(browser, page_file):
    """A function that opens the page; it fails the test on a script error or any request but the file."""
    trouble: list[str] = []
    contexts = []

    def open_it(**settings):
        page = opened(browser, page_file, trouble, **settings)
        contexts.append(page.context)
        return page

    yield open_it
    for context in contexts:
        context.close()
    assert trouble == []


def answer(page) -> float:
    return float(page.locator("#headline").get_attribute("data-temperature"))


def fill(page, **fields):
    for name, text in fields.items():
        page.fill(f"#{name}", text)


def test_a_training_sets_T_and_without_one_the_paper_does(open_page):
    page = open_page()
    fill(page, features="2048", classes="8", csg="3.85")
    assert answer(page) == pytest.approx(temperature(2048, 8, 3.85), rel=1e-12)
    fill(page, **TRAINING)
    page.select_option("#optimizer", "sgd")
    training = Training("sgd", lr=0.1, steps=7800, batch_size=128)
    assert answer(page) == pytest.approx(law_temperature(512, 10, training))
    assert "tstar.recommend" in page.inner_text("#notices")
    page.check("#variant-base")
    assert answer(page) == pytest.approx(temperature(512), rel=1e-12)
    page.fill("#steps", "100")  # back to the training
    assert page.locator("#headline").get_attribute("data-variant") == "law"


def test_the_copied_code_runs(open_page):
    import torch

    page = open_page()
    fill(page, **TRAINING)
    names = {"model": torch.nn.Linear(4, 3)}
    exec(page.inner_text("#code"), names)
    assert float(names["model"].temperature) == pytest.approx(answer(page), rel=1e-5)


def test_the_address_holds_the_case(open_page):
    page = open_page()
    fill(page, **TRAINING)
    page.select_option("#optimizer", "adamw")
    before, address = answer(page), page.evaluate("location.hash")
    assert "optimizer=adamw" in address
    page.reload()
    assert answer(page) == before
    page.evaluate("location.hash = '#features=64'")
    page.locator("#headline", has_text=re.compile("T = ")).wait_for()
    assert page.input_value("#features") == "64"
    assert page.input_value("#classes") == ""


@pytest.mark.parametrize(
    ("field", "text", "message"),
    [
        ("features", "0", "M must be a whole number of at least 1"),
        ("features", "", "Type M"),
        ("classes", "1.5", "K must be a whole number"),
        ("csg", "-1", "csg must be a number of at least 0"),
        ("lr", "0", "a number above 0"),
        ("momentum", "1", "below 1"),
    ],
)
def test_mistakes_stand_beside_their_field(open_page, field, text, message):
    page = open_page()
    page.fill(f"#{field}", text)
    assert message in page.inner_text(f"#{field}-error")
    assert page.locator("#headline").get_attribute("data-temperature") is None


def test_a_model_and_a_task_fill_the_fields(open_page):
    page = open_page()
    page.select_option("#model", "torchvision/alexnet")
    page.select_option("#task", "ISIC")
    values = [page.input_value(f"#{name}") for name in ("features", "classes", "csg")]
    assert values == ["4096", "8", "3.85"]
    page.fill("#classes", "9")
    assert page.input_value("#task") == ""


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_nothing_overflows_and_no_text_is_clipped(open_page, width, scheme, tmp_path):
    page = open_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    fill(page, **TRAINING)
    page.select_option("#optimizer", "sgd")
    looked_at(page, f"calculator-{scheme}-{width}", tmp_path)
    all_can_be_read(page, width)
