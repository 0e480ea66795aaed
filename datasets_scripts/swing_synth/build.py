"""Compose all pieces anew and write the Parquet files and the manifest; about ten seconds."""

from __future__ import annotations

import argparse
from pathlib import Path

from music_evals.datasets.manifest import build_script, file_rows, write_dataset
from music_evals.datasets.style_pieces import features
from music_evals.datasets.swing_synth.build import SEED, build_configs, counts


def main() -> None:
    """Compose, and write everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="folder to write (default: this one)")
    options = parser.parse_args()
    configs = build_configs()
    source = f"rules of music_evals, seed {SEED}"
    manifest = write_dataset(options.out, configs, features(), source=source, counts=counts(configs))
    print(file_rows(manifest))


if __name__ == "__main__":
    with build_script():
        main()
