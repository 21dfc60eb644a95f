"""The atlas of training temperature, and how far a rule is from the best temperature on it."""

from tstar.evidence.cases import Case, cases
from tstar.evidence.exponents import Exponent, shared_exponent, too_hot
from tstar.evidence.regret import RULES, compare, noise, scores
from tstar.evidence.stored import atlas

__all__ = [
    "RULES",
    "Case",
    "Exponent",
    "atlas",
    "cases",
    "compare",
    "noise",
    "scores",
    "shared_exponent",
    "too_hot",
]
