"""What all editing systems share: a request is checked, edited with the seeds of its item, aligned and logged.

An item alone draws the numbers that it draws in a batch.
"""

from __future__ import annotations

import abc
import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from music_evals.annotations import EditorInfo, EditRequest, EditResult, Score
from music_evals.editing.alignment import align, loudness_of
from music_evals.editing.memory import MemoryPlan, free_bytes
from music_evals.errors import FileTooLargeError, InvalidAudioError, UnsupportedEditError

__all__ = ["Edited", "Editor", "Seeds", "item_seed", "request_key", "source_seed"]

_NEEDS = {
    "target_caption": (
        "a description of the music that is wanted: give `target_prompt`, or `source_prompt` with the words `before` "
        "(which it must hold) and `after`"
    ),
    "source_prompt": "a description of the source: give `source_prompt`",
    "word_pair": "the word that is exchanged and the one that replaces it: give `before` and `after`",
    "bars": "the bars that may change: give `bars`",
    "confidence": "how much of the bars is kept: give `confidence`, 0 to 10",
    "conditions": "chords and beats of the source: give `conditions` (`pipelines.edit_conditions` extracts them)",
}

Samples = npt.NDArray[np.float32]


class Seeds(NamedTuple):
    """Where the random numbers of an item come from."""

    item: int  # of this request alone
    source: int  # shared by all requests on one source with one seed of the run


class Edited(NamedTuple):
    """What a system made, before it is aligned: a recording at any rate, or a score."""

    audio: Samples | None = None
    sample_rate: int | None = None
    score: Score | None = None
    warnings: tuple[str, ...] = ()


class Editor(abc.ABC):
    """An editing system of this package; whatever obeys `protocols.EditingSystem` is as good.

    A system says what it is in `info` and edits one request in `_edited`. It takes one request after the other: a model
    that works on several at once must give each what it would have alone.
    """

    licence: ClassVar[str] = ""
    """Of the weights that it needs; empty for a system without."""
    BOUNDS: ClassVar[Mapping[str, tuple[float, float]]] = {}
    """Parameter -> the least and the most that it may be; see `protocols.settings`."""

    _model: Any = None
    """What moves to a device, where the system has weights."""

    def to(self, device: str) -> Self:
        """Move the model to a device; a system without weights is everywhere."""
        if hasattr(self._model, "to"):
            self._model.to(device)
        return self

    def memory(self, seconds: float) -> tuple[int, int]:  # noqa: ARG002 (a system without weights needs next to none)
        """Return the bytes of the weights, and about how many an edit of so many seconds takes besides."""
        return 0, 0

    def network_calls(self, seconds: float) -> int:  # noqa: ARG002 (a system without weights calls none)
        """Return about how often an edit of so many seconds calls a network."""
        return 0

    def plan(self, seconds: float, *, device: str = "cpu", processes: int = 1) -> MemoryPlan | None:
        """Return what edits of so many seconds need of a device, where the model is loaded once already.

        None for a system without weights. With several processes each holds a model of its own, besides this one.
        """
        weights, working = self.memory(seconds)
        if not weights:
            return None
        left = free_bytes(device)
        held = processes + (processes > 1)
        return MemoryPlan(device, weights, working, held, None if left is None else left + weights)

    @property
    @abc.abstractmethod
    def info(self) -> EditorInfo:
        """What it is, what it needs, and the parameters that it was made with."""

    @abc.abstractmethod
    def _edited(self, request: EditRequest, seeds: Seeds) -> Edited:
        """Return the edit of a request that was checked; it neither aligns nor writes to the source."""

    def supports(self, request: EditRequest) -> str:
        """Return why it cannot follow a request, in a sentence that says what to do; empty if it can."""
        info, instruction = self.info, request.instruction
        if request.entrance not in info.entrances:
            kinds = {"audio": "a recording", "score": "a score"}
            return f"{info.name} edits {kinds[info.entrances[0]]}, and the source is {kinds[request.entrance]}"
        available: dict[str, Any] = {
            "target_caption": instruction.target_caption(),
            "source_prompt": instruction.source_prompt.strip(),
            "word_pair": instruction.word_pair,
            "bars": instruction.bars,
            "confidence": None if instruction.confidence is None else (instruction.confidence,),
            "conditions": request.conditions,
        }
        missing = [_NEEDS[name] for name in info.needs if not available[name]]
        return f"{info.name} needs {'; and '.join(missing)}" if missing else ""

    def edit(self, requests: Sequence[EditRequest]) -> list[EditResult]:
        """Return one result a request, in their order; what comes of one does not depend on the others.

        Raises `UnsupportedEditError` for an instruction or a source that this system cannot follow, `InvalidAudioError`
        for a source that is silent, or that has several channels where one is needed, and `FileTooLargeError`.
        """
        for request in requests:
            self._check(request)
        return [self._result(request) for request in requests]

    def _check(self, request: EditRequest) -> None:
        info = self.info
        if why := self.supports(request):
            raise UnsupportedEditError(f"{request.source_id}: {why}")
        if info.max_seconds is not None and request.duration_sec > info.max_seconds:
            raise FileTooLargeError(
                f"{request.source_id}: {request.duration_sec:.1f} s are more than the {info.max_seconds:g} s that "
                f"{info.name} can edit; cut the source first (`seconds`)",
                name=request.source_id,
                unit="seconds",
                limit=info.max_seconds,
                size=request.duration_sec,
            )
        if request.audio is None:
            return
        if info.mono and len(request.audio) > 1:
            raise InvalidAudioError(
                f"{request.source_id}: {info.name} takes one channel, and the source has {len(request.audio)}; mix it "
                "down first (`mono=True`)"
            )
        if request.sample_rate is not None and np.isnan(loudness_of(request.audio, request.sample_rate)):
            raise InvalidAudioError(
                f"{request.source_id}: silent, or shorter than the 0.4 s over which loudness is measured; leave it out"
            )

    def _result(self, request: EditRequest) -> EditResult:
        from music_evals import __version__

        started = time.monotonic()
        info, content = self.info, request.content()
        key = request_key(info, request, content=content)
        seeds = Seeds(item_seed(request, key), source_seed(request, content))
        edited = self._edited(request, seeds)
        log: dict[str, Any] = {}
        audio, sample_rate = edited.audio, edited.sample_rate
        if audio is not None and sample_rate is not None and request.audio is not None and request.sample_rate:
            audio, log = align(request.audio, request.sample_rate, audio, sample_rate, keeps_time=info.keeps_time)
            sample_rate = request.sample_rate
        return EditResult(
            key=key,
            audio=audio,
            sample_rate=sample_rate,
            score=edited.score,
            seconds=time.monotonic() - started,
            warnings=edited.warnings,
            log=log,
            provenance={
                "system": info.name,
                "parameters": dict(info.parameters),
                "weights": [
                    {"id": part.id, "revision": part.revision, "licence": part.licence} for part in info.weights
                ],
                "item_seed": None if info.deterministic else seeds.item,
                "source_seed": None if info.deterministic else seeds.source,
                "music_evals": __version__,
            },
        )


def request_key(info: EditorInfo, request: EditRequest, *, content: str | None = None) -> str:
    """Return the SHA-256 of all that decides an edit, 64 hexadecimal digits.

    Of the system these are its name, its parameters and the revisions of its weights; of the request its source,
    instruction, conditions and seed, but not what the source is called. `content` is the hash of the source
    (`EditRequest.content`), where the caller has it.
    """
    decides: dict[str, Any] = {
        "system": info.name,
        "parameters": dict(info.parameters),
        "weights": [[weights.id, weights.revision] for weights in info.weights],
        "source": content or request.content(),
        "instruction": request.instruction.to_dict(),
        "seed": request.seed,
    }
    if request.conditions is not None:
        decides["conditions"] = request.conditions.content()
    return hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()


def item_seed(request: EditRequest, key: str) -> int:
    """Return the seed of an item, 0..2**63 - 1, from the seed of the run and the key of the request."""
    return int.from_bytes(hashlib.sha256(f"{request.seed} {key}".encode()).digest()[:8], "big") >> 1


def source_seed(request: EditRequest, content: str) -> int:
    """Return a seed that all edits of one source share, for what they share, such as an inversion; 0..2**63 - 1."""
    return item_seed(request, f"source {content}")
