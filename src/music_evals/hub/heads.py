"""The YAML head of a card: read it, and replace one of its blocks without touching the rest."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from music_evals.errors import UnreadableFileError

__all__ = ["Card", "read_head", "replace_block", "split_card"]

_CARD = re.compile(
    r"\A(?P<opening>---[ \t]*\r?\n)(?P<head>.*?)(?P<closing>^---[ \t]*(?:\r?\n|\Z))(?P<body>.*)\Z",
    re.DOTALL | re.MULTILINE,
)


class Card(NamedTuple):
    """A card in two parts."""

    head: str
    """What stands between the two lines of ``---``; empty where there is no head."""
    body: str
    """What stands below them."""
    opening: str = "---\n"
    """The line above the head."""
    closing: str = "---\n"
    """The line below it."""

    def __str__(self) -> str:
        return f"{self.opening}{self.head}{self.closing}{self.body}" if self.head else self.body


def split_card(text: str) -> Card:
    """Return head and text of a card."""
    found = _CARD.match(text)
    if found:
        return Card(found["head"], found["body"], found["opening"], found["closing"])
    fence = "---\r\n" if text.partition("\n")[0].endswith("\r") else "---\n"
    return Card("", text, fence, fence)


def read_head(text: str) -> dict[str, Any]:
    """Return the YAML of a card; an empty dict where it has none.

    Raises
    ------
    UnreadableFileError
        The head is no YAML, or no mapping.

    """
    import yaml

    try:
        head = yaml.safe_load(split_card(text).head) or {}
    except yaml.YAMLError as error:
        msg = f"the head of the card cannot be read: {error}; it must be YAML between two lines of ---"
        raise UnreadableFileError(msg) from error
    if not isinstance(head, dict):
        msg = f"the head of the card must be a mapping, got {type(head).__name__}; write `key: value` lines"
        raise UnreadableFileError(msg)
    return head


def replace_block(text: str, key: str, value: object) -> str:
    """Return a card whose head holds another value for one of its keys.

    Every other line stays as it is, with its order, quotes, comments and line ends.

    Parameters
    ----------
    text
        The card.
    key
        A key of the top level; it is added at the end where it is missing.
    value
        What YAML can hold.

    Raises
    ------
    UnreadableFileError
        The head is no YAML, or written so that the block cannot be told from the rest.

    """
    import yaml

    before, card = read_head(text), split_card(text)
    block = yaml.safe_dump({key: value}, sort_keys=False, allow_unicode=True, width=120)
    if card.opening.endswith("\r\n"):
        block = block.replace("\n", "\r\n")
    lines = card.head.splitlines(keepends=True)
    start, stop = _find_block(lines, key)
    filled = card._replace(head="".join([*lines[:start], block, *lines[stop:]]))
    try:
        done = read_head(str(filled)) == before | {key: value}
    except UnreadableFileError:
        done = False
    if not done:
        msg = (
            f"{key!r} in the head of the card cannot be replaced; write it once, as a block of lines below `{key}:`, "
            "and without anchors"
        )
        raise UnreadableFileError(msg)
    return str(filled)


def _find_block(lines: list[str], key: str) -> tuple[int, int]:
    """Return the first line of a block and the line after its last; both the end where there is none."""
    opens = re.compile(rf"""["']?{re.escape(key)}["']?\s*:""")
    start = next((number for number, line in enumerate(lines) if opens.match(line)), None)
    if start is None:
        return len(lines), len(lines)
    stop = start + 1
    while stop < len(lines) and re.match(r"[\s#-]", lines[stop]):
        stop += 1
    while stop > start + 1 and re.match(r"\s*$|#", lines[stop - 1]):
        stop -= 1  # blank lines and remarks belong to what follows
    return start, stop
