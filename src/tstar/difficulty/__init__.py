"""How hard a data set is: the cumulative spectral gradient (csg).

The flow, a file for each word: ``matrix`` (of any data) → ``draw`` → ``neighbors`` →
``volume`` → ``expectation`` → ``similarity`` → ``laplacian`` → its eigenvalues → ``gradient``;
``estimate`` runs it, ``interval`` says how sure it is, ``record`` holds the result.

Reference: Branchaud-Charron, Achkar & Jodoin, "Spectral metric for dataset complexity
assessment", CVPR 2019. Why 250 samples, 5 neighbors and 32×32 pixels: :mod:`.estimate`.
"""

from tstar.difficulty.estimate import csg
from tstar.difficulty.record import Csg, Pair

__all__ = ["Csg", "Pair", "csg"]
