"""Instructions by a language model: asked for one word of a description and another in its place, and checked.

What the model answers is data from then on: whoever asks keeps the instructions, with the model's name and the day in
`EditInstruction.author`, and does not ask again. Which facets such an edit is meant to change is not left to the
model; the tasks say it (`instructions.KINDS`), so that instructions by whomever are evaluated alike.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from music_evals.annotations import EditInstruction
from music_evals.annotations.target_words import targets_between, targets_in_words
from music_evals.editing.instructions import KINDS, find_words
from music_evals.errors import BackendError, InvalidInputError, UnknownNameError
from music_evals.protocols import LyricWriter

__all__ = ["MOST_CHARACTERS", "instruction_prompt", "read_instruction", "write_instructions"]

MOST_CHARACTERS: Final = 300
"""Longest sentence that counts as an instruction."""

_PROMPT: Final = """\
You write instructions for a system that edits music. Below is the description of a recording.

Choose the words of the description that name its {task}, and other words for another {task}, such as {words}.
The edited recording should keep everything else. Answer with one JSON object and nothing else:
{{"before": "words exactly as they stand in the description", "after": "the other words",
"instruction": "one English sentence that asks for this edit and holds the other words"}}
If the description does not name its {task}, answer {{"before": null}}.

Description: {description}
"""


def instruction_prompt(description: str, task: str) -> str:
    """Return what a language model is asked for one instruction: a description of the source, one of `KINDS`."""
    if task not in KINDS:
        raise UnknownNameError("kind of instruction", task, KINDS)
    if not description.strip():
        raise InvalidInputError("an instruction is written for a description, got an empty one; describe the source")
    words = ", ".join(KINDS[task].words[:4])
    return _PROMPT.format(task=task, words=words, description=" ".join(description.split()))


def read_instruction(
    answer: str, *, source_id: str, description: str, task: str, author: str
) -> EditInstruction | None:
    """Return the instruction that a language model answered, or None where it says that there is no such word.

    `answer` holds one JSON object, perhaps in a fence or behind a remark; source, description and task are what the
    prompt was made of (`instruction_prompt`), and the id of the instruction is ``<source_id>-<task>``. `author` is who
    answered, and when. Raises `BackendError` where the answer is no such object, its words are not those of the
    description, or its sentence is missing.
    """

    def refuse(reason: str) -> BackendError:
        shown = answer.strip()
        shown = f"{shown[:120]}..." if len(shown) > 120 else shown
        return BackendError(f"{source_id}, {task}: {reason}; the model answered {shown!r}")

    plain = " ".join(description.split())
    values = _json_object(answer)
    if values is None:
        raise refuse("no JSON object")
    if "before" in values and values["before"] is None:
        return None
    texts = [values.get(name) for name in ("before", "after", "instruction")]
    if not all(isinstance(text, str) and text.strip() for text in texts):
        raise refuse("before, after and instruction must be texts")
    before, after, sentence = (" ".join(str(text).split()) for text in texts)
    if not find_words(plain, before):
        raise refuse(f"the description does not hold {before!r}")
    if before.casefold() == after.casefold():
        raise refuse("nothing would change")
    if not find_words(sentence, after):
        raise refuse(f"the sentence does not say {after!r}")
    if len(sentence) > MOST_CHARACTERS:
        raise refuse(f"{len(sentence)} characters are no sentence, at most {MOST_CHARACTERS}")
    return EditInstruction(
        id=f"{source_id}-{task}",
        text=sentence,
        task=task,
        source_prompt=plain,
        before=before,
        after=after,
        intended_facets=KINDS[task].intended_facets,
        author=author,
        targets=targets_in_words(sentence) or targets_between(before, after),
    )


def _json_object(answer: str) -> Mapping[str, Any] | None:
    """Return the first JSON object in a text."""
    decoder = json.JSONDecoder()
    for place in re.finditer(r"\{", answer):
        try:
            value, _ = decoder.raw_decode(answer, place.start())
        except (ValueError, RecursionError):
            continue
        return value if isinstance(value, dict) else None
    return None


def write_instructions(
    writer: LyricWriter,
    source_id: str,
    description: str,
    *,
    tasks: Iterable[str] = ("genre", "style", "mood"),
    seed: int = 0,
) -> list[EditInstruction]:
    """Ask a language model for one instruction a task; the tasks for which the description has no word are left out.

    The author of each is the name of the model with its commit, where it has one, and the day.

    Parameters
    ----------
    writer
        Any of `models.lyric_writers`, or another `protocols.LyricWriter`.
    source_id, description
        Of the source; the ids of the instructions begin with its id.
    tasks
        Which of `instructions.KINDS`.
    seed
        Of models that draw at random.

    Raises
    ------
    InvalidInputError, UnknownNameError
        An empty description, or a task that does not exist.
    BackendError
        An answer that is no instruction.
    ModelUnavailableError
        The model cannot be asked.
    """
    wanted = tuple(tasks)
    answers = writer.write([instruction_prompt(description, task) for task in wanted], seed=seed)
    commit = writer.describe().get("commit")
    name = f"{writer.name}@{commit[:12]}" if commit else writer.name
    author = f"{name}, {dt.datetime.now(dt.UTC).date().isoformat()}"
    read = [
        read_instruction(answer.text, source_id=source_id, description=description, task=task, author=author)
        for task, answer in zip(wanted, answers, strict=True)
    ]
    return [instruction for instruction in read if instruction is not None]
