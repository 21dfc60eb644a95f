"""Accuracy over T: the one home of conditions, interpolation, the oracle, regret and gain.

    runs ─► conditions(runs) ─► Condition ─► .curve(norm, backbone) ─► Curve

A **condition** is everything that is known of a training but T, norm, backbone, method and seed
(:data:`FACTS`). Its baselines are **plain** (no norm, T = 1: the user's model, untouched) and
**BN, T = 1**. A **curve** is accuracy over T under one norm and backbone, by seed.

Five rules hold everywhere:

1. Between grid points accuracy is linear in ln T, and constant outside the grid: grids are geometric.
2. The oracle is the T of the grid with the highest mean validation accuracy, the lowest where several
   tie; what is reported there is test accuracy, so that the choice does not flatter it.
3. A run that diverged is a result: it counts with the accuracy of chance, 1/K. Failed runs are no results.
4. Along a curve the seeds that have the whole grid are compared (all of them where none has it);
   with a baseline, the seeds that both have. What is not matched is not compared.
5. One condition, one vote.

>>> from tstar import atlas
>>> first = conditions(atlas(1))[0]
>>> curve = first.curve()  # norm="batch", backbone="as-is"
>>> curve.best, round(curve.at(3.0), 3)  # the oracle's T; test accuracy at any T
(2.0, 0.81)
>>> round(first.plain(), 3), round(first.bn_one(), 3)  # mean test accuracy; None where it was not run
(0.704, 0.816)
>>> round(judge(first, 3.0).regret, 2)  # points of accuracy; .gain and .gain_bn over the two baselines
0.39
"""

from tstar.curves.conditions import Condition, Curve, conditions, grids
from tstar.curves.judging import Judged, judge
from tstar.curves.lines import Lines, lines
from tstar.curves.reading import FACTS, read

__all__ = [
    "FACTS",
    "Condition",
    "Curve",
    "Judged",
    "Lines",
    "conditions",
    "grids",
    "judge",
    "lines",
    "read",
]
