"""A dry run: what the rest of a study will cost, also without its data."""

from pathlib import Path

import pytest

from tests.lab.sweep.small import tiny
from tstar.errors import TstarError
from tstar.lab.data.catalogue import CATALOGUE
from tstar.lab.sweep.estimate import dry_run, kind_of, shape_of
from tstar.lab.sweep.materials import DataKey
from tstar.lab.sweep.study import load_study, parse_study

PAPER = sorted((Path(__file__).resolve().parents[3] / "studies" / "paper").glob("*.toml"))


def test_the_estimate_grows_with_the_length_of_the_runs():
    one, many = (dry_run(tiny("temperature = [1, 2]", epochs=n), None) for n in (1, 100))
    assert {kind_of(s) for s in one.plan.specs} == {kind_of(s) for s in many.plan.specs}
    assert (len(one.plan.todo), one.probed, one.kinds, one.missing) == (2, 1, 1, {})
    assert many.seconds > 5 * one.seconds


@pytest.mark.skipif(not PAPER, reason="an installed package has no studies")
@pytest.mark.parametrize("path", PAPER, ids=lambda path: path.stem)
def test_the_paper_s_studies_pass_without_data(path, tmp_path, monkeypatch):
    """Every missing set is named with where it goes; the networks take what stands in for it."""
    study = load_study(path)
    first = {spec.model: spec for spec in reversed(study.specs)}  # one data set per network, and
    rest = {spec.dataset: spec for spec in reversed(study.specs)}  # one network per data set
    if path.stem in ("datasets", "label-smoothing"):  # eight times the same large network
        rest = dict(list(rest.items())[:2])
    chosen = tuple(dict.fromkeys([*first.values(), *rest.values()]))
    monkeypatch.setattr("tstar.lab.sweep.estimate.DryRun.probe", lambda *_: 0.5)
    small = type(study)(study.name, chosen, study.about, study.csg, study.places)
    found = dry_run(small, None, data_root=str(tmp_path))
    assert set(found.missing) == {spec.dataset for spec in chosen}
    for name, text in found.missing.items():
        entry = CATALOGUE[name.partition("-easy")[0].partition("-hard")[0].partition("@")[0]]
        assert str(tmp_path / entry.folder) in text
    assert found.seconds > 0
    assert all(shape_of(spec.dataset) for spec in study.specs)


def test_what_stands_in_has_the_catalogued_shape(tmp_path):
    text = 'csg=false\n[[grid]]\ndataset="{}"\nmodel="mlp"\nnum_features=4\ntemperature=1\n'
    found = dry_run(parse_study(text.format("stl10")), None, data_root=str(tmp_path))
    data = found.read(DataKey("stl10", 16))
    assert (data.x_train.shape[1:], data.num_classes) == ((3, 16, 16), 10)
    assert found.probed == 1
    with pytest.raises(TstarError, match="Unknown data set"):
        dry_run(parse_study(text.format("unknown")), None, data_root=str(tmp_path))
    assert shape_of("cifar100@10") == (10, 32, 25_000, 5_000)
    assert shape_of("cifar100-hard1") == (10, 32, 5_000, 1_000)
    assert shape_of("digits") is None
