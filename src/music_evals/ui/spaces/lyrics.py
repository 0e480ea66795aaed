"""The page that scores the structure of lyrics: texts in, points by level, rhyme marks and losses out.

What a button does is a plain function of `lyric_scoring`; what it looks like is in `ui.widgets.lyric_view`.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from music_evals.errors import InvalidInputError, InvalidLyricsError, ModelUnavailableError, NoDataError
from music_evals.lyrics.prompts import lyric_prompt
from music_evals.lyrics.rhyme import METHODS
from music_evals.metrics.lyric_structure import VARIANTS
from music_evals.protocols import WRITERS, LyricWriter, load_plugin
from music_evals.ui.assets import style
from music_evals.ui.frame import RETENTION_SEC, Progress, follow, no_progress, on_click, space
from music_evals.ui.gpu import on_gpu
from music_evals.ui.spaces import lyric_scoring as scoring
from music_evals.ui.spaces.lyric_scoring import MAX_CHARACTERS
from music_evals.ui.spaces.spoken_parts import PRIVATE, Parts
from music_evals.ui.spaces.words_muchin import LYRICS_WORDS

if TYPE_CHECKING:
    import gradio as gr

VARIABLE: Final = "MUSIC_EVALS_WRITER"
MAX_THEME: Final = 300  # characters
MAX_TOKENS: Final = 1024
TOKEN_SEC: Final = 0.05  # on a graphics card


def writer_place(environment: Mapping[str, str] | None = None) -> tuple[str, str | None] | None:
    """Return folder or id of the model that the owner of the page names, and its commit; None where none is named.

    Raises `InvalidInputError`: an id without a commit: its weights could change.
    """
    named = (os.environ if environment is None else environment).get(VARIABLE, "").strip()
    if not named:
        return None
    if os.path.isdir(named):  # noqa: PTH112  (a text of the environment)
        return named, None
    source, _, revision = named.partition("@")
    if not (source and revision):
        raise InvalidInputError(f"{VARIABLE}: expected a folder or ID@COMMIT, got {named!r}")
    return source, revision


def written_lyrics(
    theme: str, pattern: str, seed: float = 0, language: str = "en", progress: Progress = no_progress
) -> str:
    """Return the lyrics that the page's model writes for a theme and a pattern, as it wrote them.

    Args:
        theme: what the song is about.
        pattern: headers such as (verse), lines of c, R and spaces.
        seed: a whole number from 0; another one gives other lyrics.
        language: en or zh.
        progress: called with a share and a word for each stage.

    Raises `ModelUnavailableError`: no model is named, or it cannot be loaded; `InvalidLyricsError` and
    `InvalidPatternError`: no theme, or too long a one; an invalid pattern.
    """
    t = LYRICS_WORDS(language)
    place = writer_place()
    if place is None:
        raise ModelUnavailableError(t("no_writer", variable=VARIABLE))
    if not theme.strip() or len(theme) > MAX_THEME:
        raise InvalidLyricsError(t("theme_size", most=MAX_THEME))
    prompt = lyric_prompt(theme.strip(), pattern)
    progress(0.1, t("stage_write_lyrics"))
    _writer(*place)  # in this process, before a card is taken
    return _answer(place, prompt, int(seed or 0))[:MAX_CHARACTERS]


@on_gpu(lambda *_: MAX_TOKENS, call_sec=TOKEN_SEC)
def _answer(place: tuple[str, str | None], prompt: str, seed: int) -> str:
    return _writer(*place).write([prompt], seed=seed)[0].text


@functools.lru_cache(maxsize=1)
def _writer(source: str, revision: str | None) -> LyricWriter:
    make = load_plugin(WRITERS, "transformers", "writer")
    writer = make(source, revision=revision, max_new_tokens=MAX_TOKENS, template_options={"enable_thinking": False})
    writer.load()
    return cast("LyricWriter", writer)


VIEWS = ("score", "lines", "lost", "changes")


def build_demo(examples: str | os.PathLike[str]) -> gr.Blocks:
    """Build the page, which starts with the first of a file of examples (see `load_examples`)."""
    import gradio as gr

    known = scoring.load_examples(examples)
    if not known:
        raise NoDataError(f"{examples} holds no example; the page starts with the first")

    title = " · ".join(LYRICS_WORDS(language)("title") for language in LYRICS_WORDS.languages)
    with space(f"🎤 {title}", "", words=LYRICS_WORDS) as page:
        parts = Parts(LYRICS_WORDS)
        bar = gr.Row()
        parts.add_intro()
        _add_texts(parts, known)
        with (
            parts.add(gr.Accordion, "write_tools", open=False, visible=bool(writer_place()), elem_id="writing"),
            gr.Row(),
        ):
            parts.add(gr.Textbox, "theme", max_length=MAX_THEME, min_width=300)
            parts.add(gr.Number, "seed", value=0, precision=0, minimum=0, min_width=90)
            parts.add(gr.Button, "write", scale=0, min_width=180)
        with gr.Row():
            parts.add(gr.Dropdown, "variant", choices=_choices(VARIANTS, "variant_"), value="official", min_width=260)
            parts.add(gr.Dropdown, "rhyme", choices=_choices(METHODS, "rhyme_"), value="official", min_width=260)
        parts.add(gr.Checkbox, "normalise", value=True)
        with gr.Row():
            parts.add(gr.Button, "score_button", elem_id="score", variant="primary")
            parts.add(gr.Button, "cancel", scale=0, min_width=120)
        parts["scored"] = gr.State(None, time_to_live=RETENTION_SEC)
        with gr.Tabs():
            for name, empty in zip(VIEWS, scoring.show(None, "en"), strict=True):
                with parts.add(gr.Tab, f"tab_{name}", id=f"tab_{name}", render_children=True):
                    parts[name] = gr.HTML(empty, css_template=style("lyrics"), elem_id=f"view_{name}")
        parts.add_results()
        with bar:
            parts.add_switch()
        _wire_score(parts, _wire_texts(parts, known))
    return page


def _wire_score(parts: Parts, filled: Sequence[Any]) -> None:
    """Wire the score; it goes when what was scored is changed, and its views follow the language."""
    import gradio as gr

    views, rest = parts.pick(*VIEWS), ("python", "shell", "json", "csv", "receipt")
    outputs = [*parts.pick("scored", "values"), *views, *parts.pick(*rest)]
    texts, options = parts.pick("lyrics", "pattern"), parts.pick("variant", "rhyme", "normalise")
    score_event = on_click(
        parts["score_button"], scoring.score_lyrics, [*texts, *options, parts["language"]], outputs, name="score",
        cancel=parts["cancel"],
    )  # fmt: skip
    # what a model wrote is put into the lyrics, and scored
    inputs = [*parts.pick("theme", "pattern", "seed"), *options, parts["language"]]
    written = on_click(
        parts["write"], write_and_score, inputs, [parts["lyrics"], *outputs], name="write", cancel=parts["cancel"]
    )
    shown = parts["language"].change(
        # what was emptied stays empty
        lambda scored, values, language: scoring.show(scored if values else None, language),
        parts.pick("scored", "values", "language"),
        views,
        **PRIVATE,
    )
    parts.empty_when([*texts, *options], lambda language: _empty(language)[1:], outputs[1:], filled=filled)
    gr.on([parts["lyrics"].change], None, cancels=[score_event, shown], **PRIVATE)
    changed = [parts["pattern"].change, *(part.input for part in options)]
    gr.on(changed, None, cancels=[score_event, written, shown], **PRIVATE)


def _choices(names: Sequence[str], prefix: str = "") -> Callable[[str], list[tuple[str, str]]]:
    """Return the function from a language to the entries of a list."""

    def tell(language: str) -> list[tuple[str, str]]:
        t = LYRICS_WORDS(language)
        return [(t("intro_kind" if name == "intro" else f"{prefix}{name}"), name) for name in names]

    return tell


def _add_texts(parts: Parts, known: Sequence[scoring.LyricExample]) -> None:
    """Add examples, lyrics, and the pattern with its tools."""
    import gradio as gr

    first, view = known[0], {"css_template": style("lyrics")}
    with gr.Row(equal_height=True):
        parts.add(
            gr.Dropdown,
            "example",
            choices=lambda language: [(example.titles[language], example.name) for example in known],
            value=first.name,
        )
        parts.add(gr.Button, "use_example", scale=0, min_width=180)
    size: dict[str, Any] = {"lines": 14, "max_lines": 24, "max_length": scoring.MAX_CHARACTERS, "min_width": 300}
    with gr.Row():
        parts.add(gr.Textbox, "lyrics", value=first.lyrics, **size)
        with gr.Column(min_width=300):
            parts.add(gr.Textbox, "pattern", value=first.pattern, **size)
            parts["told"] = gr.HTML(scoring.check_pattern_text(first.pattern), elem_id="pattern_text", **view)
            parts["remark"] = gr.HTML("", elem_id="pattern_remark", **view)
            parts.add(gr.Button, "derive", size="sm")
            with parts.add(gr.Accordion, "section_tools", open=False, elem_id="tools"):
                with gr.Row():
                    whole: dict[str, Any] = {"minimum": 1, "precision": 0, "min_width": 90}
                    parts.add(gr.Dropdown, "kind", choices=_choices(scoring.KINDS), value="verse", min_width=120)
                    parts.add(gr.Number, "n_lines", value=4, maximum=scoring.MAX_SECTION_LINES, **whole)
                    parts.add(gr.Number, "n_characters", value=7, maximum=scoring.MAX_LINE_CHARACTERS, **whole)
                    parts.add(
                        gr.Dropdown, "rhymes", choices=_choices(scoring.RHYMES, "rhymes_"), value="even", min_width=120
                    )
                parts.add(gr.Button, "add_section", size="sm")


def _wire_texts(parts: Parts, known: Sequence[scoring.LyricExample]) -> list[Any]:
    """Wire examples, the check of a pattern, and what builds one; return the events that fill texts."""
    by_name = {example.name: example for example in known}

    built, language = parts.pick("pattern", "remark"), parts["language"]
    taken = parts["use_example"].click(
        lambda name: (by_name[name].lyrics, by_name[name].pattern, ""),
        parts["example"], [parts["lyrics"], *built], queue=False, **PRIVATE,
    )  # fmt: skip
    read = [*parts.pick("lyrics", "rhyme", "normalise"), language]
    derived = on_click(parts["derive"], _in_language(scoring.derive_pattern), read, built, name="derive_pattern")
    wanted = [*parts.pick("pattern", "kind", "n_lines", "n_characters", "rhymes"), language]
    added = on_click(parts["add_section"], _in_language(scoring.add_section), wanted, built, name="add_section")
    follow(
        [parts["pattern"].change, language.change], scoring.check_pattern_text, [parts["pattern"], language],
        parts["told"],
        queue=False, api_name="check_pattern", api_visibility="public", show_progress="hidden",
    )  # fmt: skip
    return [taken, derived, added]


def _empty(language: str) -> tuple[Any, ...]:
    """Return what is shown while there is no score."""
    return None, None, *scoring.show(None, language), "", "", None, None, ""


def write_and_score(  # noqa: PLR0917  (a page gives its fields in their order)
    theme: str,
    pattern: str,
    seed: float = 0,
    variant: str = "official",
    rhyme: str = "official",
    normalise: bool = True,  # noqa: FBT001, FBT002
    language: str = "en",
    progress: Progress = no_progress,
) -> tuple[Any, ...]:
    """Let the page's model write lyrics for a theme and a pattern, and score them.

    Args:
        theme: what the song is about.
        pattern: headers such as (verse), lines of c, R and spaces.
        seed: a whole number from 0; another one gives other lyrics.
        variant: official or paper.
        rhyme: official, line or char.
        normalise: read the lyrics as language models write them.
        language: en or zh.
        progress: called with a share and a word for each stage.
    """
    import gradio as gr

    with scoring.spoken(language):
        lyrics = written_lyrics(theme, pattern, seed, language, progress)
    try:
        return lyrics, *scoring.score_lyrics(lyrics, pattern, variant, rhyme, normalise, language)
    except InvalidInputError as error:  # no lyrics, such as a text without a header: shown all the same
        gr.Warning(str(error))
        return lyrics, *_empty(language)


def _in_language(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a callback, whose last argument is the language, say its errors in it."""

    @functools.wraps(function)
    def answer(*values: Any) -> Any:
        with scoring.spoken(values[-1]):
            return function(*values)

    return answer
