"""What workers are forked from: everything is loaded, and nothing runs that a fork would lose."""

import subprocess
import sys


def test_a_worker_has_all_it_needs_and_no_threads_are_lost():
    code = (
        "import gc, sys, threading, tstar.sweep.warm\n"
        "print('tstar.training.loop' in sys.modules, threading.active_count(), gc.get_freeze_count() > 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True
    )
    assert done.stdout.split() == ["True", "1", "True"]
