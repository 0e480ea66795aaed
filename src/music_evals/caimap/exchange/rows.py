"""Finished songs as rows of CaiMD and back, with the columns of `datasets.caimd.schema.features`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from music_evals.annotations import AUDIO_EFFECTS, DIMENSIONS
from music_evals.caimap.domain.values import (
    Description,
    Effects,
    FinishedSong,
    Section,
    Song,
    Structure,
    Tagged,
    TimedLine,
)
from music_evals.datasets.caimd.schema import effect_tags, section_row
from music_evals.errors import InvalidAnnotationError

__all__ = ["AS_PUBLISHED", "finished_of", "row_of"]

AS_PUBLISHED: Final = "as published"
"""The consent to what was not annotated in this study."""


def row_of(finished: FinishedSong) -> dict[str, Any]:
    """Return a finished song as a row."""
    song = finished.song
    return {
        "id": song.id,
        "title": song.title or None,
        "artist": list(song.artist),
        "genre": song.genre or None,
        "album": song.album or None,
        "professional": _described(finished.professional),
        "amateur": _described(finished.amateur),
        "structure": [section_row(part.label, part.lines, part.rhyme) for part in finished.structure.sections],
        "timed_lyrics": [{"start": line.start, "text": line.text} for line in song.timed_lyrics],
        "timed_sections": [
            {"start": line.start, "section": line.section, "text": line.text} for line in song.timed_sections
        ],
    }


def _described(description: Description) -> dict[str, Any]:
    effects = description.effects
    sound = {
        "tags": effect_tags(effects.quality, live=effects.live, lo_fi=effects.lo_fi),
        "text": None,
        "sound_quality": effects.quality,
        "live": effects.live,
        "lo_fi": effects.lo_fi,
        "option_texts": {"live": effects.live_text or None, "lo_fi": effects.lo_fi_text or None},
    }
    tagged = {name: {"tags": list(row.tags), "text": row.text or None} for name, row in description.dimensions.items()}
    return {
        "overall_text": description.overall_text,
        "dimensions": {
            name: sound if name == AUDIO_EFFECTS else tagged[name] for name in DIMENSIONS[description.group]
        },
    }


def finished_of(row: Mapping[str, Any], *, licence: str) -> FinishedSong:
    """Return the finished song of a row, by nobody yet (`services.managing.add_finished` says by whom).

    It has no recording, and ``row_of(finished_of(row)) == row``; the rows do not say the licence. Raises
    `InvalidAnnotationError` where a row breaks a rule of the values, lacks a column, or holds something that a finished
    song cannot.
    """
    try:
        finished = _finished(row, licence)
    except (KeyError, TypeError) as error:
        raise InvalidAnnotationError(f"a column is missing or of the wrong type ({error})") from error
    back = row_of(finished)
    lost = [name for name in back if back[name] != row[name]]
    if lost:
        raise InvalidAnnotationError(f"{', '.join(lost)} would not come back as they are")
    return finished


def _finished(row: Mapping[str, Any], licence: str) -> FinishedSong:
    sections = tuple(Section(part["label"], part["lines"], part["rhyme"]) for part in row["structure"])
    song = Song(
        id=row["id"],
        lines=tuple(line for section in sections for line in section.lines),
        duration_sec=0.0,
        title=row["title"] or "",
        artist=tuple(row["artist"]),
        genre=row["genre"] or "",
        album=row["album"] or "",
        timed_lyrics=tuple(TimedLine(line["start"], line["text"]) for line in row["timed_lyrics"]),
        timed_sections=tuple(TimedLine(line["start"], line["text"], line["section"]) for line in row["timed_sections"]),
        licence=licence,
    )
    professional, amateur = (_description(row[group], group) for group in ("professional", "amateur"))
    return FinishedSong(song, Structure(sections), professional, amateur, (), 0, 0, AS_PUBLISHED)


def _description(plain: Mapping[str, Any], group: str) -> Description:
    columns = plain["dimensions"]
    dimensions = {
        name: Tagged(columns[name]["tags"], columns[name]["text"] or "")
        for name in DIMENSIONS[group]
        if name != AUDIO_EFFECTS
    }
    sound = columns[AUDIO_EFFECTS]
    quality, texts = sound["sound_quality"], sound["option_texts"]
    clear = None if quality is None else quality == "clear"
    effects = Effects(clear, sound["live"], sound["lo_fi"], texts["live"] or "", texts["lo_fi"] or "")
    return Description(group, plain["overall_text"], dimensions, effects)
