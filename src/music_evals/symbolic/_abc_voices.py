"""The voices of an ABC tune, each with all its lines together."""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["voice_name", "whole_voices"]

_FIELD_OR_REMARK = re.compile(r"([A-Za-z+]:|%)")
_NAME = re.compile(r"\b(?:name|nm)\s*=\s*(?:\"([^\"]*)\"|(\S+))")


def voice_name(field: str) -> tuple[str, str | None]:
    """Return the key in the value of a ``V:`` field, and the name where it states one."""
    words = field.split(maxsplit=1)
    found = _NAME.search(field)
    return words[0] if words else "", (found[1] or found[2] or "") if found else None


def whole_voices(text: str) -> tuple[str, tuple[str, ...]]:
    r"""Return a tune with the lines of each voice together and the voices numbered, and the names of the voices.

    music21 begins a part at every ``V:`` field whose name is a number, in the header too, and takes others for remarks.

    Examples
    --------
    >>> text, names = whole_voices("X:1\nV:S name=\"Soprano\"\nV:B\nK:C\n[V:S] cd|\n[V:B] C2|\n[V:S] ef|\n[V:B] D2|\n")
    >>> print(text)
    X:1
    K:C
    V:1 name="Soprano"
     cd|
     ef|
    V:2
     C2|
     D2|
    <BLANKLINE>
    >>> names
    ('Soprano', 'B')

    """
    head: list[str] = []
    lines: dict[str, list[str]] = {}
    fields: dict[str, str] = {}
    names: dict[str, str] = {}
    now = None
    in_header = True
    for line, field in _lines(text):
        if field is not None:
            key, name = voice_name(field)
            fields.setdefault(key, field.strip()[len(key) :])
            if name is not None:
                names[key] = name
            if not in_header:
                now = key
        elif in_header or (now is None and _is_silent(line)):
            head.append(line)
            in_header = in_header and not line.startswith("K:")
        else:
            now = now or ""  # music before the first of the fields has a voice too
            lines.setdefault(now, []).append(line)
    heard = [key for key, some in lines.items() if not all(map(_is_silent, some))]
    parts = [f"V:{number}{fields.get(key, '')}\n{''.join(lines[key])}" for number, key in enumerate(heard, start=1)]
    whole = "".join([*head, *parts]) if len(parts) > 1 else text
    return whole, tuple(names.get(key, key) for key in heard)


def _is_silent(line: str) -> bool:
    return line.isspace() or _FIELD_OR_REMARK.match(line) is not None


def _lines(text: str) -> Iterator[tuple[str, str | None]]:
    """Yield each line and None, cut where a voice begins; there ``""`` and the value of the ``V:`` field."""
    for line in text.splitlines():
        if line.startswith("V:"):
            yield "", line[2:].partition("%")[0]
            continue
        before, *switches = re.split(r"\[V:([^\]]*)\]", line)
        if before or not switches:
            yield before + "\n", None
        for field, music in zip(switches[::2], switches[1::2], strict=True):
            yield "", field
            if music:
                yield music + "\n", None
