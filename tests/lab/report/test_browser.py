"""The page in a real browser: no error, no request, sorting, filtering, curves on a click, phone width."""

import re

import pytest

from tests.browsing import CLIPPED, SIZES, all_can_be_read, looked_at
from tests.browsing import opened as opened_file
from tests.lab.report.planted import GRID, TASKS
from tstar.lab.report.payload import packed
from tstar.lab.report.records import load
from tstar.lab.report.write import write_report

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def page_file(store, tmp_path_factory):
    """A whole report: every figure and table that a store of runs gives, but no fits, which take long."""
    folder = tmp_path_factory.mktemp("browser")
    return write_report(store, folder, fits=False).page


def opened(browser, path, problems, **options):
    page = opened_file(browser, path, problems, **options)
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
        100 * frame["test_accuracy"].min(), abs=0.006
    )
    page.locator("#grid thead button", has_text="test [%]").click()
    assert float(column("test [%]")[0]) == pytest.approx(
        100 * frame["test_accuracy"].max(), abs=0.006
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
    text = text[:start] + packed(runs) + text[text.index("</script>", start) :]
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


# The least height of a letter of a picture on the screen, and how many texts there are.
LETTERS = """() => {
  const sizes = [...document.querySelectorAll('.panels svg text')].filter((t) => t.getBoundingClientRect().width).map((t) => {
    const svg = t.ownerSVGElement;
    return parseFloat(getComputedStyle(t).fontSize) * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
  });
  return {smallest: Math.min(...sizes), texts: sizes.length};
}"""
# How many panels stand side by side, of how many, in each picture.
COLUMNS = """() => [...document.querySelectorAll('.panels')].map((panels) => [
  new Set([...panels.children].map((svg) => Math.round(svg.getBoundingClientRect().left))).size, panels.children.length])"""


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
    columns = page.evaluate(COLUMNS)
    assert len(columns) >= 6
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
    (picture,) = page.evaluate(CLIPPED)
    assert picture.startswith("picture: a long name")
    page.evaluate("document.querySelector('.panels svg text').textContent = ''")
    for style, why in (
        ("white-space: nowrap", "outside"),
        ("width: 3em; overflow: hidden; white-space: nowrap", "cut"),
    ):
        page.evaluate(f"document.querySelector('h1').style = '{style}'")
        page.evaluate("document.querySelector('h1').textContent = 'a long name '.repeat(40)")
        assert [text.partition(":")[0] for text in page.evaluate(CLIPPED)] == [why]
    page.context.close()


def test_find_takes_the_names_of_columns_as_they_are_seen(browser, page_file):
    page = opened(browser, page_file, [])
    for words in ("data set:hard", "dataset:hard"):
        page.fill("#find", words)
        page.wait_for_timeout(300)
        assert page.inner_text("#found") == "90 of 270", words
    page.context.close()


def test_numbers_of_runs_are_written_as_people_write_them(browser, make_store):
    def change(rows):
        return [(spec, result | {"samples": 18_000 + spec.seed}) for spec, result in rows]

    few = {"tasks": TASKS[:1], "widths": (64,), "norms": ("batch",), "grid": GRID[:3]}
    store = make_store(lr=(0.1, 3e-5), change=change, **few)
    made = write_report(store, store.parent / "numbers", fits=False).page
    page = opened(browser, made, [])
    labels = [t.strip("▴▾ \n") for t in page.locator("#grid thead th").all_inner_texts()]

    def seen(label):
        place = labels.index(label) + 1
        cells = page.locator(f"#grid tbody tr[data-run] td:nth-child({place})")
        return set(cells.all_inner_texts())

    assert seen("lr") == {"0.1", "0.00003"}
    assert seen("samples") == {"18,000", "18,001", "18,002"}
    assert all(re.fullmatch(r"\d+\.\d\d", text) for text in seen("test [%]"))
    page.fill("#find", "samples:18,001")
    page.locator("#found", has_text=" of ").wait_for()
    assert seen("samples") == {"18,001"}
    page.context.close()
