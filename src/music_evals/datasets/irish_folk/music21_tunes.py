"""The folk tunes of Ireland and Britain inside the music21 package: which there are, and how they are read.

Taken are tunes in 4/4 or 2/2 throughout, one note at a time, with 16 measures of four quarters in a row once their
repeats are written out. Measure 0 is the first full one: a pickup is left out, as in the config `strict_4_4` of
`jsb_chorales`, and of a tune with an irregular measure the longest run without one is taken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from music_evals.datasets.pieces import Reading, Source, read_pieces, with_own_names
from music_evals.datasets.tunes import Tune
from music_evals.errors import NoDataError, importing
from music_evals.files import Store
from music_evals.symbolic.notation import abc_fields, split_abc

COLLECTIONS = {
    "airdsAirs": "A Selection of Scotch, English, Irish and Foreign Airs (J. Aird, Glasgow 1778-1801)",
    "oneills1850": "O'Neill's Music of Ireland (F. O'Neill, Chicago 1903)",
    "ryansMammoth": "Ryan's Mammoth Collection (E. Howe, Boston 1883)",
}
"""Folder in music21's corpus -> the book."""

CLEARED_COLLECTIONS = frozenset({"ryansMammoth"})
"""Those whose terms were found clear enough to pass on what is made of them; the card says why."""

METERS = {"C": "4/4", "C|": "2/2", "4/4": "4/4", "2/2": "2/2"}
"""The meters that are taken, as ABC writes them; both have four quarters."""


def corpus_folder() -> Path:
    """Return the folder of the corpus in the installed music21."""
    with importing("symbolic", "reading the folk tunes of music21"):
        import music21
    return Path(music21.__file__).parent / "corpus"


def tune_sources(corpus: Path) -> list[Source]:
    """Return the tunes whose header and body name none but the meters that are taken, sorted by collection and file."""
    sources = []
    for collection in COLLECTIONS:
        paths = sorted((corpus / collection).glob("*.abc"))
        if not paths:
            raise NoDataError(
                f"the corpus of the installed music21 holds no {collection}; some system packages leave it out: "
                "install music21 with pip"
            )
        for path in paths:
            texts = split_abc(path)
            for text in texts:
                meters = {meter.strip('" ') for meter in abc_fields(text, "M")}
                if meters and meters <= METERS.keys():
                    number = "".join(f"/{field}" for field in abc_fields(text, "X")[:1]) if len(texts) > 1 else ""
                    sources.append(Source(f"{collection}/{path.stem}{number}", collection, ".abc", text.encode()))
    return with_own_names(sources)  # files may hold two transcriptions of a page


def read_tunes(
    sources: Sequence[Source], *, store: Store | None = None, progress: Callable[[int, int], object] | None = None
) -> tuple[list[Tune], dict[str, int]]:
    """Read tunes, and count by collection how many were taken, and what was left out and why."""
    tunes: list[Tune] = []
    counts = Counter[str]()
    for source, piece in zip(sources, read_pieces(sources, Reading(), store=store, progress=progress), strict=True):
        counts[f"{source.collection}: in 4/4 or 2/2"] += 1
        if piece.left_out:
            counts[f"{source.collection}: left out ({piece.left_out.partition(':')[0]})"] += 1
        else:
            counts[f"{source.collection}: taken"] += 1
            counts[f"{source.collection}: taken, repeats as written"] += piece.as_written
            tunes.extend(piece.tunes)
    return tunes, dict(sorted(counts.items()))
