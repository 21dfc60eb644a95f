"""Parts of your own: found, imported, fingerprinted, and blamed by name."""

import functools
import hashlib
import sys

import pytest

from tstar.errors import TstarError
from tstar.lab import own

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


def test_the_fingerprint_is_of_the_file_and_a_changed_file_is_imported_anew(file):
    reference = own.resolve("./parts.py:make", file.parent)
    assert own.fingerprint(reference) == hashlib.sha256(SOURCE.encode()).hexdigest()[:16]
    assert own.load(reference)(1) == 4
    file.write_text(SOURCE.replace("WIDTH = 3", "WIDTH = 4"), encoding="utf-8")
    assert own.load(reference)(1) == 5
    assert own.fingerprint(reference) != hashlib.sha256(SOURCE.encode()).hexdigest()[:16]
    assert len(own.fingerprint("tstar.lab.own:load")) == 16


@pytest.mark.parametrize(
    ("helper", "line"),
    [
        ("blocks.py", "import blocks"),
        ("blocks.py", "def make():\n    from blocks import x"),
        ("nets/blocks.py", "from nets import blocks"),
        ("nets/blocks.py", "import nets.blocks as b"),
    ],
)
def test_the_fingerprint_covers_the_helpers_that_a_part_imports(file, helper, line):
    path = file.parent / helper
    path.parent.mkdir(exist_ok=True)
    path.with_name("__init__.py").touch()
    for other in (path, file.with_name("stranger.py")):
        other.write_text("x = 1\n", encoding="utf-8")
    file.write_text(line, encoding="utf-8")
    prints = [own.fingerprint(f"{file}:make")]
    for other in (file.with_name("stranger.py"), path):
        other.write_text("x = 2\n", encoding="utf-8")
        prints.append(own.fingerprint(f"{file}:make"))
    assert prints[0] == prints[1] != prints[2]


def test_a_part_above_the_study_is_refused(file, tmp_path):
    for place in ("../parts.py:make", "nets/../../parts.py:make"):
        with pytest.raises(TstarError, match="beside the study or below"):
            own.resolve(place, tmp_path / "study")


def test_a_file_imports_its_neighbors(file):
    (file.parent / "neighbor_of_parts.py").write_text("value = 7\n", encoding="utf-8")
    file.write_text(
        "import neighbor_of_parts as n\n\ndef make():\n    return n.value\n", encoding="utf-8"
    )
    before = list(sys.path)
    assert own.load(f"{file}:make")() == 7
    assert sys.path == before


def test_an_error_names_the_line_in_the_part_not_in_what_it_calls(file):
    file.write_text("import json\n\ndef make():\n    return json.loads('{')\n", encoding="utf-8")
    with pytest.raises(TstarError, match=r"JSONDecodeError: .*\(parts.py, line 4\)\.$"):
        own.call(f"{file}:make", own.load(f"{file}:make"))


@pytest.mark.parametrize(
    ("source", "name", "message"),
    [
        ("def make(", "make", "could not be imported: SyntaxError"),
        ("import nothing_like_this", "make", "could not be imported: ModuleNotFoundError"),
        ("raise SystemExit(3)", "make", "could not be imported: SystemExit"),
        ("def maker(): pass", "make", "did you mean 'maker'"),
        ("make = 3", "make", "Unknown function or class"),
    ],
)
def test_a_broken_part_is_one_error_that_names_it(file, source, name, message):
    file.write_text(source, encoding="utf-8")
    with pytest.raises(TstarError, match=r"parts\.py") as caught:
        own.load(f"{file}:{name}")
    assert message in str(caught.value)


def test_a_missing_file_and_a_missing_module(tmp_path):
    with pytest.raises(TstarError, match="could not be imported: FileNotFoundError"):
        own.load(own.resolve("./none.py:make", tmp_path))
    with pytest.raises(TstarError, match="No module named 'no_such_module_here'"):
        own.load("no_such_module_here:make")


def test_a_part_is_given_what_it_takes():
    assert own.call("x", lambda a, b=0: (a, b), 1, b=2, c=3) == (1, 2)
    assert own.call("x", lambda **all: all, c=3) == {"c": 3}
    with pytest.raises(
        TstarError, match=r"^x:y failed: ZeroDivisionError: .*test_own.py, line \d+"
    ):
        own.call("x:y", lambda: 1 / 0)


def test_functions_at_hand_become_references():
    assert own.reference_to(own.load, "f") == "tstar.lab.own:load"
    wrapping = functools.wraps(own.load)(lambda text: text)  # which bears the other's name
    for part in (lambda: 1, own, 3, test_a_part_is_given_what_it_takes.__call__, wrapping):
        with pytest.raises(TstarError, match=r"models.* must be a function or class"):
            own.reference_to(part, "models['x']")
