"""The page on descriptions of music: tags of songs, two descriptions compared, tags of a recording by a probe.

What a button does is a plain function here, which needs no browser.
"""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from music_evals.annotations import GROUPS
from music_evals.benchmark.songs.songs import Song, load_songs
from music_evals.benchmark.sources import model_type_of
from music_evals.benchmark.versions import package_versions
from music_evals.errors import InvalidTagsError, ModelUnavailableError, NoDataError, UnknownNameError
from music_evals.lyrics.embeddings import CHAR_NGRAMS, DEFAULT_ENCODER
from music_evals.metrics.semantics import AGGREGATIONS
from music_evals.pipelines.descriptions import check_description
from music_evals.protocols import TAGGERS, Tagger, load_plugin
from music_evals.ui.frame import (
    RETENTION_SEC,
    code_panel,
    downloads_panel,
    language_switch,
    on_click,
    receipt_html,
    space,
    write_downloads,
)
from music_evals.ui.gpu import on_gpu
from music_evals.ui.spaces.words_muchin import DESCRIPTION_WORDS
from music_evals.ui.uploads import (
    MAX_RECORDING_BYTES,
    MAX_RECORDING_SEC,
    RECORDING_TYPES,
    check_upload,
    trusted_sources,
)

if TYPE_CHECKING:
    import gradio as gr

from music_evals.ui.spaces.tag_comparison import (
    LIST,
    MAX_CHARACTERS,
    MAX_TAG_CHARACTERS,
    MAX_TAGS,
    PACKAGES,
    Compared,
    available_encoders,
    code_of,
    compare,
    parse_description,
    results_of,
    title_of,
    write_description,
)
from music_evals.ui.widgets.tag_view import VIEW_CSS, matrix_html, song_html, table_html, tags_html

__all__ = [
    "TAGGER_VARIABLE",
    "build_demo",
    "compare_descriptions",
    "song_tags",
    "tag_recording",
]

TAGGER_VARIABLE: Final = "MUSIC_EVALS_TAGGER"


def compare_descriptions(  # noqa: PLR0917  (a page gives its fields in their order)
    generated: str,
    reference: str,
    group: str = "professional",
    encoder: str = CHAR_NGRAMS,
    aggregation: str = "mean",
    language: str = "en",
    progress: Callable[[float, str], Any] | None = None,
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
    _step(progress, 0.1, t("stage_read"))
    first, second = (parse_description(text, group, language) for text in (generated, reference))
    if not any([*first.values(), *second.values()]):
        raise NoDataError(t("error_empty"))
    lists = [LIST in side for side in (first, second) if side]
    if len(set(lists)) > 1:
        raise InvalidTagsError(t("error_kinds"))
    _step(progress, 0.4, t("stage_encode"))
    found = compare(first, second, "" if lists[0] else group, encoder, aggregation)
    _step(progress, 0.9, t("stage_write"))
    results = results_of(found)
    names = list(found.similarities)
    chosen = next((name for name in names if found.cosines[name].size), names[0])
    files = write_downloads(results, _rows(found), name="description")
    receipt = {
        "score": "tag_semantic_similarity (MuChin)",
        "encoder": results["encoder"],
        "aggregation": aggregation,
        "group": found.group or "none, two lists",
        "versions": results["versions"],
    }
    return (
        found, results, table_html(found, language), _matrix_choice(found, chosen, language),
        matrix_html(found, chosen, language), *code_of(found), *files, receipt_html(receipt),
    )  # fmt: skip


def _step(progress: Callable[[float, str], Any] | None, share: float, text: str) -> None:
    if progress is not None:
        progress(share, text)


def _matrix_choice(found: Compared, chosen: str | None, language: str) -> Any:
    import gradio as gr

    choices = [(title_of(found.group, name, language), name) for name in found.similarities]
    return gr.update(choices=choices, value=chosen)


def _rows(found: Compared) -> list[dict[str, Any]]:
    return [
        {
            "dimension": name,
            **each._asdict(),
            "generated": "、".join(found.generated.get(name, ())),
            "reference": "、".join(found.reference.get(name, ())),
            "encoder": found.encoder,
            "aggregation": found.aggregation,
        }
        for name, each in found.similarities.items()
    ]


def song_tags(songs: Mapping[str, Song], name: str, encoder: str, language: str = "en") -> str:
    """Return `song_html` of the song of an id.

    Raises
    ------
    UnknownNameError
        No such song, or no such encoder.

    """
    if name not in songs:
        raise UnknownNameError("song", name, songs)
    return song_html(songs[name], encoder, language)


def _place() -> str:
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
            msg = f"the tagger {place!r} that {TAGGER_VARIABLE} names is no folder and cannot be had from the Hub"
            raise ModelUnavailableError(msg) from error
    plugin = load_plugin(TAGGERS, model_type_of(folder, TAGGERS), "model type")
    tagger: Tagger = plugin.from_pretrained(str(folder), features_cache=False)
    if ".wav" not in (suffixes := getattr(tagger, "suffixes", {".wav"})):
        msg = f"the tagger {tagger.name!r} reads {', '.join(sorted(suffixes))} files and no recordings; set another"
        raise ModelUnavailableError(msg)
    return tagger


@on_gpu(duration=120)
def _heard(place: str, path: str) -> dict[str, dict[str, list[str]]]:
    return {group: dict(found) for group, found in _load_tagger(place).tag(path).items()}


def tag_recording(
    recording: str | None, language: str = "en", progress: Callable[[float, str], Any] | None = None
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
    checked = check_upload(recording, suffixes=RECORDING_TYPES, max_bytes=MAX_RECORDING_BYTES)
    _step(progress, 0.1, t("stage_decode"))
    with trusted_sources(checked) as [source]:
        _step(progress, 0.3, t("stage_tag"))
        name = _load_tagger(place).name
        tags = check_description(_heard(place, str(source)), name)
    _step(progress, 0.9, t("stage_write"))
    plain = {group: {key: list(found) for key, found in named.items()} for group, named in tags.items()}
    rows = [
        {"group": group, "dimension": key, "tag": tag}
        for group, named in plain.items()
        for key, found in named.items()
        for tag in found
    ]
    versions = package_versions(PACKAGES)
    results = {"tagger": name, "file": checked.name, "tags": plain, "versions": versions}
    python = (
        "from music_evals.models.music_tagger import MusicTagger\n\n"
        f"tagger = MusicTagger.from_pretrained({Path(place).name if Path(place).is_dir() else place!r})\n"
        f"print(tagger.tag({checked.name!r}))\n"
    )
    files = write_downloads(results, rows, name="tags")
    return results, tags_html(plain, t, language), python, *files, receipt_html({"tagger": name, "versions": versions})


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
        if LIST in self.generated:
            return "、".join(self.generated[LIST]), "、".join(self.reference[LIST])
        first, second = (write_description(side, self.group, language) for side in (self.generated, self.reference))
        return first, second


def _examples(songs: Sequence[Song]) -> list[_Example]:
    found = []
    for song in songs[:3]:
        ours, theirs = (song.tags[group] for group in GROUPS)
        shared = {name: ours[name] for name in ours if name in theirs}
        found.append(_Example("example_groups", song.title, GROUPS[0], shared, {name: theirs[name] for name in shared}))
    for first, second in itertools.pairwise(songs[:3]):
        title = f"{first.title} / {second.title}"
        found.append(_Example("example_songs", title, GROUPS[1], first.tags[GROUPS[1]], second.tags[GROUPS[1]]))
    lists = {LIST: ("抒情", "慢速", "钢琴伴奏")}, {LIST: ("抒情", "舒缓", "钢琴")}
    return [*found, _Example("example_list", "", GROUPS[0], *lists)]


def build_demo(songs: str | os.PathLike[str]) -> gr.Blocks:
    """Build the page.

    Parameters
    ----------
    songs
        JSON lines, each a row of CaiMD's schema with the columns of both groups.

    Returns
    -------
    gr.Blocks
        Not launched.

    Raises
    ------
    MusicEvalsError
        As `music_evals.benchmark.songs.songs.load_songs`.

    """
    import gradio as gr

    known = load_songs(str(songs), columns=GROUPS)
    t = DESCRIPTION_WORDS("en")
    title = f"🏷️ {t('title')} · {DESCRIPTION_WORDS('zh')('title')}"
    with space(title, "", words=DESCRIPTION_WORDS, max_upload_bytes=MAX_RECORDING_BYTES) as page:
        parts: list[tuple[Any, Mapping[str, str]]] = []
        bar = gr.Row()
        parts.append((gr.Markdown(t("intro")), {"value": "intro"}))
        told = gr.Markdown(_encoder_told("en"), elem_id="encoder_told")
        encoders = available_encoders()
        encoder = gr.Dropdown(encoders, value=encoders[0], label=t("encoder"), elem_id="encoder")
        parts.append((encoder, {"label": "encoder"}))
        with gr.Tabs():
            song = _tab(parts, "tab_song", functools.partial(_song_tab, known, encoders[0]))
            both = _tab(parts, "tab_compare", functools.partial(_compare_tab, known))
            probe = _tab(parts, "tab_probe", _probe_tab)
        with bar:
            language = language_switch(DESCRIPTION_WORDS, parts, scale=0, min_width=220)
        _wire_song(known, song, encoder, language)
        _wire_compare(known, both, encoder, language)
        _wire_probe(probe, language)
        language.change(_encoder_told, language, told, api_visibility="private", show_progress="hidden", queue=False)
    return page


Parts = list[tuple[Any, Mapping[str, str]]]


def _encoder_told(language: str) -> str:
    key = "encoder_ready" if DEFAULT_ENCODER in available_encoders() else "encoder_spelling"
    return DESCRIPTION_WORDS(language)(key, name=DEFAULT_ENCODER)


def _tab(parts: Parts, key: str, build: Callable[[Parts], dict[str, Any]]) -> dict[str, Any]:
    import gradio as gr

    with gr.Tab(DESCRIPTION_WORDS("en")(key), id=key, elem_id=key, render_children=True) as tab:
        parts.append((tab, {"label": key}))
        return build(parts)


def _button(parts: Parts, key: str, **options: Any) -> Any:
    import gradio as gr

    button = gr.Button(DESCRIPTION_WORDS("en")(key), **options)
    parts.append((button, {"value": key}))
    return button


def _song_tab(known: Sequence[Song], encoder: str, parts: Parts) -> dict[str, Any]:
    import gradio as gr

    with gr.Row(equal_height=True):
        choices = [(f"{song.title} · {'、'.join(song.artist)}", song.id) for song in known]
        song = gr.Dropdown(choices, value=known[0].id, label=DESCRIPTION_WORDS("en")("song"), elem_id="song")
        parts.append((song, {"label": "song"}))
        show = _button(parts, "show", elem_id="show", variant="primary", scale=0, min_width=160)
    view = gr.HTML(song_html(known[0], encoder), css_template=VIEW_CSS, elem_id="song_tags")
    return {"song": song, "show": show, "view": view}


def _wire_song(known: Sequence[Song], tab: Mapping[str, Any], encoder: Any, language: Any) -> None:
    by_id = {song.id: song for song in known}

    def show(song: str, encoder: str, language: str) -> str:
        """Show the tags of a demo song.

        Args:
            song: id of a demo song.
            encoder: a text encoder that the page offers.
            language: en or zh.

        """
        return song_tags(by_id, song, encoder, language)

    inputs = [tab["song"], encoder, language]
    on_click(tab["show"], show, inputs, tab["view"], name="song_tags")
    language.change(show, inputs, tab["view"], api_visibility="private", show_progress="hidden")


def _compare_tab(known: Sequence[Song], parts: Parts) -> dict[str, Any]:
    import gradio as gr

    t = DESCRIPTION_WORDS("en")
    found: dict[str, Any] = {}
    examples = _examples(known)

    def labelled(name: str, component: Any, key: str | None = None) -> None:
        found[name] = component
        parts.append((component, {"label": key or name}))

    with gr.Row(equal_height=True):
        choices = [(example.label("en"), at) for at, example in enumerate(examples)]
        labelled("example", gr.Dropdown(choices, value=0, label=t("example"), elem_id="example"))
        found["use"] = _button(parts, "use_example", elem_id="use_example", scale=0, min_width=180)
    texts = examples[0].texts("en")
    with gr.Row():
        for key, text in zip(("set_a", "set_b"), texts, strict=True):
            labelled(
                key,
                gr.Textbox(
                    text, label=t(key), lines=10, max_lines=20, max_length=MAX_CHARACTERS, elem_id=key, min_width=300
                ),
            )
    found["help"] = gr.Markdown(_sets_help("en"))
    with gr.Row():
        groups = [(t(group), group) for group in GROUPS]
        labelled("group", gr.Radio(groups, value=examples[0].group, label=t("group"), elem_id="group"))
        ways = [(t(f"aggregation_{name}"), name) for name in AGGREGATIONS]
        labelled("aggregation", gr.Dropdown(ways, value="mean", label=t("aggregation"), elem_id="aggregation"))
    with gr.Row():
        found["compare"] = _button(parts, "compare", elem_id="compare", variant="primary")
        found["cancel"] = _button(parts, "cancel", elem_id="cancel", scale=0, min_width=120)
    found["state"] = gr.State(None, time_to_live=RETENTION_SEC)
    found["table"] = gr.HTML("", css_template=VIEW_CSS, elem_id="scores")
    labelled("dimension", gr.Dropdown([], label=t("matrix_of"), elem_id="dimension"), "matrix_of")
    found["matrix"] = gr.HTML(matrix_html(None, None), css_template=VIEW_CSS, elem_id="matrix")
    _results_panels(found, parts)
    return found


def _results_panels(found: dict[str, Any], parts: Parts) -> None:
    import gradio as gr

    t = DESCRIPTION_WORDS("en")
    found["json"], found["csv"] = downloads_panel()
    parts += [(found["json"], {"label": "json"}), (found["csv"], {"label": "csv"})]
    found["python"], found["shell"] = code_panel(f"{t('code')} · {DESCRIPTION_WORDS('zh')('code')}")
    with gr.Accordion(t("values"), open=False, elem_id="values") as panel:
        found["values"] = gr.JSON(show_label=False)
    parts.append((panel, {"label": "values"}))
    with gr.Accordion(t("receipt"), open=False, elem_id="receipt") as panel:
        found["receipt"] = gr.HTML("")
    parts.append((panel, {"label": "receipt"}))


def _sets_help(language: str) -> str:
    return DESCRIPTION_WORDS(language)("sets_help", tags=MAX_TAGS, length=MAX_TAG_CHARACTERS)


def _wire_compare(known: Sequence[Song], tab: Mapping[str, Any], encoder: Any, language: Any) -> None:
    examples = _examples(known)
    quiet: dict[str, Any] = {"api_visibility": "private", "show_progress": "hidden"}

    def take(at: int, spoken: str) -> tuple[str, str, str]:
        return *examples[at].texts(spoken), examples[at].group

    def turn(found: Compared | None, dimension: str | None, spoken: str) -> list[Any]:
        return _turned(examples, found, dimension, spoken)

    fields = [tab["set_a"], tab["set_b"], tab["group"]]
    names = ("state", "values", "table", "dimension", "matrix", "python", "shell", "json", "csv", "receipt")
    on_click(
        tab["compare"], compare_descriptions, [*fields, encoder, tab["aggregation"], language],
        [tab[name] for name in names], name="compare", cancel=tab["cancel"],
    )  # fmt: skip
    tab["use"].click(take, [tab["example"], language], fields, queue=False, **quiet)
    chosen = [tab["state"], tab["dimension"], language]
    tab["dimension"].input(matrix_html, chosen, tab["matrix"], **quiet)
    shown = [tab[name] for name in ("example", "group", "aggregation", "help", "table", "dimension", "matrix")]
    language.change(turn, chosen, shown, **quiet)


def _turned(examples: Sequence[_Example], found: Compared | None, dimension: str | None, language: str) -> list[Any]:
    """Return lists, help and views in another language."""
    import gradio as gr

    t = DESCRIPTION_WORDS(language)
    lists = [
        [(example.label(language), at) for at, example in enumerate(examples)],
        [(t(group), group) for group in GROUPS],
        [(t(f"aggregation_{name}"), name) for name in AGGREGATIONS],
    ]
    views = [gr.skip(), gr.skip()] if found is None else [
        table_html(found, language), _matrix_choice(found, dimension, language),
    ]  # fmt: skip
    return [
        *(gr.update(choices=choices) for choices in lists),
        _sets_help(language),
        *views,
        matrix_html(found, dimension, language),
    ]


def _probe_tab(parts: Parts) -> dict[str, Any]:
    import gradio as gr

    found: dict[str, Any] = {"told": gr.Markdown(_probe_told("en"), elem_id="probe_told")}
    ready = bool(_place())
    with gr.Column(visible=ready):
        found["recording"] = gr.File(
            label=_recording_label("en"), file_types=list(RECORDING_TYPES), elem_id="recording"
        )
        with gr.Row():
            found["tag"] = _button(parts, "tag", elem_id="tag", variant="primary")
            found["cancel"] = _button(parts, "cancel", elem_id="cancel_tag", scale=0, min_width=120)
        found["view"] = gr.HTML("", css_template=VIEW_CSS, elem_id="tags")
        found["values"] = gr.JSON(show_label=False)
        found["python"] = gr.Code(language="python", label="Python", interactive=False)
        with gr.Row():
            found["json"], found["csv"] = gr.DownloadButton("JSON", size="sm"), gr.DownloadButton("CSV", size="sm")
        found["receipt"] = gr.HTML("")
    return found


def _recording_label(language: str) -> str:
    minutes, megabytes = f"{MAX_RECORDING_SEC / 60:g}", MAX_RECORDING_BYTES // 2**20
    types = ", ".join(suffix.removeprefix(".") for suffix in RECORDING_TYPES)
    return DESCRIPTION_WORDS(language)("recording", minutes=minutes, megabytes=megabytes, types=types)


def _probe_told(language: str) -> str:
    t, place = DESCRIPTION_WORDS(language), _place()
    if not place:
        return t("probe_missing", variable=f"`{TAGGER_VARIABLE}`")
    return t("probe_ready", name=f"`{Path(place).name if Path(place).is_dir() else place}`")


def _wire_probe(tab: Mapping[str, Any], language: Any) -> None:
    import gradio as gr

    names = ("values", "view", "python", "json", "csv", "receipt")
    on_click(
        tab["tag"], tag_recording, [tab["recording"], language], [tab[name] for name in names], name="tag",
        cancel=tab["cancel"],
    )  # fmt: skip

    def turn(spoken: str) -> tuple[Any, ...]:
        return _probe_told(spoken), gr.update(label=_recording_label(spoken))

    language.change(
        turn, language, [tab["told"], tab["recording"]], api_visibility="private", show_progress="hidden", queue=False
    )
