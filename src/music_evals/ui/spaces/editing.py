"""The page that lets an editing system edit a recording, and shows at once what the edit preserved.

`edit_upload` does the work as a generator of stages; the comparison is that of the preservation page.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import io
import json
import math
import os
import shlex
import tempfile
import zipfile
from collections.abc import Generator, Iterator, Mapping
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from music_evals.annotations import EditInstruction, EditorInfo, EditRequest, EditResult, targets_text
from music_evals.annotations.target_words import targets_between, targets_in_words
from music_evals.audio.io import encode_flac, load_audio, load_channels
from music_evals.benchmark.tasks.edits.work import check_editor, make_editor, read_parameters
from music_evals.errors import InvalidInputError, UnknownNameError
from music_evals.metrics.catalogue import SHOWN_AUXILIARY
from music_evals.options import label_of
from music_evals.pipelines.edit_conditions import extract_conditions
from music_evals.protocols import EDITORS, EditingSystem, editor_names, load_editor
from music_evals.protocols.settings import check_type
from music_evals.ui import frame
from music_evals.ui.gpu import moved_to_card, on_gpu
from music_evals.ui.spaces import preservation
from music_evals.ui.spaces.preservation_examples import write_examples
from music_evals.ui.uploads import MAX_RECORDING_BYTES, RECORDING_TYPES, trusted_sources

if TYPE_CHECKING:
    import gradio as gr

VARIABLE: Final = "MUSIC_EVALS_EDITORS"
_NOT_PARAMETERS: Final = {"self", "model", "weights"}


class Offer(NamedTuple):
    """A system that the page can run."""

    name: str
    place: str = ""  # folder or id of its weights; empty for a system without
    revision: str = ""  # commit of an id

    @property
    def defaults(self) -> dict[str, Any]:
        """Its parameters with their values."""
        parameters = inspect.signature(load_editor(self.name)).parameters
        return {name: parameter.default for name, parameter in parameters.items() if name not in _NOT_PARAMETERS}

    @property
    def licence(self) -> str:
        """Licence of its weights, which a visitor accepts; empty without weights."""
        return str(load_editor(self.name).licence) if self.place else ""

    @property
    def weights(self) -> dict[str, str]:
        """What its weights are loaded from; empty for a system without."""
        named = {"source": self.place, "revision": self.revision}
        return {name: value for name, value in named.items() if value}

    def read(self, parameters: str) -> dict[str, Any]:
        """Return parameters as they are typed, ``NAME=VALUE`` with commas or lines between, once they are checked."""
        words = [word.strip() for line in parameters.splitlines() for word in line.split(",") if word.strip()]
        values = read_parameters(words)
        check_editor(self.name, values, self.weights)
        return values

    def make(self, parameters: str) -> EditingSystem:
        """Return the system with parameters as they are typed."""
        return _made(self, json.dumps(self.read(parameters), sort_keys=True))


@functools.lru_cache(maxsize=2)
def _made(offer: Offer, parameters: str) -> EditingSystem:
    return make_editor(offer.name, json.loads(parameters), offer.weights)


def find_editors(environment: Mapping[str, str] | None = None) -> dict[str, Offer]:
    """Return name -> system for all that can be run on recordings here, those without weights first."""
    named = (os.environ if environment is None else environment).get(VARIABLE, "").split()
    offers = {name: Offer(name) for name in EDITORS if _edits_alone(name)}
    for word in named:
        name, equals, place = word.partition("=")
        if not (equals and place):
            raise InvalidInputError(f"{VARIABLE}: expected NAME=PLACE or NAME=ID@COMMIT, got {word!r}")
        if not getattr(load_editor(name), "licence", ""):
            known = [name for name in editor_names() if getattr(load_editor(name), "licence", "")]
            raise UnknownNameError("editing system with weights", name, known)
        place, _, revision = place.partition("@")
        offers[name] = Offer(name, place, revision)
    return offers


def _edits_alone(name: str) -> bool:
    kind = load_editor(name)
    if hasattr(kind, "from_pretrained"):
        return False
    info: EditorInfo = kind().info
    return not info.control and "audio" in info.entrances


TITLE: Final = "Edit music, and see what stayed"
INTRO: Final = (
    "Pick an editing system and a recording: you hear the edit beside the original in step, with the eleven scores of "
    "music context preservation and what changed in plain words."
)
MAX_SEC: Final = 30.0
SHARE_EDITING: Final = 0.4  # of the progress bar, before the comparison
STEP_SEC: Final = 0.08  # of a diffusion step on a graphics card
TOKEN_SEC: Final = 0.05  # of a language model there


class Wishes(NamedTuple):
    """What a visitor asks for."""

    system: str
    parameters: str = ""  # ``NAME=VALUE``, with commas or lines between
    target_prompt: str = ""
    source_prompt: str = ""
    before: str = ""
    after: str = ""
    seed: int = 0
    accepted: bool = False  # the licence of the weights
    text: str = ""  # what is to change, in words; for systems that take the instruction as it is (``text=instruction``)

    @property
    def instruction(self) -> EditInstruction:
        """The same for a system; without words it says that the parameters decide, and targets are read off them."""
        pair = f"Change {self.before} to {self.after}." if self.before.strip() else ""
        return EditInstruction(
            text=self.text.strip() or self.target_prompt.strip() or pair or "What the parameters say.",
            target_prompt=self.target_prompt.strip(),
            source_prompt=self.source_prompt.strip(),
            before=self.before.strip(),
            after=self.after.strip(),
            targets=targets_in_words(self.text) or targets_between(self.source_prompt, self.target_prompt),
        )


class EditedUpload(NamedTuple):
    """An edit, beside what was edited."""

    name: str  # of the file that was given
    wishes: Wishes
    result: EditResult
    pair: preservation.Compared
    changes: tuple[str, ...]  # facets that the system changes by design
    archive: bytes  # ZIP: the edit, and where it comes from


def edit_upload(upload: str | None, wishes: Wishes) -> Generator[preservation.Stage, None, EditedUpload]:
    """Edit the first half minute of a recording, and compare the edit with it, a stage at a time."""
    offers = find_editors()
    if wishes.system not in offers:
        raise UnknownNameError("editing system", wishes.system, offers)
    offer = offers[wishes.system]
    if offer.licence and not wishes.accepted:
        raise InvalidInputError(
            f"{offer.name} has weights under the licence {offer.licence}: tick that you accept it, or pick a system "
            "without weights"
        )
    offer.read(wishes.parameters)  # what is wrong with them is said before anything is read or loaded
    yield preservation.Stage(0.0, "Reading the recording")
    request, name = _request(upload, wishes)
    yield preservation.Stage(SHARE_EDITING / 4, f"Editing with {offer.name}")
    editor = offer.make(wishes.parameters)
    if "conditions" in editor.info.needs:
        assert request.audio is not None  # an upload is a recording
        conditions = extract_conditions(load_audio(request.audio, rate=request.sample_rate))
        request = dataclasses.replace(request, conditions=conditions)
    has_weights = bool(editor.info.weights)  # which are loaded now, before a card is taken
    result = _edit_on_gpu(offer, wishes.parameters, request) if has_weights else editor.edit([request])[0]
    yield preservation.Stage(SHARE_EDITING, "Comparing the edit with the original")
    assert request.audio is not None and result.audio is not None  # noqa: PT018 (recordings stay recordings)
    assert request.sample_rate is not None
    edit = encode_flac(result.audio.T, request.sample_rate)
    with tempfile.TemporaryDirectory(prefix="music_evals_edit_") as folder:
        paths = [Path(folder, name) for name in ("original.flac", "edit.flac")]
        paths[0].write_bytes(encode_flac(request.audio.T, request.sample_rate))
        paths[1].write_bytes(edit)
        wanted = targets_text(request.instruction.targets)
        pair = yield from preservation.compare_uploads(*map(str, paths), targets=wanted, start=SHARE_EDITING)
    about = {"source": name, "source_sha256": request.content(), "instruction": wishes.instruction.to_dict()}
    return EditedUpload(name, wishes, result, pair, editor.info.changes, _archive(edit, about | provenance_of(result)))


def provenance_of(result: EditResult) -> dict[str, Any]:
    """Return how an edit was made, as JSON holds it."""
    return {
        "key": result.key,
        **result.provenance,
        "alignment": dict(result.log),
        "warnings": list(result.warnings),
        "seconds": round(result.seconds, 2),
    }


def _request(upload: str | None, wishes: Wishes) -> tuple[EditRequest, str]:
    """Return the first half minute of an upload, mixed down, as a request, and the name of its file."""
    if upload is not None and Path(upload).suffix.lower() not in RECORDING_TYPES:
        raise UnknownNameError("kind of recording", Path(upload).suffix or upload, RECORDING_TYPES)
    with trusted_sources(upload) as [source]:
        assert isinstance(source, Path)
        frames, rate = load_channels(source)
    audio = np.ascontiguousarray(frames.T[:, : round(MAX_SEC * rate)])
    mono = audio.mean(axis=0, keepdims=True, dtype=np.float64).astype(np.float32)
    name, instruction = Path(str(upload)).name, wishes.instruction
    return EditRequest(source_id=name, instruction=instruction, audio=mono, sample_rate=rate, seed=wishes.seed), name


def _n_calls(offer: Offer, parameters: str, request: EditRequest) -> int:
    """Return how often a network is called, a token of a language model counted for its share of a diffusion step."""
    editor = offer.make(parameters)
    share = TOKEN_SEC / STEP_SEC if editor.info.backbone == "autoregressive" else 1.0
    return math.ceil(share * editor.network_calls(request.duration_sec))


@on_gpu(_n_calls, call_sec=STEP_SEC)
def _edit_on_gpu(offer: Offer, parameters: str, request: EditRequest) -> EditResult:
    """Return the edit; the model is on the graphics card meanwhile, where there is one."""
    editor = offer.make(parameters)
    with moved_to_card(editor):
        return editor.edit([request])[0]


def _archive(edit: bytes, about: dict[str, Any]) -> bytes:
    """Return a ZIP of the edit and its provenance; equal bytes for equal contents."""
    target = io.BytesIO()
    text = json.dumps(about, ensure_ascii=False, indent=2) + "\n"
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in (("edit.flac", edit), ("provenance.json", text.encode())):
            archive.writestr(zipfile.ZipInfo(name), content)
    return target.getvalue()


def code_of(edited: EditedUpload) -> tuple[str, str]:
    """Return Python and command lines that make the same edit and score it."""
    wishes = edited.wishes
    offer = find_editors()[wishes.system]
    words = ["music-evals", "edit", f"./{edited.name}", "--system", wishes.system]
    words += ["--mono", "--seconds", f"{MAX_SEC:g}"]
    for name, value in edited.result.provenance["parameters"].items():
        words += ["--set", f"{name}={json.dumps(value) if isinstance(value, bool) else value}"]
    if offer.place:
        words += ["--weights", offer.place, *(("--weights-revision", offer.revision) if offer.revision else ())]
    flags = {
        "--instruction": wishes.text, "--target-prompt": wishes.target_prompt, "--source-prompt": wishes.source_prompt,
        "--before": wishes.before, "--after": wishes.after, "--targets": targets_text(wishes.instruction.targets),
    }  # fmt: skip
    words += [part for flag, text in flags.items() if text.strip() for part in (flag, text.strip())]
    words += ["--seed", str(wishes.seed), "--out", "edited"]
    scoring = "music-evals preserve --manifest edited/manifest.jsonl --no-controls --out results/edited"
    python = (
        "from music_evals.pipelines.preservation import evaluate_preservation\n\n"
        "# original.wav: what was edited; edit.flac: out of the downloaded archive\n"
        "result = evaluate_preservation(\n"
        '    references=["original.wav"], predictions=["edit.flac"], per_item=True, failures="record",\n'
        f"    companions={list(SHOWN_AUXILIARY)},\n"
        ")\n"
        'print(result["per_item"][0])\n'
    )
    return python, f"{shlex.join(words)}\n{scoring}\n"


def shown(edited: EditedUpload) -> tuple[Any, ...]:
    """Return what the page shows of an edit, in the order of its outputs."""
    _, *panels = preservation.show(edited.pair)
    python, shell = code_of(edited)
    panels[3:5] = [python, shell]
    folder = frame.temporary_folder()
    path = folder / f"{Path(edited.name).stem}_{edited.wishes.system}.zip"
    path.write_bytes(edited.archive)
    return str(path), preservation.results_of(edited.pair) | {"edited": provenance_of(edited.result)}, *panels


def about_html(offer: Offer) -> str:
    """Return what a visitor should know of a system before it is run, as Markdown; escaped."""
    settings = ", ".join(f"{name}={value}" for name, value in offer.defaults.items() if value is not None)
    lines = [f"**Parameters**: {escape(settings) or 'none'}"]
    if offer.licence:
        where = f"{offer.place} at {offer.revision[:12]}" if offer.revision else offer.place
        lines.append(f"**Weights**: {escape(where)}, licence {escape(offer.licence)}")
    else:
        lines.append("Needs no weights: it does what its parameters say.")
    return "\n\n".join(lines)


def build_demo() -> gr.Blocks:
    """Build the page."""
    import gradio as gr

    from music_evals.benchmark.tasks.edits.task import Settings

    folder = tempfile.TemporaryDirectory(prefix="music_evals_examples_")  # goes with the page
    examples = write_examples(Path(folder.name))[:3]
    offers = find_editors()
    first = next(iter(offers))
    with frame.space(TITLE, f"{INTRO} {frame.privacy()}", max_upload_bytes=MAX_RECORDING_BYTES) as demo:
        gr.Markdown("## 1. The recording")
        upload = gr.File(
            label=f"Recording; its first {MAX_SEC:g} s are edited, mixed down to one channel",
            file_types=list(RECORDING_TYPES),
            elem_id="upload",
        )
        chosen = frame.add_examples([[examples[0].original]], [upload], ["A tune, rendered here"], "Or press this")
        gr.Markdown("## 2. The edit")
        with gr.Row():
            system = gr.Dropdown(list(offers), value=first, label=label_of(Settings, "system"), elem_id="system")
            parameters = gr.Textbox(
                "", label="Parameters", placeholder="such as semitones=3", max_length=500, elem_id="parameters"
            )
        about = gr.Markdown(about_html(offers[first]), elem_id="about")
        with gr.Accordion("In words", open=False, visible=bool(offers[first].place), elem_id="words") as words:
            text = gr.Textbox("", label="What is to change", max_length=500, elem_id="instruction")
            target = gr.Textbox("", label="Description of the music that is wanted", max_length=500)
            source = gr.Textbox("", label="Description of the recording", max_length=500)
            with gr.Row():
                before = gr.Textbox("", label="Word of it to exchange", max_length=100)
                after = gr.Textbox("", label="for", max_length=100)
        with gr.Row():
            seed = gr.Number(0, precision=0, minimum=0, label=label_of(Settings, "seed"), elem_id="seed")
            accepted = gr.Checkbox(
                value=False,
                label="I accept the licence of the weights",
                visible=bool(offers[first].licence),
                elem_id="accept",
            )
        with gr.Row():
            button = gr.Button("Edit and compare", variant="primary", elem_id="edit")
            cancel = gr.Button("Cancel", elem_id="cancel")
        status = gr.Markdown("", elem_id="status", min_height=64)
        archive = frame.download_button("The edit (FLAC) with how it was made (JSON)", "archive")
        inputs = [upload, system, parameters, target, source, before, after, seed, accepted, text]
        outputs = [
            status,
            archive,
            *preservation.add_results("Edit a recording to hear and see it beside its edit here."),
        ]
        frame.follow([system.input], _describe, system, [about, words, accepted])
        run = frame.on_click(
            button, _run, inputs, outputs, name="edit", cancel=cancel, show_progress_on=status,
            cancelled=(_cancelled, status),
        )  # fmt: skip
        frame.forget_when([*frame.edits_of(inputs), chosen.dataset.click], outputs, run=run)
    demo.examples_folder = folder
    return demo


def _cancelled(status: str) -> str:
    return "Cancelled." if status.endswith(" ...") else status


def _describe(name: str) -> tuple[Any, ...]:
    """Return the description of a system, whether it takes a text, and whether a licence must be accepted."""
    import gradio as gr

    offer = find_editors()[name]
    return about_html(offer), gr.update(visible=bool(offer.place)), gr.update(visible=bool(offer.licence))


def _run(  # noqa: PLR0917  (a page gives its fields in their order)
    upload: str | None,
    system: str,
    parameters: str,
    target_prompt: str,
    source_prompt: str,
    before: str,
    after: str,
    seed: float,
    accepted: bool,  # noqa: FBT001
    text: str = "",
    progress: frame.Progress = frame.no_progress,
) -> Iterator[tuple[Any, ...]]:
    """Edit the first half minute of a recording and score the edit.

    Args:
        upload: a recording.
        system: the editing system, such as transposition.
        parameters: of the system, as semitones=3; empty for its defaults.
        target_prompt: description of the music that is wanted, for systems with weights.
        source_prompt: description of the recording.
        before: word of it that is exchanged.
        after: word that takes its place.
        seed: a whole number from 0.
        accepted: whether the licence of the weights is accepted.
        text: what is to change, in words, for systems that take it as it is.
    """
    check_type("seed", seed or 0, float)
    wishes = Wishes(system, parameters, target_prompt, source_prompt, before, after, int(seed or 0), accepted, text)
    edited = yield from preservation.tell_stages(edit_upload(upload, wishes), progress, escape, 10, "Not edited")
    yield _summary(edited), *shown(edited)


def _summary(edited: EditedUpload) -> str:
    meant = f" It changes {' and '.join(edited.changes)} by design." if edited.changes else ""
    notes = "".join(f"\n\n{escape(warning)}." for warning in edited.result.warnings)
    took = f"{edited.result.seconds:.1f} s"
    return f"{escape(edited.name)} edited by {escape(edited.wishes.system)} in {took}.{meant}{notes}"
