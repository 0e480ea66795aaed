"""MusiConGen beside the authors' code: chords and beats as frames, what the first layer is given, and 60 steps."""

from __future__ import annotations

import contextlib
import itertools
import tempfile
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
from benchmarks.parity.audiocraft import FRAME_RATE, STEPS, load, package, steps_of_theirs, write
from benchmarks.parity.side_by_side import Authors, Recorder
from tests.editing.tiny_musicgen import GREEDY, TEXT, Steps, song, steps_of

from music_evals.annotations import Beats, Chords, EditConditions
from music_evals.editing.conversion import convert
from music_evals.editing.musicongen import QUALITIES, MusiConGen, _repeated, chord_classes

AUTHORS = Authors("YatingMusic/MusiConGen", "dee7536")
SECONDS = 30
SHORT = 10
_SHORTER = (
    "a source of 10 s: theirs tells 10 s of chords and beats and no chords in the prefix; ours tells 30 s, the source "
    "repeated, as the model was trained on"
)


def measure(checkout: Path, recorder: Recorder) -> None:
    """Compare chord names, frames, what the first layer is given, logits and tokens."""
    import torch

    with package(checkout / "audiocraft") as theirs, torch.no_grad(), tempfile.TemporaryDirectory() as place:
        labels, vectors = _chords(theirs)
        recorder.stage("pitch classes of each chord name", [chord_classes(label) for label in labels], vectors)
        kept: dict[str, Any] = {
            "chord_names": np.frombuffer("\n".join(labels).encode(), np.uint8),
            "chord_classes": vectors,
        }
        folder = Path(place, "model")
        folder.mkdir()
        kept |= write(theirs, folder, "musicongen", "chord2music_inattn")
        system = load(theirs, folder)
        convert(folder)
        model: Any = MusiConGen.from_pretrained(folder, base=folder / "base")._model
        for seconds in (SECONDS, SHORT):
            conditions = song(seconds)
            chords, beats = _repeated(conditions, seconds)
            frames = _frames(theirs, conditions, seconds, Path(place))
            told = {"chords": chords, "beats": beats}
            ours = steps_of(model, partial(model.generate, TEXT, STEPS / FRAME_RATE, 0, GREEDY, **told))
            published = _steps(system, *frames)
            logits = ours.logits[:STEPS], published.logits[:STEPS]
            if seconds == SHORT:
                recorder.stage("logits of 60 steps, a source of 10 s", *logits, note=_SHORTER)
                continue
            recorder.stage("chords of 1,500 frames", chords, frames[0])
            recorder.stage("beats of 1,500 frames", beats, frames[1])
            recorder.stage("prefix of chords and text", ours.given[0], published.given[0])
            recorder.stage("prefix of nothing", ours.given[1], published.given[1])
            recorder.stage("logits of 60 steps", *logits)
            recorder.stage("tokens", ours.tokens, published.tokens)
            kept |= published.golden() | {"chords": frames[0].astype(np.int8), "beats": frames[1].astype(np.float32)}
        for name, (ours_too, theirs_too) in _by_text(system).items():
            recorder.stage(name, ours_too, theirs_too)
        recorder.keep(**{f"musicongen.{name}": values for name, values in kept.items()})


def _chords(theirs: Any) -> tuple[list[str], npt.NDArray[np.int8]]:
    """Return all names of a set that theirs can read, and what it makes of them."""
    parser = theirs.data.btc_chords.Chords()
    qualities = [
        "",
        "min",
        "min7",
        ":(3,5)",
        ":min(*5)",
        ":7(#9,*1)",
        ":sus4(b7, 9)",
        *(f":{name}" for name in QUALITIES),
    ]
    labels, vectors = [], []
    for label in (
        "N",
        "X",
        *map("".join, itertools.product(("C", "C#", "Ebb", "B"), qualities, ("", "/b3", "/5", "/9"))),
    ):
        try:
            root, _, classes, _ = parser.chord(label)
        except KeyError:
            continue  # a quality that theirs does not know
        labels.append(label)
        vectors.append(np.roll(classes, root))
    return labels, np.array(vectors, np.int8)


def _frames(theirs: Any, conditions: EditConditions, seconds: int, place: Path) -> tuple[npt.NDArray[Any], ...]:
    """Return chords (12, n) and beats (n,) as their data set reads them from files."""
    import torch

    dataset = theirs.data.music_dataset
    lines = zip(conditions.chords.intervals_sec.tolist(), conditions.chords.labels, strict=True)
    (place / "chord.lab").write_text("".join(f"{start!r} {end!r} {label}\n" for (start, end), label in lines))
    times = conditions.beats.times_sec
    np.save(place / "beats.npy", np.stack([times, 1 + np.arange(len(times)) % 4], axis=1))
    (place / "tags.json").write_text('{"bpm": 96}')
    n = seconds * 32000
    info = SimpleNamespace(
        n_frames=n, seek_time=0.0, sample_rate=32000, meta=SimpleNamespace(path=place / "no_vocal.wav"), to_dict=dict
    )
    held = dataset.MusicDataset.__new__(dataset.MusicDataset)
    held.__dict__ |= {
        "segment_duration": seconds, "downsample_rate": 640, "sr": 32000, "paraphraser": None, "merge_text_p": 0,
        "info_fields_required": False, "joint_embed_attributes": [],
    }  # fmt: skip
    read = lambda *_: (torch.zeros(1, n), info)  # noqa: E731
    fields = lambda *_, **__: SimpleNamespace()  # noqa: E731  (tags, that are not told)
    with (
        patch.object(dataset.InfoAudioDataset, "__getitem__", read),
        patch.object(dataset.MusicInfo, "from_dict", fields),
    ):
        _, told = held[0]
    return told.chord.chord[0].numpy(), told.beat.beat[0, 0].numpy()


def _steps(system: Any, chords: npt.NDArray[Any], beats: npt.NDArray[Any]) -> Steps:
    """Return 60 steps of theirs that are told frames."""
    import torch

    told, _ = system._prepare_tokens_and_attributes(
        [TEXT], None, melody_chords=[torch.from_numpy(chords).float()], beats=[torch.from_numpy(beats)[None]], bpms=[96]
    )
    return steps_of_theirs(system, lambda: system._generate_tokens(told, None))


def _by_text(system: Any) -> dict[str, tuple[Any, Any]]:
    """Return frames of ours and theirs of a song that is told as in their example, by names, tempo and meter."""
    told: dict[str, Any] = {}

    def keep(*_: Any, **given: Any) -> Any:
        told.update(given)
        raise InterruptedError

    system.set_generation_params(duration=SECONDS)
    names = "C G A:min F"
    with patch.object(system, "_prepare_tokens_and_attributes", keep), contextlib.suppress(InterruptedError):
        system.generate_with_chords_and_beats([TEXT], [names], [120], [4])
    edges = np.arange(0, SECONDS + 2, 2.0)
    labels = tuple(itertools.islice(itertools.cycle(names.split()), len(edges) - 1))
    beats = np.arange(0, SECONDS, 0.5)
    same = EditConditions(Chords(np.array([edges[:-1], edges[1:]]).T, labels), Beats(beats, 120.0), beats[::4])
    chords, pulses = _repeated(same, SECONDS)
    return {
        "chords told by name, tempo and meter": (chords, told["melody_chords"][0]),
        "beats told by tempo and meter": (pulses, told["beats"][0][0]),
    }
