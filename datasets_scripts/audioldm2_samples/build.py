"""Rebuild the Parquet files and the manifest; --samples makes the recordings of the recipe with the weights."""

from __future__ import annotations

import argparse
from pathlib import Path

from music_evals.datasets.audioldm2_samples.build import CONFIGS, MODEL, build_config, features
from music_evals.datasets.manifest import build_script, file_rows, write_dataset

HERE = Path(__file__).parent


def main() -> None:
    """Make every config, write it; or make the recordings."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=HERE, help="folder to write (default: this one)")
    parser.add_argument("--samples", type=Path, metavar="FOLDER", help="make the recordings there, and nothing else")
    parser.add_argument("--weights", default=MODEL, help="folder, or id on the Hub (default: %(default)s)")
    parser.add_argument("--revision", help="commit of the id")
    parser.add_argument("--device", default="cpu", help="(default: %(default)s)")
    options = parser.parse_args()
    if options.samples:
        from music_evals.editing.audioldm2 import AudioLDM2, make_samples

        model = AudioLDM2.from_pretrained(options.weights, revision=options.revision, device=options.device)
        print(f"{len(make_samples(model, build_config('recipe'), options.samples))} samples in {options.samples}")
        return
    configs = {config: {"test": build_config(config)} for config in CONFIGS}
    source = "a grid of our own, for AudioLDM 2; pieces of known_edits (stand_in)"
    print(file_rows(write_dataset(options.out, configs, features(), source=source)))


if __name__ == "__main__":
    with build_script():
        main()
