"""The editing test as a study in the browser: from samples to its folder; `answers` has what comes back.

Each editor gets pieces that are all different, as many of one model as of the other where their number is even, and in
another order; each sample gets as many editors as any other, give or take one. So nobody edits two versions of a piece,
and what an editor learns or tires of falls on both models alike.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from music_evals.annotations import Score
from music_evals.errors import InvalidInputError
from music_evals.files import write_atomically
from music_evals.options import option
from music_evals.pipelines.study_tables import SAMPLES, TIME_LIMIT_S, located_at, rows_of, study_tables, table_text
from music_evals.studies.folders import Introduction, StudyFolder, write_study_folder
from music_evals.symbolic.midi import read_midi, write_midi
from music_evals.symbolic.notes import make_notes, quantize, sort_notes
from music_evals.symbolic.roles import MELODY, ROLES, name_words

__all__ = [
    "CONSENT",
    "MAY_ADD",
    "MISTAKES",
    "QUESTIONS",
    "EditingSettings",
    "assign_editors",
    "build_editing_study",
    "with_mistakes",
    "write_demo_samples",
]

QUESTIONS = {
    "EQ1": "It was easy to edit.",
    "EQ2": "It sounds good after my editing.",
    "EQ3": "My own production could benefit from it.",
}
"""What editors are asked after each sample, 1 (not at all) to 5 (very much): section 5.1 of the paper, in our words."""
BEFORE = {"LQ1": "It sounds good."}
"""What they may be asked before they edit."""
MAY_ADD = ("flagged", "no", "yes")
"""Whether notes may be added: yes but counted, which is the paper's "no new ideas"; not at all; freely."""
_ABOUT = {
    "tool_familiarity": (
        "How often do you edit notes in a piano roll?",
        ("never", "a few times a year", "monthly", "weekly or more"),
    ),
    "editing_years": ("For how many years have you made or arranged music?", ("0 to 2", "3 to 9", "10 or more")),
}
CONSENT = "may_publish"
"""What the box is called, not ticked by itself, with which an editor lets the log be published."""
_MAY_PUBLISH = "What I did with the notes may be published for research, under another number than mine."
_DIVISOR = 24
"""Ticks of a quarter are a multiple of it, so that 32nd notes and triplets are whole."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class EditingSettings:
    """How the test is held; raises `InvalidInputError` for a value out of its range.

    Without `per_editor` each editor gets every piece once (`assign_editors`). `limit_sec` is of one sample, None for
    none; `may_add` is one of `MAY_ADD`; `locked` are the voices that cannot be changed, None for those whose name says
    that they are the melody.
    """

    n_editors: int = option(12, "plans (default: %(default)s)", flag="--editors")
    per_editor: int | None = option(None, "samples of each editor, one a piece (default: as many as pieces)")
    limit_sec: float | None = option(
        TIME_LIMIT_S, "of one sample; 0 for none (default: %(default)g)", flag="--limit", metavar="SECONDS"
    )
    may_add: str = option("flagged", "whether notes may be added: flagged (default), no or yes")
    ask_before: bool = option(False, "ask whether a sample sounds good before it is edited")
    locked: tuple[str, ...] | None = option(
        None, "voices that cannot be changed, with commas (default: those named as a melody)", metavar="NAMES"
    )
    seed: int = option(0, "of codes and plans; one that nobody knows")

    GROUPS: ClassVar = {"how": "how it is held"}

    def __post_init__(self) -> None:
        if self.limit_sec is not None and not 0 < self.limit_sec < math.inf:
            raise InvalidInputError(f"limit_sec must be above 0, or None for no limit, got {self.limit_sec}")
        if self.may_add not in MAY_ADD:
            raise InvalidInputError(f"may_add must be one of {', '.join(MAY_ADD)}, got {self.may_add!r}")


class _Sample(NamedTuple):
    row: Mapping[str, Any]
    code: str
    midi: bytes
    value: dict[str, Any]


def build_editing_study(
    folder: str | os.PathLike[str],
    samples: str | os.PathLike[str],
    *,
    study: str,
    introduction: Introduction,
    page: Mapping[str, bytes],
    settings: EditingSettings | None = None,
) -> StudyFolder:
    """Make the folder of an editing test; its page knows samples by codes alone, and `key` says which is which.

    `samples` is a table with the columns of `pipelines.study_tables.SAMPLES` that are needed, and ``midi``: a MIDI
    file, from the folder of the table on. The folder, `study`, `introduction` and `page` are those of
    `studies.folders.write_study_folder`. Raises `NoDataError` without such a table or MIDI file, `InvalidInputError` or
    `PairCountError` for an invalid row or design, and `UnreadableFileError` for an invalid MIDI file; the message names
    the row.
    """
    settings = settings or EditingSettings()
    chosen = _read_samples(Path(samples), settings)
    by_id = {sample.row["sample_id"]: sample for sample in chosen}
    per_editor = settings.per_editor or len({sample.row["piece_id"] for sample in chosen})
    plans = assign_editors([sample.row for sample in chosen], settings.n_editors, per_editor, seed=settings.seed)
    # a phrase of ours with two faults to mend: a wrong note and one that is too long
    melody = enumerate((60, 64, 67, 64, 65, 69, 67, 62))
    chords = [(0, 2, 48), (0, 2, 52), (0, 2, 55), (2, 2, 48), (2, 2, 52), (2, 2, 56), (4, 2, 53), (4, 2, 57)]
    chords += [(4, 4, 60), (6, 2, 47), (6, 2, 50), (6, 2, 55)]
    notes = [*((onset, 1, pitch, 0) for onset, pitch in melody), *((*note, 1) for note in chords)]
    onsets, lengths, pitches, voices = zip(*notes, strict=True)
    score_notes = make_notes(onsets, lengths, pitches, 80, voices)
    about = {
        "limit_sec": settings.limit_sec,
        "may_add": settings.may_add,
        "questions": [{"name": name, "text": text} for name, text in QUESTIONS.items()],
        "before": [{"name": name, "text": text} for name, text in BEFORE.items()] if settings.ask_before else [],
        "about": [
            *({"name": name, "text": text, "options": list(kinds)} for name, (text, kinds) in _ABOUT.items()),
            {"name": CONSENT, "text": _MAY_PUBLISH, "tick": True},
        ],
        "training": "training",
        # by code, so that their order says nothing
        "samples": {
            "training": _sample_value(Score(score_notes, 1, voices=("melody", "accompaniment")), (0,)),
            **{sample.code: sample.value for sample in sorted(chosen, key=lambda sample: sample.code)},
        },
    }
    rows = [
        {"code": sample.code, **{column.name: sample.row.get(column.name, "") for column in SAMPLES},
         "midi_sha256": hashlib.sha256(sample.midi).hexdigest(), "n_notes": len(sample.value["notes"])}
        for sample in chosen
    ]  # fmt: skip
    key: dict[str, bytes | Path] = {"samples.csv": table_text(rows).encode()}
    key |= {f"midi/{sample.code}.mid": sample.midi for sample in chosen}
    key["design.json"] = (json.dumps(dataclasses.asdict(settings), indent=1) + "\n").encode()
    return write_study_folder(
        folder, kind="editing", study=study, introduction=introduction, settings=about,
        plans=[{"samples": [by_id[id_].code for id_ in plan]} for plan in plans], page=dict(page), key=key,
    )  # fmt: skip


def _read_samples(path: Path, settings: EditingSettings) -> list[_Sample]:
    """Read the table and its MIDI files, and give each sample a code."""
    rows = rows_of(path, table_name="samples")
    # checked with one edit of each sample, since a study's tables are checked as a whole
    edit = {"editor_id": "none", "time_s": 1, "key_presses": 0, "mouse_clicks": 0, "hit_limit": False,
            "EQ1": 3, "EQ2": 3, "EQ3": 3}  # fmt: skip
    study_tables(rows, [{"sample_id": row.get("sample_id", ""), **edit} for row in rows])
    rng = np.random.default_rng([settings.seed, 1])
    codes = [f"{number:05x}" for number in rng.choice(16**5, size=len(rows), replace=False)]
    samples = []
    for number, (row, code) in enumerate(zip(rows, codes, strict=True), start=1):
        name = str(row.get("midi") or "")
        if not name:
            raise InvalidInputError(f"samples, row {number}: no file in the column midi")
        file = path.parent / name
        with located_at(f"samples, row {number}"):
            score = read_midi(file)
            value = _sample_value(score, _locked(score, settings.locked))
        samples.append(_Sample(row, code, file.read_bytes(), value))
    return samples


def _locked(score: Score, names: Sequence[str] | None) -> tuple[int, ...]:
    """Return the voices that cannot be changed."""
    if names is None:
        melody = ROLES[MELODY].words
        return tuple(voice for voice, name in enumerate(score.voices) if name_words(name) & melody)
    missing = [name for name in names if name not in score.voices]
    if missing:
        raise InvalidInputError(f"no voice is called {missing[0]!r}; there are {', '.join(score.voices)}")
    return tuple(voice for voice, name in enumerate(score.voices) if name in names)


def _sample_value(score: Score, locked: Sequence[int]) -> dict[str, Any]:
    """Return a sample as the page reads it: names of voices say what they do, never who made them."""
    if len(locked) == len(score.voices) or not len(score.notes):
        raise InvalidInputError("there is nothing to edit: every voice is locked, or there are no notes")
    score = quantize(score, math.lcm(score.ticks_per_quarter, _DIVISOR))  # no note moves
    signature = score.time_signatures[-1] if score.time_signatures else None
    quarters = signature.quarters if signature else 4.0
    measure, begun = round(quarters * score.ticks_per_quarter), signature.tick if signature else 0
    end = begun + max(1, -(-(score.end_tick - begun) // measure)) * measure
    free = [voice for voice in range(len(score.voices)) if voice not in locked]
    names = {voice: "melody" if len(locked) == 1 else f"melody {place + 1}" for place, voice in enumerate(locked)}
    names |= {voice: "accompaniment" if len(free) == 1 else f"part {place + 1}" for place, voice in enumerate(free)}
    return {
        "ticks_per_quarter": score.ticks_per_quarter,
        "end_tick": int(end),
        "tempos": [[tempo.tick, tempo.bpm] for tempo in score.tempos],
        "time_signatures": [[change.tick, change.numerator, change.denominator] for change in score.time_signatures],
        "voices": [names[voice] for voice in range(len(score.voices))],
        "locked": list(locked),
        "notes": list(map(list, score.notes[["onset_tick", "duration_tick", "pitch", "velocity", "voice"]].tolist())),
    }


def assign_editors(
    samples: Sequence[Mapping[str, Any]], n_editors: int, per_editor: int, *, seed: int
) -> list[list[str]]:
    """Give each editor samples in an order: return the ``sample_id`` of each, one list an editor.

    `samples` are rows with ``sample_id``, ``piece_id``, ``style`` and ``role``, each piece and style with one proposed
    and one baseline sample; `per_editor` is at most the number of pieces; `seed` draws the order of pieces and of each
    editor. Raises `InvalidInputError` where pieces are too few for an editor, or editors for the samples.
    """
    rng = np.random.default_rng(seed)
    pieces = list(dict.fromkeys(row["piece_id"] for row in samples))
    if n_editors < 1 or not 1 <= per_editor <= len(pieces):
        raise InvalidInputError(
            f"{per_editor} samples for each of {n_editors} editors: an editor gets each piece once at most, and there "
            f"are {len(pieces)} pieces"
        )
    if n_editors * per_editor < len(samples):
        raise InvalidInputError(
            f"{n_editors} editors with {per_editor} samples each are too few for {len(samples)} samples; "
            f"{-(-len(samples) // per_editor)} editors are enough"
        )
    pieces = [pieces[index] for index in rng.permutation(len(pieces))]
    roles = list(dict.fromkeys(row["role"] for row in samples))
    versions = {}
    for piece in pieces:  # its samples, roles by turns
        mine = [row for row in samples if row["piece_id"] == piece]
        by_role = [[row["sample_id"] for row in mine if row["role"] == role] for role in roles]
        versions[piece] = [sample for turn in itertools.zip_longest(*by_role) for sample in turn if sample is not None]
    counts = dict.fromkeys(pieces, 0)
    plans = []
    for editor in range(n_editors):
        # the pieces that were given the least, and of equals those that come next in the round
        turn = {piece: (place - editor * per_editor) % len(pieces) for place, piece in enumerate(pieces)}
        chosen = sorted(sorted(pieces, key=lambda piece: (counts[piece], turn[piece]))[:per_editor], key=pieces.index)
        plan = []
        for piece in chosen:
            # the versions of a piece go round, each piece from another start, so that neighbours differ in their role
            round_ = versions[piece]
            plan.append(round_[(counts[piece] + pieces.index(piece)) % len(round_)])
            counts[piece] += 1
        shift = editor % len(plan)
        order = plan[shift:] + plan[:shift]
        plans.append(order if rng.random() < 0.5 else order[::-1])
    return plans


MISTAKES = {"proposed": 0.05, "baseline": 0.3}
"""Role -> share of the notes that get a mistake. Neither is a model: what such a study finds is what was put in."""


def with_mistakes(score: Score, share: float, *, keep: str, rng: np.random.Generator) -> Score:
    """Give a share of the notes a wrong pitch, a semitone or two away, or another length, half or twice its own."""
    if keep not in score.voices:
        raise InvalidInputError(f"no voice is called {keep!r}; there are {', '.join(score.voices)}")
    if not 0 <= share <= 1:
        raise InvalidInputError(f"share must be 0 to 1, got {share}")
    notes = score.notes.copy()
    free = np.flatnonzero(notes["voice"] != score.voices.index(keep))
    chosen = rng.choice(free, size=int(np.ceil(share * len(free))), replace=False)
    wrong, long = np.array_split(chosen, 2)
    by = rng.choice([-2, -1, 1, 2], size=len(wrong))
    notes["pitch"][wrong] = np.clip(notes["pitch"][wrong].astype(np.int64) + by, 0, 127)
    twice = rng.random(len(long)) < 0.5
    lengths = notes["duration_tick"][long].astype(np.int64)
    notes["duration_tick"][long] = np.where(twice, 2 * lengths, np.maximum(lengths // 2, 1))
    return dataclasses.replace(score, notes=sort_notes(notes))


def write_demo_samples(
    folder: str | os.PathLike[str], pieces: Mapping[str, Score], *, keep: str = "melody", seed: int = 0
) -> Path:
    """Write the samples of a study to try, and return their table: mistakes (`MISTAKES`) in all voices but `keep`."""
    place = Path(folder)
    rows: list[dict[str, str]] = []
    for number, (piece, score) in enumerate(pieces.items()):
        for role, share in MISTAKES.items():
            rng = np.random.default_rng([seed, number, len(rows)])
            mistaken = with_mistakes(score, share, keep=keep, rng=rng)
            name = f"{piece}-{role}.mid"
            write_atomically(place / name, write_midi(mistaken), parents=True)
            rows.append(
                {"sample_id": f"{piece}-{role}", "piece_id": piece, "style": "mistakes",
                 "model": f"{round(100 * share)} % wrong", "role": role, "midi": name}
            )  # fmt: skip
    return write_atomically(place / "samples.csv", table_text(rows).encode())
