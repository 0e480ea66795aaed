"""The names of tracks in MIDI files, whose codec no file states."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

__all__ = ["decode_names"]


def decode_names(names: Sequence[bytes]) -> list[str]:
    r"""Decode the track names of one file, all by one codec, for one program wrote them.

    The standard knows only ASCII, and files do not say what else they are in. The first of these that fits all names
    together is taken:

    1. UTF-8, where they are valid UTF-8.
    2. GB18030 (Chinese), where they are valid, and at least half of their letters beyond ASCII are hanzi of the first
       level of GB 2312, the 3755 most frequent ones.
    3. Shift-JIS (Japanese, as code page 932), where they are valid, and at least half are kana or kanji of the first
       level of JIS X 0208; half-width kana do not count, for nearly every byte is one.
    4. Windows-1252, which holds Latin-1.

    One Chinese or Japanese character alone that touches an ASCII letter does not count: so "Flöte" and "Größe" look
    in the wrong codec. Korean and Cyrillic names are not recognised. NULs, with which some programs fill
    up a name, are left out.

    Examples
    --------
    >>> decode_names(["钢琴".encode("gbk"), b"Bass"]), decode_names(["Flöte".encode("latin-1"), b"Bass\0\0"])
    (['钢琴', 'Bass'], ['Flöte', 'Bass'])

    """
    names = [name.replace(b"\0", b"") for name in names]
    codec = "latin-1"
    for candidate, is_common in _CODECS.items():
        try:
            texts = [name.decode(candidate) for name in names]
        except UnicodeDecodeError:
            continue
        if is_common is None or _is_likely(texts, is_common):
            codec = candidate
            break
    return [name.decode(codec) for name in names]


def _is_likely(texts: Sequence[str], is_common: Callable[[str], bool]) -> bool:
    """Tell whether at least half of the letters beyond ASCII are common ones that do not stand alone in a word."""
    n_letters = n_common = 0
    for text in texts:
        for run in re.finditer(r"[^\x00-\x7f]+", text):
            letters = [letter for letter in run[0] if letter.isalpha()]
            n_letters += len(letters)
            around = text[max(run.start() - 1, 0) : run.start()] + text[run.end() : run.end() + 1]
            if len(run[0]) > 1 or not any(letter.isalpha() for letter in around):
                n_common += sum(map(is_common, letters))
    return n_common > 0 and 2 * n_common >= n_letters


def _is_common_chinese(letter: str) -> bool:
    code = letter.encode("gb18030")
    return len(code) == 2 and 0xB0 <= code[0] <= 0xD7 and code[1] >= 0xA1


def _is_common_japanese(letter: str) -> bool:
    return "ぁ" <= letter <= "ヾ" or b"\x88\x9f" <= letter.encode("cp932") <= b"\x98\x72"


_CODECS: dict[str, Callable[[str], bool] | None] = {
    "utf-8": None,
    "gb18030": _is_common_chinese,
    "cp932": _is_common_japanese,
    "cp1252": None,
}
