"""The studies that are shipped can be read, name only what exists, and ask what the paper asks."""

from pathlib import Path

import pytest

from tstar.lab.data import names as data_names
from tstar.lab.models import names as model_names
from tstar.lab.own import load
from tstar.lab.sweep.materials import get_method
from tstar.lab.sweep.study import load_study

STUDIES = Path(__file__).resolve().parents[3] / "studies"
FILES = sorted(STUDIES.rglob("*.toml"))
LIBRARIES = ("torchvision", "timm", "transformers")


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_study_names_only_what_exists(path):
    study = load_study(path)
    assert study.about
    for spec in study.specs:
        get_method(spec)
        library = spec.model.partition("/")[0]
        assert spec.model in model_names() or library in LIBRARIES or load(spec.model)
        if path.parent.name == "paper":
            assert spec.dataset in data_names()
    needs = {need for spec in study.specs for need in get_method(spec).needs}
    if "teacher" in needs:
        assert all(s.teacher_features for s in study.specs if "teacher" in get_method(s).needs)


def test_the_papers_protocol_is_the_papers():
    for path in (STUDIES / "paper").glob("*.toml"):
        for spec in load_study(path).specs:
            assert (spec.optimizer, spec.momentum, spec.weight_decay) == ("sgd", 0.9, 5e-4)
            assert spec.schedule == "cosine"
            assert spec.epochs == (50 if spec.scenario == "finetune" else 200)
            assert spec.lr == 0.01 or (spec.lr == 0.1 and spec.scenario == "scratch")
            if path.stem != "methods":
                assert spec.val_fraction == 0


def test_the_heat_maps_grid_is_complete():
    specs = load_study(STUDIES / "paper" / "bn-insertion.toml").specs
    cells = {(s.dataset, s.model, s.num_features, s.norm, s.temperature) for s in specs}
    assert len(cells) == 3 * 3 * 4 * 2 * 10
    assert {s.temperature for s in specs} == {2.0**n for n in range(10)}
