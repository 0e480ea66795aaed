"""Lyrics in the formats that song generators take and give: JSON, LRC, and sections on one line.

What is read, each as headers and lines:

- JSON, alone or between code fences: an object with the lyrics under a name such as ``"lyrics"``, as text, as lines or
  as sections; sections as objects with a label and lines, or as an object of label -> lines.
- LRC (DiffRhythm, players): time stamps of lines ``[00:12.34]`` and of words ``<00:12.34>`` go, and so do tags such as
  ``[ti:...]``. A line with several stamps is sung at each of them.
- Sections between semicolons, their lines between full stops (SongGeneration): ``[intro-short] ; [verse] one.two``.

Tags in square brackets on lines of their own (Suno, YuE, ACE-Step) are headers like any other; see `_normal_headers`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from music_evals.lyrics._normal_headers import is_header, section_label

__all__ = ["LINE_STAMPS", "of_json", "of_lrc", "of_semicolons", "read_song_formats"]

_LYRICS: Final = (
    "lyrics",
    "lyric",
    "歌词",
    "sections",
    "section_list",
    "parts",
    "song",
    "text",
    "content",
    "words",
    "lines",
)
_LABELS: Final = ("section", "label", "tag", "type", "part", "name", "header", "段落")
_FENCED = re.compile(r"```\w*\s*\n(.*?)\n\s*```", re.DOTALL)
_TIME = r"\d{1,3}:\d{2}(?:[.:]\d{1,3})?"
LINE_STAMPS = re.compile(rf"^\s*((?:\[{_TIME}\]\s*)+)(.*)$")
_STAMP = re.compile(rf"\[{_TIME}\]|<{_TIME}>")
_FIELDS = re.compile(r"(\d+):(\d+)(?:[.:](\d+))?")
_ID_TAG = re.compile(r"^\s*\[(?:ti|ar|al|au|by|re|ve|la|tool|length|offset|#)\s*:[^\]\n]*\]\s*$", re.IGNORECASE)
_SECTION = re.compile(r"\[([^\[\]\n]{1,40})\]\s*(.*)", re.DOTALL)


def read_song_formats(text: str) -> str:
    """Return lyrics in JSON, LRC or between semicolons as headers and lines; other texts as they are."""
    for read in (of_json, of_lrc, of_semicolons):
        found = read(text)
        if found is not None:
            return found
    return text


def of_json(text: str) -> str | None:
    """Return the lyrics in a text of JSON; None where there are none."""
    fenced = _FENCED.search(text)
    candidates = [text.strip(), *([fenced[1].strip()] if fenced else []), text[text.find("{") : text.rfind("}") + 1]]
    for candidate in candidates:
        if candidate[:1] not in {"{", "["}:
            continue
        try:
            value = json.loads(candidate)
        except (ValueError, RecursionError):
            continue
        lines = [line for part in _lines(value) for line in part.split("\n")]
        if any(map(str.strip, lines)):
            return of_lrc("\n".join(lines)) or "\n".join(lines)
    return None


def _lines(value: Any) -> Iterator[str]:
    """Yield the lines of a value of JSON, headers among them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _lines(item)
    elif isinstance(value, dict):
        named = {str(key).strip().casefold(): part for key, part in value.items()}
        label = next((named[key] for key in _LABELS if isinstance(named.get(key), str)), None)
        if label is not None and section_label(label, marked=True) is not None:
            yield f"[{label}]"
        inner = next((named[key] for key in _LYRICS if key in named), None)
        if inner is not None:
            yield from _lines(inner)
            return
        for key, part in value.items():
            if section_label(str(key), marked=True) is not None:
                yield f"[{key}]"
                yield from _lines(part)


def of_lrc(text: str) -> str | None:
    """Return a text with time stamps without them, in the order in which it is sung."""
    lines = re.split(r"\r\n|\r|\n", text)
    if not any(LINE_STAMPS.match(line) for line in lines):
        return None
    timed: list[tuple[float, int, str]] = []  # when, in which order, what
    headers: list[str] = []  # they stand before the next line with a time
    now = 0.0
    for line in lines:
        stamps = LINE_STAMPS.match(line)
        if is_header(line) and stamps is None:
            headers.append(line)
        elif stamps is not None:
            times = [_seconds(found) for found in _FIELDS.findall(stamps[1])]
            words, now = _STAMP.sub("", stamps[2]).strip(), times[0]
            timed += _in_order(timed, [*((now, header) for header in headers), *((time, words) for time in times)])
            headers = []
        elif line.strip() and not _ID_TAG.match(line):  # a line without a time follows the one before
            timed += _in_order(timed, [(now, other) for other in (*headers, line)])
            headers = []
    return "\n".join([*(words for _, _, words in sorted(timed)), *headers])


def _in_order(timed: list[tuple[float, int, str]], new: list[tuple[float, str]]) -> list[tuple[float, int, str]]:
    """Return new lines with their places in the text, which decide at equal times."""
    return [(time, len(timed) + place, words) for place, (time, words) in enumerate(new)]


def _seconds(fields: tuple[str, str, str]) -> float:
    minutes, seconds, fraction = fields
    return 60 * int(minutes) + int(seconds) + (float(f"0.{fraction}") if fraction else 0.0)


def of_semicolons(text: str) -> str | None:
    """Return sections between semicolons, each with its tag before it, on lines of their own."""
    found = [_SECTION.fullmatch(part.strip()) for part in re.split("[;\uff1b]", text) if part.strip()]
    if len(found) < 2 or not all(part and section_label(part[1], marked=True) for part in found):
        return None
    lines = [[f"[{part[1]}]", *re.split(r"[.。\n]", part[2])] for part in found if part]
    return "\n".join(line.strip() for section in lines for line in section if line.strip())
