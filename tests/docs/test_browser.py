"""Every page of the site in a real browser: nothing overflows, no text is cut, no script complains."""

import pytest

from tests.browsing import SIZES, all_can_be_read, looked_at, opened

# Pages whose tables hold sentences: they are read without scrolling.
SENTENCES = {"api", "deviations", "methods", "reparametrization", "report", "study"}
WIDE = "[...document.querySelectorAll('.md-typeset__scrollwrap')].some((n) => n.scrollWidth > n.clientWidth + 1)"

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_every_page_can_be_read(browser, site, width, scheme, tmp_path):
    pages = sorted(path for path in site.rglob("*.html") if path.name != "404.html")
    assert len(pages) >= 17
    problems = []
    for path in pages:
        options = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
        page = opened(browser, path, problems, **options)
        name = "-".join(path.relative_to(site).with_suffix("").parts)
        if path.parent in (site, site / "gallery"):
            # Pictures that are loaded when they are seen.
            page.evaluate(
                "document.querySelectorAll('img').forEach((image) => (image.loading = 'eager'))"
            )
            page.wait_for_function(
                "[...document.images].every((image) => image.complete && image.naturalWidth)"
            )
            looked_at(page, f"docs-{name}-{scheme}-{width}", tmp_path)
        try:
            all_can_be_read(page, width)
            assert path.parent.name not in SENTENCES or not page.evaluate(WIDE), "a table scrolls"
        except AssertionError as error:
            problems.append(f"{name}: {error}")
        page.context.close()
    assert problems == []
