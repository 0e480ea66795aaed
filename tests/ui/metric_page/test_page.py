"""The page of a metric: its callbacks as plain functions, its layout as Gradio builds it."""

from __future__ import annotations

import contextlib
import io
import json
import math
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import pages
from tests.metrics.families import FOLDERS, kind_of

from music_evals.annotations import Score
from music_evals.benchmark.records import read_records
from music_evals.benchmark.tasks.songs.text_controls import LYRIC_CONTROLS
from music_evals.errors import (
    FileTooLargeError,
    InvalidInputError,
    InvalidLyricsError,
    InvalidPatternError,
    InvalidTagsError,
    InvalidTokensError,
    NoDataError,
    ParserCrashError,
    PolyphonyError,
    UnknownNameError,
    UnreadableFileError,
)
from music_evals.metrics.arrays import VARIANTS
from music_evals.symbolic.midi import write_midi
from music_evals.symbolic.notes import make_notes
from music_evals.ui import uploads
from music_evals.ui.metric_page import inputs as metric_inputs
from music_evals.ui.metric_page import results as metric_card
from music_evals.ui.metric_page import results as metric_results
from music_evals.ui.metric_page.results import PageMetric, ScoredItem
from music_evals.ui.widgets.bars import DIRECTIONS, bar_of

ROOT = Path(__file__).resolve().parents[3]
EDITS = [path.name for path in FOLDERS if kind_of(path.name) == "edits"]
TEXTS = {
    "lyric_structure": "lyrics",
    "tag_semantic_similarity": "tags",
    "lyric_diversity": "words",
    "lyric_wordlikeness": "words",
    "lyric_theme_similarity": "themes",
}
ROLLS = {"piano_roll_error_rate"}
STUDIES = {"editing_effort_ratio", "editing_test"}
ONE_OF_EACH = {
    "note_f1",
    "music_context_preservation",
    "inpainting_nll",
    *TEXTS,
    *ROLLS,
    *STUDIES,
    "edit_success",
    "lpaps",
}
"""Metrics whose pages differ in what they take."""
TOKENS = (metric_inputs.EXAMPLE_REFERENCE, metric_inputs.EXAMPLE_PREDICTION)
LYRICS = (metric_inputs.EXAMPLE_LYRICS, metric_inputs.EXAMPLE_PATTERN)


def page_metric(name: str) -> PageMetric:
    return metric_card.load_metric(name, ROOT / "metrics" / name / "app.py")


@pytest.fixture(scope="module")
def note_f1() -> PageMetric:
    return page_metric("note_f1")


def midi_file(path: Path, n_measures: int, pitch: int = 60) -> str:
    onsets = [4 * 480 * i for i in range(n_measures)]
    score = Score(make_notes(onsets, [1920] * n_measures, [pitch] * n_measures), 480)
    path.write_bytes(write_midi(score))
    return str(path)


def bars(metric: PageMetric, judged: ScoredItem) -> str:
    return metric_results.show(metric, judged).bars


def run_code(judged: ScoredItem) -> dict[str, Any]:
    """Run the Python that a page offers, here, and return what it prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(judged.python, {})  # noqa: S102
    found = eval(printed.getvalue(), {"nan": math.nan, "inf": math.inf})  # noqa: S307
    assert isinstance(found, dict)
    return found


def test_the_example_is_a_context_and_a_middle() -> None:
    assert len(metric_inputs.parse_tokens(TOKENS[0])) == 384
    assert len(metric_inputs.parse_tokens(TOKENS[1])) == 96


def test_the_examples_of_content_score_what_a_reader_counts() -> None:
    """Four of eight bigrams are distinct; a theme without words is refused as a text field that is too long is."""
    judged = metric_inputs.score_words(page_metric("lyric_diversity"), *metric_inputs.EXAMPLE_WORDS)
    assert judged.scores == {"lyric_diversity": 0.5}
    theme = page_metric("lyric_theme_similarity")
    judged = metric_inputs.score_themes(theme, *metric_inputs.EXAMPLE_THEME, "char-ngrams")
    assert judged.scores == {"lyric_theme_similarity": pytest.approx(0.348, abs=5e-4)}
    assert metric_results.show(theme, judged).bars
    with pytest.raises(InvalidLyricsError, match=r"too long|at most"):
        metric_inputs.score_words(page_metric("lyric_diversity"), "春" * (metric_inputs.MAX_TEXT + 1), "春天")


def test_the_example_scores_what_a_reader_counts(note_f1: PageMetric) -> None:
    """12 notes asked, 10 given; all of measures 1 and 4, two of measure 2, one of measure 3: 2 * 9 / 22 = 0.818."""
    judged = metric_inputs.score_tokens(note_f1, *TOKENS, "corrected")
    assert judged.scores == {"note_f1": pytest.approx(18 / 22)}
    shown = metric_results.show(note_f1, judged)
    assert "<b>0.818</b>" in shown.bars
    assert 'class="value" style="left:81.8%"' in shown.bars
    assert "the true middle 1<" in shown.bars
    assert shown.results["scores"]["note_f1"] == pytest.approx(18 / 22)
    assert "<dd>corrected</dd>" in shown.receipt
    assert json.loads(Path(shown.json_file).read_text(encoding="utf-8")) == json.loads(json.dumps(shown.results))
    header, row = Path(shown.csv_file).read_text(encoding="utf-8").splitlines()
    assert header == "score,facet,title,value,low,high,direction,identical,unrelated,state,reason"
    assert row.startswith("note_f1,inpainting,Note F1,0.818")


def test_the_code_gives_what_the_page_shows(
    note_f1: PageMetric, in_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lyrics, tags = page_metric("lyric_structure"), page_metric("tag_semantic_similarity")
    for judged in (
        metric_inputs.score_tokens(note_f1, *TOKENS, "paper"),
        metric_inputs.score_numbers(page_metric("inpainting_nll"), metric_inputs.EXAMPLE_NUMBERS),
        metric_inputs.score_lyrics(lyrics, *LYRICS, "paper", "char", True),
        metric_inputs.score_tags(tags, *metric_inputs.EXAMPLE_TAGS, "char-ngrams", "f1"),
        metric_inputs.score_words(page_metric("lyric_diversity"), *metric_inputs.EXAMPLE_WORDS),
        metric_inputs.score_themes(page_metric("lyric_theme_similarity"), *metric_inputs.EXAMPLE_THEME, "char-ngrams"),
    ):
        found = run_code(judged)
        assert {name: found[name] for name in judged.scores} == judged.scores
    (tmp_path / "metrics").symlink_to(in_root / "metrics")
    monkeypatch.chdir(tmp_path)
    edit = metric_inputs.score_edit(page_metric("delta_bpm"), *metric_inputs.example_pair(tmp_path), "corrected")
    found = run_code(edit)
    assert {name: found[name] for name in edit.scores} == edit.scores


@pytest.mark.slow
def test_the_commands_are_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command of an edit, and of lyrics, on the files that they name, gives the score of the page."""
    from music_evals.cli import main

    monkeypatch.chdir(tmp_path)
    edit = metric_inputs.score_edit(page_metric("delta_bpm"), *metric_inputs.example_pair(tmp_path), "corrected")
    (tmp_path / "lyrics.txt").write_text(LYRICS[0], encoding="utf-8")
    (tmp_path / "pattern.txt").write_text(LYRICS[1], encoding="utf-8")
    song = metric_inputs.score_lyrics(page_metric("lyric_structure"), *LYRICS, "official", "char", True)
    for judged, name in ((edit, "delta_bpm"), (song, "lyric_structure")):
        words = shlex.split(judged.shell)
        assert main([*words[1:], "--no-report", "--resamples", "1"]) == 0
        scores = list(read_records(Path(words[-1], "records")).of("score"))
        of_this = [score for score in scores if score["metric"] == name and score["system"] not in LYRIC_CONTROLS]
        assert {score["value"] for score in of_this} == {judged.scores[name]}


@pytest.mark.parametrize("name", [path.name for path in FOLDERS if kind_of(path.name) in {"contexts", "numbers"}])
def test_every_metric_answers_its_example(name: str) -> None:
    metric = page_metric(name)
    score = "position_score" if name == "musical_inpainting" else name
    if metric.kind == "contexts":
        for variant in VARIANTS:
            assert f'data-score="{score}"' in bars(metric, metric_inputs.score_tokens(metric, *TOKENS, variant))
    else:
        judged = metric_inputs.score_numbers(metric, metric_inputs.EXAMPLE_NUMBERS)
        assert judged.scores[score] == pytest.approx(0.5)  # (0.1 + 0.2 + 0.7 + 0.1 + 1.3 + 0.6) / 6
        assert judged.result[f"{score}_n_defined"] == 2
        assert "all tokens equally likely 4.87" in bars(metric, judged)  # ln 130


def test_a_request_is_answered_target_by_target(tmp_path: Path) -> None:
    metric = page_metric("edit_success")
    files = metric_inputs.example_pair(tmp_path)
    scored = metric_inputs.score_request(metric, *files, metric_inputs.EXAMPLE_TARGETS)
    assert scored.scores == {"edit_success": pytest.approx(1.0, abs=1e-4), "edit_done": 1.0}
    assert [line.partition(":")[0] for line in scored.lines] == ["tempo", "transpose", "key"]
    assert "Edit success" in bars(metric, scored)
    unchanged = metric_inputs.score_request(metric, files[0], files[0], "tempo=0.9x; loudness=+3 dB")
    assert unchanged.scores == {"edit_success": 0.0, "edit_done": 0.0}
    with pytest.raises(InvalidInputError):
        metric_inputs.score_request(metric, *files, "faster")
    with pytest.raises(NoDataError):
        metric_inputs.score_request(metric, files[0], None, "tempo=0.9x")


@pytest.mark.slow
def test_files(note_f1: PageMetric, tmp_path: Path) -> None:
    reference = midi_file(tmp_path / "reference.mid", 16)
    same, other = midi_file(tmp_path / "same.mid", 4), midi_file(tmp_path / "other.mid", 16, pitch=61)
    assert metric_inputs.score_files(note_f1, reference, same, "corrected").scores == {"note_f1": 1.0}
    wrong = metric_inputs.score_files(note_f1, reference, other, "corrected")
    assert wrong.scores == {"note_f1": 0.0}
    [note] = wrong.notes
    assert note.startswith("1 of 1 predictions, the first at index 0, came with a past or future that differs")
    assert set(wrong.inputs) == {"reference reference.mid", "prediction other.mid"}


@pytest.mark.slow
def test_rolls(tmp_path: Path) -> None:
    """Sixteen whole notes on C, and sixteen on the note above; then the worked example."""
    metric = page_metric("piano_roll_error_rate")
    truth, other = midi_file(tmp_path / "truth.mid", 16), midi_file(tmp_path / "other.mid", 16, pitch=61)
    same = metric_inputs.score_rolls(metric, truth, truth)
    assert (same.scores["piano_roll_error_rate"], same.scores["cell_f1"]) == (0, 1)
    wrong = metric_inputs.score_rolls(metric, truth, other)
    # 31 of 32 steps of a bar sound, since the note is struck again, and the last bar is whole
    assert wrong.scores["piano_roll_error_rate"] == pytest.approx(2 * (16 * 32 - 15) / (16 * 32 * 84))
    assert wrong.scores["cell_f1"] == 0
    shown = bars(metric, wrong)
    assert all(f'data-score="{score}"' in shown for score in wrong.scores)
    with pytest.raises(NoDataError):
        metric_inputs.score_rolls(metric, truth, None)
    example = metric_inputs.score_rolls(metric, *metric_inputs.example_rolls(tmp_path))
    assert 0.9 < example.scores["cell_f1"] < 1


@pytest.mark.slow
def test_files_that_cannot_be_judged(note_f1: PageMetric, tmp_path: Path) -> None:
    reference = midi_file(tmp_path / "reference.mid", 16)
    with pytest.raises(NoDataError):
        metric_inputs.score_files(note_f1, reference, None, "corrected")
    large = tmp_path / "large.mid"
    large.write_bytes(b"MThd" + bytes(uploads.MAX_UPLOAD_BYTES))
    with pytest.raises(FileTooLargeError, match=r"large\.mid: more than 1048576 bytes"):
        metric_inputs.score_files(note_f1, reference, str(large), "corrected")
    broken = tmp_path / "broken.mid"
    broken.write_bytes(b"this is no music")
    with pytest.raises(UnreadableFileError, match=r"broken\.mid: not a readable MIDI file"):
        metric_inputs.score_files(note_f1, reference, str(broken), "corrected")
    text = tmp_path / "notes.txt"
    text.write_text("C D E", encoding="utf-8")
    with pytest.raises(UnknownNameError, match="kind of file"):
        metric_inputs.score_files(note_f1, str(text), reference, "corrected")
    chord = tmp_path / "chord.mid"
    chord.write_bytes(write_midi(Score(make_notes([0, 0], [480, 480], [60, 64]), 480)))
    with pytest.raises(PolyphonyError):
        metric_inputs.score_files(note_f1, reference, str(chord), "corrected")


@pytest.fixture(scope="module")
def two_scores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[list[str], Any]]:
    """Sixteen whole notes on C, and sixteen on the G above: the files, and what is read of them, each once."""
    folder = tmp_path_factory.mktemp("scores")
    files = [midi_file(folder / "a.mid", 16), midi_file(folder / "b.mid", 16, pitch=67)]
    with uploads.trusted_sources(*files) as sources:
        yield files, sources


@pytest.mark.parametrize("name", EDITS)
def test_every_metric_of_edits_judges_two_files(
    name: str, two_scores: tuple[list[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    metric, (files, sources) = page_metric(name), two_scores
    monkeypatch.setattr(metric_inputs, "trusted_sources", lambda *_: contextlib.nullcontext(sources))
    judged = metric_inputs.score_edit(metric, *files, "corrected")
    assert "both: no tempo at the start of the file: 120 quarters a minute assumed" in judged.notes
    shown = bars(metric, judged)
    assert all(f'data-score="{score}"' in shown for score in judged.scores)
    assert "unrelated pair about" not in shown
    assert "no such marker for scores" in shown
    assert not judged.extractors


@pytest.mark.slow
def test_the_example_of_edits(tmp_path: Path) -> None:
    """120 less 108 quarters a minute; C to D is two of six steps on the circle of fifths; the mode stays."""
    stages: list[str] = []
    pair = metric_inputs.example_pair(tmp_path)
    metric = page_metric("harmony_preservation")
    judged = metric_inputs.score_edit(metric, *pair, "corrected", lambda _, stage: stages.append(stage))
    assert judged.scores["circle_of_fifths_distance"] == pytest.approx(2 / 6)
    assert judged.scores["same_mode"] == 1
    assert stages == ["Reading the files", "Comparing"]
    tempo = metric_inputs.score_edit(page_metric("delta_bpm"), *pair, "corrected")
    assert tempo.scores["delta_bpm"] == pytest.approx(12, abs=1e-3)
    shown = bars(page_metric("delta_bpm"), tempo)
    assert "unrelated pair about" not in shown  # measured on recordings
    assert "0 and up, drawn to 15; lower is better" in shown
    assert shown.index("Companions") > shown.index('data-score="delta_bpm"')


@pytest.mark.slow
def test_two_recordings(tmp_path: Path) -> None:
    """A tone, and one a fifth higher: no frame shares a pitch class."""
    import numpy as np
    import soundfile

    time = np.arange(4 * 22050) / 22050
    for name, hz in (("a.wav", 440.0), ("b.wav", 659.26)):
        soundfile.write(tmp_path / name, np.sin(2 * np.pi * hz * time) / 2, 22050)
    metric = page_metric("chroma_dtw_similarity")
    paths = [str(tmp_path / name) for name in ("a.wav", "b.wav")]
    same = metric_inputs.score_edit(metric, paths[0], paths[0], "corrected")
    assert same.scores["chroma_dtw_similarity"] == pytest.approx(1)
    assert "version" in same.extractors["chroma"]
    assert "extractors" in metric_results.show(metric, same).receipt
    assert "unrelated pair about" in bars(metric, same)
    paper = bars(metric, metric_inputs.score_edit(metric, *paths, "paper"))
    assert "unrelated pair about" not in paper
    assert "no such marker for this variant" in paper
    other = metric_inputs.score_edit(metric, *paths, "corrected")
    assert other.scores["chroma_dtw_similarity"] < 0.999


def test_the_example_lyrics() -> None:
    """One line of 7 characters for 5, and one of three rhymes: 20 * 10 / 12 and 20 * 4 / 5, times 8 / 8.01."""
    metric = page_metric("lyric_structure")
    judged = metric_inputs.score_lyrics(metric, *LYRICS, "official", "char", True)
    assert judged.scores["lyric_word"] == pytest.approx(20 * 10 / 12 * 8 / 8.01)
    assert judged.scores["lyric_rhyme"] == pytest.approx(20 * 4 / 5 * 8 / 8.01)
    lost = "\n".join(judged.lines)
    assert "line 1 '举起头来望明月': 5 characters expected, 7 found" in lost
    assert "note: headers:" in lost
    windows = LYRICS[1].replace("\n", "\r\n") + "\r\n"
    assert metric_inputs.score_lyrics(metric, LYRICS[0], windows, "official", "char", True) == judged
    assert "lyric_word" in metric_inputs.score_lyrics(metric, *LYRICS, "paper", "char", True).scores
    with pytest.raises(InvalidLyricsError):
        metric_inputs.score_lyrics(metric, *LYRICS, "official", "char", False)


def test_a_pattern_that_is_handed_back_is_announced() -> None:
    metric = page_metric("lyric_structure")
    judged = metric_inputs.score_lyrics(metric, LYRICS[1], LYRICS[1], "official", "char", True)
    assert "the lyrics have no Chinese character" in metric_results.show(metric, judged).bars


def test_what_visitors_type_is_escaped_wherever_it_is_shown() -> None:
    lyrics = "(verse)\n</code><b>床前明月光\n疑是地上霜"
    metric = page_metric("lyric_structure")
    shown = metric_results.show(
        metric, metric_inputs.score_lyrics(metric, lyrics, "(verse)\nccccR", "official", "char", False)
    )
    assert "<b>床" not in shown.bars + shown.receipt
    assert shown.bars.count("</code>") == 1


@pytest.mark.slow
def test_names_of_files_are_escaped(tmp_path: Path, note_f1: PageMetric) -> None:
    name = "'<img src=x onerror=alert(1)>.mid"
    judged = metric_inputs.score_files(
        note_f1, midi_file(tmp_path / "=1+1.mid", 16), midi_file(tmp_path / name, 4), "corrected"
    )
    shown = metric_results.show(note_f1, judged)
    assert "<img" not in shown.receipt + shown.bars
    assert "&lt;img" in shown.receipt
    compile(shown.python, "page", "exec")


def test_the_example_tags() -> None:
    """Nine pairs, of which one is equal: at least a ninth."""
    metric = page_metric("tag_semantic_similarity")
    judged = metric_inputs.score_tags(metric, *metric_inputs.EXAMPLE_TAGS, "char-ngrams", "mean")
    assert f"{judged.scores['tag_semantic_similarity']:.3f}" == "0.169"
    assert judged.settings["encoder"] == "char-ngrams, revision 1"
    alone = metric_inputs.score_tags(metric, "抒情", "抒情", "char-ngrams", "f1")
    assert alone.scores["tag_semantic_similarity"] == pytest.approx(1)
    nothing = metric_inputs.score_tags(metric, " ,", "抒情", "char-ngrams", "mean")
    assert '<b class="none">undefined</b>' in bars(metric, nothing)


def test_tags_are_cut_at_commas_of_both_widths() -> None:
    parse = metric_inputs.parse_tags
    assert parse(" 抒情，慢速,Lo-Fi; 钢琴、\n现场 版 ") == ["抒情", "慢速", "Lo-Fi", "钢琴", "现场 版"]
    assert parse(" ，; ") == []
    assert len(parse(",".join(["a"] * 100))) == 100
    with pytest.raises(InvalidTagsError, match="at most 100 tags, got 101"):
        parse(",".join(["a"] * 101))


def test_texts_are_bounded_without_a_browser(note_f1: PageMetric) -> None:
    """A call of the API passes by the limits of text fields."""
    long = "a" * (metric_inputs.MAX_TEXT + 1)
    lyrics, tags = page_metric("lyric_structure"), page_metric("tag_semantic_similarity")
    said = "at most 20000 characters, got 20001"
    for at in range(2):
        typed = [long if i == at else "60" for i in range(2)]
        with pytest.raises(InvalidTokensError, match=said):
            metric_inputs.score_tokens(note_f1, typed[0], typed[1], "corrected")
        with pytest.raises(InvalidTagsError, match=said):
            metric_inputs.score_tags(tags, typed[0], typed[1], "char-ngrams", "mean")
        with pytest.raises((InvalidLyricsError, InvalidPatternError)[at], match=said):
            metric_inputs.score_lyrics(lyrics, typed[0], typed[1], "official", "official", True)
    with pytest.raises(InvalidInputError, match=said):
        metric_inputs.score_numbers(page_metric("inpainting_nll"), long)
    assert metric_inputs.parse_tags("慢" * 60) == ["慢" * 60]
    with pytest.raises(InvalidTagsError, match="tags of at most 60 characters, got 61"):
        metric_inputs.score_tags(tags, "慢", "慢" * 61, "char-ngrams", "mean")


def test_a_page_fetches_no_encoder() -> None:
    with pytest.raises(UnknownNameError):
        metric_inputs.score_tags(page_metric("tag_semantic_similarity"), "慢", "慢", "BAAI/bge-large-zh-v1.5", "mean")


def test_edits_that_cannot_be_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    metric = page_metric("chroma_dtw_similarity")
    score = midi_file(tmp_path / "a.mid", 16)
    with pytest.raises(NoDataError):
        metric_inputs.score_edit(metric, score, None, "corrected")
    text = tmp_path / "text.wav"
    text.write_text("this is no music")
    with pytest.raises(UnreadableFileError, match=r"text\.wav"):
        metric_inputs.score_edit(metric, str(text), str(text), "corrected")
    monkeypatch.setattr(uploads, "MAX_UPLOAD_BYTES", 10)
    monkeypatch.setattr(uploads, "MAX_RECORDING_BYTES", 5)
    for path, bound in ((score, 10), (str(text), 5)):
        with pytest.raises(FileTooLargeError, match=f"more than {bound} bytes"):
            metric_inputs.score_edit(metric, path, path, "corrected")


def test_a_score_beside_a_recording(tmp_path: Path) -> None:
    import soundfile

    soundfile.write(tmp_path / "a.wav", [0.1, -0.1] * 8000, 8000)
    with pytest.raises(InvalidInputError, match="compare two recordings, or two scores"):
        metric_inputs.score_edit(
            page_metric("delta_bpm"), midi_file(tmp_path / "a.mid", 16), str(tmp_path / "a.wav"), "corrected"
        )


def test_an_upload_has_little_time(note_f1: PageMetric, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert uploads.TIMEOUT_SEC <= 15
    monkeypatch.setattr(uploads, "TIMEOUT_SEC", 1e-6)
    files = [midi_file(tmp_path / name, 5000) for name in ("reference.mid", "prediction.mid")]
    with pytest.raises(ParserCrashError):
        metric_inputs.score_files(note_f1, *files, "corrected")


def test_an_undefined_score_is_said_to_be_one() -> None:
    metric = page_metric("pitch_accuracy")
    judged = metric_inputs.score_tokens(metric, TOKENS[0], "129*96", "corrected")
    shown = metric_results.show(metric, judged)
    assert '<b class="none">undefined</b>' in shown.bars
    assert 'class="value" style' not in shown.bars
    assert any(note.startswith("pitch_accuracy is undefined") for note in judged.notes)
    assert shown.results["scores"] == {"pitch_accuracy": None}
    assert (
        Path(shown.csv_file).read_text(encoding="utf-8").splitlines()[1]
        == "pitch_accuracy,inpainting,Pitch accuracy,,0.0,1.0,higher,1.0,,undefined,"
    )


@pytest.mark.parametrize("text", ["", "sixty", "60;62", "-1", "60 128*", "60 *3", "1234", "60 0x1F", "٦٠", "60.5"])
def test_what_is_no_token_is_quoted(text: str) -> None:
    with pytest.raises(InvalidTokensError, match="expected tokens such as 60"):
        metric_inputs.parse_tokens(text)


def test_repeats_are_bounded() -> None:
    assert len(metric_inputs.parse_tokens("128*4096")) == 4096
    with pytest.raises(InvalidTokensError, match="at most 4096"):
        metric_inputs.parse_tokens("128*4096 60")
    with pytest.raises(InvalidTokensError, match="at most 4096"):
        metric_inputs.parse_tokens(" ".join(["1*9999"] * 1000))


def test_numbers() -> None:
    assert metric_inputs.parse_numbers(" -1, -2 \n-0.5 -1e-3") == [[-1.0, -2.0], [-0.5, -0.001]]
    assert metric_inputs.parse_numbers("-inf") == [[-math.inf]]
    with pytest.raises(InvalidInputError, match="row of numbers"):
        metric_inputs.parse_numbers("-1 minus two")
    with pytest.raises(InvalidInputError, match="at most 4096"):
        metric_inputs.parse_numbers("-1 " * 5000)


def test_a_page_needs_its_card(tmp_path: Path) -> None:
    with pytest.raises(NoDataError, match=r"README\.md"):
        metric_card.load_card(tmp_path)
    (tmp_path / "README.md").write_text("# No YAML\n", encoding="utf-8")
    with pytest.raises(InvalidInputError, match="YAML between two lines"):
        metric_card.load_card(tmp_path)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_the_meaning_of_every_score_is_that_of_its_card(folder: Path) -> None:
    """Range and direction on the bar are those in the card's table."""
    import re

    _, text = metric_card.load_card(folder)
    section = text[text.index("## Range and direction") :]
    rows = re.findall(r"^\| `(\w+)` \| (-?[\d.]+) to ([\d.]+|∞).*? \| (.*) \|$", section, re.MULTILINE)
    assert rows
    for name, low, high, words in rows:
        bar = bar_of(name, 0.5, modality="audio", variant="corrected")
        assert (bar.chance is not None and bar_of(name, 0.5).chance is None) == (folder.name in EDITS)
        assert (bar.low, DIRECTIONS[bar.direction]) == (float(low), words)
        assert bar.high == pytest.approx(math.inf if high == "∞" else float(high), abs=5e-4)
        assert all(bar.low <= mark.value <= bar.high for mark in bar.marks.values())


def test_nothing_is_left_on_disk(note_f1: PageMetric) -> None:
    from evaluate import config

    before = set(Path(config.HF_METRICS_CACHE).rglob("*.arrow"))
    metric_inputs.score_tokens(note_f1, *TOKENS, "corrected")
    assert set(Path(config.HF_METRICS_CACHE).rglob("*.arrow")) == before


@pytest.mark.parametrize("name", sorted(STUDIES))
def test_a_study_is_judged_from_its_table(name: str) -> None:
    judged = metric_inputs.score_study(page_metric(name), metric_inputs.EXAMPLE_STUDY)
    if name == "editing_test":
        assert judged.scores["delta_eq1"] == 1.0
        assert any("4 pieces" in note for note in judged.notes)
    else:  # the times are 400, 360, 510 and 440 of 700
        times = [400, 360, 510, 440]
        assert judged.scores["time_effort_ratio"] == pytest.approx(math.prod(time / 700 for time in times) ** 0.25)
    shown = metric_results.show(page_metric(name), judged)
    assert set(shown.results["scores"]) == set(judged.scores)
    with pytest.raises(InvalidInputError, match="edits, row 1: EQ3 must be"):
        metric_inputs.score_study(page_metric(name), metric_inputs.EXAMPLE_STUDY.replace(",4\n", ",9\n", 1))
    with pytest.raises(InvalidInputError, match="more or fewer cells"):
        metric_inputs.score_study(page_metric(name), metric_inputs.EXAMPLE_STUDY + ",1")


@pytest.mark.gradio
@pytest.mark.parametrize(
    "names",
    [
        pytest.param(ONE_OF_EACH, id="one of each kind"),
        pytest.param({path.name for path in FOLDERS}, id="all", marks=pytest.mark.slow),
    ],
)
def test_every_app_builds(names: set[str]) -> None:
    for name in names:
        page = pages.build(ROOT / "metrics" / name / "app.py")
        config = page.get_config_file()
        labels = {part["props"].get("label") for part in config["components"]}
        texts = [str(part["props"].get("value")) for part in config["components"] if part["type"] == "markdown"]
        assert not pages.faults(page), name
        kind = kind_of(name)
        assert config["title"].lower().replace(" ", "_").replace("-", "_") == name
        buttons: dict[str, set[str]] = {
            "captions": set(),  # a page fetches no weights
            "nearness": set(),
            "contexts": {"judge_files", "judge_tokens"},
            "rolls": {"judge_rolls"},
            "numbers": {"judge_numbers"},
            "edits": {"judge_edit"},
            "targets": {"judge_request"},
            "lyrics": {"judge_lyrics"},
            "tags": {"judge_tags"},
            "words": {"judge_words"},
            "themes": {"judge_themes"},
            "study": {"judge_study"},
        }
        assert set(filter(None, pages.public_names(config))) == buttons[kind] | (
            {"run_example"} if buttons[kind] else set()
        )
        assert ("Reference: 384 tokens" in labels) == (kind == "contexts")
        assert ({"True piece", "Predicted piece"} <= set(labels)) == (kind == "rolls")
        assert ({"Original", "Edited"} <= set(labels)) == (kind in {"edits", "targets"})
        assert ("Pattern that was asked for" in labels) == (kind == "lyrics")
        assert ({"Generated tags", "Reference tags"} <= set(labels)) == (kind == "tags")
        assert ("Lyrics of people" in labels) == (kind == "words")
        assert ("Theme" in labels) == (kind == "themes")
        assert "## Limitations" in " ".join(texts)


SERVE = """
import json, sys
from gradio_client import Client, handle_file
from music_evals.ui.frame import launch
from music_evals.ui.metric_page.page import build_metric_page
from music_evals.ui.metric_page.inputs import EXAMPLE_REFERENCE, EXAMPLE_PREDICTION

page = build_metric_page("note_f1", "metrics/note_f1/app.py")
_, url, _ = launch(page, prevent_thread_lock=True, quiet=True, server_name="127.0.0.1")
client = Client(url, verbose=False)
files = [handle_file(path) for path in sys.argv[1:]]
answers = [
    client.predict(EXAMPLE_REFERENCE, EXAMPLE_PREDICTION, "corrected", api_name="/judge_tokens"),
    client.predict(*files, "paper", api_name="/judge_files"),
    client.predict(api_name="/run_example"),
]

try:
    client.predict("60", "60", "corrected", api_name="/judge_tokens")
except Exception as error:
    answers.append(str(error))
page.close()
print(json.dumps(answers))
"""


@pytest.mark.gradio
@pytest.mark.slow
def test_a_served_page_answers(tmp_path: Path) -> None:
    files = [midi_file(tmp_path / "reference.mid", 16), midi_file(tmp_path / "prediction.mid", 4)]
    command = [sys.executable, "-c", SERVE, *files]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=300)
    assert run.returncode == 0, run.stderr
    tokens, uploaded, example, refused = json.loads(run.stdout.splitlines()[-1])
    assert ">0.818<" in tokens[0]
    assert tokens[1]["scores"]["note_f1"] == pytest.approx(18 / 22)
    assert uploaded[1]["scores"]["note_f1"] == 1
    assert example[4]["scores"] == tokens[1]["scores"]
    assert "predictions[0]: expected tokens of 96 steps" in refused
