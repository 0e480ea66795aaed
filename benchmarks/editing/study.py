"""What edits without weights preserve of our own pieces: the table that a system with weights is read beside.

Usage: python -m benchmarks.editing.study --out FOLDER [--write]

Runs `music-evals benchmark musecpbench` over all systems without weights; --write fills the section of README.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from benchmarks.musib.tables import fill

from music_evals.benchmark.tasks.musecpbench.tables import facet_table
from music_evals.benchmark.tasks.musecpbench.task import MUSECPBENCH, Settings
from music_evals.files import write_atomically
from music_evals.protocols import EDITORS, load_plugin

PAGE = Path(__file__).with_name("README.md")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study, print its table of facets, and perhaps write it down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder of the study; it goes on where it stood")
    parser.add_argument("--pieces", type=int, default=12, help="(default: %(default)s)")
    parser.add_argument("--seconds", type=float, help="the first seconds of each (default: all 40)")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page that --write fills")
    parser.add_argument("--write", action="store_true", help="fill the section of the page")
    options = parser.parse_args(arguments)
    systems = [name for name in EDITORS if not hasattr(load_plugin(EDITORS, name, "system"), "from_pretrained")]
    settings = Settings(
        out=options.out, systems=systems, n_pieces=options.pieces, seconds=options.seconds, report=False
    )
    table = facet_table(MUSECPBENCH.run(settings).results)
    print(table)
    if options.write:
        page = fill(options.page.read_text(encoding="utf-8"), {"study": table})
        write_atomically(options.page, page.encode())


if __name__ == "__main__":
    main()
