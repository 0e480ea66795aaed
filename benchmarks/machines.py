"""What benchmarks say of the machine that they ran on."""

from __future__ import annotations

import platform
from pathlib import Path

__all__ = ["processor"]


def processor() -> str:
    """Return the name of the processor, as the system tells it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
