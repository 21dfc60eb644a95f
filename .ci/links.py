"""Check that every link of README, docs and results leads somewhere.

`mkdocs build --strict` checks the links within docs. Addresses of the web are asked if there is a network; one that
answers "forbidden" or "too many requests" is there, and turns robots away.
"""

import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

ROOT = Path(__file__).resolve().parents[1]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("results/**/*.md")]
LINK = re.compile(r"\]\(<?([^)\s>]+)>?(?: \"[^\"]*\")?\)|(?:src|href)=\"([^\"]+)\"")
HERE_THOUGH_CLOSED = (401, 403, 405, 429)


def links(page: Path) -> list[str]:
    text = re.sub(r"^(```|~~~).*?^\1", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    return ["".join(found) for found in LINK.findall(re.sub(r"`[^`\n]*`", "", text))]


def missing(page: Path, link: str) -> bool:
    """Whether a link within the repository leads nowhere, its anchor included."""
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    if not target.exists():
        return True
    if not anchor or target.suffix != ".md":
        return False
    headings = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.MULTILINE)
    return anchor not in {slug(heading) for heading in headings}


def slug(heading: str) -> str:
    """The anchor of a heading, as GitHub and mkdocs make it.

    >>> slug("Isn't `T` a no-op?")
    'isnt-t-a-no-op'
    """
    plain = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", heading).lower()
    return re.sub(r"[\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip())


def dead(address: str) -> str | None:
    """Why an address of the web leads nowhere; None if it leads somewhere. One that is late is asked again."""
    why = ""
    for patience in (20, 90):
        try:
            with urlopen(Request(address, headers={"User-Agent": "Mozilla/5.0"}), timeout=patience):
                return None
        except HTTPError as error:
            return None if error.code in HERE_THOUGH_CLOSED else f"answers {error.code}"
        except (URLError, OSError) as error:
            why = str(error)
    return why


def main() -> None:
    found = [(page, link) for page in PAGES for link in links(page)]
    web = sorted({link for _, link in found if re.match(r"https?://", link)})
    own = [(p, k) for p, k in found if ROOT / "docs" not in p.parents]  # of docs mkdocs checks them
    inside = [(p, k) for p, k in own if not re.match(r"\w+:", k)]
    problems = [f"{p.relative_to(ROOT)}: {k}" for p, k in inside if missing(p, k)]
    online = dead("https://www.python.org/") is None
    if online:
        with ThreadPoolExecutor(8) as pool:
            problems += [
                f"{a}: {why}" for a, why in zip(web, pool.map(dead, web), strict=True) if why
            ]
    asked = "asked" if online else "no network: not asked"
    print(f"{len(inside)} links within, {len(web)} addresses of the web ({asked})")
    sys.exit("\n".join(["These lead nowhere:", *problems]) if problems else 0)


if __name__ == "__main__":
    main()
