"""The verb ``write-lyrics``."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from music_evals.cli._shared import (
    Bar,
    add_dataset_options,
    add_engine_options,
    add_interval_options,
    add_list,
    add_number,
    add_output_options,
    add_published_option,
    add_theme_options,
    add_verb,
    chosen,
    finish_scores,
    quieten,
    text_extra,
)
from music_evals.errors import InvalidInputError

if TYPE_CHECKING:
    from music_evals.benchmark.tasks.songs.lyric_writing import Endpoint

__all__ = ["add"]

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
    verb = add_verb(
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
    )
    add_dataset_options(verb.add_argument_group("for which songs"), required=True)
    _add_models(verb.add_argument_group("who writes: models of transformers"))
    _add_endpoints(verb.add_argument_group("who writes: OpenAI-compatible endpoints"))
    _add_writing(verb.add_argument_group("how it is written"))
    _add_scoring(verb.add_argument_group("how it is scored"))
    add_published_option(add_output_options(verb))


def _add_models(who: Any) -> None:
    add_list(who, "--model", "folder or Hub id[@revision]; may be given again", dest="models", metavar="[NAME=]ID")
    who.add_argument("--batch-size", type=int, metavar="N", help="songs at once (default: 8)")
    who.add_argument("--device", help="cpu, cuda, cuda:1 ... (default: cuda where there is one)")
    who.add_argument("--dtype", help="float32, bfloat16, float16 (default: that of the weights)")
    who.add_argument("--trust-remote-code", action="store_true", help="run code that comes with the model")
    add_list(
        who,
        "--template-option",
        "given to the chat template, such as enable_thinking=false; may be given again",
        dest="template_options",
        metavar="KEY=JSON",
    )


def _add_endpoints(who: Any) -> None:
    add_list(
        who,
        "--endpoint",
        "http(s) address, up to /v1; may be given again, the next four options too, once for all or once for each",
        dest="endpoints",
        metavar="[NAME=]URL",
    )
    for option, texts in {
        "--endpoint-model": {"metavar": "ID", "help": "model on the server"},
        "--api-key-env": {"metavar": "VARIABLE", "help": "environment variable that holds the key (default: no key)"},
        "--price-in": {"metavar": "PRICE", "help": "of a million tokens read, for the cost"},
        "--price-out": {"metavar": "PRICE", "help": "of a million tokens written"},
    }.items():
        who.add_argument(option, action="append", default=[], type=float if "price" in option else str, **texts)
    add_list(
        who,
        "--endpoint-option",
        "further field of each request; null leaves one of ours out; may be given again",
        dest="endpoint_options",
        metavar="KEY=JSON",
    )
    who.add_argument(
        "--allow-http", action="store_true", help="send a key over plain http to another machine (default: refuse)"
    )
    who.add_argument("--concurrency", type=int, metavar="N", help="requests at once (default: 4)")
    who.add_argument(
        "--requests-per-minute", type=float, metavar="N", help="to each endpoint, evenly spaced (default: no limit)"
    )
    who.add_argument(
        "--max-cost",
        type=float,
        metavar="COST",
        help="stop before it could cost more, by the prices given; a higher ceiling goes on",
    )
    who.add_argument(
        "--batch",
        action="store_true",
        help="use the endpoints' batch interface; the same command, given again, collects the answers",
    )
    who.add_argument("--timeout", type=float, dest="timeout_sec", metavar="SECONDS", help="(default: 300)")
    who.add_argument("--retries", type=int, metavar="N", help="after 429, a 5xx or a lost connection (default: 5)")


def _add_writing(how: Any) -> None:
    how.add_argument(
        "--theme-from",
        metavar="GROUP",
        help="professional or amateur: whose text is the theme (default: the professional's, else the amateur's)",
    )
    how.add_argument("--language", default="zh", help="of the prompt: zh or en (default: %(default)s)")
    how.add_argument("--example", metavar="FILE", help="JSON with theme, structure and lyrics, for the worked example")
    add_number(how, "--seeds", "texts a song", default=1, dest="n_seeds")
    how.add_argument("--temperature", type=float, metavar="T", help="0 is deterministic (default: the model's own)")
    how.add_argument("--top-p", type=float, help="(default: the model's own)")
    how.add_argument("--max-tokens", type=int, metavar="N", help="the longest answer (default: 2048)")


def _add_scoring(how: Any) -> None:
    how.add_argument("--variant", default="official", help="official (default) or paper")
    how.add_argument("--rhyme", help="how rhymes are found: official (default), line or char, the lightest")
    how.add_argument(
        "--strict",
        action="store_true",
        help="texts that are empty or without a section header fail (default: they score 0)",
    )
    how.add_argument(
        "--no-normalise",
        action="store_false",
        dest="normalise",
        help="score texts as they came, fences and remarks included",
    )
    how.add_argument("--no-controls", action="store_false", dest="controls", help="leave out the reference rows")
    add_theme_options(how)
    add_engine_options(how)
    add_interval_options(how)
    how.add_argument("--seed", type=int, default=0, help="of intervals, tests and controls (default: %(default)s)")


def _run(options: argparse.Namespace) -> int:
    from music_evals.benchmark.tasks.songs.lyric_writing import LYRIC_WRITING, Settings, text_report

    values = chosen(options, Settings)
    values["endpoints"] = _endpoints(options)
    for name in ("template_options", "endpoint_options"):
        values[name] = _json_options(values[name], f"--{name.removesuffix('s').replace('_', '-')}")
    settings = Settings(**values)
    quieten()
    if settings.models:
        _quieten_transformers()
    with Bar("lyric") as bar:
        outcome = LYRIC_WRITING.run(settings, progress=bar)
    return finish_scores(outcome, options, report=text_report)


def _endpoints(options: argparse.Namespace) -> list[Endpoint]:
    from music_evals.benchmark.tasks.songs.lyric_writing import Endpoint, Prices

    urls: list[str] = options.endpoints
    settings = {
        name: _spread(getattr(options, name), len(urls), f"--{name.replace('_', '-')}")
        for name in ("endpoint_model", "api_key_env", "price_in", "price_out")
    }
    if None in settings["endpoint_model"]:
        raise InvalidInputError("--endpoint needs --endpoint-model, the id of the model on the server")
    return [
        Endpoint(*_named(url, model), api_key_env=key or None, prices=Prices(read, written))
        for url, model, key, read, written in zip(urls, *settings.values(), strict=True)
    ]


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


def _named(text: str, model: str) -> tuple[str, str, str | None]:
    """Return address, model and name of ``[NAME=]URL``."""
    name, equals, url = text.partition("=")
    return (url, model, name) if equals and "/" not in name else (text, model, None)


def _json_options(texts: Sequence[str], option: str) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for text in texts:
        key, _, value = text.partition("=")
        try:
            options[key] = json.loads(value if key else "")  # no JSON
        except ValueError as error:
            raise InvalidInputError(f"{option} takes KEY=JSON, such as enable_thinking=false; got {text!r}") from error
    return options


def _quieten_transformers() -> None:
    """Leave the progress bar to us: transformers draws one for the weights that it loads."""
    try:
        from transformers.utils import logging
    except ImportError:
        return  # the writer says what is missing
    logging.disable_progress_bar()
