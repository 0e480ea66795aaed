"""Rebuild the Parquet files and the manifest; about a minute. Needs music21, whose corpus holds the chorales."""

from __future__ import annotations

import argparse
import sys
from importlib.metadata import version
from pathlib import Path

from music_evals.datasets.known_edits import build_configs, features, left_out
from music_evals.datasets.manifest import write_dataset
from music_evals.errors import MusicEvalsError


def main() -> None:
    """Compose the pieces, edit them, write everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="folder to write (default: this one)")
    options = parser.parse_args()
    manifest = write_dataset(
        options.out,
        build_configs(),
        features(),
        source=f"music21 {version('music21')} corpus, bach/*.mxl, for the chorales; everything else is made here",
        left_out=left_out(),
    )
    for name, facts in manifest["files"].items():
        print(f"{facts['rows']:>6}  {name}")


if __name__ == "__main__":
    try:
        main()
    except MusicEvalsError as error:
        sys.exit(f"build.py: {error}")
