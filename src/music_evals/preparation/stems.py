"""The step `stems`: a recording separated by the command demucs, where the user has it.

Demucs (Rouard et al., "Hybrid Transformers for Music Source Separation", ICASSP 2023) is not a dependency: it pins old
versions of others, and is installed in an environment of its own. Its command is run on one file at a time, with its
own settings but for ``--shifts 0``: it would else shift the recording by random times, and no run could be repeated.
Its files of 16 bits are kept as FLAC, bit for bit.
"""

from __future__ import annotations

import functools
import io
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from music_evals.audio.io import load_channels
from music_evals.errors import BackendError, MissingBackendError
from music_evals.preparation.contract import Inputs
from music_evals.preparation.programs import run_program

OPTIONS: Final = ("demucs", "stem_model", "two_stems", "device")

STEMS: Final = ("vocals", "drums", "bass", "other")
TWO_STEMS: Final = ("vocals", "no_vocals")
FILES: Final = {stem: f"stems/{{song}}/{stem}.flac" for stem in (*STEMS, "no_vocals")}

TIMEOUT_SEC: Final = 7200  # a processor takes about as long as the song lasts, an old one several times that
LENGTH_TOLERANCE_SEC: Final = 0.1  # decoders differ in the padding of MP3 by up to two frames of 26 ms
_SHIFTS: Final = "0"
_VERSION: Final = "from importlib.metadata import version; print(version('demucs'))"
_INSTALL: Final = (
    "python -m venv demucs && demucs/bin/pip install demucs; then say where the command is (`demucs`): "
    "demucs/bin/demucs"
)


def left_out(options: Mapping[str, Any]) -> str:
    """Return why no recording is separated unless it is asked for."""
    if options["demucs"] is not None:
        return ""
    return "it takes about as long as the songs last; ask for it by name, or say where the command is (`demucs`)"


def about(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return which demucs it is; raises `MissingBackendError` if it is missing."""
    return {
        "demucs": _version(_command(options)),
        "model": options["stem_model"],
        "stems": list(_stems(options)),
        "shifts": int(_SHIFTS),
    }


def separate(inputs: Inputs) -> dict[str, Any]:
    """Return the stems of a recording as FLAC, their length and which demucs made them."""
    path = Path(inputs.files["audio"]).resolve()
    frames, rate = load_channels(path)
    wanted_sec = len(frames) / rate
    command, model = _command(inputs.options), inputs.options["stem_model"]
    with tempfile.TemporaryDirectory() as folder:
        track = Path(folder, f"song{path.suffix.lower()}")  # demucs calls its folder so
        track.symlink_to(path)
        device = ["-d", inputs.options["device"]] if inputs.options["device"] else []
        two = ["--two-stems", TWO_STEMS[0]] if inputs.options["two_stems"] else []
        arguments = ["-n", model, "--shifts", _SHIFTS, *two, *device, "-o", str(Path(folder, "out")), str(track)]
        task = f"separate a recording of {wanted_sec:.0f} s"
        run_program([command, *arguments], "demucs", timeout_sec=TIMEOUT_SEC, task=task)
        made = Path(folder, "out", model, "song")
        stems = {stem: _encoded(made / f"{stem}.wav", wanted_sec) for stem in _stems(inputs.options)}
    return {**stems, "duration_sec": wanted_sec, "model": model, "version": _version(command)}


def _stems(options: Mapping[str, Any]) -> tuple[str, ...]:
    return TWO_STEMS if options["two_stems"] else STEMS


def _command(options: Mapping[str, Any]) -> str:
    program = shutil.which(options["demucs"] or "demucs")
    if program is None:
        raise MissingBackendError("demucs", "", "the step stems", install=_INSTALL)
    return program


@functools.cache
def _version(command: str) -> str | None:
    """Return the version of the package that a command belongs to, by the Python in its first line; None if unknown."""
    with Path(command).open("rb") as file:
        first = file.readline(1000).decode(errors="replace").strip()
    python = first.removeprefix("#!").strip() if first.startswith("#!") and "python" in first else ""
    if not python:
        return None
    try:
        done = subprocess.run(  # noqa: S603 - the interpreter that the command itself runs in
            [*python.split(), "-c", _VERSION], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
            check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):  # an environment that is gone, or hangs: demucs itself will say so
        return None
    return done.stdout.strip() or None


def _encoded(path: Path, wanted_sec: float) -> bytes:
    """Return a stem as FLAC, when it is what demucs writes: 16 bits, and as long as the recording."""
    import soundfile

    if not path.is_file():
        raise BackendError(f"demucs ended well, but wrote no {path.name}; does its model have such a stem?")
    try:
        subtype = soundfile.info(path).subtype
        samples, rate = soundfile.read(path, dtype="int16", always_2d=True)
    except (soundfile.SoundFileError, RuntimeError) as error:
        raise BackendError(f"demucs wrote a {path.name} that cannot be read ({error})") from error
    stem_sec = len(samples) / rate
    if subtype != "PCM_16" or abs(stem_sec - wanted_sec) > LENGTH_TOLERANCE_SEC:
        raise BackendError(
            f"demucs wrote {path.name} with {stem_sec:.2f} s as {subtype}; expected {wanted_sec:.2f} s as PCM_16"
        )
    file = io.BytesIO()
    soundfile.write(file, samples, rate, format="FLAC", subtype="PCM_16")
    return file.getvalue()
