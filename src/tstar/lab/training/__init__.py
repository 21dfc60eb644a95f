"""One plain training loop, the paper's protocol by default.

::

    train(model_or_recipe, dataset, config=None, *, seed=0) -> Result

``model_or_recipe`` is an ``nn.Module`` (trained with cross-entropy) or the ``Recipe`` of a method,
trained in place. The same arguments give the same result, bit for bit on one CPU thread. A loss that
is not finite ends as "diverged".
"""

from typing import TYPE_CHECKING

from tstar.imports import lazy
from tstar.lab.training.config import Config

if TYPE_CHECKING:
    from tstar.lab.measuring import evaluate, predict
    from tstar.lab.training.loop import Result, train

# Loaded on use, so that reading a study or a store needs no torch.
__all__ = ["Config", "Result", "evaluate", "predict", "train"]
__getattr__ = lazy(__name__, dict.fromkeys(__all__, "loop"))
