"""What the page of lyrics does: read, score, explain and build patterns; plain functions that need no browser."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from music_evals.annotations import LyricSection, sections_text
from music_evals.benchmark.inputs import json_lines
from music_evals.errors import InvalidInputError, InvalidLyricsError, InvalidPatternError, UnknownNameError
from music_evals.lyrics.normalise import STEPS, Normalised, normalise_lyrics
from music_evals.lyrics.patterns import check_pattern, mark_lyrics, read_pattern, split_sections
from music_evals.lyrics.rhyme import METHODS, rhyme_function
from music_evals.metrics.catalogue import LYRIC_SCORES
from music_evals.numerics import package_versions
from music_evals.pipelines.lyrics import NO_HEADER, LyricStructure, lyric_structure, scores_of
from music_evals.ui.frame import Progress, no_progress, receipt_html, write_downloads
from music_evals.ui.spaces.words_muchin import LYRICS_WORDS, said_in
from music_evals.ui.widgets import lyric_view as view

MAX_CHARACTERS: Final = 6000  # of a field; the longest released song has about 1,500
MAX_LINES: Final = 300
MAX_SECTION_LINES: Final = 40
MAX_LINE_CHARACTERS: Final = 40
KINDS: Final = ("intro", "verse", "pre-chorus", "chorus", "interlude", "bridge", "ending")
RHYMES: Final = ("none", "even", "all")
PACKAGES: Final = ("music_evals", "jieba", "opencc", "pypinyin", "pypinyin-dict")


class LyricExample(NamedTuple):
    """Lyrics and their expected pattern."""

    name: str
    titles: Mapping[str, str]  # language -> title
    lyrics: str
    pattern: str


class ScoredLyrics(NamedTuple):
    """Lyrics that were scored, and how."""

    lyrics: str
    pattern: str
    variant: str
    rhyme: str
    read: Normalised | None  # what the normaliser made of the lyrics; None where it was off
    score: LyricStructure

    @property
    def options(self) -> dict[str, Any]:
        """Options of `lyric_structure`."""
        normalise = self.read is not None
        return {"variant": self.variant, "rhyme": self.rhyme, "normalise": normalise, "strict": True}


def load_examples(path: str | os.PathLike[str]) -> list[LyricExample]:
    """Read examples from JSON lines ``{"name", "en", "zh", "lyrics", "pattern"}``."""
    examples = []
    for number, row in json_lines(Path(path)):
        missing = [key for key in ("name", "en", "zh", "lyrics", "pattern") if not isinstance(row.get(key), str)]
        if missing:
            raise InvalidInputError(
                f"{path}, line {number}: no text in {', '.join(missing)}; an example has all of them"
            )
        titles = {"en": row["en"], "zh": row["zh"]}
        examples.append(LyricExample(row["name"], titles, row["lyrics"], row["pattern"]))
    return examples


def score_text(
    lyrics: str,
    pattern: str,
    variant: str = "official",
    rhyme: str = "official",
    *,
    normalise: bool = True,
    progress: Progress = no_progress,
    language: str = "en",
) -> ScoredLyrics:
    """Score typed lyrics against a typed pattern, texts within the limits; progress is reported in a language."""
    t = LYRICS_WORDS(language)
    target = _one_line_end(pattern).strip("\n")
    text = _one_line_end(lyrics).rstrip("\n")
    _check_size(text, "lyrics", InvalidLyricsError)
    _check_size(target, "pattern", InvalidPatternError)
    if rhyme not in METHODS:
        raise UnknownNameError("rhyme method", rhyme, METHODS)
    progress(0.1, t("stage_read"))
    read = normalise_lyrics(text) if normalise else None
    progress(0.4, t("stage_score"))
    score = lyric_structure(target, text if read is None else read.text, variant=variant, rhyme=rhyme)
    return ScoredLyrics(text, target, variant, rhyme, read, score)


def results_of(scored: ScoredLyrics) -> dict[str, Any]:
    """Return scores, ratios, lines and options as JSON can hold them."""
    score = scored.score
    return {
        "scores": scores_of(score),
        "ranges": {name: [info.low, info.high] for name, info in LYRIC_SCORES.items() if name in scores_of(score)},
        "direction": "higher is better",
        "ratios": {level.name: level.ratio for level in score.levels},
        "notes": list(score.notes),
        "changes": [] if scored.read is None else list(scored.read.changes),
        "options": scored.options,
        "lyrics": scored.lyrics,
        "scored_lyrics": scored.lyrics if scored.read is None else scored.read.text,
        "pattern": scored.pattern,
        "lines": view.line_rows(score),
        "versions": package_versions(PACKAGES),
    }


def code_of(scored: ScoredLyrics) -> tuple[str, str]:
    """Return Python and a command line that give the same score."""
    options = ", ".join(f"{name}={value!r}" for name, value in scored.options.items())
    python = (
        "from music_evals.pipelines.lyrics import lyric_structure\n\n"
        f"lyrics = {_literal(scored.lyrics)}\npattern = {_literal(scored.pattern)}\n"
        f"score = lyric_structure(pattern, lyrics, {options})\n"
        'print(score.total)\nprint("\\n".join(score.explain()))\n'
    )
    normalise = "" if scored.read is not None else " --no-normalise"
    shell = (
        f"printf %s {shlex.quote(scored.lyrics)} > lyrics.txt\n"  # a newline at the end would count
        f"printf %s {shlex.quote(scored.pattern)} > pattern.txt\n"
        "music-evals lyrics --reference pattern.txt --generated lyrics.txt --out results/lyrics \\\n"
        f"  --variant {scored.variant} --rhyme {scored.rhyme} --strict{normalise}\n"
    )
    return python, shell


def show(scored: ScoredLyrics | None, language: str) -> tuple[str, ...]:
    """Return the four views of a score as HTML: levels, lines, losses, changes; before it, what will stand there."""
    t = LYRICS_WORDS(language)
    if scored is None:
        keys = ("empty_score", "empty_lines", "empty_lost", "empty_changes")
        return tuple(view.inert("song_empty.html", text=t(key)) for key in keys)
    find = rhyme_function(scored.rhyme)
    views = (
        view.score_html(scored.score, t),
        view.lines_html(scored.score, t, find),
        view.losses_html(scored.score, t),
    )
    return *views, view.changes_html(scored.read, t)


def check_pattern_text(pattern: str, language: str = "en") -> str:
    """Return as HTML whether a pattern is in the grammar: its counts, or the first error with its line and column.

    Args:
        pattern: headers such as (verse), lines of c, R and spaces.
        language: en or zh.
    """
    t = LYRICS_WORDS(language)
    pattern = _one_line_end(pattern).strip("\n")
    if len(pattern) > MAX_CHARACTERS:
        return _remark(t("pattern_too_long", n=len(pattern), most=MAX_CHARACTERS), good=False)
    try:
        sections = read_pattern(pattern)
    except InvalidPatternError as error:
        return _pattern_error(pattern, str(error), language)
    return _remark(t("pattern_good", **view.pattern_counts(sections)))


def derive_pattern(
    lyrics: str,
    rhyme: str = "official",
    normalise: bool = True,  # noqa: FBT001, FBT002  (a page gives its fields in their order)
    language: str = "en",
) -> tuple[str, str]:
    """Return the pattern of lyrics, with rhymes marked, and a remark as HTML.

    Symbols that are no Chinese characters have no place in a pattern: they are left out, and the remark tells how many.

    Args:
        lyrics: headers such as (verse), one phrase a line.
        rhyme: official, line or char.
        normalise: read the lyrics as language models write them.
        language: en or zh.
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
        raise InvalidLyricsError(NO_HEADER)
    # what has no place in a pattern is left out, and one blank stands for several
    plain = [[" ".join(re.sub(r"[^cR\s]", "", line).split()) for line in lines] for lines in marked.lines]
    sections = [
        LyricSection(label, tuple(filter(None, lines))) for label, lines in zip(marked.labels, plain, strict=True)
    ]
    foreign = sum(len(re.findall(r"[^cR\s]", line)) for lines in marked.lines for line in lines)
    remark = t("derived") + (f" {t('derived_foreign', n=foreign)}" if foreign else "")
    return sections_text(sections), _remark(remark)


def add_section(  # noqa: PLR0917  (a page gives its fields in their order)
    pattern: str, kind: str, n_lines: float, n_characters: float, rhymes: str, language: str = "en"
) -> tuple[str, str]:
    """Return a pattern with one more section at its end, which gets the next number of its kind, and a remark.

    Args:
        pattern: may be empty.
        kind: intro, verse, pre-chorus, chorus, interlude, bridge or ending.
        n_lines: 1 to 40.
        n_characters: of each line, 1 to 40.
        rhymes: none, even or all; the lines that rhyme.
        language: en or zh.
    """
    t = LYRICS_WORDS(language)
    if kind not in KINDS:
        raise UnknownNameError("kind of section", kind, KINDS)
    if rhymes not in RHYMES:
        raise UnknownNameError("way to rhyme", rhymes, RHYMES)
    lines = _whole(n_lines, "n_lines", MAX_SECTION_LINES, t)
    characters = _whole(n_characters, "n_characters", MAX_LINE_CHARACTERS, t)
    before = _one_line_end(pattern).rstrip("\n")
    number = 1 + sum(bool(re.fullmatch(rf"{kind}\d*", part.label)) for part in split_sections(before).sections)
    label = f"{kind}{number}"
    rhyming = {"none": (), "even": range(1, lines, 2), "all": range(lines)}[rhymes]
    rows = ["c" * (characters - 1) + ("R" if at in rhyming else "c") for at in range(lines)]
    text = "\n".join([*([before] if before else []), f"({label})", *rows])
    _check_size(text, "pattern", InvalidPatternError)
    return text, _remark(t("added", label=label))


def score_lyrics(  # noqa: PLR0917  (a page gives its fields in their order)
    lyrics: str,
    pattern: str,
    variant: str = "official",
    rhyme: str = "official",
    normalise: bool = True,  # noqa: FBT001, FBT002  (a page gives its fields in their order)
    language: str = "en",
    progress: Progress = no_progress,
) -> tuple[Any, ...]:
    """Score lyrics against their expected structure.

    Args:
        lyrics: headers such as (verse), one phrase a line.
        pattern: the same headers, lines of c, R and spaces.
        variant: official or paper.
        rhyme: official, line or char.
        normalise: read the lyrics as language models write them.
        language: en or zh.
        progress: called with a share and a word for each stage.
    """
    with spoken(language):
        scored = score_text(lyrics, pattern, variant, rhyme, normalise=normalise, progress=progress, language=language)
        views = show(scored, language)
    progress(0.9, LYRICS_WORDS(language)("stage_write"))
    results = results_of(scored)
    rows = [{**row, "variant": variant, "rhyme_method": rhyme} for row in results["lines"]]
    files = write_downloads(results, rows, name="lyrics")
    receipt = {
        "score": "lyric_structure (MuChin)",
        "lyric_structure": f"{scored.score.total:.4f} of {scored.score.maximum:g}",
        "lyric_structure_corrected": f"{scored.score.corrected_total:.4f} of 100",
        **scored.options,
        "normaliser changed": 0 if scored.read is None else len(scored.read.changes),
        "versions": results["versions"],
    }
    return scored, results, *views, *code_of(scored), *files, receipt_html(receipt)


@contextlib.contextmanager
def spoken(language: str) -> Iterator[None]:
    """Say what the library refuses in the words of the page."""
    try:
        yield
    except InvalidInputError as error:
        translated = said_in(language, str(error))
        if translated == str(error):
            raise
        raise type(error)(translated) from error


def _one_line_end(text: str) -> str:
    """Return text with the line ends that patterns have; browsers send others."""
    return (text or "").replace("\r\n", "\n").replace("\r", "\n")


def _check_size(text: str, kind: str, error: type[InvalidInputError]) -> None:
    """Refuse a text over the limits."""
    n_lines = STEPS["line breaks"](text).count("\n") + 1  # some write line ends as text
    for n, unit, most in ((len(text), "characters", MAX_CHARACTERS), (n_lines, "lines", MAX_LINES)):
        if n > most:
            raise error(f"the {kind} are too long: {n} {unit}, at most {most}")


def _whole(value: float | None, field: str, most: int, t: Callable[..., str]) -> int:
    """Return the number of a field, which visitors may leave empty or fill with anything."""
    if not isinstance(value, int | float) or not float(value).is_integer() or not 1 <= value <= most:
        raise InvalidInputError(t("error_whole", field=t(field), most=most))
    return int(value)


def _pattern_error(pattern: str, message: str, language: str) -> str:
    """Return an error of a pattern, with the line it is in and a caret below the place."""
    t = LYRICS_WORDS(language)
    match = re.fullmatch(r"pattern, line (\d+), column (\d+): (.+)", message, re.DOTALL)
    if match is None:
        return _remark(said_in(language, message), good=False)
    line, column = int(match[1]), int(match[2])
    reported = t("pattern_error", line=line, column=column, what=said_in(language, match[3]))
    lines = pattern.split("\n")
    shown = lines[line - 1] if line <= len(lines) else ""
    at = min(column - 1, 60)
    start = max(0, column - 1 - at)
    code = f"{shown[start : start + 80]}\n{' ' * at}^"
    try:
        check_pattern(pattern)
    except InvalidPatternError:
        return _remark(reported, good=False, code=code)
    return _remark(reported, good=False, code=code, more=t("pattern_remark"))


def _remark(text: str, *, good: bool = True, code: str = "", more: str = "") -> str:
    """Return what is said of a pattern as HTML."""
    return view.inert("lyric_pattern.html", text=text, good=good, code=code, remark=more)


def _literal(text: str) -> str:
    """Return Python that builds a text, one line of it a line."""
    rows = "\n".join(f"    {line!r}," for line in text.split("\n"))
    return f'"\\n".join([\n{rows}\n])'
