"""Every command that a page names is run, and gives the numbers that the page shows."""

import html
import json
import re
import shlex

import pytest
from typer.testing import CliRunner

from tstar.cli.app import _load_commands, app
from tstar.report.catalogue import FIGURES
from tstar.report.plain import plain_data
from tstar.report.records import load
from tstar.report.write import write_report

_load_commands()
TASKS = (("easy", 1.5, 10), ("middle", 6.7, 10))


@pytest.fixture(scope="module")
def made(tmp_path_factory, plant):
    """A page that judges the paper's cn: without the option its commands would give other numbers."""
    folder = tmp_path_factory.mktemp("captions")
    store = plant(folder / "my runs.db", tasks=TASKS, widths=(64,), seeds=2)
    return folder, write_report(store, folder / "out", variant="cn", fits=False)


def commands(page):
    text = page.read_text(encoding="utf-8")
    found = [re.sub("<.*?>", "", code) for code in re.findall(r"<code>(.*?)</code>", text)]
    return [html.unescape(command) for command in found if command.startswith("tstar ")]


def run(words, folder, monkeypatch):
    monkeypatch.chdir(folder)
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def test_every_figure_s_command_gives_its_data(made, monkeypatch):
    folder, written = made
    records = load(folder / "my runs.db", variant="cn")
    found = [shlex.split(c) for c in commands(written.page) if c.startswith("tstar figure")]
    assert len(found) == len(written.figures) >= 6
    for _, _, name, *rest in found:
        assert rest[-2] == "-o"
        printed = run(["figure", name, *rest[:-2], "--json"], folder, monkeypatch)
        shown = json.loads(json.dumps(plain_data(FIGURES[name].data(records))))
        assert json.loads(printed) == shown, name


def test_without_the_option_the_numbers_are_others(made, monkeypatch):
    folder, _ = made
    plain = run(["figure", "recommended", "my runs.db", "--json"], folder, monkeypatch)
    records = load(folder / "my runs.db", variant="cn")
    shown = json.loads(json.dumps(plain_data(FIGURES["recommended"].data(records))))
    assert json.loads(plain) != shown


def test_every_table_s_command_gives_its_cells(made, monkeypatch):
    folder, written = made
    cells_are_printed(folder, written.tables, monkeypatch, {"datasets"})


@pytest.mark.slow
def test_every_fit_s_command_gives_its_cells(tmp_path, plant, monkeypatch):
    store = plant(tmp_path / "my runs.db", widths=(64, 256), seeds=2, noise=0.02)
    written = write_report(store, tmp_path / "out", pictures=1)
    wanted = {"environments", "corrections", "coefficients"}
    cells_are_printed(tmp_path, written.tables, monkeypatch, wanted)


def cells_are_printed(folder, every, monkeypatch, wanted):
    tables = [t for t in every if t.command.startswith("tstar paper")]
    assert wanted <= {table.name for table in tables}
    for table in tables:
        printed = run(shlex.split(table.command)[1:], folder, monkeypatch)
        for block in table.blocks:
            for row in block.rows:
                for cell in row[table.labels :]:
                    assert cell.text in printed, (table.name, row[0].text, cell.text)


def test_the_page_s_command_gives_its_headline(made, monkeypatch):
    folder, written = made
    (command,) = {c for c in commands(written.page) if c.startswith("tstar report")}
    about = json.loads((folder / "out" / "report.json").read_text(encoding="utf-8"))
    origin = about["origin"]["command"]
    assert shlex.split(origin)[:-1] == shlex.split(command)
    words = [*shlex.split(origin)[1:], "-o", "again", "--pictures", "1", "--json"]
    again = json.loads(run(words, folder, monkeypatch))
    assert again["headline"] == json.loads(json.dumps(written.to_dict()))["headline"]
    assert again["tables"] == written.to_dict()["tables"]
    files = sorted((folder / "out" / "tables").glob("*.csv"))
    assert len(files) == len(written.tables) >= 3
    for file in files:
        assert (folder / "again" / "tables" / file.name).read_bytes() == file.read_bytes()
