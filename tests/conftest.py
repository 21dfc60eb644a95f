"""One thread a process: the suite runs on several processes, and small networks gain nothing from more.

No deadlines for property tests: how long an example takes says how busy the machine is.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "Agg")

from hypothesis import settings

settings.register_profile("tstar", deadline=None)
settings.load_profile("tstar")
