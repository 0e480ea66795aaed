"""Put the tables of a run over the six pieces into the page: `python -m benchmarks.style_fidelity.six FOLDER`.

The folder is the ``--out`` of the command on the card of `style_transfer_pieces`. Of its table.md, style and
divergences are taken; what is kept of the melody is 1 throughout, for it is never rewritten.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from benchmarks.musib.tables import fill

from music_evals.files import write_atomically

HERE = Path(__file__).parent
TITLES = ("### Style", "## Divergence from the target corpus")


def main(arguments: Sequence[str] | None = None) -> None:
    """Read, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="what the command wrote")
    parser.add_argument("--out", type=Path, default=HERE, help="folder of README.md")
    options = parser.parse_args(arguments)
    text = (options.folder / "table.md").read_text(encoding="utf-8")
    page = options.out / "README.md"
    tables = "\n\n".join(table_below(text, title) for title in TITLES)
    write_atomically(page, fill(page.read_text(encoding="utf-8"), {"six": tables}).encode())


def table_below(text: str, title: str) -> str:
    """Return the first table after a title."""
    lines = text[text.index(title + "\n") :].splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("|"))
    last = next((number for number, line in enumerate(lines[first:], first) if not line.startswith("|")), len(lines))
    return "\n".join(lines[first:last])


if __name__ == "__main__":
    main()
