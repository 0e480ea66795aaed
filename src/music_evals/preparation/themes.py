"""The step `themes`: what a lyric is about, written by a language model for annotators to correct."""

from __future__ import annotations

import datetime as dt
import functools
import json
import re
from collections.abc import Mapping
from typing import Any, Final

from music_evals.benchmark.columns import dump_json
from music_evals.benchmark.inputs import load_lyric_writer
from music_evals.errors import BackendError, NoDataError
from music_evals.lyrics.normalise import drop_reasoning
from music_evals.lyrics.patterns import LEAST_CHINESE, chinese_share
from music_evals.lyrics.prompts import theme_prompt, theme_receipt
from music_evals.preparation.contract import Inputs
from music_evals.preparation.lyrics import read_lyrics
from music_evals.protocols import LyricWriter

OPTIONS: Final = ("theme_writer",)

LONGEST: Final = 400  # characters; those of the released themes have 113 on average
COPIED: Final = 7  # characters of a line from which on it stands in no theme by chance: a line of a song has 7 or so
_SEED: Final = 0
_PASSING: Final = ("device", "versions")  # of a writer: what may change without another answer being asked for
_NO_LETTERS = re.compile(r"[\W_]+")


def left_out(options: Mapping[str, Any]) -> str:
    """Return why no theme is written unless a language model is named."""
    return "" if options["theme_writer"] else "no `theme_writer` is named that could write them"


def about(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return which model is asked, how it is asked, and by which prompt."""
    writer = _writer(options)
    facts = {name: value for name, value in writer.describe().items() if name not in _PASSING}
    if facts.get("content_hash"):
        del facts["model"]  # a folder may move
    return {"writer": writer.name, **facts, "prompt": theme_receipt(), "seed": _SEED}


def write_theme(inputs: Inputs) -> dict[str, Any]:
    """Ask for the theme of a song; the answer names its writer and the day."""
    lyrics = read_lyrics(inputs.files["lyrics"])
    writer = _writer(inputs.options)
    (written,) = writer.write([theme_prompt(lyrics)], seed=_SEED)
    if written.cut_off:
        raise BackendError(f"{writer.name} was cut off at its limit of tokens: {written.text[:40]!r} ...")
    facts = writer.describe()
    held = facts.get("content_hash")  # of a folder, whose place on this machine says nothing to others
    return {
        "theme": {
            "text": checked_theme(written.text, lyrics, writer.name),
            "model": writer.name if held else str(facts.get("model", writer.name)),
            "state": held or facts.get("commit"),
            "day": dt.datetime.now(dt.UTC).date().isoformat(),
        }
    }


def checked_theme(text: str, lyrics: str, name: str) -> str:
    """Return an answer as a theme, without what a model thought aloud before."""
    theme = " ".join(drop_reasoning(text).split())
    prefix = f"{name} wrote no theme: the answer"
    if not theme:
        raise BackendError(f"{prefix} is empty")
    if len(theme) > LONGEST:
        raise BackendError(f"{prefix} has {len(theme)} characters, more than {LONGEST}: {theme[:40]!r} ...")
    share = chinese_share(theme)
    if share < LEAST_CHINESE:
        raise BackendError(f"{prefix} is not Chinese ({share:.0%} of its letters are): {theme[:40]!r} ...")
    letters = _NO_LETTERS.sub("", theme)
    for line in lyrics.splitlines():
        bare = _NO_LETTERS.sub("", line)
        if len(bare) >= COPIED and not line.startswith("(") and bare in letters:
            raise BackendError(f"{prefix} copies the line {line!r}")
    return theme


def _writer(options: Mapping[str, Any]) -> LyricWriter:
    given = options["theme_writer"]
    if not given:
        raise NoDataError("the step themes needs a language model (`theme_writer`)")
    return _load_writer(dump_json(given)) if isinstance(given, Mapping) else given


_load_writer = functools.lru_cache(maxsize=1)(lambda options: load_lyric_writer(json.loads(options)))
