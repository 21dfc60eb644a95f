"""T: the equation, its coefficients, the training law, the choice of variant, and the cautions. Pure Python."""

from tstar.formula.equation import Explanation, Flag, Term, explain, temperature

__all__ = ["Explanation", "Flag", "Term", "explain", "temperature"]
