"""The page in a real browser: no error, no request, sorting, phone width, dark."""

import pytest

from tests.browsing import SIZES, all_can_be_read, looked_at, opened
from tstar.lab.report.write import write_report

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def page_file(store, tmp_path_factory):
    """A whole report: every figure and table that a store of runs gives, but no fits, which take long."""
    folder = tmp_path_factory.mktemp("browser")
    return write_report(store, folder, fits=False).page


def test_tables_are_sorted_by_number_with_gaps_last(browser, page_file):
    page = opened(browser, page_file, [])
    header = page.locator("#table-conditions thead button", has_text="regret")
    index = page.locator("#table-conditions thead th").all_inner_texts().index("regret") + 1
    for sign in (1, -1):
        header.click()
        texts = page.locator(f"#table-conditions tbody td:nth-child({index})").all_inner_texts()
        numbers = [float(text) for text in texts if text != "–"]
        assert numbers == sorted(numbers, key=lambda x: sign * x)
        assert texts[len(numbers) :] == ["–"] * (len(texts) - len(numbers))
    page.context.close()


# The least height of a letter of a picture on the screen, and how many texts there are.
LETTERS = """() => {
  const sizes = [...document.querySelectorAll('.picture svg text')].filter((t) => t.getBoundingClientRect().width).map((t) => {
    const svg = t.ownerSVGElement;
    return parseFloat(getComputedStyle(t).fontSize) * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
  });
  return {smallest: Math.min(...sizes), texts: sizes.length};
}"""


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_nothing_overflows_and_no_text_is_clipped(browser, page_file, width, scheme, tmp_path):
    problems = []
    page = opened(
        browser, page_file, problems, viewport={"width": width, "height": 900}, color_scheme=scheme
    )
    looked_at(page, f"report-{scheme}-{width}", tmp_path)
    all_can_be_read(page, width)
    ground, text = (
        sum(map(int, page.evaluate(f"getComputedStyle(document.body).{name}")[4:-1].split(",")))
        for name in ("backgroundColor", "color")
    )
    assert (ground > text) == (scheme == "light")
    found = page.evaluate(LETTERS)
    assert found["texts"] > 300
    assert found["smallest"] > 6.5
    assert page.evaluate("getComputedStyle(document.querySelector('.toc')).display") == (
        "block" if width == 1400 else "none"
    )
    assert problems == []
    page.context.close()
