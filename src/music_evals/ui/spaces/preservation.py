"""The page that scores an edit against its original: scores, findings, timelines, and both sides to listen to.

`compare_uploads` does the work as a generator of stages, so that a visitor sees where it stands and can stop it
between two of them. The page below only shows what it gives.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import shlex
import tempfile
import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from music_evals.annotations import FORMS, EditTarget, Features, Score, targets_of, targets_text
from music_evals.audio.io import Audio
from music_evals.benchmark.formats import plain
from music_evals.errors import (
    BackendError,
    FileTooLargeError,
    InvalidInputError,
    MissingBackendError,
    MusicEvalsError,
    NoDataError,
)
from music_evals.metrics.arrays import VARIANTS
from music_evals.metrics.catalogue import SHOWN_AUXILIARY
from music_evals.options import label_of
from music_evals.pipelines.edit_success import Measured, TargetScore, features_for, measured, score_targets
from music_evals.pipelines.preservation import PairScores, Settings, Source, SourceLoader, modality, score_pair
from music_evals.ui import frame
from music_evals.ui.assets import html, style
from music_evals.ui.uploads import (
    MAX_RECORDING_BYTES,
    MAX_RECORDING_SEC,
    RECORDING_TYPES,
    SCORE_TYPES,
    load_recording,
    load_score,
)
from music_evals.ui.widgets.ab_player import Track, add_player, player
from music_evals.ui.widgets.bars import Bar, bar_of, bars_html, why_no_chance
from music_evals.ui.widgets.findings import Finding, findings, move_text, preserved_sentence
from music_evals.ui.widgets.moves import UNMOVED, Move, find_move, unmoved
from music_evals.ui.widgets.plane_view import plane_html
from music_evals.ui.widgets.timeline_view import timeline_html

if TYPE_CHECKING:
    import gradio as gr

TITLE: Final = "What did the edit preserve?"
INTRO: Final = (
    "Give an original and an edited version of the same music, two recordings of at most six minutes or two scores "
    "(MIDI, MusicXML, ABC). You get the eleven scores of music context preservation with five auxiliary metrics, "
    "what changed in plain words, and both versions side by side to hear and see."
)
PLAY_RATE: Final = 44100  # Hz; what is analysed has half of it
WARM_UP: Final = ("key", "beats", "segments", "f0")
FEATURE_WORDS: Final[Mapping[str, str]] = {
    "beats": "beats", "key": "key", "chords": "chords", "chroma": "pitch classes", "f0": "melody line",
    "melody": "melody notes", "segments": "sections", "structure": "form",
}  # fmt: skip

Result = TypeVar("Result")


class Stage(NamedTuple):
    """What is about to be done, for a progress bar."""

    done: float  # share of the stages that lie behind, 0..1
    text: str


@dataclasses.dataclass(frozen=True)
class Compared:
    """A pair that was compared."""

    names: tuple[str, str]  # file names of original and edit, as the visitor gave them
    settings: Settings  # what was computed
    sources: tuple[Source, Source]  # features and hashes of both
    scores: PairScores
    tracks: tuple[Track, Track]  # what can be played of both
    wanted: tuple[EditTarget, ...] = ()  # what was asked of the edit
    targets: Mapping[str, TargetScore] = dataclasses.field(default_factory=dict)  # kind of target -> its score

    @property
    def modality(self) -> str:
        """``"audio"`` or ``"symbolic"``."""
        return self.sources[0].modality

    @property
    def bars(self) -> list[Bar]:
        """Each score with its range, direction and markers."""
        about, bars = {"modality": self.modality, "variant": self.settings.variant}, []
        for name in self.settings.scores:
            if name in self.scores.failures:
                why = frame.say_error(self.scores.failures[name])
                bars.append(bar_of(name, None, state="failed", reason=why, **about))
            else:
                value = self.scores.values[name]
                bars.append(bar_of(name, float(value.value), reason=value.reason, **about))
        return bars

    @functools.cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What changed, in words."""
        return findings(self.sources[0].features, self.sources[1].features)

    @functools.cached_property
    def move(self) -> Move:
        """How the edit was transposed and stretched as a whole."""
        return find_move(self.sources[0].features, self.sources[1].features)

    @property
    def unmoved_edit(self) -> Features:
        """What the edit would be had it not been moved."""
        return unmoved(self.sources[1].features, self.move)

    @functools.cached_property
    def findings_unmoved(self) -> tuple[Finding, ...]:
        """What changed besides the move; empty where nothing was moved as a whole."""
        return () if self.move == UNMOVED else findings(self.sources[0].features, self.unmoved_edit)


def compare_uploads(
    original: str | None,
    edit: str | None,
    *,
    variant: str = "corrected",
    companions: bool = False,
    targets: str = "",
    start: float = 0.0,
) -> Generator[Stage, None, Compared]:
    """Compare two uploaded files, a stage at a time; with all auxiliary metrics, or those that are shown by default.

    `targets` are what was asked of the edit, in the form of `annotations.targets_of`.
    """
    # `start` is the share of the whole work that lies behind already, 0..1
    from music_evals.audio.extraction import extract

    paths, wanted = _both(original, edit), targets_of(targets.strip())
    settings = Settings.of(variant=variant, companions=companions or SHOWN_AUXILIARY)
    features = tuple(dict.fromkeys((*settings.features, *features_for(wanted))))
    settings, kinds = dataclasses.replace(settings, features=features), {target.kind for target in wanted}
    steps = _steps(paths, settings, start)
    loaded: list[tuple[Source, Measured, Track]] = []
    with SourceLoader(settings) as loader:
        for path, title in zip(paths, ("original", "edit"), strict=True):
            yield next(steps)
            value = load_recording(path, policy=settings.audio_policy) if modality(path) == "audio" else _score(path)
            if isinstance(value, Audio):
                # one feature a stage, which the recording keeps; what is missing or fails the loader reports
                for name in settings.features:
                    yield next(steps)
                    with contextlib.suppress(BackendError, MissingBackendError):
                        extract(value, [name], backends=settings.all_backends)
            yield next(steps)
            music, source = loader.load_music(value)
            loaded.append((source, measured(music, source, kinds), _track(title.capitalize(), value)))
    yield next(steps)
    (first, before, track), (second, after, other) = loaded
    scores, reached = score_pair(first, second, settings), score_targets(before, after, wanted)
    names = paths[0].name, paths[1].name
    return Compared(names, settings, (first, second), scores, (track, other), wanted, reached)


def _both(original: str | None, edit: str | None) -> tuple[Path, Path]:
    """Return both paths, which are of one kind."""
    missing = [title for title, path in (("original", original), ("edit", edit)) if path is None]
    if original is None or edit is None:
        raise NoDataError(f"upload two files: the original and the edit; {' and '.join(missing)} missing")
    kinds = {"audio": "a recording", "symbolic": "a score"}
    first, second = (kinds[modality(path)] for path in (original, edit))
    if first != second:
        raise InvalidInputError(f"the original is {first} and the edit is {second}; give two recordings or two scores")
    return Path(original), Path(edit)


def _steps(paths: tuple[Path, Path], settings: Settings, start: float) -> Iterator[Stage]:
    """Return the stages in their order, with the share that lies behind each."""
    texts: list[str] = []
    for path, title in zip(paths, ("original", "edit"), strict=True):
        texts.append(f"Reading the {title}")
        if modality(path) == "audio":
            texts += [f"Listening to the {title}: {FEATURE_WORDS[name]}" for name in settings.features]
        texts.append(f"Preparing the {title} for playback")
    texts.append("Comparing")
    return iter([Stage(start + (1 - start) * i / len(texts), text) for i, text in enumerate(texts)])


def _score(path: Path) -> Score:
    """Return a score that does not play longer than a recording may."""
    score = load_score(path)
    seconds = float(score.seconds(score.end_tick))
    if seconds > MAX_RECORDING_SEC:
        raise FileTooLargeError(
            f"{path.name}: it plays {seconds:.0f} s, more than {MAX_RECORDING_SEC:g}",
            name=path.name,
            unit="seconds",
            limit=MAX_RECORDING_SEC,
            size=seconds,
        )
    return score


def _track(title: str, value: Audio | Score) -> Track:
    """Return what is played: a recording decoded anew at the rate of a CD, or a score rendered by our synthesiser."""
    # What is analysed has its peak at 1. What is played has the level of the file: the page tells how far both differ.
    from music_evals.audio.rendering import SAMPLE_RATE, render_additive

    if isinstance(value, Score):
        return Track(title, render_additive(value), SAMPLE_RATE, "its rendering")
    policy = dataclasses.replace(value.policy, sample_rate=PLAY_RATE, peak_normalise=False)
    audio = value.at_rate(PLAY_RATE) if value.reload is None else value.reload(policy=policy)
    return Track(title, audio.samples, audio.sample_rate)


def findings_html(pair: Compared) -> str:
    """Return how much was preserved and what changed as HTML, and what a reader should know of the pair; escaped."""
    about_markers = why_no_chance(pair.modality, pair.settings.variant)
    notes = [*pair.scores.notes, *([about_markers] if about_markers else [])]
    adjusted, unmoved = (
        (preserved_sentence(findings), findings) for findings in (pair.findings, pair.findings_unmoved)
    )
    moved = "" if pair.move == UNMOVED else move_text(pair.move)
    return html("findings.html", found=adjusted, unmoved=unmoved, moved=moved, notes=notes)


def results_of(pair: Compared) -> dict[str, Any]:
    """Return everything that was found as plain values."""
    from music_evals.benchmark.tasks.preservation.task import AUDIO_PACKAGES, describe_extractors
    from music_evals.numerics import PACKAGES, package_versions

    chosen = pair.settings
    extractors = {"extractors": describe_extractors(chosen)} if pair.modality == "audio" else {}
    return {
        "original": pair.names[0],
        "edit": pair.names[1],
        "entrance": pair.modality,
        "scores": {bar.score: bar.row for bar in pair.bars},
        "targets": plain({kind: score.to_dict() for kind, score in pair.targets.items()}),
        "preserved": preserved_sentence(pair.findings),
        "findings": [finding._asdict() for finding in pair.findings],
        "move": pair.move._asdict(),
        "findings_unmoved": [finding._asdict() for finding in pair.findings_unmoved],
        "notes": list(pair.scores.notes),
        "receipt": {
            "original": {"file": pair.names[0], "content": pair.sources[0].content},
            "edit": {"file": pair.names[1], "content": pair.sources[1].content},
            "variant": chosen.variant,
            "scores": list(chosen.scores),
            "versions": package_versions((*PACKAGES, *AUDIO_PACKAGES)),
            **extractors,
        },
    }


def code_of(pair: Compared) -> tuple[str, str]:
    """Return Python and a command line that give the same scores of the same files."""
    original, edit = pair.names
    chosen = pair.settings.companions
    by_default = set(chosen) == set(SHOWN_AUXILIARY)
    python = (
        "from music_evals.pipelines.preservation import evaluate_preservation\n\n"
        "result = evaluate_preservation(\n"
        f"    references=[{original!r}],\n"
        f"    predictions=[{edit!r}],\n"
        f"    variant={pair.settings.variant!r},\n"
        f"    companions={list(chosen) if by_default else True},\n"
        "    per_item=True,\n"
        '    failures="record",\n'
        ")\n"
        'print(result["per_item"][0])\n'
    )
    if pair.wanted:
        python += (
            "\nfrom music_evals.pipelines.edit_success import evaluate_edit_success\n\n"
            f"success = evaluate_edit_success([{original!r}], [{edit!r}], [{targets_text(pair.wanted)!r}])\n"
            'print(success["edit_success"])\n'
        )
    words = [
        "music-evals", "preserve", "--reference", f"./{original}", "--estimate", f"edit=./{edit}",
        "--variant", pair.settings.variant, *(() if by_default else ("--companions", "all")),
        "--no-controls", "--out", "results/preservation",
    ]  # fmt: skip
    return python, shlex.join(words) + "\n"


def show(pair: Compared) -> tuple[Any, ...]:
    """Return what the page shows of a pair, in the order of its outputs."""
    results = results_of(pair)
    python, shell = code_of(pair)
    files = frame.write_downloads(results, [bar.row for bar in pair.bars], name="preservation")
    original, edit = (source.features for source in pair.sources)
    picture = timeline_html(original, edit)
    if pair.move != UNMOVED:  # the switch shows one of both
        unmoved = timeline_html(original, pair.unmoved_edit)
        picture = f'<div class="me-moved">{picture}</div><div class="me-unmoved">{unmoved}</div>'
    return (
        results,
        bars_html(pair.bars) + (plane_html(pair.bars, pair.targets) if pair.targets else ""),
        findings_html(pair),
        player(*pair.tracks, picture),
        python,
        shell,
        frame.receipt_html(results["receipt"]),
        *files,
    )


def build_demo(*, warm_up: bool = True) -> gr.Blocks:
    """Build the page."""
    import gradio as gr

    from music_evals.ui.spaces.preservation_examples import write_examples

    folder = tempfile.TemporaryDirectory(prefix="music_evals_examples_")  # goes with the page
    examples = write_examples(Path(folder.name))
    with frame.space(TITLE, f"{INTRO} {frame.privacy()}", max_upload_bytes=MAX_RECORDING_BYTES) as demo:
        from music_evals.benchmark.tasks.preservation.task import Settings as RunSettings

        types = [*RECORDING_TYPES, *SCORE_TYPES]
        with gr.Row():
            original = gr.File(label="Original", file_types=types, elem_id="original")
            edit = gr.File(label="Edited version", file_types=types, elem_id="edit")
        with gr.Accordion("Settings", open=False):
            variant = gr.Dropdown(
                list(VARIANTS),
                value=VARIANTS[0],
                label=label_of(RunSettings, "variant"),
                info="corrected: our definitions. official: those of the authors' code, with its extractors where they "
                "are installed. paper: the formulas of the text.",
                elem_id="variant",
            )
            companions = gr.Checkbox(
                value=False,
                label=label_of(RunSettings, "companions"),
                info=f"Without it {len(SHOWN_AUXILIARY)} of them are shown.",
                elem_id="companions",
            )
        with gr.Row():
            compare = gr.Button("Compare", variant="primary", elem_id="compare")
            cancel = gr.Button("Cancel", elem_id="cancel")
            targets = gr.Textbox(
                "",  # so that a client need not give it
                label="What the edit was asked to change",
                placeholder="tempo=1.2x; key=A minor",
                info=f"Then it is measured whether it is there. One or several of: {', '.join(FORMS)}.",
                max_lines=1,
                max_length=300,
                elem_id="targets",
            )
        settings, buttons = [variant, companions, targets], (compare, cancel)
        chosen = frame.add_examples(
            [(example.original, example.edit) for example in examples],
            [original, edit],
            [example.title for example in examples],
            "Examples (press one, then Compare)",
        )
        status = gr.HTML(elem_id="status", min_height=64)  # the bar stands here
        inputs, outputs = [original, edit, *settings], [status, *add_results()]
        run = frame.on_click(
            buttons[0], _run, inputs, outputs, name="compare", cancel=buttons[1], show_progress_on=status
        )
        frame.forget_when([*frame.edits_of(inputs), chosen.dataset.click], outputs, run=run)
        buttons[1].click(lambda: _status_html("Stopped."), None, status, api_visibility="private", queue=False)
    demo.examples_folder = folder
    if warm_up:
        # Not a daemon: a process that ends while native code runs in one is aborted.
        threading.Thread(target=_warm_up, args=(examples[0].original,)).start()
    return demo


def add_results(empty: str = "Compare two files to hear and see them here.") -> list[Any]:
    """Add what `show` fills, in its order; an empty player says what to do."""
    import gradio as gr

    gr.Markdown("## What changed")
    changed = gr.HTML(css_template=style("findings"), js_on_load=None, elem_id="findings")
    gr.Markdown("## Listen and look")
    listening = add_player(empty)
    gr.Markdown("## Scores")
    scores = gr.HTML(js_on_load=None, elem_id="scores")
    json_button, csv_button = frame.downloads_panel()
    python, shell = frame.code_panel()
    with gr.Accordion("Receipt: what the numbers depend on", open=False):
        receipt = gr.HTML(js_on_load=None, elem_id="receipt")
    with gr.Accordion("Results as JSON", open=False):
        results = gr.JSON(show_label=False, elem_id="results")
    return [results, scores, changed, listening, python, shell, receipt, json_button, csv_button]


def _run(  # noqa: PLR0917  (a page gives its fields in their order)
    original: str | None,
    edit: str | None,
    variant: str,
    companions: bool,  # noqa: FBT001
    targets: str = "",
    progress: frame.Progress = frame.no_progress,
) -> Iterator[tuple[Any, ...]]:
    """Compare an original with an edit and show it.

    Recordings are WAV, FLAC, OGG, MP3, AIFF; MP4 (m4a), AAC, WebM or Matroska where ffmpeg or torchcodec is installed.

    Args:
        original: recording (at most six minutes) or score (MIDI, MusicXML, ABC).
        edit: the edited version, of the same kind.
        variant: corrected, official or paper.
        companions: all auxiliary metrics of the eleven scores, and not only the four that are shown by default.
        targets: what the edit was asked to change, such as tempo=1.2x; key=A minor.
    """
    steps = compare_uploads(original, edit, variant=variant, companions=companions, targets=targets)
    pair = yield from tell_stages(steps, progress, _status_html, 9, "Not compared")
    yield _status_html(f"Compared {' with '.join(pair.names)}."), *show(pair)


def tell_stages(
    steps: Generator[Stage, None, Result],
    progress: frame.Progress,
    render: Callable[[str], str],
    n_others: int,
    failed: str,
) -> Generator[tuple[Any, ...], None, Result]:
    """Yield what a page says of each stage, beside `n_others` outputs that stay; return what the stages come to."""
    import gradio as gr

    unchanged = (gr.skip(),) * n_others
    try:
        while True:
            stage = next(steps)
            progress(stage.done, stage.text)
            yield render(f"{stage.text} ..."), *unchanged
    except StopIteration as end:
        result: Result = end.value
        return result
    except Exception as error:  # a bug too must not leave the page at a stage that never ends
        why = "the message says why" if isinstance(error, MusicEvalsError) else "something went wrong here"
        yield render(f"{failed}; {why}."), *unchanged
        raise


def _status_html(text: str) -> str:
    return html("status.html", text=text)


def _warm_up(path: str) -> None:
    """Extract what is compiled at its first use; an error here would come again, and be reported, at the first pair."""
    from music_evals.audio.extraction import extract
    from music_evals.audio.io import load_audio

    with contextlib.suppress(MusicEvalsError, OSError):
        extract(load_audio(path), WARM_UP)
