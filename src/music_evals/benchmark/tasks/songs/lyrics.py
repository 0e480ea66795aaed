"""The benchmark of structured lyrics from end to end: settings in, result files out.

What language models write around their lyrics is taken off first (`lyrics.normalise`), unless it is asked not to; what
was taken off is a remark.

A text without a section header, or an empty one, scores what the authors' code gives it, 0: a model that does not keep
to the form must not gain by it. The notes of the results count such texts. With `strict` they are failures, and in no
mean.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np

from music_evals.benchmark.formats import Section, counted, format_value, render
from music_evals.benchmark.published import published_lyrics
from music_evals.benchmark.report import Ranked, score_page, shares
from music_evals.benchmark.rows import Pair, PairJob, PairSet, score_or_reason
from music_evals.benchmark.run import NO_EXTRA_OUTPUTS, RECORDS, ExtraOutputs, Outcome, Progress, record, remove_results
from music_evals.benchmark.score_table import ScoreTable
from music_evals.benchmark.task import Task
from music_evals.benchmark.tasks.songs.lyric_scoring import GATED, THEME, LyricScorer
from music_evals.benchmark.tasks.songs.songs import Song, SongSettings, ThemeSettings
from music_evals.benchmark.tasks.songs.text_controls import (
    ANOTHER_SONG,
    CLIMBED,
    ECHO,
    LYRIC_CONTROLS,
    ONE_CHARACTER,
    RANDOM_CHARACTERS,
    RANDOM_WORDS,
    SHUFFLED,
    SHUFFLED_WORDS,
    TRUE_LYRICS,
    against_another,
    against_own,
    asks_for_words,
    pattern_controls,
    shuffled_structures,
    shuffled_words,
    without_another_song,
)
from music_evals.benchmark.tasks.songs.texts import LYRICS as MODALITY
from music_evals.benchmark.tasks.songs.texts import (
    Prediction,
    TextSide,
    pairs_of_predictions,
    read_predictions,
    texts_in_folders,
    texts_in_manifest,
)
from music_evals.errors import InvalidInputError, NoDataError
from music_evals.lyrics.embeddings import load_encoder
from music_evals.lyrics.normalise import FORMAT_FOUND
from music_evals.lyrics.patterns import check_pattern
from music_evals.lyrics.song_formats import AUTO, FORMATS, check_format
from music_evals.metrics.catalogue import LYRIC_CONTENT, LYRIC_SCORES
from music_evals.metrics.lyric_content import gated_structure
from music_evals.options import option
from music_evals.pipelines.lyric_content import DIVERSITY, WORDLIKENESS, word_scores
from music_evals.pipelines.lyrics import (
    EMPTY_TEXT,
    HEADERS_ONLY,
    NO_HEADER,
    WITHOUT_CHINESE,
    lyric_structure,
    score_names,
    scores_of,
)

EXPLAINED = 10
"""Texts that are explained by default: the worst of each system, to equal shares."""

NO_BIGRAM = "no section has two words in a line"
NO_CHARACTER = "the text has no Chinese character"
AT_ONCE = 16
"""Texts that are written down together: each takes milliseconds."""

_TRIAL = "(verse)\nccccc", "```\n(verse)\n春眠不觉晓\n```"
"""A pattern and its text: what is missing for scoring is said before anything runs."""


_NOTHING_TO_SCORE = {
    NO_HEADER: ("texts", "scored 0: no section header was found"),
    EMPTY_TEXT: ("empty texts", "scored 0"),
    HEADERS_ONLY: ("texts", "without a line under the section headers"),
}
"""Note on a text in which there is nothing to score -> what such texts are called, and what became of them."""

_REMOVED = re.compile(r"[\w ]+: (?:'.*'|\".*\")(?: and (?P<more>\d+) more)? removed")
"""What `lyrics.normalise` says of a step that removed lines with words in them."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings(ThemeSettings, SongSettings):
    """What to score, and how; the options of the verb ``lyrics`` by their keywords.

    Texts are predictions for a dataset, lines ``{"id": ..., "text": ...}`` with a ``seed`` where a system made several
    texts for a song, or in its place those of `texts.texts_in_folders` or `texts.texts_in_manifest`. Without
    predictions the controls alone are scored.

    Parameters
    ----------
    variant, rhyme, section_match, accumulate_song, autojunk
        See `pipelines.lyrics.lyric_structure`.
    strict
        Texts that cannot be scored are failures; see the module.
    song_format
        See `music_evals.lyrics.song_formats`; of the texts that are judged, not of the controls.
    numbered
        False leaves the numbers of section headers out, as in the prompts of `lyric_writing`.
    theme_encoder, theme_encoder_revision
        For songs of a dataset, which have themes: compares texts with them, `lyric_theme_similarity`; see
        `lyrics.embeddings.load_encoder`. With None nothing of the kind is computed, and tables say so.
    explained
        To equal shares of the systems, and at least one of each; 0 for none.

    Raises
    ------
    InvalidInputError
        Settings that contradict each other, or a number out of range.
    """

    reference: str | os.PathLike[str] | None = option(
        None, "folder of patterns, one file a song, or one pattern; here or at a URL", group="data", metavar="PATH"
    )
    generated: Sequence[str | os.PathLike[str]] = option(
        (),
        "folder of texts with the same relative paths, or one text; may be given again for other systems",
        group="data",
        metavar="[NAME=]PATH",
    )
    manifest: str | os.PathLike[str] | None = option(
        None,
        "CSV or JSONL with the columns generated and reference, which hold texts, or generated_file and "
        "reference_file, paths below the manifest's folder; and, where wanted, id, group, system",
        group="data",
        metavar="FILE",
    )
    variant: str = option("official", "official (default), corrected or paper; the corrected total stands beside each")
    rhyme: str | None = option(
        None,
        "how rhymes are found: official (default), line, char or words; behind a plus sign the scheme of classes, "
        "xinyun18, shisanzhe, xinyun14 or near, as words+shisanzhe",
    )
    section_match: str = option(
        "initial", "what makes sections the same: initial (default), type or label", metavar="HOW"
    )
    accumulate_song: bool = option(False, "carry the song ratio into all other levels")
    autojunk: bool = option(True, "song level without difflib's heuristic for long sequences; table 1 was made with it")
    strict: bool = option(
        False,
        "texts that cannot be scored, as empty ones and those without a section header, are failures (default: they "
        "score what the variant gives them, without a header 0, and the notes count them)",
    )
    normalise: bool = option(
        True, "score texts as they are, with code fences, remarks and other brackets, for parity with the authors' code"
    )
    song_format: str = option(
        "auto",
        "format of the texts: auto (default), which finds it out, plain, json, lrc, diffrhythm, suno, yue, ace-step or "
        "songgeneration; the notes name what was found",
        flag="--format",
        metavar="NAME",
    )
    numbered: bool = option(
        True,
        "section headers of the dataset without their numbers, as in the prompts of write-lyrics",
        flag="--unnumbered",
    )
    explained: int = option(
        EXPLAINED,
        "texts in report.html whose lost points are explained, the worst of each system (default: %(default)s)",
        group="output",
    )

    GROUPS: ClassVar = {
        **SongSettings.GROUPS, "data": "what is scored (one of --dataset, --reference and --manifest)"
    }  # fmt: skip
    TEXTS: ClassVar = {"seed": "of intervals, tests and controls (default: %(default)s)"}

    BOUNDS: ClassVar = {**SongSettings.BOUNDS, "explained": (0, sys.maxsize)}
    ONE_OF = ("dataset", "reference", "manifest")

    def __post_init__(self) -> None:
        if bool(self.generated) != (self.reference is not None):
            raise InvalidInputError("`reference` and `generated` go together; a manifest or dataset holds the patterns")
        check_format(self.song_format)
        if self.theme_encoder is not None and self.dataset is None:
            raise InvalidInputError("`theme_encoder` compares with the themes of a dataset's songs; give `dataset`")
        if self.theme_encoder is None and self.theme_encoder_revision is not None:
            raise InvalidInputError("`theme_encoder_revision` goes with `theme_encoder`")
        if self.song_format != AUTO and not self.normalise:
            raise InvalidInputError(
                f"the format {self.song_format!r} is read where texts are normalised; leave one out"
            )
        super().__post_init__()

    @property
    def options(self) -> dict[str, Any]:
        """Keyword arguments of `score_lyrics`."""
        names = ("variant", "rhyme", "section_match", "accumulate_song", "autojunk", "strict", "normalise")
        options = {name: getattr(self, name) for name in names}
        named = {} if self.song_format == AUTO else {"song_format": self.song_format}
        return options | {"rhyme": self.rhyme or "official"} | named


class Lyrics(Task):
    """Structured lyrics, against the patterns and themes of their songs."""

    name = "lyrics"
    settings = Settings
    title = "Structured lyrics"
    scales: ClassVar = {**LYRIC_SCORES, **LYRIC_CONTENT}
    packages = ("music_evals", "numpy", "jieba", "pypinyin", "pypinyin-dict", "opencc")
    controls = LYRIC_CONTROLS
    controls_explained = (
        f"{TRUE_LYRICS}: each song's own words against its own pattern, the best that can be expected. "
        f"{ANOTHER_SONG}: the words of the next song of another group. {SHUFFLED}: its own sections in another "
        f"order. {SHUFFLED_WORDS}: its own words in another order. {ECHO}: the pattern itself, handed back without "
        f"a Chinese character. {ONE_CHARACTER}: the same character in all places of the pattern. "
        f"{RANDOM_CHARACTERS}: common ones that rhyme. {RANDOM_WORDS}: words of the dictionary that fit and rhyme. "
        f"{CLIMBED}: the same, changed line by line until words, diversity and repetition are like people's. Only "
        "form is in the points, and these rows tell what it earns without a song. Points are out of 110: song 10, "
        "section 32.5, phrase 17.5, word 20, rhyme 20, reward 10; the corrected total is out of 100, without a "
        "reward, and falls with every edit that the lyrics are away from what was asked for. Gated, it is 0 where "
        "words, diversity or repetition are not like people's, and never above that of the song's true lyrics, "
        "where these are known: order systems by it. Wordlikeness is 0 where as many characters stand in words as "
        "in lyrics by people. Diversity, distinct bigrams of sections, has no direction: compare it with that of "
        "the true lyrics."
    )
    items = "texts"
    remarks = "what was taken off before they were scored"
    extra_keys = ("writing",)

    def run(
        self,
        settings: Settings,
        *,
        made: Sequence[Prediction] | None = None,
        extra: ExtraOutputs = NO_EXTRA_OUTPUTS,
        sections: Sequence[Section] = (),
        progress: Progress | None = None,
    ) -> Outcome:
        """Score all texts and write records, results.json, table.md and report.html."""
        score_lyrics(*_TRIAL, **settings.options | {"song_format": AUTO})
        judged, controls, songs = _pairs(settings, made)
        if not judged.pairs and not judged.failures and not controls:
            raise NoDataError(
                "nothing to score: no texts, and no controls, which are made of songs' patterns and words"
            )
        encoder = (
            None
            if settings.theme_encoder is None
            else load_encoder(settings.theme_encoder, revision=settings.theme_encoder_revision)
        )
        out = Path(settings.out)
        if settings.overwrite:
            remove_results(out)
        scores = (*score_names(settings.variant), GATED, WORDLIKENESS, DIVERSITY, *([] if encoder is None else [THEME]))
        header = self.header(
            judged.dataset,
            settings.variant,
            scores,
            options=settings.options,
            numbered=None if settings.dataset is None else settings.numbered,
            **({} if encoder is None else {"encoder": {"name": encoder.name, "revision": encoder.revision}}),
        )
        form = functools.partial(_score_pair, explained=judged.systems, options=settings.options)
        scorer = LyricScorer(form, settings.options, judged.systems, encoder, songs)
        job = PairJob(header, judged, controls, scores, settings.variant, scorer, at_once=AT_ONCE, before=scorer.learn)
        rows = record(job, out / RECORDS, settings, progress=progress)
        page = functools.partial(_render_report, explained=settings.explained, sections=sections)
        return self.write(rows, settings, page, extra=extra)

    def describe_run(self, header: Mapping[str, Any]) -> str:
        """Name variant, rhymes, normalisation and encoder."""
        options = header["options"]
        normalised = "normalised" if options["normalise"] else "as they are"
        form = (
            f"variant {header['variant']}, rhymes by {options['rhyme']}, texts {normalised}, section headers "
            f"{_headers_text(header)}"
        )
        encoder = header.get("encoder")
        if encoder is None:
            return f"{form}, themes not compared, as no encoder was named (`theme_encoder`)"
        revision = f" at {encoder['revision']}" if encoder["revision"] else ""
        return f"{form}, themes by the encoder {encoder['name']}{revision}"

    def published_scores(self, header: Mapping[str, Any]) -> dict[str, Any]:
        """Return the table of the MuChin paper."""
        return published_lyrics(header["metrics"])

    def control_notes(self, systems: Mapping[str, Mapping[str, Any]]) -> Iterable[str]:
        """Say where there is no other song to compare with."""
        return without_another_song(systems)

    def remark_notes(self, remarks: Sequence[Mapping[str, Any]]) -> Iterator[str]:
        """Yield what must not be overlooked, by system: texts that scored 0, echoes, and words that were removed."""
        for system in dict.fromkeys(row["system"] for row in remarks):
            texts = [row["notes"] for row in remarks if row["system"] == system]
            for note, (noun, outcome) in _NOTHING_TO_SCORE.items():
                n = sum(note in reported for reported in texts)
                if n:
                    yield f"{system}: {counted(n, noun)} {outcome}; with `strict` such texts are failures"
            for note in WITHOUT_CHINESE:
                if n := sum(note in reported for reported in texts):
                    suffix = note.removeprefix("the lyrics have no Chinese character")
                    without = f"{counted(n, 'texts')} without a Chinese character{suffix}"
                    yield f"{system}: {without}: compare the control {ECHO!r}"
            named = (
                note.removeprefix(FORMAT_FOUND) for noted in texts for note in noted if note.startswith(FORMAT_FOUND)
            )
            formats = Counter(name for name in named if name in FORMATS)
            if formats:
                formatted = ", ".join(f"{name} ({counted(n, 'texts')})" for name, n in formats.most_common())
                yield f"{system}: read in the formats {formatted}"
            removed = [list(filter(None, map(_REMOVED.fullmatch, reported))) for reported in texts]
            lines = [sum(1 + int(match["more"] or 0) for match in matches) for matches in removed if matches]
            if lines:
                yield (
                    f"{system}: removed before scoring: {counted(sum(lines), 'lines')} with words, in "
                    f"{counted(len(lines), 'texts')}; the remarks tell which"
                )


LYRICS: Final = Lyrics()
"""The task."""


def _pairs(settings: Settings, made: Sequence[Prediction] | None) -> tuple[PairSet, list[Pair], tuple[Song, ...]]:
    """Return the pairs to score, the controls, and the songs if they are known."""
    if settings.dataset is None:
        if settings.manifest is not None:
            judged = texts_in_manifest(settings.manifest, controls=LYRIC_CONTROLS, limit=settings.limit)
        else:
            reference = str(settings.reference)
            judged = texts_in_folders(reference, settings.generated, controls=LYRIC_CONTROLS, limit=settings.limit)
        return judged, pattern_controls(judged.pairs, seed=settings.seed) if settings.controls else [], ()
    songs = settings.read_songs(["structure"])
    songs = songs if settings.numbered else songs.unnumbered()
    predictions = made if made is not None else read_predictions(settings.predictions, _text, '"text": text')
    judged = pairs_of_predictions(predictions, songs, pattern_side, modality=MODALITY, controls=LYRIC_CONTROLS)
    if not settings.controls:
        return judged, [], songs.songs
    worded = [song for song in songs.songs if song.has_words]
    asking = [song for song in worded if asks_for_words(song.pattern_text())]
    shuffled = functools.partial(shuffled_words, seed=settings.seed)
    echoes = against_own(songs.songs, pattern_side, pattern_side, system=ECHO, modality=MODALITY)
    controls = [
        *against_own(worded, pattern_side, _words_side, system=TRUE_LYRICS, modality=MODALITY),
        *against_another(worded, pattern_side, _words_side, modality=MODALITY),
        *shuffled_structures(worded, pattern_side, seed=settings.seed, modality=MODALITY),
        *against_own(asking, pattern_side, shuffled, system=SHUFFLED_WORDS, modality=MODALITY),
        *pattern_controls(echoes, seed=settings.seed),
    ]
    return judged, controls, songs.songs


def _text(row: Mapping[str, Any], where: str) -> str:
    text = row.get("text")
    if not isinstance(text, str):
        raise InvalidInputError(
            f'{where}: expected {{"id": text, "text": text}}, got {type(text).__name__} in place of the text'
        )
    return text


def pattern_side(song: Song) -> TextSide:
    """Return the pattern of a song, the reference of its texts."""
    return TextSide(song.id, song.pattern_text())


def _words_side(song: Song) -> TextSide:
    return TextSide(f"{song.id}, words", song.words_text())


def _score_pair(pair: Pair, *, explained: Sequence[str], options: Mapping[str, Any]) -> dict[str, Any]:
    judged = pair.system in explained
    chosen = options if judged else {name: value for name, value in options.items() if name != "song_format"}
    return score_lyrics(pair.reference.value, pair.estimate.value, explain=judged, **chosen)


def score_lyrics(reference: Any, estimate: Any, *, explain: bool = False, **options: Any) -> dict[str, Any]:
    """Score one text against its pattern: its form, its words, and its form gated by these."""
    check_pattern(reference)
    score = lyric_structure(reference, estimate, **options)
    wordlikeness, diversity, repetition = word_scores(score.generated.words)
    like_people = {"wordlikeness": wordlikeness, "diversity": diversity, "repetition": repetition}
    scores: dict[str, dict[str, Any]] = {name: {"value": value} for name, value in scores_of(score).items()}
    scores[GATED] = {"value": gated_structure(score.corrected_total, **like_people)}
    scores[WORDLIKENESS] = score_or_reason(wordlikeness, NO_CHARACTER)
    scores[DIVERSITY] = score_or_reason(diversity, NO_BIGRAM)
    answer: dict[str, Any] = {"scores": scores, "notes": list(score.notes)}
    return answer | {"explanation": {"lines": list(score.explain())}} if explain else answer


MOST_LINES = 60
"""Of an explanation in the page; the records hold all."""

TOTAL = "lyric_structure"


def _render_report(
    results: Mapping[str, Any], score_table: ScoreTable, *, explained: int = EXPLAINED, sections: Sequence[Section] = ()
) -> str:
    """Return the page."""
    facts = {"variant": results["variant"], **results["options"], "section headers": _headers_text(results)}
    return score_page(results, score_table, facts, items=[*sections, _explanations(score_table, explained)])


def _headers_text(header: Mapping[str, Any]) -> str:
    """Return whether the section headers of the patterns had numbers; those of files are as they are."""
    return {True: "numbered", False: "without numbers", None: "as in the files"}[header["numbered"]]


def worst_texts(score_table: ScoreTable) -> list[Ranked]:
    """Return the pairs of each system that are explained, with their totals, the worst first."""
    ranked: list[Ranked] = []
    for system in score_table.compared:
        pairs = score_table.scored(system)
        totals = pairs.values(TOTAL)[:, 0]
        explained = [(item, system) in score_table.explanations for item in pairs.text("item")]
        shown = np.flatnonzero(np.array(explained, dtype=bool) & ~np.isnan(totals))
        order = shown[np.argsort(totals[shown], kind="stable")]  # by item where they are equal
        ranked.append((pairs.take(order), totals[order]))
    return ranked


def _explanations(score_table: ScoreTable, n: int) -> Section:
    texts, reported = worst_texts(score_table), []
    for pair, total in shares(texts, n):
        lines = score_table.explanations[pair["item"], pair["system"]]["lines"]
        more = [f"and {len(lines) - MOST_LINES} more lines in the records"] if len(lines) > MOST_LINES else []
        shown = "\n".join([*lines[:MOST_LINES], *more])
        reported.append((f"{pair['item']}, {pair['system']}", format_value(total), shown))
    n_texts = sum(len(pairs) for pairs, _ in texts)
    page = render("music_evals.benchmark.tasks.songs", "explanations.html", reported=reported, n_texts=n_texts)
    return Section("Where points were lost", 80 + 45 * len(reported), page if reported else "")
