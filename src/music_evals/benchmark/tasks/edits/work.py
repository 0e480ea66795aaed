"""One edit from a file to the bytes of its files: read, edit, render, encode. It runs in any process."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from music_evals.annotations import EditInstruction, EditRequest, Score
from music_evals.audio.io import encode_flac, load_audio, load_channels
from music_evals.audio.loudness import integrated_loudness, level_gains
from music_evals.audio.rendering import find_soundfont, identify_sounds, render_additive, render_fluidsynth
from music_evals.errors import InvalidInputError, UnknownNameError
from music_evals.pipelines.edit_conditions import extract_conditions
from music_evals.protocols import EditingSystem, load_editor
from music_evals.protocols.settings import check_parameters
from music_evals.symbolic.files import READERS, read_score, write_midi

RENDER_RATE = 22050  # Hz
_LOUDNESS = ("source_lufs", "edit_lufs")
_LOADED = {"weights": "source", "weights_revision": "revision", "device": "device"}

Samples = npt.NDArray[np.float32]


def is_score(path: str) -> bool:
    """Tell whether a source is written music, by its suffix."""
    return Path(path).suffix.lower() in READERS


@dataclasses.dataclass(frozen=True)
class EditUnit:
    """One edit."""

    item: str
    path: str
    instruction: EditInstruction
    seed: int
    seconds: float | None
    mono: bool
    render: str | None
    problem: str = ""
    """As of a `Source`."""

    @property
    def copied(self) -> bool:
        """Whether what is edited or compared is not the file of the source itself."""
        return self.render is not None if is_score(self.path) else self.seconds is not None or self.mono


def make_editor(system: str, parameters: Mapping[str, Any], weights: Mapping[str, Any]) -> EditingSystem:
    """Build a system by its name: with weights by its `from_pretrained`, else by its parameters alone."""
    kind = check_editor(system, parameters, weights)
    made: Any = kind.from_pretrained(**weights, **parameters) if weights else kind(**parameters)
    if lacks := [name for name in ("edit", "info", "network_calls", "supports") if not hasattr(made, name)]:
        raise InvalidInputError(f"{system} is no editing system: it lacks {', '.join(lacks)} (`EditingSystem`)")
    editor: EditingSystem = made
    return editor


def check_editor(system: str, parameters: Mapping[str, Any], weights: Mapping[str, Any]) -> Any:
    """Return the class of a system that takes these parameters; it is not built, and no weights are read."""
    kind = load_editor(system)
    if weights and not hasattr(kind, "from_pretrained"):
        raise InvalidInputError(f"{system} needs no weights; leave them out")
    if weights and "source" not in weights:
        raise InvalidInputError(f"{system}: weights_revision and device go with `weights`; give that too")
    known = set(inspect.signature(kind).parameters) - {"model", "weights"}
    if weights:  # what its weights are loaded with, such as a precision
        loading = set(inspect.signature(kind.from_pretrained).parameters)
        known |= loading - {"source", "revision", "device", "parameters"}
    for name in parameters:
        if name not in known:
            noun = f"parameter of {system}"
            raise UnknownNameError(noun, name, known)
    check_parameters(kind, parameters)
    return kind


def read_parameters(texts: Iterable[str]) -> dict[str, Any]:
    """Return parameters that are written as ``NAME=VALUE``, each once: a number, true, false, or a text."""
    parameters: dict[str, Any] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (name and equals and value):
            raise InvalidInputError(f"a parameter is written as NAME=VALUE, such as semitones=3, got {text!r}")
        if name in parameters:
            raise InvalidInputError(f"the parameter {name} is given twice; give it once")
        try:
            parameters[name] = value if name.endswith(("weights", "revision", "device")) else json.loads(value)
        except (ValueError, RecursionError):
            parameters[name] = value
        if isinstance(parameters[name], list | dict):
            raise InvalidInputError(f"a parameter takes a number, true, false or a text, got {text!r}")
    return parameters


def read_options(texts: Iterable[str], systems: Sequence[str]) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """Return system -> parameters, and what its weights are loaded from, that are written as ``SYSTEM.OPTION=VALUE``.

    Where there is one system its name may be left out. ``weights``, ``weights_revision`` and ``device`` are of weights.
    """
    held: dict[str, list[str]] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        system, _, option = name.strip().rpartition(".")
        system = systems[0] if not system and len(systems) == 1 else system
        if system not in systems:
            advice = f"an option is written as SYSTEM.OPTION=VALUE, such as zeta.start=100, got {text!r}"
            raise UnknownNameError("editing system", system, systems, advice)
        held.setdefault(system, []).append(f"{option}{equals}{value}")
    read = {system: read_parameters(own) for system, own in held.items()}
    return {
        system: (values, {_LOADED[name]: values.pop(name) for name in _LOADED.keys() & values.keys()})
        for system, values in read.items()
    }


def sounds_of(render: str | None) -> str:
    """Return what scores are rendered with, for the header of a run."""
    if render is None:
        return ""
    return f"{render}, {identify_sounds(find_soundfont())}" if render == "fluidsynth" else render


@dataclasses.dataclass
class EditWork:
    """Edits one source after the other; the system is built once in each process."""

    system: str
    parameters: Mapping[str, Any]
    weights: Mapping[str, Any]

    @functools.cached_property
    def editor(self) -> EditingSystem:
        """The system."""
        return make_editor(self.system, self.parameters, self.weights)

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def __call__(self, task: EditUnit) -> dict[str, Any]:
        """Return the bytes of the edit, those of the source where it is not the file itself, and what records say."""
        request = _request(task, self.editor.info.needs)
        (result,) = self.editor.edit([request])
        warnings = list(result.warnings)
        source, rate = request.audio, request.sample_rate
        edited, log = result.audio, dict(result.log)
        if request.score is not None and task.render is not None:
            assert result.score is not None
            rate = RENDER_RATE
            source, edited, log = _rendered(request.score, result.score, task.render)
        if edited is not None:
            content = _encoded(edited, rate, warnings)
        else:
            assert result.score is not None
            content = write_midi(result.score)
        copy = _encoded(source, rate, []) if task.copied else None
        return {
            "suffix": ".mid" if edited is None else ".flac",
            "edit": content,
            "source": copy,
            "key": result.key,
            "content": request.content(),
            "seconds": result.seconds,
            "log": log,
            "warnings": warnings,
            "provenance": dict(result.provenance),
        }


def _request(task: EditUnit, needs: Sequence[str]) -> EditRequest:
    if task.problem:
        raise InvalidInputError(task.problem)
    given: dict[str, Any] = {"source_id": task.item, "instruction": task.instruction, "seed": task.seed}
    if is_score(task.path):
        return EditRequest(**given, score=read_score(task.path))
    frames, rate = load_channels(task.path)
    audio = np.ascontiguousarray(frames.T)
    if task.seconds is not None:
        audio = audio[:, : round(task.seconds * rate)]
    if task.mono:
        audio = audio.mean(axis=0, keepdims=True, dtype=np.float64).astype(np.float32)
    conditions = extract_conditions(load_audio(audio, rate=rate)) if "conditions" in needs else None
    return EditRequest(**given, audio=audio, sample_rate=rate, conditions=conditions)


def _rendered(source: Score, edited: Score, renderer: str) -> tuple[Samples, Samples, dict[str, Any]]:
    """Return both as recordings of one loudness, and what was done for it: the louder one is softened."""
    sides = [
        render_additive(score, sample_rate=RENDER_RATE)[None]
        if renderer == "additive"
        else render_fluidsynth(write_midi(score), sample_rate=RENDER_RATE)[None]
        for score in (source, edited)
    ]
    loudness = [integrated_loudness(side[0], RENDER_RATE) for side in sides]
    gains = level_gains(*loudness)
    log = {name: None if np.isnan(lufs) else round(lufs, 3) for name, lufs in zip(_LOUDNESS, loudness, strict=True)}
    first, second = (side * np.float32(gain) for side, gain in zip(sides, gains, strict=True))
    return first, second, {"rendered": renderer, **log, "gains": list(gains)}


def _encoded(samples: Samples | None, rate: int | None, warnings: list[str]) -> bytes:
    assert samples is not None and rate is not None  # noqa: PT018 (an edit of a recording is one)
    clipped = int(np.count_nonzero(np.abs(samples) > 1))
    if clipped:
        warnings.append(f"{clipped} samples beyond full scale were clipped as the file was written")
    return encode_flac(samples.T, rate)
