"""The page of a metric: what it measures, a worked example, inputs of its own kind, and the result on its range.

`app.py` of every metric folder is a few lines over `build_metric_page`. What the buttons do are plain functions, in
`metric_inputs` and `metric_results`.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from music_evals.metrics.arrays import VARIANTS
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
    largest = MAX_RECORDING_BYTES if metric.kind == "edits" else MAX_UPLOAD_BYTES
    intro = f"{metric.card['description']}\n\n{frame.privacy()}"
    with frame.space(metric.card["title"], intro, max_upload_bytes=largest) as page:
        given = _INPUTS[metric.kind]()
        with gr.Row():
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


def _button(name: str, *, slow: bool = False) -> tuple[Any, Any]:
    """Add the button that scores and, where that takes long, the one that cancels."""
    import gradio as gr

    with gr.Row():
        button = gr.Button("Score", variant="primary", elem_id=name)
        cancel = gr.Button("Cancel", elem_id=f"{name}_cancel") if slow else None
    return button, cancel


def _add_edit() -> list[Input]:
    import gradio as gr

    gr.Markdown(
        "Two recordings of at most six minutes, or two scores: the original, and what became of it. The example is "
        "a tune of Beethoven in C major at 120 quarters a minute; the edit moved it up a whole tone, slowed it to 108 "
        "and turned the third phrase of the melody backwards."
    )
    types = [*RECORDING_TYPES, *SCORE_TYPES]
    with gr.Row():
        reference = gr.File(label="Original", file_types=types, elem_id="reference")
        prediction = gr.File(label="Edited", file_types=types, elem_id="prediction")
    variant = gr.Dropdown(list(VARIANTS), value=VARIANTS[0], label="Variant")
    fields = [reference, prediction, variant]
    return [
        Input(
            inputs.score_edit,
            fields,
            *_button("judge_edit", slow=True),
            example=lambda: (*inputs.example_pair(frame.temporary_folder()), VARIANTS[0]),
        )
    ]


def _add_tokens_tab() -> Input:
    import gradio as gr

    with gr.Tab("Tokens"):
        gr.Markdown(
            "0..127 is the onset of that pitch, 128 a hold, 129 a rest; 24 steps a measure; `128*23` repeats. In the "
            "example the true middle has twelve notes. The prediction writes F for E in the second measure, and one "
            "long note for the third."
        )
        reference = gr.Textbox(
            label="Reference: 384 tokens", lines=6, max_length=inputs.MAX_TEXT, elem_id="reference_tokens"
        )
        prediction = gr.Textbox(
            label="Prediction: 96 or 384 tokens", lines=4, max_length=inputs.MAX_TEXT, elem_id="prediction_tokens"
        )
        variant = gr.Dropdown(list(VARIANTS), value=VARIANTS[0], label="Variant")
        fields = [reference, prediction, variant]
        values = (inputs.EXAMPLE_REFERENCE, inputs.EXAMPLE_PREDICTION, VARIANTS[0])
        return Input(inputs.score_tokens, fields, *_button("judge_tokens"), example=lambda: values)


def _add_files_tab() -> Input:
    import gradio as gr

    with gr.Tab("Files"):
        gr.Markdown("One voice, 16 measures of four quarters; a prediction may be the four measures of the middle.")
        types = list(SCORE_TYPES)
        with gr.Row():
            reference = gr.File(label="Reference: the whole true context", file_types=types, elem_id="reference")
            prediction = gr.File(label="Prediction", file_types=types, elem_id="prediction")
        variant = gr.Dropdown(list(VARIANTS), value=VARIANTS[0], label="Variant")
        return Input(inputs.score_files, [reference, prediction, variant], *_button("judge_files"))


def _add_rolls() -> list[Input]:
    import gradio as gr

    gr.Markdown(
        "Two scores, all voices merged on a grid of 32nd notes: the truth and the prediction. Probabilities go through "
        "Python. The example is a tune of Beethoven, and the same with the third phrase of the melody backwards."
    )
    types = list(SCORE_TYPES)
    with gr.Row():
        reference = gr.File(label="True piece", file_types=types, elem_id="reference")
        prediction = gr.File(label="Predicted piece", file_types=types, elem_id="prediction")
    button = _button("judge_rolls")
    return [
        Input(
            inputs.score_rolls,
            [reference, prediction],
            *button,
            example=lambda: inputs.example_rolls(frame.temporary_folder()),
        )
    ]


def _add_numbers() -> list[Input]:
    import gradio as gr

    gr.Markdown("In the example two predictions of three steps have a mean of 3.0 / 6 = 0.5 nats a step.")
    rows = gr.Textbox(
        label="One row a prediction, one number a step", lines=6, max_length=inputs.MAX_TEXT, elem_id="numbers"
    )
    return [Input(inputs.score_numbers, [rows], *_button("judge_numbers"), example=lambda: (inputs.EXAMPLE_NUMBERS,))]


def _add_lyrics() -> list[Input]:
    import gradio as gr

    gr.Markdown(
        "A pattern has headers such as (verse); `c` is a character, `R` the last one of a rhyming line. The example is "
        "a poem of Li Bai as a language model may write it: its third line is too long, and its fourth does not rhyme."
    )
    with gr.Row():
        lyrics = gr.Textbox(label="Generated lyrics", lines=12, max_length=inputs.MAX_TEXT, elem_id="lyrics")
        pattern = gr.Textbox(
            label="Pattern that was asked for", lines=12, max_length=inputs.MAX_TEXT, elem_id="pattern"
        )
    with gr.Row():
        variant = gr.Dropdown(["official", "corrected", "paper"], value="official", label="Variant")
        rhyme = gr.Dropdown(["official", "line", "char"], value="official", label="How rhymes are found")
        normalise = gr.Checkbox(value=True, label="Read the text as language models write it")
    fields = [lyrics, pattern, variant, rhyme, normalise]
    values = (inputs.EXAMPLE_LYRICS, inputs.EXAMPLE_PATTERN, "official", "official", True)
    return [Input(inputs.score_lyrics, fields, *_button("judge_lyrics"), example=lambda: values)]


def _add_tags() -> list[Input]:
    import gradio as gr

    from music_evals.lyrics.embeddings import CHAR_NGRAMS
    from music_evals.metrics.semantics import AGGREGATIONS
    from music_evals.ui.spaces.tag_comparison import available_encoders

    gr.Markdown(
        "Tags between commas. `char-ngrams` needs no weights and knows no meaning: it compares how tags are spelt. In "
        "the example one tag of three is on both sides, and one holds another. An encoder with weights is offered "
        "where they are on this machine."
    )
    with gr.Row():
        generated = gr.Textbox(label="Generated tags", lines=3, max_length=inputs.MAX_TEXT, elem_id="generated_tags")
        reference = gr.Textbox(label="Reference tags", lines=3, max_length=inputs.MAX_TEXT, elem_id="reference_tags")
    with gr.Row():
        encoder = gr.Dropdown(available_encoders(), value=CHAR_NGRAMS, label="Encoder")
        aggregation = gr.Dropdown(list(AGGREGATIONS), value=AGGREGATIONS[0], label="Aggregation")
    fields = [generated, reference, encoder, aggregation]
    values = (*inputs.EXAMPLE_TAGS, CHAR_NGRAMS, AGGREGATIONS[0])
    return [Input(inputs.score_tags, fields, *_button("judge_tags"), example=lambda: values)]


def _add_words() -> list[Input]:
    import gradio as gr

    gr.Markdown(
        "Lyrics with headers such as (verse), and lyrics of people to compare them with. In the example a line comes "
        "twice in a section: four of its eight bigrams are distinct."
    )
    with gr.Row():
        lyrics = gr.Textbox(label="Generated lyrics", lines=10, max_length=inputs.MAX_TEXT, elem_id="words")
        people = gr.Textbox(label="Lyrics of people", lines=10, max_length=inputs.MAX_TEXT, elem_id="people")
    return [Input(inputs.score_words, [lyrics, people], *_button("judge_words"), example=lambda: inputs.EXAMPLE_WORDS)]


def _add_themes() -> list[Input]:
    import gradio as gr

    from music_evals.lyrics.embeddings import CHAR_NGRAMS
    from music_evals.ui.spaces.tag_comparison import available_encoders

    gr.Markdown(
        "Lyrics, and the theme or prompt that they were written for. `char-ngrams` needs no weights and knows no "
        "meaning: it compares how texts are spelt. An encoder with weights is offered where they are on this machine."
    )
    with gr.Row():
        lyrics = gr.Textbox(label="Generated lyrics", lines=10, max_length=inputs.MAX_TEXT, elem_id="words")
        theme = gr.Textbox(label="Theme", lines=10, max_length=inputs.MAX_TEXT, elem_id="theme")
    encoder = gr.Dropdown(available_encoders(), value=CHAR_NGRAMS, label="Encoder")
    values = (*inputs.EXAMPLE_THEME, CHAR_NGRAMS)
    return [Input(inputs.score_themes, [lyrics, theme, encoder], *_button("judge_themes"), example=lambda: values)]


def _add_study() -> list[Input]:
    import gradio as gr

    gr.Markdown(
        "A table of edits as CSV, with the columns of its samples; the card says what they are. In the example two "
        "editors repair four pieces of a new model and of an old one. It stays on this page for as long as it is open."
    )
    edits = gr.Textbox(label="Edits, one row each", lines=10, max_length=inputs.MAX_TEXT, elem_id="edits_table")
    return [Input(inputs.score_study, [edits], *_button("judge_study"), example=lambda: (inputs.EXAMPLE_STUDY,))]


_INPUTS: dict[str, Callable[[], list[Input]]] = {
    "edits": _add_edit,
    "contexts": lambda: [_add_tokens_tab(), _add_files_tab()],
    "rolls": _add_rolls,
    "numbers": _add_numbers,
    "lyrics": _add_lyrics,
    "tags": _add_tags,
    "words": _add_words,
    "themes": _add_themes,
    "study": _add_study,
}
