"""Originals and edits to listen to in a report: FLAC files in a folder beside it, or held by the page itself."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.audio.io import DEFAULT_AUDIO_LIMITS, DEFAULT_POLICY, encode_flac, load_audio, load_channels
from music_evals.audio.loudness import integrated_loudness, level_gains
from music_evals.benchmark.records import remove_file
from music_evals.errors import MusicEvalsError
from music_evals.files import write_atomically
from music_evals.locations import fetched
from music_evals.pipelines.preservation import modality
from music_evals.symbolic.files import read_score
from music_evals.symbolic.limits import DEFAULT_LIMITS

AUDIO_FOLDER: Final = "report_audio"
"""Folder beside the report; what lies there is named by what the music's file holds."""

PLACES: Final = ("beside", "embedded", "none")
"""Where the music of a report lies: in `AUDIO_FOLDER`, in the page, or nowhere."""

MOST_SEC: Final = 180.0
"""Of one recording; what comes later is not heard."""

MOST_BYTES: Final[Mapping[str, int]] = {"beside": 300 * 2**20, "embedded": 40 * 2**20}
"""Of all recordings of a report; pairs that come after it have no player."""

_DIGITS = 16  # of the name of a file

Samples = npt.NDArray[np.float32]


class Player(NamedTuple):
    """What a page needs to play a pair."""

    urls: tuple[str, str]
    """Of original and edit: paths from the page, or the music itself."""
    gains: tuple[float, float]
    """Factors that bring both to equal loudness."""
    seconds: float
    """Length of the longer side."""
    levels: str
    """What was done to the levels, in words."""


class _Sound(NamedTuple):
    """One side of a pair, written down."""

    url: str
    seconds: float
    lufs: float
    source: str


@dataclasses.dataclass(eq=False)
class Players:
    """Makes the players of a report, which are in one of `PLACES`."""

    place: str
    out: Path  # the folder of the report
    paths: Mapping[str, str]  # what files hold (as in the records) -> where they are read, here or at a URL

    def __post_init__(self) -> None:
        self.missing = dict[str, str]()  # what is said of a file -> why it cannot be heard
        self._sounds = dict[str, _Sound | None]()
        self._n_bytes = 0

    def player(self, pair: Mapping[str, Any]) -> Player | None:
        """Return the player of a recorded pair; None if a side cannot be played; `missing` has the reason."""
        if self.place == "none":
            return None
        sounds = [self._sound(pair[side]) for side in ("reference", "estimate")]
        first, second = sounds
        if first is None or second is None:
            return None
        return Player(
            (first.url, second.url),
            level_gains(first.lufs, second.lufs),
            max(first.seconds, second.seconds),
            levels_text(first.lufs, second.lufs, sources=(first.source, second.source)),
        )

    def tidy(self) -> None:
        """Remove what an earlier report of this folder wrote and this one does not play, and nothing else."""
        held = {Path(sound.url).name for sound in self._sounds.values() if sound and self.place == "beside"}
        folder = self.out / AUDIO_FOLDER
        for path in folder.glob("*.flac"):
            if path.name not in held and len(path.stem) == _DIGITS and set(path.stem) <= set("0123456789abcdef"):
                remove_file(path)
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()

    @property
    def folder(self) -> Path | None:
        """The folder, if anything was written there."""
        return self.out / AUDIO_FOLDER if self.place == "beside" and self._n_bytes else None

    def _sound(self, file: Mapping[str, str]) -> _Sound | None:
        content, name = file["content"], file["name"]
        if content not in self._sounds:
            self._sounds[content] = None
            if content not in self.paths:
                self.missing[name] = "not among the files of this run"
                return None
            try:
                samples, rate, source = _playable(self.paths[content], content, mono=self.place == "embedded")
            except MusicEvalsError as error:  # its message may name places of this machine
                self.missing[name] = type(error).__name__
                return None
            encoded, most = encode_flac(samples, rate), MOST_BYTES[self.place]
            if self._n_bytes + len(encoded) > most:
                self.missing[name] = f"all recordings of this page together may take {most >> 20} MiB"
                return None
            self._n_bytes += len(encoded)
            if self.place == "embedded":
                url = f"data:audio/flac;base64,{base64.b64encode(encoded).decode()}"
            else:
                file_name = f"{hashlib.sha256(content.encode()).hexdigest()[:_DIGITS]}.flac"
                write_atomically(self.out / AUDIO_FOLDER / file_name, encoded, parents=True)
                url = f"{AUDIO_FOLDER}/{file_name}"
            lufs = integrated_loudness(samples.mean(axis=1), rate)
            self._sounds[content] = _Sound(url, len(samples) / rate, lufs, source)
        return self._sounds[content]


def _playable(path: str, content: str, *, mono: bool) -> tuple[Samples, int, str]:
    """Return what is played of a file, shape (n, channels), its rate, and what its level is given against."""
    # Beside a page there is room for all channels at their own rate; within it there is what the extractors hear.
    if modality(path) == "symbolic":
        from music_evals.audio.rendering import SAMPLE_RATE, render_additive

        with fetched(path, content, max_bytes=DEFAULT_LIMITS.max_bytes) as here:
            score = read_score(here)
        early = score.seconds(score.notes["onset_tick"]) < MOST_SEC
        samples = render_additive(dataclasses.replace(score, notes=score.notes[early]))[:, None]
        rate, source = SAMPLE_RATE, "its rendering"
    else:
        with fetched(path, content, max_bytes=DEFAULT_AUDIO_LIMITS.max_bytes) as here:
            if mono:
                audio = load_audio(here, policy=dataclasses.replace(DEFAULT_POLICY, peak_normalise=False))
                samples, rate = audio.samples[:, None], audio.sample_rate
            else:
                samples, rate = load_channels(here)
        source = "its file"
    samples = samples[: round(MOST_SEC * rate)]
    if samples.shape[1] > 2:
        samples = samples.mean(axis=1, keepdims=True)
    peak = max(1.0, float(np.abs(samples).max(initial=0.0)))
    return (samples / peak).astype(np.float32), rate, source


def levels_text(first_lufs: float, second_lufs: float, *, sources: tuple[str, str] = ("its file", "its file")) -> str:
    """Say what was done to the levels.

    Examples
    --------
    >>> levels_text(-14.0, -17.2)
    'Equal loudness: the original plays 3.2 dB softer than its file, to match the edit.'
    """
    if np.isnan(first_lufs) or np.isnan(second_lufs):
        return "Loudness could not be matched: a side is silent or shorter than 0.4 s. Both play as they are."
    change = first_lufs - second_lufs
    if abs(change) < 0.1:
        return "Equal loudness: both play as they are."
    louder, softer = ("original", "edit") if change > 0 else ("edit", "original")
    source = sources[0] if change > 0 else sources[1]
    return f"Equal loudness: the {louder} plays {abs(change):.1f} dB softer than {source}, to match the {softer}."


def clock(time_sec: float) -> str:
    """Return a time as minutes, seconds and tenths.

    Examples
    --------
    >>> clock(83.46)
    '1:23.5'
    """
    tenths = round(time_sec * 10)
    return f"{tenths // 600}:{tenths // 10 % 60:02d}.{tenths % 10}"
