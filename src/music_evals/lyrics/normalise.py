r"""Generated lyrics, as language models really write them, in the form that the released songs have.

The released form is one header ``(verse1)`` a section, then one phrase a line: Chinese characters, and single spaces
for pauses. `normalise_lyrics` brings a text into it by the `STEPS` below, in their order, each of them a function of
the whole text, and tells what each one changed. It is off for parity with the published scores, where such texts score
what the authors' code gives them.

Nothing is invented: no section, line or word is added, a repeat mark is not written out (but a line of LRC with several
times is sung at each), a text in which no header is found stays without one. Text in the released form stays as it is,
and a second pass changes nothing.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import re
import unicodedata
from collections.abc import Callable, Mapping
from itertools import chain
from types import MappingProxyType
from typing import Any, Final

from music_evals.errors import UnsupportedTypeError, importing
from music_evals.lyrics import remarks
from music_evals.lyrics.headers import bare, fold, is_header, is_released_header, split_headers
from music_evals.lyrics.remarks import drop_reasoning, is_fence
from music_evals.lyrics.song_formats import AUTO, find_format, read_as

__all__ = ["FORMAT_FOUND", "STEPS", "Normalised", "drop_reasoning", "normalise_lyrics"]

FORMAT_FOUND: Final = "format: "
"""How a change begins that names the format of a text."""

_HAN = "\u4e00-\u9fff"
_RELEASED_LINE = re.compile(f" ?[{_HAN}]+(?: [{_HAN}]+)* ?")
_DIGIT, _STOP, _LEFT, _RIGHT, _COLON = "[0-9\uff10-\uff19]", "[.\uff0e]", "[(\uff08]", "[)\uff09]", "[:\uff1a]"
_LIST_MARK = re.compile(
    r"^(\s*+#*+\s*+(?:\*\*|__)?)\s*+(?:(?:"
    r"[-*+\u2022\u00b7\u25cf\u25aa\u25e6>\u2013\u2014]\s++"  # bullets, quotes
    r"|[\u2460-\u249b]"  # digits in a circle, in brackets, with a full stop
    rf"|{_DIGIT}{{1,3}}\s*(?:{_STOP}|{_RIGHT}|{_COLON}|、)(?!{_DIGIT})|{_LEFT}{_DIGIT}{{1,3}}{_RIGHT})\s*+)+"
)
_HEADER_MARK = re.compile(rf"^\s*{_LEFT}?[一二三四五六七八九十]{{1,3}}(?:{_RIGHT}\s*+、?|、|{_STOP})\s*+(?=\S)")
_BOLD_LINE = re.compile(rf"^\s*(\*\*|__)((?:(?!\1).)+)\1\s*+({_COLON}?)\s*+$")
_TAG = re.compile(
    r"</[^<>\n]{1,40}>|\[/[^\[\]\n]{1,40}\]|<(?:b|i|u|em|s|strong|p|div|span|center|font|h[1-6])(?:\s[^<>\n]*)?>",
    re.IGNORECASE,
)
_REPEAT = re.compile(f"(?:^| |(?<=[{_HAN}]))[xX][0-9]{{1,2}}$")
_SLASH = re.compile("(?<![A-Za-z0-9/|]) ?[/|]{1,2} ?(?![A-Za-z0-9/|])")
_BRACKETED = re.compile(r"[(\[【<][^()\[\]【】<>]{0,80}[/|]")


@dataclasses.dataclass(frozen=True)
class Normalised:
    """A text in the released form, and what was done to it.

    Parameters
    ----------
    text
        Headers and lines, without a newline at the end; empty where nothing of the song was left.
    changes
        One sentence a step that changed something, in the order of `STEPS`; empty for a text in the released form.
    foreign
        Words that are not Chinese characters, in their order: Latin, numbers, kana. They stay in the text as they are,
        where the scorer counts them as symbols that no pattern has.
    removed_lines
        Lines with words that were taken out as no part of the song (reasoning, what stands around code fences, remarks
        before and after), as they then stood and in their order.
    stage_tags
        Lines of tags that name no section, as ``[soft piano]``, in their order: how it is played, sung by nobody.
    """

    text: str
    changes: tuple[str, ...]
    foreign: tuple[str, ...] = ()
    removed_lines: tuple[str, ...] = ()
    stage_tags: tuple[str, ...] = ()


def normalise_lyrics(text: str, *, song_format: str = AUTO) -> Normalised:
    r"""Bring a generated text into the form of the released songs.

    The format is what the lyrics are in, out of `song_formats.FORMATS`; by default it is found out. One that is not
    ``"plain"`` is named in the changes.

    Raises
    ------
    UnsupportedTypeError, UnknownNameError
        Not a string, or a format that does not exist.
    InvalidLyricsError
        The text is not in the format that was named.
    MissingBackendError
        The text holds Chinese characters and the package `opencc` is not installed.

    Examples
    --------
    >>> found = normalise_lyrics("好的，以下是歌词：\n\n**Verse 1**\n春眠不覺曉，處處聞啼鳥。")
    >>> print(found.text)
    (verse1)
    春眠不觉晓 处处闻啼鸟
    >>> found.changes[0]
    "emphasis: '**Verse 1**' became '# Verse 1'"
    """
    if not isinstance(text, str):
        raise UnsupportedTypeError(f"expected the text of a song, got {type(text).__name__}; give one string a song")
    named = ""
    changes: list[str] = []
    removed: dict[str, list[str]] = {}
    for name, step in STEPS.items():
        before = text
        if name == "song formats":
            named = find_format(text) if song_format == AUTO else song_format
            text = read_as(text, song_format)
        else:
            text = step(text)
        if text != before:
            changes.append(_describe_change(name, before, text))
            if name in _REMOVING:
                # lines with words that went, but for the marks of code fences
                gone = collections.Counter(before.split("\n")) - collections.Counter(text.split("\n"))
                removed[name] = [line for line in gone.elements() if bare(line) and not is_fence(line)]
    if named != "plain":
        changes.insert(0, f"{FORMAT_FOUND}{named}")
    tags = tuple(filter(remarks.is_stage_tag, removed.pop("stage tags", ())))
    words = " ".join(line for line in text.split("\n") if not is_released_header(line))
    return Normalised(
        text,
        tuple(changes),
        tuple(re.findall(f"[^{_HAN}\\s]+", words)),
        tuple(chain.from_iterable(removed.values())),
        tags,
    )


def unify_line_breaks(text: str) -> str:
    r"""Turn CRLF, CR, the line breaks of Unicode, ``<br>`` and the two characters ``\n`` into newlines."""
    text = re.sub(r"<br\s*/?>", "\n", text, flags=re.IGNORECASE)
    text = re.sub(r"(?<!\\)\\+(?:r(?:\\+n)?|n)", "\n", text)
    return re.sub("\r\n|[\r\v\f\x1c-\x1e\x85\u2028\u2029]", "\n", text)


def drop_invisible(text: str) -> str:
    """Remove byte order marks, zero-width and control characters, variation selectors; a tab becomes a space."""
    visible = [
        char
        for char in text.replace("\t", " ")
        if char == "\n" or not (unicodedata.category(char) in {"Cc", "Cf", "Cs"} or "\ufe00" <= char <= "\ufe0f")
    ]
    return "".join(visible)


def drop_list_marks(text: str) -> str:
    """Remove bullets and numbers at the start of lines; Chinese numerals only before a section name."""
    lines = [_LIST_MARK.sub(r"\1", line) for line in text.split("\n")]
    bared = [_HEADER_MARK.sub("", line) for line in lines]
    return "\n".join(
        rest if rest != line and is_header(rest) else line for line, rest in zip(lines, bared, strict=True)
    )


def drop_emphasis(text: str) -> str:
    """Remove Markdown emphasis, closing tags and simple HTML; a line that is bold as a whole becomes a heading."""
    text = "\n".join(_BOLD_LINE.sub(r"# \2\3", line) for line in text.split("\n"))
    return _TAG.sub("", re.sub(r"\*|~~|`|(?<![A-Za-z0-9])_+|_+(?![A-Za-z0-9])", "", text))


def fold_widths(text: str) -> str:
    """Apply NFKC, which makes full-width letters, digits and brackets plain; full-width indentation goes."""
    return "\n".join(fold(line.strip("\u3000")) for line in text.split("\n"))


def simplify(text: str) -> str:
    """Turn traditional into simplified characters, by OpenCC's ``t2s``."""
    if not re.search(f"[{_HAN}]", text):
        return text
    converter = _opencc()
    while (simplified := str(converter.convert(text))) != text:  # a character that is turned may make a phrase
        text = simplified
    return text


def split_lines(text: str) -> str:
    """Cut lines at slashes and bars, ``one / two``, where most lines have one or both sides are phrases."""
    # In brackets, between Latin letters and in a header it stands for "or"; between two words it is a pause.
    lines = text.split("\n")
    pieces = [_cut_at_slashes(line) for line in lines]
    n_cut = sum(len(cut) > 1 for cut in pieces)
    is_most = n_cut and 2 * n_cut >= sum(bool(bare(line)) and not is_header(line) for line in lines)
    parted = [cut if is_most or min(map(len, cut)) >= 4 else [line] for line, cut in zip(lines, pieces, strict=True)]
    return "\n".join(chain.from_iterable(parted))


def write_headers(text: str) -> str:
    """Write every section header as ``(verse1)`` on a line of its own, whatever brackets, language or case it had."""
    return "\n".join(part for line in text.split("\n") for part in split_headers(line))


def write_pauses(text: str) -> str:
    """Turn punctuation inside lines into single spaces, which are pauses, and drop it at both ends."""
    # Kept are letters, digits and their marks, and an apostrophe or hyphen between Latin letters. A line of Chinese
    # characters and single spaces stays as it is.
    lines = text.split("\n")
    for at, line in enumerate(lines):
        if not is_released_header(line) and not _RELEASED_LINE.fullmatch(line):
            signs = (
                sign if unicodedata.category(sign)[0] in "LNM" or _joins(line, i) else " "
                for i, sign in enumerate(line)
            )
            lines[at] = " ".join("".join(signs).split())
    return "\n".join(lines)


def drop_repeat_marks(text: str) -> str:
    """Remove ``x2`` at the end of lines; the repeat is not written out."""
    lines = text.split("\n")
    for at, line in enumerate(lines):
        end = 0 if is_released_header(line) else len(line)
        while match := _REPEAT.search(line, max(end - 4, 0), end):
            lines[at], end = line[: match.start()], match.start()
    return "\n".join(lines)


def drop_blank_lines(text: str) -> str:
    """Remove lines without a word."""
    return "\n".join(line for line in text.split("\n") if line.strip())


STEPS: Final[Mapping[str, Callable[[str], str]]] = MappingProxyType(
    {
        "chat tokens": remarks.drop_chat_tokens,
        "reasoning": drop_reasoning,
        "song formats": functools.partial(read_as, name=AUTO),
        "line breaks": unify_line_breaks,
        "invisible characters": drop_invisible,
        "code fences": remarks.drop_fences,
        "list marks": drop_list_marks,
        "emphasis": drop_emphasis,
        "widths": fold_widths,
        "simplified characters": simplify,
        "stage tags": remarks.drop_stage_tags,
        "singers": remarks.drop_singers,
        "line separators": split_lines,
        "headers": write_headers,
        "remarks": remarks.drop_remarks,
        "pauses": write_pauses,
        "repeat marks": drop_repeat_marks,
        "blank lines": drop_blank_lines,
    }
)
"""Name -> function of the whole text, in their order."""

_REMOVING: Final = ("reasoning", "code fences", "stage tags", "remarks")


@functools.lru_cache(maxsize=1)
def _opencc() -> Any:
    with importing("lyrics", "turning traditional into simplified characters"):
        import opencc
    return opencc.OpenCC("t2s")


def _cut_at_slashes(line: str) -> list[str]:
    if not _SLASH.search(line) or _BRACKETED.search(line) or (is_header(line) and len(split_headers(line)) == 1):
        return [line]
    cut = [piece for part in _SLASH.split(line) if bare(piece := remarks.without_singer(part).strip())]
    is_phrases = len(cut) > 2 or " / " in line or " | " in line or min(map(len, cut), default=0) >= 3
    return cut if len(cut) > 1 and is_phrases else [line]


def _joins(line: str, index: int) -> bool:
    """Tell whether a character is the apostrophe or hyphen of a Latin word."""
    around = line[index - 1 : index] + line[index + 1 : index + 2]
    return line[index] in "'\u2019-" and len(around) == 2 and around.isalpha() and max(around) < "\u0250"


def _describe_change(name: str, before: str, after: str) -> str:
    """Return a sentence on what a step changed."""
    first, second = (collections.Counter(text.split("\n")) for text in (before, after))
    gone, came = list((first - second).elements()), list((second - first).elements())
    if not any(map(bare, gone)):
        return f"{name}: {len(gone)} {'line' if len(gone) == 1 else 'lines'} without words removed"
    shown = f"{_quoted(gone)} became {_quoted(came)}" if any(map(bare, came)) else f"{_quoted(gone)} removed"
    return f"{name}: {shown}"


def _quoted(lines: list[str]) -> str:
    worded = [line for line in lines if bare(line)] or lines
    first = worded[0] if len(worded[0]) <= 40 else f"{worded[0][:39]}…"
    return repr(first) if len(worded) == 1 else f"{first!r} and {len(worded) - 1} more"
