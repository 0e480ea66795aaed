"""How far extractors agree on real recordings that nobody annotated, and what they hear in the one that is annotated.

``python benchmarks/preservation_validity/real_extractors.py --recordings FOLDER`` runs every backend that is installed
on the excerpts of recordings.csv, and writes real_extractors.csv and its tables in README.md; FOLDER as for real.py.
Features are kept beside the excerpts: a run that was stopped goes on where it stood. Backends that are not installed
are named and left out. With `--features` the rows of the others stay as they are.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import sys
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from extractors import SCORERS
from real import EDITS, HERE, MANIFEST
from real_edits import PACKAGES, make_excerpt, missing_programs
from real_recordings import HALVES, Recording, attach, fetch, load_manifest
from run import fill_in
from tqdm import tqdm

from music_evals.annotations import F0Track, Features
from music_evals.audio.backends import BACKENDS, DEFAULT_BACKENDS, Backend
from music_evals.audio.extraction import extract
from music_evals.audio.io import load_audio
from music_evals.audio.store import FeatureStore
from music_evals.errors import BackendError, InvalidInputError, MissingBackendError
from music_evals.yaml_files import read_yaml_file


class Annotation(NamedTuple):
    """A file of the repository of a recording: seconds and hertz, 0 where nothing is sung."""

    path: str
    sha256: str


ANNOTATED = {
    "vocadito_1": Annotation(
        "tests/resources/mir_datasets/vocadito/Annotations/F0/vocadito_1_f0.csv",
        "dd10beba57b94d37b1d3263f5deca3b780adc7ec90f1d43bb00099b02c2878e5",
    )
}
"""Recording -> its annotation of the fundamental frequency: the only one of the manifest that has any."""

Found = Mapping[tuple[str, str], Mapping[str, Features]]


def main() -> None:
    """Run what is installed on what is attached, and write the tables where no recording is missing."""
    options = _options()
    if absent := missing_programs():
        print(f"skipped: {', '.join(absent)} not installed; {PACKAGES}", file=sys.stderr)
        return
    recordings = load_manifest(MANIFEST)
    if options.fetch:
        fetch(recordings, options.recordings)
    files, missing = attach(recordings, options.recordings)
    for name, reason in missing.items():
        print(f"{name} skipped: {reason}", file=sys.stderr)
    plan = read_yaml_file(EDITS)
    excerpts = {
        one.name: make_excerpt(plan, one, files[one.name], options.work / f"{one.name}.wav")
        for one in recordings
        if one.name in files
    }
    attached = [one for one in recordings if one.name in files]
    truths = {one.name: read_annotation(one, options.recordings) for one in attached if one.name in ANNOTATED}
    found = extract_all(excerpts, options.features, FeatureStore(options.work / "features"))
    table = agreement(found, {one.name: one.half for one in attached})
    accuracy = against_annotations(found, attached, truths)
    print(f"{_lines(table)}\n{_lines(accuracy)}")
    if missing:
        print("not all is measured: nothing is written", file=sys.stderr)
        return
    _write(table, accuracy, options.features)


def _write(table: pd.DataFrame, accuracy: pd.DataFrame, features: Iterable[str]) -> None:
    """Write the CSV and the tables of README.md; what was measured of other features stays."""
    path = HERE / "real_extractors.csv"
    before = pd.read_csv(path)
    before = before[~before.feature.isin(list(features))]
    annotated = before["as truth"] == "annotation"
    table, accuracy = pd.concat([before[~annotated], table]), pd.concat([before[annotated], accuracy])
    table = table.sort_values("feature", key=lambda column: column.map(list(SCORERS).index), kind="stable")
    pd.concat([table, accuracy])[before.columns].to_csv(path, index=False, float_format="%.4f")
    ours = table[table.backend == table.feature.map(DEFAULT_BACKENDS)]
    fill_in(HERE / "README.md", "real_extractors", f"{_lines(ours)}\nAgainst the annotation:\n\n{_lines(accuracy)}")


def extract_all(excerpts: Mapping[str, Path], features: Iterable[str], store: FeatureStore) -> Found:
    """Return (feature, backend) -> recording -> what the backend found, without backends that are not installed."""
    found = {}
    for backend in [backend for feature in features for backend in BACKENDS[feature].values()]:
        try:
            found[backend.feature, backend.name] = _extract(backend, excerpts, store)
        except MissingBackendError as error:
            tqdm.write(f"left out: {error}")
    return found


def _extract(backend: Backend, excerpts: Mapping[str, Path], store: FeatureStore) -> dict[str, Features]:
    backend.load()
    found, chosen = {}, {backend.feature: backend.name}
    for name, path in tqdm(excerpts.items(), desc=f"{backend.feature} {backend.name}", unit="file"):
        try:
            found[name] = extract(load_audio(path), [backend.feature], backends=chosen, store=store)
        except BackendError as error:
            tqdm.write(f"{name}: {error}")
    return found


def agreement(found: Found, halves: Mapping[str, str]) -> pd.DataFrame:
    """Return a row for each half and two backends of a feature: means over the recordings where both find something."""
    rows = []
    for half in HALVES:
        names = [name for name, of in halves.items() if of == half]
        for (feature, first), (other_feature, second) in itertools.combinations(found, 2):
            if feature != other_feature:
                continue
            pairs = list(_both(found[feature, second], found[feature, first], feature, names))
            facts = {"feature": feature, "backend": first, "as truth": second, "half": half}
            counts = {"files": len(pairs), "undefined": len(names) - len(pairs)}
            rows.append({**facts, **counts, **_means(feature, pairs)})
    return pd.DataFrame(rows)


def against_annotations(found: Found, recordings: Iterable[Recording], truths: Mapping[str, Features]) -> pd.DataFrame:
    """Return a row for each tracker of f0 and annotated recording."""
    rows = []
    tracks = {backend: features for (feature, backend), features in found.items() if feature == "f0"}
    for recording in recordings if tracks else ():
        if recording.name not in truths:
            continue
        for backend, features in tracks.items():
            pairs = list(_both(truths, features, "f0", [recording.name]))
            facts = {"feature": "f0", "backend": backend, "as truth": "annotation", "half": recording.half}
            counts = {"files": len(pairs), "undefined": 1 - len(pairs)}
            rows.append({**facts, **counts, **_means("f0", pairs)})
    return pd.DataFrame(rows)


def _both(
    truth: Mapping[str, Features], estimate: Mapping[str, Features], feature: str, names: Iterable[str]
) -> Iterator[tuple[Features, Features]]:
    for name in names:
        if name in truth and name in estimate and not {feature} & {*truth[name].undefined, *estimate[name].undefined}:
            yield truth[name], estimate[name]


def _means(feature: str, pairs: Iterable[tuple[Features, Features]]) -> dict[str, float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of mir_eval, about empty annotations
        scores = pd.DataFrame([SCORERS[feature](truth, estimate) for truth, estimate in pairs])
    return {str(name): float(value) for name, value in scores.mean().items()}


def read_annotation(recording: Recording, folder: Path) -> Features:
    """Return the annotated fundamental frequency of a recording.

    Raises
    ------
    InvalidInputError
        The annotation is missing, or another file than the one that was measured.

    """
    annotation = ANNOTATED[recording.name]
    path = folder / recording.repository / annotation.path
    if not path.is_file():
        raise InvalidInputError(
            f"{path} is missing, the annotation of {recording.name}; it lies at {recording.commit} of "
            f"{recording.repository}"
        )
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != annotation.sha256:
        raise InvalidInputError(f"{path} is another file: its SHA-256 is not {annotation.sha256}")
    times, hertz = np.loadtxt(path, delimiter=",", unpack=True)
    within = (times >= recording.start_sec) & (times < recording.start_sec + recording.length_sec)
    return Features(recording.length_sec, f0=F0Track(times[within] - recording.start_sec, hertz[within]))


def _lines(table: pd.DataFrame) -> str:
    """Return a table in Markdown for each feature."""
    parts = []
    for feature, rows in table.groupby("feature", sort=False) if len(table) else ():
        shown = rows.drop(columns="feature").dropna(axis=1, how="all")
        heads = "| " + " | ".join(shown.columns) + " |\n" + "|---" * len(shown.columns) + "|\n"
        lines = [
            "| " + " | ".join(f"{cell:.2f}" if isinstance(cell, float) else str(cell) for cell in row) + " |\n"
            for row in shown.itertuples(index=False)
        ]
        parts.append(f"**{feature}**\n\n{heads}{''.join(lines)}")
    return "\n".join(parts)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recordings", type=Path, required=True, help="FOLDER/owner/name, as for real.py")
    parser.add_argument("--fetch", action="store_true", help="download recordings that are missing into that folder")
    parser.add_argument("--features", nargs="+", default=list(SCORERS), choices=list(SCORERS))
    parser.add_argument(
        "--work", type=Path, default=Path(tempfile.gettempdir()) / "preservation_validity_real" / "excerpts",
        help="excerpts and features",
    )  # fmt: skip
    return parser.parse_args()


if __name__ == "__main__":
    main()
