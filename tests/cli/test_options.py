"""Options that several commands share mean the same in each."""

from typer.main import get_command

from tstar.cli import app as program


def options(*words):
    program._load_commands()
    command = get_command(program.app)
    for word in words:
        command = command.commands[word]
    return {name: option for option in command.params for name in getattr(option, "opts", ())}


def test_shared_options_are_those_of_every_command():
    for name in ("--where", "--study"):
        texts = {options(*words)[name].help for words in (("runs", "ls"), ("fit",), ("report",))}
        assert len(texts) == 1
    for words in (("csg",), ("recommend",), ("sweep",), ("runs", "show"), ("fit",), ("demo",)):
        assert options(*words)["--json"].is_flag
    for words in (("sweep",), ("check",), ("compare",), ("data", "ls")):
        assert "TSTAR_DATA" in options(*words)["--data-root"].help
