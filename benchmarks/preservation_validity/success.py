"""How well edit success is measured: on edits whose truth is known, of renders and of real recordings.

``python benchmarks/preservation_validity/success.py --recordings FOLDER`` measures every target on edits of the pieces
of `known_edits` and of the recordings of `real.py`, and writes success.csv and the tables of README.md and of the card.
Audio and features are kept in a folder of their own (``--work``); a run that was stopped goes on there. Without
``--recordings`` it prints the renders' table and writes nothing.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import itertools
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from real_edits import make_edit, make_excerpt, missing_programs
from real_recordings import attach, load_manifest
from run import fill_in
from tqdm import tqdm

from music_evals.annotations import EditTarget, Key
from music_evals.audio.store import FeatureStore
from music_evals.datasets.known_edits import build as known_edits
from music_evals.metrics.edit_success import VERDICTS
from music_evals.pipelines.edit_success import Measured, features_for, measured, score_targets
from music_evals.pipelines.preservation_features import Settings, SourceLoader
from music_evals.stats.discrimination import clustered_auc
from music_evals.yaml_files import read_yaml_file

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
TONICS = ("C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B")
ELSEWHERE = ("timbre", "velocity", "microtiming", "noise", "lowpass", "melody_replaced", "drums_added", "drums_removed")
"""Edits of `known_edits` that ask for none of these targets."""
OF_REAL = {
    "transpose": (5, 2, 1, 6), "tempo": (1.05, 1.1, 0.9, 0.8), "gain": (-6, -18), "section_removed": (0.15, 0.3),
    "mp3": (64,), "eq": (6,), "reverb": (50,), "noise": (20,), "reversed": (1,),
}  # fmt: skip
"""Edits of ``preservation_validity/real_edits.yaml``, and their strengths."""
ANY = {
    "tempo": "2x", "transpose": "1", "key": "C major", "length": "2x", "loudness": "1 dB", "metre": "3/4",
    "chords": "C:maj",
}  # fmt: skip
"""Targets of each kind, so that all is measured that any of them needs."""


class Edit(NamedTuple):
    """An edited recording, and what it was asked."""

    name: str
    path: Path
    targets: Mapping[str, EditTarget]


class Source(NamedTuple):
    """A piece with its edits."""

    name: str
    group: str
    path: Path
    edits: Sequence[Edit]


def _key_text(key: Key | None, semitones: int = 0) -> str:
    assert key is not None
    return f"{TONICS[(key.tonic + semitones) % 12]} {key.mode}"


def targets_of_row(row: Mapping[str, Any]) -> dict[str, EditTarget]:
    """Return what an edit of `known_edits` was asked; nothing of edits that ask for something else."""
    kind, strength = row["kind"], float(row["strength"])
    if kind in {"tempo", "stretch"}:
        wanted = {"tempo": f"{strength}x", "length": f"{1 / strength:.6f}x"}
    elif kind == "varispeed":
        factor = 2 ** (strength / 12)
        wanted = {"tempo": f"{factor:.6f}x", "length": f"{1 / factor:.6f}x", "transpose": f"{strength:+g}"}
    elif kind == "transpose" and strength % 12:
        after = known_edits.annotations(row, "estimate").key
        wanted = {"transpose": f"{strength:+g}", "key": _key_text(after)}
    elif kind == "mode":
        wanted = {"key": _key_text(known_edits.annotations(row, "estimate").key)}
    elif kind == "gain":
        wanted = {"loudness": f"{strength:+g} dB"}
    elif kind == "cut":
        wanted = {"length": f"{1 - strength}x"}
    elif kind == "meter":
        before = known_edits.score(row, "reference").time_signatures[0].numerator
        wanted = {"metre": f"{before - 1}/4"} if before == 4 else {}
    elif kind == "reharmonised":
        chords = known_edits.annotations(row, "estimate").chords
        labels = () if chords is None else chords.labels
        triads = [label for label in labels if label.endswith((":maj", ":min"))]
        wanted = {"chords": " ".join(label for label, _ in itertools.groupby(triads))}
    else:
        wanted = {}
    return {name: EditTarget(name, text) for name, text in wanted.items()}


def rendered(half: str, renderer: str, work: Path, n_pieces: int | None) -> Iterator[Source]:
    """Yield the pieces of a half of `known_edits`, rendered."""
    render = functools.partial(known_edits.render, renderer=renderer, cache=work / "audio")
    rows = known_edits.load_rows("default", half)
    for piece in list(dict.fromkeys(row["piece"] for row in rows))[:n_pieces]:
        own = [row for row in rows if row["piece"] == piece]
        asked = [(row, targets_of_row(row)) for row in own]
        chosen = [(row, wanted) for row, wanted in asked if wanted or row["kind"] in ELSEWHERE]
        edits = [
            Edit(f"{row['kind']} {row['strength']:g}", render(row, which="estimate"), wanted) for row, wanted in chosen
        ]
        yield Source(piece, piece, render(own[0], which="reference"), edits)


def recorded(half: str, recordings: Path, work: Path, n_pieces: int | None) -> Iterator[Source]:
    """Yield the recordings of a half, with edits by other programs; the key to reach is that of the original, moved."""
    plan = read_yaml_file(HERE / "real_edits.yaml")
    manifest = load_manifest(HERE / "recordings.csv")
    files, missing = attach(manifest, recordings)
    for name, reason in missing.items():
        print(f"{name} skipped: {reason}", file=sys.stderr)
    for one in [one for one in manifest if one.half == half and one.name in files][:n_pieces]:
        folder = work / "recordings" / one.name
        excerpt = make_excerpt(plan, one, files[one.name], folder / "source.wav")
        edits = []
        for kind, strengths in OF_REAL.items():
            for strength in strengths:
                path = make_edit(plan, kind, strength, excerpt, folder / f"{kind}_{strength:g}.wav")
                edits.append(Edit(f"{kind} {strength:g}", path, _targets_of_real(kind, strength)))
        yield Source(one.name, one.source, excerpt, edits)


def _targets_of_real(kind: str, strength: float) -> dict[str, EditTarget]:
    wanted = {
        "transpose": {"transpose": f"{strength:+g}"},
        "tempo": {"tempo": f"{strength:g}x", "length": f"{1 / strength:.6f}x"},
        "gain": {"loudness": f"{strength:+g} dB"},
        "section_removed": {"length": f"{1 - strength:g}x"},
    }.get(kind, {})
    return {name: EditTarget(name, text) for name, text in wanted.items()}


def measure(sources: Sequence[Source], store: FeatureStore) -> Iterator[dict[str, Any]]:
    """Yield a row for each target of each edit, and for the same target on edits that were asked for something else.

    These are the other edits of the source without a target of that kind, the source itself, and another source.
    """
    features = features_for(EditTarget(kind, text) for kind, text in ANY.items())
    sides: dict[Path, Measured] = {}
    with SourceLoader(dataclasses.replace(Settings.of(metrics=[], store=store), features=features)) as loader:
        for source in tqdm(sources, unit="piece", mininterval=5):
            for path in (source.path, *(edit.path for edit in source.edits)):
                sides[path] = measured(*loader.load_music(path), ANY)
    for number, source in enumerate(sources):
        reference, other = sides[source.path], sources[(number + 1) % len(sources)]
        for edit in source.edits:
            wanted = dict(edit.targets)
            if "transpose" in wanted and "key" not in wanted and reference.features.key is not None:
                moved = _key_text(reference.features.key, int(wanted["transpose"].amount))
                wanted["key"] = EditTarget("key", moved)
            for kind, target in wanted.items():
                unrelated = [(each.name, each.path) for each in source.edits if kind not in _asked(each)]
                tried = [(edit.name, edit.path, True), *((name, path, False) for name, path in unrelated)]
                tried += [("identity", source.path, False), ("another piece", other.path, False)]
                for name, path, is_own in tried:
                    yield _row(reference, sides[path], target) | {
                        "group": source.group, "asked_of": edit.name, "edit": name, "own": is_own,
                    }  # fmt: skip


def _asked(edit: Edit) -> set[str]:
    return {*edit.targets, *(["key"] if "transpose" in edit.targets else [])}


def _row(reference: Measured, estimate: Measured, target: EditTarget) -> dict[str, Any]:
    [score] = score_targets(reference, estimate, [target]).values()
    return {"kind": target.kind, "success": score.success, "verdict": score.verdict,
            "requested": score.change.requested, "measured": score.change.measured}  # fmt: skip


def summarise(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each input, half and kind of target."""
    lines = []
    for (half, entrance, kind), part in rows.groupby(["half", "input", "kind"], sort=False):
        own, others = part[part.own], part[~part.own]
        area, low, high = clustered_auc(own.success, others.success, own.group, others.group)
        missed = np.abs(own.measured - own.requested).dropna()
        verdicts = own.verdict.value_counts()
        told = others[others.verdict != VERDICTS[2]]
        lines.append({
            "input": entrance, "half": half, "kind": kind, "n": len(own), "auc": area, "low": low, "high": high,
            "success": own.success.mean(), "chance": others[others.edit != "identity"].success.mean(),
            "identity": others[others.edit == "identity"].success.mean(),
            "error_95": float(np.quantile(missed, 0.95)) if len(missed) else np.nan,
            **{name.replace(" ", "_"): int(verdicts.get(name, 0)) for name in VERDICTS},
            "falsely_done": float((told.verdict == VERDICTS[0]).mean()) if len(told) else np.nan,
        })  # fmt: skip
    return pd.DataFrame(lines)


def table_of(summary: pd.DataFrame) -> str:
    """Return the rows as a Markdown table."""
    head = ("input", "target", "edits", "AUC", "95 % interval", "success", "chance", "identity", "done", "not done",
            "cannot be told", "others falsely done", "error, 95 %")  # fmt: skip
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for row in summary.itertuples():
        area = f"**{row.auc:.3f}**" if row.auc >= 0.95 else f"{row.auc:.3f}"
        cells = [row.input, f"`{row.kind}`", str(row.n), area, f"{row.low:.2f} to {row.high:.2f}", f"{row.success:.2f}",
                 f"{row.chance:.2f}", f"{row.identity:.2f}", str(row.done), str(row.not_done), str(row.cannot_be_told),
                 "n/a" if np.isnan(row.falsely_done) else f"{row.falsely_done:.0%}", f"{row.error_95:.3g}"]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def write_tables(summary: pd.DataFrame) -> None:
    """Write the table of the held-out half into the pages."""
    for place in (HERE / "README.md", ROOT / "metrics" / "edit_success" / "README.md"):
        fill_in(place, "success", table_of(summary[summary.half == "held_out"]))


def main() -> None:
    """Measure what is asked for, and write it where all of it was."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recordings", type=Path, help="as of preservation_validity/real.py")
    parser.add_argument("--renderers", nargs="+", default=["additive", "fluidsynth"])
    parser.add_argument("--halves", nargs="+", default=["tuning", "held_out"], choices=["tuning", "held_out"])
    parser.add_argument("--pieces", type=int, help="only so many of each half; prints, and writes nothing")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "edit_success")
    parser.add_argument("--write", action="store_true", help="only the tables, from success.csv")
    options = parser.parse_args()
    if options.write:
        write_tables(pd.read_csv(HERE / "success.csv"))
        return
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = "1"
    rows = []
    real = {"tuning": "development", "held_out": "test"}
    for half in options.halves:
        inputs = {name: rendered(half, name, options.work, options.pieces) for name in options.renderers}
        if options.recordings and not missing_programs():
            inputs["recordings"] = recorded(real[half], options.recordings, options.work, options.pieces)
        for name, sources in inputs.items():
            store = FeatureStore(options.work / "features")
            rows += [row | {"half": half, "input": name} for row in measure(list(sources), store)]
    summary = summarise(pd.DataFrame(rows))
    print(table_of(summary))
    if options.pieces is None and len(inputs) == 3 and len(options.halves) == 2:
        summary.to_csv(HERE / "success.csv", index=False, float_format="%.4g")
        write_tables(summary)


if __name__ == "__main__":
    main()
