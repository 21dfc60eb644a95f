"""What every worker needs, imported once in the process that they are forked from; they share its pages.

Nothing is computed here: threads of torch would not survive a fork.
"""

from __future__ import annotations

import atexit
import gc

import torch._dynamo  # noqa: F401 (the optimizers import it when they are first made)

import tstar.data
import tstar.methods
import tstar.models.fitting
import tstar.sweep.execute
import tstar.training.checkpoint
import tstar.training.running  # noqa: F401

# Collecting garbage would write to the shared pages, and so copy them.
gc.freeze()
atexit.register(gc.unfreeze)
