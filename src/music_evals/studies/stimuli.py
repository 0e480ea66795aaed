"""From sounds to a listening study: blind audio files at equal loudness, and the table that is their key.

A study is a folder: `audio/`, whose file names say nothing; `pairs.csv` (`studies.pairs`), which says who made what;
and `pairs.json`, which says how all of it was made. Whoever rates sees the first alone. The folder is written beside
its place and moved there when it is complete.

Names are drawn from the seed. Whoever has the seed and what the study was made from can work them out, so a study with
people takes a seed of its own. Nothing else of a file says who made it: those of an item are written in the order of
their names, without tags. Equal sounds hold the same bytes, unless the study is `veiled`: then the sounds of an item
are equally long, its files equally large, and each has triangular dither of its own of one step of 16 bits (noise at
about -96 dBFS), so that neither bytes nor samples are equal, of the hidden and the open reference either.
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
ITEM_COLUMNS = ("item_id", "group", "task", "start_sec", "end_sec", "licence", "source")
STIMULUS_COLUMNS = ("system", "run", "run_system", "run_seed", "sample_id")
LENGTH_SEC = 0.005
"""Sounds of an item that differ by more are not equally long; by less, they are cut to the shortest."""
FADE_SEC = 0.05
"""Of the end of sounds that were cut."""

Samples = npt.NDArray[np.float32]
Progress = Callable[[int, int, str], object]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Stimulus:
    """What is heard of one system on one item, before it sounds."""

    system: str
    content: bytes  # all that decides its sound: equal contents of an item are rendered once, and sound the same
    origin: str = ""  # such as a row of a table; for messages
    is_heard: bool = True  # whether it is played to anybody: its length counts
    run: str = ""
    run_system: str = ""
    run_seed: int | None = None
    sample_id: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class StudyItem:
    """One item with everything that is heard of it; its fields are the columns of `studies.pairs`.

    Raises `InvalidInputError`: the first stimulus, which is played openly too, is not the system
    `studies.pairs.REFERENCE`.
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
    """A study that was written."""

    folder: Path
    pairs: tuple[StudyPair, ...]  # rows of `pairs.csv`
    about: dict[str, Any]  # content of `pairs.json`


class _Studio(NamedTuple):
    """How sounds are made."""

    render: Callable[[bytes], Samples]
    sample_rate: int
    loudness_lufs: float
    seed: int
    veiled: str
    cut: dict[str, dict[str, float]]  # item -> stimulus -> seconds that were cut


class _Sound(NamedTuple):
    samples: Samples
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
    veiled: str = "",
    about: Mapping[str, Any] | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Study:
    """Render every stimulus, bring all to one loudness, and write the folder whole or not at all.

    `out` is new or empty, or holds a study that `overwrite` lets be replaced. `render` turns the content of a stimulus
    into samples of shape (n,) at `sample_rate`, in Hz. Every file is brought to `loudness_lufs`; silence has no
    loudness and stays as it is. The names of the files are drawn from `seed`.

    `veiled` says what becomes of an item whose sounds are not equally long: ``refuse`` it, or ``cut`` all to the
    shortest, with a fade of `FADE_SEC` at the end of each; "" is for a study whose files are not veiled. `pairs.json`
    also has `about`, plain values, and under ``cut`` what was cut: item -> stimulus -> seconds. `progress` is called
    with the items that are done, all items, and a word.

    Raises `InvalidInputError` where the folder is not free, a stimulus would be clipped at this loudness, or sounds of
    an item differ by more than `LENGTH_SEC` where that is refused; the errors of `pairs.check_pairs`; and `OutputError`
    where the folder cannot be written; one that was there is kept as it was.
    """
    target = check_out(out, overwrite=overwrite)
    studio = _Studio(render, sample_rate, loudness_lufs, seed, veiled, {})
    with folder_written_whole(target) as folder:
        pairs: list[StudyPair] = []
        for done, item in enumerate(items):
            if progress is not None:
                progress(done, len(items), "rendering")
            pairs += _write_item(folder, item, studio)
        summary = {**(about or {}), "seed": seed, "sample_rate": sample_rate, "loudness_lufs": loudness_lufs}
        summary["cut"] = studio.cut
        write_atomically(folder / ABOUT, (json.dumps(summary, indent=1, allow_nan=False) + "\n").encode(), parents=True)
        write_atomically(folder / PAIRS, pairs_text(pairs).encode())
        if progress is not None:
            progress(len(items), len(items), "rendering")
    return Study(target, tuple(pairs), summary)


def _write_item(folder: Path, item: StudyItem, studio: _Studio) -> list[StudyPair]:
    """Write the files of an item, and return its rows."""
    contents = dict.fromkeys(stimulus.content for stimulus in item.stimuli)
    rendered = {content: studio.render(content) for content in contents}
    if studio.veiled:
        rendered = _equally_long(item, rendered, studio)
    sounds = {content: _level(samples, studio, item.item_id) for content, samples in rendered.items()}
    first = {stimulus.content: stimulus.system for stimulus in reversed(item.stimuli)}
    original = item.stimuli[0]
    played = [("open", original), *(("judged", stimulus) for stimulus in item.stimuli)]
    names = []
    for role, stimulus in played:
        key = json.dumps([studio.seed, item.item_id, role, stimulus.system]).encode() + stimulus.content
        names.append(f"{AUDIO}/{hashlib.sha256(key).hexdigest()[:16]}.flac")
    samples_by_name = {
        name: sounds[stimulus.content].samples for name, (_, stimulus) in zip(names, played, strict=True)
    }
    files: dict[str, bytes] = {}
    if studio.veiled:
        for name, samples in samples_by_name.items():  # dither that its name decides
            dither = np.random.default_rng(int(Path(name).stem, 16)).triangular(-1, 0, 1, len(samples)) / 2**15
            files[name] = encode_flac(samples + dither, studio.sample_rate)
        size = max(map(len, files.values())) + 4
        files = {name: _padded(file, size) for name, file in files.items()}
    else:
        files = {name: encode_flac(samples, studio.sample_rate) for name, samples in samples_by_name.items()}
    for name in sorted(files):
        write_atomically(folder / name, files[name], parents=True, sync=False)
    reference = sounds[original.content]
    rows = []
    for name, stimulus in zip(names[1:], item.stimuli, strict=True):
        sound, same = sounds[stimulus.content], first[stimulus.content]
        rows.append(
            StudyPair(
                **{column: getattr(item, column) for column in ITEM_COLUMNS},
                **{column: getattr(stimulus, column) for column in STIMULUS_COLUMNS},
                reference=names[0],
                estimate=name,
                reference_sha256=hashlib.sha256(files[names[0]]).hexdigest(),
                estimate_sha256=hashlib.sha256(files[name]).hexdigest(),
                seconds=sound.seconds,
                reference_lufs=reference.loudness_lufs,
                estimate_lufs=sound.loudness_lufs,
                gain_db=sound.gain_db,
                same_as="" if same == stimulus.system else same,
            )
        )
    return rows


def _equally_long(item: StudyItem, sounds: Mapping[bytes, Samples], studio: _Studio) -> dict[bytes, Samples]:
    """Return the sounds of an item cut to the shortest that is heard, or refuse unequal lengths."""
    rate = studio.sample_rate
    lengths = {
        f"{stimulus.origin} {stimulus.system}".strip(): len(sounds[stimulus.content])
        for stimulus in item.stimuli
        if stimulus.is_heard
    }
    shortest = min(lengths.values())
    longer = {name: round((n - shortest) / rate, 3) for name, n in lengths.items() if n - shortest > LENGTH_SEC * rate}
    if longer and studio.veiled != "cut":
        listing = ", ".join(f"{name} {n / rate:.3f} s" for name, n in lengths.items())
        raise InvalidInputError(
            f"item {item.item_id!r} has sounds of unequal length, which tells them apart: {listing}; make them equal, "
            "or let them be cut to the shortest, `lengths` cut"
        )
    fade = np.ones(shortest, dtype=np.float32)
    if longer:  # the shortest fades too, or listeners would recognise it
        studio.cut[item.item_id] = longer
        fade[-round(FADE_SEC * rate) :] = np.linspace(1, 0, min(round(FADE_SEC * rate), shortest))
    return {content: samples[:shortest] * fade[: len(samples)] for content, samples in sounds.items()}


def _padded(file: bytes, size: int) -> bytes:
    """Return a FLAC file with padding behind its first block, so that it has `size` bytes."""
    end = 8 + int.from_bytes(file[5:8])  # of STREAMINFO, behind "fLaC" and four bytes that say how long it is
    is_last, left = file[4] & 0x80, size - len(file)
    padded = file[:4] + bytes([file[4] & 0x7F]) + file[5:end]
    while left:
        n = left if left <= 2**24 else left // 2  # a block has less than 2**24 bytes behind the four of its head
        left -= n
        padded += bytes([1 if left else is_last | 1]) + (n - 4).to_bytes(3) + bytes(n - 4)
    return padded + file[end:]


def _level(samples: Samples, studio: _Studio, item: str) -> _Sound:
    """Bring a sound to the loudness of the study; silence stays as it is."""
    wanted = studio.loudness_lufs
    seconds = round(len(samples) / studio.sample_rate, 6)
    loudness = integrated_loudness(samples, studio.sample_rate)
    if math.isnan(loudness):
        return _Sound(samples, seconds, None, None)
    gain = 10 ** ((wanted - loudness) / 20)
    peak = gain * float(np.abs(samples).max())
    if peak > 1:
        raise InvalidInputError(
            f"item {item!r} would be clipped at {wanted:g} LUFS: its peak would be {20 * math.log10(peak):+.1f} dB; "
            "choose a lower `loudness_lufs`"
        )
    return _Sound(samples * np.float32(gain), seconds, wanted, round(wanted - loudness, 3))


_OURS = re.compile(rf"{PAIRS}|{ABOUT}|{AUDIO}|{AUDIO}/[0-9a-f]{{16}}\.flac")


def check_out(out: str | os.PathLike[str], *, overwrite: bool) -> Path:
    """Return the folder for a study, without links and dots.

    Raises `InvalidInputError`: it is a file, holds a study that may not be overwritten, or something else than a study.
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
