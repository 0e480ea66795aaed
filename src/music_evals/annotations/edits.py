"""Values of music editing: an instruction, a request, what a system returns, and what a system is.

Conventions
-----------
- Audio is float32, shape (channels, samples), full scale 1, with its rate in Hz.
- Facets are those of the preservation benchmark: harmony, rhythm, structure, melody.
- Bars are counted from 0; the last one of a range is excluded.
- Values that break the rules of their parameters raise `InvalidInputError`, samples `InvalidAudioError`, unknown tasks
  and facets `UnknownNameError`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

from music_evals.annotations.recordings import Beats, Chords
from music_evals.annotations.scores import Score
from music_evals.annotations.targets import EditTarget, targets_of, targets_to_dict
from music_evals.errors import InvalidAudioError, InvalidInputError, UnknownNameError

FACETS: Final = ("harmony", "rhythm", "structure", "melody")
"""What the preservation benchmark tells apart."""

EDIT_TASKS: Final = ("style", "genre", "mood", "timbre", "refine", "other")
"""What an instruction asks for, in words; the first three are those of MuseCPBench."""

BACKBONES: Final = ("autoregressive", "diffusion", "refinement", "codec", "no weights", "not stated")
"""Kinds of models behind editing systems; a codec alone is that of a control, the last one that of finished files."""

MOST_CONFIDENCE: Final = 10
"""Confidence at which RefinPaint keeps every token (its paper, section 3)."""

Samples = npt.NDArray[np.float32]


@dataclasses.dataclass(frozen=True, kw_only=True)
class EditInstruction:
    """What is asked of an editing system, in every form that a system may need.

    Parameters
    ----------
    text
        The request in natural language.
    id
        Its id; empty where it has none.
    task
        One of `EDIT_TASKS`.
    source_prompt, target_prompt
        Descriptions of the music before and after the edit; empty where they are not known.
    before, after
        The pair of words that the edit exchanges, such as ``"rock"`` and ``"jazz"``; both or neither.
    bars
        First bar and the bar after the last one that may change, counted from 0.
    confidence
        How much of these bars is kept, 0 (nothing) to `MOST_CONFIDENCE` (everything).
    intended_facets
        Which of `FACETS` are meant to change: a change of these is no damage.
    author
        Who wrote it: ``"human"``, ``"template"``, or a language model with its date.
    targets
        What it asks for that can be measured afterwards, see `annotations.targets`.
    """

    text: str
    id: str = ""
    task: str = "other"
    source_prompt: str = ""
    target_prompt: str = ""
    before: str = ""
    after: str = ""
    bars: tuple[int, int] | None = None
    confidence: int | None = None
    intended_facets: tuple[str, ...] = ()
    author: str = "human"
    targets: tuple[EditTarget, ...] = ()

    def __post_init__(self) -> None:
        if not self.text.strip():
            raise InvalidInputError("an instruction needs a text, got an empty one; say what is to change")
        if self.task not in EDIT_TASKS:
            raise UnknownNameError("editing task", self.task, EDIT_TASKS)
        check_facets(self.intended_facets)
        if bool(self.before.strip()) != bool(self.after.strip()):
            raise InvalidInputError(
                f"a word pair needs both words, got before={self.before!r} and after={self.after!r}; give both or none"
            )
        if self.bars is not None and not 0 <= self.bars[0] < self.bars[1]:
            raise InvalidInputError(f"bars must be a first bar and a later end, both from 0, got {self.bars}")
        if self.confidence is not None and not 0 <= self.confidence <= MOST_CONFIDENCE:
            raise InvalidInputError(f"confidence must lie in 0..{MOST_CONFIDENCE}, got {self.confidence}")

    @property
    def word_pair(self) -> tuple[str, str] | None:
        """The words that are exchanged, or None."""
        return (self.before, self.after) if self.before.strip() else None

    def target_caption(self) -> str:
        """Return a description of the music that is wanted, or an empty text where none follows.

        It is `target_prompt`, or else `source_prompt` with every whole word (or words) `before` replaced by `after`,
        whatever its case. A source prompt that does not hold the word gives none: adding it would be a guess.

        Examples
        --------
        >>> instruction = EditInstruction(
        ...     text="Turn the rock into jazz.", source_prompt="A rock song.", before="rock", after="jazz"
        ... )
        >>> instruction.target_caption()
        'A jazz song.'
        """
        if self.target_prompt.strip():
            return self.target_prompt
        if not (self.source_prompt.strip() and self.before.strip()):
            return ""
        word = re.compile(rf"(?<!\w){re.escape(self.before)}(?!\w)", re.IGNORECASE)
        caption, n = word.subn(lambda _: self.after, self.source_prompt)
        return caption if n else ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; `from_dict` is the inverse."""
        values = dataclasses.asdict(self)
        lists = {"bars": None if self.bars is None else list(self.bars), "intended_facets": list(self.intended_facets)}
        del values["targets"]  # left out where there are none: keys of older edits stay as they are
        return values | lists | ({"targets": targets_to_dict(self.targets)} if self.targets else {})

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Rebuild an instruction from `to_dict`; raises `UnknownNameError` for a key that it does not have."""
        known = {field.name for field in dataclasses.fields(cls)}
        for name in values:
            if name not in known:
                raise UnknownNameError("field of an instruction", str(name), known)
        bars = values.get("bars")
        whole: dict[str, Any] = {"bars": None if bars is None else tuple(bars)}
        whole["targets"] = targets_of(values["targets"]) if values.get("targets") else ()
        whole["intended_facets"] = tuple(values.get("intended_facets", ()))
        return cls(**{**values, **whole})


def check_facets(names: tuple[str, ...]) -> None:
    """Raise `UnknownNameError` for a facet that does not exist, `InvalidInputError` for one that is named twice."""
    for name in names:
        if name not in FACETS:
            raise UnknownNameError("facet", name, FACETS)
    if len(set(names)) != len(names):
        raise InvalidInputError(f"facets are named once each, got {', '.join(names)}")


@dataclasses.dataclass(frozen=True, eq=False)
class EditConditions:
    """Features of a source, as conditions for systems; downbeats are those of the beats that begin a bar."""

    chords: Chords
    beats: Beats
    downbeats_sec: npt.NDArray[np.float64]

    def __post_init__(self) -> None:
        if not np.isin(self.downbeats_sec, self.beats.times_sec).all():
            raise InvalidInputError("each downbeat must be one of the beats; take them from there")

    def content(self) -> str:
        """Return the SHA-256 of the values."""
        digest = hashlib.sha256("\0".join(self.chords.labels).encode())
        for values in (self.chords.intervals_sec, self.beats.times_sec, self.downbeats_sec):
            digest.update(np.ascontiguousarray(values, dtype=np.float64).tobytes())
        return digest.hexdigest()


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class EditRequest:
    """One source and what is to be done with it.

    Parameters
    ----------
    source_id
        What records call the source.
    instruction
        What is asked.
    audio
        float32, shape (channels, n_samples); None where the source is a score. It is not copied.
    sample_rate
        Of the audio in Hz; None where the source is a score.
    score
        The source as a score; None where it is a recording.
    seed
        Of the run; the numbers of an item also depend on what it is (`editing.system.item_seed`).
    conditions
        Chords and beats of the source, for systems that need them (`pipelines.edit_conditions`).
    """

    source_id: str
    instruction: EditInstruction
    audio: Samples | None = None
    sample_rate: int | None = None
    score: Score | None = None
    seed: int = 0
    conditions: EditConditions | None = None

    def __post_init__(self) -> None:
        if (self.audio is None) == (self.score is None):
            raise InvalidInputError(f"{self.source_id}: a request holds either a recording or a score")
        if self.seed < 0:
            raise InvalidInputError(f"{self.source_id}: the seed must be at least 0, got {self.seed}")
        if self.audio is None:
            return
        if self.audio.dtype != np.float32 or self.audio.ndim != 2 or not self.audio.size:
            raise InvalidAudioError(
                f"{self.source_id}: expected float32 samples of shape (channels, n), got {self.audio.dtype} of shape "
                f"{self.audio.shape}"
            )
        if not np.isfinite(self.audio).all():
            raise InvalidAudioError(f"{self.source_id}: samples must be finite; look for NaN in what made them")
        if self.sample_rate is None or self.sample_rate < 1:
            raise InvalidAudioError(f"{self.source_id}: audio needs its sample rate in Hz, got {self.sample_rate}")

    @property
    def entrance(self) -> str:
        """``"audio"`` or ``"score"``."""
        return "audio" if self.score is None else "score"

    @property
    def duration_sec(self) -> float:
        """Length of the recording, or of the score to the end of its last note, in seconds."""
        if self.score is not None:
            return float(self.score.seconds(self.score.end_tick))
        assert self.audio is not None and self.sample_rate is not None  # noqa: PT018 (checked above)
        return float(self.audio.shape[1] / self.sample_rate)

    def content(self) -> str:
        """Return the SHA-256 of the source: its samples with their rate, or its score."""
        digest = hashlib.sha256()
        if self.score is not None:
            digest.update(json.dumps(self.score.to_dict(), sort_keys=True).encode())
        else:
            assert self.audio is not None
            digest.update(f"{self.sample_rate} {self.audio.shape}".encode())
            digest.update(np.ascontiguousarray(self.audio).tobytes())
        return digest.hexdigest()


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class EditResult:
    """What a system made of a request.

    Parameters
    ----------
    key
        Of the request (`editing.system.request_key`).
    audio, sample_rate, score
        The edit, in the form of the source: float32, shape (channels, n_samples), at the rate of the source; or a
        score.
    seconds
        Wall time that it took.
    warnings
        What a reader should know, such as what was cut or dropped.
    log
        What `editing.alignment` did to length, rate and loudness; empty for scores.
    provenance
        System, parameters, weights with their revisions, seed of the item, version of the package.
    """

    key: str
    audio: Samples | None = None
    sample_rate: int | None = None
    score: Score | None = None
    seconds: float = 0.0
    warnings: tuple[str, ...] = ()
    log: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    provenance: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Weights:
    """Weights that a system needs and that do not come with this package."""

    id: str
    """Repository on the Hub, or where else they are published."""
    revision: str
    """Commit that was meant when this was written; empty where the user names one."""
    licence: str
    files: tuple[str, ...] = ()
    """Which files are read, where not all of them are."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class EditorInfo:
    """What an editing system is and needs.

    Parameters
    ----------
    name
        In the registry, in records and in tables.
    title, paper, licence
        For readers; the licence is that of our code and says nothing of weights.
    weights
        What must be fetched; empty for a system without weights.
    entrances
        ``"audio"``, ``"score"`` or both.
    needs
        What an instruction must give: ``"target_caption"``, ``"word_pair"``, ``"bars"``; and ``"conditions"`` where the
        request must have them. Empty where the system does the same whatever is asked.
    sample_rate
        Of the model in Hz; None where it works at that of the source.
    mono
        Takes one channel only.
    max_seconds
        The longest source; None for no limit.
    keeps_time
        The edit is as long as the source, second by second; False for a time stretch.
    deterministic
        Draws nothing at random.
    changes
        Facets that it changes by design, whatever the instruction; for the systems without weights.
    parameters
        Name -> value, JSON types only: all that decides the result besides source, instruction and seed.
    control
        Stands outside of comparisons.
    backbone
        One of `BACKBONES`: what kind of model makes the edit.
    """

    name: str
    title: str
    paper: str = ""
    licence: str = "Apache-2.0"
    weights: tuple[Weights, ...] = ()
    entrances: tuple[str, ...] = ("audio",)
    needs: tuple[str, ...] = ()
    sample_rate: int | None = None
    mono: bool = False
    max_seconds: float | None = None
    keeps_time: bool = True
    deterministic: bool = True
    changes: tuple[str, ...] = ()
    parameters: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    control: bool = False
    backbone: str = "no weights"
