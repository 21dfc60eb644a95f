"""How the program as a whole behaves: help, usage errors, failures, completion."""

import os
import signal
import subprocess
import sys

import pytest
import typer

from tstar.cli import app as program

PIPED = """
import sys
from tstar.cli.app import app, main

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


def test_help_shows_the_two_flows_in_order():
    shown = tstar("--help").stdout
    use, research = shown.index(program.USE[:20]), shown.index(program.RESEARCH[:20])
    assert use < shown.index("temperature  ") < shown.index("recommend  ") < research
    assert research < shown.index("sweep  ") < shown.index("fit  ")


def test_every_command_is_in_one_of_the_two_flows():
    program._load_commands()
    registered = [*program.app.registered_commands, *program.app.registered_groups]
    assert {entry.rich_help_panel for entry in registered} == {program.USE, program.RESEARCH}


def test_debug_may_stand_anywhere():
    done = tstar("temperature", "--features", "0", "--debug")
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert program._take_debug(["--debug", "a"]) == (["a"], True)
    assert program._take_debug(["a", "--debug", "--", "--debug"]) == (["a", "--", "--debug"], True)
    assert program._take_debug(["a", "--", "--debug"]) == (["a", "--", "--debug"], False)


def test_debug_raises_an_unexpected_error(main, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["tstar", "faulty", "key", "--debug"])
    with pytest.raises(KeyError, match="absent"):
        program.main()


@pytest.mark.skipif(sys.platform == "win32", reason="pipes close otherwise there")
def test_a_reader_that_leaves_early_is_no_error():
    command = [sys.executable, "-c", PIPED]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout.readline() == b"a line\n"
        running.stdout.close()
        said = running.stderr.read().decode()
    assert "Traceback" not in said
    assert "error" not in said


def test_interrupts_while_the_program_starts_are_quiet(monkeypatch, capsys):
    def interrupt():
        raise KeyboardInterrupt

    monkeypatch.setattr(program, "_load_commands", interrupt)
    monkeypatch.setattr(sys, "argv", ["tstar", "--version"])
    monkeypatch.setattr("warnings.showwarning", None)  # which main() replaces
    with pytest.raises(SystemExit) as end:
        program.main()
    assert end.value.code == 128 + signal.SIGINT
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_offers_the_commands(shell):
    asked = {
        "bash": {"COMP_WORDS": "tstar tem", "COMP_CWORD": "1"},
        "zsh": {"_TYPER_COMPLETE_ARGS": "tstar tem"},
        "fish": {"_TYPER_COMPLETE_ARGS": "tstar tem", "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
    }[shell]
    done = tstar(_TSTAR_COMPLETE=f"complete_{shell}", **asked)
    assert "temperature" in done.stdout
    assert "sweep" not in done.stdout


def test_completion_offers_the_options_of_a_command():
    done = tstar(
        _TSTAR_COMPLETE="complete_bash", COMP_WORDS="tstar temperature --fea", COMP_CWORD="2"
    )
    assert done.stdout.split() == ["--features"]


def test_the_completion_script_names_the_program():
    done = tstar("--show-completion", "bash", _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert "_TSTAR_COMPLETE" in done.stdout


def test_where_a_result_goes_has_one_name_and_old_names_are_understood(commands):
    old = {"demo": "--out", "compare": "--out", "csg": "--plot", "check": "--figure"}
    old = {f"tstar {name}": flag for name, flag in old.items()}
    for name, command in commands.items():
        options = {flag: option for option in command.params for flag in option.opts}
        for flag in ("--out", "--plot", "--figure", "--correction"):
            assert flag not in options or options[flag].hidden, (name, flag)
        if "--output" in options:
            assert "-o" in options, name
        if name in old:
            assert {"--output", "-o", old.pop(name)} <= {*options}, name
        for option in command.params:
            if not getattr(option, "hidden", False) and hasattr(option, "help"):
                assert option.help, (name, option.name)  # every option says what it is
                assert not option.help.startswith(("Of ", "For ")), (name, option.help)
    assert old == {}


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


@pytest.mark.skipif(sys.platform != "linux", reason="file names are bytes on Linux alone")
def test_a_name_that_no_encoding_can_read_is_shown_escaped():
    done = subprocess.run(
        [sys.executable, "-m", "tstar", "csg", b"no\xffwhere"], capture_output=True, check=False
    )
    assert done.returncode != 0
    assert "no\\udcffwhere" in done.stderr.decode("utf-8")
    assert "not expected" not in done.stderr.decode("utf-8")
