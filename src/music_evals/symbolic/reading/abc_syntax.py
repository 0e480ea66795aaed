"""The small words of ABC: keys, clefs, meters, lengths, tuplets, tempi and orders of parts.

Sections are those of the ABC standard 2.1 (abcnotation.com/wiki/abc:standard:v2.1). What cannot be read raises an
`AbcError` that says what stands there; the readers add the file and the line.
"""

from __future__ import annotations

import codecs
import dataclasses
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple

LETTERS = {"C": 0, "D": 2, "E": 4, "F": 5, "G": 7, "A": 9, "B": 11}
FIFTHS = "FCGDAEB"
ACCIDENTALS = {"^^": 2, "^": 1, "=": 0, "_": -1, "__": -2}
"""Accidental -> alteration in semitones (section 4.2)."""

MODES = {"maj": 0, "ion": 0, "min": -3, "aeo": -3, "mix": -1, "dor": -2, "phr": -4, "lyd": 1, "loc": -5}
PIPES = 2  # the sharps of K:HP and K:Hp: the chanter sounds F sharp and C sharp, whatever is printed

FIELD = re.compile(r"(?![A-GXZa-gxz]:[|:])([A-Za-z]):([^%\n]*)")
"""An information field on a line of its own (section 3); a note before a repeat sign, such as ``G:|``, is none."""

LENGTH = r"\d*(?:/+\d*)?"
"""The length after a note (section 4.3)."""

DECORATION = r"(?:![^!|\s]{1,40}!|!\s*(?i:D\.?\s?[CS]|al\s|to\s|da\s)[^!|]{0,40}!)"
"""A decoration between exclamation marks (section 4.14); spaces stand only in signs such as ``!D.C. al fine!``."""

NOTE = re.compile(rf"(\^\^|\^|__|_|=)?([A-Ga-g])([,']*)({LENGTH})")
"""A note: its accidental, letter, octave marks and length (sections 4.1 to 4.3)."""


_CLEF = re.compile(
    r"(?:clef\s*=\s*)?(?P<name>treble|bass|tenor|alto|mezzo|soprano|baritone|perc|none|auto|[GCF](?=[1-5]))"
    r"[1-5]?(?P<octave>[+-](?:8|15))?(?=\s|$)",
    re.IGNORECASE,
)
_PROPERTY = re.compile(
    r"\b(?P<name>clef|middle|m|octave|transpose|t|shift|sound|score|instrument|stafflines|staffscale|style|stems?|gstem|dyn"
    r"|lyrics|gchord|cue|name|nm|subname|sname|snm|spc|map|merge|volinc|program)=(?P<value>\"[^\"]*\"|\S*)"
)
_OWN = re.compile(r"(\^\^|\^|__|_|=)([A-Ga-g])")
_VOICE_NAME = re.compile(r"\b(?:name|nm)\s*=\s*(?:\"([^\"]*)\"|(\S+))")
MAX_PART_ORDER = 1000  # parts of a tune in the order of playing


class AbcError(ValueError):
    """Something in a tune that is not read."""


class TuneLine(NamedTuple):
    """A line of the text, without its remark."""

    number: int  # from 1
    text: str
    ends_tune: bool = False  # whether it is empty


@dataclasses.dataclass(frozen=True)
class Key:
    """A key: the alteration of each letter, and what it is called."""

    alters: Mapping[str, int]
    fifths: int | None  # of its signature; None for one that is in no circle of fifths
    is_minor: bool = False


def decode_abc(content: bytes) -> tuple[str, str]:
    """Return the text of a file and its encoding: UTF-8, with a byte order mark or without, or Latin-1."""
    codec = "utf-8-sig" if content.startswith(codecs.BOM_UTF8) else "utf-8"
    try:
        return content.decode(codec), codec
    except UnicodeDecodeError:
        return content.decode("latin-1"), "latin-1"


def signature_alters(fifths: int) -> dict[str, int]:
    """Return how a key signature alters each letter, in semitones."""
    # each fifth up raises one letter more, in the order of FIFTHS, and every seventh begins again with F
    return {letter: (fifths + 6 - index) // 7 for index, letter in enumerate(FIFTHS)}


def read_key(text: str) -> Key | None:
    """Read the value of a ``K:`` field (section 3.1.14); None where it names a clef or a transposition alone.

    A tonic with a mode, of which three letters count, or ``m``; then accidentals of its own, or ``exp`` and nothing
    but them; ``HP`` and ``Hp``; ``none``, or nothing at all, for no signature.
    """
    text = text.strip()
    if not text or re.match(r"none\b", text, re.IGNORECASE):
        return Key(signature_alters(0), None)
    if re.match(r"H[Pp](?![A-Za-z])", text):
        return Key(signature_alters(PIPES), PIPES)
    if _CLEF.match(text) or _PROPERTY.match(text):
        return None
    tonic = re.match(r"([A-G])([#b]?)", text)
    if tonic is None:
        if _OWN.match(text):
            return _own_key(signature_alters(0), text)
        raise AbcError(f"the key {text!r} is not one")
    rest = text[tonic.end() :]
    mode = re.match(r"\s*([A-Za-z]+)", rest)
    word = mode[1].lower() if mode else ""
    if mode and (word == "exp" or _CLEF.match(rest.lstrip()) or _PROPERTY.match(rest.lstrip())):
        word = ""
    elif mode:
        rest = rest[mode.end() :]
    if word and word != "m" and word[:3] not in MODES:
        raise AbcError(f"the mode {word!r} of the key {text!r} is not one")
    # C major has no signature: places on the line of fifths count from C, and a sharp is seven further
    fifths = FIFTHS.index(tonic[1]) - 1 + 7 * ((tonic[2] == "#") - (tonic[2] == "b"))
    fifths += MODES["min"] if word == "m" else MODES.get(word[:3], 0)
    is_minor = word == "m" or word[:3] in {"min", "aeo"}
    explicit = re.match(r"\s*exp\b", rest, re.IGNORECASE) or re.match(r"\s*exp(?=[\^_=])", rest, re.IGNORECASE)
    alters = signature_alters(0 if explicit else fifths)
    own = _own_key(alters, _PROPERTY.sub("", rest))
    return own if explicit or own.alters != alters else Key(alters, fifths, is_minor)


def _own_key(alters: Mapping[str, int], text: str) -> Key:
    """Return a key with accidentals of its own."""
    changed = dict(alters) | {letter.upper(): ACCIDENTALS[sign] for sign, letter in _OWN.findall(text)}
    fifths = next((n for n in range(-7, 8) if signature_alters(n) == changed), None)
    return Key(changed, fifths)


def octave_shift(text: str) -> int | None:
    """Return how many semitones a ``K:`` or ``V:`` field moves what sounds, None where it says nothing of it.

    By ``octave=``, by ``transpose=`` and by clefs with ``+8``, ``-8`` (section 4.6).
    """
    moved = None
    named = re.search(r"\bclef\s*=", text)
    clef = _CLEF.match(text, named.start()) if named else _clef_word(text)
    if clef is not None:
        size = clef["octave"] or "0"
        moved = 12 * {"+8": 1, "-8": -1, "+15": 2, "-15": -2}.get(size, 0)
    for item in _PROPERTY.finditer(text):
        name = item["name"].lower()
        if name in {"shift", "sound", "score", "instrument"}:
            raise AbcError(f"{item[0]!r} moves what sounds, and is in no standard; write transpose=")
        if name in {"octave", "transpose"}:
            if not re.fullmatch(r"[+-]?\d{1,3}", item["value"]):
                raise AbcError(f"{item[0]!r} is no whole number")
            moved = (moved or 0) + int(item["value"]) * (12 if name == "octave" else 1)
    return moved


def _clef_word(text: str) -> re.Match[str] | None:
    """Return the clef that stands as a word of its own."""
    plain = re.sub(r'"[^"]*"', "", text)
    for place in (match.start() for match in re.finditer(r"(?:^|(?<=\s))\S", plain)):
        if clef := _CLEF.match(plain, place):
            return clef
    return None


def read_meter(text: str) -> tuple[int, int] | None:
    """Read the value of an ``M:`` field (section 3.1.6); None for ``none``."""
    text = text.strip().strip('"').strip()
    named = {"": None, "none": None, "free": None, "C": (4, 4), "c": (4, 4), "C|": (2, 2), "c|": (2, 2)}
    if text in named:
        return named[text]
    fraction = re.fullmatch(r"\(?\s*(\d+(?:[\s+]+\d+)*)\s*\)?\s*/\s*(\d+)", text)
    if fraction is None:
        raise AbcError(f"the meter {text!r} is not one")
    upper, lower = sum(map(int, re.findall(r"\d+", fraction[1]))), int(fraction[2])
    if upper < 1 or lower < 1 or lower & (lower - 1):
        raise AbcError(f"the meter {text!r} is not one")
    return upper, lower


def read_unit(text: str) -> Fraction:
    """Read the value of an ``L:`` field: the unit note length in quarters (section 3.1.7)."""
    fraction = re.fullmatch(r"\s*(\d+)\s*(?:/\s*(\d+))?\s*", text)
    if fraction is None or not int(fraction[1]) or not int(fraction[2] or 1):
        raise AbcError(f"the unit note length {text.strip()!r} is not one")
    return 4 * Fraction(int(fraction[1]), int(fraction[2] or 1))


def default_unit(meter: tuple[int, int] | None) -> Fraction:
    """Return the unit note length in quarters where no ``L:`` states one: a sixteenth below 3/4, else an eighth."""
    return Fraction(1, 4) if meter is not None and Fraction(*meter) < Fraction(3, 4) else Fraction(1, 2)


def read_length(text: str) -> Fraction:
    """Read the length of a note in units: ``3``, ``3/2``, ``/``, ``//`` (section 4.3)."""
    upper, slash, lower = text.partition("/")
    if not slash:
        length = Fraction(int(upper or 1))
    else:
        halvings = 1 + lower.count("/")
        lower = lower.strip("/")
        divisor = int(lower) if lower else 2**halvings
        length = Fraction(int(upper or 1), divisor) if divisor else Fraction(0)
    if not length:
        raise AbcError(f"the length {text!r} is no time at all")
    return length


def read_tuplet(text: str, meter: tuple[int, int] | None) -> tuple[Fraction, int]:
    """Read ``(p:q:r``: the factor of its notes, and how many they are (section 4.13)."""
    numbers = [int(part) if part else 0 for part in text[1:].split(":")]
    p, q, r = [*numbers, 0, 0][:3]
    if not p:
        raise AbcError(f"the tuplet {text!r} is of no notes")
    is_compound = meter is not None and meter[0] % 3 == 0 and meter[0] > 3
    # in the time of how many notes, after the table of section 4.13
    q = q or {2: 3, 3: 2, 4: 3, 6: 2, 8: 3}.get(p, 3 if is_compound else 2)
    return Fraction(q, p), r or p


def read_tempo(text: str, unit: Fraction) -> float | None:
    """Read the value of a ``Q:`` field in quarters a minute (section 3.1.8); None where it holds words alone."""
    text = re.sub(r'"[^"]*"', "", text).strip()
    beats, _, rate = text.rpartition("=")
    speed = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*", rate)
    if speed is None:
        return None
    lengths = [Fraction(int(a), int(b)) for a, b in re.findall(r"(?<!\d)(\d+)\s*/\s*(\d+)", beats) if int(b)]
    beat = 4 * sum(lengths, Fraction(0)) if lengths else unit
    bpm = float(beat) * float(speed[1])
    return bpm if 0 < bpm < float("inf") else None


def read_part_order(text: str) -> str:
    """Read the ``P:`` field of a header, such as ``A2(BC)3``, as the letters of its parts (section 3.1.9)."""
    text = re.sub(r"[\s.,]", "", text)
    if not re.fullmatch(r"(?:[A-Za-z]\d*|\(|\)\d*)*", text):
        raise AbcError(f"the order of parts {text!r} is not one")
    # a string for each bracket that is open; a closing one is added to the string around it
    stack = [""]
    for item in re.finditer(r"([A-Za-z])(\d*)|(\()|\)(\d*)", text):
        letter, times, opening, group_times = item.groups()
        if opening:
            stack.append("")
            continue
        if letter is None and len(stack) == 1:
            raise AbcError(f"the order of parts {text!r} closes a bracket that is not open")
        repeated = (letter or stack.pop()) * min(int(times or group_times or 1), MAX_PART_ORDER)
        stack[-1] += repeated
        if len(stack[-1]) > MAX_PART_ORDER:
            raise AbcError(f"the order of parts {text[:40]!r} names more than {MAX_PART_ORDER} parts")
    if len(stack) > 1:
        raise AbcError(f"the order of parts {text!r} has a bracket that is not closed")
    return stack[0]


def note_pitch(letter: str, octaves: str, alter: int) -> int:
    """Return the MIDI number of a note: ``C`` is 60, ``c`` 72."""
    octave = (5 if letter.islower() else 4) + octaves.count("'") - octaves.count(",")
    return 12 * (octave + 1) + LETTERS[letter.upper()] + alter


def voice_name(field: str) -> tuple[str, str | None]:
    """Return the key in the value of a ``V:`` field, and the name where it states one (section 7.1)."""
    words = field.split(maxsplit=1)
    name = _VOICE_NAME.search(field)
    return words[0] if words else "", (name[1] or name[2] or "") if name else None


def tune_starts(text: str) -> list[tuple[int | None, int]]:
    """Return the number of each tune in the text of a file, None where its ``X:`` field states none, and its place."""
    return [
        (int(number[1]) if number[1] else None, number.start())
        for number in re.finditer(r"^X:[ \t]*(\d*)", text, re.MULTILINE)
    ]


def tune_end(text: str, start: int = 0) -> int:
    """Return where the tune at a place ends: at an empty line after its header, at the next tune, or at the end."""
    after = re.compile(r"^X:", re.MULTILINE).search(text, start + 1)
    stop = after.start() if after else len(text)
    key = re.compile(r"^K:", re.MULTILINE).search(text, start, stop)  # an empty line within the header is let pass
    if key is None:
        raise AbcError("no K: field, which ends the header of every tune")
    empty = re.compile(r"^[ \t]*\r?\n", re.MULTILINE).search(text, key.end(), stop)
    return empty.start() if empty else stop


def file_head(text: str) -> str:
    """Return the lines before the first tune of a file that hold for all of its tunes (section 2.2.2)."""
    starts = tune_starts(text)
    lines = text[: starts[0][1]].splitlines(keepends=True) if starts else []
    return "".join(line for line in lines if re.match(r"[ABCDFGHILMNORSUZm]:|%", line))


def tune_lines(text: str) -> list[TuneLine]:
    """Return the lines of a text without remarks; blocks of text and continuations of fields are put in order."""
    lines: list[TuneLine] = []
    block = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if block:
            block = "" if line.startswith(f"%%end{block}") else block
            continue
        begin = re.match(r"%%begin(\w+)", line)
        if begin:
            block = begin[1]
        elif line.startswith("%%"):
            lines.append(TuneLine(number, f"I:{line[2:]}"))
        elif line.startswith("+:") and lines:
            lines[-1] = lines[-1]._replace(text=f"{lines[-1].text} {line[2:]}")
        elif not line.startswith("%"):
            lines.append(TuneLine(number, re.sub(r"(?<!\\)%.*", "", line), not line.strip()))
    return lines
