"""One thread a process: the suite runs on several processes, and small networks gain nothing from more."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "Agg")
