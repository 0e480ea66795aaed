"""What the writers of lyrics share: how long an answer may be, and checks of names and decoding."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from music_evals.errors import InvalidInputError
from music_evals.models._settings import check_type

__all__ = ["MAX_NEW_TOKENS", "NOTHING", "asked_text", "check_decoding", "checked_name"]

MAX_NEW_TOKENS: Final = 2048
"""The longest answer by default: the longest song of MuChin has 134 lines of some ten characters."""

NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


def checked_name(name: str) -> str:
    if not name.strip():
        raise InvalidInputError("a model needs a name that is not empty")
    return name


def check_decoding(temperature: float | None, top_p: float | None, max_new_tokens: int) -> None:
    check_type("temperature", temperature, float | None)
    check_type("top_p", top_p, float | None)
    check_type("max_new_tokens", max_new_tokens, int)
    if temperature is not None and not 0 <= temperature < float("inf"):
        raise InvalidInputError(f"the temperature must be at least 0 and finite, got {temperature}")
    if top_p is not None and not 0 < top_p <= 1:
        raise InvalidInputError(f"top_p must lie above 0 and be at most 1, got {top_p}")
    if max_new_tokens < 1:
        raise InvalidInputError(f"an answer must have room for at least 1 token, got {max_new_tokens}")


def asked_text(tokenizer: Any, prompt: str, options: Mapping[str, Any] = NOTHING) -> tuple[str, bool]:
    """Return a prompt as a model reads it, writing or being tuned, and whether a chat template wrote it."""
    if not tokenizer.chat_template:
        return prompt, False
    message = [{"role": "user", "content": prompt}]
    text: str = tokenizer.apply_chat_template(message, tokenize=False, add_generation_prompt=True, **options)
    return text, True
