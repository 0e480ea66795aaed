"""Rebuild the Parquet files and the manifest; with --prompts, join the sentences of MedleyMDPrompts into a copy."""

from __future__ import annotations

import argparse
from pathlib import Path

from music_evals.datasets.manifest import build_script, file_rows, write_dataset
from music_evals.datasets.medleydb_editing.build import CONFIGS, build_config, features, read_prompts
from music_evals.errors import InvalidInputError

HERE = Path(__file__).parent


def main() -> None:
    """Read the tables, make every config, write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=HERE, help="folder to write (default: this one)")
    parser.add_argument(
        "--prompts",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="captions_targets.csv and captions_sources.csv of MedleyMDPrompts; needs another --out",
    )
    options = parser.parse_args()
    if options.prompts and options.out.resolve() == HERE.resolve():
        raise InvalidInputError("the published sentences do not belong into this folder; give --out another one")
    sentences = read_prompts(options.prompts) if options.prompts else None
    configs = {config: {"test": build_config(config, sentences)} for config in CONFIGS}
    source = "MedleyMDPrompts, HilaManor/AudioEditingCode f324c19; prompts of our own (stand_in)"
    manifest = write_dataset(options.out, configs, features(), source=source, sentences=sentences is not None)
    print(file_rows(manifest))


if __name__ == "__main__":
    with build_script():
        main()
