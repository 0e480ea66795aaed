"""Inputs of a metric's page: typed text, uploads read in another process, a worked example of each kind.

Each ``score_...`` is a plain function of what a page holds, and needs no browser. A call gets an instance of the
module of its own that keeps its data in memory: visitors never meet in one file.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from music_evals.csv_files import csv_rows
from music_evals.errors import (
    InvalidInputError,
    InvalidLyricsError,
    InvalidPatternError,
    InvalidTagsError,
    InvalidTokensError,
    MusicEvalsError,
    NoDataError,
)
from music_evals.symbolic.midi import save_midi
from music_evals.ui.frame import Progress, no_progress
from music_evals.ui.metric_page.results import PageMetric, ScoredItem, content_hash, python_code, shell_code
from music_evals.ui.spaces.preservation_examples import Piece, score_of
from music_evals.ui.uploads import load_score, trusted_sources

MAX_TEXT = 20_000  # characters of a text field
MAX_ITEMS = 4096  # tokens or numbers in a text field, repeats written out
MAX_TAGS = 100  # in a text field; annotators gave at most five
MAX_TAG = 60  # characters of a tag

_MEASURE = "60 128*11 64 128*5 67 128*5"
EXAMPLE_REFERENCE = "\n".join([_MEASURE] * 16)
EXAMPLE_PREDICTION = f"{_MEASURE}\n60 128*11 65 128*5 67 128*5\n60 128*23\n{_MEASURE}"
EXAMPLE_TARGETS = "tempo=0.9x; transpose=+2; key=D major"
EXAMPLE_NUMBERS = "-0.1 -0.2 -0.7\n-0.1 -1.3 -0.6"
# a poem of Li Bai as a model may write it: the third line is too long, and the fourth does not rhyme
EXAMPLE_LYRICS = (
    "好的，以下是歌词：\n\n**主歌**\n床前明月光，\n疑是地上霜。\n\n**副歌**\n举起头来望明月，\n低头思故里。"
)
EXAMPLE_PATTERN = "(verse)\nccccR\nccccR\n(chorus)\nccccc\nccccR"
EXAMPLE_TAGS = ("抒情，慢速，钢琴伴奏", "抒情, 舒缓, 钢琴")
# four pieces, two editors: the model makes less work with each, and more of it is liked
EXAMPLE_WORDS = ("(verse)\n春眠不觉晓\n春眠不觉晓", "(verse)\n春眠不觉晓\n夜来风雨声")
EXAMPLE_THEME = ("(verse)\n春天来到山里\n花开满了小路", "春天的花开在山里")

EXAMPLE_STUDY = "\n".join(
    ["sample_id,piece_id,style,model,role,editor_id,time_s,key_presses,mouse_clicks,hit_limit,EQ1,EQ2,EQ3"]
    + [
        f"{piece}-{role},{piece},swing,{model},{role},{editor},{time * slow},{keys + 4 * slow},{clicks},no,{answers}"
        for piece, ours in (("minuet", 400), ("march", 360), ("waltz", 510), ("hymn", 440))
        for role, model, time, keys, clicks, answers in (
            ("proposed", "new", ours, ours // 20, 100 + ours % 70, f"4,{3 + ours % 3},4"),
            ("baseline", "old", 700, 30, 210, "3,3,3"),
        )
        for editor, slow in (("a", 1), ("b", 2))
    ]
)


def parse_tokens(text: str) -> list[int]:
    """Read NoteSeq tokens from text."""
    tokens: list[int] = []
    for word in re.split(r"[\s,]+", text.strip()):
        match = re.fullmatch(r"(\d{1,3})(?:\*(\d{1,4}))?", word, flags=re.ASCII)
        if match is None:
            raise InvalidTokensError(f"expected tokens such as 60 128*23, got {word[:40]!r}")
        tokens += [int(match[1])] * int(match[2] or 1)
        if len(tokens) > MAX_ITEMS:
            raise InvalidTokensError(f"expected at most {MAX_ITEMS} tokens; a context has 384")
    return tokens


def parse_numbers(text: str) -> list[list[float]]:
    r"""Read rows of numbers from text, one row a line, numbers between blanks or commas."""
    rows: list[list[float]] = []
    for line in text.strip().splitlines():
        try:
            rows.append([float(word) for word in re.split(r"[\s,]+", line.strip())])
        except ValueError:
            raise InvalidInputError(f"expected a row of numbers such as -0.1 -2.3, got {line[:40]!r}") from None
    if sum(map(len, rows)) > MAX_ITEMS:
        raise InvalidInputError(f"expected at most {MAX_ITEMS} numbers")
    return rows


def parse_tags(text: str) -> list[str]:
    """Read tags from text, between commas (also Chinese ones), semicolons or newlines."""
    tags = [tag for part in re.split(r"[,\uff0c、;\uff1b\n]", text) if (tag := part.strip())]
    if len(tags) > MAX_TAGS:
        raise InvalidTagsError(f"expected at most {MAX_TAGS} tags, got {len(tags)}")
    for tag in tags:
        if len(tag) > MAX_TAG:
            raise InvalidTagsError(
                f"expected tags of at most {MAX_TAG} characters, got {len(tag)}: {tag[:20]!r}...; shorten it"
            )
    return tags


def _check_length(text: str, name: str, error: type[MusicEvalsError]) -> None:
    """Refuse a text over `MAX_TEXT`: the browser has the same limit, calls of the API do not."""
    if len(text) > MAX_TEXT:
        raise error(f"{name}: expected at most {MAX_TEXT} characters, got {len(text)}; shorten it")


def score_tokens(metric: PageMetric, reference: str, prediction: str, variant: str) -> ScoredItem:
    """Score a prediction typed as tokens against a reference typed as tokens."""
    _check_length(reference, "reference", InvalidTokensError)
    _check_length(prediction, "prediction", InvalidTokensError)
    options = {"variant": variant}
    result, notes = _compute(
        metric, predictions=[parse_tokens(prediction)], references=[parse_tokens(reference)], **options
    )
    typed = {
        "predictions": f"[parse_tokens({_joined(prediction)!r})]",
        "references": f"[parse_tokens({_joined(reference)!r})]",
    }
    imports = ["from music_evals.ui.metric_page.inputs import parse_tokens"]
    code = python_code(metric.name, typed, options, imports=imports)
    hashes = {"reference": content_hash(reference), "prediction": content_hash(prediction)}
    return ScoredItem(result, options, hashes, code, _ONLY_SETS, notes)


def score_files(
    metric: PageMetric, reference: str | None, prediction: str | None, variant: str, progress: Progress = no_progress
) -> ScoredItem:
    """Score one uploaded prediction against one uploaded true context; both are read in a process of their own."""
    return _score_uploads(metric, reference, prediction, "context", progress, variant=variant)


def _score_uploads(
    metric: PageMetric, reference: str | None, prediction: str | None, kind: str, progress: Progress, **options: str
) -> ScoredItem:
    if reference is None or prediction is None:
        raise NoDataError(f"upload two files: the true {kind} and the prediction")
    progress(0.1, "Reading the files")
    references, predictions = [load_score(reference)], [load_score(prediction)]
    progress(0.8, "Scoring")
    result, notes = _compute(metric, predictions=predictions, references=references, **options)
    code = python_code(metric.name, _file_names(reference, prediction), options)
    return ScoredItem(result, options, _file_hashes(reference, prediction), code, _ONLY_SETS, notes)


def score_edit(
    metric: PageMetric, reference: str | None, prediction: str | None, variant: str, progress: Progress = no_progress
) -> ScoredItem:
    """Score uploaded edited music against its uploaded original: two recordings, or two scores."""
    if reference is None or prediction is None:
        raise NoDataError("upload two files: the original and the edited music")
    progress(0.05, "Reading the files")
    options: dict[str, Any] = {"variant": variant, "companions": True}
    with trusted_sources(reference, prediction) as (original, edited):
        progress(0.2, "Comparing")
        result, _ = _compute(metric, references=[original], predictions=[edited], per_item=True, **options)
    [item] = result.pop("per_item")  # why a score is undefined is reported better by the item
    names = [key.removesuffix("_n_defined") for key in result if key.endswith("_n_defined")]
    files = [Path(reference).name, Path(prediction).name]
    shell = shell_code(
        "music-evals", "preserve", "--reference", files[0], "--estimate", files[1],
        "--metrics", ",".join(metric_names(names)), "--companions", "all", "--variant", variant,
        "--no-controls", "--out", "results/pair",
    )  # fmt: skip
    return ScoredItem(
        result,
        options,
        _file_hashes(reference, prediction),
        python_code(metric.name, _file_names(reference, prediction), options),
        shell,
        list(dict.fromkeys([*(f"{name}: {why}" for name, why in item["reasons"].items()), *item["notes"]])),
        modality=item["entrance"],
        extractors=_extractors(names, variant) if item["entrance"] == "audio" else {},
    )


def score_request(
    metric: PageMetric, reference: str | None, prediction: str | None, targets: str, progress: Progress = no_progress
) -> ScoredItem:
    """Score uploaded edited music by the targets that it was to reach, typed as ``tempo=1.2x; key=A minor``."""
    if reference is None or prediction is None:
        raise NoDataError("upload two files: the original and the edited music")
    _check_length(targets, "targets", InvalidInputError)
    progress(0.05, "Reading the files")
    with trusted_sources(reference, prediction) as (original, edited):
        progress(0.2, "Measuring")
        request = {"source": original, "targets": targets}
        result, _ = _compute(metric, references=[request], predictions=[edited], per_item=True)
    [item] = result.pop("per_item")
    lines = [
        f"{kind}: {target['verdict']}"
        + (f" ({target['reason']})" if target["reason"] else f", {target['measured']:.3g} of {target['requested']:.3g}")
        for kind, target in item["targets"].items()
    ]
    typed = _file_names(reference, prediction)
    typed["references"] = repr([{"source": Path(reference).name, "targets": targets}])
    code = python_code(metric.name, typed, {})
    return ScoredItem(result, {"targets": targets}, _file_hashes(reference, prediction), code, _ONLY_SETS, lines=lines)


def metric_names(scores: list[str]) -> list[str]:
    """Return those of some scores that are metrics of preservation, and not their auxiliary metrics.

    The first score is the module's own, whatever it is beside others.
    """
    from music_evals.metrics.catalogue import PRESERVATION_METRICS

    return [name for place, name in enumerate(scores) if name in PRESERVATION_METRICS or not place]


def _extractors(scores: list[str], variant: str) -> dict[str, str]:
    """Return the extractors of the recordings: feature -> backend and version."""
    from music_evals.benchmark.tasks.preservation.task import describe_extractors
    from music_evals.pipelines.preservation import Settings

    reported = describe_extractors(Settings.of(metrics=metric_names(scores), companions=True, variant=variant))
    return {
        feature: about.get("missing") or f"{about['backend']}, version {about['version']}"
        for feature, about in reported["features"].items()
    }


def score_rolls(
    metric: PageMetric, reference: str | None, prediction: str | None, progress: Progress = no_progress
) -> ScoredItem:
    """Score the cells of one uploaded piece against those of another; both are read in a process of their own."""
    return _score_uploads(metric, reference, prediction, "piece", progress)


def score_numbers(metric: PageMetric, predictions: str) -> ScoredItem:
    """Score rows of numbers typed as text."""
    _check_length(predictions, "numbers", InvalidInputError)
    rows = parse_numbers(predictions)
    result, notes = _compute(metric, predictions=rows)
    code = python_code(metric.name, {"predictions": repr(rows)}, {})
    return ScoredItem(result, {}, {"predictions": content_hash(predictions)}, code, _ONLY_SETS, notes)


def score_lyrics(  # noqa: PLR0917  (a page gives its fields in their order)
    metric: PageMetric,
    lyrics: str,
    pattern: str,
    variant: str,
    rhyme: str,
    normalise: bool,  # noqa: FBT001
) -> ScoredItem:
    """Score typed lyrics against a typed pattern, and list where points were lost."""
    from music_evals.pipelines.lyrics import lyric_structure

    _check_length(lyrics, "lyrics", InvalidLyricsError)
    _check_length(pattern, "pattern", InvalidPatternError)
    options: dict[str, Any] = {"variant": variant, "rhyme": rhyme, "normalise": normalise}
    wanted = pattern.replace("\r\n", "\n").strip("\n")  # browsers send both kinds of line ends
    result, notes = _compute(metric, predictions=[lyrics], references=[wanted], **options)
    shell = shell_code(
        "music-evals", "lyrics", "--reference", "pattern.txt", "--generated", "lyrics.txt", "--variant", variant,
        "--rhyme", rhyme, *(() if normalise else ("--no-normalise",)), "--strict",
        "--out", "results/song",
    )  # fmt: skip
    code = python_code(metric.name, {"predictions": f"[{lyrics!r}]", "references": f"[{wanted!r}]"}, options)
    hashes = {"lyrics": content_hash(lyrics), "pattern": content_hash(wanted)}
    lines = lyric_structure(wanted, lyrics, **options).explain()
    return ScoredItem(result, options, hashes, code, shell, notes, lines)


def score_tags(metric: PageMetric, generated: str, reference: str, encoder: str, aggregation: str) -> ScoredItem:
    """Score typed tags against typed tags."""
    from music_evals.ui.spaces.tag_comparison import page_encoder

    _check_length(generated, "generated tags", InvalidTagsError)
    _check_length(reference, "reference tags", InvalidTagsError)
    tags = {"predictions": [parse_tags(generated)], "references": [parse_tags(reference)]}
    options = {"encoder": encoder, "aggregation": aggregation}
    result, notes = _compute(metric, **tags, encoder=page_encoder(encoder), aggregation=aggregation)
    settings = {**options, "encoder": "{name}, revision {revision}".format(**result["encoder"])}
    hashes = {"generated": content_hash(generated), "reference": content_hash(reference)}
    code = python_code(metric.name, {side: repr(lists) for side, lists in tags.items()}, options)
    return ScoredItem(result, settings, hashes, code, _ONLY_SETS, notes)


def score_words(metric: PageMetric, lyrics: str, people: str) -> ScoredItem:
    """Score typed lyrics against lyrics of people."""
    return _score_texts(metric, lyrics, people, {})


def score_themes(metric: PageMetric, lyrics: str, theme: str, encoder: str) -> ScoredItem:
    """Score typed lyrics against a typed theme."""
    return _score_texts(metric, lyrics, theme, {"encoder": encoder})


def _score_texts(metric: PageMetric, lyrics: str, reference: str, options: dict[str, Any]) -> ScoredItem:
    from music_evals.ui.spaces.tag_comparison import page_encoder

    for name, text in {"lyrics": lyrics, "reference": reference}.items():
        _check_length(text, name, InvalidLyricsError)
    prediction, target = (text.replace("\r\n", "\n") for text in (lyrics, reference))
    used = {name: page_encoder(value) for name, value in options.items()}
    result, notes = _compute(metric, predictions=[prediction], references=[target], **used)
    about = {"encoder": "{name}, revision {revision}".format(**result["encoder"])} if "encoder" in result else {}
    code = python_code(metric.name, {"predictions": repr([prediction]), "references": repr([target])}, options)
    hashes = {"lyrics": content_hash(lyrics), "reference": content_hash(reference)}
    return ScoredItem(result, {**options, **about}, hashes, code, _ONLY_SETS, notes)


def score_study(metric: PageMetric, edits: str) -> ScoredItem:
    """Score a study from its table of edits, typed or pasted as CSV."""
    _check_length(edits, "edits", InvalidInputError)
    rows = csv_rows(edits.strip(), "edits")
    if any(None in row or None in row.values() for row in rows):
        raise InvalidInputError("edits: a row has more or fewer cells than the table has columns")
    result, notes = _compute(metric, predictions=rows)
    warned = list(result.get("tables", {}).get("warnings", ()))
    code = python_code(metric.name, {"predictions": repr(rows)}, {})
    return ScoredItem(result, {}, {"edits": content_hash(edits)}, code, "", [*notes, *warned])


_ONLY_SETS = "# Commands score whole sets (music-evals --help); one item goes through Python."


def _compute(metric: PageMetric, **inputs: Any) -> tuple[dict[str, Any], list[str]]:
    """Compute once in an instance of its own; return the result, and what was warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = metric.module(keep_in_memory=True).compute(**inputs)
    notes = dict.fromkeys(str(warning.message) for warning in caught if issubclass(warning.category, UserWarning))
    return result, list(notes)


def _joined(text: str) -> str:
    return " ".join(text.split())


def _file_names(reference: str, prediction: str) -> dict[str, str]:
    """Return two files as arguments of `compute`, in Python."""
    return {"predictions": repr([Path(prediction).name]), "references": repr([Path(reference).name])}


def _file_hashes(reference: str, prediction: str) -> Mapping[str, str]:
    """Return name -> hash; the side comes first, for two files may have one name."""
    files = {"reference": Path(reference), "prediction": Path(prediction)}
    return {f"{side} {path.name}": content_hash(path.read_bytes()) for side, path in files.items()}


def example_pair(folder: Path) -> tuple[str, str]:
    """Write the worked example of an edit as two MIDI files into a folder; return their paths."""
    return _write_pieces(folder, original=Piece(), edited=Piece(bpm=108.0, transpose=2, altered=True))


def example_rolls(folder: Path) -> tuple[str, str]:
    """Write the worked example of a prediction: the same tune, and it with the third phrase of the melody backwards."""
    return _write_pieces(folder, truth=Piece(), prediction=Piece(altered=True))


def _write_pieces(folder: Path, **pieces: Piece) -> tuple[str, str]:
    first, second = (str(save_midi(score_of(piece), folder / f"{name}.mid")) for name, piece in pieces.items())
    return first, second
