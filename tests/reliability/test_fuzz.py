"""A slice of ``benchmarks/fuzz.py``: every door answers or refuses with one clear error."""

import pytest

pytest.importorskip("PIL")
pytest.importorskip("safetensors")
pytest.importorskip("sklearn")

from benchmarks import fuzz

INPUTS = {"formula": 200, "images": 15, "store": 60}


@pytest.mark.parametrize(
    "door",
    [pytest.param(d, marks=pytest.mark.slow if d == "store" else ()) for d in fuzz.DOORS],
)
def test_a_door_answers_or_refuses(door, tmp_path):
    outcomes = {i: fuzz.attempt(door, i, tmp_path) for i in range(INPUTS.get(door, 40))}
    assert {i: o for i, o in outcomes.items() if o not in ("answered", "refused")} == {}
    assert "refused" in outcomes.values()
    if door != "kinds":  # else nothing behind the first check was reached
        assert "answered" in outcomes.values()


def test_an_exception_of_another_kind_and_a_wrong_number_are_found(monkeypatch):
    def breaks(rng, folder):
        return {}["x"]

    def lies(rng, folder):
        fuzz.positive(float("nan"), "T")

    monkeypatch.setattr(fuzz, "DOORS", {"breaks": (breaks, 0.5), "lies": (lies, 0.5)})
    report = fuzz.run([("breaks", 0), ("lies", 0)], minutes=60)
    assert report["inputs"] == 2
    first, second = (finding["what"] for finding in report["findings"])
    assert first.startswith("KeyError at test_fuzz.py")
    assert second == "wrong: T = nan"
