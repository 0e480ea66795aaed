"""CaiMD rows as the JSON of the paper: theme, sections before their lines, c/R strings, descriptions.

The annotators of MuChin write a song as text: a section header, then its lines, and the same with a pattern in place of
each line; theme and descriptions stand beside them, each dimension with its tags and text, and all of them run together
as one text. `to_json` writes that, `from_json` reads it back to the same row. What follows from something else (the
theme, the run-together texts, the names of the dimensions) is written for readers and checked when it is read.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

from music_evals.annotations import AUDIO_EFFECTS, DIMENSIONS, sections_of_text, theme_of_row
from music_evals.datasets.caimd.schema import section_row, song_texts
from music_evals.errors import InvalidInputError, InvalidTagsError, MusicEvalsError

__all__ = ["from_json", "joined_description", "to_json"]

_META: Final = ("id", "title", "artist", "genre", "album")
_EFFECT_KEYS: Final = ("sound_quality", "live", "lo_fi")
_REMARKS: Final = ("live", "lo_fi")
_TIMED: Final = {"timed_lyrics": ("start", "text"), "timed_sections": ("start", "section", "text")}


def joined_description(description: Mapping[str, Any], group: str) -> str:
    """Return a description as one text: the overall text, then a line for each dimension with its tags and its text."""
    lines = [description["overall_text"]] if description["overall_text"] else []
    for name, dimension in DIMENSIONS[group].items():
        reported = description["dimensions"][name]
        remarks = reported.get("option_texts") or {}
        texts = [reported["text"], *(remarks.get(key) for key in _REMARKS)]
        lines.append(f"{dimension.chinese}：{'、'.join(reported['tags'])}。{''.join(text for text in texts if text)}")
    return "\n".join(lines)


def to_json(row: Mapping[str, Any], *, indent: int | None = 2) -> str:
    """Write a row as JSON."""
    try:
        words, patterns = song_texts(row)
        reported = {
            **{name: row[name] for name in _META},
            "theme": theme_of_row(row),
            "lyrics": words,
            "rhyme": patterns,
            "descriptions": {
                group: {
                    "overall_text": row[group]["overall_text"],
                    "aspects": {
                        name: {"name": dimension.chinese, **_dimension(row[group]["dimensions"][name], name)}
                        for name, dimension in dimensions.items()
                    },
                    "joined": joined_description(row[group], group),
                }
                for group, dimensions in DIMENSIONS.items()
            },
            **{name: [{key: entry[key] for key in keys} for entry in row[name]] for name, keys in _TIMED.items()},
        }
        if _structure(words, patterns) != list(row["structure"]):
            raise InvalidInputError("its sections do not read back: a line looks like a header, or a type is wrong")
        return json.dumps(reported, ensure_ascii=False, indent=indent, allow_nan=False)
    except MusicEvalsError:
        raise
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise InvalidInputError(
            f"expected a row of caimd with the columns of schema.features() and finite times; found {error!r}"
        ) from error


def _dimension(reported: Mapping[str, Any], name: str) -> dict[str, Any]:
    tags = reported["tags"]
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise InvalidTagsError(f"tags of {name} must be a list of strings, got {tags!r:.80}")
    columns: dict[str, Any] = {"tags": list(tags), "text": reported["text"]}
    if name == AUDIO_EFFECTS:
        remarks = reported["option_texts"]
        columns |= {key: reported[key] for key in _EFFECT_KEYS}
        # a key that is not there stays so: the released songs leave it out where nothing was remarked
        columns["option_texts"] = None if remarks is None else dict(remarks)
    return columns


def from_json(text: str) -> dict[str, Any]:
    """Read a row from the JSON of `to_json`."""
    try:
        reported = json.loads(text, parse_constant=_refuse)
        row = {
            **{name: reported[name] for name in _META},
            **{group: _read_description(reported["descriptions"][group], group) for group in DIMENSIONS},
            "structure": _structure(reported["lyrics"], reported["rhyme"]),
            **{name: [_timed(entry, keys) for entry in reported[name]] for name, keys in _TIMED.items()},
        }
        derived = {
            "theme": (reported["theme"], theme_of_row(row)),
            **{
                f"descriptions/{group}/joined": (part["joined"], joined_description(row[group], group))
                for group, part in reported["descriptions"].items()
            },
        }
    except MusicEvalsError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InvalidInputError(f"expected the JSON of paper_json.to_json, got something else ({error!r})") from error
    for place, (here, there) in derived.items():
        if here != there:
            raise InvalidInputError(
                f"{place} is {here!r:.60}, but the aspects say {there!r:.60}; change it there, or both"
            )
    return row


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no time")


def _read_description(reported: Mapping[str, Any], group: str) -> dict[str, Any]:
    aspects = reported["aspects"]
    for name, dimension in DIMENSIONS[group].items():
        if aspects[name]["name"] != dimension.chinese:
            raise ValueError(f"aspect {name} is called {aspects[name]['name']!r}, expected {dimension.chinese!r}")
    return {
        "overall_text": reported["overall_text"],
        "dimensions": {name: _dimension(aspects[name], name) for name in DIMENSIONS[group]},
    }


def _structure(words: str, patterns: str) -> list[dict[str, Any]]:
    sung, marked = sections_of_text(words), sections_of_text(patterns)
    here, there = ([(part.label, len(part.lines)) for part in parts] for parts in (sung, marked))
    if here != there:
        raise InvalidInputError(
            f"lyrics and rhyme must have the same sections and numbers of lines, got {here} and {there}"
        )
    return [section_row(part.label, part.lines, rhyme.lines) for part, rhyme in zip(sung, marked, strict=True)]


def _timed(entry: Mapping[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    read = {key: entry[key] for key in keys}
    if (
        isinstance(read["start"], bool)
        or not isinstance(read["start"], int | float)
        or not math.isfinite(read["start"])
    ):
        raise TypeError(f"start must be a finite number of seconds, got {read['start']!r}")
    return {**read, "start": float(read["start"])}
