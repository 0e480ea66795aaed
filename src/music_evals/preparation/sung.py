"""The steps `phonemes` and `characters`: when each character of the lyrics is sung.

`phonemes` asks the Montreal Forced Aligner, where it is installed. `characters` takes what that answered, or else a
draft from the time stamps of lines, and moves it to where the voice shows it. Both read the stem of the voice where the
step `stems` made one in the same run.
"""

from __future__ import annotations

import contextlib
import dataclasses
import shutil
import subprocess
from collections.abc import Mapping
from typing import Any, Final

from music_evals.audio.extraction import extract, receipt
from music_evals.audio.io import Audio, load_audio
from music_evals.errors import InvalidAnnotationError, MissingBackendError
from music_evals.preparation import phonemes
from music_evals.preparation.contract import Inputs
from music_evals.preparation.evidence import measure_levels
from music_evals.preparation.lyrics import Character, spread_lines
from music_evals.preparation.refinement import MIXTURE, VOICE_ALONE, refine

OPTIONS: Final = ("demucs",)
"""What `draft_left_out` looks at."""

_VERSION_TIMEOUT_SEC: Final = 120.0  # the program imports Kaldi to say its version


def phonemes_left_out(_: Mapping[str, Any]) -> str:
    """Return why no phonemes are aligned unless they are asked for."""
    return "" if shutil.which(phonemes.PROGRAM) else "the Montreal Forced Aligner (mfa) is not installed"


def draft_left_out(options: Mapping[str, Any]) -> str:
    """Return why characters are not looked for unless they are asked for: from lines and a mixture few are found."""
    if shutil.which(phonemes.PROGRAM) or options["demucs"] is not None:
        return ""
    return "without the Montreal Forced Aligner or stems (`demucs`) few characters are found; ask for it by name"


def about_phonemes(_: Mapping[str, Any]) -> dict[str, Any]:
    """Return which aligner and models it is; raises `MissingBackendError` if it is missing."""
    program = shutil.which(phonemes.PROGRAM)
    if program is None:
        raise MissingBackendError("montreal-forced-aligner", "", "the step phonemes", install=phonemes.INSTALL)
    version = None
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run(  # noqa: S603 - a program by name, without a shell
            [program, "version"], capture_output=True, text=True, timeout=_VERSION_TIMEOUT_SEC, check=False
        )
        lines = done.stdout.strip().splitlines()
        version = lines[-1] if lines and done.returncode == 0 else None
    return {"mfa": version, "acoustic_model": phonemes.ACOUSTIC_MODEL, "dictionary": phonemes.DICTIONARY}


def about_characters(_: Mapping[str, Any]) -> dict[str, Any]:
    """Return what follows the voice, and by which models characters are moved."""
    models = {"voice": VOICE_ALONE, "mixture": MIXTURE}
    about = {name: dataclasses.asdict(model) for name, model in models.items()}
    return {"features": receipt(features=("f0",)), **about}


def align(inputs: Inputs) -> dict[str, Any]:
    """Return characters and phones of a song by the Montreal Forced Aligner."""
    lines = inputs.answers["alignment"]["lines"]
    audio, source = _voice(inputs)
    texts, starts = [line["text"] for line in lines], [line["start_sec"] for line in lines]
    alignment = phonemes.align_phonemes(audio, texts, starts_sec=starts)
    return {
        "aligned": [dataclasses.asdict(row) for row in alignment.characters],
        "phones": [dataclasses.asdict(row) for row in alignment.phones],
        "heard": source,
    }


def find(inputs: Inputs) -> dict[str, Any]:
    """Return the characters of a song where its voice shows them, with notes, and the rests between them."""
    audio, source = _voice(inputs)
    features = extract(audio, ("f0",))
    if features.f0 is None:
        raise InvalidAnnotationError(f"the voice cannot be followed: {features.undefined['f0']}")
    aligned = inputs.answers.get("phonemes")
    if aligned is None:
        lines = [(line["start_sec"], line["text"]) for line in inputs.answers["alignment"]["lines"]]
        first = spread_lines(lines, audio.duration_sec, features.f0)
    else:
        first = [Character(**character) for character in aligned["aligned"]]
    levels = measure_levels(audio.samples, audio.sample_rate)
    refined = refine(first, features.f0, levels, model=MIXTURE if source == "mixture" else VOICE_ALONE)
    origin = {"first": "lines" if aligned is None else "mfa", "heard": source, "shift_sec": refined.shift_sec}
    characters = [
        {"text": character.text, "line": character.line, "start_sec": character.start_sec, "end_sec": character.end_sec,
         "confidence": character.confidence, "notes": [note._asdict() for note in character.notes]}
        for character in refined.characters
    ]  # fmt: skip
    return {"characters": characters, "rests": [rest._asdict() for rest in refined.rests], "origin": origin}


def _voice(inputs: Inputs) -> tuple[Audio, str]:
    """Return the stem of the voice, or else the recording, and which of both it is."""
    stem = inputs.made("stems", "vocals")
    return (load_audio(inputs.files["audio"]), "mixture") if stem is None else (load_audio(stem), "voice")
