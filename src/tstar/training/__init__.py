"""One plain training loop, the paper's protocol by default.

::

    train(model_or_recipe, dataset, config=None, *, seed=0, progress=None) -> Result

``model_or_recipe`` is an ``nn.Module`` (trained with cross-entropy) or the ``Recipe`` that a method
prepares; it is trained in place. ``dataset`` is a ``tstar.data.DataSet``. ``config`` (a
``Config``) holds every number of the protocol; ``progress(epoch, epochs, record)`` is called after
each epoch with the numbers of that epoch. The same arguments give the same result, bit for bit on
one CPU thread.

A run whose loss becomes NaN or infinite ends with ``result.status == "diverged"``; its accuracies
are ``None``, since the weights mean nothing any more.
"""

from typing import TYPE_CHECKING

from tstar.lazy import lazy
from tstar.training.config import Config

if TYPE_CHECKING:
    from tstar.methods.calibration import calibration_error
    from tstar.training.loop import Result, train
    from tstar.training.scores import evaluate, predict

# Loaded on use, so that reading a study or a store needs no torch.
_LAZY = {
    "Result": "loop",
    "calibration_error": "scores",
    "evaluate": "scores",
    "predict": "scores",
    "train": "loop",
}
__all__ = ["Config", "Result", "calibration_error", "evaluate", "predict", "train"]


__getattr__ = lazy(__name__, _LAZY)
