"""``python -m music_evals.cli`` is the command ``music-evals``."""

from __future__ import annotations

import sys

from music_evals.cli import main

if __name__ == "__main__":
    sys.exit(main())
