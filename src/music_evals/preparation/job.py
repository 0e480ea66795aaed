"""Steps of songs as work for the engine: what is left to do, and the records and files that answers become."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from music_evals.benchmark.columns import dump_json
from music_evals.benchmark.engines import Failed, Unit
from music_evals.benchmark.records import Records
from music_evals.benchmark.run import Job, Row
from music_evals.files import write_atomically
from music_evals.preparation.contract import Inputs, Song, Step
from music_evals.preparation.steps import STEPS, StepWork

Key = tuple[str, str]
"""Song and step."""


@dataclasses.dataclass(frozen=True)
class Wanted:
    """A step that is asked for."""

    step: Step
    options: Mapping[str, Any]  # the settings that it reads
    about: Mapping[str, Any]  # what they stand for

    @property
    def record(self) -> Row:
        """What the records say of it, once."""
        facts = {"step": self.step.name, "version": self.step.version, "about": json.loads(dump_json(dict(self.about)))}
        return {"kind": "step", **facts, "content_hash": hashlib.sha256(dump_json(facts).encode()).hexdigest()}


@dataclasses.dataclass
class PreparationJob(Job):
    """Some steps of every song into one store of records; the files that they make lie beside it."""

    header: Mapping[str, Any]
    songs: Sequence[Song]
    wanted: Sequence[Wanted]
    out: Path
    earlier: Mapping[Key, Row]  # last records of the steps of before, as `latest`

    def __post_init__(self) -> None:
        self.size, self.work = len(self.songs) * len(self.wanted), StepWork()
        self._step_records = {wanted.step.name: wanted.record for wanted in self.wanted}
        self._hashes: dict[str, str] = {}

    def selection(self, rows: Records) -> Iterable[Row]:
        """Return what is not yet said of the steps."""
        known = {row["content_hash"] for row in rows.of("step")}
        return [record for record in self._step_records.values() if record["content_hash"] not in known]

    def left(self, rows: Records) -> list[Unit]:
        """Leave out what is done, with all that it reads as it was."""
        done = {
            key
            for key, row in self.latest(rows).items()
            if "error" not in row and all(_file_hash(self.out / path) == own for path, own in row["files"].items())
        }
        return [
            Unit((wanted.step.name, self._inputs(song, wanted)), f"{song.song} {wanted.step.name}", song.song)
            for song in self.songs
            for wanted in self.wanted
            if (song.song, wanted.step.name) not in done
        ]

    def latest(self, rows: Records) -> dict[Key, Row]:
        """Return the last record of each song and step that is asked for and was made of what is there now."""
        last = {(row["song"], row["step"]): row for row in rows.of("preparation")}
        current = {}
        for song in self.songs:
            for wanted in self.wanted:
                key = (song.song, wanted.step.name)
                if key in last and last[key].get("reads") == self._reads(self._inputs(song, wanted), wanted.step):
                    current[key] = last[key]
        return current

    def rows(self, unit: Unit, answer: Any) -> list[Row]:
        """Write the files of an answer, and return its record."""
        name, inputs = unit.payload
        step = STEPS[name]
        about: Row = {"kind": "preparation", "song": inputs.song, "step": name, "reads": self._reads(inputs, step)}
        if isinstance(answer, Failed):
            return [about | {"error": answer.reason}]
        value, files = dict(answer), {}
        for key, template in step.files.items():
            if key not in value:
                continue
            place, content = template.format(song=inputs.song), value[key]
            write_atomically(self.out / place, content, parents=True)
            files[place] = hashlib.sha256(content).hexdigest()
            value[key] = place
        return [about | {"value": value, "files": files}]

    def _inputs(self, song: Song, wanted: Wanted) -> Inputs:
        step = wanted.step
        rows = {name: self.earlier.get((song.song, name), {}) for name in (*step.after, *step.uses)}
        return Inputs(
            song.song,
            {kind: path for kind, path in song.files.items() if kind in {*step.needs, *step.uses}},
            {name: row["value"] for name, row in rows.items() if "value" in row},
            wanted.options,
            str(self.out),
        )

    def _reads(self, inputs: Inputs, step: Step) -> Row:
        """Return the hashes of all that decides an answer."""
        made = {name: self.earlier[inputs.song, name] for name in inputs.answers}
        return {
            "files": {kind: self._hash(path) for kind, path in inputs.files.items()},
            "answers": {
                name: hashlib.sha256(dump_json([row["value"], row["files"]]).encode()).hexdigest()
                for name, row in made.items()
            },
            "step": self._step_records[step.name]["content_hash"],
        }

    def _hash(self, path: str) -> str:
        if path not in self._hashes:
            self._hashes[path] = _file_hash(Path(path))
        return self._hashes[path]


def _file_hash(path: Path) -> str:
    """Return the SHA-256 of a file; "" where there is none."""
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
