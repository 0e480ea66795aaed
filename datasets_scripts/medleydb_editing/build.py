"""Rebuild the Parquet files and the manifest; --tables makes the table of sentences anew from the published ones."""

from __future__ import annotations

import argparse
from pathlib import Path

from music_evals.datasets.manifest import build_script, file_rows, write_dataset
from music_evals.datasets.medleydb_editing import build
from music_evals.files import write_atomically

HERE = Path(__file__).parent


def main() -> None:
    """Make every config, write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=HERE, help="folder to write (default: this one)")
    parser.add_argument(
        "--tables",
        type=Path,
        nargs=2,
        metavar=("TARGETS", "SOURCES"),
        help="captions_targets.csv and captions_sources.csv of MedleyMDPrompts, for the package's prompts.csv",
    )
    options = parser.parse_args()
    if options.tables:
        table = build.published_table(*(path.read_text(encoding="utf-8") for path in options.tables))
        write_atomically(Path(build.__file__).with_name(build.PROMPT_TABLE), table.encode())
    configs = {config: {"test": build.build_config(config)} for config in build.CONFIGS}
    source = "MedleyMDPrompts, HilaManor/AudioEditingCode f324c19; prompts of our own (stand_in)"
    print(file_rows(write_dataset(options.out, configs, build.features(), source=source)))


if __name__ == "__main__":
    with build_script():
        main()
