"""The formats that song generators take and give: which one a text is in, and lyrics written in each of them.

================== ====================================================== ============================================
format             how it is known                                        what it loses
================== ====================================================== ============================================
``plain``          none of the others                                     nothing
``json``           JSON with lyrics in it, alone or between fences        nothing
``diffrhythm``     a time stamp before each line, no section and no data  sections: the whole song is one
``lrc``            time stamps, with sections or data such as             nothing
                   ``[ti:...]``
``suno``           sections in square brackets, capitals or with remarks  nothing that is sung
``ace-step``       sections in square brackets in small letters, with     nothing
                   instrumental ones as ``[inst]``, ``[instrumental]``
``songgeneration`` sections between semicolons; ``"gt_lyric"`` in JSON;   numbers of sections
                   lengths of instrumental ones, as ``[intro-short]``
``yue``            other sections in square brackets in small letters     nothing
================== ====================================================== ============================================

YuE and ACE-Step write sections that are sung alike; such a text is called ``yue``. Whatever a text is called, it is
read in the same way, by `music_evals.lyrics.normalise`. What the generators take is documented in the repositories
tencent-ailab/SongGeneration (LeVo; README.md, conf/vocab.yaml with ``[silence]``), ace-step/ACE-Step-1.5
(docs/en/Tutorial.md; the lyric tokenizer of ace-step/ACE-Step writes ``[zh]`` before a line), ASLP-lab/DiffRhythm2
(inference.py: ``[start]``, ``[stop]``, ``[end]``) and multimodal-art-projection/YuE (README.md); tags of Suno, as
``[End]``, at https://develephant.github.io/suno-songtags/.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from music_evals.annotations import LyricSection
from music_evals.errors import InvalidLyricsError, UnknownNameError
from music_evals.lyrics.headers import is_header, section_label

__all__ = ["AUTO", "FORMATS", "check_format", "find_format", "read_as", "write_lyrics"]

AUTO: Final = "auto"
"""Find out."""
FORMATS: Final = ("plain", "json", "lrc", "diffrhythm", "suno", "yue", "ace-step", "songgeneration")
"""Names of formats."""

_TAG = re.compile(r"^[^\S\n]*\[([^\[\]\n]{1,80})\][^\S\n]*$", re.MULTILINE)
_TIMED = re.compile("(?:intro|inst|outro)-(?:short|medium|long)|silence")
_PLAYED: Final = frozenset({"inst", "instrumental"})
_SECONDS_A_LINE: Final = 3
_SUNO_NAMES: Final = {"interlude": "Instrumental", "ending": "Outro"}
_TAG_NAMES: Final = {"ending": "outro"}


def check_format(name: str) -> None:
    """Refuse a name that is neither `AUTO` nor in `FORMATS`."""
    if name not in (AUTO, *FORMATS):
        raise UnknownNameError("format of lyrics", name, (AUTO, *FORMATS))


def find_format(text: str) -> str:
    r"""Return the format, out of `FORMATS`, that lyrics are in as a program or a language model wrote them.

    Examples
    --------
    >>> find_format("[Verse 1: soft piano]\n春眠不觉晓"), find_format("[00:10.00]春眠不觉晓")
    ('suno', 'diffrhythm')
    """
    if of_json(text) is not None:
        return "songgeneration" if '"gt_lyric"' in text else "json"
    lines = text.splitlines()
    if any(LINE_STAMPS.match(line) for line in lines):
        others = [line for line in lines if line.strip() and not LINE_STAMPS.match(line)]
        sung = [match[2] for line in lines if (match := LINE_STAMPS.match(line))]
        return "lrc" if others or any(map(is_header, sung)) else "diffrhythm"
    if of_semicolons(text) is not None or any(map(_TIMED.fullmatch, _TAG.findall(text))):
        return "songgeneration"
    tags = [tag for tag in _TAG.findall(text) if section_label(tag.partition(":")[0].partition(" - ")[0], marked=True)]
    if not tags:
        return "plain"
    if any(tag != tag.lower() or ":" in tag or " - " in tag for tag in tags):
        return "suno"
    return "ace-step" if _PLAYED & {tag.partition("-")[0] for tag in tags} else "yue"


def read_as(text: str, name: str) -> str:
    """Return lyrics of a given format as headers and lines; what `AUTO` finds is taken as it is.

    A text that is not in this format is an `InvalidLyricsError`, which tells which one it is in.
    """
    check_format(name)
    detected = find_format(text)
    chosen = detected if name == AUTO else name
    if chosen == "plain":
        return text
    if chosen == "songgeneration":
        read = of_json(text) or of_semicolons(text) or of_semicolons(f"{text};")  # one section needs no semicolon
    else:  # square brackets on lines of their own are headers anyway
        read = {"json": of_json, "lrc": of_lrc, "diffrhythm": of_lrc}.get(chosen, of_semicolons)(text)
    tagged = {"suno", "yue", "ace-step", "songgeneration"}
    if read is None and not (chosen in tagged and detected in tagged):
        raise InvalidLyricsError(
            f"expected lyrics in the format {chosen!r}, these are {detected!r}; name that, or 'auto'"
        )
    return text if read is None else read


def write_lyrics(sections: Sequence[LyricSection], name: str) -> str:
    r"""Write lyrics in a format out of `FORMATS`; a section without lines is an instrumental one.

    Time stamps are three seconds apart, for want of any music.

    Examples
    --------
    >>> song = [LyricSection("verse1", ("春眠不觉晓",)), LyricSection("interlude", ())]
    >>> write_lyrics(song, "suno")
    '[Verse 1]\n春眠不觉晓\n\n[Instrumental]'
    >>> write_lyrics(song, "ace-step")
    '[verse1]\n春眠不觉晓\n\n[inst]'
    """
    if name not in FORMATS:
        raise UnknownNameError("format of lyrics", name, FORMATS)
    if name == "plain":
        return "\n".join(line for section in sections for line in (f"({section.label})", *section.lines))
    if name == "json":
        rows = [{"section": section.label, "lines": list(section.lines)} for section in sections]
        return json.dumps({"lyrics": rows}, ensure_ascii=False)
    if name in {"lrc", "diffrhythm"}:
        timed, now = [], 0
        for each in sections:
            for line in (f"[{each.label}]", *each.lines)[name == "diffrhythm" :]:
                is_tag = line.startswith("[")
                now += 0 if is_tag else _SECONDS_A_LINE
                timed.append(line if is_tag else f"[{now // 60:02d}:{now % 60:02d}.00]{line}")
        return "\n".join(timed)
    tags = _tags(sections, name)
    if name == "songgeneration":
        return " ; ".join(f"[{tag}] {'.'.join(each.lines)}".strip() for tag, each in zip(tags, sections, strict=True))
    return "\n\n".join("\n".join((f"[{tag}]", *each.lines)) for tag, each in zip(tags, sections, strict=True))


def _tags(sections: Sequence[LyricSection], name: str) -> list[str]:
    tags = []
    for section in sections:
        label = section.label.rstrip("0123456789")
        number = section.label[len(label) :]
        if name == "suno":
            tags.append(f"{_SUNO_NAMES.get(label, label.title())}{f' {number}' if number else ''}")
            continue
        if name != "yue" and label == "interlude" and not section.lines:
            label, number = "inst", ""
        label = _TAG_NAMES.get(label, label)
        if name == "songgeneration":  # its vocabulary has lengths of what is not sung, and no numbers
            number = "" if section.lines else "-short"
        tags.append(label + number)
    return tags


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
            times = [
                60 * int(minutes) + int(seconds) + (float(f"0.{fraction}") if fraction else 0.0)
                for minutes, seconds, fraction in _FIELDS.findall(stamps[1])
            ]
            words, now = _STAMP.sub("", stamps[2]).strip(), times[0]
            timed += [(now, len(timed) + place, header) for place, header in enumerate(headers)]
            timed += [(time, len(timed) + place, words) for place, time in enumerate(times)]
            headers = []
        elif line.strip() and not _ID_TAG.match(line):  # a line without a time follows the one before
            timed += [(now, len(timed) + place, other) for place, other in enumerate((*headers, line))]
            headers = []
    return "\n".join([*(words for _, _, words in sorted(timed)), *headers])


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
