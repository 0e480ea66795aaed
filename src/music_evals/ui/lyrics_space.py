"""The page that scores the structure of lyrics: texts in, points by level, rhyme marks and losses out.

What a button does is a plain function here, which needs no browser; what it looks like is in `ui.lyric_view`.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from music_evals.annotations import LyricSection, sections_text
from music_evals.benchmark.manifests import json_lines
from music_evals.benchmark.versions import package_versions
from music_evals.errors import (
    InvalidInputError,
    InvalidLyricsError,
    InvalidPatternError,
    MusicEvalsError,
    NoDataError,
    UnknownNameError,
)
from music_evals.lyrics.normalise import STEPS, Normalised, normalise_lyrics
from music_evals.lyrics.patterns import check_pattern, mark_lyrics, read_pattern, split_sections
from music_evals.lyrics.rhyme import METHODS, rhyme_function
from music_evals.metrics.lyric_structure import VARIANTS
from music_evals.pipelines.lyrics import SCORES, LyricStructure, lyric_structure, scores_of
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
from music_evals.ui.lyric_view import (
    VIEW_CSS,
    changes_html,
    escape,
    line_rows,
    lines_html,
    losses_html,
    pattern_counts,
    score_html,
)
from music_evals.ui.words_muchin import LYRICS_WORDS, said_in

if TYPE_CHECKING:
    import gradio as gr

__all__ = [
    "KINDS",
    "MAX_CHARACTERS",
    "MAX_LINES",
    "Judged",
    "LyricExample",
    "add_section",
    "build_demo",
    "check_pattern_text",
    "code_of",
    "derive_pattern",
    "judge",
    "load_examples",
    "results_of",
    "score_lyrics",
    "show",
]

MAX_CHARACTERS: Final = 6000  # of a field; the longest released song has about 1,500
MAX_LINES: Final = 300
MAX_SECTION_LINES: Final = 40
MAX_LINE_CHARACTERS: Final = 40
KINDS: Final = ("intro", "verse", "pre-chorus", "chorus", "interlude", "bridge", "ending")
RHYMES: Final = ("none", "even", "all")
PACKAGES: Final = ("music_evals", "jieba", "opencc", "pypinyin", "pypinyin-dict")


class LyricExample(NamedTuple):
    """Lyrics and the pattern that was asked for."""

    name: str
    titles: Mapping[str, str]
    """Language -> title."""
    lyrics: str
    pattern: str


class Judged(NamedTuple):
    """Lyrics that were scored, and how."""

    lyrics: str
    pattern: str
    variant: str
    rhyme: str
    read: Normalised | None
    """What the normaliser made of the lyrics; None where it was off."""
    score: LyricStructure

    @property
    def options(self) -> dict[str, Any]:
        """Options of `lyric_structure`."""
        normalise = self.read is not None
        return {"variant": self.variant, "rhyme": self.rhyme, "normalise": normalise, "strict": True}


def load_examples(path: str | os.PathLike[str]) -> list[LyricExample]:
    """Read examples from JSON lines ``{"name", "en", "zh", "lyrics", "pattern"}``.

    Raises
    ------
    NoDataError, UnreadableFileError
        No such file, or it cannot be read.
    InvalidInputError
        A line lacks one of these.

    """
    found = []
    for number, row in json_lines(Path(path)):
        missing = [key for key in ("name", "en", "zh", "lyrics", "pattern") if not isinstance(row.get(key), str)]
        if missing:
            msg = f"{path}, line {number}: no text in {', '.join(missing)}; an example has all of them"
            raise InvalidInputError(msg)
        titles = {"en": row["en"], "zh": row["zh"]}
        found.append(LyricExample(row["name"], titles, row["lyrics"], row["pattern"]))
    return found


def judge(
    lyrics: str,
    pattern: str,
    variant: str = "official",
    rhyme: str = "official",
    *,
    normalise: bool = True,
    progress: Callable[[float, str], Any] | None = None,
    language: str = "en",
) -> Judged:
    """Score typed lyrics against a typed pattern.

    Parameters
    ----------
    lyrics, pattern
        Texts of at most `MAX_CHARACTERS` characters and `MAX_LINES` lines.
    variant, rhyme, normalise
        Options of `music_evals.pipelines.lyrics.lyric_structure`.
    progress
        Called with a share and a word for each stage.
    language
        Of these words.

    Raises
    ------
    InvalidLyricsError, InvalidPatternError
        A text over the limits, or that cannot be scored.
    UnknownNameError
        Another variant or rhyme method.
    MissingBackendError
        The packages for rhymes are not installed.

    """
    t = LYRICS_WORDS(language)
    wanted = _one_line_end(pattern).strip("\n")
    given = _one_line_end(lyrics).rstrip("\n")
    _check_size(given, "lyrics", InvalidLyricsError)
    _check_size(wanted, "pattern", InvalidPatternError)
    if rhyme not in METHODS:
        raise UnknownNameError("rhyme method", rhyme, METHODS)
    if progress is not None:
        progress(0.1, t("stage_read"))
    read = normalise_lyrics(given) if normalise else None
    if progress is not None:
        progress(0.4, t("stage_score"))
    score = lyric_structure(wanted, given if read is None else read.text, variant=variant, rhyme=rhyme)
    return Judged(given, wanted, variant, rhyme, read, score)


def results_of(judged: Judged) -> dict[str, Any]:
    """Return scores, ratios, lines and options as JSON can hold them."""
    score = judged.score
    return {
        "scores": scores_of(score),
        "ranges": {name: [info.low, info.high] for name, info in SCORES.items()},
        "direction": "higher is better",
        "ratios": {level.name: level.ratio for level in score.levels},
        "notes": list(score.notes),
        "changes": [] if judged.read is None else list(judged.read.changes),
        "options": judged.options,
        "lyrics": judged.lyrics,
        "scored_lyrics": judged.lyrics if judged.read is None else judged.read.text,
        "pattern": judged.pattern,
        "lines": line_rows(score),
        "versions": package_versions(PACKAGES),
    }


def code_of(judged: Judged) -> tuple[str, str]:
    """Return Python and a command line that give the same score."""
    options = ", ".join(f"{name}={value!r}" for name, value in judged.options.items())
    python = (
        "from music_evals.pipelines.lyrics import lyric_structure\n\n"
        f"lyrics = {_literal(judged.lyrics)}\npattern = {_literal(judged.pattern)}\n"
        f"score = lyric_structure(pattern, lyrics, {options})\n"
        'print(score.total)\nprint("\\n".join(score.explain()))\n'
    )
    normalise = "" if judged.read is not None else " --no-normalise"
    shell = (
        f"printf %s {shlex.quote(judged.lyrics)} > lyrics.txt\n"  # a newline at the end would count
        f"printf %s {shlex.quote(judged.pattern)} > pattern.txt\n"
        "music-evals lyrics --reference pattern.txt --generated lyrics.txt --out results/lyrics \\\n"
        f"  --variant {judged.variant} --rhyme {judged.rhyme} --strict{normalise}\n"
    )
    return python, shell


def show(judged: Judged, language: str) -> tuple[str, str, str, str]:
    """Return the four views of a score as HTML: levels, lines, losses, changes of the normaliser."""
    t = LYRICS_WORDS(language)
    find = rhyme_function(judged.rhyme)
    views = score_html(judged.score, t), lines_html(judged.score, t, find), losses_html(judged.score, t)
    return *views, changes_html(judged.read, t)


def check_pattern_text(pattern: str, language: str = "en") -> str:
    """Return as HTML whether a pattern is in the grammar: its counts, or the first error with its line and column."""
    t = LYRICS_WORDS(language)
    pattern = _one_line_end(pattern).strip("\n")
    if len(pattern) > MAX_CHARACTERS:
        return _told(t("pattern_too_long", n=len(pattern), most=MAX_CHARACTERS), good=False)
    try:
        sections = read_pattern(pattern)
    except InvalidPatternError as error:
        return _pattern_error(pattern, str(error), language)
    return _told(t("pattern_good", **pattern_counts(sections)), good=True)


def derive_pattern(
    lyrics: str,
    rhyme: str = "official",
    normalise: bool = True,  # noqa: FBT001, FBT002  (a page gives its fields in their order)
    language: str = "en",
) -> tuple[str, str]:
    """Return the pattern of lyrics, with rhymes marked, and a remark as HTML.

    Symbols that are no Chinese characters have no place in a pattern: they are left out, and the remark tells how many.

    Raises
    ------
    InvalidLyricsError
        Lyrics over the limits, or without a section header.
    UnknownNameError, MissingBackendError
        As `judge`.

    """
    t = LYRICS_WORDS(language)
    text = _one_line_end(lyrics)
    _check_size(text, "lyrics", InvalidLyricsError)
    if rhyme not in METHODS:
        raise UnknownNameError("rhyme method", rhyme, METHODS)
    if normalise:
        text = normalise_lyrics(text).text
    marked = mark_lyrics(text, rhyme)
    if not marked.labels:
        raise InvalidLyricsError("the lyrics have no section header, a word in round brackets as (verse)")
    sections = [
        LyricSection(label, tuple(filter(None, map(_plain_pattern, lines))))
        for label, lines in zip(marked.labels, marked.lines, strict=True)
    ]
    foreign = sum(len(re.findall(r"[^cR\s]", line)) for lines in marked.lines for line in lines)
    remark = t("derived") + (f" {t('derived_foreign', n=foreign)}" if foreign else "")
    return sections_text(sections), _told(remark, good=True)


def add_section(  # noqa: PLR0917  (a page gives its fields in their order)
    pattern: str, kind: str, n_lines: float, n_characters: float, rhymes: str, language: str = "en"
) -> tuple[str, str]:
    """Return a pattern with one more section at its end, and a remark as HTML.

    Parameters
    ----------
    pattern
        What there is; it may be empty.
    kind
        One of `KINDS`; the section gets the next number of its kind.
    n_lines, n_characters
        1..40 each.
    rhymes
        ``"none"``, ``"even"`` (every second line) or ``"all"``.
    language
        Of the remark.

    Raises
    ------
    UnknownNameError
        Another kind, or way to rhyme.
    InvalidInputError
        A number out of range.
    InvalidPatternError
        The pattern would grow over the limits.

    """
    if kind not in KINDS:
        raise UnknownNameError("kind of section", kind, KINDS)
    if rhymes not in RHYMES:
        raise UnknownNameError("way to rhyme", rhymes, RHYMES)
    lines, characters = _whole(n_lines, "lines", MAX_SECTION_LINES), _whole(n_characters, "characters", 40)
    before = _one_line_end(pattern).rstrip("\n")
    number = 1 + sum(bool(re.fullmatch(rf"{kind}\d*", part.label)) for part in split_sections(before).sections)
    label = f"{kind}{number}"
    rows = ["c" * (characters - 1) + ("R" if _rhymes(at, rhymes) else "c") for at in range(lines)]
    text = "\n".join([*([before] if before else []), f"({label})", *rows])
    _check_size(text, "pattern", InvalidPatternError)
    return text, _told(LYRICS_WORDS(language)("added", label=label), good=True)


def score_lyrics(  # noqa: PLR0917  (a page gives its fields in their order)
    lyrics: str,
    pattern: str,
    variant: str = "official",
    rhyme: str = "official",
    normalise: bool = True,  # noqa: FBT001, FBT002  (a page gives its fields in their order)
    language: str = "en",
    progress: Callable[[float, str], Any] | None = None,
) -> tuple[Any, ...]:
    """Score lyrics against the structure that was asked for.

    Args:
        lyrics: headers such as (verse), one phrase a line.
        pattern: the same headers, lines of c, R and spaces.
        variant: official or paper.
        rhyme: official, line or char.
        normalise: read the lyrics as language models write them.
        language: en or zh.
        progress: called with a share and a word for each stage.

    """
    with _spoken(language):
        judged = judge(lyrics, pattern, variant, rhyme, normalise=normalise, progress=progress, language=language)
        views = show(judged, language)
    if progress is not None:
        progress(0.9, LYRICS_WORDS(language)("stage_write"))
    results = results_of(judged)
    rows = [{**row, "variant": variant, "rhyme_method": rhyme} for row in results["lines"]]
    files = write_downloads(results, rows, name="lyrics")
    receipt = {
        "score": "lyric_structure (MuChin)",
        "lyric_structure": f"{judged.score.total:.4f} of 110",
        **judged.options,
        "normaliser changed": 0 if judged.read is None else len(judged.read.changes),
        "versions": results["versions"],
    }
    return judged, results, *views, *code_of(judged), *files, receipt_html(receipt)


@contextlib.contextmanager
def _spoken(language: str) -> Iterator[None]:
    """Say errors of the library in the language of the page."""
    try:
        yield
    except MusicEvalsError as error:
        said = said_in(language, str(error))
        if said == str(error):
            raise
        raise InvalidInputError(said) from error


def _one_line_end(text: str) -> str:
    """Return text with the line ends that patterns have; browsers send others."""
    return (text or "").replace("\r\n", "\n").replace("\r", "\n")


def _check_size(text: str, what: str, error: type[InvalidInputError]) -> None:
    n_lines = STEPS["line breaks"](text).count("\n") + 1  # some write line ends as text
    for n, unit, most in ((len(text), "characters", MAX_CHARACTERS), (n_lines, "lines", MAX_LINES)):
        if n > most:
            msg = f"the {what} are too long: {n} {unit}, at most {most}"
            raise error(msg)


def _whole(value: float, what: str, most: int) -> int:
    if not isinstance(value, int | float) or not math.isfinite(value) or value != int(value) or not 1 <= value <= most:
        msg = f"{what} must be a whole number of 1..{most}, got {value}"
        raise InvalidInputError(msg)
    return int(value)


def _rhymes(at: int, how: str) -> bool:
    return how == "all" or (how == "even" and at % 2 == 1)


def _plain_pattern(line: str) -> str:
    return " ".join("".join(sign if sign in "cR" else " " if sign.isspace() else "" for sign in line).split())


def _pattern_error(pattern: str, message: str, language: str) -> str:
    """Return an error of a pattern, with the line it is in and a caret below the place."""
    t = LYRICS_WORDS(language)
    found = re.fullmatch(r"pattern, line (\d+), column (\d+): (.+)", message, re.DOTALL)
    if found is None:
        return _told(said_in(language, message), good=False)
    line, column = int(found[1]), int(found[2])
    told = t("pattern_error", line=line, column=column, what=said_in(language, found[3]))
    lines = pattern.split("\n")
    shown = lines[line - 1] if line <= len(lines) else ""
    at = min(column - 1, 60)
    start = max(0, column - 1 - at)
    code = f"<code>{escape(shown[start : start + 80])}\n{' ' * at}^</code>"
    try:
        check_pattern(pattern)
    except InvalidPatternError:
        return _told(told, good=False, more=code)
    return _told(told, good=False, more=f"{code}<p>{escape(t('pattern_remark'))}</p>")


def _told(text: str, *, good: bool, more: str = "") -> str:
    kind, sign = ("good", "✓") if good else ("bad", "✗")
    return f'<div class="ly"><div class="ly-{kind}" role="status">{sign} {escape(text)}{more}</div></div>'


def _literal(text: str) -> str:
    """Return Python that builds a text, one line of it a line."""
    rows = "\n".join(f"    {line!r}," for line in text.split("\n"))
    return f'"\\n".join([\n{rows}\n])'


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
        with _spoken(values[-1]):
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
