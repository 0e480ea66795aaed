"""Rebuild the Parquet files and the manifest from the corpus inside the installed music21; about two minutes."""

from __future__ import annotations

import argparse
import sys
from importlib.metadata import version
from pathlib import Path

from tqdm import tqdm

from music_evals.datasets.bach_corpus import chorale_paths, read_chorale
from music_evals.datasets.jsb_chorales.build import CONFIGS, build_config, features
from music_evals.datasets.jsb_chorales.counts import corpus_counts
from music_evals.datasets.manifest import write_dataset
from music_evals.errors import MusicEvalsError


def main() -> None:
    """Read the corpus, make every config, write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="folder to write (default: this one)")
    options = parser.parse_args()
    chorales = [read_chorale(name) for name in tqdm(chorale_paths(), desc="reading chorales", unit="file")]
    configs = {config: build_config(config, chorales) for config in CONFIGS}
    manifest = write_dataset(
        options.out,
        configs,
        features(),
        source=f"music21 {version('music21')} corpus, bach/*.mxl",
        counts=corpus_counts(chorales),
    )
    for name, facts in manifest["files"].items():
        print(f"{facts['rows']:>6}  {name}")


if __name__ == "__main__":
    try:
        main()
    except MusicEvalsError as error:
        sys.exit(f"build.py: {error}")
