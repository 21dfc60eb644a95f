"""What the rest of a study will cost."""

from tests.sweep.small import tiny
from tstar.sweep.estimate import estimate, kind_of
from tstar.sweep.plan import make_plan


def test_the_estimate_grows_with_the_length_of_the_runs():
    short, long = (make_plan(tiny("temperature = [1, 2]", epochs=n), None) for n in (1, 100))
    assert {kind_of(s) for s in short.specs} == {kind_of(s) for s in long.specs}
    one, many = estimate(short), estimate(long)
    assert (one.runs, one.probed, one.kinds) == (2, 1, 1)
    assert many.seconds > 5 * one.seconds
