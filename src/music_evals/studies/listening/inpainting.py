"""A blind listening study out of runs of inpainting: the truth, models and copies, whole, on one instrument.

Every item is heard as past, middle and future; the middle is the reference's or a system's. Items and file names are
drawn from the seed. The form is that of all studies: see `studies.pairs` and `studies.stimuli`.
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt

from music_evals import __version__
from music_evals.annotations import DEFAULT_BPM, MUSIB_LAYOUT, Score, Tempo, Tokens
from music_evals.audio.rendering import RELEASE_SEC, find_soundfont, identify_sounds, render_additive, render_fluidsynth
from music_evals.errors import InvalidInputError, UnknownNameError
from music_evals.numerics import package_versions
from music_evals.options import MISSING, option
from music_evals.repositories import DATASETS, find_repository
from music_evals.studies.listening.inpainting_runs import (
    TASK,
    HeardSystem,
    RunContent,
    choose_items,
    choose_systems,
    read_runs,
)
from music_evals.studies.pairs import REFERENCE
from music_evals.studies.stimuli import LOUDNESS_LUFS, Stimulus, Study, StudyItem, check_out, write_study
from music_evals.symbolic import noteseq
from music_evals.symbolic.midi import write_midi

__all__ = ["SOUNDS", "StudySettings", "build_study"]

SOUNDS: Final = ("fluidsynth", "additive")
"""What melodies are played with: General MIDI sounds, or the package's own synthesiser, which is made for tests."""

SAMPLE_RATE: Final = 44_100  # of a compact disc; what browsers play without resampling on most machines
STEPS_PER_QUARTER: Final = MUSIB_LAYOUT.steps_per_measure // 4  # a measure is one of 4/4
UNKNOWN: Final = {"", "unknown"}

Samples = npt.NDArray[np.float32]


@dataclasses.dataclass(frozen=True, kw_only=True)
class StudySettings:
    """Settings of a listening study: its music, systems and sounds; what is not said here its options say.

    `runs` are folders of runs of inpainting, finished or not; what they have under the same item id must be the same
    music. `systems` are names with commas, as the study calls them (``infill_transformer best``) or as the records do;
    without a decoding a name takes all decodings of the model. ``"all"`` takes models and baselines; None takes all
    models and of the baselines ``copy_past`` and ``lag_vote``. `licence` says under what terms the music may be played,
    where no card on this machine says that, or where another counts.

    Raises `InvalidInputError` for a number out of range, or `runs` that are no list, and `UnknownNameError` for sounds
    that are none of `SOUNDS`.
    """

    runs: Sequence[str | os.PathLike[str]] = option(
        MISSING,
        "folder of a run of the verb inpainting, its --out",
        flag="runs",
        group="data",
        metavar="DIR",
        nargs="+",
    )
    out: str | os.PathLike[str] = option(MISSING, "new or empty folder for the study", group="output", metavar="DIR")
    items: int = option(
        24,
        "how many, out of those that all systems have; one of each song, then a second, and so on (default: "
        "%(default)s)",
        group="data",
    )
    systems: str | None = option(
        None,
        "all, or names with commas (default: all models, copy_past and lag_vote); the reference is always there",
        group="data",
        metavar="NAMES",
    )
    seed: int = option(
        0, "of the items and the names of files; take one that nobody knows (default: %(default)s)", group="data"
    )
    sounds: str = option(
        "fluidsynth",
        "fluidsynth: General MIDI sounds; additive: a plain synthesiser that needs nothing, for trials (default: "
        "%(default)s)",
    )
    bpm: float = option(DEFAULT_BPM, "quarters a minute (default: %(default)g)")
    program: int = option(0, "General MIDI program 0..127 (default: %(default)s, a piano)")
    loudness_lufs: float = option(
        LOUDNESS_LUFS, "of every file (default: %(default)g)", flag="--loudness", metavar="LUFS"
    )
    licence: str | None = option(
        None,
        "terms of the music, where no card of its data set on this machine has them",
        group="output",
        metavar="TEXT",
    )
    overwrite: bool = option(False, "replace a study that is there", group="output")

    GROUPS: ClassVar = {"data": "what is heard", "how": "how it sounds", "output": "where it goes"}

    BOUNDS: ClassVar[Mapping[str, tuple[float, float]]] = {
        "items": (1, 10_000),
        "seed": (0, 2**63 - 1),
        "bpm": (20, 400),
        "program": (0, 127),
        "loudness_lufs": (-60, 0),
    }

    def __post_init__(self) -> None:
        if isinstance(self.runs, str | os.PathLike):
            raise InvalidInputError(f"`runs` must be a list, of one also, got {self.runs!r}")
        for name, (least, most) in self.BOUNDS.items():
            value = getattr(self, name)
            if not least <= value <= most:
                raise InvalidInputError(f"`{name}` must be {least:,} to {most:,}, got {value}")
        if self.sounds not in SOUNDS:
            raise UnknownNameError("sounds", self.sounds, SOUNDS)


def build_study(settings: StudySettings, *, progress: Callable[[int, int, str], object] | None = None) -> Study:
    """Build the folder of a blind listening study.

    Raises `NoDataError` without a run, for one without records or predictions, or systems that share no item;
    `InvalidInputError` for a run of another task, runs that differ in their music, fewer shared items than asked for, a
    folder that is not free, a loudness that would clip, or music without a stated licence; `UnknownNameError` for a
    system that no run has; `CorruptRecordsError` for damaged records; `MissingBackendError` where FluidSynth or its
    sounds are not installed (``sounds="additive"`` needs neither); `OutputError` where the folder cannot be written:
    one that was there is kept.
    """
    check_out(settings.out, overwrite=settings.overwrite)
    content = read_runs(settings.runs)
    systems = choose_systems(content, settings.systems)
    chosen = choose_items(content, systems, settings.items, settings.seed)
    # what plays; it raises where it is not installed, before anything is rendered
    is_additive = settings.sounds == "additive"
    player = (
        f"music_evals {__version__}, additive" if is_additive else f"FluidSynth {identify_sounds(find_soundfont())}"
    )
    licences = {run: _licence(content, run, settings.licence) for run in {content.items[item].run for item in chosen}}
    return write_study(
        settings.out,
        [_item(content, item, systems, settings.bpm, licences) for item in chosen],
        lambda tokens: _render(np.frombuffer(tokens, dtype=np.uint8), settings),
        sample_rate=SAMPLE_RATE,
        seed=settings.seed,
        loudness_lufs=settings.loudness_lufs,
        about=_about(settings, content, systems, player),
        overwrite=settings.overwrite,
        progress=progress,
    )


def _licence(content: RunContent, run: int, stated: str | None) -> str:
    """Return the licence of a run's music: what the leader says, or the card of the data set on this machine."""
    from huggingface_hub import metadata_load

    if stated is not None and stated.strip() not in UNKNOWN:
        return stated.strip()
    name = content.headers[run]["dataset"]["id"]
    try:
        place, local = find_repository(name, DATASETS, "dataset")
    except UnknownNameError:
        place, local = name, False
    card = Path(place) / "README.md"
    head = (metadata_load(card) if local and card.is_file() else None) or {}
    licence = str(head.get("license_name") or head.get("license") or "")
    if licence.lower() in UNKNOWN:
        raise InvalidInputError(
            f"the licence of {name} ({content.names[run]}) is not known here; make sure that its music may be played "
            "to others, and state its terms with `licence`"
        )
    return licence


def _item(
    content: RunContent, item: str, systems: Sequence[HeardSystem], bpm: float, licences: Mapping[int, str]
) -> StudyItem:
    held = content.items[item]
    dataset = content.headers[held.run]["dataset"]
    revision = f"@{dataset['revision']}" if dataset["revision"] else ""
    place = [f"{Path(dataset['id']).name}{revision}", dataset["config"], dataset["split"], item]
    step_sec = 60 / bpm / STEPS_PER_QUARTER
    stimuli = [Stimulus(system=REFERENCE, content=_sounding(held.tokens), run=content.names[held.run])]
    for system in systems:
        middle = system.middles[item]
        whole = held.tokens.copy()
        whole[MUSIB_LAYOUT.middle] = middle.tokens
        run, name = content.names[middle.run], system.name
        about: dict[str, Any] = {"run": run, "run_system": name, "run_seed": middle.seed}
        stimuli.append(Stimulus(system=system.label, content=_sounding(whole), **about))
    return StudyItem(
        item_id=item,
        group=held.song,
        stimuli=tuple(stimuli),
        task=TASK,
        start_sec=round(MUSIB_LAYOUT.middle.start * step_sec, 6),
        end_sec=round(MUSIB_LAYOUT.middle.stop * step_sec, 6),
        licence=licences[held.run],
        source=", ".join(filter(None, place)),
    )


def _sounding(tokens: Tokens) -> bytes:
    """Return tokens as they sound: holds that belong to no note are rests."""
    return noteseq.encode(noteseq.decode(tokens), len(tokens)).tobytes()


def _render(tokens: Tokens, settings: StudySettings) -> Samples:
    """Play a whole context; every one lasts the same, however it ends."""
    seconds = len(tokens) / STEPS_PER_QUARTER * 60 / settings.bpm + RELEASE_SEC
    whole = np.zeros(math.ceil(seconds * SAMPLE_RATE), dtype=np.float32)
    notes = noteseq.decode(tokens)
    if not len(notes):
        return whole
    tempo = Tempo(0, settings.bpm)
    score = Score(notes, STEPS_PER_QUARTER, tempos=(tempo,), programs=(settings.program,))
    if settings.sounds == "additive":
        samples = render_additive(score, sample_rate=SAMPLE_RATE)
    else:
        samples = render_fluidsynth(write_midi(score), sample_rate=SAMPLE_RATE)
    n = min(len(samples), len(whole))
    whole[:n] = samples[:n]
    return whole


def _about(settings: StudySettings, content: RunContent, systems: Sequence[HeardSystem], player: str) -> dict[str, Any]:
    """Return what `pairs.json` says of the making."""
    stated = {name: getattr(settings, name) for name in ("items", "systems", "sounds", "bpm", "program", "licence")}
    runs = {
        name: {"dataset": header["dataset"], "versions": header["versions"]}
        for name, header in zip(content.names, content.headers, strict=True)
    }
    made_by = {
        system.label: {"run": content.names[system.run], "name": system.name, **system.about} for system in systems
    }
    about = {"task": TASK, "settings": stated, "player": player, "runs": runs, "systems": made_by}
    return {**about, "versions": package_versions()}
