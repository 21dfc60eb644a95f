"""What a failed command says."""

import pytest

from tstar.cli.failures import describe


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (["temperature"], "Missing option '--features'", "tstar temperature --help"),
        (["temperature", "--features", "x"], "'--features'", "tstar temperature --help"),
        (["temperature", "--fetures", "1"], "--fetures", "tstar temperature --help"),
        (["runs", "lst"], "No such command 'lst'", "tstar runs --help"),
    ],
)
def test_a_usage_error_is_one_line_and_a_hint(main, words, message, hint):
    code, (first, second) = main(*words)
    assert code == 2
    assert first.startswith("error ")
    assert message in first
    assert second == f"hint {hint}"


@pytest.mark.parametrize(
    ("kind", "code", "lines"),
    [
        ("key", 1, ["error KeyError: 'absent'", "hint this was not expected: add --debug"]),
        ("file", 1, ["error No such file or directory: /nowhere/to/be found", "hint check"]),
        ("folder", 1, ["error Is a directory: .", "hint name a file, not a folder"]),
        ("sklearn", 1, ["error This needs the package 'scikit-learn'", "hint pip install 'tstar["]),
        ("stranger", 1, ["error This needs the package 'strange'", "hint pip install strange"]),
        ("markup", 1, ["error RuntimeError: a [bold]list[/] of [1, 2]", "hint this"]),
        ("interrupt", 130, []),
        ("memory", 1, ["error Out of memory.", "hint try smaller batches"]),
        ("warning", 0, ["warning mind the step"]),
        ("exit", 7, []),
    ],
)
def test_what_goes_wrong_is_said_in_a_line_and_a_hint(main, kind, code, lines):
    got, said = main("faulty", kind)
    assert got == code
    assert len(said) == len(lines), said
    for line, start in zip(said, lines, strict=True):
        assert line.startswith(start)


def test_the_extra_is_one_that_brings_the_package():
    import importlib.metadata as metadata

    hint = describe(ModuleNotFoundError("no", name="torchvision.models")).hint
    extra = hint.partition("[")[2].partition("]")[0]
    wanted = [line for line in metadata.requires("tstar") if line.startswith("torchvision")]
    assert any(extra in line for line in wanted)
