"""Accuracy over T: the one home of conditions, interpolation, the oracle and regret.

    runs ─► conditions(runs) ─► Condition ─► .curve(norm) ─► Curve

A **condition** is everything that is known of a training but T, norm, method and seed
(:data:`FACTS`). Its baselines are **plain** (no norm, T = 1: the user's model, untouched) and
**BN, T = 1**. A **curve** is accuracy over T under one norm, by seed. Five rules hold:

1. Between grid points accuracy is linear in ln T, and constant outside the grid.
2. The oracle is the T of the grid with the highest average validation accuracy, the lowest on a
   tie; what is reported there is test accuracy, so that the choice does not flatter it.
3. A run that diverged is a result: it counts as chance, 1/K. Failed runs are no results.
4. Along a curve the seeds that have the whole grid are compared (all of them if none has it); with
   a baseline, the seeds that both have.
5. One condition, one vote.

>>> from tstar.lab import atlas
>>> runs = atlas()
>>> first = conditions(runs[runs["atlas"] == 1])[0]
>>> curve = first.curve()  # norm="batch"
>>> curve.best, round(curve.at(3.0), 3)  # the oracle's T; test accuracy at any T
(2.0, 0.81)
>>> round(first.plain_by_seed()[0], 3)  # test accuracy of seed 0
0.704
>>> round(curve.regret(3.0), 2)  # points of accuracy
0.39
"""

from tstar.lab.curves.conditions import Condition, Curve, conditions, grids
from tstar.lab.curves.lines import Lines, lines
from tstar.lab.curves.reading import FACTS, read

__all__ = ["FACTS", "Condition", "Curve", "Lines"]
__all__ += ["conditions", "grids", "lines", "read"]
