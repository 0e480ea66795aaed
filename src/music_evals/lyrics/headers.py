"""Section headers as language models write them, and the lines around them.

The released form of a header is ``(verse1)`` on a line of its own. What is understood beside it: any kind of bracket,
Markdown headings, a colon, capital letters, Chinese names, numbers in digits, words, Chinese or Roman numerals, and the
letters of a song's form as in ``A1 A2 B A3 C B``: A is the verse, B the chorus, C the bridge.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

SECTION_NAMES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "intro": ("intro", "前奏"),
        "verse": ("verse", "主歌", "正歌"),
        "pre-chorus": ("pre chorus", "预副歌", "預副歌", "前副歌", "副歌前", "导歌", "導歌"),
        "chorus": ("chorus", "副歌"),
        "post-chorus": ("post chorus", "后副歌", "後副歌"),
        "bridge": ("bridge", "middle 8", "middle eight", "桥段", "橋段"),
        "interlude": ("interlude", "间奏", "間奏"),
        "ending": ("ending", "outro", "尾奏"),
    }
)
"""Label -> names that are a header wherever they stand alone on a line."""

MARKED_NAMES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "intro": ("introduction", "引子", "序曲", "开场", "序"),
        "chorus": ("hook", "refrain", "高潮"),
        "bridge": ("过桥", "桥接", "过渡", "过渡段", "桥"),
        "interlude": (
            "instrumental", "instrumental break", "inst", "solo", "break", "breakdown", "build up", "drop",
            "过门", "独奏",
        ),
        "ending": ("coda", "fade out", "尾声", "结尾", "收尾", "终曲", "尾歌"),
        "rap": ("rap", "说唱"),
        "others": ("others", "other", "其他"),
    }
)  # fmt: skip
"""Label -> names that may also be words of a song: a header only in brackets, as a heading, or before a colon."""

_OPEN, _CLOSE = "([{<【〖「『《〈\u3014", ")]}>】〗」』》〉\u3015"
_GROUP = re.compile(f"[{re.escape(_OPEN)}]([^{re.escape(_OPEN + _CLOSE)}\n]{{1,40}})[{re.escape(_CLOSE)}]")
_TITLED = re.compile(r"(?<!\s)(?:\s*[:|,\u2013\u2014]\s*|\s+-\s*)")
_FORM = re.compile("([abc]) ?([0-9]{1,2})? ?(段)?(?: ?x[0-9]{1,2})*")
_FORM_LABELS: Final = {"a": "verse", "b": "chorus", "c": "bridge"}
_CHINESE = {"一": 1, "二": 2, "两": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8, "九": 9, "十": 10}
_WORDS = {
    "one": 1, "two": 2, "three": 3, "four": 4, "first": 1, "second": 2, "third": 3, "fourth": 4,
    "i": 1, "ii": 2, "iii": 3, "iv": 4, "v": 5, "a": 1, "b": 2, "c": 3, "d": 4,
}  # fmt: skip
_DIGITS = r"[0-9]{1,3}(?:(?:st|[nr]d|th)(?![a-z]))?"
_FILLERS = (
    "(?:重复|反复|再唱)[一二两三四0-9]*[遍次]?", "最后", "第", "段落", "部分", "段", "节", "遍", "次", "的",
    "x[0-9]{1,2}(?![a-z0-9])", "[0-9]x(?![a-z])",
    "(?<![a-z])(?:final|last|repeat|repeated|section|part|the|again|short|medium|long|[abc](?=[0-9]))(?![a-z])",
    "(?<![a-z])(?:piano|guitar|violin|sax|drum|bass|strings|flute)(?![a-z])|钢琴|吉他|小提琴|笛子|二胡|古筝",
)  # fmt: skip


def _name_pattern(name: str) -> str:
    return f"(?<![a-z]){name.replace(' ', ' ?')}(?![a-z])" if name.isascii() else name


# (name, label, whether it needs a mark), the longest name first: "pre chorus" before "chorus"
_NAMES = sorted(
    (
        (name, label, marked)
        for table, marked in ((SECTION_NAMES, False), (MARKED_NAMES, True))
        for label, names in table.items()
        for name in names
    ),
    key=lambda row: -len(row[0]),
)
_NUMBER_WORDS = "|".join(sorted(_WORDS, key=len, reverse=True))
_NUMBERS = (_DIGITS, "十[一二三四五六七八九]?", "[一二两三四五六七八九]", f"(?<![a-z])(?:{_NUMBER_WORDS})(?![a-z])")
_TOKEN = re.compile(
    "|".join(
        [
            *(f"(?P<name{i}>{_name_pattern(name)})" for i, (name, _, _) in enumerate(_NAMES)),
            f"(?P<filler>{'|'.join(_FILLERS)})",
            f"(?P<number>{'|'.join(_NUMBERS)})",
            r"\s+",
        ]
    )
)
_ANY_NAME = re.compile("|".join(["(?<![a-z])[abc](?![a-z])", *(_name_pattern(name) for name, _, _ in _NAMES)]))


def fold(text: str) -> str:
    """Return text in NFKC, with ``x2`` for a multiplication sign before a digit."""
    return re.sub("\u00d7 ?(?=[0-9])", " x", unicodedata.normalize("NFKC", text))


def bare(text: str) -> str:
    """Return letters and digits, folded and in lower case; all else becomes single spaces."""
    return " ".join("".join(char if char.isalnum() else " " for char in fold(text).lower()).split())


def section_label(text: str, *, marked: bool) -> str | None:
    """Return the label that a text names, as ``"verse1"``, or None where it is no section name."""
    labels: set[str] = set()
    numbers: list[int] = []
    words, position = bare(text), 0
    if not _ANY_NAME.search(words):
        return None
    form = _FORM.fullmatch(words)
    if form and (marked or form[2] or form[3]):
        return _FORM_LABELS[form[1]] + (form[2] or "")
    while position < len(words):
        token = _TOKEN.match(words, position)
        if token is None:
            return None
        kind = token.lastgroup or ""
        if kind.startswith("name"):
            _, label, needs_mark = _NAMES[int(kind.removeprefix("name"))]
            if needs_mark and not marked:
                return None
            labels.add(label)
        elif kind == "number":
            number = token[0]
            if number[0].isdigit():
                numbers.append(int(re.match("[0-9]+", number)[0]))  # type: ignore[index]  # it begins with digits
            else:
                numbers.append(_WORDS[number] if number in _WORDS else sum(_CHINESE[char] for char in number))
        position = token.end()
    if len(labels) != 1:
        return None
    return labels.pop() + (str(numbers[0]) if numbers else "")


def is_released_header(line: str) -> bool:
    """Tell whether a line is a header in the released form."""
    match = re.fullmatch(r"\(([a-z-]+)[0-9]*\)", line)
    return match is not None and (match[1] in SECTION_NAMES or match[1] in MARKED_NAMES)


def is_header(line: str) -> bool:
    """Tell whether a line is a header, alone or with words behind it."""
    return any(is_released_header(part) for part in split_headers(fold(line)))


def split_headers(line: str) -> list[str]:
    """Return a folded line as headers in the released form, each on its own, and the words between them."""
    # What stands in brackets behind a header, and the title of a heading, is a remark and left out.
    parts: list[str] = []
    pending = [line]
    while pending:
        piece = pending.pop()
        pieces = _cut(piece)
        if pieces is None:
            parts.append(piece)
        elif len(pieces) == 1 and is_released_header(pieces[0]):
            parts += pieces
        else:
            pending += reversed(pieces)
    return parts


def _cut(piece: str) -> list[str] | None:
    """Return a piece of a line as headers and what stands between them; None where it has no header."""
    if not _ANY_NAME.search(bare(piece)):
        return None
    # a heading, a name before a colon or in brackets, or a name with remarks in brackets, that fills the whole piece
    words = piece.strip()
    is_heading = words.startswith("#")
    marked = is_heading or words.endswith(":") or (words[:1] != "" and words[0] in _OPEN and words[-1] in _CLOSE)
    label = section_label(words, marked=marked)
    if label is None and is_heading:
        label = _titled_label(words)
    if label is None and bare(without := _GROUP.sub(" ", words)):
        label = section_label(without, marked=marked)
    if label is not None:
        return [f"({label})"]
    groups = [(group, label) for group in _GROUP.finditer(piece) if (label := _titled_label(group[1])) is not None]
    if groups:
        starts, ends = [group.start() for group, _ in groups], [group.end() for group, _ in groups]
        before = piece[: starts[0]].strip()
        between = [piece[end:start] for end, start in zip(ends, [*starts[1:], len(piece)], strict=True)]
        behind = [part for (_, label), rest in zip(groups, between, strict=True) for part in _behind(label, rest)]
        return [before, *behind] if bare(before) else behind
    start, heads = 0, []
    while (colon := piece.find(":", start, start + 41)) >= 0:  # all of "Verse: Chorus: ..." at once: it may be long
        name = piece[start:colon]
        label = section_label(name, marked=bare(name) not in _FORM_LABELS)  # "A: words" is what a singer A sings
        if label is None:
            break
        start = colon + 1
        heads.append(label)
    return [*(f"({label})" for label in heads[:-1]), *_behind(heads[-1], piece[start:])] if heads else None


def _behind(label: str, rest: str) -> list[str]:
    """Return a header, and the words behind it unless they are a remark in brackets."""
    return [f"({label})", rest.strip()] if bare(_GROUP.sub(" ", rest)) else [f"({label})"]


def _titled_label(text: str) -> str | None:
    """Return the label of ``Verse 1``, or of ``Verse 1: a title``; with the name of another section in it, none."""
    label = section_label(text, marked=True)
    if label is not None:
        return label
    label, *others = [section_label(part, marked=True) for part in _TITLED.split(text)]
    kinds = {kind.rstrip("0123456789") for kind in (label, *others) if kind is not None}
    return label if len(kinds) == 1 else None
