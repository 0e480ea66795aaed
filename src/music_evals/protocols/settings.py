"""Types and bounds of settings, checked where a user hands them over: no text is compared with a number further in.

Settings are the fields of a dataclass, or the parameters of a plug-in. A class may state ``BOUNDS``, setting -> the
least and the most that it may be.
"""

from __future__ import annotations

import contextlib
import functools
import math
import numbers
import types
import typing
from collections.abc import Mapping
from typing import Any

from music_evals.errors import InvalidInputError

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
    """Raise where a field of a dataclass holds a value of another type than it declares, or out of its bounds.

    Types that are not simple, and what lists and mappings hold, are left to the checks of the class itself.
    """
    kind: type = type(settings)
    for name, hint in _hints(kind).items():
        check_type(name, getattr(settings, name), hint)
        _check_bounds(kind, name, getattr(settings, name))


def check_rules(settings: Any, rules: Mapping[str, bool]) -> None:
    """Raise for the first rule that does not hold; a rule is a sentence that begins with the setting's name."""
    for rule, holds in rules.items():
        if not holds:
            raise InvalidInputError(f"{rule}, got {getattr(settings, rule.split()[0])!r}")


def check_parameters(kind: Any, values: Mapping[str, Any]) -> None:
    """Raise where a value for a parameter of a class is of another type, or out of bounds; the class is not called."""
    makers: tuple[Any, ...] = (kind.__init__, getattr(kind, "from_pretrained", None))
    for maker in makers:
        hints = getattr(maker, "__annotations__", {})
        for name in values.keys() & hints.keys():
            # a hint that a module writes as text; any type will do where only type checkers import what it names
            holder = types.SimpleNamespace(__annotations__={"hint": hints[name]})
            with contextlib.suppress(NameError):
                check_type(name, values[name], typing.get_type_hints(holder, globalns=maker.__globals__)["hint"])
    for name, value in values.items():
        _check_bounds(kind, name, value)


def check_type(name: str, value: object, hint: Any) -> None:
    """Raise where a value is not of a type, such as ``float`` or ``int | None``.

    True and False are no numbers here, and neither is what is not finite.
    """
    kinds = _kinds(hint)
    if kinds and not any(_is(value, kind) for kind in kinds):
        wanted = " or ".join(_WORDS.get(kind, "None") for kind in kinds)
        raise InvalidInputError(f"{name} must be {wanted}, got {value!r}")
    if kinds and isinstance(value, float) and not math.isfinite(value):
        raise InvalidInputError(f"{name} must be finite, got {value}")


def _check_bounds(kind: type, name: str, value: Any) -> None:
    bounds: Mapping[str, tuple[float, float]] = getattr(kind, "BOUNDS", {})
    if name not in bounds or value is None:
        return
    low, high = bounds[name]
    if not _is(value, float) or not low <= value <= high:
        raise InvalidInputError(f"`{name}` must lie in {low:g}..{high:g}, got {value!r}")


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
