"""The Space that rewrites an accompaniment in a style: each sweep is seen, heard beside the original, and kept as MIDI.

What a button does is a plain function here, which needs no browser; `build_page` wires them up.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from music_evals.annotations import Score
from music_evals.audio.rendering import SAMPLE_RATE, render_additive
from music_evals.errors import (
    FileTooLargeError,
    InvalidInputError,
    NoDataError,
    PolyphonyError,
    UnknownNameError,
    UnreadableFileError,
    hub_errors,
)
from music_evals.files import parse_json
from music_evals.pipelines.style_transfer.rearrangement import SKYLINE, Prepared, pick_melody, prepare, rearrange
from music_evals.protocols import STYLE_TRANSFERS, StyleTransfer, SweptTransfer, load_plugin
from music_evals.protocols.settings import check_type
from music_evals.repositories import DATASETS, EXAMPLES, MODELS, shipped
from music_evals.symbolic.files import read_score
from music_evals.symbolic.midi import write_midi
from music_evals.symbolic.piece_rows import score_of_row
from music_evals.ui import frame
from music_evals.ui.gpu import moved_to_card, on_gpu
from music_evals.ui.places import hub_owner
from music_evals.ui.uploads import SCORE_TYPES, load_score
from music_evals.ui.widgets.ab_player import Track, add_player, player
from music_evals.ui.widgets.arrangement_picture import arrangements_svg

if TYPE_CHECKING:
    import gradio as gr

CONFIG, WEIGHTS = "config.json", "model.safetensors"


class Model(NamedTuple):
    """A model with weights."""

    type: str  # of `protocols.STYLE_TRANSFERS`
    place: str  # a folder, or a repository on the Hub
    variant: str | None  # folder in the repository, empty for its root; None where the place is a folder


@functools.lru_cache(maxsize=4)
def _load(model: Model) -> StyleTransfer:
    folder = Path(model.place)
    if model.variant is not None:
        import huggingface_hub

        files = [(f"{model.variant}/{name}" if model.variant else name) for name in (CONFIG, WEIGHTS)]
        folder = Path(huggingface_hub.snapshot_download(model.place, allow_patterns=files)) / model.variant
    loaded: StyleTransfer = load_plugin(STYLE_TRANSFERS, model.type, "model type").from_pretrained(str(folder))
    return loaded


def find_models(root: str | os.PathLike[str]) -> dict[str, Model]:
    """Return name, such as ``bmst:bach``, -> model for every style transfer whose weights are there."""
    models = dict(_in_folders(Path(root, MODELS, kind) for kind in STYLE_TRANSFERS))
    if owner := hub_owner(here=bool(models)):
        models = {}
        for kind in STYLE_TRANSFERS:
            with contextlib.suppress(*hub_errors()):  # the next visit asks again
                models |= _on_hub(f"{owner}/{kind}")
    return models or dict(_in_folders(filter(None, (shipped(f"{MODELS}/{kind}") for kind in STYLE_TRANSFERS))))


def _in_folders(folders: Iterable[Path]) -> Iterator[tuple[str, Model]]:
    for folder in folders:
        for weights in sorted(folder.glob(f"**/{WEIGHTS}")):
            yield _named(weights.parent / CONFIG, str(weights.parent), None)


@functools.cache
def _on_hub(repository: str) -> tuple[tuple[str, Model], ...]:
    """Return the models of a repository: one at its root, and one in each folder with weights."""
    import huggingface_hub

    files = huggingface_hub.list_repo_files(repository)
    variants = sorted(path.removesuffix(WEIGHTS).rstrip("/") for path in files if Path(path).name == WEIGHTS)
    return tuple(
        _named(
            Path(huggingface_hub.hf_hub_download(repository, f"{variant}/{CONFIG}" if variant else CONFIG)),
            repository,
            variant,
        )
        for variant in variants
    )


def _named(config: Path, place: str, variant: str | None) -> tuple[str, Model]:
    try:
        settings = parse_json(config.read_bytes(), str(config))
        kind, style = settings["model_type"], settings["style"]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UnreadableFileError(f"{config} is no configuration of a style transfer: {error!r:.80}") from error
    return f"{kind}:{style}", Model(kind, place, variant)


TITLE: Final = "Another accompaniment in a style"
INTRO: Final = """\
A model keeps the melody of a piece and rewrites what goes with it, in the style that it has learnt, sweep by sweep.
Watch it in piano rolls, and hear each sweep against the original."""
EFFORT: Final = """\
**How long it takes.** The time left is the mean of the sweeps so far, times those that are left. **How useful it is**
this page does not measure: a study would divide the time, key presses and clicks that people need to edit one model's
output until they accept it by those for another model's output of the same piece, the effort ratio; below 1, the first
is less work."""
DATASET: Final = "style_transfer_pieces"
MAX_SEC: Final = 360.0
MAX_SWEEPS: Final = 50
_EXAMPLES: Final = f"{EXAMPLES}/midi"
_PASSES: Final = 4  # of a network over the pitches of a step, until they change no more
_SWEEP_SEC: Final = {"full_sequence": 0.4, "style_lstm": 2.0, "bmst": 4.0}  # of a short piece, on one core
_GOING: Final = " ..."  # ends the status while there is more to come


def find_pieces(root: str | os.PathLike[str]) -> dict[str, Callable[[], Score]]:
    """Return name -> reader of every piece to pick: those of the data set, and our examples."""
    pieces: dict[str, Callable[[], Score]] = {}
    for path in sorted(_folder(root, f"{DATASETS}/{DATASET}/data").glob("**/*.parquet")):
        import pyarrow.parquet

        for number, name in enumerate(pyarrow.parquet.read_table(path, columns=["name"])["name"].to_pylist()):
            pieces.setdefault(str(name), functools.partial(_row, path, number))
    for path in sorted(_folder(root, _EXAMPLES).glob("*.mid")):
        pieces[path.stem] = functools.partial(read_score, path)
    return pieces


def _folder(root: str | os.PathLike[str], path: str) -> Path:
    """Return a folder of the repository; if missing at `root`, the one that came with the package."""
    here = Path(root, path)
    return here if here.is_dir() else shipped(path) or here


def _row(path: Path, number: int) -> Score:
    import pyarrow.parquet

    return score_of_row(pyarrow.parquet.read_table(path).slice(number, 1).to_pylist()[0])


def melody_choices(root: str | os.PathLike[str], path: str | None, piece: str) -> tuple[list[str], str, str]:
    """Return what may be the melody of a piece, what is taken ("" where it has to be chosen), and a remark."""
    score = _open(root, path, piece)
    names = [
        name if name and score.voices.count(name) == 1 else f"{number}"
        for number, name in enumerate(score.voices, start=1)
    ]
    try:
        index = pick_melody(score)
    except PolyphonyError:
        return [*names, SKYLINE], "", f"Which voice is the melody? {SKYLINE} takes the highest notes of all."
    assert index is not None  # the highest notes are only taken on request
    return [*names, SKYLINE], names[index], f"{len(score.voices)} voices, {len(score.notes)} notes."


def _open(root: str | os.PathLike[str], path: str | None, piece: str | None) -> Score:
    if path:
        return load_score(path)
    pieces = find_pieces(root)
    if not piece:
        raise NoDataError("upload a file, or pick a piece")
    if piece not in pieces:
        raise UnknownNameError("piece", piece, pieces)
    return pieces[piece]()


@on_gpu(lambda _model, prepared, *_: _PASSES * len(prepared.arrangement), call_sec=0.005)
def _one_sweep(
    chosen: Model, prepared: Prepared, seed: int, n_sweeps: int | None, state: Any
) -> tuple[Any, Score, int]:
    """Return what the next sweep leaves: its state, the score, and sweeps in all. A call of the card for each."""
    model: Any = _load(chosen)
    with moved_to_card(model):
        going = rearrange(prepared, model, seed=seed, n_sweeps=n_sweeps, start=state)
        if state is not None:
            next(going)  # what the state itself holds
        written = next(going)
        return written.state, written.score(), written.total


def rewrite(  # noqa: PLR0917  (a page gives its fields in their order)
    root: str | os.PathLike[str],
    path: str | None,
    piece: str | None,
    melody: str | None,
    model: str,
    sweeps: float,
    seed: float,
    *,
    progress: frame.Progress = frame.no_progress,
) -> Iterator[tuple[Any, ...]]:
    """Rewrite an accompaniment; each value is what there is after a sweep: status, picture, player, MIDI file.

    Args:
        path: MIDI, MusicXML or ABC, at most 1 MiB; nothing to take a listed piece.
        piece: The name of a listed piece.
        melody: Name or number of a voice, "skyline" for the highest notes, or nothing to go by the names.
        model: Type and style, such as bmst:bach.
        sweeps: How often each step is rewritten.
        seed: A whole number from 0.
    """
    models = find_models(root)
    if not models:
        raise NoDataError(
            "no model with weights is here: music-evals train models/bmst/train.yaml makes one, and the variable "
            "MUSIC_EVALS_ORG names an owner of some on the Hub; then reload"
        )
    if model not in models:
        raise UnknownNameError("model", str(model), models)
    check_type("sweeps", sweeps, float)
    check_type("seed", seed or 0, float)
    wanted, start_seed = int(sweeps), int(seed or 0)
    if not 1 <= wanted <= MAX_SWEEPS:
        raise InvalidInputError(f"sweeps must lie in 1..{MAX_SWEEPS}, got {wanted}")
    progress(0.0, "Reading the piece")
    score = _open(root, path, piece)
    seconds = float(score.seconds(score.end_tick))
    if seconds > MAX_SEC:
        raise FileTooLargeError("the piece is too long", name="the piece", unit="seconds", limit=MAX_SEC, size=seconds)
    plugin = _load(models[model])  # before a card is taken
    prepared = prepare(score, melody or None, steps_per_quarter=plugin.steps_per_quarter)
    title = Path(path).stem if path else str(piece)
    stem = re.sub(r"[^\w.-]+", "_", title)
    original = Track("Original", render_additive(prepared.score), SAMPLE_RATE, "the original")
    notes = "".join(f"\n\n{escape(remark)}." for remark in prepared.remarks)
    n_sweeps = wanted if isinstance(plugin, SweptTransfer) else None
    folder, state, done, total, begun = frame.temporary_folder(), None, 0, wanted, time.monotonic()
    while done < total:
        progress(done / total, f"Sweep {done + 1} of {total}")
        state, written, total = _one_sweep(models[model], prepared, start_seed, n_sweeps, state)
        done += 1
        each = (time.monotonic() - begun) / done
        left = f", about {each * (total - done):.0f} s left at {each:.1f} s a sweep{_GOING}" if done < total else "."
        midi = folder / f"{stem}_sweep_{done}.mid"
        midi.write_bytes(write_midi(written))
        name = f"Sweep {done}"
        picture = arrangements_svg(title, [("Original", prepared.score), (name, written)])
        sound = player(original, Track(name, render_additive(written), SAMPLE_RATE, "the sweep"))
        yield (
            f"Sweep {done} of {total} by {model}{left}{notes}",
            f'<div style="overflow-x: auto" tabindex="0">{picture}</div>',
            sound,
            str(midi),
        )


def _cancelled(status: str) -> str:
    """Return the status of a run that was stopped; one that was over stays over."""
    first, gap, rest = status.partition("\n\n")
    return f"{first.partition(',')[0]}. Cancelled.{gap}{rest}" if first.endswith(_GOING) else status


def build_page(root: str | os.PathLike[str]) -> gr.Blocks:
    """Build the Space."""
    import gradio as gr

    os.environ.setdefault("OMP_NUM_THREADS", "1")  # small networks wait longer for threads than they compute
    pieces = list(find_pieces(root))
    with frame.space(TITLE, f"{INTRO} {frame.privacy()}") as page:
        gr.Markdown("## 1. The piece")
        with gr.Row():
            file = gr.File(label="MIDI, MusicXML or ABC", file_types=list(SCORE_TYPES), elem_id="upload")
            # programs may give "" for none
            piece = gr.Dropdown(pieces, value=None, label="Or pick a piece", allow_custom_value=True, elem_id="piece")
        melody = gr.Dropdown(
            [],
            value=None,
            label="Melody",
            info="Stays as it is.",
            allow_custom_value=True,
            interactive=False,  # until there is a piece
            elem_id="melody",
        )
        remark = gr.Markdown("", elem_id="remark")
        gr.Markdown("## 2. The style")
        with gr.Row():
            model = gr.Dropdown(**_menu(root), label="Model and style", elem_id="model")
            sweeps = gr.Slider(1, MAX_SWEEPS, 15, step=1, label="Sweeps", elem_id="sweeps")
            seed = gr.Number(0, precision=0, minimum=0, label="Seed", elem_id="seed")
        with gr.Row():
            button = gr.Button("Rewrite", variant="primary", elem_id="rewrite")
            cancel = gr.Button("Cancel", elem_id="cancel")
        gr.Markdown(EFFORT)
        gr.Markdown("## 3. Before and after")
        status = gr.Markdown("Nothing is rewritten yet.", elem_id="status")
        picture = gr.HTML(elem_id="picture")
        sound = add_player("Rewrite a piece to hear and see it beside the original here.")
        midi = frame.download_button("MIDI of this sweep", "download_midi")
        outputs = [status, picture, sound, midi]
        # listed again at each visit: the Hub may have been out of reach when the page was built
        page.load(functools.partial(_menu_now, root), model, model, api_visibility="private")
        choose = functools.partial(_choose_on_page, root)
        frame.follow([file.upload, piece.input], choose, [file, piece], [melody, remark])
        work = functools.partial(rewrite, root)
        work.__doc__ = rewrite.__doc__  # tells programs what the inputs are
        inputs = [file, piece, melody, model, sweeps, seed]
        frame.on_click(
            button, work, inputs, outputs, name="rewrite", cancel=cancel, cancelled=(_cancelled, status),
            show_progress_on=[status],
            api_description="Rewrite the accompaniment of a piece in a style, sweep by sweep.",
        )  # fmt: skip
    return page


def _menu(root: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what the menu of models holds."""
    names = sorted(find_models(root), key=lambda name: _SWEEP_SEC.get(name.partition(":")[0], math.inf))
    info = "A type of model and the style that it has learnt, the fastest first."
    return {
        "choices": names,
        "value": next(iter(names), None),
        "info": info if names else "No model with weights is here.",
    }


def _menu_now(root: str | os.PathLike[str], chosen: str | None) -> Any:
    """Return the menu of this moment; a model that is still there stays chosen, whatever was chosen meanwhile."""
    import gradio as gr

    menu = _menu(root)
    if chosen in menu["choices"]:
        del menu["value"]
    return gr.update(**menu)


def _choose_on_page(root: str | os.PathLike[str], path: str | None, piece: str | None) -> tuple[Any, str]:
    import gradio as gr

    if not path and not piece:
        return gr.update(choices=[], value=None, interactive=False), ""
    names, taken, remark = melody_choices(root, path, piece or "")
    return gr.update(choices=names, value=taken or None, interactive=True), escape(remark)
