"""How the program as a whole behaves: help, usage errors, failures, completion."""

import os
import subprocess
import sys

import pytest
import typer

from tstar.lab.cli import app as program

PIPED = """
import sys
from tstar.lab.cli.app import app, main

@app.command()
def talk():
    for _ in range(100_000):
        print("a line")

sys.argv = ["tstar", "talk"]
main()
"""


def tstar(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tstar", *words],
        capture_output=True,
        encoding="utf-8",
        check=False,
        env={**os.environ, "COLUMNS": "100", **env},
    )


def leaves(command, name="tstar"):
    """Every command that does something, with the words that call it."""
    for key, child in getattr(command, "commands", {}).items():
        if hasattr(child, "commands"):
            yield from leaves(child, f"{name} {key}")
        else:
            yield f"{name} {key}", child


@pytest.fixture(scope="module")
def commands():
    program._load_commands()
    return dict(leaves(typer.main.get_command(program.app)))


def test_every_command_has_one_line_of_help_and_an_example_that_calls_it(commands):
    assert {"tstar temperature", "tstar calculator", "tstar sweep", "tstar runs ls"} <= set(
        commands
    )
    for name, command in commands.items():
        first, *rest = (command.help or "").strip().splitlines()
        assert first.endswith((".", "?")), name
        examples = [line.strip() for line in rest if line.strip().startswith("Example:")]
        assert examples, f"{name} has no example"
        assert examples[0].removeprefix("Example: ").startswith(name), name


def test_every_example_parses(commands):
    import shlex

    for name, command in commands.items():
        example = next(line for line in command.help.splitlines() if "Example:" in line)
        words = shlex.split(example.partition(f"Example: {name}")[2])
        with command.make_context(name, words):
            pass


def test_a_command_has_its_name_in_python():
    import tstar

    program._load_commands()
    names = typer.main.get_command(program.app).commands
    missing = {n for n in names if not hasattr(tstar, n) and not hasattr(tstar.lab, n)}
    assert missing == {"runs", "figure"}  # tstar.lab.load_runs, tstar.lab.report.get_figure
    assert [n for n in tstar.lab.__all__ if not hasattr(tstar.lab, n)] == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["temperature"], "Missing option '--features'"),
        (["temperature", "--fetures", "1"], "--fetures"),
        (["runs", "lst"], "No such command 'lst'"),
    ],
)
def test_a_usage_error_says_what_was_not_understood_and_where_help_is(main, words, message):
    code, lines = main(*words)
    assert code == 2
    assert message in " ".join(lines)
    assert f"'tstar {words[0]} -h'" in " ".join(lines)


@pytest.mark.parametrize(
    ("kind", "code", "lines"),
    [
        ("key", 1, ["error KeyError: 'absent'", "tstar did not expect this: add"]),
        ("file", 1, ["error No such file or directory: /nowhere/to/be found"]),
        ("sklearn", 1, ["error This needs the package 'sklearn'; install it with: pip install"]),
        ("markup", 1, ["error RuntimeError: a [bold]list[/] of [1, 2]", "tstar did not"]),
        ("ours", 1, ["error T must be positive, got -1."]),
        ("interrupt", 130, []),
        ("warning", 0, ["warning mind the step"]),
        ("exit", 7, []),
    ],
)
def test_what_goes_wrong_is_said_in_a_line(main, kind, code, lines):
    got, said = main("faulty", kind)
    assert got == code
    assert len(said) == len(lines), said
    for line, start in zip(said, lines, strict=True):
        assert line.startswith(start)


def test_an_error_is_one_line_and_debug_shows_the_traceback():
    words = ("temperature", "--features", "0")
    wrong = "error num_features must be a whole number of at least 1, got num_features=0.\n"
    assert tstar(*words).stderr == wrong
    for debug in (("--debug", *words), (*words, "--debug")):
        done = tstar(*debug)
        assert done.returncode == 1
        assert "Traceback" in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="pipes close otherwise there")
def test_a_reader_that_leaves_early_is_no_error():
    command = [sys.executable, "-c", PIPED]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout.readline() == b"a line\n"
        running.stdout.close()
        said = running.stderr.read().decode()
    assert "Traceback" not in said
    assert "error" not in said


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_greek_letters_are_written_where_the_locale_has_none(encoding):
    """As redirected output on Windows, and in the C locale."""
    done = subprocess.run(
        [sys.executable, "-m", "tstar", "temperature", "--features", "64", "--classes", "10"],
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONIOENCODING": encoding},
    )
    assert "α·sqrt(M)" in done.stdout.decode("utf-8")


@pytest.mark.parametrize("missing", ["typer", "rich.console"])
def test_without_its_packages_the_program_says_what_to_install(missing, tmp_path):
    name, _, inside = missing.partition(".")
    error = f"raise ModuleNotFoundError('no', name={missing!r})\n"
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").write_text("" if inside else error, encoding="utf-8")
    if inside:
        (tmp_path / name / f"{inside}.py").write_text(error, encoding="utf-8")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
    code += "from tstar.__main__ import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8")
    assert done.returncode == 1
    assert done.stderr == "The tstar commands need typer and rich: pip install typer rich\n"
