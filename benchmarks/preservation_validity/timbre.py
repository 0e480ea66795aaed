"""Which edits timbre scores hear: ours, and the two of `musecpeval` beside it.

``python benchmarks/preservation_validity/timbre.py --recordings FOLDER`` edits the test recordings of `real.py` as
timbre_edits.yaml says, renders edits of the held-out pieces of `known_edits`, scores them, and writes timbre.csv and
the tables of README.md and of the card. ``--half tuning`` prints the same of the other half, which the score was chosen
on. Audio and features are kept in a folder of their own (``--work``); a run that was stopped goes on there. ``--write``
makes the tables from timbre.csv alone.
"""

from __future__ import annotations

import argparse
import functools
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from real_edits import make_edit, make_excerpt, missing_programs
from real_recordings import attach, load_manifest
from run import fill_in
from tqdm import tqdm

from music_evals.annotations import Features
from music_evals.audio.store import FeatureStore
from music_evals.datasets.known_edits import build as known_edits
from music_evals.errors import InvalidInputError
from music_evals.metrics.arrays import MUSECPEVAL
from music_evals.pipelines.preservation import compare, load_features
from music_evals.stats.discrimination import clustered_auc
from music_evals.yaml_files import read_yaml_file

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PLAN = read_yaml_file(HERE / "timbre_edits.yaml")
REAL_PLAN = read_yaml_file(HERE / "real_edits.yaml")
VARIANTS = {"timbre_similarity": "corrected", "mfcc_skl_similarity": MUSECPEVAL, "mean_mfcc_cosine": MUSECPEVAL}
"""Score -> the variant that has it."""
INPUTS = ("recordings", "fluidsynth", "additive")
HALVES = {"tuning": "development", "held_out": "test"}
"""Half of `known_edits` -> half of the recordings."""


class Edit(NamedTuple):
    """An edited recording; its role is that of timbre_edits.yaml."""

    name: str
    role: str
    path: Path


class Source(NamedTuple):
    """A piece with its edits."""

    name: str
    group: str
    path: Path
    edits: tuple[Edit, ...]


def edits_of_recording(source: Path) -> Iterator[Edit]:
    """Make the edits that programs make of a recording."""
    for kind, facts in PLAN["recordings"].items():
        commands = facts if "commands" in facts else REAL_PLAN["kinds"][kind]
        for strength in facts["strengths"]:
            name = kind.removesuffix("_slight")
            target = source.parent / f"{name}_{strength:g}.wav"
            path = make_edit({"kinds": {kind: commands}}, kind, strength, source, target)
            yield Edit(f"{name} {strength:g}", facts["role"], path)


def edits_of_score(rows: list[Mapping[str, Any]], render: Any) -> Iterator[Edit]:
    """Render the edits that `known_edits` makes of a piece."""
    for kind, facts in PLAN["scores"].items():
        for row in rows:
            name = facts.get("kind", kind)
            if row["kind"] == name and row["strength"] in facts["strengths"]:
                yield Edit(f"score: {name} {row['strength']:g}", facts["role"], render(row))


def rendered(half: str, renderer: str, work: Path, n_pieces: int | None) -> Iterator[Source]:
    """Yield the pieces of a half of `known_edits`, rendered."""
    render = functools.partial(known_edits.render, renderer=renderer, cache=work / "audio")
    rows = known_edits.load_rows("default", half)
    for piece in list(dict.fromkeys(row["piece"] for row in rows))[:n_pieces]:
        own = [row for row in rows if row["piece"] == piece]
        yield Source(piece, piece, render(own[0], which="reference"), tuple(edits_of_score(own, render)))


def recorded(half: str, recordings: Path, work: Path, n_pieces: int | None) -> Iterator[Source]:
    """Yield the recordings of a half."""
    manifest = load_manifest(HERE / "recordings.csv")
    files, missing = attach(manifest, recordings)
    if missing:
        raise InvalidInputError(f"missing: {', '.join(missing.values())}")
    for one in [one for one in manifest if one.half == half][:n_pieces]:
        source = make_excerpt(REAL_PLAN, one, files[one.name], work / "recordings" / one.name / "source.wav")
        yield Source(one.name, one.source, source, tuple(edits_of_recording(source)))


def measure(sources: Iterator[Source], store: FeatureStore) -> Iterator[dict[str, Any]]:
    """Yield a row for each edit, and for each pair of sources of different groups."""
    load = functools.partial(_load, store=store)
    originals: list[tuple[Source, dict[str, Features]]] = []
    for source in tqdm(sources, unit="piece", mininterval=5):
        reference = load(source.path)
        originals.append((source, reference))
        for edit in source.edits:
            yield {
                "group": source.group, "edit": edit.name, "role": edit.role,
                **_scores(reference, load(edit.path)),
            }  # fmt: skip
    for source, reference in originals:
        for other, estimate in originals:
            if other.group != source.group:
                yield {
                    "group": source.group, "edit": "unrelated", "role": "unrelated", **_scores(reference, estimate)
                }  # fmt: skip


def _load(path: Path, *, store: FeatureStore) -> dict[str, Features]:
    """Return the features of a recording, by variant."""
    names = {variant: [name for name in VARIANTS if VARIANTS[name] == variant] for variant in VARIANTS.values()}
    return {
        variant: load_features(path, metrics=metrics, variant=variant, store=store)
        for variant, metrics in names.items()
    }


def _scores(reference: Mapping[str, Features], estimate: Mapping[str, Features]) -> dict[str, float]:
    return {
        name: compare(reference[variant], estimate[variant], metrics=[name], variant=variant)[name].value
        for name, variant in VARIANTS.items()
    }


def edits_table(rows: pd.DataFrame) -> str:
    """Return mean and worst score of each edit as a Markdown table: the worst is the highest of what changes timbre."""
    lines = [f"| input | edit | role | {' | '.join(f'`{name}`' for name in VARIANTS)} |", "|" + "---|" * 6]
    for (entrance, edit, role), part in rows.groupby(["input", "edit", "role"], sort=False):
        worst = part.max if role in {"changed", "unrelated"} else part.min
        ends = worst(numeric_only=True)
        cells = [f"{part[name].mean():.2f} ({ends[name]:.2f})" for name in VARIANTS]
        lines.append(f"| {entrance} | {edit} | {role} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def summary_table(rows: pd.DataFrame) -> str:
    """Return how well changes are told from what stays the same, and how often the bounds hold, as a Markdown table."""
    head = (
        "score", "input", "AUC", "95 % interval", "same: within .05", "changed: below halfway", "unrelated",
    )  # fmt: skip
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for name in VARIANTS:
        for entrance, part in rows.groupby("input", sort=False):
            same, changed, unrelated = (part[part.role == role] for role in ("same", "changed", "unrelated"))
            # a score falls, so that what stays the same is the group that scores higher
            area, low, high = clustered_auc(same[name], changed[name], same.group, changed.group)
            halfway = (1 + unrelated[name].mean()) / 2
            cells = (
                f"`{name}`", entrance, f"{area:.3f}", f"{low:.2f} to {high:.2f}", f"{(same[name] > 0.95).mean():.0%}",
                f"{(changed[name] < halfway).mean():.0%}", f"{unrelated[name].mean():.2f}",
            )  # fmt: skip
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def write_tables(rows: pd.DataFrame) -> None:
    """Write the tables into the pages."""
    text = f"{summary_table(rows)}\n{edits_table(rows)}"
    for place in (HERE / "README.md", ROOT / "metrics" / "timbre_similarity" / "README.md"):
        fill_in(place, "timbre", text)


def main() -> None:
    """Measure one half; write the tables where it is whole, and the one that nothing was chosen on."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recordings", type=Path, help="as of real.py")
    parser.add_argument("--half", default="held_out", choices=HALVES)
    parser.add_argument("--pieces", type=int, help="only so many of each input; prints, and writes nothing")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "timbre_validity")
    parser.add_argument("--write", action="store_true", help="only the tables, from timbre.csv")
    options = parser.parse_args()
    if options.write:
        write_tables(pd.read_csv(HERE / "timbre.csv"))
        return
    if options.recordings is None or missing_programs():
        parser.error(f"missing: {', '.join(missing_programs()) or 'the folder of the recordings'}")
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = "1"
    store = FeatureStore(options.work / "features")
    inputs = {"recordings": recorded(HALVES[options.half], options.recordings, options.work, options.pieces)}
    inputs |= {name: rendered(options.half, name, options.work, options.pieces) for name in INPUTS[1:]}
    rows = [{"input": name, **row} for name, sources in inputs.items() for row in measure(sources, store)]
    table = pd.DataFrame(rows)
    print(summary_table(table), edits_table(table), sep="\n")
    if options.pieces is None and options.half == "held_out":
        table.to_csv(HERE / "timbre.csv", index=False, float_format="%.4f")
        write_tables(pd.read_csv(HERE / "timbre.csv"))


if __name__ == "__main__":
    main()
