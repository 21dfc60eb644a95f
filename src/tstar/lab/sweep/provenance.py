"""What a result was made with: versions, machine, and the commit of the code."""

from __future__ import annotations

import platform
import subprocess
from functools import lru_cache
from pathlib import Path

from tstar._version import __version__


def versions(device: str = "cpu") -> dict[str, str]:
    """Versions of what numbers depend on, and what they were computed on."""
    import numpy
    import torch

    on = torch.cuda.get_device_name(device) if device.startswith("cuda") else _processor()
    return {
        "tstar": __version__,
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "numpy": numpy.__version__,
        "system": platform.platform(terse=True),
        "device": f"{device} ({on})",
    }


@lru_cache(maxsize=1)
def commit() -> str | None:
    """The commit of this package's source, ``+`` for changes on top; ``None`` if installed."""
    here = Path(__file__).resolve().parent
    words = ["git", "-C", str(here), "describe", "--always", "--exclude=*", "--abbrev=12"]
    try:
        told = subprocess.check_output([*words, "--dirty=+"], stderr=subprocess.DEVNULL, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return None
    return told.decode().strip()


@lru_cache(maxsize=1)
def _processor() -> str:
    facts = Path("/proc/cpuinfo")
    for line in facts.read_text(encoding="utf-8").splitlines() if facts.exists() else []:
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
