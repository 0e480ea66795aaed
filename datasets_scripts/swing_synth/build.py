"""Rebuild the Parquet files and the manifest; takes a few seconds and needs nothing but the package."""

from __future__ import annotations

import argparse
from pathlib import Path

from music_evals.datasets.manifest import build_script, file_rows, write_dataset
from music_evals.datasets.style_pieces import features
from music_evals.datasets.swing_synth.build import SEED, build_configs


def main() -> None:
    """Compose the pieces and write everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="folder to write (default: this one)")
    options = parser.parse_args()
    manifest = write_dataset(options.out, build_configs(), features(), source="made here, by rules", seed=SEED)
    print(file_rows(manifest))


if __name__ == "__main__":
    with build_script():
        main()
