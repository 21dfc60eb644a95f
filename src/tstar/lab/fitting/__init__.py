"""From a store of runs to coefficients: interpolate, optimize, say how sure one can be."""

from tstar.lab.fitting.fitter import How, fit
from tstar.lab.fitting.record import Fit
from tstar.lab.fitting.tables import coefficient_table, correction_table, per_environment

__all__ = ["Fit", "How", "coefficient_table", "correction_table", "fit", "per_environment"]
