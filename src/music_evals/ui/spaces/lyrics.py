"""The page that scores the structure of lyrics: texts in, points by level, rhyme marks and losses out.

What a button does is a plain function here, which needs no browser; what it looks like is in `ui.lyric_view`.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from music_evals.errors import (
    NoDataError,
)
from music_evals.lyrics.rhyme import METHODS
from music_evals.metrics.lyric_structure import VARIANTS
from music_evals.ui.frame import (
    RETENTION_SEC,
    code_panel,
    downloads_panel,
    language_switch,
    on_click,
    space,
)
from music_evals.ui.spaces.lyric_judging import (
    KINDS,
    MAX_CHARACTERS,
    MAX_SECTION_LINES,
    RHYMES,
    Judged,
    LyricExample,
    add_section,
    check_pattern_text,
    derive_pattern,
    load_examples,
    score_lyrics,
    show,
    spoken,
)
from music_evals.ui.spaces.words_muchin import LYRICS_WORDS
from music_evals.ui.widgets.lyric_view import VIEW_CSS

if TYPE_CHECKING:
    import gradio as gr

__all__ = ["build_demo"]


def build_demo(examples: str | os.PathLike[str]) -> gr.Blocks:
    """Build the page.

    Parameters
    ----------
    examples
        File of examples, see `load_examples`.

    Returns
    -------
    gr.Blocks
        Not launched.

    Raises
    ------
    NoDataError
        The file holds no example.
    MusicEvalsError
        As `load_examples`.

    """
    known = load_examples(examples)
    if not known:
        msg = f"{examples} holds no example; the page starts with the first"
        raise NoDataError(msg)
    import gradio as gr

    t = LYRICS_WORDS("en")
    with space(f"🎤 {t('title')} · {LYRICS_WORDS('zh')('title')}", "", words=LYRICS_WORDS) as page:
        parts: list[tuple[Any, Mapping[str, str]]] = []
        bar = gr.Row()
        parts.append((gr.Markdown(t("intro")), {"value": "intro"}))
        fields = _inputs(known, parts)
        outputs = _outputs(parts)
        with bar:
            language = language_switch(LYRICS_WORDS, parts, scale=0, min_width=220)
        _wire(known, fields, outputs, language)
    return page


class _Fields(NamedTuple):
    """Components that are read, and buttons."""

    example: Any
    use: Any
    lyrics: Any
    pattern: Any
    told: Any
    remark: Any
    derive: Any
    kind: Any
    n_lines: Any
    n_characters: Any
    rhymes: Any
    add: Any
    variant: Any
    rhyme: Any
    normalise: Any
    score: Any
    cancel: Any


class _Outputs(NamedTuple):
    """Components that a score fills, in the order of `score_lyrics`."""

    judged: Any
    values: Any
    score: Any
    lines: Any
    lost: Any
    changes: Any
    python: Any
    shell: Any
    json_file: Any
    csv_file: Any
    receipt: Any


def _inputs(known: Sequence[LyricExample], parts: list[tuple[Any, Mapping[str, str]]]) -> _Fields:
    import gradio as gr

    t = LYRICS_WORDS("en")

    def part(component: Any, **keys: str) -> Any:
        parts.append((component, keys))
        return component

    first = known[0]
    with gr.Row(equal_height=True):
        titles = [(example.titles["en"], example.name) for example in known]
        example = part(gr.Dropdown(titles, value=first.name, label=t("example"), elem_id="example"), label="example")
        use = part(gr.Button(t("use_example"), elem_id="use_example", scale=0, min_width=180), value="use_example")
    with gr.Row():
        size: dict[str, Any] = {"lines": 14, "max_lines": 24, "max_length": MAX_CHARACTERS, "min_width": 300}
        lyrics = part(gr.Textbox(first.lyrics, label=t("lyrics"), elem_id="lyrics", **size), label="lyrics")
        with gr.Column(min_width=300):
            pattern = part(gr.Textbox(first.pattern, label=t("pattern"), elem_id="pattern", **size), label="pattern")
            told = gr.HTML(check_pattern_text(first.pattern), css_template=VIEW_CSS, elem_id="pattern_told")
            remark = gr.HTML("", css_template=VIEW_CSS, elem_id="pattern_remark")
            derive = part(gr.Button(t("derive"), elem_id="derive", size="sm"), value="derive")
            with part(gr.Accordion(t("section_tools"), open=False, elem_id="tools"), label="section_tools"):
                with gr.Row():
                    kinds = [(t(_kind_key(name)), name) for name in KINDS]
                    kind = part(gr.Dropdown(kinds, value="verse", label=t("kind"), min_width=120), label="kind")
                    n_lines = part(
                        gr.Number(
                            4, label=t("n_lines"), minimum=1, maximum=MAX_SECTION_LINES, precision=0, min_width=90
                        ),
                        label="n_lines",
                    )
                    n_characters = part(
                        gr.Number(7, label=t("n_characters"), minimum=1, maximum=40, precision=0, min_width=90),
                        label="n_characters",
                    )
                    ways = [(t(f"rhymes_{name}"), name) for name in RHYMES]
                    rhymes = part(gr.Dropdown(ways, value="even", label=t("rhymes"), min_width=120), label="rhymes")
                add = part(gr.Button(t("add_section"), elem_id="add_section", size="sm"), value="add_section")
    with gr.Row():
        variants = [(t(f"variant_{name}"), name) for name in VARIANTS]
        variant = part(gr.Dropdown(variants, value="official", label=t("variant"), elem_id="variant"), label="variant")
        methods = [(t(f"rhyme_{name}"), name) for name in METHODS]
        rhyme = part(gr.Dropdown(methods, value="official", label=t("rhyme"), elem_id="rhyme"), label="rhyme")
    normalise = part(gr.Checkbox(value=True, label=t("normalise"), elem_id="normalise"), label="normalise")
    with gr.Row():
        score = part(gr.Button(t("score_button"), variant="primary", elem_id="score"), value="score_button")
        cancel = part(gr.Button(t("cancel"), elem_id="cancel", scale=0, min_width=120), value="cancel")
    return _Fields(
        example, use, lyrics, pattern, told, remark, derive, kind, n_lines, n_characters, rhymes, add, variant, rhyme,
        normalise, score, cancel,
    )  # fmt: skip


def _kind_key(name: str) -> str:
    return "intro_kind" if name == "intro" else name


def _outputs(parts: list[tuple[Any, Mapping[str, str]]]) -> _Outputs:
    import gradio as gr

    t = LYRICS_WORDS("en")
    judged = gr.State(None, time_to_live=RETENTION_SEC)
    views = []
    with gr.Tabs():
        for key in ("tab_score", "tab_lines", "tab_lost", "tab_changes"):
            with gr.Tab(t(key), id=key, elem_id=key, render_children=True) as tab:
                views.append(gr.HTML("", css_template=VIEW_CSS, elem_id=key.replace("tab", "view")))
            parts.append((tab, {"label": key}))
    json_file, csv_file = downloads_panel()
    parts += [(json_file, {"label": "json"}), (csv_file, {"label": "csv"})]
    python, shell = code_panel(f"{t('code')} · {LYRICS_WORDS('zh')('code')}")
    with gr.Accordion(t("values"), open=False, elem_id="values") as values_panel:
        values = gr.JSON(show_label=False)
    with gr.Accordion(t("receipt"), open=False, elem_id="receipt") as receipt_panel:
        receipt = gr.HTML("")
    parts += [(values_panel, {"label": "values"}), (receipt_panel, {"label": "receipt"})]
    score, lines, lost, changes = views
    return _Outputs(judged, values, score, lines, lost, changes, python, shell, json_file, csv_file, receipt)


def _wire(known: Sequence[LyricExample], fields: _Fields, outputs: _Outputs, language: Any) -> None:
    by_name = {example.name: example for example in known}

    def take(name: str) -> tuple[str, str, str]:
        return by_name[name].lyrics, by_name[name].pattern, ""

    def turn(judged: Judged | None, pattern: str, spoken: str) -> list[Any]:
        return [*_retitled(known, spoken), check_pattern_text(pattern, spoken), *_again(judged, spoken)]

    quiet: dict[str, Any] = {"queue": False, "show_progress": "hidden"}
    on_click(
        fields.score,
        score_lyrics,
        [fields.lyrics, fields.pattern, fields.variant, fields.rhyme, fields.normalise, language],
        list(outputs),
        name="score",
        cancel=fields.cancel,
    )
    on_click(
        fields.derive,
        _in_language(derive_pattern),
        [fields.lyrics, fields.rhyme, fields.normalise, language],
        [fields.pattern, fields.remark],
        name="derive_pattern",
    )
    built = [fields.pattern, fields.kind, fields.n_lines, fields.n_characters, fields.rhymes, language]
    on_click(fields.add, _in_language(add_section), built, [fields.pattern, fields.remark], name="add_section")
    texts = [fields.lyrics, fields.pattern, fields.remark]
    fields.use.click(take, fields.example, texts, api_visibility="private", **quiet)
    fields.pattern.change(
        check_pattern_text, [fields.pattern, language], fields.told, api_name="check_pattern",
        trigger_mode="always_last", **quiet,
    )  # fmt: skip
    switched = [fields.example, fields.kind, fields.rhymes, fields.variant, fields.rhyme, fields.told]
    views = [outputs.score, outputs.lines, outputs.lost, outputs.changes]
    language.change(
        turn, [outputs.judged, fields.pattern, language], [*switched, *views], api_visibility="private",
        show_progress="hidden",
    )  # fmt: skip


def _in_language(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a callback, whose last argument is the language, say its errors in it."""

    @functools.wraps(function)
    def answer(*values: Any) -> Any:
        with spoken(values[-1]):
            return function(*values)

    return answer


def _retitled(known: Sequence[LyricExample], language: str) -> list[Any]:
    """Return the choices of all lists in a language."""
    import gradio as gr

    t = LYRICS_WORDS(language)
    lists = [
        [(example.titles[language], example.name) for example in known],
        [(t(_kind_key(name)), name) for name in KINDS],
        [(t(f"rhymes_{name}"), name) for name in RHYMES],
        [(t(f"variant_{name}"), name) for name in VARIANTS],
        [(t(f"rhyme_{name}"), name) for name in METHODS],
    ]
    return [gr.update(choices=choices) for choices in lists]


def _again(judged: Judged | None, language: str) -> Sequence[Any]:
    """Return the views of a score in another language, or nothing new."""
    import gradio as gr

    return show(judged, language) if judged is not None else [gr.skip()] * 4
