"""The atlas of training temperature, and how far a rule is from the best temperature on it."""

from tstar.evidence.regret import RULES, cases, compare, noise, scores
from tstar.evidence.stored import atlas

__all__ = ["RULES", "atlas", "cases", "compare", "noise", "scores"]
