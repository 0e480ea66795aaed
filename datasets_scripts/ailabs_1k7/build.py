"""Rebuild the stand-in of this folder; or read a copy of AILabs1k7 (--source)."""

from __future__ import annotations

import argparse
from pathlib import Path

from music_evals.datasets.ailabs_1k7.build import build_archive, build_stand_in
from music_evals.datasets.manifest import build_script, file_rows

HERE = Path(__file__).parent


def main() -> None:
    """Build what is asked for and print the number of rows of each file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=Path, metavar="FILE", help="tar or zip archive with the MIDI of AILabs1k7")
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="folder to write (default: this one; with --source the cache folder)"
    )
    options = parser.parse_args()
    manifest = build_archive(options.source, options.out) if options.source else build_stand_in(options.out or HERE)
    print(file_rows(manifest))


if __name__ == "__main__":
    with build_script():
        main()
