"""Parts of your own: found, imported, fingerprinted, and blamed by name."""

import sys

import pytest

from tstar import own
from tstar.errors import TstarError

SOURCE = """
WIDTH = 3

def helper(x):
    return x + WIDTH

def make(n):
    return helper(n)

def other(n):
    return n
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "parts.py"
    path.write_text(SOURCE, encoding="utf-8")
    return path


def printed(path, name="make"):
    return own.fingerprint(own.resolve(f"./{path.name}:{name}", path.parent))


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("./mine.py:make", True),
        ("../nets/mine.py:make", True),
        ("package.module:make", True),
        ("insert-ln:affine=false", False),
        ("kd:tau=2", False),
        ("timm/resnet18", False),
        ("digits", False),
        (3, False),
        (True, False),
    ],
)
def test_what_counts_as_a_reference(text, is_one):
    assert own.is_reference(text) is is_one


def test_a_file_and_a_module_beside_the_study_are_the_same(file, tmp_path):
    for text in ("./parts.py:make", "parts:make"):
        assert own.load(own.resolve(text, tmp_path))(4) == 7
    assert own.resolve("json:loads", tmp_path) == "json:loads"


@pytest.mark.parametrize(
    ("old", "new", "changes"),
    [
        ("return helper(n)", "return helper(2 * n)", True),
        ("return x + WIDTH", "return x - WIDTH", True),
        ("WIDTH = 3", "WIDTH = 4", True),
        ("def other(n):\n    return n", "def other(n):\n    return 5", False),
        ("def helper", "# a comment\ndef helper", False),
    ],
)
def test_the_fingerprint_changes_with_all_that_the_part_names(file, old, new, changes):
    before = printed(file)
    assert old in SOURCE
    file.write_text(SOURCE.replace(old, new), encoding="utf-8")
    assert (printed(file) != before) is changes


def test_the_fingerprint_follows_files_of_the_same_folder(file, tmp_path):
    beside = tmp_path / "neighbor_of_parts.py"
    beside.write_text("def deep(x):\n    return x\n", encoding="utf-8")
    file.write_text(
        "from neighbor_of_parts import deep\n\ndef make(n):\n    return deep(n)\n", encoding="utf-8"
    )
    before = printed(file)
    beside.write_text("def deep(x):\n    return 2 * x\n", encoding="utf-8")
    sys.modules.pop("neighbor_of_parts", None)
    assert printed(file) != before


def test_the_fingerprint_follows_imports_from_file_to_file(file, tmp_path):
    file.write_text(
        "import first_step\n\ndef make():\n    return first_step.value\n", encoding="utf-8"
    )
    (tmp_path / "first_step.py").write_text("from second.deep import value\n", encoding="utf-8")
    (tmp_path / "second").mkdir()  # a package without __init__.py
    deep = tmp_path / "second" / "deep.py"
    deep.write_text("value = 1\n", encoding="utf-8")
    before = printed(file)
    assert own.load(f"{file}:make")() == 1
    deep.write_text("value = 1  # a remark\n", encoding="utf-8")
    assert printed(file) == before
    deep.write_text("value = 200\n", encoding="utf-8")
    assert printed(file) != before
    assert own.load(f"{file}:make")() == 200, "the old file is still in use"


def test_the_fingerprint_follows_a_package_above_its_own_folder(tmp_path, monkeypatch):
    inner = tmp_path / "my_package_of_parts" / "inner"
    inner.mkdir(parents=True)
    (inner / "__init__.py").touch()
    (inner / "net.py").write_text("from ..common import make\n", encoding="utf-8")
    (inner.parent / "__init__.py").write_text("from .extra import more\n", encoding="utf-8")
    (inner.parent / "extra.py").write_text("more = 1\n", encoding="utf-8")
    common = inner.parent / "common.py"
    common.write_text(
        "from . import extra\n\ndef make():\n    return extra.more\n", encoding="utf-8"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    prints = {own.fingerprint("my_package_of_parts.inner.net:make")}
    (inner.parent / "extra.py").write_text("more = 2\n", encoding="utf-8")
    prints.add(own.fingerprint("my_package_of_parts.inner.net:make"))
    assert len(prints) == 2


@pytest.mark.parametrize(
    ("more", "changes"),
    [
        ("make.width = 3", True),
        ("helper.cache[0] = 3", True),
        ("register(make)", True),
        ("if WIDTH:\n    helper.width = 2", True),
        ("other.width = 3", False),
        ("print('imported')", False),
    ],
)
def test_the_fingerprint_changes_with_what_is_done_to_the_part(file, more, changes):
    start = "def register(part):\n    pass\n\nclass cache(dict):\n    pass\n" + SOURCE
    file.write_text(f"{start}\nhelper.cache = cache()\n", encoding="utf-8")
    before = printed(file)
    file.write_text(f"{start}\nhelper.cache = cache()\n{more}\n", encoding="utf-8")
    assert (printed(file) != before) is changes


def test_neighbors_of_the_same_name_are_kept_apart(tmp_path):
    source = "import shade\n\ndef make():\n    return shade.value\n\ndef late():\n    import tint\n    return tint.value\n"
    parts = {}
    for number, folder in enumerate(("one", "two")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "net.py").write_text(source, encoding="utf-8")
        for name in ("shade", "tint"):
            text = f"value = {number}\n"
            (tmp_path / folder / f"{name}.py").write_text(text, encoding="utf-8")
        parts[number] = tmp_path / folder / "net.py"
    for _ in range(2):
        for number, path in parts.items():
            for name in ("make", "late"):
                assert own.call(f"{path}:{name}", own.load(f"{path}:{name}")) == number
    assert printed(parts[0]) != printed(parts[1])
    assert not {str(path.parent) for path in parts.values()} & set(sys.path)


def test_an_error_names_the_line_in_the_part_not_in_what_it_calls(file):
    file.write_text("import json\n\ndef make():\n    return json.loads('{')\n", encoding="utf-8")
    with pytest.raises(TstarError, match=r"JSONDecodeError: .*\(parts.py, line 4\)\.$"):
        own.call(f"{file}:make", own.load(f"{file}:make"))


def test_code_under_the_guard_is_no_part_of_it(file):
    before = printed(file)
    file.write_text(SOURCE + "\nif __name__ == '__main__':\n    make(1)\n", encoding="utf-8")
    assert printed(file) == before


@pytest.mark.parametrize(
    ("source", "name", "message"),
    [
        ("def make(", "make", "could not be imported: SyntaxError"),
        ("import nothing_like_this", "make", "could not be imported: ModuleNotFoundError"),
        ("raise SystemExit(3)", "make", "could not be imported: SystemExit"),
        ("def maker(): pass", "make", "did you mean 'maker'"),
        ("make = 3", "make", "must be a function or a class, got int"),
    ],
)
def test_a_broken_part_is_one_error_that_names_it(file, source, name, message):
    file.write_text(source, encoding="utf-8")
    with pytest.raises(TstarError, match=r"parts\.py") as caught:
        own.load(f"{file}:{name}")
    assert message in str(caught.value)


def test_a_missing_file_and_a_missing_module(tmp_path):
    with pytest.raises(TstarError, match="could not be read"):
        own.load(own.resolve("./none.py:make", tmp_path))
    with pytest.raises(TstarError, match="'no_such_module_here' was not found"):
        own.load("no_such_module_here:make")


def test_a_part_is_given_what_it_takes():
    assert own.call("x", lambda a, b=0: (a, b), 1, b=2, c=3) == (1, 2)
    assert own.call("x", lambda **all: all, c=3) == {"c": 3}
    with pytest.raises(
        TstarError, match=r"^x:y failed: ZeroDivisionError: .*test_own.py, line \d+"
    ):
        own.call("x:y", lambda: 1 / 0)


def test_functions_at_hand_become_references():
    assert own.reference_to(own.load, "f") == "tstar.own:load"
    for part in (lambda: 1, own, 3, test_a_part_is_given_what_it_takes.__call__):
        with pytest.raises(TstarError, match=r"models.* must be a function or class"):
            own.reference_to(part, "models['x']")


def test_a_name_stands_for_itself_or_for_what_a_package_offers(monkeypatch):
    monkeypatch.setattr(own, "entry_points", {"tstar.models": {"wide": "package:wide"}}.get)
    assert own.named("./net.py:make", "tstar.models") == "./net.py:make"
    assert own.named("wide", "tstar.models") == "package:wide"
    assert own.named("resnet10", "tstar.models") is None
