"""Write conda/recipe.yaml from pyproject.toml, and check it: rattler-build must read and render it.

python .ci/conda.py [dist/tstar-X.Y.Z.tar.gz]: with an sdist, its checksum is filled in. The recipe has the base
dependencies; what the extras bring is named in its description.
"""

import hashlib
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# conda-forge's names of packages that PyPI calls otherwise.
NAMES = {"torch": "pytorch"}


def recipe(sdist: Path | None) -> str:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    version = re.search(r'"(.*)"', (ROOT / "src/tstar/_version.py").read_text(encoding="utf-8"))
    assert version
    checksum = "0" * 64 if sdist is None else hashlib.sha256(sdist.read_bytes()).hexdigest()
    needs = [conda_name(need) for need in project["dependencies"]]
    lines = [
        "# Made from pyproject.toml by .ci/conda.py; the checksum is filled in at a release.",
        "schema_version: 1",
        "context:",
        f'  version: "{version[1]}"',
        f'  python_min: "{project["requires-python"].removeprefix(">=")}"',
        "package:",
        f"  name: {project['name']}",
        "  version: ${{ version }}",
        "source:",
        f"  url: {project['urls']['Repository']}/releases/download/v${{{{ version }}}}"
        f"/{project['name']}-${{{{ version }}}}.tar.gz",
        f"  sha256: {checksum}",
        "build:",
        "  number: 0",
        "  noarch: python",
        "  script: python -m pip install . -vv --no-deps --no-build-isolation",
        "  python:",
        "    entry_points:",
        *(f"      - {name} = {target}" for name, target in project["scripts"].items()),
        "requirements:",
        "  host:",
        "    - python ${{ python_min }}.*",
        "    - pip",
        "    - hatchling",
        "    - hatch-fancy-pypi-readme",
        "  run:",
        "    - python >=${{ python_min }}",
        *(f"    - {need}" for need in needs),
        "tests:",
        "  - python:",
        "      imports: [tstar, tstar.lab]",
        "      pip_check: true",
        "  - script:",
        "      - tstar temperature --features 2048 --classes 8 --csg 3.85",
        "about:",
        f'  summary: "{project["description"]}"',
        f"  license: {project['license']}",
        "  license_file: LICENSE",
        f"  homepage: {project['urls']['Repository']}",
        f"  documentation: {project['urls']['Documentation']}",
        "extra:",
        "  recipe-maintainers: []",
    ]
    return "\n".join(lines) + "\n"


def conda_name(need: str) -> str:
    """A requirement in conda's words.

    >>> conda_name("torch>=2.6")
    'pytorch >=2.6'
    """
    name, bound = re.fullmatch(r"([\w.-]+)(.*)", need.partition(";")[0].strip()).groups()
    return f"{NAMES.get(name, name)} {bound}"


def check(path: Path) -> None:
    from rattler_build import Stage0Recipe

    (rendered,) = Stage0Recipe.from_file(path).render()
    print(f"{path.relative_to(ROOT)}: rattler-build renders {rendered.recipe.package.name}")


if __name__ == "__main__":
    target = ROOT / "conda" / "recipe.yaml"
    target.parent.mkdir(exist_ok=True)
    target.write_text(recipe(Path(sys.argv[1]) if sys.argv[1:] else None), encoding="utf-8")
    check(target)
