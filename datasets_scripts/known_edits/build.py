"""Rebuild the Parquet files, the manifest and the tables of the card.

Needs music21, whose corpus holds the chorales; takes about a minute.
"""

from __future__ import annotations

import argparse
from importlib.metadata import version
from pathlib import Path

from music_evals.datasets.known_edits.build import build_configs, compose_piece, features, left_out
from music_evals.datasets.known_edits.labels import pieces
from music_evals.datasets.known_edits.tables import fill_card, kind_table, label_table, piece_table
from music_evals.datasets.manifest import build_script, file_rows, write_dataset


def main() -> None:
    """Compose the pieces, edit them, write everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="folder to write (default: this one)")
    options = parser.parse_args()
    configs, missing = build_configs(), left_out()
    manifest = write_dataset(
        options.out,
        configs,
        features(),
        source=f"music21 {version('music21')} corpus, bach/*.mxl, for the chorales; everything else is made here",
        left_out=missing,
    )
    tables = {
        "pieces": piece_table(map(compose_piece, pieces())),
        "kinds": kind_table([row for half in configs["default"].values() for row in half], missing),
        "labels": label_table(),
    }
    card = fill_card((Path(__file__).parent / "README.md").read_text(encoding="utf-8"), tables)
    (options.out / "README.md").write_text(card, encoding="utf-8")
    print(file_rows(manifest))


if __name__ == "__main__":
    with build_script():
        main()
