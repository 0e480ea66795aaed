"""Files of visitors: checked by size and header, then decoded in a process of their own.

A hostile file may crash or hang its decoder, or unfold to more than the machine holds. So nothing is decoded here
before its suffix, its size and (of a recording) the length that its header claims are within the limits; what decodes
it is a child process with limits of time and memory, whose death is reported as an error of the one file. What such a
process guards against and what not is said in `music_evals.processes`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import os
import tempfile
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from music_evals.annotations import Score
from music_evals.errors import FileTooLargeError, MusicEvalsError, NoDataError, UnknownNameError
from music_evals.processes import ReaderProcess
from music_evals.symbolic.files import read_score

if TYPE_CHECKING:
    from music_evals.audio.io import Audio, AudioPolicy

__all__ = [
    "MAX_CHANNELS", "MAX_RECORDING_BYTES", "MAX_RECORDING_SAMPLES", "MAX_RECORDING_SEC", "MAX_UPLOAD_BYTES",
    "MEMORY_BYTES", "RECORDING_TIMEOUT_SEC", "RECORDING_TYPES", "SCORE_TYPES", "TIMEOUT_SEC", "check_upload",
    "load_recording", "load_score", "trusted_sources",
]  # fmt: skip

MAX_UPLOAD_BYTES = 2**20  # sixteen measures of one voice take a few hundred bytes of MIDI, and 20 kB of MusicXML
MAX_RECORDING_BYTES = 64 * 2**20  # six minutes of stereo at CD quality
MAX_RECORDING_SEC = 360.0  # alignment takes time that grows with the square of the length
TIMEOUT_SEC = 15.0  # for each score: all visitors wait in one queue
RECORDING_TIMEOUT_SEC = 60.0  # six minutes of MP3 take two seconds to decode; a machine may be busy
MEMORY_BYTES = 2 * 2**30  # of the process that decodes; six minutes of stereo at 96 kHz take 0.8 GiB
MAX_RECORDING_SAMPLES = 360 * 96_000  # mixed down, before resampling: 138 MB as floats
MAX_CHANNELS = 16
SCORE_TYPES = (".mid", ".midi", ".musicxml", ".xml", ".mxl", ".abc")
RECORDING_TYPES = (".wav", ".flac", ".ogg", ".opus", ".mp3", ".aiff", ".m4a", ".aac", ".webm", ".mka")

Value = TypeVar("Value")


def check_upload(path: str | os.PathLike[str] | None, *, suffixes: Collection[str], max_bytes: int) -> Path:
    """Return the path of an uploaded file whose name and size are within the limits; nothing of it is read."""
    if path is None:
        raise NoDataError("upload a file first")
    file = Path(path)
    if not file.is_file():
        raise NoDataError(f"{file.name}: the upload is gone; upload it again")
    if file.suffix.lower() not in suffixes:
        raise UnknownNameError("kind of file", file.suffix or file.name, suffixes)
    if file.stat().st_size > max_bytes:
        n_bytes = file.stat().st_size
        raise FileTooLargeError(
            f"{file.name}: more than {max_bytes} bytes", name=file.name, unit="bytes", limit=max_bytes, size=n_bytes
        )
    return file.absolute()


def load_score(path: str | os.PathLike[str] | None) -> Score:
    """Read an uploaded MIDI, MusicXML or ABC file in a process of its own."""
    checked = check_upload(path, suffixes=SCORE_TYPES, max_bytes=MAX_UPLOAD_BYTES)
    return _apart(str(checked), read_score, TIMEOUT_SEC, checked.name)


def load_recording(
    path: str | os.PathLike[str] | None, *, max_seconds: float | None = None, policy: AudioPolicy | None = None
) -> Audio:
    """Decode an uploaded recording in a process of its own, after a look at its header there."""
    from music_evals.audio.io import DEFAULT_POLICY

    checked = check_upload(path, suffixes=RECORDING_TYPES, max_bytes=MAX_RECORDING_BYTES)
    max_sec = MAX_RECORDING_SEC if max_seconds is None else max_seconds
    order = {"path": str(checked), "max_sec": max_sec, "policy": dataclasses.asdict(policy or DEFAULT_POLICY)}
    audio = _apart(json.dumps(order), _decode, RECORDING_TIMEOUT_SEC, checked.name)
    return dataclasses.replace(audio, reload=functools.partial(load_recording, checked, max_seconds=max_sec))


@contextlib.contextmanager
def trusted_sources(*paths: str | os.PathLike[str] | None) -> Iterator[list[Path | Score]]:
    """Yield uploads as sources that this process may read: what a hostile file could break has run apart by then."""
    # A score becomes a `Score`. A recording becomes a float WAV file of our own making, mixed down at its own rate,
    # which `music_evals.audio.io.load_audio` turns into the very samples that it makes of the upload. The files are
    # removed when the ``with`` ends.
    checked = []
    for path in paths:
        is_score = path is not None and Path(path).suffix.lower() in SCORE_TYPES
        limit = MAX_UPLOAD_BYTES if is_score else MAX_RECORDING_BYTES
        checked.append(check_upload(path, suffixes=SCORE_TYPES + RECORDING_TYPES, max_bytes=limit))
    with tempfile.TemporaryDirectory(prefix="music_evals_upload_") as folder:
        process = _process(_translate, RECORDING_TIMEOUT_SEC)
        try:
            sources: list[Path | Score] = []
            for number, file in enumerate(checked):
                place = Path(folder, str(number))
                place.mkdir()
                order = {"path": str(file), "max_sec": MAX_RECORDING_SEC, "target": str(place / f"{file.stem}.wav")}
                answer = process.read(json.dumps(order), name=file.name)
                if isinstance(answer, MusicEvalsError):
                    raise answer
                sources.append(answer)
        finally:
            process.close()
        yield sources


def _translate(order: str) -> Path | Score:
    """Read a score, or write a recording as WAV. Runs in the process apart."""
    request = json.loads(order)
    path, target = Path(request["path"]), Path(request["target"])
    if path.suffix.lower() in SCORE_TYPES:
        return read_score(path)
    import soundfile

    from music_evals.audio.io import AudioLimits, AudioPolicy, check_header, load_audio

    limits = AudioLimits(max_sec=request["max_sec"], max_bytes=MAX_RECORDING_BYTES, max_channels=MAX_CHANNELS)
    rate = check_header(path, limits=limits)
    limits = dataclasses.replace(limits, max_sec=min(limits.max_sec, MAX_RECORDING_SAMPLES / rate))
    audio = load_audio(path, policy=AudioPolicy(sample_rate=rate, peak_normalise=False), limits=limits)
    soundfile.write(target, audio.samples, rate, subtype="FLOAT")
    return target


def _decode(order: str) -> Audio:
    """Decode what an order asks for. Runs in the process apart; the library checks the header before it decodes."""
    from music_evals.audio.io import AudioLimits, AudioPolicy, load_audio

    request = json.loads(order)
    limits = AudioLimits(max_sec=request["max_sec"], max_bytes=MAX_RECORDING_BYTES, max_channels=MAX_CHANNELS)
    return load_audio(request["path"], policy=AudioPolicy(**request["policy"]), limits=limits)


def _apart(item: str, reader: Callable[[str], Value], timeout_sec: float, name: str) -> Value:
    """Return what a reader makes of an item, in a process that ends with it."""
    process = _process(reader, timeout_sec)
    try:
        answer = process.read(item, name=name)
    finally:
        process.close()
    if isinstance(answer, MusicEvalsError):
        raise answer
    return answer


def _process(reader: Callable[[str], Value], timeout_sec: float) -> ReaderProcess[Value]:
    """Return a process with our limits; one thread of linear algebra, for each reserves memory."""
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return ReaderProcess(reader, timeout_sec=timeout_sec, environment=threads, memory_bytes=MEMORY_BYTES)
