"""A copy of an ABC tune without all that a program plays in its own way.

abc2midi and abcjs play ornaments, grace notes, chord symbols, staccato, swing and tempo; what is compared here is the
notes that are written. The copy holds the fields X, M, L, K, V and P, the directives on voices and accidentals, and the
music without decorations, text in quotation marks and grace notes.

`with_start_signs` makes a second copy of that one, for tunes that the programs play otherwise than ours: it writes out
where section 4.8 of ABC 2.1 lets a repeat begin that has no start sign.
"""

from __future__ import annotations

import dataclasses
import re

KEPT_FIELDS = "XMLKVP"
KEPT_DIRECTIVES = re.compile(r"%%\s*(?:propagate-accidentals|score|staves)\b")
TEXT_BLOCK = re.compile(r"^%%begin(\w+).*?^%%end\1[^\n]*\n?", re.MULTILINE | re.DOTALL)
FIELD = re.compile(r"^([A-Za-z+]):")
REMARK = re.compile(r"(?<!\\)%.*")
INLINE_FIELD = re.compile(r"(\[[A-Za-z]:[^\]\n]*\])")
ORNAMENT = re.compile(
    r'"[^"\n]*"'  # chord symbols and other text
    r"|!(?:(?:[A-Za-z0-9.+<>()^/~_=# -]|:(?=[a-z]))*[A-Za-z0-9.+<>()^/~_=#-])?!|\+[A-Za-z0-9.<>()^]+\+"  # decorations
    r"|\{[^}\n]*\}"  # grace notes
    r"|y\d*"  # spacers
    r"|[~.H-Wh-w]"  # decorations of one letter
    r"|[`$!]|\*+(?=\s*$)"  # marks for the eye, and line breaks of old
)
INVISIBLE_BAR = re.compile(r"(?<=[|:])\s*\[\|\]|\[\|\](?=\s*[|:])")  # beside another bar, where abc2midi stumbles
ENDING = r"\d+(?:[,-]\d+)*\.?"
REPEAT_BAR = re.compile(rf"(\(\d+(?::\d*){{1,2}})|(?::+[|\]]*:*|\|[|\]]*:+|\[\||\|[|\]]+)\s*(?:\[?{ENDING})?")
SIGN = re.compile(
    r"(?P<line>^[A-Za-z+]:(?![|:]).*|^%.*)"  # a field or a directive on a line of its own
    r"|(?P<inline>\[[A-Za-z]:[^\]\n]*\])"
    r"|(?P<other>\(\d+(?::\d*)*|\[(?!\d)[^\]|:\n]*\]|[zxZX])"  # tuplets, chords and rests
    r"|(?P<ending>\[(?P<number>\d+))"
    r"|(?P<bar>(?:\[(?=\|)|\||:(?=[:|\]]))(?:[:|\]]|\[(?=[:|]))*)(?:[\s\\]*\[?(?P<passes>\d+))?"
    r"|(?P<note>[A-Ga-g][,']*)"
    r"|(?P<tie>-)",
    re.MULTILINE,
)
FIRST_ENDING = re.compile(rf"\|\s*\[?{ENDING}|\[{ENDING}")


def stripped(text: str, played: bool) -> str:  # noqa: FBT001
    """Return the copy of a tune.

    Parameters
    ----------
    text
        The text of one tune.
    played
        Keep repeats, endings and the order of the parts; else the copy is in written order.

    """
    lines, in_music = [], False
    for line in TEXT_BLOCK.sub("", text).splitlines():
        field = FIELD.match(line)
        if line.startswith("%"):
            kept = line if KEPT_DIRECTIVES.match(line) else ""
        elif field is not None and not _is_music(line, in_music):
            kept = REMARK.sub("", line).rstrip() if _is_kept(line, played, in_music) else ""
        else:
            kept = _music(line, played) if in_music else ""
        in_music = in_music or line.startswith("K:")
        lines += [kept] if kept else []
    return "\n".join([*lines, ""])


def _is_music(line: str, in_music: bool) -> bool:  # noqa: FBT001
    """Tell ``A::B`` and ``d:|`` from a field: a colon or a bar follows the colon."""
    return in_music and line[2:3] in {":", "|"}


def _music(line: str, played: bool) -> str:  # noqa: FBT001
    parts = INLINE_FIELD.split(REMARK.sub("", line))
    kept = []
    for i, part in enumerate(parts):
        if i % 2 == 0:
            kept.append(_notes(part, played))
        elif _is_kept(part[1:-1], played, in_music=True):
            kept.append(part)
    return "".join(kept).rstrip()


def _is_kept(field: str, played: bool, in_music: bool) -> bool:  # noqa: FBT001
    """Tell which fields stay; in the music P: names a part by one letter, and more words are a remark."""
    if field[0] == "P":
        return played and (not in_music or re.fullmatch(r"P:\s*[A-Za-z]\s*", REMARK.sub("", field)) is not None)
    return field[0] in KEPT_FIELDS


def _notes(part: str, played: bool) -> str:  # noqa: FBT001
    without = INVISIBLE_BAR.sub("", ORNAMENT.sub("", part)).replace("[|]", "|")
    return without if played else FIRST_ENDING.sub("|", REPEAT_BAR.sub(_plain_bar, without))


def _plain_bar(sign: re.Match[str]) -> str:
    return sign.group(1) or "|"  # a tuplet (p:q:r has colons and numbers too


@dataclasses.dataclass
class _Voice:
    """The passage of a voice that a repeat end would play again, while the signs are read."""

    begin: int | re.Match[str]  # the place in the text where it begins, or the bar line that it follows
    has_start: bool = False  # whether a start sign stands there
    in_last_ending: bool = False  # whether an ending for a later pass than the first has begun
    note: str = ""  # the last sign, where it is a single note
    tie: int | None = None  # the place of a tie after it


def with_start_signs(copy: str) -> str:
    """Return a copy that `stripped` made, with the start signs that section 4.8 of ABC 2.1 lets a tune leave out.

    "If an 'end of repeated section' is found without a previous 'start of repeated section', playback programs should
    restart the music from the beginning of the tune, or from the latest double bar line or end of repeated section":
    ``|:`` is written at that place. A double bar closes the section of a start sign after a second ending alone.

    Ties between single notes of different letters or octaves are left out. They join nothing (section 4.11), but abcjs
    lets them swallow a later note.
    """
    key = re.search(r"^K:.*$", copy, re.MULTILINE)
    head = key.end() if key is not None else len(copy)
    has_order = re.search(r"^P:", copy[:head], re.MULTILINE) is not None
    place = _after_fields(copy, head)
    edits: dict[int, tuple[int, str]] = {}  # start of what is replaced -> its end, and what takes its place
    voices: dict[str, _Voice] = {}
    name = ""
    for sign in SIGN.finditer(copy, place):
        field = sign["line"] or sign["inline"]
        if field is not None:
            named = re.match(r"\[?V:\s*([^\s\]]+)", field)
            name = named.group(1) if named is not None else name
            place = _after_fields(copy, sign.end())
            if has_order and name in voices and re.fullmatch(r"\[?P:\s*[A-Z]\s*\]?", field):
                _part(voices[name], place, copy, edits)
            continue
        if name not in voices:
            voices[name] = _Voice(sign if sign["bar"] else place)
        _read(voices[name], sign, edits)
    for start, (end, text) in sorted(edits.items(), reverse=True):
        copy = copy[:start] + text + copy[end:]
    return copy


def _after_fields(copy: str, place: int) -> int:
    """Return where the music goes on: behind the fields on lines of their own that follow."""
    following = re.compile(r"(?:\n(?:[A-Za-z+]:(?![|:]).*|%.*)(?=\n))*\n?").match(copy, place)
    return place if following is None else following.end()


def _read(voice: _Voice, sign: re.Match[str], edits: dict[int, tuple[int, str]]) -> None:
    """Read a sign of the music: take a tie out that joins nothing, and pass bar lines on."""
    if sign["note"]:
        if voice.tie is not None and voice.note != sign["note"]:
            edits[voice.tie] = voice.tie + 1, ""
        voice.note, voice.tie = sign["note"], None
    elif sign["tie"]:
        voice.tie = sign.start() if voice.note else None
    elif sign["bar"]:
        _bar(voice, sign, edits)
    elif sign["ending"]:
        voice.in_last_ending = sign["number"] != "1"
    else:
        voice.note, voice.tie = "", None


def _bar(voice: _Voice, sign: re.Match[str], edits: dict[int, tuple[int, str]]) -> None:
    """Read a bar line: write the start sign of the passage that it ends, and begin another one."""
    text, passes = sign["bar"], sign["passes"]
    goes_on = passes is not None and passes != "1"  # with the next ending
    if re.search(r":+[|\]\[]|^::", text):
        if not voice.has_start:
            start, end, sign_text = _start_sign(voice.begin)
            edits[start] = end, sign_text
        begins, has_start = not goes_on, text.endswith(":")
        voice.has_start = voice.has_start or goes_on
        voice.note, voice.tie = "", None
    else:
        has_start = text.endswith(":")
        is_double = len(text) > 1 and passes is None  # before an ending there is the passage that it belongs to
        begins = has_start or (is_double and (voice.in_last_ending or not voice.has_start))
    if begins:
        voice.begin, voice.has_start, voice.in_last_ending = sign, has_start, False
    if passes is not None:
        voice.in_last_ending = goes_on


def _part(voice: _Voice, place: int, copy: str, edits: dict[int, tuple[int, str]]) -> None:
    """Begin a passage at the label of a part, behind which a start sign that stands before it is moved."""
    begin, has_start = voice.begin, False
    if voice.has_start and not isinstance(begin, int) and not SIGN.search(copy[begin.end() : place].partition("P:")[0]):
        edits[begin.start("bar")] = begin.end("bar"), begin["bar"].rstrip(":") or ":|"
        edits[place], has_start = (place, "|:"), True
    voice.begin, voice.has_start, voice.in_last_ending = place, has_start, False


def _start_sign(begin: int | re.Match[str]) -> tuple[int, int, str]:
    """Return which part of the copy to replace, and the sign that takes its place."""
    if isinstance(begin, int):
        return begin, begin, "|:"
    text = begin["bar"]
    return begin.start("bar"), begin.end("bar"), "::" if ":" in text else "|:"
