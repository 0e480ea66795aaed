"""Options are written once, at the fields of settings: flags, help, tables of the docs and pages are made of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import MISSING
from typing import Any, NamedTuple

__all__ = ["MISSING", "Option", "label_of", "option", "options_of", "with_commas"]

_KEY = "music_evals.option"


class Option(NamedTuple):
    """How a field of settings is shown to a user."""

    name: str  # of the field
    kind: str  # its annotation, such as ``"int | None"``
    default: Any  # `MISSING` where it is required
    text: str  # what it does; ``%(default)s`` stands for the default
    flag: str  # such as ``"--estimate"``; without dashes the option is positional
    group: str  # key of the group of options that it belongs to
    metavar: str | None
    choices: Sequence[str] | None
    nargs: str | None
    label: str  # of a control on a page


def option(
    default: Any,
    text: str,
    *,
    flag: str = "",
    group: str = "how",
    metavar: str | None = None,
    choices: Sequence[str] | None = None,
    nargs: str | None = None,
    label: str = "",
) -> Any:
    """Return a field of a dataclass of settings that is an option too."""
    shown = {"text": text, "flag": flag, "group": group, "metavar": metavar, "choices": choices, "nargs": nargs}
    more: dict[str, Any] = {"default_factory": type(default)} if isinstance(default, dict) else {"default": default}
    return dataclasses.field(**more, metadata={_KEY: {**shown, "label": label}})


def options_of(settings: type) -> Iterator[Option]:
    """Yield the options among the fields of a dataclass, in their order."""
    # `TEXTS` of a class says what an inherited option does there, or with None that it is no option there.
    texts = getattr(settings, "TEXTS", {})
    for field in dataclasses.fields(settings):
        shown = field.metadata.get(_KEY)
        text = None if shown is None else texts.get(field.name, shown["text"])
        if shown is None or text is None:
            continue
        default = () if field.default_factory is not MISSING else field.default
        words = field.name.replace("_", "-")
        flag = shown["flag"] or (f"--no-{words}" if default is True else f"--{words}")
        label = shown["label"] or field.name.replace("_", " ").capitalize()
        own = {"name": field.name, "kind": str(field.type), "default": default}
        yield Option(**{**shown, **own, "text": text, "flag": flag, "label": label})


def label_of(settings: type, name: str) -> str:
    """Return how a control on a page calls an option."""
    return next(shown.label for shown in options_of(settings) if shown.name == name)


def with_commas(text: str | None) -> list[str]:
    """Return the names in a text such as ``a, b``."""
    return [name.strip() for name in (text or "").split(",") if name.strip()]
