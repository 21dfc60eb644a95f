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
    """The commit that this package's source is at, ``+`` for changes on top; ``None`` if installed."""
    here = Path(__file__).resolve().parent
    try:
        head = _git(here, "rev-parse", "HEAD")
        changed = _git(here, "status", "--porcelain", "--", str(here.parent))
    except (OSError, subprocess.SubprocessError):
        return None
    return head[:12] + ("+" if changed else "")


def _git(where: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(where), *arguments],
        capture_output=True,
        encoding="utf-8",
        check=True,
        timeout=10,
    )
    return done.stdout.strip()


@lru_cache(maxsize=1)
def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
