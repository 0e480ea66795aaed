"""Songs of our own in the form of CaiMD: read from `demo.yaml`, their rhymes and times worked out.

They are there so that loading, scoring and plotting can be tried and tested anywhere. They are not songs of CaiMD, and
no figure of them says anything about it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from music_evals.annotations import AUDIO_EFFECTS, DIMENSIONS, LyricSection, sections_of_text
from music_evals.datasets.caimd.schema import CLEAR, LIVE, LO_FI, SECTION_TYPES, UNCLEAR, effect_tags, section_row
from music_evals.errors import InvalidInputError
from music_evals.yaml_files import packaged_yaml

SOURCE: Final = "demo.yaml"
"""Package data beside this module."""

TOKEN_LABELS: Final = {"pre-chorus": "prechorus", "ending": "outro"}
"""Section words of the release's timed sections, where they are not those of its structure."""

SAME: Final = "="
"""In the source, the amateur's text on the lyrics where it is the professional's."""

Marks = Callable[[Sequence[str]], Sequence[bool]]


def demo_rows(marks: Marks | None = None) -> list[dict[str, Any]]:
    """Return the demo songs as rows of `schema.features`."""
    if marks is None:
        from music_evals.lyrics.rhyme import rhyme_marks

        marks = rhyme_marks
    return [_row(song, marks) for song in packaged_yaml("music_evals.datasets.caimd", SOURCE)]


def _row(song: Mapping[str, Any], marks: Marks) -> dict[str, Any]:
    try:
        sections = read_lyrics(song["lyrics"])
        timed = list(_timed(sections, song["timing"]))
        return {
            **{name: song[name] for name in ("id", "title", "artist", "genre", "album")},
            **_descriptions(song),
            "structure": [
                section_row(
                    section.label,
                    section.lines,
                    [
                        line_pattern(line, rhymes=bool(mark))
                        for line, mark in zip(section.lines, marks(section.lines), strict=True)
                    ],
                )
                for section in sections
            ],
            "timed_lyrics": [{"start": start, "text": text} for start, _, text in timed],
            "timed_sections": [{"start": start, "section": kind, "text": text} for start, kind, text in timed],
        }
    except (KeyError, InvalidInputError) as error:
        raise InvalidInputError(f"{SOURCE}, song {song.get('id')!r}: {error}") from error


def read_lyrics(text: str) -> tuple[LyricSection, ...]:
    """Read a text with section headers, in which a header without lines repeats the section of that label."""
    sections: list[LyricSection] = []
    for written in sections_of_text(text.strip()):
        label = written.label
        earlier = (section for section in reversed(sections) if section.label == label)
        section = written if written.lines else next(earlier, None)
        if section is None:
            raise InvalidInputError(f"({label}) has no lines and there is no earlier one to repeat")
        if section.kind not in SECTION_TYPES:
            raise InvalidInputError(f"({label}) must be one of {', '.join(SECTION_TYPES)} and a number")
        sections.append(section)
    return tuple(sections)


def line_pattern(line: str, *, rhymes: bool) -> str:
    """Return the pattern of a line of Chinese characters and spaces.

    Examples
    --------
    >>> line_pattern("春眠 不觉晓", rhymes=True)
    'cc ccR'
    """
    words = line.split(" ")
    if not all(word and all("\u4e00" <= letter <= "\u9fff" for letter in word) for word in words):
        raise InvalidInputError(f"a line must hold Chinese characters and single spaces only, got {line!r}")
    pattern = " ".join("c" * len(word) for word in words)
    return pattern[:-1] + "R" if rhymes else pattern


def _timed(sections: Sequence[LyricSection], timing: Mapping[str, float]) -> Iterator[tuple[float, str, str]]:
    """Yield (start in seconds, rounded to a hundredth, section word, line)."""
    clock = timing["start"]
    for number, section in enumerate(sections):
        clock += timing["section"] if number else 0.0
        for line in section.lines:
            yield round(clock, 2), TOKEN_LABELS.get(section.kind, section.kind), line
            pauses = line.count(" ")
            clock += (len(line) - pauses) * timing["character"] + pauses * timing["pause"] + timing["line"]


def _descriptions(song: Mapping[str, Any]) -> dict[str, Any]:
    reported = {group: _description(song[group], group) for group in DIMENSIONS}
    # as in the release, where the theme was written beforehand and mostly left as it was by both annotators
    ours, theirs = (reported[group]["dimensions"]["lyric_themes"] for group in DIMENSIONS)
    if theirs["text"] == SAME:
        theirs["text"] = ours["text"]
    return reported


def _description(reported: Mapping[str, Any], group: str) -> dict[str, Any]:
    unknown = set(reported) - set(DIMENSIONS[group]) - {"overall", "live", "lo_fi"}
    if unknown:
        raise InvalidInputError(f"{group} has no dimension {', '.join(sorted(unknown))}")
    dimensions = {}
    for name in DIMENSIONS[group]:
        tags, _, text = (part.strip() for part in reported[name].partition("|"))
        dimensions[name] = {"tags": tags.split("、"), "text": text or None}
    tags = reported[AUDIO_EFFECTS].split("、")
    quality = {CLEAR: "clear", UNCLEAR: "unclear"}.get(tags[0])
    live, lo_fi = LIVE in tags, LO_FI in tags
    if tags != effect_tags(quality, live=live, lo_fi=lo_fi):
        raise InvalidInputError(f"{AUDIO_EFFECTS} must be {CLEAR} or {UNCLEAR}, then {LIVE}, then {LO_FI}, got {tags}")
    remarks = {"live": reported.get("live"), "lo_fi": reported.get("lo_fi")}
    dimensions[AUDIO_EFFECTS] = {
        "tags": tags, "text": None, "sound_quality": quality, "live": live, "lo_fi": lo_fi, "option_texts": remarks
    }  # fmt: skip
    return {"overall_text": reported["overall"], "dimensions": dimensions}
