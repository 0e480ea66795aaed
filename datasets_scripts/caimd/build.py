"""Rebuild the demo songs of this folder (--demo), or convert a copy of the published CaiMD (--source) elsewhere."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from tqdm import tqdm

from music_evals.datasets.caimd.build import BuildSettings, build_release
from music_evals.datasets.caimd.demo import SOURCE, demo_rows
from music_evals.datasets.caimd.release import LAYOUTS
from music_evals.datasets.caimd.schema import features
from music_evals.datasets.manifest import build_script, file_rows, write_dataset

HERE = Path(__file__).parent


def main() -> None:
    """Build what is asked for and print the number of rows of each file."""
    options = read_options()
    if options.demo:
        source = f"music_evals/datasets/caimd/{SOURCE}: songs of our own, and six old poems; no song of CaiMD"
        manifest = write_dataset(options.out or HERE, {"demo": {"test": demo_rows()}}, features(), source=source)
    else:
        manifest = convert(options)
    print(file_rows(manifest))


def read_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--demo", action="store_true", help="build the demo songs")
    what.add_argument("--source", type=Path, metavar="DIR", help="convert the copy of the release in this folder")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder to write; needed with --source")
    parser.add_argument("--layout", choices=LAYOUTS, default="auto", help="(default: %(default)s)")
    parser.add_argument("--maps", type=Path, metavar="DIR", help="folder of qidmap.json, subqidmap.json, opidmap.json")
    parser.add_argument("--overlap", type=Path, metavar="FILE", help="list of the songs of V2 that are in V1 too")
    parser.add_argument("--limit", type=int, metavar="N", help="first N songs of each split")
    parser.add_argument("--strict", action="store_true", help="stop at the first broken song")
    parser.add_argument("--allow-git", action="store_true", help="write into a git checkout all the same")
    options = parser.parse_args()
    if options.source and not options.out:
        parser.error("--source needs --out, a folder outside of this repository")
    return options


def convert(options: argparse.Namespace) -> dict[str, Any]:
    """Convert a release with a progress bar and say what was found."""
    names = ("source", "out", "layout", "maps", "overlap", "limit", "strict", "allow_git")
    settings = BuildSettings(**{name: getattr(options, name) for name in names})
    with tqdm(unit="song", dynamic_ncols=True) as bar:

        def show(done: int, total: int, split: str) -> None:
            bar.total = total
            bar.set_description(split, refresh=False)
            bar.update(done - bar.n)

        manifest = build_release(settings, show)
    for entry in manifest["left_out"]:
        print(f"left out: {entry['song']}: {entry['reason']}", file=sys.stderr)
    for name, count in manifest["anomalies"].items():
        print(f"{count:>6}  {name}", file=sys.stderr)
    return manifest


if __name__ == "__main__":
    with build_script():
        main()
