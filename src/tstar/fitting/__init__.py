"""From a store of runs to coefficients: interpolate, evolve, validate, and say how sure one can be."""

from tstar.fitting.comparison import alternatives, coefficient_table, correction_table
from tstar.fitting.environments import cross_validate, per_environment
from tstar.fitting.fitter import fit
from tstar.fitting.record import Fit

__all__ = [
    "Fit",
    "alternatives",
    "coefficient_table",
    "correction_table",
    "cross_validate",
    "fit",
    "per_environment",
]
