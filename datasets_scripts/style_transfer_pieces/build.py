"""Rebuild the Parquet file and the manifest; takes a few seconds and needs the extra `symbolic`."""

from __future__ import annotations

import argparse
from pathlib import Path

from music_evals.datasets.manifest import build_script, file_rows, write_dataset
from music_evals.datasets.style_pieces import features
from music_evals.datasets.style_transfer_pieces.build import build_rows


def main() -> None:
    """Read the pieces and write everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="folder to write (default: this one)")
    options = parser.parse_args()
    configs = {"style_transfer_pieces": {"test": build_rows()}}
    print(file_rows(write_dataset(options.out, configs, features(), source="written down here, in ABC")))


if __name__ == "__main__":
    with build_script():
        main()
