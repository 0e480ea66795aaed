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
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from music_evals.annotations import LyricSection
from music_evals.errors import InvalidLyricsError, UnknownNameError
from music_evals.lyrics._normal_headers import is_header, section_label
from music_evals.lyrics._song_formats import LINE_STAMPS, of_json, of_lrc, of_semicolons

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
    r"""Return the format that lyrics are in, out of `FORMATS`.

    Parameters
    ----------
    text
        The lyrics, as a program or a language model wrote them.

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

    Raises
    ------
    UnknownNameError
        No such format.
    InvalidLyricsError
        The text is not in this format; tells which one it is in.

    """
    check_format(name)
    detected = find_format(text)
    chosen = detected if name == AUTO else name
    if chosen == "plain":
        return text
    readers = {"json": of_json, "lrc": of_lrc, "diffrhythm": of_lrc, "songgeneration": _of_songgeneration}
    read = readers.get(chosen, of_semicolons)(text)  # square brackets on lines of their own are headers anyway
    tagged = {"suno", "yue", "ace-step", "songgeneration"}
    if read is None and not (chosen in tagged and detected in tagged):
        raise InvalidLyricsError(
            f"expected lyrics in the format {chosen!r}, these are {detected!r}; name that, or 'auto'"
        )
    return text if read is None else read


def write_lyrics(sections: Sequence[LyricSection], name: str) -> str:
    r"""Write lyrics in a format.

    Parameters
    ----------
    sections
        With their lines; one without lines is an instrumental one.
    name
        Out of `FORMATS`. Time stamps are three seconds apart, for want of any music.

    Raises
    ------
    UnknownNameError
        No such format.

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
    return _WRITERS[name](sections)


def _of_songgeneration(text: str) -> str | None:
    return of_json(text) or of_semicolons(text) or of_semicolons(f"{text};")  # one section needs no semicolon


def _written_plain(sections: Sequence[LyricSection]) -> str:
    return "\n".join(line for section in sections for line in (f"({section.label})", *section.lines))


def _written_json(sections: Sequence[LyricSection]) -> str:
    rows = [{"section": section.label, "lines": list(section.lines)} for section in sections]
    return json.dumps({"lyrics": rows}, ensure_ascii=False)


def _written_lrc(sections: Sequence[LyricSection]) -> str:
    return _stamped(line for section in sections for line in (f"[{section.label}]", *section.lines))


def _written_diffrhythm(sections: Sequence[LyricSection]) -> str:
    return _stamped(line for section in sections for line in section.lines)


def _stamped(lines: Iterable[str]) -> str:
    written, now = [], 0
    for line in lines:
        if line.startswith("["):
            written.append(line)
            continue
        now += _SECONDS_A_LINE
        written.append(f"[{now // 60:02d}:{now % 60:02d}.00]{line}")
    return "\n".join(written)


def _written_tags(tag: Callable[[LyricSection], str]) -> Callable[[Sequence[LyricSection]], str]:
    def written(sections: Sequence[LyricSection]) -> str:
        return "\n\n".join("\n".join((f"[{tag(section)}]", *section.lines)) for section in sections)

    return written


def _cut(label: str) -> tuple[str, str]:
    name = label.rstrip("0123456789")
    return name, label[len(name) :]


def _suno_tag(section: LyricSection) -> str:
    name, number = _cut(section.label)
    return f"{_SUNO_NAMES.get(name, name.title())}{f' {number}' if number else ''}"


def _small_tag(section: LyricSection) -> str:
    name, number = _cut(section.label)
    return f"{_TAG_NAMES.get(name, name)}{number}"


def _ace_tag(section: LyricSection) -> str:
    name, _ = _cut(section.label)
    return "inst" if name == "interlude" and not section.lines else _small_tag(section)


def _written_songgeneration(sections: Sequence[LyricSection]) -> str:
    """Write sections between semicolons; its vocabulary has lengths of what is not sung, and no numbers."""
    tags = [_cut(_ace_tag(section))[0] + ("" if section.lines else "-short") for section in sections]
    return " ; ".join(f"[{tag}] {'.'.join(each.lines)}".strip() for tag, each in zip(tags, sections, strict=True))


_WRITERS: Final[Mapping[str, Callable[[Sequence[LyricSection]], str]]] = MappingProxyType(
    {
        "plain": _written_plain,
        "json": _written_json,
        "lrc": _written_lrc,
        "diffrhythm": _written_diffrhythm,
        "suno": _written_tags(_suno_tag),
        "yue": _written_tags(_small_tag),
        "ace-step": _written_tags(_ace_tag),
        "songgeneration": _written_songgeneration,
    }
)
