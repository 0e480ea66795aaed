"""``python -m music_evals`` is the command ``music-evals``."""

from __future__ import annotations

import sys

from music_evals.cli import main

__all__: list[str] = []

if __name__ == "__main__":
    sys.exit(main())
