"""The verb ``fill``."""

from __future__ import annotations

import argparse
import bisect
import itertools
import json
import os
import re
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from music_evals.benchmark.formats import format_value, plain
from music_evals.cli.console import Bar, earlier_run, say, sha256_of, to_stdout
from music_evals.cli.options import add_number, add_verb
from music_evals.errors import InvalidInputError, NoDataError, UnknownNameError

if TYPE_CHECKING:
    from music_evals.benchmark.tasks.inpainting.systems import System
    from music_evals.pipelines.gaps.filling import Candidate, Filling
    from music_evals.pipelines.gaps.stretches import Stretch
    from music_evals.symbolic.tunes import Tune

_HELP = """\
Fill measures of your own tune: MIDI, MusicXML (.musicxml, .xml, .mxl) or ABC.

The model sees the measures around the gap, nothing of what stands in it. Writes into --out a file for each candidate,
best first, in the format that came in: candidate_1.mid ..., other voices and all else as they were; candidates.svg, a
picture; and fill.json. Where the gap holds notes, they are taken for the truth, and candidates are scored. With
--sketch they are no truth: the model is told their rhythm or their pitches, and nothing is scored.

Measures have the numbers that the score prints: the first full one is 1, a pickup before it is 0, and the halves of one
around a repeat sign count as one. Where a number is there several times, use places: #5 is the fifth measure there.
Repeats are not played out.
"""

_EXAMPLES = """\
examples:
  music-evals fill my_tune.mid --model anticipation_rnn --measures 7-10 --candidates 4 --out filled
  music-evals fill my_song.musicxml --voice Soprano --model lag_vote --measures 9-12 --out filled
  music-evals fill my_tune.abc --model sketchnet --measures 9-12 --sketch rhythm --out filled
  music-evals fill my_piano.mid --voice "Right hand" --highest --model lag_vote --measures 9-12 --out filled
  music-evals fill my_reels.abc --tune 3 --model lag_vote --measures 5-8 --out filled --json
"""

_OURS = re.compile(r"candidate_\d+\.\w+|candidates\.svg")
_FITTED = ("markov", "corpus_prior")


def add(verbs: Any) -> None:
    """Add the verb ``fill``."""
    verb = add_verb(verbs, "fill", _run, "fill a gap in your own tune", _HELP, _EXAMPLES)
    inputs = verb.add_argument_group("what is filled")
    inputs.add_argument("file", help="a .mid, .midi, .musicxml, .xml, .mxl or .abc file")
    inputs.add_argument(
        "--measures", required=True, metavar="FIRST-LAST", help="the gap, such as 7-10; by place #7-#10"
    )
    inputs.add_argument("--voice", metavar="NAME", help="name or number of the voice, where several have notes")
    inputs.add_argument(
        "--highest",
        action="store_true",
        help="of chords in the voice, show the model the highest notes; what it writes replaces the chords in the gap",
    )
    inputs.add_argument(
        "--tune", type=int, metavar="N", help="number of the tune (X:), where an ABC file holds several"
    )
    inputs.add_argument("--meter", metavar="N/D", help="meter of a MIDI file that states none, such as 4/4")
    who = verb.add_argument_group("who fills it")
    who.add_argument(
        "--model",
        required=True,
        help="a name (see list), a folder or a Hub id[@revision], and :DECODING after it for one that is not its "
        "default; or a baseline that needs no training, such as lag_vote",
    )
    who.add_argument("--decoding", help="decoding of the model")
    who.add_argument("--temperature", type=float, help="temperature of the model")
    how = verb.add_argument_group("how")
    add_number(how, "--candidates", "how many", default=4, dest="n_candidates")
    how.add_argument(
        "--sketch",
        choices=("rhythm", "contour"),
        help="what stands in the gap is a sketch: its rhythm stays, or its pitches in their order, and the model "
        "writes the rest; for sketchnet",
    )
    add_number(
        how,
        "--context",
        "measures on each side of the gap that a model of any gap is shown (default: all that it can take)",
    )
    how.add_argument("--seed", type=int, default=0, help="of what is drawn (default: %(default)s)")
    how.add_argument(
        "--no-judge",
        action="store_false",
        dest="judge",
        default=None,
        help="do not score: what stands in the gap is not the truth",
    )
    where = verb.add_argument_group("where it goes")
    where.add_argument("--out", required=True, metavar="DIR", help="new or empty folder, or one of an earlier fill")
    where.add_argument("--json", action="store_true", help="print fill.json in place of the table")


def _run(options: argparse.Namespace) -> int:
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # as of the verb inpainting; a gap is one item, for one thread
    from music_evals.files import write_atomically
    from music_evals.pipelines.gaps.filling import fill
    from music_evals.symbolic.contexts import pick_voice
    from music_evals.symbolic.tunes import open_tune

    out = Path(options.out)
    about: dict[str, Any] = {"manifest": "fill.json", "pattern": _OURS, "run": "a fill", "done": "filled"}
    earlier_run(out, Path(options.file), **about)
    for flag, value, least in (("--seed", options.seed, 0), ("--candidates", options.n_candidates, 1)):
        if value < least:
            raise InvalidInputError(f"{flag} must be {least} or more, got {value}")
    tune = open_tune(options.file, tune=options.tune, meter=options.meter)
    voice = tune.voice(options.voice)
    first, n_measures = tune.measures(options.measures)
    tune.replaced(voice, first, n_measures, tune.score.notes[:0])  # what cannot be edited is said before drawing
    system = _system(options)
    assert system.inpainter is not None  # predictions made elsewhere are no model
    with Bar("candidate") as bar:
        bar(0, options.n_candidates, system.name)
        filling = fill(
            pick_voice(tune.score, voice, highest=options.highest),
            system.inpainter,
            bars=tune.bars,
            first=first,
            n_measures=n_measures,
            sketch=options.sketch,
            context=options.context,
            seed=options.seed,
            n_candidates=options.n_candidates,
            evaluate=options.judge,
            progress=lambda done, wanted: bar(done, wanted, system.name),
        )
    files = _files(options, tune, voice, system, filling)
    earlier = earlier_run(out, Path(options.file), **about)  # what was changed in the meantime is not lost either
    for name, written in files.items():
        write_atomically(out / name, written, parents=True)
    for name in {"fill.json", *earlier.get("files", ())} - files.keys():
        (out / name).unlink(missing_ok=True)
    for remark in (*tune.remarks, *filling.remarks):
        say(f"note: {remark}")
    text = files["fill.json"].decode().rstrip() if options.json else _table(filling, out, list(files), options)
    with to_stdout():
        print(text)
    return 0


def _system(options: argparse.Namespace) -> System:
    from music_evals.benchmark.tasks.inpainting.systems import baseline_system, load_model, split_decoding
    from music_evals.protocols import BASELINES, CONTROLS, INPAINTERS
    from music_evals.repositories import MODELS, find_repository

    chosen = {"decoding": options.decoding, "temperature": options.temperature}
    if options.model not in BASELINES:
        try:
            find_repository(split_decoding(options.model)[0], MODELS, "model", INPAINTERS)
        except UnknownNameError as error:
            usable = {*BASELINES, *INPAINTERS} - {*_FITTED, *CONTROLS}
            raise UnknownNameError("model", options.model, usable, "or name a folder or a Hub id") from error
        return load_model(options.model, **chosen)
    if options.model in _FITTED:
        raise NoDataError(
            f"the baseline {options.model} is fitted on training data, which a single tune is not; name another"
        )
    if any(value is not None for value in chosen.values()):
        raise InvalidInputError(f"{options.model} has neither decoding nor temperature; leave these options out")
    return baseline_system(options.model, None)


def _files(options: argparse.Namespace, tune: Tune, voice: int, system: System, filling: Filling) -> dict[str, bytes]:
    """Return what is written, by name: fill.json last, with the SHA-256 of all others."""
    from music_evals.numerics import package_versions

    first, n_measures = tune.measures(options.measures)
    files = {
        f"candidate_{rank}{tune.suffix}": tune.replaced(voice, first, n_measures, candidate.notes)
        for rank, candidate in enumerate(filling.candidates, start=1)
    }
    title = f"{Path(options.file).name}, measures {options.measures}"
    files["candidates.svg"] = _picture(filling, tune, title).encode()
    hashes = {name: sha256_of(content) for name, content in files.items()}
    ticks = tune.bars.ticks_per_quarter
    content = {
        "file": str(options.file),
        "sha256": sha256_of(Path(options.file).read_bytes()),
        "tune": options.tune,
        "meter": options.meter,
        "voice": {"number": voice + 1, "name": tune.score.voices[voice]},
        "highest": options.highest,
        "measures": options.measures,
        "places": [first + 1, first + n_measures],
        "model": {"name": system.name, "content_hash": system.content_hash, **system.details},
        "sketch": options.sketch,
        "context": options.context,
        "seed": options.seed,
        "n_candidates": options.n_candidates,
        "no_judge": options.judge is False,
        "ranked_by": "likelihood" if filling.ranked else "order of drawing",
        "candidates": [
            {
                "file": f"candidate_{rank}{tune.suffix}",
                "drawn": candidate.number,
                "log_likelihood": candidate.log_likelihood,
                "scores": dict(candidate.scores),
                "notes": [_note(note, ticks) for note in candidate.notes],
            }
            for rank, candidate in enumerate(filling.candidates, start=1)
        ],
        "truth": [_note(note, ticks) for note in filling.truth],
        "remarks": [*tune.remarks, *filling.remarks],
        "versions": package_versions(),
        "files": hashes,
    }
    return {**files, "fill.json": (json.dumps(plain(content), indent=1, allow_nan=False) + "\n").encode()}


def _note(note: Any, ticks_per_quarter: int) -> dict[str, float | int]:
    onset, duration = (int(note[key]) / ticks_per_quarter for key in ("onset_tick", "duration_tick"))
    return {"onset_quarter": onset, "duration_quarter": duration, "pitch": int(note["pitch"])}


_STYLE = """\
svg { background: #fff; font: 14px sans-serif; } text { fill: #222; } .span { fill: #fff3d6; }
.number { font-size: 11px; fill: #666; } .bar { stroke: #bbb; vector-effect: non-scaling-stroke; }
.note { fill: #777; } .filled { fill: #c2410c; }
@media (prefers-color-scheme: dark) { svg { background: #171717; } text { fill: #eee; } .span { fill: #3a2f14; }
.number { fill: #aaa; } .bar { stroke: #555; } .note { fill: #aaa; } .filled { fill: #fb923c; } }"""
_ROLL_WIDTH, _HEAD, _SPACE = 960, 44, 18


def _picture(filling: Filling, tune: Tune, title: str) -> str:
    """Draw the truth, where there is one, and each candidate, in what the model was shown."""
    from music_evals.annotations import ContextLayout
    from music_evals.benchmark.tasks.inpainting.plots import piano_roll

    stretch = filling.stretch
    gap = stretch.gap
    layout = ContextLayout(gap.start, gap.stop - gap.start, len(stretch.tokens) - gap.stop, 1)
    rolls = [("what stood in the gap", stretch.tokens[gap])] if len(filling.truth) else []
    rolls += [(_line(rank, candidate), candidate.middle) for rank, candidate in enumerate(filling.candidates, start=1)]
    parts, y = [], float(_HEAD)
    for label, middle in rolls:
        roll = piano_roll(stretch.tokens, middle, label=label, layout=layout, bar_lines=stretch.bar_lines)
        match = re.search(r'viewBox="0 0 [\d.]+ ([\d.]+)"', roll)
        assert match is not None  # every roll has one
        height = float(match[1])  # a semitone is as high in every picture, however long what was shown
        parts.append(f'<text x="8" y="{y + 12:.0f}">{escape(label)}</text>')
        place = f'x="8" y="{y + _SPACE:.0f}" width="{_ROLL_WIDTH}" height="{height:.0f}" preserveAspectRatio="none" '
        parts.append(roll.replace("<svg ", f"<svg {place}", 1))
        y += _SPACE + height + _SPACE
    head = f'<text x="8" y="16" font-weight="bold">{escape(title)}</text>' + "".join(
        f'<text class="number" x="{8 + _ROLL_WIDTH * step / len(stretch.tokens):.0f}" y="36">{escape(number)}</text>'
        for step, number in _numbered(filling.stretch, tune)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_ROLL_WIDTH + 16}" height="{y:.0f}"><style>{_STYLE}</style>'
        f"{head}{''.join(parts)}</svg>\n"
    )


def _numbered(stretch: Stretch, tune: Tune) -> Iterator[tuple[int, str]]:
    """Yield the steps at which measures of the tune start in what was shown, and their numbers."""
    from music_evals.symbolic.contexts import STEPS_PER_QUARTER

    starts = tune.bars.starts[:-1].tolist()
    for low, high in itertools.pairwise(stretch.bar_lines):
        first, stop = (
            stretch.origin_tick + step * tune.bars.ticks_per_quarter // STEPS_PER_QUARTER for step in (low, high)
        )
        index = bisect.bisect_left(starts, first)  # a pickup starts after its bar line
        if index < len(starts) and starts[index] < stop:
            yield low, tune.numbers[index]


def _line(rank: int, candidate: Candidate) -> str:
    """Say what is known of a candidate."""
    score = f", note F1 {format_value(candidate.scores['note_f1'])}" if candidate.scores else ""
    likely = "" if candidate.log_likelihood is None else f", log-likelihood {format_value(candidate.log_likelihood)}"
    return f"candidate {rank}: {len(candidate.notes)} notes{likely}{score}"


def _table(filling: Filling, out: Path, names: list[str], options: argparse.Namespace) -> str:
    lines = [_line(rank, candidate) for rank, candidate in enumerate(filling.candidates, start=1)]
    if not filling.candidates[0].scores:
        why = "no note stood in the gap" if options.sketch is None else "what stands in the gap is a sketch"
        lines.append(f"not scored: {why if options.judge is None else 'as --no-judge asks'}")
    return "\n".join([*lines, "", f"{out}: {', '.join(names)}"])
