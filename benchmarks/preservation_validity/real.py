"""What each metric of music context preservation, and each auxiliary metric, makes of edits of real recordings.

``python benchmarks/preservation_validity/real.py --recordings FOLDER`` edits the excerpts of recordings.csv as
real_edits.yaml says, scores, and writes anew real_scores.csv, real_evidence.csv, real_run.json, the table of README.md
and the section "Real recordings" of each card. No recording is shipped: FOLDER holds clones of the repositories of the
manifest, as FOLDER/owner/name, or is filled by ``--fetch``. A run that was stopped goes on where it stood.

``--write`` makes the pages from real_scores.csv alone, with no recording and no program.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from analyse import SCALES, load_records
from real_edits import PACKAGES, missing_programs, program_versions
from real_evidence import evidence_table, real_evidence, write_pages
from real_measure import measure_recordings
from real_recordings import HALVES, Recording, attach, fetch, load_manifest

from music_evals.audio.extraction import receipt
from music_evals.errors import InvalidInputError
from music_evals.yaml_files import read_yaml_file

HERE = Path(__file__).parent
MANIFEST, EDITS = HERE / "recordings.csv", HERE / "real_edits.yaml"
COMMAND = "python benchmarks/preservation_validity/real.py --recordings FOLDER"


def main() -> None:
    """Measure what is attached, and write the evidence where nothing of the halves is missing."""
    options = _options()
    plan = read_yaml_file(EDITS)
    recordings = load_manifest(options.manifest)
    if options.write:
        run = json.loads((options.out / "real_run.json").read_text(encoding="utf-8"))
        if run["inputs"] != _inputs(options.manifest):
            raise InvalidInputError(f"manifest or edits have changed since the scores were made: run {COMMAND}")
        if changed := outdated(run):
            raise InvalidInputError(f"{', '.join(changed)} changed since the scores were made: run {COMMAND}")
        _write(pd.read_csv(options.out / "real_scores.csv"), plan, run, options)
        return
    scores = _measure(recordings, plan, options)
    if scores is None:
        return
    scores.to_csv(options.out / "real_scores.csv", index=False, float_format="%.6g")
    run = _run_facts(scores, options.manifest, options.backend)
    (options.out / "real_run.json").write_text(json.dumps(run, indent=1) + "\n", encoding="utf-8")
    _write(pd.read_csv(options.out / "real_scores.csv"), plan, run, options)


def _measure(
    recordings: Sequence[Recording], plan: Mapping[str, Any], options: argparse.Namespace
) -> pd.DataFrame | None:
    """Return the scores of all pairs of the halves; None where something is missing, after saying what."""
    absent = missing_programs()
    if absent:
        print(f"skipped: {', '.join(absent)} not installed; {PACKAGES}", file=sys.stderr)
        return None
    if options.fetch:
        fetch(recordings, options.recordings)
    files, missing = attach(recordings, options.recordings)
    for name, reason in missing.items():
        print(f"{name} skipped: {reason}", file=sys.stderr)
    chosen = [one.name for one in recordings if one.half in options.halves]
    if not set(chosen) & set(files):
        print("skipped: no recording is there; see README.md for how to get them", file=sys.stderr)
        return None
    at = {"work": options.work, "backends": tuple(options.backend)}
    paths = [measure_recordings(recordings, files, plan, half, **at) for half in options.halves]
    scores = load_records(paths)
    if set(chosen) <= set(files):
        return scores
    for half in scores.half.unique():
        print(evidence_table(real_evidence(scores, plan, half)))
    print("not all is measured: nothing is written", file=sys.stderr)
    return None


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recordings", type=Path, help="clones of the repositories of the manifest: FOLDER/owner/name")
    parser.add_argument("--fetch", action="store_true", help="download recordings that are missing into that folder")
    parser.add_argument("--write", action="store_true", help="only write the pages anew, from real_scores.csv")
    parser.add_argument("--halves", nargs="+", default=list(HALVES), choices=HALVES, help="the tables show these")
    parser.add_argument("--manifest", type=Path, default=MANIFEST)
    parser.add_argument("--out", type=Path, default=HERE, help="folder of the results; pages are written for this one")
    parser.add_argument(
        "--work", type=Path, default=Path(tempfile.gettempdir()) / "preservation_validity_real",
        help="excerpts, edits, features, records",
    )  # fmt: skip
    parser.add_argument(
        "--backend", action="append", default=[], metavar="FEATURE=NAME",
        help="an extractor in the place of the default one, for comparison: into another folder (--out)",
    )  # fmt: skip
    options = parser.parse_args()
    if options.backend and options.out == HERE:
        parser.error("--backend goes with --out: the pages here are of the default extractors")
    if not options.write and options.recordings is None:
        parser.error("--recordings is missing: the folder of the recordings, see README.md")
    return options


def _write(scores: pd.DataFrame, plan: Mapping[str, Any], run: Mapping[str, Any], options: argparse.Namespace) -> None:
    unknown = [name for name in SCALES if name not in scores]
    if unknown:
        print(f"not measured: {', '.join(unknown)}; run {COMMAND}", file=sys.stderr)
    found = [item for half in HALVES if half in set(scores.half) for item in real_evidence(scores, plan, half)]
    table = pd.DataFrame([vars(item) for item in found])
    table.to_csv(options.out / "real_evidence.csv", index=False, float_format="%.4f")
    print(evidence_table(found))
    if options.out == HERE:
        write_pages(found, run)


def _run_facts(scores: pd.DataFrame, manifest: Path, backends: Sequence[str] = ()) -> dict[str, Any]:
    halves = [half for half in HALVES if half in set(scores.half)]
    return {
        "command": COMMAND if len(halves) == len(HALVES) else f"{COMMAND} --halves {' '.join(halves)}",
        "programs": program_versions(),
        "inputs": _inputs(manifest),
        "recordings": {half: int(rows.piece.nunique()) for half, rows in scores.groupby("half")},
        "sources": {half: int(rows.source.nunique()) for half, rows in scores.groupby("half")},
        "pairs": len(scores),
        "extractors": receipt(dict(each.split("=", 1) for each in backends)),
        "definitions": _definitions(),
    }


def outdated(run: Mapping[str, Any]) -> list[str]:
    """Return the extractors, and the scores by their definitions, that ship otherwise than a run had them."""
    # versions of packages, which differ from one machine to the next, are left to the reader of real_run.json
    then, now = (found["features"] for found in (run["extractors"], json.loads(json.dumps(receipt()))))
    kept = ("backend", "version", "parameters", "weights", "inputs")
    told = [{name: [about.get(key) for key in kept] for name, about in found.items()} for found in (then, now)]
    definitions = [run.get("definitions", _definitions()), _definitions()]  # runs of before name none
    return [
        f"{what} {name}"
        for what, (old, new) in (("extractor of", told), ("definition of", definitions))
        # a feature that came later, for another variant, was not heard in the run
        for name in sorted(old if what == "extractor of" else old.keys() | new.keys())
        if old.get(name) != new.get(name)
    ]


def _definitions() -> dict[str, int]:
    """Return the number of the definition of each score."""
    return {name: scale.definition for name, scale in SCALES.items()}


def _inputs(manifest: Path) -> dict[str, str]:
    """Return the hashes of the manifest and of the table of edits."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (manifest, EDITS)}


if __name__ == "__main__":
    main()
