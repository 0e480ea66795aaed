"""CaiMD, the data of MuChin: Chinese songs with what two groups of people say of them, sections, rhymes and times.

A row is one song. Its `professional` and `amateur` descriptions hold a free text and the dimensions of
`music_evals.annotations.DIMENSIONS`; its `structure` holds sections with their lines and the pattern of each line
(``c`` a character, ``R`` the last character of a line that rhymes, a space a pause). The songs of the release are not
here: their lyrics belong to others. `release` reads a copy of yours, `build` writes it as Parquet, and
`demo` holds songs of our own in the same form.

Source: Wang et al., "MuChin: A Chinese Colloquial Description Benchmark for Evaluating Language Models in the Field of
Music", IJCAI 2024, pp. 7771-7779.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

from music_evals.annotations import AUDIO_EFFECTS, DIMENSIONS, LyricSection, sections_of_rows, sections_text
from music_evals.datasets.manifest import load_split

__all__ = ["SECTION_TYPES", "effect_tags", "features", "load_rows", "section_row", "song_texts"]

SECTION_TYPES: Final = ("intro", "verse", "pre-chorus", "chorus", "bridge", "interlude", "ending")
"""Kinds of section in the released data; a label is one of them and a number."""

CLEAR, UNCLEAR = "清晰", "不清晰"
LIVE, LO_FI = "现场版", "Lo-Fi"


def features() -> Any:
    """Return the `datasets.Features` of the rows."""
    from datasets import Features, List, Value

    text, seconds, flag = Value("string"), Value("float64"), Value("bool")
    sound = {"sound_quality": text, "live": flag, "lo_fi": flag, "option_texts": {"live": text, "lo_fi": text}}
    described = {
        group: {
            "overall_text": text,
            "dimensions": {
                name: {"tags": List(text), "text": text} | (sound if name == AUDIO_EFFECTS else {})
                for name in dimensions
            },
        }
        for group, dimensions in DIMENSIONS.items()
    }
    return Features(
        {
            "id": text,
            "title": text,
            "artist": List(text),
            "genre": text,
            "album": text,
            **described,
            "structure": List({"label": text, "type": text, "lines": List(text), "rhyme": List(text)}),
            "timed_lyrics": List({"start": seconds, "text": text}),
            "timed_sections": List({"start": seconds, "section": text, "text": text}),
        }
    )


def load_rows(config: str = "demo", split: str = "test", *, dataset: str | os.PathLike[str] = "caimd") -> Any:
    """Load songs as a `datasets.Dataset` with the columns of `features`.

    Parameters
    ----------
    config, split
        ``"demo"`` with ``"test"`` in a clone; in a folder that `build` wrote, ``"v1"`` with ``"test"``, or
        ``"v2"`` with ``"test"``, ``"train"`` and ``"repeated"``. Others raise `UnknownNameError`.
    dataset
        A name as `repositories.find_repository` finds it, a folder, or an id on the Hub.
    """
    return load_split(dataset, config, split)


def effect_tags(quality: str | None, *, live: bool | None, lo_fi: bool | None) -> list[str]:
    """Return the tags of the closed question on sound, in the words of the release."""
    words = {"clear": CLEAR, "unclear": UNCLEAR}
    return [*([words[quality]] if quality else []), *([LIVE] if live else []), *([LO_FI] if lo_fi else [])]


def section_row(label: str, lines: Sequence[str], rhyme: Sequence[str]) -> dict[str, Any]:
    """Return one entry of `structure`."""
    kind = LyricSection(label, tuple(lines)).kind
    return {"label": label, "type": kind, "lines": list(lines), "rhyme": list(rhyme)}


def song_texts(row: Mapping[str, Any], *, numbered: bool = True) -> tuple[str, str]:
    """Return the words and the pattern of a song as texts with section headers, as the scores of lyrics take them."""
    words, pattern = (
        sections_text(sections_of_rows(row["structure"], field), numbered=numbered) for field in ("lines", "rhyme")
    )
    return words, pattern
