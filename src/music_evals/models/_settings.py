"""Types of settings, checked where a user hands them over: a text is never compared with a number further in."""

from __future__ import annotations

import functools
import numbers
import types
import typing
from collections.abc import Mapping
from typing import Any

from music_evals.errors import InvalidInputError

__all__ = ["check_type", "check_types"]

_WORDS: Mapping[type, str] = {
    int: "a whole number",
    float: "a number",
    str: "a text",
    bool: "True or False",
    tuple: "a list",
    dict: "a mapping",
}
_KINDS: Mapping[type, Any] = {
    int: numbers.Integral,
    float: numbers.Real,
    str: str,
    bool: bool,
    tuple: (list, tuple),
    dict: Mapping,
}


def check_types(settings: Any) -> None:
    """Raise where a field of a dataclass holds a value of another type than it declares.

    Types that are not simple, and what lists and mappings hold, are left to the checks of the class itself.

    Raises
    ------
    InvalidInputError
        Such a field; the message names it.

    """
    kind: type = type(settings)
    for name, hint in _hints(kind).items():
        check_type(name, getattr(settings, name), hint)


def check_type(name: str, value: object, hint: Any) -> None:
    """Raise where a value is not of a type, such as ``float`` or ``int | None``; True and False are no numbers here."""
    kinds = _kinds(hint)
    if kinds and not any(_is(value, kind) for kind in kinds):
        wanted = " or ".join(_WORDS.get(kind, "None") for kind in kinds)
        raise InvalidInputError(f"{name} must be {wanted}, got {value!r}")


def _is(value: object, kind: type) -> bool:
    if kind is types.NoneType:
        return value is None
    return isinstance(value, _KINDS[kind]) and (kind is bool or not isinstance(value, bool))


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    names = getattr(kind, "__dataclass_fields__", {})
    return {name: hint for name, hint in typing.get_type_hints(kind).items() if name in names}


@functools.cache
def _kinds(hint: Any) -> tuple[type, ...]:
    """Return the simple types that a hint stands for; none where one of them is not simple."""
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        parts = [_kinds(part) for part in typing.get_args(hint)]
        return tuple(kind for part in parts for kind in part) if all(parts) else ()
    if typing.get_origin(hint) is typing.Literal:
        return tuple(dict.fromkeys(type(value) for value in typing.get_args(hint)))
    kind = typing.get_origin(hint) or hint
    return (kind,) if kind in _WORDS or kind is types.NoneType else ()
