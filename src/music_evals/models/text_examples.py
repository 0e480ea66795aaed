"""What a language model is tuned on: songs as prompts and answers, without those that it will be evaluated on.

The prompt is that of ``write-lyrics``, to the letter, and so is the way in which the model reads it: as the message of
a user where the tokenizer has a chat template, else as it stands. The answer is the song's own words under the headers
of the prompt, without numbers; only the answer's tokens are learnt.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from music_evals.annotations import sections_of_rows, sections_text, theme_of_row
from music_evals.errors import InvalidLyricsError, InvalidPatternError, NoDataError
from music_evals.lyrics.near_copies import NearCopies
from music_evals.lyrics.prompts import lyric_prompt, theme_prompt
from music_evals.models._song_rows import check_ids, song_rows
from music_evals.models._writing import prompt_text
from music_evals.models.text_recipe import TextData

__all__ = ["TextExample", "TextSongs", "Tokenized", "content_hash", "load_text_songs", "tokenized"]

INCOMPLETE, JUDGED, REPEATED = "without theme or lyrics", "judged or a near copy", "repeated"
"""Why a song of the training split is not trained on."""


class TextExample(NamedTuple):
    """One song: what is asked, and what is answered."""

    id: str
    prompt: str
    answer: str


class TextSongs(NamedTuple):
    """Songs of a recipe, in three parts that share no song and no near copy.

    Attributes
    ----------
    train, validation
        Out of the training split.
    judged
        What the model will be evaluated on.
    left_out
        Why -> ids of training songs that are in no part: no theme or no lyrics; a song of the judged ones, or a near
        copy of one; a near copy of an earlier training song.

    """

    train: tuple[TextExample, ...]
    validation: tuple[TextExample, ...]
    judged: tuple[TextExample, ...]
    left_out: dict[str, tuple[str, ...]]


class Tokenized(NamedTuple):
    """One song as token ids; those from `n_asked` on are the answer."""

    id: str
    ids: tuple[int, ...]
    n_asked: int


def load_text_songs(data: TextData, folder: Path, *, seed: int) -> TextSongs:
    """Return the songs of a recipe.

    Parameters
    ----------
    data
        What the recipe says.
    folder
        Of the recipe; paths in it are relative to that, or else to the working folder.
    seed
        Decides which songs are held out for validation.

    Raises
    ------
    NoDataError
        No such dataset or split, or fewer than two songs are left to train on.
    InvalidInputError, InvalidLyricsError, UnreadableFileError
        Rows that are not as they should be.

    """
    rows = [row for row in song_rows(data.dataset, data.config, data.train, folder)]  # noqa: C416 - a Dataset too
    check_ids([str(row.get("id")) for row in rows], f"{data.dataset}, {data.train}")
    other = data.judged or data.dataset
    config = data.judged_config or (data.config if other == data.dataset else None)
    judged = list(song_rows(other, config, data.judged_split, folder))
    examples, left_out = _apart(rows, judged, data)
    if len(examples) < 2:
        raise NoDataError(
            f"{len(examples)} songs of {data.dataset}, {data.train}, are left to train on and at least 2 are needed; "
            f"left out: {', '.join(f'{len(ids)} {why}' for why, ids in left_out.items()) or 'none'}"
        )
    order = np.random.default_rng((seed, 1)).permutation(len(examples))
    n_held = min(max(1, round(data.validation * len(examples))), len(examples) - 1)
    held = set(order[:n_held].tolist())
    return TextSongs(
        tuple(example for place, example in enumerate(examples) if place not in held),
        tuple(example for place, example in enumerate(examples) if place in held),
        tuple(example for row in judged if (example := _example(row, data)) is not None),
        left_out,
    )


def _apart(
    rows: Sequence[Mapping[str, Any]], judged: Sequence[Mapping[str, Any]], data: TextData
) -> tuple[list[TextExample], dict[str, tuple[str, ...]]]:
    """Return the songs that may be trained on, and the ids of the others by the reason."""
    theirs, known = _Known(judged), _Known(())
    examples: list[TextExample] = []
    left_out: dict[str, list[str]] = {}
    for row in rows:
        example = _example(row, data)
        if theirs.holds(row):
            left_out.setdefault(JUDGED, []).append(str(row["id"]))
        elif example is None:
            left_out.setdefault(INCOMPLETE, []).append(str(row["id"]))
        elif known.holds(row):
            left_out.setdefault(REPEATED, []).append(str(row["id"]))
        else:
            known.add(row)
            examples.append(example)
    return examples, {why: tuple(ids) for why, ids in left_out.items()}


class _Known:
    """Songs to keep apart from others: by id, words, title and performers, and near copies."""

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self._keys: set[tuple[str, ...]] = set()
        self._texts = NearCopies()
        for row in rows:
            self.add(row)

    def add(self, row: Mapping[str, Any]) -> None:
        self._keys.update(_keys(row))
        self._texts.add(_lines(row))

    def holds(self, row: Mapping[str, Any]) -> bool:
        return not self._keys.isdisjoint(_keys(row)) or self._texts.find(_lines(row)) is not None


def _keys(row: Mapping[str, Any]) -> list[tuple[str, ...]]:
    keys: list[tuple[str, ...]] = [("id", str(row["id"]))]
    if lines := _lines(row):
        keys.append(("words", *lines))
    if title := (row.get("title") or "").strip().casefold():
        keys.append(("title", title, *sorted(map(str.casefold, row.get("artist") or ()))))
    return keys


def _lines(row: Mapping[str, Any]) -> list[str]:
    return [line.strip() for section in row.get("structure") or () for line in section.get("lines") or ()]


def _example(row: Mapping[str, Any], data: TextData) -> TextExample | None:
    """Return a song as prompt and answer; None where theme, words or pattern are missing."""
    theme = theme_of_row({data.theme_from: row.get(data.theme_from)} if data.theme_from else row)
    if theme is None or not any(_lines(row)):
        return None
    words = sections_text(sections_of_rows(row["structure"], "lines"), numbered=False)
    if data.task == "themes":
        return TextExample(str(row["id"]), theme_prompt(words, language=data.language), theme)
    pattern = sections_text(sections_of_rows(row["structure"], "rhyme"), numbered=False)
    try:
        prompt = lyric_prompt(theme, pattern, language=data.language)
    except (InvalidPatternError, InvalidLyricsError):
        return None
    return TextExample(str(row["id"]), prompt, words)


def tokenized(examples: Sequence[TextExample], tokenizer: Any, most: int | None) -> tuple[list[Tokenized], int]:
    """Return the examples as a model reads them, and how many are longer than `most` tokens and left out."""
    ends = [] if tokenizer.eos_token_id is None else [tokenizer.eos_token_id]
    tokenized_examples: list[Tokenized] = []
    for example in examples:
        text, is_chat = prompt_text(tokenizer, example.prompt)
        # apart, as when it writes: the boundary of prompt and answer is a boundary of tokens
        prompt = tokenizer(text, add_special_tokens=not is_chat)["input_ids"]
        prompt = prompt[:-1] if ends and prompt[-1:] == ends else prompt  # some tokenizers end every text
        break_ = "" if is_chat else "\n"
        answer = tokenizer(f"{break_}{example.answer}", add_special_tokens=False)["input_ids"]
        tokenized_examples.append(Tokenized(example.id, (*prompt, *answer, *ends), len(prompt)))
    fitting = [song for song in tokenized_examples if most is None or len(song.ids) <= most]
    return fitting, len(tokenized_examples) - len(fitting)


def content_hash(parts: Sequence[Sequence[Tokenized]]) -> str:
    """Return a hash of what is learnt and what decides when to stop."""
    return hashlib.sha256(repr([[example.ids for example in part] for part in parts]).encode()).hexdigest()[:16]
