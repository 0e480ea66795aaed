"""The page of a metric: its card, inputs of its own kind, an example, and the result with its range and direction.

`app.py` of every metric folder is three lines over `build_metric_page` and `launch`. What a button does is a plain
function here, which needs no browser. Each call gets an instance of its own that keeps its data in memory: visitors
never meet in one file.
"""

from __future__ import annotations

import dataclasses
import functools
import html
import math
import os
import re
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from music_evals.errors import (
    FileTooLargeError,
    InvalidInputError,
    InvalidTagsError,
    InvalidTokensError,
    MusicEvalsError,
    NoDataError,
)
from music_evals.metrics.arrays import VARIANTS
from music_evals.symbolic.files import read_score
from music_evals.symbolic.isolation import read_many

if TYPE_CHECKING:
    import gradio as gr

__all__ = [
    "PageMetric",
    "build_metric_page",
    "judge_edit",
    "judge_files",
    "judge_lyrics",
    "judge_numbers",
    "judge_tags",
    "judge_tokens",
    "launch",
    "load_card",
    "load_metric",
    "parse_numbers",
    "parse_tags",
    "parse_tokens",
    "show_result",
]

MAX_UPLOAD_BYTES = 2**20  # sixteen measures of one voice take a few hundred bytes of MIDI, and 20 kB of MusicXML
MAX_RECORDING_BYTES = 64 * 2**20  # six minutes of stereo at CD quality
MAX_RECORDING_SEC = 360.0  # alignment takes time that grows with the square of the length
TIMEOUT_SEC = 15.0  # for each upload: all visitors wait in one queue
MAX_TEXT = 20_000  # characters of a text field
MAX_ITEMS = 4096  # tokens or numbers in a text field, repeats written out
MAX_TAGS = 100  # in a text field; annotators gave at most five
FILE_TYPES = [".mid", ".midi", ".musicxml", ".xml", ".mxl", ".abc"]
RECORDING_TYPES = [".wav", ".flac", ".ogg", ".mp3", ".aiff"]

_MEASURE = "60 128*11 64 128*5 67 128*5"
EXAMPLE_REFERENCE = "\n".join([_MEASURE] * 16)
EXAMPLE_PREDICTION = f"{_MEASURE}\n60 128*11 65 128*5 67 128*5\n60 128*23\n{_MEASURE}"
EXAMPLE_NUMBERS = "-0.1 -0.2 -0.7\n-0.1 -1.3 -0.6"
# a poem of Li Bai as a model may write it: the third line is too long, and the fourth does not rhyme
EXAMPLE_LYRICS = (
    "好的，以下是歌词：\n\n**主歌**\n床前明月光，\n疑是地上霜。\n\n**副歌**\n举起头来望明月，\n低头思故里。"
)
EXAMPLE_PATTERN = "(verse)\nccccR\nccccR\n(chorus)\nccccc\nccccR"
EXAMPLE_TAGS = ("抒情，慢速，钢琴伴奏", "抒情, 舒缓, 钢琴")
TOKENS_HELP = "0..127 is the onset of that pitch, 128 a hold, 129 a rest; 24 steps a measure; 128*23 repeats."


@dataclasses.dataclass(frozen=True)
class PageMetric:
    """A metric as a page shows it.

    Parameters
    ----------
    module
        Class of the evaluate module.
    card
        YAML of the card.
    text
        The card below the YAML.

    """

    module: Any
    card: dict[str, Any]
    text: str

    @property
    def scale(self) -> str:
        """The card's section on range and direction, without its heading."""
        match = re.search(r"^## Range and direction\n(.*?)(?=^## |\Z)", self.text, flags=re.DOTALL | re.MULTILINE)
        return match[1].strip() if match else ""

    @property
    def kind(self) -> str:
        """What it judges: ``"edits"`` of music, ``"contexts"`` of notes, ``"numbers"``, ``"lyrics"`` or ``"tags"``."""
        return str(self.module.kind)


def load_metric(name: str, app_file: str | os.PathLike[str]) -> PageMetric:
    """Load script and card that lie beside an `app.py`; see `build_metric_page`."""
    import evaluate

    folder = Path(app_file).resolve().parent
    card, text = load_card(folder)
    return PageMetric(type(evaluate.load(str(folder / f"{name}.py"))), card, text)


def load_card(folder: str | os.PathLike[str]) -> tuple[dict[str, Any], str]:
    """Return the YAML and the text of a card, `README.md` in a metric's folder.

    Raises
    ------
    NoDataError
        There is no card.
    InvalidInputError
        It has no YAML between two lines of three hyphens.

    """
    import yaml

    path = Path(folder) / "README.md"
    if not path.is_file():
        msg = f"{path}: no such card; a metric's folder holds its README.md beside app.py"
        raise NoDataError(msg)
    match = re.match(r"---\n(.*?)\n---\n(.*)", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    if match is None:
        msg = f"{path}: expected YAML between two lines of ---, then the text"
        raise InvalidInputError(msg)
    return yaml.safe_load(match[1]), match[2].strip()


def parse_tokens(text: str) -> list[int]:
    """Read NoteSeq tokens from text.

    Parameters
    ----------
    text
        Whole numbers between blanks or commas; ``128*23`` stands for 23 times 128.

    Raises
    ------
    InvalidTokensError
        Something else, or more than 4,096 tokens.

    Examples
    --------
    >>> parse_tokens("60 128*3, 129")
    [60, 128, 128, 128, 129]

    """
    tokens: list[int] = []
    for word in re.split(r"[\s,]+", text.strip()):
        match = re.fullmatch(r"(\d{1,3})(?:\*(\d{1,4}))?", word, flags=re.ASCII)
        if match is None:
            msg = f"expected tokens such as 60 128*23, got {word[:40]!r}"
            raise InvalidTokensError(msg)
        tokens += [int(match[1])] * int(match[2] or 1)
        if len(tokens) > MAX_ITEMS:
            msg = f"expected at most {MAX_ITEMS} tokens; a context has 384"
            raise InvalidTokensError(msg)
    return tokens


def parse_numbers(text: str) -> list[list[float]]:
    r"""Read rows of numbers from text, one row a line, numbers between blanks or commas.

    Raises
    ------
    InvalidInputError
        Something else, or more than 4,096 numbers.

    Examples
    --------
    >>> parse_numbers("-0.5 -1.5\n-1, -2")
    [[-0.5, -1.5], [-1.0, -2.0]]

    """
    rows: list[list[float]] = []
    for line in text.strip().splitlines():
        try:
            rows.append([float(word) for word in re.split(r"[\s,]+", line.strip())])
        except ValueError:
            msg = f"expected a row of numbers such as -0.1 -2.3, got {line[:40]!r}"
            raise InvalidInputError(msg) from None
    if sum(map(len, rows)) > MAX_ITEMS:
        msg = f"expected at most {MAX_ITEMS} numbers"
        raise InvalidInputError(msg)
    return rows


def parse_tags(text: str) -> list[str]:
    """Read tags from text, between commas (also Chinese ones), semicolons or newlines.

    Raises
    ------
    InvalidTagsError
        More than 100 tags.

    Examples
    --------
    >>> parse_tags("抒情，慢速, 钢琴、")
    ['抒情', '慢速', '钢琴']

    """
    tags = [tag for part in re.split(r"[,\uff0c、;\uff1b\n]", text) if (tag := part.strip())]
    if len(tags) > MAX_TAGS:
        msg = f"expected at most {MAX_TAGS} tags, got {len(tags)}"
        raise InvalidTagsError(msg)
    return tags


def judge_files(metric: PageMetric, reference: str | None, prediction: str | None, variant: str) -> str:
    """Judge one uploaded prediction against one uploaded reference; return the result as Markdown.

    Raises
    ------
    NoDataError
        A file is missing.
    FileTooLargeError
        A file of more than 1 MiB.
    UnreadableFileError
        A file that is not what its suffix says, or that its parser died on: uploads are read in a process apart.
    MusicEvalsError
        As the metric.

    """
    if reference is None or prediction is None:
        raise NoDataError("upload two files: the true context and the prediction")
    for path in (reference, prediction):
        if Path(path).stat().st_size > MAX_UPLOAD_BYTES:
            msg = f"{Path(path).name}: more than {MAX_UPLOAD_BYTES} bytes; upload one context of 16 measures"
            raise FileTooLargeError(msg)
    scores = [score for _, score in read_many([reference, prediction], reader=read_score, timeout_sec=TIMEOUT_SEC)]
    for score in scores:
        if isinstance(score, MusicEvalsError):
            raise score
    return _judge(metric, variant=variant, references=scores[:1], predictions=scores[1:])


def judge_edit(metric: PageMetric, reference: str | None, prediction: str | None, variant: str) -> str:
    """Judge uploaded edited music against its uploaded original; return the result as Markdown, with its notes.

    Raises
    ------
    NoDataError
        A file is missing.
    FileTooLargeError
        A recording of more than 64 MiB or 6 minutes, a score of more than 1 MiB.
    MusicEvalsError
        As the metric.

    """
    if reference is None or prediction is None:
        raise NoDataError("upload two files: the original and the edited music")
    files = {"references": [_check_upload(reference)], "predictions": [_check_upload(prediction)]}
    return _judge(metric, variant=variant, companions=True, per_item=True, n_resamples=0, **files)


def _check_upload(path: str) -> str:
    """Return a path whose file is not too large to be judged while others wait."""
    from music_evals.pipelines.preservation import entrance

    is_score = entrance(path) == "symbolic"
    bound = MAX_UPLOAD_BYTES if is_score else MAX_RECORDING_BYTES
    if Path(path).stat().st_size > bound:
        msg = f"{Path(path).name}: more than {bound} bytes; upload a shorter excerpt"
        raise FileTooLargeError(msg)
    if not is_score:
        from music_evals.audio.io import AudioLimits, check_header

        check_header(path, limits=AudioLimits(max_sec=MAX_RECORDING_SEC))
    return path


def judge_tokens(metric: PageMetric, reference: str, prediction: str, variant: str) -> str:
    """Judge a prediction typed as tokens against a reference typed as tokens; return the result as Markdown.

    Raises
    ------
    MusicEvalsError
        As `parse_tokens` and the metric.

    """
    tokens = {"predictions": [parse_tokens(prediction)], "references": [parse_tokens(reference)]}
    return _judge(metric, variant=variant, **tokens)


def judge_numbers(metric: PageMetric, predictions: str) -> str:
    """Judge rows of numbers typed as text; return the result as Markdown.

    Raises
    ------
    MusicEvalsError
        As `parse_numbers` and the metric.

    """
    return _judge(metric, predictions=parse_numbers(predictions))


def judge_lyrics(  # noqa: PLR0917  (a page gives its fields in their order)
    metric: PageMetric,
    lyrics: str,
    pattern: str,
    variant: str,
    rhyme: str,
    normalise: bool,  # noqa: FBT001
) -> str:
    """Judge typed lyrics against a typed pattern; return the result as Markdown, with where points were lost.

    Parameters
    ----------
    metric
        Whose page it is.
    lyrics
        Generated text.
    pattern
        Headers, and lines of ``c``, ``R`` and spaces.
    variant, rhyme, normalise
        Options of the metric.

    Raises
    ------
    MusicEvalsError
        As the metric.

    """
    from music_evals.pipelines.lyrics import lyric_structure

    options: dict[str, Any] = {"variant": variant, "rhyme": rhyme, "normalise": normalise}
    wanted = pattern.replace("\r\n", "\n").strip("\n")  # browsers send both kinds of line ends
    shown = _judge(metric, predictions=[lyrics], references=[wanted], n_resamples=0, **options)
    lost = "\n".join(lyric_structure(lyrics, wanted, **options).explain()).replace("`", "'")
    return f"{shown}\n\n### Where points were lost\n\n```text\n{lost}\n```"


def judge_tags(metric: PageMetric, generated: str, reference: str, encoder: str, aggregation: str) -> str:
    """Judge typed tags against typed tags; return the result as Markdown.

    Raises
    ------
    MusicEvalsError
        As `parse_tags` and the metric.

    """
    tags = {"predictions": [parse_tags(generated)], "references": [parse_tags(reference)]}
    return _judge(metric, encoder=encoder, aggregation=aggregation, n_resamples=0, **tags)


def show_result(result: dict[str, Any], scale: str, notes: Sequence[str] = ()) -> str:
    """Return a result as a Markdown table, with its scale and what was warned of.

    Parameters
    ----------
    result
        What `compute` gave.
    scale
        Range and direction, in Markdown.
    notes
        Warnings, in words.

    """
    lines = ["| score | value | interval | items defined |", "|---|---|---|---|"]
    for name in [key.removesuffix("_n_defined") for key in result if key.endswith("_n_defined")]:
        low, high = result[f"{name}_ci"]
        interval = "none" if math.isnan(low) else f"{low:.3f} to {high:.3f}"  # one item alone has none
        counted = f"{result[f'{name}_n_defined']} of {result[f'{name}_n']}"
        lines.append(f"| `{name}` | **{_number(result[name])}** | {interval} | {counted} |")
        if f"{name}_null" in result:
            lines.append(f"| its noise floor | {_number(result[f'{name}_null'])} | | |")
    return "\n".join([*lines, "", scale, *(f"\n*{note}*" for note in notes)])


def build_metric_page(name: str, app_file: str | os.PathLike[str]) -> gr.Blocks:
    """Build the page of a metric.

    Parameters
    ----------
    name
        Module name, e.g. ``"note_f1"``. A Space's folder is not called like its metric, so it has to be said.
    app_file
        ``__file__`` of the `app.py`; script and card lie beside it.

    Returns
    -------
    gr.Blocks
        Not launched.

    Raises
    ------
    NoDataError, InvalidInputError
        As `load_card`.

    """
    import gradio as gr

    metric = load_metric(name, app_file)
    with gr.Blocks(title=metric.card["title"], analytics_enabled=False) as page:
        gr.Markdown(f"# {metric.card['emoji']} {metric.card['title']}\n\n{metric.card['description']}")
        for add in _INPUTS[metric.kind]:
            add(metric)
        with gr.Accordion("The card", open=False):
            gr.Markdown(metric.text)
    page.max_upload_bytes = MAX_RECORDING_BYTES if metric.kind == "edits" else MAX_UPLOAD_BYTES
    return page


def launch(page: gr.Blocks, **options: Any) -> Any:
    """Serve a page; uploads are bounded. `options` go to `gradio.Blocks.launch`."""
    import gradio as gr

    largest = getattr(page, "max_upload_bytes", MAX_UPLOAD_BYTES)
    settings = {"max_file_size": largest, "theme": gr.themes.Soft(), **options}
    return page.launch(**settings)


def _add_files_tab(metric: PageMetric) -> None:
    import gradio as gr

    with gr.Tab("Files"):
        gr.Markdown("One voice, 16 measures of four quarters; a prediction may be the four measures of the middle.")
        with gr.Row():
            reference = gr.File(label="Reference: the whole true context", file_types=FILE_TYPES, elem_id="reference")
            prediction = gr.File(label="Prediction", file_types=FILE_TYPES, elem_id="prediction")
        variant = gr.Dropdown(list(VARIANTS), value=VARIANTS[0], label="Variant")
        _add_button("judge_files", functools.partial(judge_files, metric), [reference, prediction, variant])


def _add_edit(metric: PageMetric) -> None:
    import gradio as gr

    gr.Markdown("Two recordings of at most six minutes, or two scores: the original, and what became of it.")
    types = RECORDING_TYPES + FILE_TYPES
    with gr.Row():
        reference = gr.File(label="Original", file_types=types, elem_id="reference")
        prediction = gr.File(label="Edited", file_types=types, elem_id="prediction")
    variant = gr.Dropdown(list(VARIANTS), value=VARIANTS[0], label="Variant")
    _add_button("judge_edit", functools.partial(judge_edit, metric), [reference, prediction, variant])


def _add_tokens_tab(metric: PageMetric) -> None:
    import gradio as gr

    with gr.Tab("Tokens"):
        gr.Markdown(TOKENS_HELP)
        reference = gr.Textbox(label="Reference: 384 tokens", lines=6, max_length=MAX_TEXT, elem_id="reference_tokens")
        prediction = gr.Textbox(
            label="Prediction: 96 or 384 tokens", lines=4, max_length=MAX_TEXT, elem_id="prediction_tokens"
        )
        variant = gr.Dropdown(list(VARIANTS), value=VARIANTS[0], label="Variant")
        gr.Examples([[EXAMPLE_REFERENCE, EXAMPLE_PREDICTION]], [reference, prediction], cache_examples=False)
        _add_button("judge_tokens", functools.partial(judge_tokens, metric), [reference, prediction, variant])


def _add_numbers(metric: PageMetric) -> None:
    import gradio as gr

    rows = gr.Textbox(label="One row a prediction, one number a step", lines=6, max_length=MAX_TEXT, elem_id="numbers")
    gr.Examples([[EXAMPLE_NUMBERS]], [rows], cache_examples=False)
    _add_button("judge_numbers", functools.partial(judge_numbers, metric), [rows])


def _add_lyrics(metric: PageMetric) -> None:
    import gradio as gr

    gr.Markdown("A pattern has headers such as (verse); `c` is a character, `R` the last one of a rhyming line.")
    with gr.Row():
        lyrics = gr.Textbox(label="Generated lyrics", lines=12, max_length=MAX_TEXT, elem_id="lyrics")
        pattern = gr.Textbox(label="Pattern that was asked for", lines=12, max_length=MAX_TEXT, elem_id="pattern")
    with gr.Row():
        variant = gr.Dropdown(["official", "paper"], value="official", label="Variant")
        rhyme = gr.Dropdown(["official", "line", "char"], value="official", label="How rhymes are found")
        normalise = gr.Checkbox(value=True, label="Read the text as language models write it")
    gr.Examples([[EXAMPLE_LYRICS, EXAMPLE_PATTERN]], [lyrics, pattern], cache_examples=False)
    inputs = [lyrics, pattern, variant, rhyme, normalise]
    _add_button("judge_lyrics", functools.partial(judge_lyrics, metric), inputs)


def _add_tags(metric: PageMetric) -> None:
    import gradio as gr

    from music_evals.lyrics.embeddings import CHAR_NGRAMS, DEFAULT_ENCODER
    from music_evals.metrics.semantics import AGGREGATIONS

    gr.Markdown(
        "Tags between commas. `char-ngrams` needs no weights and knows no meaning: it compares how tags are spelt."
    )
    with gr.Row():
        generated = gr.Textbox(label="Generated tags", lines=3, max_length=MAX_TEXT, elem_id="generated_tags")
        reference = gr.Textbox(label="Reference tags", lines=3, max_length=MAX_TEXT, elem_id="reference_tags")
    with gr.Row():
        encoder = gr.Dropdown([CHAR_NGRAMS, DEFAULT_ENCODER], value=CHAR_NGRAMS, label="Encoder")
        aggregation = gr.Dropdown(list(AGGREGATIONS), value=AGGREGATIONS[0], label="Aggregation")
    gr.Examples([list(EXAMPLE_TAGS)], [generated, reference], cache_examples=False)
    _add_button("judge_tags", functools.partial(judge_tags, metric), [generated, reference, encoder, aggregation])


_INPUTS: dict[str, tuple[Callable[[PageMetric], None], ...]] = {
    "edits": (_add_edit,),
    "contexts": (_add_files_tab, _add_tokens_tab),
    "numbers": (_add_numbers,),
    "lyrics": (_add_lyrics,),
    "tags": (_add_tags,),
}


def _add_button(name: str, judge: Callable[..., str], inputs: list[Any]) -> None:
    import gradio as gr

    button = gr.Button("Judge", variant="primary", elem_id=name)
    output = gr.Markdown(elem_id=f"{name}_result")
    # one at a time: catching warnings is global to the process
    limits = {"concurrency_id": "judge", "concurrency_limit": 1}
    button.click(functools.partial(_answer, judge), inputs, output, api_name=name, api_visibility="public", **limits)


def _answer(judge: Callable[..., str], *inputs: Any) -> str:
    """Call a judge; an error that the library names is shown as it is, any other is a bug and stays one.

    Gradio renders messages as HTML, and ours quote typed text and file names.
    """
    import gradio as gr

    try:
        return judge(*inputs)
    except MusicEvalsError as error:
        raise gr.Error(html.escape(str(error), quote=False)) from error


def _judge(metric: PageMetric, **inputs: Any) -> str:
    """Compute once in an instance of its own; warnings become notes under the table."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = metric.module(keep_in_memory=True).compute(**inputs)
    notes = dict.fromkeys(str(warning.message) for warning in caught if issubclass(warning.category, UserWarning))
    if "encoder" in result:
        notes |= {f"encoder: {result['encoder']['name']}, revision {result['encoder']['revision']}": None}
    if metric.kind == "edits":  # why a score is undefined is told better by the item
        [item] = result.pop("per_item")
        notes = dict.fromkeys([*(f"{name}: {why}" for name, why in item["reasons"].items()), *item["notes"]])
    return show_result(result, metric.scale, list(notes))


def _number(value: float) -> str:
    return "undefined" if math.isnan(value) else f"{value:.3f}"
