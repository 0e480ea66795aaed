"""The YAML head of a card."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from music_evals.errors import UnreadableFileError
from music_evals.hub.yaml_edit import read_yaml, set_block

__all__ = ["Card", "read_head", "replace_block", "split_card"]

# As the server of the Hub reads it: a byte order mark and blank lines may stand above.
_CARD = re.compile(
    r"\A(?P<opening>\ufeff?\s*---[ \t]*\r?\n)(?P<head>.*?)(?P<closing>^---[ \t]*(?:\r?\n|\Z))(?P<body>.*)\Z",
    re.DOTALL | re.MULTILINE,
)
_WHERE = "the head of the card"


class Card(NamedTuple):
    """A card in its parts, which together are the text."""

    opening: str  # the line of ``---`` above the head, and what stands before it; empty where there is no head
    head: str
    closing: str
    body: str

    def __str__(self) -> str:
        return "".join(self)


def split_card(text: str) -> Card:
    """Return the parts of a card."""
    match = _CARD.match(text)
    return Card(*match.groups()) if match else Card("", "", "", text)


def read_head(text: str) -> dict[str, Any]:
    """Return the YAML of a card, empty if missing; raise `UnreadableFileError` if it is not a mapping."""
    head = read_yaml(split_card(text).head, _WHERE) or {}
    if not isinstance(head, dict):
        raise UnreadableFileError(f"{_WHERE} must be a mapping, got {type(head).__name__}; write `key: value` lines")
    return head


def replace_block(text: str, key: str, value: object) -> str:
    """Return a card whose head holds another value for one of its keys; every other line stays as it is."""
    read_head(text)  # or it is no mapping
    card = split_card(text)
    if not card.opening:
        end = "\r\n" if text.partition("\n")[0].endswith("\r") else "\n"
        mark = "\ufeff" if text.startswith("\ufeff") else ""
        card = Card(f"{mark}---{end}", "", f"---{end}", text.removeprefix(mark))
    head = set_block(card.head, key, value, _WHERE)
    if not card.head and card.opening.endswith("\r\n"):
        head = head.replace("\n", "\r\n")
    return str(card._replace(head=head))
