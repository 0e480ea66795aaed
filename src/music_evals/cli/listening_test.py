"""The verb ``listening-test``: what people are to hear, and the key to it."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from music_evals.cli._shared import Bar, add_verb, chosen, say, to_stdout

if TYPE_CHECKING:
    from music_evals.studies.stimuli import Study

__all__ = ["add"]

_HELP = """\
Build a blind listening study out of results.
"""

_PAIRS_HELP = """\
Build the sounds of a blind listening study from runs of the verb inpainting: the reference, models, decodings and
copies on the same items, whole, on one instrument, at equal loudness.

Writes into --out: audio/, files whose names say nothing; pairs.csv, the key, which stays with the leader of the study;
and pairs.json, how it was made. All of it is taken from the records of the runs.
"""

_EXAMPLES = """\
examples:
  music-evals listening-test pairs results/best results/sample --out study --seed 8241
  music-evals listening-test pairs results/jsb --systems infill_transformer,copy_past --items 12 --out study
  music-evals listening-test pairs results/mine --licence "my own tunes" --sounds additive --out study
"""


def add(verbs: Any) -> None:
    """Add the verb ``listening-test``."""
    verb = add_verb(
        verbs, "listening-test", _nothing, help="build a blind listening study", description=_HELP, epilog=_EXAMPLES
    )
    steps = verb.add_subparsers(title="steps", required=True, metavar="STEP")
    step = add_verb(
        steps, "pairs", _run, help="render what is heard, and write its key", description=_PAIRS_HELP, epilog=_EXAMPLES
    )
    what = step.add_argument_group("what is heard")
    what.add_argument("runs", nargs="+", metavar="DIR", help="folder of a run of the verb inpainting, its --out")
    what.add_argument(
        "--items",
        type=int,
        default=24,
        metavar="N",
        help="how many, out of those that all systems have; one of each song, then a second, and so on "
        "(default: %(default)s)",
    )
    what.add_argument(
        "--systems",
        metavar="NAMES",
        help="all, or names with commas (default: all models, copy_past and lag_vote); the reference is always there",
    )
    what.add_argument(
        "--seed",
        type=int,
        default=0,
        metavar="N",
        help="of the items and the names of files; take one that nobody knows (default: %(default)s)",
    )
    how = step.add_argument_group("how it sounds")
    how.add_argument(
        "--sounds",
        default="fluidsynth",
        help="fluidsynth: General MIDI sounds; additive: a plain synthesiser that needs nothing, for trials "
        "(default: %(default)s)",
    )
    how.add_argument("--bpm", type=float, default=120.0, help="quarters a minute (default: %(default)g)")
    how.add_argument(
        "--program",
        type=int,
        default=0,
        metavar="N",
        help="General MIDI program 0..127 (default: %(default)s, a piano)",
    )
    how.add_argument(
        "--loudness",
        type=float,
        default=-23.0,
        dest="loudness_lufs",
        metavar="LUFS",
        help="of every file (default: %(default)g)",
    )
    where = step.add_argument_group("where it goes")
    where.add_argument(
        "--licence", metavar="TEXT", help="terms of the music, where no card of its data set on this machine has them"
    )
    where.add_argument("--out", required=True, metavar="DIR", help="new or empty folder for the study")
    where.add_argument("--overwrite", action="store_true", help="replace a study that is there")
    where.add_argument("--json", action="store_true", help="print pairs.json in place of the summary")


def _nothing(_: argparse.Namespace) -> int:
    raise AssertionError("argparse asks for a step")


def _run(options: argparse.Namespace) -> int:
    from music_evals.benchmark.inpainting.listening import StudySettings, build_study

    with Bar("item") as bar:
        study = build_study(StudySettings(**chosen(options, StudySettings)), progress=bar)
    same = [pair for pair in study.pairs if pair.same_as]
    if same:
        say(f"note: {len(same)} files sound exactly like one of another system of their item; see the column same_as")
    with to_stdout():
        print(json.dumps(study.about, indent=1) if options.json else _summary(study))
    return 0


def _summary(study: Study) -> str:
    items, groups = {pair.item_id for pair in study.pairs}, {pair.group for pair in study.pairs}
    systems = list(dict.fromkeys(pair.system for pair in study.pairs))
    seconds = sum(pair.seconds or 0.0 for pair in study.pairs)
    return "\n".join(
        [
            f"{len(items)} items of {len(groups)} songs, {len(systems)} systems: {', '.join(systems)}",
            f"{len(study.pairs)} files to be judged, {seconds / 60:.1f} minutes in all",
            f"{study.folder}: pairs.csv (the key), pairs.json, audio/",
        ]
    )
