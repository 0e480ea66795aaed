"""Language models that a task asks, by the name that the user gives them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from music_evals.benchmark.model_folders import split_model
from music_evals.errors import InvalidInputError
from music_evals.protocols import WRITERS, LyricWriter, load_plugin

__all__ = ["load_lyric_writer"]


def load_lyric_writer(options: Mapping[str, Any]) -> LyricWriter:
    """Build the language model that ``model`` names: with ``endpoint`` one of a server, else one of transformers."""
    given = dict(options)
    model, endpoint = given.pop("model"), given.pop("endpoint", None)
    if endpoint is not None:
        writer: LyricWriter = load_plugin(WRITERS, "endpoint", "writer")(endpoint, model, **given)
        return writer
    if "api_key_env" in given:
        raise InvalidInputError("a key goes with an endpoint; give its address too")
    name, source, revision = split_model(model)
    local: LyricWriter = load_plugin(WRITERS, "transformers", "writer")(source, name=name, revision=revision, **given)
    return local
