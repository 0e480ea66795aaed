"""MUSIB's folk data from the user's copy of folk-rnn's archive: ``midi.tgz``, tunes of thesession.org as MIDI.

The filters are those of MUSIB's code: notes, different bytes, 4/4 alone, one instrument, no two notes that start
together, and at least 17 measures. Measures are counted by the rule that gives the published counts of the chorales,
and windowed as there: four quarters from the start of the file, whatever the page says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from music_evals.datasets.archives import read_archive
from music_evals.datasets.jsb_chorales.build import window_counts
from music_evals.datasets.pieces import Piece, Reading, Source, read_pieces
from music_evals.datasets.tunes import Tune
from music_evals.deprecation import module_getattr
from music_evals.errors import NoDataError
from music_evals.files import Store
from music_evals.symbolic.filters import RECIPES, FilterReport, apply_filters, make_filters

__all__ = ["PUBLISHED", "FolkRnn", "compare_with_published", "read_folk_rnn", "song_counts"]

PUBLISHED = {"songs": 17_538, "measures": 605_164, "published_contexts": 324_556, "windows": 342_094}
"""What MUSIB found in the archive; the windows are the published contexts and one a song, which its formula misses."""

_WORDS = {"songs": "tunes", "measures": "measures", "published_contexts": "contexts", "windows": "windows"}

COLLECTION = "folk_rnn"
READING = Reading(measures="fixed", counting="published")


class FolkRnn(NamedTuple):
    """The tunes of the archive, what the filters removed, and what passed them but cannot be read as one voice."""

    tunes: list[Tune]
    filters: FilterReport
    left_out: dict[str, str]


def read_folk_rnn(
    archive: Path,
    *,
    store: Store | None = None,
    unpacked: Callable[[int], object] | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> FolkRnn:
    """Read ``midi.tgz`` of folk-rnn; what was read before is taken from the store.

    `unpacked` is called with the number of files that were taken out of the archive, before any is read; `progress`
    with the number of files that were read, and of all. Where no tune passes the filters, `NoDataError` is raised.
    """
    sources = [
        Source(Path(name).with_suffix("").as_posix(), COLLECTION, ".mid", content)
        for name, content in read_archive(archive, frozenset({".mid", ".midi"}), progress=unpacked)
    ]
    pieces = list(read_pieces(sources, READING, store=store, progress=progress))
    by_name = {piece.facts.filename: piece for piece in pieces}
    report = apply_filters([piece.facts for piece in pieces], make_filters(",".join(RECIPES["musib_folk"])))
    passed: list[Piece] = [by_name[row.filename] for row in report.passed]
    if not passed:
        raise NoDataError(f"{archive}: none of {len(pieces)} files passes the filters; it is not folk-rnn's archive")
    left_out = {piece.facts.filename: piece.left_out for piece in passed if piece.left_out}
    return FolkRnn([tune for piece in passed for tune in piece.tunes], report, left_out)


def song_counts(tunes: list[Tune]) -> dict[str, int]:
    """Count songs, measures and windows, and contexts by the published formula, to compare with `PUBLISHED`."""
    return window_counts((tune.n_measures for tune in tunes), voices=1)


def compare_with_published(counts: Mapping[str, int]) -> str:
    """Return counts as of `song_counts` beside the published ones, a line each, and whether all are equal."""
    rows = [f"{word:<9} {counts[name]:>9,} found, {PUBLISHED[name]:>9,} published" for name, word in _WORDS.items()]
    differing = [word for name, word in _WORDS.items() if counts[name] != PUBLISHED[name]]
    verdict = "all are equal to the published counts"
    if differing:
        verdict = (
            f"warning: not the published number of {', '.join(differing)}; this is another version of the archive, or "
            "its files were read otherwise"
        )
    return "\n".join([*rows, verdict])


if not TYPE_CHECKING:
    __getattr__ = module_getattr(__name__, {"beside_published": "compare_with_published"})
