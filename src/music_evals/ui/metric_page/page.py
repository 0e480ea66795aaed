"""The page of a metric: what it measures, a worked example, inputs of its own kind, and the result on its range.

`app.py` of every metric folder is a few lines over `build_metric_page`. What the buttons do are plain functions, in
`inputs` and `results`.
"""

from __future__ import annotations

import contextlib
import inspect
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from music_evals.lyrics.embeddings import CHAR_NGRAMS
from music_evals.metrics.arrays import VARIANTS
from music_evals.metrics.semantics import AGGREGATIONS
from music_evals.ui import frame
from music_evals.ui.metric_page import inputs
from music_evals.ui.metric_page.results import PageMetric, ScoredItem, load_metric, show
from music_evals.ui.uploads import MAX_RECORDING_BYTES, MAX_UPLOAD_BYTES, RECORDING_TYPES, SCORE_TYPES

if TYPE_CHECKING:
    import gradio as gr

READING = ("Range and direction", "Undefined", "Limitations")


class Input(NamedTuple):
    """Fields of one kind of input, and the function that scores them."""

    score: Callable[..., ScoredItem]
    fields: Sequence[Any]
    button: Any
    cancel: Any
    example: Callable[[], Sequence[Any]] | None = None  # values of the fields for the worked example


def build_metric_page(name: str, app_file: str | os.PathLike[str]) -> gr.Blocks:
    """Build the page of a metric."""
    import gradio as gr

    metric = load_metric(name, app_file)
    largest = MAX_RECORDING_BYTES if metric.kind in {"edits", "targets"} else MAX_UPLOAD_BYTES
    intro = f"{metric.card['description']}\n\n{frame.privacy()}"
    with frame.space(metric.card["title"], intro, max_upload_bytes=largest) as page:
        given = [_add(source) for source in _SOURCES[metric.kind]]
        if not given:
            gr.Markdown(
                "This score needs the weights of an encoder, which a page does not fetch: it goes through Python."
            )
        with gr.Row(visible=bool(given)):
            example = gr.Button("Run the worked example", elem_id="run_example")
        # add what `results.Shown` fills, in its order
        bars = gr.HTML(elem_id="result", elem_classes="me-live")
        with gr.Accordion("Receipt", open=False):
            receipt = gr.HTML(elem_id="receipt")
        python, shell = frame.code_panel()
        with gr.Accordion("Result as data", open=False):
            results = gr.JSON(elem_id="result_json", label="Result")
        outputs = [bars, results, receipt, python, shell, *frame.downloads_panel()]
        for each in given:
            _wire(metric, each, example, outputs)
        with gr.Accordion("What it measures", open=True):
            gr.Markdown(metric.section("Definition"))
        with gr.Accordion("How to read it", open=True):
            gr.Markdown("\n\n".join(f"### {heading}\n\n{metric.section(heading)}" for heading in READING))
        with gr.Accordion("The whole card", open=False):
            gr.Markdown(metric.text)
    return page


def _wire(metric: PageMetric, source: Input, example: gr.Button, outputs: list[Any]) -> None:
    """Let the button score the input, and the example's button fill in an example and score it."""
    takes = inspect.signature(source.score).parameters
    fields = [parameter for name, parameter in takes.items() if name not in {"metric", "progress"}]

    def run(*values: Any, progress: Callable[[float, str], object]) -> tuple[Any, ...]:
        reported = {"progress": progress} if "progress" in takes else {}
        return tuple(show(metric, source.score(metric, *values, **reported)))

    def run_example(progress: Callable[[float, str], object]) -> tuple[Any, ...]:
        values = source.example() if source.example is not None else ()
        return (*values, *run(*values, progress=progress))

    bar = inspect.Parameter("progress", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    run.__signature__ = inspect.Signature([*fields, bar])  # type: ignore[attr-defined]  # names of the API
    run.__doc__ = source.score.__doc__
    options: dict[str, Any] = {"cancel": source.cancel, "show_progress_on": outputs[:1]}
    event = frame.on_click(source.button, run, source.fields, outputs, name=source.button.elem_id, **options)
    frame.forget_when(frame.edits_of(source.fields), outputs, run=event)
    if source.example is not None:
        for field, value in zip(source.fields, source.example(), strict=True):
            if field.get_block_name() == "file":
                frame.keep_file(field, value)
        frame.on_click(example, run_example, [], [*source.fields, *outputs], name="run_example", **options)


# fields of the pages: a class of Gradio, and its options
Field = tuple[str, dict[str, Any]]


def _text(label: str, name: str, lines: int) -> Field:
    return "Textbox", {"label": label, "lines": lines, "max_length": inputs.MAX_TEXT, "elem_id": name}


def _file(label: str, name: str, types: Sequence[str] = SCORE_TYPES) -> Field:
    return "File", {"label": label, "file_types": list(types), "elem_id": name}


def _choice(label: str, choices: Sequence[str]) -> Field:
    return "Dropdown", {"choices": list(choices), "value": choices[0], "label": label}


_VARIANT = _choice("Variant", VARIANTS)
_SPELLING = (
    "`char-ngrams` needs no weights and knows no meaning: it compares how {} are spelt. {}An encoder with weights is "
    "offered where they are on this machine."
)


class Source(NamedTuple):
    """How one kind of input is given: what a visitor reads, its fields, and the function that scores it."""

    score: Callable[..., ScoredItem]
    button: str  # name of the button, and of the call of the API
    text: str
    rows: Sequence[Sequence[Field]]
    example: Callable[[], Sequence[Any]] | None = None  # values of the fields for the worked example
    tab: str = ""  # the title of its tab; empty where it is the only one
    is_slow: bool = False  # it can be cancelled


def _add(source: Source) -> Input:
    """Add the fields of a source, the button that scores and, where that takes long, the one that cancels."""
    import gradio as gr

    with gr.Tab(source.tab) if source.tab else contextlib.nullcontext():
        gr.Markdown(source.text)
        fields = []
        for row in source.rows:
            with gr.Row() if len(row) > 1 else contextlib.nullcontext():
                for kind, options in row:
                    given = dict(options)
                    if options.get("label") == "Encoder":  # their page asks for a GPU: only where it is needed
                        from music_evals.ui.spaces.tag_comparison import available_encoders

                        given["choices"] = available_encoders()
                    fields.append(getattr(gr, kind)(**given))
        with gr.Row():
            button = gr.Button("Score", variant="primary", elem_id=source.button)
            cancel = gr.Button("Cancel", elem_id=f"{source.button}_cancel") if source.is_slow else None
    return Input(source.score, fields, button, cancel, source.example)


_BOTH_FILES = [
    _file("Original", "reference", RECORDING_TYPES + SCORE_TYPES),
    _file("Edited", "prediction", RECORDING_TYPES + SCORE_TYPES),
]

_SOURCES: dict[str, tuple[Source, ...]] = {
    "edits": (Source(
        inputs.score_edit, "judge_edit",
        "Two recordings of at most six minutes, or two scores: the original, and what became of it. The example is "
        "a tune of Beethoven in C major at 120 quarters a minute; the edit moved it up a whole tone, slowed it to "
        "108 and turned the third phrase of the melody backwards.",
        [_BOTH_FILES, [_VARIANT]],
        lambda: (*inputs.example_pair(frame.temporary_folder()), VARIANTS[0]), is_slow=True,
    ),),
    "targets": (Source(
        inputs.score_request, "judge_request",
        "The original, what became of it, and what was asked for. The example is a tune of Beethoven in C major; "
        "the edit moved it up a whole tone and slowed it to 108 quarters a minute, a tenth.",
        [_BOTH_FILES, [_text("Targets, such as tempo=1.2x; key=A minor", "targets", 2)]],
        lambda: (*inputs.example_pair(frame.temporary_folder()), inputs.EXAMPLE_TARGETS), is_slow=True,
    ),),
    "captions": (), "nearness": (),  # they need the weights of an encoder
    "contexts": (
        Source(
            inputs.score_tokens, "judge_tokens",
            "0..127 is the onset of that pitch, 128 a hold, 129 a rest; 24 steps a measure; `128*23` repeats. In the "
            "example the true middle has twelve notes. The prediction writes F for E in the second measure, and one "
            "long note for the third.",
            [
                [_text("Reference: 384 tokens", "reference_tokens", 6)],
                [_text("Prediction: 96 or 384 tokens", "prediction_tokens", 4)],
                [_VARIANT],
            ],
            lambda: (inputs.EXAMPLE_REFERENCE, inputs.EXAMPLE_PREDICTION, VARIANTS[0]), tab="Tokens",
        ),
        Source(
            inputs.score_files, "judge_files",
            "One voice, 16 measures of four quarters; a prediction may be the four measures of the middle.",
            [[_file("Reference: the whole true context", "reference"), _file("Prediction", "prediction")], [_VARIANT]],
            tab="Files",
        ),
    ),
    "rolls": (Source(
        inputs.score_rolls, "judge_rolls",
        "Two scores, all voices merged on a grid of 32nd notes: the truth and the prediction. Probabilities go "
        "through Python. The example is a tune of Beethoven, and the same with the third phrase of the melody "
        "backwards.",
        [[_file("True piece", "reference"), _file("Predicted piece", "prediction")]],
        lambda: inputs.example_rolls(frame.temporary_folder()),
    ),),
    "numbers": (Source(
        inputs.score_numbers, "judge_numbers",
        "In the example two predictions of three steps have a mean of 3.0 / 6 = 0.5 nats a step.",
        [[_text("One row a prediction, one number a step", "numbers", 6)]],
        lambda: (inputs.EXAMPLE_NUMBERS,),
    ),),
    "lyrics": (Source(
        inputs.score_lyrics, "judge_lyrics",
        "A pattern has headers such as (verse); `c` is a character, `R` the last one of a rhyming line. The "
        "example is a poem of Li Bai as a language model may write it: its third line is too long, and its fourth "
        "does not rhyme.",
        [
            [_text("Generated lyrics", "lyrics", 12), _text("Pattern that was asked for", "pattern", 12)],
            [
                _choice("Variant", ("official", "corrected", "paper")),
                _choice("How rhymes are found", ("official", "line", "char")),
                ("Checkbox", {"value": True, "label": "Read the text as language models write it"}),
            ],
        ],
        lambda: (inputs.EXAMPLE_LYRICS, inputs.EXAMPLE_PATTERN, "official", "official", True),
    ),),
    "tags": (Source(
        inputs.score_tags, "judge_tags",
        "Tags between commas. "
        + _SPELLING.format("tags", "In the example one tag of three is on both sides, and one holds another. "),
        [
            [_text("Generated tags", "generated_tags", 3), _text("Reference tags", "reference_tags", 3)],
            [_choice("Encoder", [CHAR_NGRAMS]), _choice("Aggregation", AGGREGATIONS)],
        ],
        lambda: (*inputs.EXAMPLE_TAGS, CHAR_NGRAMS, AGGREGATIONS[0]),
    ),),
    "words": (Source(
        inputs.score_words, "judge_words",
        "Lyrics with headers such as (verse), and lyrics of people to compare them with. In the example a line "
        "comes twice in a section: four of its eight bigrams are distinct.",
        [[_text("Generated lyrics", "words", 10), _text("Lyrics of people", "people", 10)]],
        lambda: inputs.EXAMPLE_WORDS,
    ),),
    "themes": (Source(
        inputs.score_themes, "judge_themes",
        "Lyrics, and the theme or prompt that they were written for. " + _SPELLING.format("texts", ""),
        [[_text("Generated lyrics", "words", 10), _text("Theme", "theme", 10)], [_choice("Encoder", [CHAR_NGRAMS])]],
        lambda: (*inputs.EXAMPLE_THEME, CHAR_NGRAMS),
    ),),
    "study": (Source(
        inputs.score_study, "judge_study",
        "A table of edits as CSV, with the columns of its samples; the card says what they are. In the example two "
        "editors repair four pieces of a new model and of an old one. It stays on this page for as long as it is "
        "open.",
        [[_text("Edits, one row each", "edits_table", 10)]],
        lambda: (inputs.EXAMPLE_STUDY,),
    ),),
}  # fmt: skip
"""What the modules score (`hf.module.Module.kind`) -> how it is given."""
