"""The page on descriptions of music: tags of songs, two descriptions compared, tags of a recording by a probe.

What a button does is a plain function here, which needs no browser.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from music_evals.annotations import GROUPS
from music_evals.audio.io import load_channels
from music_evals.benchmark.inputs import model_type_of
from music_evals.benchmark.tasks.songs.songs import Song, load_songs
from music_evals.errors import (
    FileTooLargeError,
    InvalidTagsError,
    ModelUnavailableError,
    NoDataError,
    UnknownNameError,
    UnreadableFileError,
)
from music_evals.lyrics.embeddings import CHAR_NGRAMS, DEFAULT_ENCODER
from music_evals.metrics.semantics import AGGREGATIONS
from music_evals.numerics import package_versions
from music_evals.pipelines.descriptions import check_description
from music_evals.protocols import TAGGERS, Tagger, load_plugin
from music_evals.ui import frame
from music_evals.ui.assets import style
from music_evals.ui.gpu import moved_to_card, on_gpu
from music_evals.ui.spaces import tag_comparison as tagged
from music_evals.ui.spaces.spoken_parts import PRIVATE, Parts
from music_evals.ui.spaces.words_muchin import DESCRIPTION_WORDS
from music_evals.ui.uploads import (
    MAX_RECORDING_BYTES,
    MAX_RECORDING_SEC,
    RECORDING_TYPES,
    check_upload,
    trusted_sources,
)
from music_evals.ui.widgets.lyric_view import inert
from music_evals.ui.widgets.tag_view import matrix_html, song_html, table_html, tags_html

if TYPE_CHECKING:
    import gradio as gr

TAGGER_VARIABLE: Final = "MUSIC_EVALS_TAGGER"
_ENCODED_SEC: Final = 30.0  # that an encoder reads in one call, at least


def compare_descriptions(  # noqa: PLR0917  (a page gives its fields in their order)
    generated: str,
    reference: str,
    group: str = "professional",
    encoder: str = CHAR_NGRAMS,
    aggregation: str = "mean",
    language: str = "en",
    progress: frame.Progress = frame.no_progress,
) -> tuple[Any, ...]:
    """Compare two descriptions of music dimension by dimension.

    Args:
        generated: the description to judge, one dimension a line, as "song_purpose: 睡前、独处"; or a list of tags.
        reference: the description that people gave, in the same form.
        group: professional or amateur; whose dimensions these are.
        encoder: a text encoder that the page offers.
        aggregation: mean, best_match or f1.
        language: en or zh.
        progress: called with a share and a word for each stage.
    """
    t = DESCRIPTION_WORDS(language)
    progress(0.1, t("stage_read"))
    first, second = (tagged.parse_description(text, group, language) for text in (generated, reference))
    if not any([*first.values(), *second.values()]):
        raise NoDataError(t("error_empty"))
    lists = [tagged.LIST in side for side in (first, second) if side]
    if len(set(lists)) > 1:
        raise InvalidTagsError(t("error_kinds"))
    progress(0.4, t("stage_encode"))
    comparison = tagged.compare(first, second, "" if lists[0] else group, encoder, aggregation)
    progress(0.9, t("stage_write"))
    results = tagged.results_of(comparison)
    names = list(comparison.similarities)
    chosen = next((name for name in names if comparison.cosines[name].size), names[0])
    files = frame.write_downloads(results, _rows(comparison), name="description")
    receipt = {
        "score": "tag_semantic_similarity (MuChin)",
        "encoder": results["encoder"],
        "aggregation": aggregation,
        "group": comparison.group or "none, two lists",
        "versions": results["versions"],
    }
    return (
        comparison, results, table_html(comparison, language), _matrix_choice(comparison, chosen, language),
        matrix_html(comparison, chosen, language), *tagged.code_of(comparison), *files, frame.receipt_html(receipt),
    )  # fmt: skip


def _matrix_choice(comparison: tagged.Compared | None, chosen: str | None, language: str) -> Any:
    """Return the list of dimensions that were compared."""
    import gradio as gr

    choices = (
        [(tagged.title_of(comparison.group, name, language), name) for name in comparison.similarities]
        if comparison
        else []
    )
    return gr.update(choices=choices, value=chosen, interactive=bool(choices))


def _rows(comparison: tagged.Compared) -> list[dict[str, Any]]:
    """Return one row a dimension, for the CSV."""
    return [
        {
            "dimension": name,
            **each._asdict(),
            "generated": "、".join(comparison.generated.get(name, ())),
            "reference": "、".join(comparison.reference.get(name, ())),
            "encoder": comparison.encoder,
            "aggregation": comparison.aggregation,
        }
        for name, each in comparison.similarities.items()
    ]


def song_tags(songs: Mapping[str, Song], song: str, encoder: str, language: str = "en") -> str:
    """Show the tags of a demo song.

    Args:
        song: id of a demo song.
        encoder: a text encoder that the page offers.
        language: en or zh.
    """
    if song not in songs:
        raise UnknownNameError("song", song, songs)
    return song_html(songs[song], encoder, language)


def _place() -> str:
    """Return the folder or Hub id of the tagger; empty if unset."""
    return os.environ.get(TAGGER_VARIABLE, "").strip()


@functools.lru_cache(maxsize=1)
def _load_tagger(place: str) -> Tagger:
    """Return the tagger of a folder or of a Hub id; nothing of what visitors send is kept by it."""
    folder = Path(place)
    if not folder.is_dir():
        import huggingface_hub

        try:
            folder = Path(huggingface_hub.snapshot_download(place, allow_patterns=["*.json", "*.safetensors"]))
        except (OSError, ValueError) as error:
            raise ModelUnavailableError(
                f"the tagger {place!r} that {TAGGER_VARIABLE} names is no folder and cannot be had from the Hub"
            ) from error
    plugin = load_plugin(TAGGERS, model_type_of(folder, TAGGERS), "model type")
    tagger: Tagger = plugin.from_pretrained(str(folder), features_cache=False)
    if ".wav" not in (suffixes := getattr(tagger, "suffixes", {".wav"})):
        raise ModelUnavailableError(
            f"the tagger {tagger.name!r} reads {', '.join(sorted(suffixes))} files and no recordings; set another"
        )
    tagger.describe()  # loads the encoder too
    return tagger


@on_gpu(lambda _place, _path, seconds: math.ceil(seconds / _ENCODED_SEC) + len(GROUPS), call_sec=1.0)
def _predicted_tags(place: str, path: str, seconds: float) -> dict[str, dict[str, list[str]]]:  # noqa: ARG001 (of `on_gpu`)
    """Return the tags of a recording, by group and dimension; encoder and probes are on the card where there is one."""
    tagger = _load_tagger(place)
    with moved_to_card(tagger):
        return {group: dict(dimensions) for group, dimensions in tagger.tag(path).items()}


def tag_recording(
    recording: str | None, language: str = "en", progress: frame.Progress = frame.no_progress
) -> tuple[Any, ...]:
    """Describe a recording by tags.

    Args:
        recording: a file of at most six minutes.
        language: en or zh.
        progress: called with a share and a word for each stage.
    """
    t, place = DESCRIPTION_WORDS(language), _place()
    if not place:
        raise ModelUnavailableError(t("probe_missing", variable=TAGGER_VARIABLE))
    progress(0.1, t("stage_decode"))
    with _plain_refusals(recording, language):
        checked = check_upload(recording, suffixes=RECORDING_TYPES, max_bytes=MAX_RECORDING_BYTES)
    name = _load_tagger(place).name  # it is loaded before a card is taken
    with _plain_refusals(recording, language), trusted_sources(checked) as [source]:
        progress(0.3, t("stage_tag"))
        frames, rate = load_channels(str(source))  # what cannot be decoded takes no card
        tags = check_description(_predicted_tags(place, str(source), len(frames) / rate), name)
    progress(0.9, t("stage_write"))
    plain = {group: {key: list(labels) for key, labels in named.items()} for group, named in tags.items()}
    rows = [
        {"group": group, "dimension": key, "tag": tag}
        for group, named in plain.items()
        for key, labels in named.items()
        for tag in labels
    ]
    versions = package_versions(tagged.PACKAGES)
    results = {"tagger": name, "file": checked.name, "tags": plain, "versions": versions}
    python = (
        "from music_evals.models.music_tagger import MusicTagger\n\n"
        f"tagger = MusicTagger.from_pretrained({Path(place).name if Path(place).is_dir() else place!r})\n"
        f"print(tagger.tag({checked.name!r}))\n"
    )
    files = frame.write_downloads(results, rows, name="tags")
    return (
        results,
        tags_html(plain, language),
        python,
        *files,
        frame.receipt_html({"tagger": name, "versions": versions}),
    )


@contextlib.contextmanager
def _plain_refusals(recording: str | None, language: str) -> Iterator[None]:
    """Say in the words of the page why a recording was refused."""
    t, name, limits = DESCRIPTION_WORDS(language), Path(recording or "").name, _recording_limits()
    try:
        yield
    except FileTooLargeError as error:
        raise FileTooLargeError(t("error_recording_size", name=name, **limits)) from error
    except UnreadableFileError as error:
        raise UnreadableFileError(t("error_recording", name=name, types=limits["types"])) from error


class _Example(NamedTuple):
    """Two descriptions to start with."""

    key: str
    title: str
    group: str
    generated: Mapping[str, Sequence[str]]
    reference: Mapping[str, Sequence[str]]

    def label(self, language: str) -> str:
        """Return what the list of examples shows."""
        return DESCRIPTION_WORDS(language)(self.key, **({"title": self.title} if self.title else {}))

    def texts(self, language: str) -> tuple[str, str]:
        """Return both descriptions as text."""
        if tagged.LIST in self.generated:
            return "、".join(self.generated[tagged.LIST]), "、".join(self.reference[tagged.LIST])
        first, second = (
            tagged.write_description(side, self.group, language) for side in (self.generated, self.reference)
        )
        return first, second


def _examples(songs: Sequence[Song]) -> list[_Example]:
    """Return both groups on three songs, two pairs of songs, and two lists."""
    examples = []
    for song in songs[:3]:
        ours, theirs = (song.tags[group] for group in GROUPS)
        shared = {name: ours[name] for name in ours if name in theirs}
        examples.append(
            _Example("example_groups", song.title, GROUPS[0], shared, {name: theirs[name] for name in shared})
        )
    for first, second in itertools.pairwise(songs[:3]):
        title = f"{first.title} / {second.title}"
        examples.append(_Example("example_songs", title, GROUPS[1], first.tags[GROUPS[1]], second.tags[GROUPS[1]]))
    lists = {tagged.LIST: ("抒情", "慢速", "钢琴伴奏")}, {tagged.LIST: ("抒情", "舒缓", "钢琴")}
    return [*examples, _Example("example_list", "", GROUPS[0], *lists)]


def build_demo(songs: str | os.PathLike[str]) -> gr.Blocks:
    """Build the page on songs: JSON lines, each a row of CaiMD's schema with the columns of both groups."""
    import gradio as gr

    known = load_songs(str(songs), columns=GROUPS)
    title = " · ".join(DESCRIPTION_WORDS(language)("title") for language in DESCRIPTION_WORDS.languages)
    with frame.space(f"🏷️ {title}", "", words=DESCRIPTION_WORDS, max_upload_bytes=MAX_RECORDING_BYTES) as page:
        parts, encoders, examples = Parts(DESCRIPTION_WORDS), tagged.available_encoders(), _examples(known)
        bar = gr.Row()
        parts.add_intro()
        parts.add(gr.Markdown, "encoder", name="encoder_text", value=_encoder_text)
        parts.add(gr.Dropdown, "encoder", choices=encoders, value=encoders[0])
        with gr.Tabs():
            with parts.add(gr.Tab, "tab_song", id="tab_song", render_children=True):
                # add the tab of a song: what is chosen is shown
                choices = [(f"{song.title} · {'、'.join(song.artist)}", song.id) for song in known]
                parts.add(gr.Dropdown, "song", choices=choices, value=known[0].id)
                first = song_html(known[0], parts["encoder"].value)
                parts["song_view"] = gr.HTML(first, css_template=style("tags"), elem_id="song_tags")
            with parts.add(gr.Tab, "tab_compare", id="tab_compare", render_children=True):
                _add_texts(parts, examples)
                # add the buttons and the results of a comparison
                with gr.Row():
                    parts.add(gr.Button, "compare", variant="primary")
                    parts.add(gr.Button, "cancel", scale=0, min_width=120)
                parts["found"] = gr.State(None, time_to_live=frame.RETENTION_SEC)
                parts["table"] = gr.HTML("", css_template=style("tags"), elem_id="scores")
                parts.add(gr.Dropdown, "matrix_of", name="dimension", choices=[], interactive=False)
                parts["matrix"] = gr.HTML(matrix_html(None, None), css_template=style("tags"), elem_id="matrix")
                parts.add_results()
            with parts.add(gr.Tab, "tab_probe", id="tab_probe", render_children=True):
                _add_probe(parts)
        with bar:
            parts.add_switch()
        # show the tags of the song, with cosines by the encoder, in the language that is chosen
        show = functools.partial(song_tags, {song.id: song for song in known})
        show.__doc__ = song_tags.__doc__  # tells programs what the inputs are
        inputs = parts.pick("song", "encoder", "language")
        changed = [parts["song"].input, parts["encoder"].input, parts["language"].change]
        queue: dict[str, Any] = {"concurrency_id": "judge", "concurrency_limit": 1}  # one encoder at a time
        options = {"api_name": "song_tags", "api_visibility": "public", "show_progress": "minimal"}
        frame.follow(changed, show, inputs, parts["song_view"], **queue, **options)
        _wire_comparison(parts, examples)
        _wire_probe(parts)
    return page


def _encoder_text(language: str) -> str:
    """Say what the encoders of this machine can do."""
    key = "encoder_ready" if DEFAULT_ENCODER in tagged.available_encoders() else "encoder_spelling"
    return DESCRIPTION_WORDS(language)(key, name=DEFAULT_ENCODER)


def _add_texts(parts: Parts, examples: Sequence[_Example]) -> None:
    """Add examples, both descriptions, and how they are compared."""
    import gradio as gr

    def named(names: Sequence[str], prefix: str = "") -> Callable[[str], list[tuple[str, str]]]:
        return lambda language: [(DESCRIPTION_WORDS(language)(f"{prefix}{name}"), name) for name in names]

    with gr.Row(equal_height=True):
        parts.add(
            gr.Dropdown,
            "example",
            choices=lambda language: [(example.label(language), at) for at, example in enumerate(examples)],
            value=0,
        )
        parts.add(gr.Button, "use_example", scale=0, min_width=180)
    size: dict[str, Any] = {"lines": 10, "max_lines": 20, "max_length": tagged.MAX_CHARACTERS, "min_width": 300}
    with gr.Row():
        for key, text in zip(("set_a", "set_b"), examples[0].texts("en"), strict=True):
            parts.add(gr.Textbox, key, value=text, **size)
    limits = {"tags": tagged.MAX_TAGS, "length": tagged.MAX_TAG_CHARACTERS}
    parts.add(gr.Markdown, "sets_help", value=lambda language: DESCRIPTION_WORDS(language)("sets_help", **limits))
    with gr.Row():
        parts.add(gr.Radio, "group", choices=named(GROUPS), value=examples[0].group, min_width=260)
        parts.add(gr.Dropdown, "aggregation", choices=named(AGGREGATIONS, "aggregation_"), value="mean", min_width=260)


def _wire_comparison(parts: Parts, examples: Sequence[_Example]) -> None:
    """Wire examples and the comparison; it goes when what was compared is changed."""
    import gradio as gr

    def views(comparison: tagged.Compared | None, dimension: str | None, spoken: str) -> tuple[Any, ...]:
        choice = _matrix_choice(comparison, dimension, spoken)
        return table_html(comparison, spoken), choice, matrix_html(comparison, dimension, spoken)

    texts, language = parts.pick("set_a", "set_b"), parts["language"]
    shown = parts.pick("table", "dimension", "matrix")
    outputs = [*parts.pick("found", "values"), *shown, *parts.pick("python", "shell", "json", "csv", "receipt")]
    options = parts.pick("group", "encoder", "aggregation")
    run = frame.on_click(
        parts["compare"], compare_descriptions, [*texts, *options, language], outputs, name="compare",
        cancel=parts["cancel"],
    )  # fmt: skip
    chosen = [*parts.pick("example"), language]
    taken = parts["use_example"].click(
        lambda at, spoken: (*examples[at].texts(spoken), examples[at].group),
        chosen, [*texts, parts["group"]], queue=False, **PRIVATE,
    )  # fmt: skip
    chosen = [*parts.pick("found", "dimension"), language]
    matrix_event = parts["dimension"].input(matrix_html, chosen, parts["matrix"], trigger_mode="always_last", **PRIVATE)
    spoken = language.change(
        # what was emptied stays empty
        lambda comparison, values, dimension, spoken: views(comparison if values else None, dimension, spoken),
        parts.pick("found", "values", "dimension", "language"), shown, **PRIVATE,
    )  # fmt: skip
    parts.empty_when(
        [*texts, *options],
        lambda spoken: (None, *views(None, None, spoken), "", "", None, None, ""),
        outputs[1:],
        filled=[taken],
    )
    changed = [*(part.change for part in texts), *(part.input for part in options)]
    gr.on(changed, None, cancels=[run, matrix_event, spoken], **PRIVATE)


def _add_probe(parts: Parts) -> None:
    """Add the tab of a recording; without a tagger it only says so."""
    import gradio as gr

    parts.add(gr.Markdown, "tab_probe", name="probe_text", value=_probe_text)
    with gr.Column(visible=bool(_place())):
        parts.add(
            gr.File,
            "recording",
            label=lambda language: DESCRIPTION_WORDS(language)("recording", **_recording_limits()),
            file_types=list(RECORDING_TYPES),
        )
        with gr.Row():
            parts.add(gr.Button, "tag", variant="primary")
            parts.add(gr.Button, "cancel", name="cancel_tag", scale=0, min_width=120)
        parts["tags"] = gr.HTML(_no_tags("en"), css_template=style("tags"), elem_id="tags")
        parts["tag_values"] = gr.JSON(show_label=False)
        parts["tag_code"] = gr.Code(language="python", label="Python", interactive=False)
        with gr.Row():
            for kind in ("json", "csv"):
                parts.add(frame.download_button, kind, name=f"tags_{kind}")
        parts["tag_receipt"] = gr.HTML("")


def _recording_limits() -> dict[str, Any]:
    """Return the limits of a recording, as pages say them."""
    types = ", ".join(suffix.removeprefix(".") for suffix in RECORDING_TYPES)
    return {"minutes": f"{MAX_RECORDING_SEC / 60:g}", "megabytes": MAX_RECORDING_BYTES // 2**20, "types": types}


def _probe_text(language: str) -> str:
    """Return a sentence on which tagger is used, or that it is missing."""
    t, place = DESCRIPTION_WORDS(language), _place()
    if not place:
        return t("probe_missing", variable=f"`{TAGGER_VARIABLE}`")
    return t("probe_ready", name=f"`{Path(place).name if Path(place).is_dir() else place}`")


def _no_tags(language: str) -> str:
    """Say what will stand below a recording."""
    return inert("song_empty.html", text=DESCRIPTION_WORDS(language)("probe_empty"))


def _wire_probe(parts: Parts) -> None:
    """Wire the tagger; tags go when another recording comes."""
    import gradio as gr

    files = parts.pick("tags_json", "tags_csv")
    outputs = [*parts.pick("tag_values", "tags", "tag_code"), *files, parts["tag_receipt"]]
    inputs = parts.pick("recording", "language")
    run = frame.on_click(parts["tag"], tag_recording, inputs, outputs, name="tag", cancel=parts["cancel_tag"])
    parts.empty_when(inputs[:1], lambda language: (None, _no_tags(language), "", None, None, ""), outputs)
    gr.on(frame.edits_of(inputs[:1]), None, cancels=[run], **PRIVATE)
