"""From sounds to a listening study: blind audio files at equal loudness, and the table that is their key.

A study is a folder: `audio/`, whose file names say nothing; `pairs.csv` (`studies.pairs`), which says who made what;
and `pairs.json`, which says how all of it was made. Whoever judges sees the first alone. The folder is written beside
its place and moved there when it is complete.

Names are drawn from the seed. Whoever has the seed and what the study was made from can work them out, so a study with
people takes a seed of its own. Nothing else of a file says who made it: those of an item are written in the order of
their names, without tags. The hidden reference holds the same bytes as the open one.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.audio.io import encode_flac
from music_evals.audio.loudness import integrated_loudness
from music_evals.errors import InvalidInputError
from music_evals.files import folder_written_whole, write_atomically
from music_evals.studies.pairs import REFERENCE, StudyPair, pairs_text

__all__ = ["ABOUT", "AUDIO", "LOUDNESS_LUFS", "PAIRS", "Stimulus", "Study", "StudyItem", "check_out", "write_study"]

PAIRS = "pairs.csv"
"""The key; see `studies.pairs`."""
ABOUT = "pairs.json"
"""How the study was made."""
AUDIO = "audio"
"""Folder of the files that are played."""

LOUDNESS_LUFS = -23.0
"""Target loudness of EBU R 128: low enough for a melody on one instrument not to be clipped."""

Samples = npt.NDArray[np.float32]
Progress = Callable[[int, int, str], object]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Stimulus:
    """What is heard of one system on one item, before it sounds.

    Parameters
    ----------
    system
        Who made it, as the study calls it.
    content
        All that decides its sound: equal contents of an item are rendered once, and sound the same.
    run, run_system, run_seed, sample_id
        As the columns of `studies.pairs`.

    """

    system: str
    content: bytes
    run: str = ""
    run_system: str = ""
    run_seed: int | None = None
    sample_id: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class StudyItem:
    """One item with everything that is heard of it.

    Parameters
    ----------
    item_id, group, task, start_sec, end_sec, licence, source
        As the columns of `studies.pairs`.
    stimuli
        What is judged. The first is the system `studies.pairs.REFERENCE`, which is also played openly.

    Raises
    ------
    InvalidInputError
        Another system comes first, or there is none.

    """

    item_id: str
    group: str
    stimuli: tuple[Stimulus, ...]
    task: str = ""
    start_sec: float | None = None
    end_sec: float | None = None
    licence: str = ""
    source: str = ""

    def __post_init__(self) -> None:
        if not self.stimuli or self.stimuli[0].system != REFERENCE:
            raise InvalidInputError(f"item {self.item_id!r}: the first stimulus must be the {REFERENCE}")


class Study(NamedTuple):
    """A study that was written.

    Attributes
    ----------
    folder
        Where it lies.
    pairs
        The rows of `pairs.csv`.
    about
        The content of `pairs.json`.

    """

    folder: Path
    pairs: tuple[StudyPair, ...]
    about: dict[str, Any]


class _Studio(NamedTuple):
    """How sounds are made."""

    render: Callable[[bytes], Samples]
    sample_rate: int
    loudness_lufs: float
    seed: int


class _Sound(NamedTuple):
    file: bytes
    seconds: float
    loudness_lufs: float | None
    gain_db: float | None


def write_study(
    out: str | os.PathLike[str],
    items: Sequence[StudyItem],
    render: Callable[[bytes], Samples],
    *,
    sample_rate: int,
    seed: int,
    loudness_lufs: float = LOUDNESS_LUFS,
    about: Mapping[str, Any] | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Study:
    """Render every stimulus, bring all to one loudness, and write the folder whole or not at all.

    Parameters
    ----------
    out
        A folder that is new or empty, or that holds a study where `overwrite` is true.
    items
        What is heard.
    render
        Content of a stimulus -> samples of shape (n,).
    sample_rate
        Of the samples, in Hz.
    seed
        Of the names of the files.
    loudness_lufs
        What every file is brought to. Silence has no loudness and stays as it is.
    about
        What else `pairs.json` is to say, as plain values.
    overwrite
        Replace a study that is there; a folder that holds anything else is always refused.
    progress
        Called with the items that are done, all items, and a word.

    Returns
    -------
    Study
        Folder, rows and what `pairs.json` says.

    Raises
    ------
    InvalidInputError
        The folder is not free; or a stimulus would be clipped at this loudness.
    NoDataError, PairCountError
        As `pairs.check_pairs`.
    OutputError
        The folder cannot be written; one that was there is kept as it was.

    """
    target = check_out(out, overwrite=overwrite)
    studio = _Studio(render, sample_rate, loudness_lufs, seed)
    with folder_written_whole(target) as folder:
        pairs: list[StudyPair] = []
        for done, item in enumerate(items):
            if progress is not None:
                progress(done, len(items), "rendering")
            pairs += _write_item(folder, item, studio)
        said = {**(about or {}), "seed": seed, "sample_rate": sample_rate, "loudness_lufs": loudness_lufs}
        write_atomically(folder / ABOUT, (json.dumps(said, indent=1, allow_nan=False) + "\n").encode(), parents=True)
        write_atomically(folder / PAIRS, pairs_text(pairs).encode())
        if progress is not None:
            progress(len(items), len(items), "rendering")
    return Study(target, tuple(pairs), said)


def _write_item(folder: Path, item: StudyItem, studio: _Studio) -> list[StudyPair]:
    """Write the files of an item, and return its rows."""
    sounds: dict[bytes, _Sound] = {}
    first: dict[bytes, str] = {}
    for stimulus in item.stimuli:
        if stimulus.content not in sounds:
            sounds[stimulus.content] = _level(stimulus.content, studio, item.item_id)
        first.setdefault(stimulus.content, stimulus.system)
    original = item.stimuli[0]
    played = [("open", original), *(("judged", stimulus) for stimulus in item.stimuli)]
    names = [f"{AUDIO}/{_token(studio.seed, item.item_id, what, stimulus)}.flac" for what, stimulus in played]
    for name, (_, stimulus) in sorted(zip(names, played, strict=True), key=lambda pair: pair[0]):
        write_atomically(folder / name, sounds[stimulus.content].file, parents=True, sync=False)
    reference = sounds[original.content]
    rows = []
    for name, stimulus in zip(names[1:], item.stimuli, strict=True):
        sound, same = sounds[stimulus.content], first[stimulus.content]
        rows.append(
            StudyPair(
                item_id=item.item_id,
                group=item.group,
                system=stimulus.system,
                task=item.task,
                reference=names[0],
                estimate=name,
                reference_sha256=hashlib.sha256(reference.file).hexdigest(),
                estimate_sha256=hashlib.sha256(sound.file).hexdigest(),
                seconds=sound.seconds,
                start_sec=item.start_sec,
                end_sec=item.end_sec,
                reference_lufs=reference.loudness_lufs,
                estimate_lufs=sound.loudness_lufs,
                gain_db=sound.gain_db,
                same_as="" if same == stimulus.system else same,
                licence=item.licence,
                source=item.source,
                run=stimulus.run,
                run_system=stimulus.run_system,
                run_seed=stimulus.run_seed,
                sample_id=stimulus.sample_id,
            )
        )
    return rows


def _level(content: bytes, studio: _Studio, item: str) -> _Sound:
    """Render a stimulus and bring it to the loudness of the study; silence has none and stays."""
    samples, wanted = studio.render(content), studio.loudness_lufs
    seconds = round(len(samples) / studio.sample_rate, 6)
    found = integrated_loudness(samples, studio.sample_rate)
    if math.isnan(found):
        return _Sound(encode_flac(samples, studio.sample_rate), seconds, None, None)
    gain = 10 ** ((wanted - found) / 20)
    peak = gain * float(np.abs(samples).max())
    if peak > 1:
        raise InvalidInputError(
            f"item {item!r} would be clipped at {wanted:g} LUFS: its peak would be {20 * math.log10(peak):+.1f} dB; "
            "choose a lower `loudness_lufs`"
        )
    file = encode_flac(samples * np.float32(gain), studio.sample_rate)
    return _Sound(file, seconds, wanted, round(wanted - found, 3))


def _token(seed: int, item: str, what: str, stimulus: Stimulus) -> str:
    key = json.dumps([seed, item, what, stimulus.system]).encode() + stimulus.content
    return hashlib.sha256(key).hexdigest()[:16]


_OURS = re.compile(rf"{PAIRS}|{ABOUT}|{AUDIO}|{AUDIO}/[0-9a-f]{{16}}\.flac")


def check_out(out: str | os.PathLike[str], *, overwrite: bool) -> Path:
    """Return where a study goes, or say what stands in its way.

    Parameters
    ----------
    out
        The folder.
    overwrite
        Whether a study that is there may go.

    Returns
    -------
    Path
        Without links and dots.

    Raises
    ------
    InvalidInputError
        It is a file, holds a study that may not go, or something else than a study.

    """
    target = Path(out).resolve()
    if not target.exists():
        return target
    if not target.is_dir():
        raise InvalidInputError(f"{out} is a file; name a folder with `out`")
    held = sorted(path.relative_to(target).as_posix() for path in target.rglob("*"))
    others = [name for name in held if not _OURS.fullmatch(name)] if PAIRS in held else held
    if others:
        raise InvalidInputError(
            f"{out} holds {others[0]}, which is not of a study that this command wrote; name a new or empty folder "
            "with `out`"
        )
    if held and not overwrite:
        raise InvalidInputError(f"{out} holds a study; name another folder with `out`, or replace it, `overwrite=True`")
    return target
