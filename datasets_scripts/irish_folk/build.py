"""Rebuild the files of this folder from the installed music21; or read folk-rnn's archive (--source); or measure leaks.

Without an option it reads the tunes inside music21 and writes all that is made of them: `music21_folk_cleared` here,
`music21_folk` and `small` where they are kept for first use. It takes some minutes.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from music_evals.datasets.irish_folk.build import build_folk_rnn, measure_leakage, rebuild
from music_evals.datasets.irish_folk.folk_rnn import compare_with_published
from music_evals.datasets.manifest import build_script, file_rows

HERE = Path(__file__).parent


def main() -> None:
    """Build what is asked for and print the rows of each file; of an archive its counts beside the published ones."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--source", type=Path, metavar="FILE", help="midi.tgz of folk-rnn: makes the configs folk_rnn, folk_rnn_small"
    )
    what.add_argument("--leakage", action="store_true", help="print what a split by tune would have leaked, as JSON")
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="folder to write (default: this one; with --source the cache folder)"
    )
    options = parser.parse_args()
    if options.leakage:
        print(measure_leakage())
        return
    manifest = build_folk_rnn(options.source, options.out) if options.source else rebuild(options.out or HERE)
    print(file_rows(manifest))
    if options.source:
        print(compare_with_published(manifest["found"]))


if __name__ == "__main__":
    with build_script():
        main()
