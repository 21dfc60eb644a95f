"""Pages in the system's chromium, headless: what they complain of, and which of their texts cannot be read.

Nothing is downloaded; without playwright or a browser the tests skip.
"""

import os
import shutil
from pathlib import Path

import pytest

SIZES = [(width, scheme) for width in (1400, 390) for scheme in ("light", "dark")]
PATIENCE = 300_000  # milliseconds: a busy machine answers late
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]

# Texts that are cut: by the window, by a box that hides what sticks out, by their picture, or by their field. A box that
# scrolls shows all of its text; what a page keeps aside (a closed drawer, words for screen readers) is not looked at.
CLIPPED = """() => {
  const found = [], wide = document.documentElement.clientWidth;
  const say = (why, node) => found.push(`${why}: ${(node.textContent || node.value || node.placeholder).trim().slice(0, 60)}`);
  const inside = (box, r) => r.left >= box.left - 1 && r.right <= box.right + 1;
  for (const node of document.querySelectorAll("body *")) {
    if (node.closest("svg, script, style, select, noscript, math")) continue;
    if (![...node.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())) continue;
    if (!node.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const r of range.getClientRects()) {
      if (r.width < 2 || r.height < 2 || r.right <= 0) continue;
      let at = node, scrolls = false, hidden = false;
      for (; at && at !== document.body && !scrolls && !hidden; at = at.parentElement) {
        const box = at.getBoundingClientRect(), flow = getComputedStyle(at).overflowX;
        if (box.width <= 1) hidden = true;
        else if (flow === "auto" || flow === "scroll") scrolls = true;
        else if ((flow === "hidden" || flow === "clip") && !inside(box, r)) { say("cut", node); hidden = true; }
      }
      if (!scrolls && !hidden && !inside({ left: 0, right: wide }, r)) say("outside", node);
    }
  }
  for (const text of document.querySelectorAll("svg text")) {
    const outer = text.ownerSVGElement.getBoundingClientRect(), box = text.getBoundingClientRect();
    if (!box.width || !outer.width) continue;
    if (!inside(outer, box) || box.top < outer.top - 1 || box.bottom > outer.bottom + 1) say("picture", text);
  }
  const pen = document.createElement("canvas").getContext("2d");
  for (const field of document.querySelectorAll("input:not([type=radio]):not([type=checkbox]), select")) {
    if (!field.clientWidth || !field.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    const style = getComputedStyle(field), list = field.tagName === "SELECT";
    pen.font = style.font;
    const text = list ? field.selectedOptions[0]?.textContent ?? "" : field.value || field.placeholder;
    const room = field.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight) - (list ? 16 : 0);
    if (pen.measureText(text).width > room) say("field", { textContent: text });
  }
  return [...new Set(found)];
}"""


def running():
    """The browser, while a fixture lasts."""
    sync = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )
    if path is None:
        pytest.skip("no chromium on this machine: apt-get install chromium")
    with sync.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS, timeout=PATIENCE)
        yield browser
        browser.close()


def opened(browser, path, problems, fragment="", **options):
    """A page of a file, at its ``fragment``; errors, dialogs and requests to elsewhere are added to ``problems``."""
    page = browser.new_context(**options).new_page()
    page.set_default_timeout(PATIENCE)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda m: problems.append(m.text) if m.type == "error" else None)
    page.on("dialog", lambda dialog: problems.append("a script of a name ran"))
    page.on(
        "request",
        lambda r: None if r.url.startswith(("file:", "data:", "blob:")) else problems.append(r.url),
    )
    page.goto(path.as_uri() + fragment)
    return page


def looked_at(page, name, folder):
    """A picture of the whole page, to be looked at by a person: TSTAR_SCREENSHOTS names a folder to keep it in."""
    target = Path(os.environ.get("TSTAR_SCREENSHOTS", folder)) / f"{name}.png"
    assert len(page.screenshot(path=target, full_page=True)) > 20_000


def all_can_be_read(page, width):
    """No page scrolls sideways, and no text of it is cut."""
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    cut = page.evaluate(CLIPPED)
    assert not cut, cut
