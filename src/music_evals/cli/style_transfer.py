"""The verb ``style-transfer``."""

from __future__ import annotations

import argparse
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from music_evals import __version__
from music_evals.benchmark.formats import plain
from music_evals.cli.console import Bar, earlier_run, list_failures, run_scores, say, sha256_of, to_stdout
from music_evals.cli.options import add_number, add_options, add_output_options, add_verb, in_options
from music_evals.errors import InvalidInputError, MusicEvalsError, UnknownNameError, UnreadableFileError

if TYPE_CHECKING:
    from music_evals.annotations import Score
    from music_evals.pipelines.style_transfer.rearrangement import Prepared, Written
    from music_evals.protocols import StyleTransfer

_HELP = """\
Rewrite the accompaniment of your own pieces in a style: MIDI, MusicXML (.musicxml, .xml, .mxl) or ABC.

The melody stays as it is, with tempo, meter and key; repeats are played out, drums left out. Writes into --out a folder
for each file, named like it: original.mid, melody and accompaniment as they were; sample_1.mid ..., with tracks for
melody and new accompaniment; samples.svg, a picture; and transfer.json.

The melody is the voice whose name says so (melody, soprano, vocals, lead ...), or the only voice, or that of --melody.
A run that was stopped goes on after its last sweep when the same command is given again.

With --dataset models are evaluated, with trivial baselines: on which cells of held-out pieces sound, or by their
transfers.
"""

_EXAMPLES = """\
examples:
  music-evals style-transfer my_song.mid --style bach --out rearranged
  music-evals style-transfer piano.musicxml --melody "Right hand" --style bach --samples 3 --out rearranged
  music-evals style-transfer a.mid b.mid --model models/bmst --melody skyline --sweeps 5 --out rearranged
  music-evals style-transfer --dataset jsb_chorales --config style --model bmst --limit 3 --out cells
"""

_DEFAULT_TYPE: Final = "bmst"  # the model that --style takes
_MANIFEST: Final = "transfer.json"
_OURS: Final = re.compile(r"original\.mid|sample_\d+(_sweep_\d+)?\.mid|samples\.svg")
_STATE: Final = re.compile(r"\.sample_\d+\.[0-9a-f]{16}\.sweep_\d+\.npz")


class _Piece(NamedTuple):
    """A piece to rearrange, or why it cannot be read."""

    name: str
    source: str  # what a manifest says it is
    sha256: str
    score: Score | MusicEvalsError


class _Model(NamedTuple):
    plugin: StyleTransfer
    content_hash: str
    source: str
    revision: str | None


def add(verbs: Any) -> None:
    """Add the verb ``style-transfer``."""
    words = "rewrite the accompaniment of your own pieces in a style, or evaluate models of styles"
    add_verb(verbs, "style-transfer", _run, words, _HELP, _EXAMPLES, options=_add_options)


def _add_options(verb: Any) -> None:
    from music_evals.benchmark.tasks.style_transfer.task import Settings

    inputs = verb.add_argument_group("what is rewritten")
    inputs.add_argument("files", nargs="*", metavar="FILE", help="a .mid, .midi, .musicxml, .xml, .mxl or .abc file")
    inputs.add_argument(
        "--melody", metavar="VOICE", help="name or number of its voice, or skyline: the highest notes of all voices"
    )
    inputs.add_argument(
        "--any-meter", action="store_true", help="take pieces in metres that models hardly know, such as 6/8"
    )
    groups = add_options(verb, Settings)
    how, where = groups["how"], groups["output"]
    how.add_argument("--sweeps", type=int, metavar="N", help="times that each step is rewritten (default: the model's)")
    add_number(how, "--samples", "accompaniments for each file", default=1)
    add_output_options(where, published="")
    where.add_argument("--keep-sweeps", action="store_true", help="write a file after each sweep too")


def _run(options: argparse.Namespace) -> int:
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # small networks wait longer for threads than they compute
    if (options.dataset is None) == (not options.files):
        raise InvalidInputError("name files to rewrite, or evaluate models on a --dataset; one of the two")
    if options.files:
        return _run_files(options)
    return run_scores(options, "style-transfer", "piece")


def _run_files(options: argparse.Namespace) -> int:
    for flag, value, least in (("--seed", options.seed, 0), ("--samples", options.samples, 1)):
        if value < least:
            raise InvalidInputError(f"{flag} must be {least} or more, got {value}")
    if len([*options.styles, *options.models]) != 1:
        raise InvalidInputError("name one --style or one --model")
    _check_names(options.files)
    model = _load(_place(options))
    done: list[dict[str, Any]] = []
    failures: list[tuple[str, str]] = []
    for piece in _pieces(options):
        try:
            if isinstance(piece.score, MusicEvalsError):
                raise piece.score
            done.append(_rewrite(piece, piece.score, model, options))
        except MusicEvalsError as error:
            failures.append((piece.source, in_options(str(error), options.verb)))
    if options.json:
        failed = [{"file": name, "error": reason} for name, reason in failures]
        text = json.dumps(plain({"done": done, "failed": failed}), indent=1, allow_nan=False)
    else:
        text = "\n".join(f"{entry['folder']}: {', '.join([*entry['files'], _MANIFEST])}" for entry in done)
    if text:
        with to_stdout():
            print(text)
    return list_failures(failures, "in the output of --json")


def _pieces(options: argparse.Namespace) -> Iterator[_Piece]:
    """Yield what is to be rewritten."""
    from music_evals.symbolic.files import read_many, read_score

    for path, score in read_many(options.files, reader=read_score):
        content = path.read_bytes() if path.is_file() else b""
        yield _Piece(path.stem, str(path), sha256_of(content), score)


# --- the model


def _check_names(files: Sequence[str]) -> None:
    """Raise where two files would be written to one folder."""
    sources: dict[str, str] = {}
    for file in files:
        stem = Path(file).stem
        if stem in sources:
            raise InvalidInputError(
                f"{sources[stem]} and {file} would both be written to the folder {stem}; give them different names, or "
                "one of them with another --out"
            )
        sources[stem] = file


def _place(options: argparse.Namespace) -> str:
    """Return the name, folder or Hub id of the requested model."""
    from music_evals.repositories import MODELS, folders

    if options.models:
        return str(options.models[0])
    style = options.styles[0]
    home = folders(MODELS).get(_DEFAULT_TYPE)
    trained = [] if home is None else sorted(path.parent for path in home.rglob("model.safetensors"))
    styles = {str(json.loads((folder / "config.json").read_bytes()).get("style")): folder for folder in trained}
    if style not in styles:
        advice = f"a style needs weights below models/{_DEFAULT_TYPE}; train them, or name a model with --model"
        raise UnknownNameError("style", style, styles, advice)
    return str(styles[style])


def _load(name: str) -> _Model:
    from music_evals.benchmark.inputs import find_model
    from music_evals.protocols import STYLE_TRANSFERS

    model_folder = find_model(name, STYLE_TRANSFERS)
    plugin = model_folder.plugin(STYLE_TRANSFERS).from_pretrained(str(model_folder.folder))
    return _Model(plugin, model_folder.content_hash({}), model_folder.source, model_folder.revision)


# --- one piece


def _rewrite(piece: _Piece, score: Score, model: _Model, options: argparse.Namespace) -> dict[str, Any]:
    """Rewrite a piece, unless an earlier run has done so, and return its manifest."""
    from music_evals.files import write_atomically
    from music_evals.pipelines.style_transfer.rearrangement import prepare

    folder = Path(options.out) / piece.name
    settings = {
        "sha256": piece.sha256,
        "melody": options.melody,
        "model": model.content_hash,
        "sweeps": options.sweeps,
        "seed": options.seed,
        "samples": options.samples,
        "keep_sweeps": options.keep_sweeps,
    }
    key = _key(settings)
    about_run: dict[str, Any] = {
        "manifest": _MANIFEST,
        "pattern": _OURS,
        "run": "a style transfer",
        "done": "rewritten",
    }
    earlier = earlier_run(folder, Path(piece.source), **about_run)
    if earlier.get("key") == key and all((folder / name).is_file() for name in earlier["files"]):
        say(f"{folder}: is there already, by the same settings")
        return {"folder": str(folder), **earlier}
    prepared = prepare(
        score, options.melody, steps_per_quarter=model.plugin.steps_per_quarter, any_meter=options.any_meter
    )
    for remark in prepared.remarks:
        say(f"note: {piece.source}: {remark}")
    samples = []
    for number, seed in enumerate(range(options.seed, options.seed + options.samples), start=1):
        own = {name: settings[name] for name in ("sha256", "melody", "model", "sweeps")} | {"seed": seed}
        place = folder / f".sample_{number}.{_key(own)[:16]}"
        samples.append(_sample(place, seed, prepared, model.plugin, options))
    files = _files(piece, prepared, samples)
    about = {
        "folder": str(folder),
        "file": piece.source,
        **_about(model, prepared, samples, options),
        "key": key,
        "asked": settings,
        "files": {name: sha256_of(content) for name, content in files.items()},
    }
    for name in earlier.get("files", ()):  # of other hashes than the list is going to have
        (folder / name).unlink(missing_ok=True)
    # the list first: files that it names are known as ours, should the run be killed between two of them
    manifest = {name: value for name, value in about.items() if name != "folder"}
    text = json.dumps(plain(manifest), indent=1, allow_nan=False) + "\n"
    write_atomically(folder / _MANIFEST, text.encode(), parents=True)
    for name, content in files.items():
        write_atomically(folder / name, content)
    for path in folder.iterdir():
        if _STATE.fullmatch(path.name):
            path.unlink(missing_ok=True)
    return about


def _sample(place: Path, seed: int, prepared: Prepared, plugin: Any, options: argparse.Namespace) -> list[Written]:
    """Return what a sample is after its last sweep, or after each of those that are kept; go on where one stopped."""
    # `place` is how the names of its states begin, which tell runs by other settings apart
    from music_evals.pipelines.style_transfer.rearrangement import rearrange

    folder, stem = place.parent, place.name
    states = sorted(folder.glob(f"{stem}.sweep_*.npz"))
    start = None  # the last state of a run that was stopped; a damaged one is left out
    for path in reversed(states):
        try:
            start = plugin.read_state(path)
            break
        except UnreadableFileError as error:
            say(f"note: {error}")
            path.unlink(missing_ok=True)
    by_sweep: dict[int, Written] = {}
    with Bar("sweep") as bar:
        for written in rearrange(prepared, plugin, seed=seed, n_sweeps=options.sweeps, start=start):
            bar(written.done, written.total, f"{folder.name}, seed {seed}")
            by_sweep = {**(by_sweep if options.keep_sweeps else {}), written.done: written}
            if written.state is not None and written.state is not start:
                folder.mkdir(parents=True, exist_ok=True)
                path = folder / f"{stem}.sweep_{written.done:04}.npz"
                written.state.save(path)
                for old in () if options.keep_sweeps else states:
                    old.unlink(missing_ok=True)
                states = [*states, path] if options.keep_sweeps else [path]
    last = by_sweep[max(by_sweep)]
    if options.keep_sweeps and start is not None:  # sweeps before the one that was gone on from
        for path in states:
            state = plugin.read_state(path)
            if state.sweeps_done not in by_sweep:
                again = rearrange(prepared, plugin, seed=seed, n_sweeps=options.sweeps, start=state)
                by_sweep[state.sweeps_done] = next(again)
    return [by_sweep[done] for done in sorted(by_sweep)] if options.keep_sweeps else [last]


def _files(piece: _Piece, prepared: Prepared, samples: Sequence[Sequence[Written]]) -> dict[str, bytes]:
    """Return what is written, by name."""
    from music_evals.symbolic.midi import write_midi
    from music_evals.ui.widgets.arrangement_picture import arrangements_svg

    scores = [("original", prepared.score)]
    files = {"original.mid": write_midi(prepared.score)}
    for number, sweeps in enumerate(samples, start=1):
        for written in sweeps[:-1]:
            files[f"sample_{number}_sweep_{written.done}.mid"] = write_midi(written.score())
        score = sweeps[-1].score()
        scores.append((f"sample {number}", score))
        files[f"sample_{number}.mid"] = write_midi(score)
    files["samples.svg"] = arrangements_svg(piece.name, scores).encode()
    return files


def _about(
    model: _Model, prepared: Prepared, samples: Sequence[Sequence[Written]], options: argparse.Namespace
) -> dict[str, Any]:
    """Return what is known of a run, as plain values."""
    from music_evals.numerics import package_versions

    plugin = model.plugin
    who = {"name": plugin.name, "style": plugin.style, "source": model.source, "revision": model.revision}
    return {
        "melody": prepared.melody,
        "model": {**who, "content_hash": model.content_hash, "steps_per_quarter": plugin.steps_per_quarter},
        "sweeps": samples[0][-1].total,
        "samples": [
            {"file": f"sample_{number}.mid", "seed": options.seed + number - 1} for number in range(1, len(samples) + 1)
        ],
        "remarks": list(prepared.remarks),
        "versions": package_versions(),
    }


def _key(values: Mapping[str, Any]) -> str:
    """Return a hash of the settings of a run and the version of the package."""
    return sha256_of(json.dumps({**values, "version": __version__}, sort_keys=True).encode())
