"""How far characters of sung lyrics lie from where they are sung, before and after `preparation.refinement`.

    python -m benchmarks.lyric_alignment.run          # the test half; writes results.csv and the tables of README.md
    python -m benchmarks.lyric_alignment.run --fit    # counts the constants of `refinement`, development half

Songs are rendered, so that the truth is known: see `songs` and `voices`. Nothing is kept from one half to the other.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from benchmarks.lyric_alignment.songs import Song, f0_truth, make_song, mixed, n_songs
from benchmarks.lyric_alignment.voices import RATE, Floats, SungTruth
from benchmarks.machines import processor
from tqdm import tqdm

from music_evals.annotations import F0Track
from music_evals.audio.f0 import track_melody_net
from music_evals.audio.io import load_audio
from music_evals.preparation.evidence import GRID_SEC, Levels, find_events, follow_voice, measure_levels
from music_evals.preparation.lyrics import Character, spread_lines
from music_evals.preparation.refinement import MIXTURE, VOICE_ALONE, Model, Refined, refine
from music_evals.stats.intervals import mean_interval

HERE: Final = Path(__file__).parent
INPUTS: Final = ("voice, true f0", "voice", "mixture")
FIRST: Final = ("aligner", "shifted", "spread", "exact")
GROUPS: Final = ("all", "single", "melisma", "after a rest")
SNAP_SEC: Final = 0.15
NEAR_SEC: Final = 0.05


class Case(NamedTuple):
    """A song as one of `INPUTS` shows it."""

    song: Song
    source: str
    f0: F0Track
    levels: Levels


class Judged(NamedTuple):
    """A character of a stage: errors in seconds, whether its notes are as many as sung, and its confidence."""

    song: str
    source: str
    first: str
    stage: str
    groups: tuple[str, ...]
    onset_sec: float
    end_sec: float
    notes: float
    confidence: float


def cases(half: str) -> Iterator[Case]:
    """Yield every song of a half, as every input."""
    for number in tqdm(range(n_songs(half)), desc=f"{half}: songs"):
        song = make_song(half, number)
        alone, mixture = (load_audio(samples.astype(np.float32), rate=RATE) for samples in (song.samples, mixed(song)))
        yield Case(song, INPUTS[0], f0_truth(song), measure_levels(alone.samples, RATE))
        yield Case(song, INPUTS[1], track_melody_net(alone), measure_levels(alone.samples, RATE))
        yield Case(song, INPUTS[2], track_melody_net(mixture), measure_levels(mixture.samples, RATE))


def first_alignment(case: Case, kind: str, rng: np.random.Generator) -> list[Character]:
    """Return the truth, damaged in one of the ways of `FIRST`."""
    truth = case.song.characters
    starts = np.array([one.start_sec for one in truth])
    ends = np.array([one.end_sec for one in truth])
    if kind == "spread":
        return _spread(case, rng)
    if kind == "shifted":
        shift = rng.uniform(0.1, 0.25) * rng.choice((-1, 1))
        noise = rng.normal(0, 0.02, len(starts))
        starts, ends = starts + shift + noise, ends + shift + np.append(noise[1:], 0.0)
    if kind == "aligner":
        starts, ends = _as_an_aligner(truth, starts, ends, rng)
    return _in_order(truth, starts, ends)


def _as_an_aligner(
    truth: Sequence[SungTruth], starts: Floats, ends: Floats, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Err as an aligner of speech may: jitter, inner notes taken for the next character, rests swallowed."""
    starts, ends = starts.copy(), ends.copy()
    starts += rng.laplace(0, 0.03, len(starts))
    for i, (one, two) in enumerate(itertools.pairwise(truth)):
        if len(one.notes) > 1 and not two.before and rng.random() < 0.5:
            starts[i + 1] = one.notes[int(rng.integers(1, len(one.notes)))][0]
        if two.before:
            draw = rng.random()
            if draw < 0.35:
                starts[i + 1] = ends[i]  # the next character begins with the rest
            elif draw < 0.7:
                ends[i] = starts[i + 1]  # the last one goes on to its end
        else:
            ends[i] = starts[i + 1]
    return starts, ends


def _spread(case: Case, rng: np.random.Generator) -> list[Character]:
    """Return the draft from time stamps of lines that are 0.1 s off."""
    lines: dict[int, list[SungTruth]] = {}
    for one in case.song.characters:
        lines.setdefault(one.line, []).append(one)
    stamps = [(max(some[0].start_sec + rng.normal(0, 0.1), 0.0), "".join(one.text for one in some))
              for some in lines.values()]  # fmt: skip
    return spread_lines(stamps, float(case.f0.times_sec[-1]), case.f0)


def _in_order(truth: Sequence[SungTruth], starts: Floats, ends: Floats) -> list[Character]:
    least = 0.03
    starts = np.maximum.accumulate(starts - least * np.arange(len(starts))) + least * np.arange(len(starts))
    starts = np.maximum(starts, 0.0) + 1e-6 * np.arange(len(starts))
    limits = np.append(starts[1:], np.inf)
    ends = np.maximum(np.minimum(ends, limits), starts + 0.01)
    return [Character(one.text, float(start), float(end), one.line)
            for one, start, end in zip(truth, starts, ends, strict=True)]  # fmt: skip


def snap(case: Case, characters: Sequence[Character]) -> list[Character]:
    """Return a simple rival: every onset moved to the nearest event within `SNAP_SEC`, the ends with them."""
    voice = follow_voice(case.f0, case.levels)
    events = voice.start_sec + GRID_SEC * find_events(voice).frames
    starts = np.array([one.start_sec for one in characters])
    nearest = events[np.abs(events[:, None] - starts).argmin(axis=0)]
    moved = np.where(np.abs(nearest - starts) <= SNAP_SEC, nearest, starts)
    ends = np.array([one.end_sec for one in characters])
    joined = np.append(np.isclose(ends[:-1], starts[1:]), False)
    ends = np.where(joined, np.append(moved[1:], 0.0), ends)
    return _in_order(case.song.characters, moved, ends)


def judge(case: Case, first: str, stage: str, characters: Sequence[Any]) -> Iterator[Judged]:
    """Yield a row for each character."""
    for one, truth in zip(characters, case.song.characters, strict=True):
        groups = ["all", "melisma" if len(truth.notes) > 1 else "single", *(["after a rest"] if truth.before else [])]
        notes = float(len(one.notes) == len(truth.notes)) if stage == "refined" else np.nan
        yield Judged(
            case.song.name, case.source, first, stage, tuple(groups), one.start_sec - truth.start_sec,
            one.end_sec - truth.end_sec, notes, one.confidence if stage == "refined" else np.nan,
        )  # fmt: skip


def evaluate(songs: Iterable[Case], half: str) -> tuple[list[Judged], list[tuple[str, float, float]]]:
    """Return the characters of all stages, and for each refined rest that was sung: input, found, of the right kind."""
    rows: list[Judged] = []
    rests: list[tuple[str, float, float]] = []
    for case in songs:
        for first in FIRST:
            rng = np.random.default_rng([int(case.song.name[-2:]), FIRST.index(first), half == "test"])
            before = first_alignment(case, first, rng)
            after = refine(before, case.f0, case.levels, model=MIXTURE if case.source == INPUTS[2] else VOICE_ALONE)
            rows += judge(case, first, "before", before)
            rows += judge(case, first, "snapped", snap(case, before))
            rows += judge(case, first, "refined", after.characters)
            if first == "aligner":
                rests += [(case.source, *found) for found in _rests(case.song, after)]
    return rows, rests


def _rests(song: Song, refined: Refined) -> Iterator[tuple[float, float]]:
    """Yield for each rest that was sung whether it was found, and, if so, whether its kind is right."""
    for one, two in itertools.pairwise(song.characters):
        if two.before:
            overlaps = [min(two.start_sec, rest.end_sec) - max(one.end_sec, rest.start_sec) for rest in refined.rests]
            best = int(np.argmax(overlaps)) if overlaps else -1
            found = best >= 0 and overlaps[best] > (two.start_sec - one.end_sec) / 2
            yield float(found), float(refined.rests[best].kind == two.before) if found else np.nan


def tables(half: str, rows: Sequence[Judged]) -> list[dict[str, Any]]:
    """Return the shares and errors of each input, first alignment, stage and group, with intervals by song."""
    out = []
    for source, first, stage, group in itertools.product(INPUTS, FIRST, ("before", "snapped", "refined"), GROUPS):
        mine = [
            row for row in rows if (row.source, row.first, row.stage) == (source, first, stage) and group in row.groups
        ]
        onset, end = (np.abs([getattr(row, name) for row in mine]) for name in ("onset_sec", "end_sec"))
        songs = [row.song for row in mine]
        row = {"half": half, "input": source, "first": first, "stage": stage, "group": group, "n": len(mine)}
        scores = {
            "onset_50": onset <= 0.05, "onset_100": onset <= 0.1, "both_50": np.maximum(onset, end) <= 0.05,
            "both_100": np.maximum(onset, end) <= 0.1, "onset_error_sec": onset,
        }  # fmt: skip
        for name, values in scores.items():
            span = (0.0, np.inf if name.endswith("sec") else 1.0)
            found = mean_interval(values.astype(float), songs, span=span)
            row |= {
                name: f"{found.estimate:.4f}",
                f"{name}_low": f"{found.low:.4f}",
                f"{name}_high": f"{found.high:.4f}",
            }
        if stage == "refined":
            row["notes_right"] = f"{np.mean([one.notes for one in mine]):.4f}"
            row["confidence"] = f"{np.mean([one.confidence for one in mine]):.4f}"
        out.append(row)
    return out


def fit(songs: Sequence[Case]) -> Model:
    """Count the constants of a model: what events onsets show, and what other places show."""
    features, is_onset, off = [], [], []
    n_missed = n_onsets = n_frames = 0
    for case in songs:
        voice = follow_voice(case.f0, case.levels)
        events = find_events(voice)
        times = voice.start_sec + GRID_SEC * events.frames
        onsets = np.array([one.start_sec for one in case.song.characters])
        distance = np.abs(times[:, None] - onsets)
        nearest = distance.argmin(axis=0)  # the event of each onset
        near = distance.min(axis=0) <= NEAR_SEC
        label = np.zeros(len(times))
        label[nearest[near]] = 1
        off.append(distance.min(axis=0)[near] / GRID_SEC)
        features.append(events.features)
        is_onset.append(label)
        n_missed += int((~near).sum())
        n_onsets += len(onsets)
        n_frames += len(voice.voiced)
    x, y = np.concatenate(features), np.concatenate(is_onset)
    w = _logistic(np.column_stack([x, np.ones(len(x))]), y)
    return Model(
        tuple(np.round(w[:-1], 2).tolist()), round(float(w[-1]), 2), round(n_onsets / n_frames, 4),
        round(n_missed / n_onsets, 3), round(float(np.concatenate(off).mean()), 2),
    )  # fmt: skip


def _logistic(x: Floats, y: Floats) -> Floats:
    """Return the weights of a logistic regression with a ridge of 1e-3, by Newton's method."""
    w = np.zeros(x.shape[1])
    for _ in range(50):
        p = 1 / (1 + np.exp(-x @ w))
        gradient = x.T @ (y - p) - 1e-3 * w
        w = w + np.linalg.solve((x * (p * (1 - p))[:, None]).T @ x + 1e-3 * np.eye(len(w)), gradient)
    return w


def confidences(rows: Sequence[Judged]) -> list[dict[str, Any]]:
    """Return how many characters are right, by input and confidence, first alignments pooled."""
    out = []
    for source, (low, high) in itertools.product(INPUTS, itertools.pairwise((0.0, 0.5, 0.8, 0.95, 1.01))):
        mine = [row for row in rows if row.source == source and row.stage == "refined" and low <= row.confidence < high]
        if mine:
            right = np.mean([abs(row.onset_sec) <= NEAR_SEC for row in mine])
            said = np.mean([row.confidence for row in mine])
            out.append({"input": source, "confidence": f"{low:g} to {min(high, 1):g}", "characters": len(mine),
                        "said": f"{said:.2f}", "right": f"{right:.2f}"})  # fmt: skip
    return out


def markdown(rows: Sequence[dict[str, Any]]) -> str:
    """Return a table."""
    head = list(rows[0])
    lines = [head, ["---"] * len(head), *([str(row[name]) for name in head] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def write(table: Sequence[dict[str, Any]], rests: Sequence[tuple[str, float, float]], rows: Sequence[Judged]) -> None:
    """Write results.csv, and the tables between the markers of README.md."""
    with (HERE / "results.csv").open("w", newline="", encoding="utf-8") as file:
        names = list(dict.fromkeys(name for row in table for name in row))
        writer = csv.DictWriter(file, names, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)
    main_rows = [
        {"input": row["input"], "first alignment": row["first"], "stage": row["stage"],
         **{title: _percent(row, name) for title, name in
            (("onset, 50 ms", "onset_50"), ("both, 50 ms", "both_50"), ("both, 100 ms", "both_100"))},
         "mean onset error": f"{1000 * float(row['onset_error_sec']):.0f} ms"}
        for row in table if row["group"] == "all"
    ]  # fmt: skip
    group_rows = [
        {"input": row["input"], "characters": row["group"], "n": row["n"], "stage": row["stage"],
         "both, 50 ms": _percent(row, "both_50"), "both, 100 ms": _percent(row, "both_100"),
         "notes right": f"{100 * float(row['notes_right']):.0f}" if "notes_right" in row else ""}
        for row in table if row["first"] == "aligner" and row["stage"] != "snapped" and row["group"] != "all"
    ]  # fmt: skip
    rest_rows = []
    for source in INPUTS:
        found, kind = np.array([row[1:] for row in rests if row[0] == source]).T
        rest_rows.append({"input": source, "rests": len(found), "found": f"{100 * found.mean():.0f} %",
                          "of these called rightly breath or pause": f"{100 * np.nanmean(kind):.0f} %"})  # fmt: skip
    parts = {"main": main_rows, "groups": group_rows, "rests": rest_rows, "confidence": confidences(rows)}
    text = (HERE / "README.md").read_text(encoding="utf-8")
    for name, some in parts.items():
        before, _, rest = text.partition(f"<!-- {name} -->\n")
        after = rest.partition(f"<!-- /{name} -->")[2]
        text = f"{before}<!-- {name} -->\n{markdown(some)}\n<!-- /{name} -->{after}"
    (HERE / "README.md").write_text(text, encoding="utf-8")


def _percent(row: dict[str, Any], name: str) -> str:
    """Return a share in percent with its interval, where there is one."""
    estimate, low, high = (100 * float(row[name + part]) for part in ("", "_low", "_high"))
    return f"{estimate:.0f}" if np.isnan(low) else f"{estimate:.0f} ({low:.0f} to {high:.0f})"


def main() -> None:
    """Fit, or judge and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fit", action="store_true", help="count the constants of the models on the development half")
    options = parser.parse_args()
    if options.fit:
        songs = list(cases("development"))
        print("VOICE_ALONE", fit([case for case in songs if case.source != INPUTS[2]]))
        print("MIXTURE", fit([case for case in songs if case.source == INPUTS[2]]))
        return
    began = time.process_time()
    rows, rests = evaluate(cases("test"), "test")
    write(tables("test", rows), rests, rows)
    print(
        f"{sum(row.source == INPUTS[0] and row.stage == 'before' for row in rows) // len(FIRST)} characters; "
        f"{time.process_time() - began:.0f} s of one core, {processor()}"
    )


if __name__ == "__main__":
    main()
