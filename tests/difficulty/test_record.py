"""The result, as it prints and compares."""

from dataclasses import replace

import numpy as np

import tstar
from tstar.difficulty import csg
from tstar.difficulty.record import Pair


def test_the_record_prints_converts_and_compares(helpers):
    x, y = helpers.pictures(120, 3, 8)
    result = csg(x, np.array(["cat", "dog", "emu"])[y], samples=20)
    assert float(result) == result.value
    assert f"csg = {result.value:.4g}" in str(result)
    assert "floored" in str(result)
    assert "Csg(" in repr(result)
    assert "<pre>" in result._repr_html_()
    pairs = result.hardest_pairs(2)
    assert pairs[0].similarity >= pairs[1].similarity
    assert {pairs[0].a, pairs[0].b} <= {"cat", "dog", "emu"}
    assert result != csg(x, y, samples=19)
    tstar.temperature(64, 3, result if result.value > 0 else 1.0)


def test_the_record_says_what_its_interval_is_taken_from(helpers):
    x, y = helpers.blobs(100, 4, 3, 1.0)
    assert ", bootstrap)" in str(csg(x, y))
    assert ", bootstrap; every draw takes all samples)" in str(csg(x, y, repeats=3))
    assert ", over 3 draws)" in str(csg(x, y, samples=10, repeats=3))
    apart = np.repeat(np.eye(3), 20, axis=0), np.arange(60) // 20
    assert ", bootstrap; the draws give one value)" in str(csg(*apart, samples=10, repeats=3))


def test_wild_volumes_are_called_of_little_use(helpers):
    rng = np.random.default_rng(0)
    result = csg(rng.normal(size=(200, 500)) * 200, np.arange(200) % 4)
    assert result.regime == "volumes"
    assert result.effective_samples < 5
    assert "of little use" in str(result)
    for few, said in ((4.99, True), (5.0, False)):
        assert ("of little use" in str(replace(result, effective_samples=few))) is said


def test_names_of_classes_are_safe_to_show():
    """A folder's name may hold what a terminal obeys, or bytes that no encoding can read."""
    assert str(Pair("a\x1b[31m", "b\udcff", 0.5)) == "a\\x1b[31m – b\\udcff: 0.500"
    assert str(Pair("été", 3, 0.25)) == "été – 3: 0.250"
