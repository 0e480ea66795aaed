"""Lyrics in the formats that song generators take and give: JSON, LRC, and sections on one line.

What is read, each as headers and lines:

- JSON, alone, between code fences or one value a line: an object with the lyrics under a name such as ``"lyrics"``, or
  ``"gt_lyric"`` (SongGeneration), as text, as lines or as sections; sections as objects with a label and lines, or as
  an object of label -> lines.
- LRC (DiffRhythm, players): time stamps of lines ``[00:12.34]`` and of words ``<00:12.34>`` go, and so do tags such as
  ``[ti:...]``. A line with several stamps is sung at each of them.
- Sections between semicolons, their lines between full stops (SongGeneration): ``[intro-short] ; [verse] one.two``,
  the whole text or a line of it. Tags that name no section, as ``[silence]``, stay on lines of their own.

Tags in square brackets on lines of their own (Suno, YuE, ACE-Step) are headers like any other; see `_normal_headers`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from music_evals.lyrics._normal_headers import is_header, section_label

__all__ = ["LINE_STAMPS", "of_json", "of_lrc", "of_semicolons"]

_LYRICS: Final = (
    "gt_lyric", "lyrics", "lyric", "歌词", "sections", "section_list", "parts", "song", "text", "content", "words",
    "lines",
)  # fmt: skip
_LABELS: Final = ("section", "label", "tag", "type", "part", "name", "header", "段落")
_TIME = r"\d{1,3}:\d{2}(?:[.:]\d{1,3})?"
LINE_STAMPS = re.compile(rf"^\s*((?:\[{_TIME}\]\s*)+)(.*)$")
_STAMP = re.compile(rf"\[{_TIME}\]|<{_TIME}>")
_FIELDS = re.compile(r"(\d{1,3}):(\d{2})(?:[.:](\d{1,3}))?")
_ID_TAG = re.compile(r"^\s*\[(?:ti|ar|al|au|by|re|ve|la|tool|length|offset|#)\s*:[^\]\n]*\]\s*$", re.IGNORECASE)
_SECTION = re.compile(r"[\[【\uff3b]([^\[\]【】\uff3b\uff3d\n]{1,40})[\]】\uff3d]\s*(.*)", re.DOTALL)


def of_json(text: str) -> str | None:
    """Return the lyrics in a text of JSON; None if there are none."""
    inner, fenced = text[text.find("{") : text.rfind("}") + 1], re.split(r"```\w*", text, maxsplit=2)[1:2]
    rows = ",".join(filter(str.strip, inner.splitlines()))  # JSON Lines
    for candidate in (*map(str.strip, (text, *fenced)), inner, f"[{rows}]"):
        if candidate[:1] not in {"{", "["}:
            continue
        try:
            lines = [line for part in _lines(json.loads(candidate)) for line in part.split("\n")]
        except (ValueError, RecursionError):
            continue
        if any(map(str.strip, lines)):
            lyrics = "\n".join(lines)
            return of_lrc(lyrics) or of_semicolons(lyrics) or lyrics
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
            if isinstance(part, str | list | dict) and section_label(str(key), marked=True) is not None:
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
            times = [_seconds(fields) for fields in _FIELDS.findall(stamps[1])]
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
    whole = _sections(text)
    if whole is not None:
        return whole
    lines = text.split("\n")
    read = [_sections(line) for line in lines]
    return None if not any(read) else "\n".join(new or line for new, line in zip(read, lines, strict=True))


def _sections(text: str) -> str | None:
    parts = re.split("[;\uff1b]", text.strip(" \n\r\t\"'\u201c\u201d"))
    matches = [_SECTION.fullmatch(part.strip()) for part in parts if part.strip()]
    is_one = len(parts) < 2 and not re.search("[\u4e00-\u9fff][.][\u4e00-\u9fff]", text)  # no format of this kind
    if is_one or not all(matches) or not any(part and section_label(part[1], marked=True) for part in matches):
        return None
    lines = [[f"[{part[1]}]", *re.split(r"[.\uff0e。\n]", part[2])] for part in matches if part]
    return "\n".join(line.strip() for section in lines for line in section if line.strip())
