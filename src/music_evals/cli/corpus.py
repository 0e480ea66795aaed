"""The verb ``corpus``: anybody's scores into a data set."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from music_evals.cli.console import SHOWN_FAILURES, Bar, list_failures, say, to_stdout
from music_evals.cli.options import add_options, add_output_options, add_verb, from_options, in_options
from music_evals.errors import InvalidInputError
from music_evals.options import with_commas

if TYPE_CHECKING:
    from music_evals.datasets.corpus import Corpus

_HELP = """\
Make a data set of scores: windows of 16 measures, split so that settings of one tune stay together, with the columns of
jsb_chorales and irish_folk. `train` and `inpainting` read it.

With --style: whole pieces in voices by role, piano and bass unless --role says otherwise, with the columns of
swing_synth, for networks of style transfer.
"""

_EXAMPLES = """\
examples:
  music-evals corpus build my_tunes --out my_data
  music-evals corpus build my_midi --voices skyline --measures fixed --split 8:1:1 --seed 1 --out my_data
  music-evals inpainting --dataset my_data --baselines all --out results
  music-evals train models/anticipation_rnn/train.yaml --set data.dataset=my_data \\
      --set data.config=default --out my_model
  music-evals corpus build my_midi --style bossa --out my_bossa
  music-evals corpus build my_songs --style songs --role melody --role piano="Left hand,Right hand" --out my_songs_data
  music-evals train models/bmst/train.yaml --set data.dataset=my_bossa --set data.config=default \\
      --set model.style=bossa --out my_model
"""


def add(verbs: Any) -> None:
    """Add the verb ``corpus``."""
    verb = add_verb(verbs, "corpus", None, "make a data set of scores", _HELP, _EXAMPLES)
    steps = verb.add_subparsers(title="steps", required=True, metavar="STEP")
    add_verb(steps, "build", _run, "read a folder of MIDI, MusicXML or ABC files", options=_add_options)


def _add_options(step: Any) -> None:
    from music_evals.datasets.corpus import CorpusSettings

    add_options(step, CorpusSettings)
    step.add_argument("--style", metavar="NAME", help="make whole pieces of a style of this name, not windows")
    step.add_argument(
        "--role",
        action="append",
        default=[],
        dest="roles",
        metavar="ROLE[=VOICE,...]",
        help="of a style: take the voices that are melody, piano, organ, guitar, bass or strings by their name or "
        "General MIDI program, or those named here; may be given many times (default: piano and bass)",
    )
    step.add_argument(
        "--ticks-per-quarter", type=int, metavar="N", help="grid of a style: 8, or 12 for triplets (default: 8)"
    )
    add_output_options(step, "print what was built as JSON")


def _run(options: argparse.Namespace) -> int:
    with Bar("step") as bar:
        corpus = _build(options, bar)
    if not options.json:
        # name what the filters removed, and why; the manifest has what is too much for a terminal
        removed = [
            f"removed by {step.name}: {name}: {reason}"
            for step in corpus.filters.steps[1:]
            for name, reason in step.removed
        ]
        for line in removed[:SHOWN_FAILURES]:
            say(line)
        if len(removed) > SHOWN_FAILURES:
            say(f"and {len(removed) - SHOWN_FAILURES} more, see manifest.json")
        for name, reason in corpus.left_out.items():
            say(f"left out: {name}: {in_options(reason, options.verb)}")
    for remark in corpus.remarks:
        say(f"note: {in_options(remark, options.verb)}")
    if options.json:
        content = {
            "folder": str(corpus.folder),
            "counts": corpus.counts,
            "filters": corpus.filters.to_dict(),
            "failures": corpus.failures,
            "left_out": corpus.left_out,
            "remarks": corpus.remarks,
        }
        text = json.dumps(content)
    else:
        say(corpus.filters.table())
        text = "\n".join(
            f"{split}: {', '.join(f'{n:,} {unit}' for unit, n in counts.items())}"
            for split, counts in corpus.counts.items()
        )
    with to_stdout():
        print(text)
    return list_failures(list(corpus.failures.items()), "see manifest.json")


def _build(options: argparse.Namespace, progress: Bar) -> Corpus:
    from music_evals.datasets.corpus import CorpusSettings, build_corpus
    from music_evals.datasets.style_corpus import StyleCorpusSettings, build_style_corpus

    if options.style is None:
        if options.roles or options.ticks_per_quarter is not None:
            raise InvalidInputError("--role and --ticks-per-quarter are of whole pieces; name their --style too")
        return build_corpus(from_options(options, CorpusSettings), progress=progress)
    if (options.voices, options.measures) != ("one", "notated"):
        raise InvalidInputError("--voices and --measures are of windows; leave them out, or leave --style out")
    given = {name: value for name, value in vars(options).items() if value not in (None, [])}
    if options.roles:
        # role -> names of its voices, of texts such as ``piano`` and ``bass=Tuba,Sub``
        roles: dict[str, tuple[str, ...]] = {}
        for text in options.roles:
            role, _, names = text.partition("=")
            if role in roles:
                raise InvalidInputError(
                    f"--role {role} is given twice; name all its voices in one, as in {role}=One,Two"
                )
            roles[role] = tuple(with_commas(names))
        given["roles"] = roles
    return build_style_corpus(from_options(argparse.Namespace(**given), StyleCorpusSettings), progress=progress)
