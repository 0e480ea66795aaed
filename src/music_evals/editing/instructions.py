"""Instructions by templates: the same words for the same music, offline and without a language model.

One instruction changes one word of a known kind (genre, style, mood, timbre) into another one of that kind. Each kind
names the facets that such a change is meant to touch, and its sentences. A language model may write other sentences;
those are data then, frozen with the model's name and date (`EditInstruction.author`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from music_evals.annotations import EditInstruction
from music_evals.annotations.target_words import targets_between, targets_in_words
from music_evals.errors import NoDataError, UnknownNameError

__all__ = ["KINDS", "Kind", "exchange", "find_tags", "generate"]


class Kind(NamedTuple):
    """What an instruction of one task says."""

    words: tuple[str, ...]  # that can be exchanged for each other
    sentences: tuple[str, ...]  # with ``{before}`` and ``{after}``
    # what such an edit is meant to change: the reading of this package, not that of MuseCPBench, which names none
    intended_facets: tuple[str, ...]


KINDS: Final[Mapping[str, Kind]] = {
    "genre": Kind(
        ("rock", "jazz", "classical", "electronic", "folk", "blues", "reggae", "funk", "country", "metal"),
        ("Turn this {before} piece into {after}.", "Change the genre from {before} to {after}."),
        ("harmony", "rhythm"),
    ),
    "style": Kind(
        ("acoustic", "orchestral", "synthwave", "lo-fi", "swing", "bossa nova", "ambient", "marching band"),
        ("Play this in {after} style instead of {before}.", "Change the style from {before} to {after}."),
        ("rhythm",),
    ),
    "mood": Kind(
        ("happy", "sad", "calm", "energetic", "dark", "dreamy", "tense", "playful"),
        ("Make the {before} mood {after}.", "Change the mood from {before} to {after}."),
        ("harmony",),
    ),
    "timbre": Kind(
        ("piano", "guitar", "violin", "flute", "organ", "saxophone", "cello", "trumpet"),
        ("Replace the {before} with a {after}.", "Let the part of the {before} be played by a {after}."),
        (),
    ),
}
"""Task -> what its instructions say."""


def exchange(
    before: str,
    after: str,
    *,
    task: str = "other",
    source_prompt: str = "",
    id: str = "",  # noqa: A002 (the field of an instruction)
    sentence: int = 0,
) -> EditInstruction:
    """Return the instruction that exchanges one word for another, with its target caption where one follows.

    `task` is one of `KINDS`, or ``"other"``, which is meant to change nothing that is measured. Where `source_prompt`
    holds `before`, the target caption follows from it. `sentence` says which of the sentences of the task is taken,
    counted round from 0.

    Examples
    --------
    >>> exchange("rock", "jazz", task="genre", source_prompt="a rock band").target_caption()
    'a jazz band'
    """
    if task not in KINDS and task != "other":
        raise UnknownNameError("kind of instruction", task, [*KINDS, "other"])
    kind = KINDS.get(task, Kind((), ("Change {before} to {after}.",), ()))
    text = kind.sentences[sentence % len(kind.sentences)].format(before=before, after=after)
    return EditInstruction(
        id=id,
        text=text,
        task=task,
        source_prompt=source_prompt,
        before=before,
        after=after,
        intended_facets=kind.intended_facets,
        author="template",
        targets=targets_in_words(text) or targets_between(before, after),
    )


def find_tags(description: str) -> dict[str, str]:
    """Return task -> the first word of its kind that a description holds, whatever its case.

    Examples
    --------
    >>> find_tags("A sad Rock ballad with piano")
    {'genre': 'rock', 'mood': 'sad', 'timbre': 'piano'}
    """
    tags = {}
    for task, kind in KINDS.items():
        if held := [(place.start(), word) for word in kind.words if (place := find_words(description, word))]:
            tags[task] = min(held)[1]
    return tags


def find_words(text: str, words: str) -> re.Match[str] | None:
    """Find words in a text, whole and whatever their case."""
    return re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text, re.IGNORECASE)


def generate(
    source_id: str, description: str, *, tasks: Iterable[str] = ("genre", "style", "mood"), seed: int = 0
) -> Sequence[EditInstruction]:
    """Return one instruction for each task of `KINDS` whose kind of word the (English) description of a source holds.

    Source id, task and seed decide which new word and which sentence; other sources change nothing. A task without
    templates is an `UnknownNameError`, a description without a word of any of these tasks a `NoDataError`.
    """
    wanted = tuple(tasks)
    for task in wanted:
        if task not in KINDS:
            raise UnknownNameError("kind of instruction", task, KINDS)
    tags = {task: word for task, word in find_tags(description).items() if task in wanted}
    if not tags:
        raise NoDataError(
            f"{source_id}: the description {description!r} names no {' or '.join(wanted)} that the templates know; "
            "write an instruction by hand"
        )
    instructions = []
    for task, before in tags.items():
        digest = hashlib.sha256(f"{seed} {source_id} {task}".encode()).digest()
        rng = np.random.default_rng(int.from_bytes(digest[:8], "big"))
        others = [word for word in KINDS[task].words if word != before]
        after = others[int(rng.integers(len(others)))]
        instructions.append(
            exchange(
                before,
                after,
                task=task,
                source_prompt=description,
                id=f"{source_id}-{task}",
                sentence=int(rng.integers(len(KINDS[task].sentences))),
            )
        )
    return instructions
