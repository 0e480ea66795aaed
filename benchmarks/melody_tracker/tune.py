"""Choose how what the networks say is read: a random search. See README.md beside this file.

::

    python -m benchmarks.melody_tracker.tune --cache CACHE --renderings FOLDER [--recordings WORK] [--trials 60]
    python -m benchmarks.melody_tracker.tune ... --trials 1 --networks melody_rendered.onnx    # one alone

Judges settings by the mean of overall accuracy and motif Jaccard on the validation mixtures, whose features train.py
wrote, and on the tuning half of `known_edits`, both counted alike. WORK is where
``benchmarks/preservation_validity/real.py --work WORK`` left edits of the real recordings: where it is given, those of
the development half count as much as both together, by the mean of the AUCs of motif Jaccard and of voicing recall, and
of the worst decile of motif Jaccard over edits that change nothing. The search starts at the defaults of
`audio.f0.track_melody_net` and `audio.melody.notes_from_f0`, which README.md explains.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from benchmarks.melody_tracker.evaluate import RENDERERS, performed_track, piece_items, truth_track
from benchmarks.melody_tracker.train import read_clip
from tqdm import tqdm

from music_evals.annotations import F0Track, Melody
from music_evals.audio.io import Audio, load_audio
from music_evals.audio.melody import notes_from_f0
from music_evals.audio.melody_net import WEIGHTS, MelodyActivations, decode, levels_of, load_sessions, run_networks
from music_evals.errors import InvalidInputError, UndefinedMetricWarning
from music_evals.metrics.melody import motif_jaccard, overall_accuracy, raw_pitch_accuracy, voicing_recall
from music_evals.stats.discrimination import auc
from music_evals.yaml_files import read_yaml_file

HOP_SEC = 512 / 22050
EDITS = Path(__file__).parents[1] / "preservation_validity" / "real_edits.yaml"
# Setting -> values that are tried; the first is where the search starts.
PATH = {
    "onset_weight": (1.0, 0.5, 0.75, 1.5),
    "change_cost": (2.0, 0.0, 1.0, 4.0),
    "rest_cost": (2.0, 0.0, 1.0, 4.0),
    "rest_bias": (-2.0, -4.0, -3.0, -2.5, -1.5, -1.0, -0.5, 0.0),
}
NOTES = {
    "median_sec": (0.07, 0.02, 0.12),
    "minimum_sec": (0.05, 0.07, 0.1),
    "gap_sec": (0.08, 0.03, 0.05),
    "attack": (0.8, 0.3, 0.4, 0.5, 0.6, 0.7),
}


class Heard(NamedTuple):
    """What the networks say of a recording, and the truth."""

    activations: MelodyActivations
    f0: F0Track
    melody: Melody


def listen(folder: Path, sessions: Sequence[Any]) -> list[Heard]:
    """Run the networks over the validation mixtures that have a melody."""
    heard = []
    for path in tqdm(sorted(folder.glob("*.npz")), desc="mixtures"):
        clip = read_clip(path)
        if len(clip.pitches):
            melody = Melody(clip.intervals_sec, clip.pitches)
            duration_sec = (clip.levels.shape[2] - 1) * HOP_SEC
            said = run_networks(sessions, clip.levels[0].astype(np.float32))
            performed = clip.sounding is not None
            f0 = performed_track(clip.sounding) if performed else truth_track(melody, duration_sec)
            heard.append(Heard(said, f0, melody))
    return heard


# Field of the plan -> metric of it, and whether that takes the track (0) or the notes (1).
JUDGED: dict[str, tuple[Callable[[Any, Any], float], int]] = {
    "intervals": (motif_jaccard, 1),
    "voicing": (voicing_recall, 0),
}


class Edits(NamedTuple):
    """What the networks say of a recording and of edits of it, whose kinds are named."""

    source: MelodyActivations
    edits: dict[str, list[MelodyActivations]]


def listen_to_edits(work: Path, plan: dict[str, Any], sessions: Sequence[Any]) -> list[Edits]:
    """Run the networks over the recordings of the development half, and over all edits of the plan.

    Raises
    ------
    InvalidInputError
        An edit is missing.

    """
    found = []
    for place in tqdm(sorted((work / "audio" / "development").iterdir()), desc="recordings"):
        edits: dict[str, list[MelodyActivations]] = {}
        for kind, facts in plan["kinds"].items():
            paths = [place / f"{kind}_{strength:g}.wav" for strength in facts["strengths"]]
            if absent := [path for path in paths if not path.is_file()]:
                raise InvalidInputError(f"{absent[0]} is missing; run real.py --halves development with this --work")
            edits[kind] = [hear(load_audio(path), sessions) for path in paths]
        found.append(Edits(hear(load_audio(place / "source.wav"), sessions), edits))
    return found


def hear(audio: Audio, sessions: Sequence[Any]) -> MelodyActivations:
    """Run the networks over a recording."""
    return run_networks(sessions, levels_of(audio))


def judge_edits(heard: list[Edits], settings: dict[str, float], plan: dict[str, Any]) -> dict[str, float]:
    """Return how well motifs and voicing tell edits of recordings that change them from those that do not."""
    control: list[float] = []
    scores: dict[str, dict[str, list[float]]] = {field: {"same": [], "changed": []} for field in JUDGED}
    for item in heard:
        source = notes_of(item.source, settings)
        for kind, edits in item.edits.items():
            labels = plan["kinds"][kind].get("labels", {})
            for edit in edits:
                found = notes_of(edit, settings)
                for field, (metric, side) in JUDGED.items():
                    score = metric(source[side], found[side])
                    scores[field].get(labels.get(field, "same"), []).append(score)  # scaled times are neither
                    if field == "intervals" and kind in plan["control"]:
                        control.append(score)
    areas = {field: auc(-np.array(found["changed"]), -np.array(found["same"])) for field, found in scores.items()}
    return {
        "motif_auc": areas["intervals"],
        "voicing_auc": areas["voicing"],
        "motif_worst_decile": float(np.nanquantile(control, 0.1)),
    }


def notes_of(activations: MelodyActivations, settings: dict[str, float]) -> tuple[F0Track, Melody]:
    """Return the track and the notes that some settings read."""
    path = decode(activations, **{name: settings[name] for name in PATH})
    hertz = 440 * 2 ** ((path.pitches - 69) / 12)
    found = F0Track(np.arange(len(hertz)) * HOP_SEC, np.where(path.voiced, hertz, -hertz))
    audio = Audio(np.zeros(1, dtype=np.float32))
    audio.share("melody_activations", lambda: activations)
    return found, notes_from_f0(audio, f0=found, **{name: settings[name] for name in NOTES})


def judge(heard: list[Heard], settings: dict[str, float]) -> dict[str, float]:
    """Return the mean scores of one choice of settings."""
    scores = []
    for item in heard:
        found, notes = notes_of(item.activations, settings)
        scores.append(
            (raw_pitch_accuracy(item.f0, found), overall_accuracy(item.f0, found), motif_jaccard(item.melody, notes))
        )
    means = np.nanmean(np.array(scores), axis=0)
    return dict(zip(("raw_pitch_accuracy", "overall_accuracy", "motif_jaccard"), means.tolist(), strict=True))


def main() -> None:
    """Search, and print every improvement."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cache", type=Path, required=True, help="folder of the features")
    parser.add_argument("--renderings", type=Path, required=True, help="folder of recordings, made if needed")
    parser.add_argument("--recordings", type=Path, help="folder of edits of real recordings, made by real.py")
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--start", nargs="+", default=[], metavar="SETTING=VALUE", help="where the search starts")
    parser.add_argument("--networks", nargs="+", choices=WEIGHTS, default=WEIGHTS, help="files of audio/weights")
    options = parser.parse_args()
    warnings.simplefilter("ignore", UndefinedMetricWarning)
    sessions = load_sessions(tuple(options.networks))
    mixtures = listen(options.cache / "validation", sessions)
    pieces = [
        Heard(hear(item.audio, sessions), item.f0, item.melody)
        for renderer in RENDERERS
        for item in piece_items("tuning", renderer, options.renderings)
    ]
    plan = read_yaml_file(EDITS)
    real = listen_to_edits(options.recordings, plan, sessions) if options.recordings else []
    rng = np.random.default_rng(0)
    choices = PATH | NOTES
    best = {name: values[0] for name, values in choices.items()}
    for given in options.start:
        name, _, value = given.partition("=")
        if name not in best:
            parser.error(f"no setting {name!r}; there are: {', '.join(best)}")
        best[name] = float(value)
    top = -1.0
    for trial in range(options.trials):
        settings = dict(best)
        for name in rng.choice(list(choices), size=int(rng.integers(1, 3)) if trial else 0, replace=False):
            settings[name] = float(rng.choice(choices[name]))
        scores = [judge(heard, settings) for heard in (mixtures, pieces)]
        goal = float(np.mean([(score["overall_accuracy"] + score["motif_jaccard"]) / 2 for score in scores]))
        if real:
            scores.append(judge_edits(real, settings, plan))
            goal = (goal + float(np.mean(list(scores[-1].values())))) / 2
        if goal > top:
            best, top = settings, goal
            rounded = [{name: round(value, 4) for name, value in score.items()} for score in scores]
            print(trial, f"{top:.4f}", *rounded, settings, sep="\n  ", flush=True)


if __name__ == "__main__":
    main()
