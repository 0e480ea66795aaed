"""The verb ``write-lyrics``."""

from __future__ import annotations

import argparse
import contextlib
import json
from collections.abc import Sequence
from typing import Any

from music_evals.cli.console import Bar, finish_scores
from music_evals.cli.options import add_options, add_output_options, add_verb, from_options, text_extra
from music_evals.errors import InvalidInputError

_HELP = """\
Let language models write lyrics for the themes and structures of songs, and score them.

Without a model the reference rows are scored alone: the true lyrics, another song's, and lyrics that say nothing.
Writes into --out: writing (every answer as it came),
texts.jsonl, writing_log.csv (seconds, tokens, cost), and what the verb lyrics writes. A run that was killed goes on
where it stood when the same command is given again: what was answered is not asked again.
"""

_EXAMPLES = """\
examples:
  music-evals write-lyrics --dataset caimd --config demo --out results/reference
  music-evals write-lyrics --dataset caimd --config demo --model Qwen/Qwen2.5-7B-Instruct --seeds 3 --out results/qwen
  music-evals write-lyrics --dataset songs.jsonl --endpoint https://api.example.com/v1 --endpoint-model poet-1 \\
      --api-key-env POET_API_KEY --price-in 0.5 --price-out 1.5 --out results/poet
"""


def add(verbs: Any) -> None:
    """Add the verb ``write-lyrics``."""
    add_verb(
        verbs,
        "write-lyrics",
        _run,
        "let language models write lyrics, and score them",
        _HELP,
        _EXAMPLES,
        needs=lambda options: [
            "lyrics",
            *["models"] * bool(options.models or options.endpoints),
            *text_extra(options.theme_encoder),
        ],
        options=_add_options,
    )


def _add_options(verb: Any) -> None:
    from music_evals.benchmark.tasks.songs.lyric_writing import Settings

    groups = add_options(verb, Settings, required="dataset")
    for option, texts in {
        "--endpoint-model": {"metavar": "ID", "help": "model on the server"},
        "--api-key-env": {"metavar": "VARIABLE", "help": "environment variable that holds the key (default: no key)"},
        "--price-in": {"metavar": "PRICE", "help": "of a million tokens read, for the cost"},
        "--price-out": {"metavar": "PRICE", "help": "of a million tokens written"},
    }.items():
        groups["endpoints"].add_argument(
            option, action="append", default=[], type=float if "price" in option else str, **texts
        )
    add_output_options(groups["output"], published="")


def _run(options: argparse.Namespace) -> int:
    from music_evals.benchmark.tasks.songs.lyric_writing import LYRIC_WRITING, Endpoint, Prices, Settings, text_report

    urls: list[str] = options.endpoints
    spread = {
        name: _spread(getattr(options, name), len(urls), f"--{name.replace('_', '-')}")
        for name in ("endpoint_model", "api_key_env", "price_in", "price_out")
    }
    if None in spread["endpoint_model"]:
        raise InvalidInputError("--endpoint needs --endpoint-model, the id of the model on the server")
    endpoints = []
    for text, model, key, read, written in zip(urls, *spread.values(), strict=True):
        name, equals, url = text.partition("=")  # [NAME=]URL
        is_named = bool(equals) and "/" not in name
        place, called = (url, name) if is_named else (text, None)
        endpoints.append(Endpoint(place, model, called, key or None, Prices(read, written)))
    settings = from_options(
        options,
        Settings,
        endpoints=endpoints,
        template_options=_json_options(options.template_options, "--template-option"),
        endpoint_options=_json_options(options.endpoint_options, "--endpoint-option"),
    )
    if settings.models:
        with contextlib.suppress(ImportError):  # the writer says what is missing
            from transformers.utils import logging

            logging.disable_progress_bar()
    with Bar("lyric") as bar:
        outcome = LYRIC_WRITING.run(settings, progress=bar)
    return finish_scores(outcome, options, report=text_report)


def _spread(values: Sequence[Any], n: int, option: str) -> list[Any]:
    """Return a value for each endpoint: none, one for all, or one each."""
    if values and not n:
        raise InvalidInputError(f"{option} goes with --endpoint")
    if len(values) <= 1:
        return list(values or [None]) * n
    if len(values) != n:
        raise InvalidInputError(
            f"{option} was given {len(values)} times for {n} endpoints; give it once for all, or once for each"
        )
    return list(values)


def _json_options(texts: Sequence[str], option: str) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for text in texts:
        key, _, value = text.partition("=")
        try:
            options[key] = json.loads(value if key else "")  # no JSON
        except ValueError as error:
            raise InvalidInputError(f"{option} takes KEY=JSON, such as enable_thinking=false; got {text!r}") from error
    return options
