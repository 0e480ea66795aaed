"""The YAML head of a card."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from music_evals.errors import UnreadableFileError
from music_evals.yaml_files import check_tree, named_errors, yaml_text

if TYPE_CHECKING:
    from ruamel.yaml import YAML

_WIDTH = 2**20  # columns: a line is never broken
_FIRST_LIST = re.compile(
    r"^(?:(?P<key> *(?:- +)*)[^\s#-].*:[ \t]*(?:#.*)?\n)?(?P<dash> *)-(?P<gap> +)(?=\S)", re.MULTILINE
)


def read_yaml(text: str, where: str) -> Any:
    """Return the content of YAML, with its comments; raise `UnreadableFileError` if it is invalid."""
    with named_errors(f"{where} cannot be read as YAML"):
        document = _yaml().load(yaml_text(text.encode(), where).replace("\r\n", "\n"))
        check_tree(document, where)
        return document


def set_block(text: str, place: str | int, value: object, where: str) -> str:
    """Return YAML with another value at one key or number of its root; one that is missing is added at the end."""
    end = "\r\n" if "\r\n" in text else "\n"
    text = text.replace("\r\n", "\n")
    document = read_yaml(text, where)
    if document is not None and not isinstance(document, dict | list):
        raise UnreadableFileError(f"{where} is neither a mapping nor a list, but {document!r:.80}")
    if not document:  # what there is are remarks, and perhaps an empty list
        comments = [line for line in text.splitlines(keepends=True) if re.match(r"\s*(#|$)", line)]
        text = _ended("".join(comments)) + _dump([quoted(value)] if place == 0 else {place: quoted(value)}, "")
        return text.replace("\n", end)
    with named_errors(f"{place!r} of {where} cannot be changed"):
        return _with_block(text, document, place, value, where).replace("\n", end)


def _with_block(text: str, document: Any, place: str | int, value: object, where: str) -> str:
    old_lines = _ended(text).splitlines(keepends=True)
    start, stop = _block(document, place, old_lines)
    if isinstance(document, list) and place == len(document):
        document.append(quoted(value))
    else:
        document[place] = quoted(value)
    changed = _dump(document, "".join([*old_lines[start:stop], *old_lines]))  # indented as the block, else as the rest
    new_lines = changed.splitlines(keepends=True)
    if not document.fa.flow_style():
        first, last = _block(read_yaml(changed, where), place, new_lines)
        new_lines = [*old_lines[:start], *new_lines[first:last], *old_lines[stop:]]
    try:
        done = read_yaml("".join(new_lines), where) == document
    except UnreadableFileError:
        done = False
    if not done:
        raise UnreadableFileError(
            f"{place!r} of {where} cannot be changed without touching what others wrote; write it once, as a block of "
            "lines of its own, and without anchors that others use"
        )
    return "".join(new_lines)


def _yaml(like: str = "") -> YAML:
    """Return a reader and writer that indents lists as the first one of a text is."""
    from ruamel.yaml import YAML

    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = _WIDTH
    if match := _FIRST_LIST.search(like):
        offset = len(match["dash"]) - len(match["key"] or "")
        yaml.indent(mapping=2, sequence=offset + 1 + len(match["gap"]), offset=offset)
    return yaml


def _dump(content: object, like: str) -> str:
    stream = io.StringIO()
    _yaml(like).dump(content, stream)
    return stream.getvalue()


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"


def _block(document: Any, place: str | int, lines: list[str]) -> tuple[int, int]:
    """Return the first line of an item of the root and the line after its last; both the end if it is missing."""
    of_list = isinstance(document, list)
    places = range(len(document)) if of_list else [key for key in document if key in document.lc.data]  # none merged
    if place not in places:
        return len(lines), len(lines)
    starts = {at: (document.lc.item(at) if of_list else document.lc.key(at))[0] for at in places}
    start = starts[place]
    stop = min((line for line in starts.values() if line > start), default=len(lines))
    indent = re.match(" *", lines[start])
    assert indent is not None
    while stop > start + 1 and re.match(rf"\s*$| {{0,{indent.end()}}}#", lines[stop - 1]):
        stop -= 1  # blank lines and remarks belong to what follows
    return start, stop


def quoted(value: Any) -> Any:
    """Put quotes around text that a reader of YAML 1.1 or 1.2 takes for something else: no, 1e5, 12:30, 2026-11-21."""
    # What was read from a file stays as it was written there.
    from ruamel.yaml.comments import CommentedBase
    from ruamel.yaml.resolver import implicit_resolvers
    from ruamel.yaml.scalarstring import DoubleQuotedScalarString, ScalarString

    if isinstance(value, CommentedBase | ScalarString):
        return value
    if isinstance(value, dict):
        return {quoted(key): quoted(item) for key, item in value.items()}
    if isinstance(value, list):
        return [quoted(item) for item in value]
    if isinstance(value, str) and any(regexp.match(value) for _, _, regexp, _ in implicit_resolvers):
        return DoubleQuotedScalarString(value)
    return value


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
