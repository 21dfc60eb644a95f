"""What mkdocs adds to the pages: calculator, tutorials, and results/ with tables and figures."""

from __future__ import annotations

import html as markup
import importlib.util
import os
import re
import shlex
from functools import cache
from pathlib import Path

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results"
# Runs of the atlas that make figures of a size that can be read.
RUNS = "src/tstar/lab/evidence/atlas.parquet"
_SETTING = "lr == 0.1 and steps == 800 and dataset in ({})"
_IMAGES = _SETTING.format('"caltech101_32", "cifar10_32", "fashion_5k", "gtsrb_32"')
WHERE = {
    "accuracy": _SETTING.format('"cifar10_32", "gtsrb_32"'),
    "heatmaps-bn": _SETTING.format('"caltech101_32", "cifar10_32"'),  # data set by model
    "recommended": "lr == 0.1 and steps == 800",
}


def on_files(files: Files, config) -> Files:  # type: ignore[no-untyped-def]
    from tstar.lab.calculator import page

    notebooks = _notebooks()
    files.append(File.generated(config, "calculator/page.html", content=page()))
    for path in sorted((ROOT / "docs" / "tutorials").glob("*.ipynb")):
        text = notebooks.markdown(notebooks.read(path), path.name)
        files.append(File.generated(config, f"tutorials/{path.stem}.md", content=text))
    for name, (_, _, picture) in report_figures().items():
        files.append(File.generated(config, f"gallery/report/{name}.svg", content=picture))
    for path in sorted(RESULTS.rglob("*.md")):
        text = linked(path.read_text(encoding="utf-8"), path.parent)
        name = path.relative_to(ROOT).as_posix()
        # The search shows the pages of docs first.
        files.append(
            File.generated(config, name, content=f"---\nsearch: {{boost: 0.2}}\n---\n{text}")
        )
    for picture in pictures():
        files.append(File.generated(config, _address(picture), content=picture.read_bytes()))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Put the tables, figures and sections where the pages name them."""
    for name, table in (("coverage", coverage), ("report", report)):
        mark = f"<!-- {name} -->"  # which a reader of the file does not see
        if mark in markdown:
            markdown = markdown.replace(mark, table())
    markdown = re.sub(
        r"\[([^\]]+)\]\(\.\./(results/[^)\s]+)\)",
        lambda m: _link("", m[1], m[2], ROOT),
        markdown,
    )
    if "{{ figures" in markdown:
        markdown = gallery(markdown)
    return markdown


def on_page_content(html: str, **_: object) -> str:
    """Names without Sphinx's roles, unbroken options, and a copy button that takes the commands alone."""
    html = re.sub(r":(?:func|class|meth|mod|attr):(?=<code>)", "", html)
    html = re.sub(r"<code>[^<]*</code>", lambda found: _whole(found[0]), html)
    return re.sub(r'<div class="highlight">.*?</div>', _copied, html, flags=re.DOTALL)


def _copied(block: re.Match[str]) -> str:
    text = markup.unescape(re.sub(r"<[^>]+>", "", block[0]))
    commands = "\n".join(m[1] for m in re.finditer(r"^(?:\$|>>>|\.\.\.) (.*)$", text, re.MULTILINE))
    if not commands:
        return block[0]
    return _whole(block[0]).replace("<div", f'<div data-copy="{markup.escape(commands)}"', 1)


def _whole(code: str) -> str:
    """Options of commands that are not broken at their hyphens."""
    return re.sub(r"(?<![\w\"<-])(--[\w-]+)", r'<span class="word">\1</span>', code)


def _notebooks():  # type: ignore[no-untyped-def]
    spec = importlib.util.spec_from_file_location("notebooks", ROOT / "docs" / "notebooks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def linked(text: str, folder: Path) -> str:
    """Text of a file of the repository, its links as the site has them; else the words alone."""
    return re.sub(r"(!?)\[([^\]]+)\]\(([^)\s]+)\)", lambda m: _link(*m.groups(), folder), text)


def _link(picture: str, words: str, target: str, folder: Path) -> str:
    name, mark, part = target.partition("#")
    if not name or ":" in name:
        return f"{picture}[{words}]({target})"
    path = Path(os.path.normpath(folder / name))
    if path.is_relative_to(ROOT / "docs"):
        address = path.relative_to(ROOT / "docs").as_posix()
    elif path in pictures():
        address = _address(path)
    elif path.is_relative_to(RESULTS) and path.suffix == ".md":
        address = path.relative_to(ROOT).as_posix()
    else:
        return words
    place = os.path.relpath(address, folder.relative_to(ROOT)).replace(os.sep, "/")
    return f"{picture}[{words}]({place}{mark}{part})"


@cache
def pictures() -> list[Path]:
    """Every figure in results/."""
    found = [p for ending in ("png", "svg") for p in RESULTS.rglob(f"*.{ending}")]
    return sorted(found)


def _address(picture: Path) -> str:
    return f"gallery/{picture.relative_to(RESULTS).as_posix()}"


def gallery(markdown: str) -> str:
    """``{{ figures FOLDER }}`` becomes that folder's figures, ``{{ figures }}`` all others."""
    named = re.findall(r"{{ figures (\S+) }}", markdown)
    rest = [p for p in pictures() if p.relative_to(RESULTS).parts[0] not in named]
    folders = dict.fromkeys(p.relative_to(RESULTS).parts[0] for p in rest)
    more = "\n\n".join(
        f"## {name}\n\nHow they are made: `results/{name}/README.md`.\n\n{{{{ figures {name} }}}}"
        for name in folders
    )
    markdown = markdown.replace("{{ figures }}", more)
    return re.sub(r"{{ figures (\S+) }}", lambda m: _figures(m[1]), markdown)


def _figures(folder: str) -> str:
    found = [p for p in pictures() if p.relative_to(RESULTS).parts[0] == folder]
    shown = [(p.stem.replace("_", " ").replace("-", " "), _address(p)) for p in found]
    return "\n\n".join(
        f"**{name}**\n\n![{name}]({address}){{ loading=lazy }}" for name, address in shown
    )


@cache
def report_figures() -> dict[str, tuple[str, str, str]]:
    """Every figure of ``tstar figure``: how to read it, the command, its first picture as SVG."""
    from tstar.lab.report import FIGURES, load
    from tstar.lab.report.style import svg_text

    found = {}
    for name, plot in FIGURES.items():
        where = WHERE.get(name, _IMAGES)
        frame = plot.frame(load(ROOT / RUNS, where=where) if plot.needs_runs else None)
        runs = [RUNS, "--where", where] if plot.needs_runs else []
        command = shlex.join(["tstar", "figure", name, *runs, "-o", f"{name}.svg"])
        number = f" ({plot.paper} of the paper)" if plot.paper else ""
        picture = svg_text(plot.draw(plot.parts(frame)[0]))
        found[name] = (f"### {plot.title}{number}\n\n{plot.reading}", command, picture)
    return found


def report() -> str:
    return "\n\n".join(
        f"{reading}\n\n```console\n$ {command}\n```\n\n"
        f"![{name}](gallery/report/{name}.svg){{ loading=lazy }}"
        for name, (reading, command, _) in report_figures().items()
    )


def coverage() -> str:
    """The first table of the coverage: one line a library."""
    text = (RESULTS / "coverage" / "README.md").read_text(encoding="utf-8").partition("\n## ")[0]
    return "\n".join(line for line in text.splitlines() if line.startswith("|"))
