"""What a release says of itself: extras, addresses, the conda recipe, the workflows."""

import ast
import importlib.util
import re
import tomllib
from pathlib import Path

import pytest
import yaml

import tstar

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = PROJECT["project"]["optional-dependencies"]
DISTRIBUTIONS = {"sklearn": "scikit-learn", "PIL": "pillow"}
repository = pytest.mark.skipif(not (ROOT / ".ci").is_dir(), reason="not in an sdist")


def test_one_sentence_says_what_it_is():
    said = PROJECT["project"]["description"]
    for name in ("README.md", "docs/index.md", "mkdocs.yml", "conda/recipe.yaml"):
        text = " ".join((ROOT / name).read_text(encoding="utf-8").split())
        assert said in text, name
    for name in ("__init__.py", "lab/cli/app.py"):
        text = (Path(tstar.__file__).parent / name).read_text(encoding="utf-8")
        assert said.lower() in text.lower(), name


def brought(extra: str) -> set[str]:
    """The packages of an extra, with those of the extras that it names."""
    found = set()
    for need in EXTRAS[extra]:
        inner = re.match(r"tstar\[(.*)\]", need)
        if inner:
            found |= set().union(*map(brought, inner[1].split(",")))
        else:
            found.add(re.match(r"[\w-]+", need)[0])
    return found


def required() -> list[tuple[str, str, str]]:
    """File, module and extra of each call of ``require`` in the package."""
    found = []
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("require"):
                words = [a.value for a in node.args if isinstance(a, ast.Constant)]
                if len(words) == 2:
                    found.append((path.name, words[0].partition(".")[0], words[1]))
    return found


def test_the_extra_all_brings_what_the_others_bring():
    assert set().union(*map(brought, EXTRAS.keys() - {"all"})) < brought("all")


@pytest.mark.skipif(not (ROOT / "src").is_dir(), reason="an sdist's tests, without sources")
def test_an_error_names_an_extra_that_brings_the_package():
    wrong = [
        (file, module, extra)
        for file, module, extra in required()
        if extra not in EXTRAS or DISTRIBUTIONS.get(module, module) not in brought(extra)
    ]
    assert len(required()) > 5
    assert wrong == []


@repository
def test_the_address_stands_in_one_place():
    """``[project.urls]``, and the conda recipe that is made from it."""
    files = [*ROOT.glob("*.*"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("conda/*"), *ROOT.glob(".github/**/*.yml")]  # fmt: skip
    named = {p.name for p in files if p.is_file() and b"github.com/OWNER" in p.read_bytes()}
    assert named == {"pyproject.toml", "recipe.yaml"}


@repository
def test_the_conda_recipe_is_the_one_that_pyproject_gives():
    spec = importlib.util.spec_from_file_location("conda_recipe", ROOT / ".ci" / "conda.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text = (ROOT / "conda" / "recipe.yaml").read_text(encoding="utf-8")
    assert text == module.recipe(None), "run python .ci/conda.py"


@repository
def test_the_oldest_and_the_newest_python_are_tested():
    """The ends of what pyproject.toml promises, by the fast tests and with the lowest and the newest versions."""
    names = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["project"]["classifiers"]))
    ends = [names[0], names[-1]]
    assert PROJECT["project"]["requires-python"] == f">={names[0]}"
    assert PROJECT["tool"]["mypy"]["python_version"] == names[0]
    workflow = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text(encoding="utf-8"))
    of_fast, of_versions = (workflow["jobs"][n]["strategy"]["matrix"] for n in ("fast", "versions"))
    assert of_fast["python"] == [row["python"] for row in of_versions["include"]] == ends
    floors = (ROOT / ".ci" / "floors").read_text(encoding="utf-8")
    assert re.findall(r":-\$\(first python(3\.\d+) ", floors) == ends


@repository
def test_the_forms_name_what_exists():
    forms = (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")
    read = {path.name: yaml.safe_load(path.read_text(encoding="utf-8")) for path in forms}
    assert "tstar --version" in str(read["bug.yml"])
    assert "advice.details()" in str(read["recipe.yml"])
