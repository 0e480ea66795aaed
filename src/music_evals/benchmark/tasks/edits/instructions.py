"""Instructions that are written for a run: by templates, or by a language model that is asked once and kept."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from music_evals.annotations import EditInstruction
from music_evals.benchmark.records import dump_json
from music_evals.errors import BackendError, CorruptRecordsError, NoDataError
from music_evals.files import parse_json, write_atomically
from music_evals.protocols import INSTRUCTION_WRITERS, LyricWriter, load_plugin

__all__ = ["INSTRUCTIONS", "Generate", "by_model", "by_templates"]

INSTRUCTIONS = "instructions.jsonl"

Generate = Callable[[Mapping[str, str], Sequence[str], int], dict[str, list[EditInstruction]]]
"""Descriptions by source, tasks and seed -> the instructions of each source."""


def by_templates(descriptions: Mapping[str, str], tasks: Sequence[str], seed: int) -> dict[str, list[EditInstruction]]:
    """Write instructions by templates; raises `NoDataError` for a description without a word that they know."""
    write = load_plugin(INSTRUCTION_WRITERS, "templates", "writer of instructions")
    return {item: list(write(item, text, tasks=tasks, seed=seed)) for item, text in descriptions.items()}


@dataclasses.dataclass(frozen=True)
class _InstructionStore:
    """Answers of a model that were kept, by what was asked."""

    path: Path
    writer: Mapping[str, Any]

    def read(self) -> dict[str, list[EditInstruction]]:
        """Return the instructions of each question; without those of another model or setting."""
        if not self.path.is_file():
            return {}
        instructions = {}
        for number, line in enumerate(self.path.read_text(encoding="utf-8").splitlines(), start=1):
            try:
                row = parse_json(line, f"line {number}")
                if row["by"] == self.writer:
                    instructions[row["asked"]] = [EditInstruction.from_dict(entry) for entry in row["instructions"]]
            except (ValueError, KeyError, TypeError) as error:
                raise CorruptRecordsError(
                    f"{self.path}, line {number} is no kept instruction ({error}); move the file away to ask again"
                ) from error
        return instructions

    def write(self, instructions: Mapping[str, list[EditInstruction]]) -> None:
        """Write these instructions in place of those of the file."""
        rows = (
            {"asked": question, "by": self.writer, "instructions": [instruction.to_dict() for instruction in made]}
            for question, made in instructions.items()
        )
        write_atomically(self.path, "".join(f"{dump_json(row)}\n" for row in rows).encode(), parents=True)


def by_model(writer: LyricWriter, folder: Path, *, afresh: bool = False) -> Generate:
    """Return what lets a language model write instructions, and keeps them in `folder`.

    What is kept there is not asked again unless `afresh`, so that a run that goes on has the same instructions. A
    source whose answer is no instruction is named when all were asked; what was good is kept.
    """
    about = writer.describe()
    identity = {name: about[name] for name in ("model", "commit", "content_hash", "url") if name in about}
    store = _InstructionStore(folder / INSTRUCTIONS, {"name": writer.name, **identity})

    def generate(descriptions: Mapping[str, str], tasks: Sequence[str], seed: int) -> dict[str, list[EditInstruction]]:
        write = load_plugin(INSTRUCTION_WRITERS, "language_model", "writer of instructions")
        questions = {item: dump_json([item, text, list(tasks), seed]) for item, text in descriptions.items()}
        stored = {} if afresh else store.read()
        refused = []
        for item, question in questions.items():
            if question in stored:
                continue
            try:
                stored[question] = write(writer, item, descriptions[item], tasks=tasks, seed=seed)
            except BackendError as error:
                refused.append(str(error))
                continue
            store.write(stored)
        if hasattr(writer, "close"):
            writer.close()  # the editing system needs the memory
        if refused:
            raise BackendError(
                f"{len(refused)} of {len(questions)} answers are no instructions, such as: {refused[0]}; take another "
                "seed or model, or write these by hand"
            )
        made = {item: stored[question] for item, question in questions.items()}
        bare = [item for item, instructions in made.items() if not instructions]
        if bare:
            raise NoDataError(
                f"{writer.name} found no {' or '.join(tasks)} in the description of {bare[0]} "
                f"({len(bare)} of {len(made)} sources); describe more, or write these by hand"
            )
        return made

    return generate
