"""The verb ``style-transfer``."""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from music_evals.benchmark.cells import plain
from music_evals.cli._shared import (
    EXIT_FAILURES,
    Bar,
    add_verb,
    in_options,
    list_failures,
    quieten,
    say,
    to_stdout,
)
from music_evals.errors import (
    InvalidInputError,
    MusicEvalsError,
    NoDataError,
    UnknownNameError,
    UnreadableFileError,
    importing,
)

if TYPE_CHECKING:
    from music_evals.annotations import Score
    from music_evals.models.gibbs import GibbsState
    from music_evals.pipelines.rearrangement import Prepared

__all__ = ["add"]

_HELP = """\
Put another accompaniment, in the style that a model has learnt, under the melody of your own piece.

The melody stays, note by note. It is the voice named melody, soprano, vocal or lead; --melody names another one. A
model draws the accompaniment anew, sweep by sweep, beginning with what is there. For each piece and style it writes
into --out PIECE_STYLE_1.mid ..., one a sample, with a track for the melody and one for the accompaniment;
PIECE_original.mid; PIECE_STYLE.svg, a picture of all; and PIECE_STYLE.json, what was done and with what. A run that was
stopped goes on after its last whole sweep when the same command is given again; what is done is not done again.
"""

_EXAMPLES = """\
examples:
  music-evals style-transfer my_song.mid --style bach --out transferred
  music-evals style-transfer my_songs/*.mid --melody 1 --style swing --samples 3 --out transferred
  music-evals style-transfer style_transfer_pieces --style bach --style swing --out study
"""


class _Piece(NamedTuple):
    """A piece and what it came from."""

    name: str
    source: str
    sha256: str
    score: Score
    melody: str | None  # as a data set says


class _Job(NamedTuple):
    """A piece in a style."""

    piece: _Piece
    prepared: Prepared
    model: Any
    about: Mapping[str, Any]  # all that decides what is written


def add(verbs: Any) -> None:
    """Add the verb ``style-transfer``."""
    verb = add_verb(
        verbs,
        "style-transfer",
        _run,
        help="another accompaniment under the melody of your own piece",
        description=_HELP,
        epilog=_EXAMPLES,
    )
    what = verb.add_argument_group("what is transferred")
    what.add_argument(
        "pieces", nargs="+", metavar="PIECE", help="a MIDI, MusicXML or ABC file, or a data set of whole pieces"
    )
    what.add_argument("--config", help="config of the data set")
    what.add_argument("--split", default="test", help="split of the data set (default: %(default)s)")
    what.add_argument(
        "--melody", metavar="VOICE", help="name or number of the voice that stays, or highest: the highest notes of all"
    )
    what.add_argument("--any-meter", action="store_true", help="take pieces in metres that models hardly know")
    who = verb.add_argument_group("who transfers it")
    who.add_argument("--style", action="append", default=[], help="such as bach; may be given many times")
    who.add_argument(
        "--model",
        default="bmst",
        help="a name (see list) with weights for the styles, or a folder or Hub id of one style (default: %(default)s)",
    )
    who.add_argument("--device", help="cpu, cuda, ... (default: a GPU if there is one)")
    how = verb.add_argument_group("how")
    how.add_argument(
        "--samples", type=int, default=1, metavar="N", help="how many of each piece and style (default: %(default)s)"
    )
    how.add_argument("--seed", type=int, default=0, help="of the first sample (default: %(default)s)")
    how.add_argument("--sweeps", type=int, metavar="N", help="visits of every step (default: the model's, 15)")
    how.add_argument("--temperature", type=float, help="above 1 bolder, below it safer (default: 1)")
    how.add_argument(
        "--threshold",
        action="store_const",
        const="threshold",
        dest="mode",
        help="let a cell sound from a probability of one half, as the paper's code does, in place of drawing it",
    )
    how.add_argument("--keep-sweeps", action="store_true", help="write the roll after each sweep as MIDI too")
    where = verb.add_argument_group("where it goes")
    where.add_argument("--out", required=True, metavar="DIR", help="folder, new or of an earlier run")
    where.add_argument("--json", action="store_true", help="print what was written as JSON")


def _run(options: argparse.Namespace) -> int:
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # as of the verb inpainting
    with importing("models", "style transfer"):
        import torch  # noqa: F401 - said before anything is read

    for flag, value, least in (("--samples", options.samples, 1), ("--seed", options.seed, 0)):
        if value < least:
            raise InvalidInputError(f"{flag} must be {least} or more, got {value}")
    quieten()
    models = _models(options)
    out = Path(options.out)
    if out.exists() and not out.is_dir():
        raise InvalidInputError(f"{out} is a file; name a folder with --out")
    failures: dict[str, str] = {}  # in the order in which they came
    done: list[dict[str, Any]] = []
    for piece in _read(options, failures):
        for model in models:
            try:
                done.append(_transfer(_job(piece, model, options), out, options))
            except MusicEvalsError as error:
                failures[f"{piece.source} ({model.style})"] = in_options(str(error), options.verb)
    list_failures([*failures.items()], "none of which is written")
    lines = [f"{one['piece']} in the style {one['style']}: {', '.join(one['files'])}" for one in done]
    text = json.dumps(plain(done), indent=1, allow_nan=False) if options.json else "\n".join(lines)
    if done:
        with to_stdout():
            print(text)
    return EXIT_FAILURES if failures else 0


# --- models


def _models(options: argparse.Namespace) -> list[Any]:
    """Return the models of the styles that are asked for, or the one that a folder or id names."""
    from music_evals.benchmark.sources import fetch_model, model_type_of
    from music_evals.protocols import STYLE_TRANSFERS, load_plugin
    from music_evals.windows import MODELS, find_window

    place, local = find_window(options.model, MODELS, "model", STYLE_TRANSFERS)
    root = Path(place) if local else fetch_model(place)[1]
    plugins = {
        weights.parent: load_plugin(STYLE_TRANSFERS, model_type_of(weights.parent, STYLE_TRANSFERS), "model type")
        for weights in sorted(root.rglob("model.safetensors"))
    }
    if not plugins:
        raise NoDataError(f"{options.model} has no weights; train it: music-evals train {options.model}/train.yaml")
    found = [plugin.from_pretrained(str(folder)).eval() for folder, plugin in plugins.items()]
    by_style = {model.style: model for model in found}
    wanted = list(dict.fromkeys(options.style)) or ([found[0].style] if len(found) == 1 else [])
    if not wanted:
        raise InvalidInputError(
            f"{options.model} knows the styles {', '.join(sorted(by_style))}: name one with --style"
        )
    for style in wanted:
        if style not in by_style:
            raise UnknownNameError("style", style, by_style, f"{options.model} has weights for these alone")
    changes = {"sweeps": options.sweeps, "temperature": options.temperature, "mode": options.mode}
    for model in found:
        model.sampling = dataclasses.replace(
            model.sampling, **{name: value for name, value in changes.items() if value is not None}
        )
        model.to(options.device or _device())
    return [by_style[style] for style in wanted]


def _device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


# --- pieces


def _read(options: argparse.Namespace, failures: dict[str, str]) -> Iterator[_Piece]:
    """Yield the pieces that can be read, and keep why others cannot."""
    from music_evals.symbolic.files import read_score

    names: set[str] = set()
    for place in options.pieces:
        try:
            if Path(place).is_file():
                content = Path(place).read_bytes()
                found = [_Piece(Path(place).stem, place, _sha256(content), read_score(place), None)]
            else:
                found = list(_rows(place, options))
        except (MusicEvalsError, OSError) as error:
            failures[place] = str(error)
            continue
        for piece in found:
            if piece.name in names:
                failures[piece.source] = f"another piece is called {piece.name} too; give them other names"
                continue
            names.add(piece.name)
            yield piece


def _rows(place: str, options: argparse.Namespace) -> Iterator[_Piece]:
    """Yield the pieces of a data set."""
    from music_evals.datasets.manifest import load_split
    from music_evals.symbolic.piece_rows import score_of_row

    if Path(place).suffix and not Path(place).exists():
        raise UnreadableFileError(f"{place} is missing; name a MIDI, MusicXML or ABC file, or a data set")
    for row in load_split(place, options.config or Path(place).name, options.split).to_list():
        content = json.dumps(row, sort_keys=True).encode()
        yield _Piece(row["name"], f"{place}: {row['name']}", _sha256(content), score_of_row(row), row["melody"] or None)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


# --- transfers


def _job(piece: _Piece, model: Any, options: argparse.Namespace) -> _Job:
    """Return a piece prepared for a model, with all that decides what comes out."""
    from music_evals.pipelines.rearrangement import prepare

    prepared = prepare(
        piece.score,
        melody=options.melody or piece.melody,
        steps_per_quarter=model.steps_per_quarter,
        any_meter=options.any_meter,
    )
    about = {
        "piece": piece.name,
        "sha256": piece.sha256,
        "melody": prepared.voice,
        "style": model.style,
        "model": model.name,
        "weights": _weights(model),
        "sampling": dataclasses.asdict(model.sampling),
        "seeds": list(range(options.seed, options.seed + options.samples)),
    }
    return _Job(piece, prepared, model, about)


def _weights(model: Any) -> str:
    """Return a digest of a model's weights."""
    digest = hashlib.sha256()
    for name, value in sorted(model.state_dict().items()):
        digest.update(name.encode() + value.detach().cpu().numpy().tobytes())
    return digest.hexdigest()


def _transfer(job: _Job, out: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Write all samples of a job; what an earlier run with the same settings has written stays."""
    from music_evals.benchmark.style_transfer.pictures import score_rolls
    from music_evals.benchmark.versions import package_versions
    from music_evals.files import write_atomically
    from music_evals.pipelines.rearrangement import rearranged_score
    from music_evals.symbolic.midi import write_midi

    stem = f"{job.piece.name}_{job.model.style}"
    receipt = out / f"{stem}.json"
    earlier = _earlier(receipt, job.about)
    if earlier:
        return earlier
    files = {f"{job.piece.name}_original.mid": write_midi(job.prepared.score)}
    drawn = [("original", job.prepared.score)]
    states = []
    for number, seed in enumerate(job.about["seeds"], start=1):
        name = f"{stem}_{number}"
        states.append(out / f".{name}-{_digest(job.about)}.npz")
        cells = None
        with Bar("sweep") as bar:
            for state in _states(job, seed, states[-1]):
                bar(state.sweeps_done, job.model.sampling.sweeps, f"{job.piece.name}, {job.model.style} {number}")
                cells = state.cells
                if options.keep_sweeps:
                    after = rearranged_score(job.prepared, job.model.finished(cells, job.prepared.arrangement))
                    write_atomically(out / f"{name}_sweep_{state.sweeps_done:02d}.mid", write_midi(after), parents=True)
        assert cells is not None  # there is a sweep at least, or its state
        score = rearranged_score(job.prepared, job.model.finished(cells, job.prepared.arrangement))
        files[f"{name}.mid"] = write_midi(score)
        drawn.append((f"{job.model.style} {number}", score))
    files[f"{stem}.svg"] = score_rolls(f"{job.piece.name}, {job.model.name}", drawn).encode()
    for name, content in files.items():
        write_atomically(out / name, content, parents=True)
    for remark in job.prepared.remarks:
        say(f"note: {job.piece.name}: {remark}")
    done = {
        **job.about,
        "source": job.piece.source,
        "remarks": list(job.prepared.remarks),
        "files": {name: _sha256(content) for name, content in files.items()},
        "versions": package_versions(),
    }
    write_atomically(receipt, (json.dumps(plain(done), indent=1, allow_nan=False) + "\n").encode())
    for path in states:
        path.unlink(missing_ok=True)
    return done


def _earlier(receipt: Path, about: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what an earlier run has written, if it was the same one and its files are all there."""
    if not receipt.exists():
        return None
    try:
        done: dict[str, Any] = json.loads(receipt.read_text(encoding="utf-8"))
        same = {name: done.get(name) for name in about} == plain(dict(about))
        files = dict(done["files"])
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise InvalidInputError(f"{receipt} is none of ours ({error}); name another folder") from error
    if not same:
        raise InvalidInputError(
            f"{receipt} tells of a transfer of another piece or with other settings; name another folder, or move it"
        )
    whole = all(
        (receipt.parent / name).is_file() and _sha256((receipt.parent / name).read_bytes()) == sha256
        for name, sha256 in files.items()
    )
    return done if whole else None


def _digest(about: Mapping[str, Any]) -> str:
    """Return what tells settings apart in the name of a file."""
    return _sha256(json.dumps(plain(dict(about)), sort_keys=True).encode())[:12]


def _states(job: _Job, seed: int, path: Path) -> Iterator[GibbsState]:
    """Yield the state after each sweep, written into a file; first the one that an earlier run has left."""
    from music_evals.models.gibbs import GibbsState

    start = GibbsState.load(path) if path.exists() else None
    if start is not None:
        yield start
    for sweep in job.model.sweeps(job.prepared.arrangement, seed=seed, start=start):
        path.parent.mkdir(parents=True, exist_ok=True)
        sweep.state.save(path)
        yield sweep.state
