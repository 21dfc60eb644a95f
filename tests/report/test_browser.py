"""The page in a real browser: no error, no request, sorting, filtering, curves on a click, phone width."""

import json
import os
import shutil
from pathlib import Path

import pytest

from tstar.report.page.payload import packed
from tstar.report.records import load
from tstar.report.write import write_report

pytestmark = pytest.mark.browser
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)


@pytest.fixture(scope="module")
def browser():
    sync = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine: apt-get install chromium")
    with sync.sync_playwright() as playwright:
        running = playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
        )
        yield running
        running.close()


@pytest.fixture(scope="module")
def page_file(store, tmp_path_factory):
    """A whole report: every figure and table that a store of runs gives, but no fits, which take long."""
    folder = tmp_path_factory.mktemp("browser")
    return write_report(store, folder, title="<script>alert(1)</script>", fits=False).page


def opened(browser, path, problems, **options):
    page = browser.new_context(**options).new_page()
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda m: problems.append(m.text) if m.type == "error" else None)
    page.on("dialog", lambda dialog: problems.append("a script of a name ran"))
    page.on(
        "request",
        lambda r: None if r.url.startswith(("file:", "data:", "blob:")) else problems.append(r.url),
    )
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready=yes]", timeout=60_000)
    return page


def test_runs_are_sorted_filtered_and_shown(browser, page_file, store):
    problems = []
    page = opened(browser, page_file, problems)
    frame = load(store).frame

    def column(label):
        labels = page.locator("#grid thead th").all_inner_texts()
        index = [text.strip("▴▾ \n") for text in labels].index(label)
        return page.locator(f"#grid tbody tr[data-run] td:nth-child({index + 1})").all_inner_texts()

    # The first run follows the header without a gap, and the table is as high as its runs.
    box = page.locator("#grid thead").bounding_box()
    first = page.locator("#grid tbody tr[data-run]").first.bounding_box()
    assert first["y"] == pytest.approx(box["y"] + box["height"], abs=2)
    height = page.evaluate("document.querySelector('#grid tbody').getBoundingClientRect().height")
    assert height == pytest.approx(30 * len(frame), abs=2)
    page.locator("#grid thead button", has_text="test [%]").click()
    assert float(column("test [%]")[0]) == pytest.approx(
        100 * frame["test_accuracy"].min(), abs=1e-3
    )
    page.locator("#grid thead button", has_text="test [%]").click()
    assert float(column("test [%]")[0]) == pytest.approx(
        100 * frame["test_accuracy"].max(), abs=1e-3
    )
    page.fill("#find", "data:nothing")
    page.locator("#found", has_text="0 of").wait_for()
    page.fill("#find", "hard t:4")
    want = int(((frame["dataset"] == "hard") & (frame["temperature"] == 4)).sum())
    page.locator("#found", has_text=f"{want} of {len(frame)}").wait_for()
    assert set(column("data set")) == {"hard"}
    page.locator("#grid tbody tr[data-run]").first.click()
    page.wait_for_selector("#detail svg polyline")
    assert page.locator("#detail svg").count() == 2
    assert problems == []
    page.context.close()


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


def test_only_the_rows_in_sight_exist_however_many_there_are(browser, page_file, tmp_path):
    many = 40_000
    runs = {
        "count": many,
        "columns": [
            {
                "name": "key",
                "label": "run",
                "levels": ["a", "b"],
                "codes": [i % 2 for i in range(many)],
            },
            {
                "name": "test_accuracy",
                "label": "test [%]",
                "values": [i % 997 for i in range(many)],
            },
        ],
        "constant": {},
    }
    text = page_file.read_text(encoding="utf-8")
    start = text.index('id="runs-data">') + len('id="runs-data">')
    text = text[:start] + packed(json.dumps(runs).encode()) + text[text.index("</script>", start) :]
    path = tmp_path / "many.html"
    path.write_text(text, encoding="utf-8")
    problems = []
    page = opened(browser, path, problems)
    page.locator("#grid thead button", has_text="test [%]").click()
    page.evaluate("document.getElementById('grid').scrollTop = 1e9")
    page.locator("#grid tbody td", has_text="996").first.wait_for()
    assert page.locator("#grid tbody tr").count() < 80
    assert problems == []
    page.context.close()


# Texts of a picture that stick out of it, and the least height of a letter on the screen.
PICTURES = """() => {
  const clipped = [], sizes = [];
  for (const svg of document.querySelectorAll('.picture svg')) {
    const outer = svg.getBoundingClientRect(), scale = outer.width / svg.viewBox.baseVal.width;
    for (const text of svg.querySelectorAll('text')) {
      const box = text.getBoundingClientRect();
      if (!box.width) continue;
      sizes.push(scale * parseFloat(getComputedStyle(text).fontSize));
      if (box.left < outer.left - 1 || box.right > outer.right + 1 || box.top < outer.top - 1 || box.bottom > outer.bottom + 1)
        clipped.push(text.textContent);
    }
  }
  return {clipped, smallest: Math.min(...sizes), texts: sizes.length};
}"""
# How many panels stand side by side, of how many, in each picture.
COLUMNS = """() => [...document.querySelectorAll('.panels')].map((panels) => [
  new Set([...panels.children].map((svg) => Math.round(svg.getBoundingClientRect().left))).size, panels.children.length])"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 390])
def test_nothing_overflows_and_no_text_is_clipped(browser, page_file, width, scheme, tmp_path):
    problems = []
    page = opened(
        browser, page_file, problems, viewport={"width": width, "height": 900}, color_scheme=scheme
    )
    # To be looked at by a person: TSTAR_SCREENSHOTS names a folder to keep them in.
    folder = Path(os.environ.get("TSTAR_SCREENSHOTS", tmp_path))
    picture = page.screenshot(path=folder / f"report-{scheme}-{width}.png", full_page=True)
    assert len(picture) > 20_000
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    ground, text = (
        sum(map(int, page.evaluate(f"getComputedStyle(document.body).{name}")[4:-1].split(",")))
        for name in ("backgroundColor", "color")
    )
    assert (ground > text) == (scheme == "light")
    found = page.evaluate(PICTURES)
    assert found["texts"] > 300
    assert found["clipped"] == []
    assert found["smallest"] > 8
    columns = page.evaluate(COLUMNS)
    assert len(columns) >= 8
    if width == 390:  # one below the other
        assert {across for across, _ in columns} == {1}
    else:
        assert all(across > 1 for across, count in columns if count > 1)
    assert page.evaluate("getComputedStyle(document.querySelector('.toc')).display") == (
        "block" if width == 1400 else "none"
    )
    assert problems == []
    page.context.close()


def test_text_that_sticks_out_is_seen(browser, page_file):
    """The check of clipped text can fail."""
    page = opened(browser, page_file, [])
    page.evaluate(
        "document.querySelector('.panels svg text').textContent = 'a long name '.repeat(40)"
    )
    assert page.evaluate(PICTURES)["clipped"] != []
    page.context.close()


def test_find_takes_the_names_of_columns_as_they_are_seen(browser, page_file):
    page = opened(browser, page_file, [])
    for name, words in (("data set", "data set:hard"), ("dataset", "dataset:hard")):
        page.fill("#find", words)
        page.wait_for_timeout(300)
        seen = page.inner_text("#found")
        assert seen == "90 of 270", name
