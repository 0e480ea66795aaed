"""Rebuild the Parquet files and the manifest from the corpus inside the installed music21; about five minutes."""

from __future__ import annotations

import argparse
from importlib.metadata import version
from pathlib import Path

from tqdm import tqdm

from music_evals.datasets import style_pieces
from music_evals.datasets.bach_corpus import chorale_list, chorale_paths, read_chorale, read_listed
from music_evals.datasets.jsb_chorales.build import CONFIGS, build_config, corpus_counts, features, near_counts
from music_evals.datasets.jsb_chorales.style import style_configs, style_counts
from music_evals.datasets.manifest import build_script, file_rows, write_dataset


def main() -> None:
    """Read the corpus, make every config, write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="folder to write (default: this one)")
    options = parser.parse_args()
    chorales = [read_chorale(name) for name in tqdm(chorale_paths(), desc="reading chorales", unit="file")]
    configs = {config: build_config(config, chorales) for config in CONFIGS}
    listed = chorale_list()
    names = sorted(set(listed))
    pieces = {name: read_listed(name) for name in tqdm(names, desc="reading the list of chorales", unit="file")}
    whole = style_configs(pieces, listed)
    manifest = write_dataset(
        options.out,
        {**configs, **whole},
        features(),
        own_features=dict.fromkeys(whole, style_pieces.features()),
        source=f"music21 {version('music21')} corpus, bach/*.mxl",
        counts={**corpus_counts(chorales), "near_copies": near_counts(configs), **style_counts(pieces, whole)},
    )
    print(file_rows(manifest))
    for config, splits in manifest["counts"]["near_copies"].items():
        for split, n in splits.items():
            print(
                f"{config}, {split}: of {n['windows']} middles {n['near_train']} are near copies of a passage of train "
                f"({n['near_train_not_seen']} of them not seen), {n['repeats_in_context']} of one of their own context"
            )


if __name__ == "__main__":
    with build_script():
        main()
