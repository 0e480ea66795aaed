"""The preservation page without a browser: stages, what is shown, errors, and what would be dangerous to show."""

from __future__ import annotations

import csv
import dataclasses
import json
import math
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from tests import pages

from music_evals.annotations import NOTE_DTYPE, Score, Tempo
from music_evals.audio.loudness import integrated_loudness
from music_evals.benchmark.tasks.preservation.worker import outline
from music_evals.cli import main
from music_evals.errors import (
    FileTooLargeError,
    InvalidInputError,
    MissingBackendError,
    NoDataError,
    UnknownNameError,
    UnreadableFileError,
)
from music_evals.metrics.catalogue import CATALOGUE, SHOWN_AUXILIARY
from music_evals.metrics.edit_success import MEANT_TO_CHANGE
from music_evals.pipelines.preservation import AUXILIARY, PRESERVATION_METRICS, evaluate_preservation
from music_evals.symbolic.midi import save_midi
from music_evals.ui.spaces.preservation import (
    Compared,
    _track,
    build_demo,
    code_of,
    compare_uploads,
    findings_html,
    results_of,
    show,
)
from music_evals.ui.spaces.preservation_examples import Piece, score_of, write_examples
from music_evals.ui.uploads import load_recording
from music_evals.ui.widgets.ab_player import levels_text
from music_evals.ui.widgets.bars import bars_html
from music_evals.ui.widgets.plane_view import plane_html, preservation_of
from music_evals.ui.widgets.timeline_view import disagreements

soundfile = pytest.importorskip("soundfile")
pytest.importorskip("librosa")

SHOWN = (*PRESERVATION_METRICS, *(name for name in AUXILIARY if name in SHOWN_AUXILIARY))


def compared(original: str | None, edit: str | None, **options) -> Compared:
    """What `compare_uploads` returns, without its stages."""
    stages = compare_uploads(original, edit, **options)
    while True:
        try:
            next(stages)
        except StopIteration as end:
            return end.value


@pytest.fixture(scope="module")
def examples(tmp_path_factory):
    return write_examples(tmp_path_factory.mktemp("examples"))


@pytest.fixture(scope="module")
def scores(examples):
    return compared(examples[-1].original, examples[-1].edit)


@pytest.fixture(scope="module")
def recordings(examples):
    return compared(examples[0].original, examples[0].edit)


def entry(pair: Compared, name: str) -> dict:
    return next(bar.row for bar in pair.bars if bar.score == name)


def test_what_was_asked_is_measured_and_shown(examples, recordings):
    """Two semitones were asked of a phrase that was turned round: it is where it was."""
    pair = compared(examples[-1].original, examples[-1].edit, targets=" transpose=+2 ")
    assert (pair.targets["transpose"].success, pair.targets["transpose"].verdict) == (0.0, "not done")
    results, shown = results_of(pair), str(show(pair)[1])
    assert results["targets"]["transpose"]["success"] == 0.0
    assert "not done" in shown
    assert "<svg" not in plane_html(pair.bars, pair.targets)  # nobody knows what unrelated scores have
    assert "'transpose=+2'" in code_of(pair)[0]
    picture = plane_html(recordings.bars, pair.targets)
    assert picture.count("<circle") == 2
    assert 0 < preservation_of(recordings.bars, ()) < 1
    without = [bar for bar in recordings.bars if bar.score not in MEANT_TO_CHANGE["tempo"]]
    assert (
        preservation_of(recordings.bars, ["tempo"]) == preservation_of(without, ()) != preservation_of(without, ["key"])
    )
    with pytest.raises(InvalidInputError):
        compared(examples[-1].original, examples[-1].edit, targets="faster")


def test_nothing_is_measured_that_was_not_asked(scores):
    assert results_of(scores)["targets"] == {}
    assert "What was asked" not in show(scores)[1]


def test_recordings_are_compared_a_stage_at_a_time(examples):
    stages = list(compare_uploads(examples[3].original, examples[3].edit))
    assert stages[0] == (0.0, "Reading the original")
    assert [stage.done for stage in stages] == sorted({stage.done for stage in stages})
    assert stages[-1].text == "Comparing"
    assert sum(stage.text.startswith("Listening to the edit") for stage in stages) == 8


@pytest.mark.slow
def test_what_is_known_of_the_example_is_found(recordings):
    # the edit was written a fifth higher and at 116 BPM instead of 120
    texts = [finding.text for finding in recordings.findings]
    assert "key moved up a fifth (C major to G major)" in texts
    assert "tempo 4 BPM slower (120 to 116 BPM)" in texts
    pattern = r"melody moved up a fifth, at the edit's tempo: (\d+) of (\d+) notes found again there"
    [(again, heard)] = [map(int, found.groups()) for found in (re.fullmatch(pattern, text) for text in texts) if found]
    written = np.count_nonzero(score_of(Piece()).notes["voice"] == 0)
    assert 0.75 * written < again == heard <= written  # notes struck again are not all heard apart


@pytest.mark.slow
def test_a_transposed_and_stretched_edit_can_be_compared_without_that(recordings, scores):
    assert recordings.move.semitones == 7
    assert recordings.move.stretch == pytest.approx(120 / 116, abs=0.005)
    results = results_of(recordings)
    assert results["move"] == recordings.move._asdict()
    without = {found["facet"]: found for found in results["findings_unmoved"]}
    assert [without[facet]["kind"] for facet in ("key", "tempo", "melody")] == ["same"] * 3
    original, edit = (source.features for source in recordings.sources)
    as_it_is, unmoved = (
        [place for place in disagreements(outline(original), outline(side)) if place.kind == "note"]
        for side in (edit, recordings.unmoved_edit)
    )
    assert len(as_it_is) > 80
    assert len(unmoved) <= 4
    told = findings_html(recordings)
    assert told.count('class="me-move"') == 1
    assert all(told.count(f'class="{name}"') == 1 for name in ("me-moved", "me-unmoved"))
    # no switch where there is nothing to undo
    assert results_of(scores)["findings_unmoved"] == []
    assert "checkbox" not in findings_html(scores)


@pytest.mark.slow
def test_the_page_gives_the_numbers_of_the_pipeline(recordings, examples):
    options = {"companions": SHOWN_AUXILIARY, "per_item": True, "failures": "record"}
    expected = evaluate_preservation([examples[0].original], [examples[0].edit], **options)["per_item"][0]
    assert {bar.score: bar.value for bar in recordings.bars} == {name: expected[name] for name in SHOWN}


@pytest.mark.slow
def test_levels_are_told_against_the_files(tmp_path):
    # what is analysed has its peak at 1, so that both sides would look equally loud
    samples = 0.8 * np.sin(2 * np.pi * 440 * np.arange(3 * 44100) / 44100)
    tracks = []
    for name, level in (("a.wav", 1.0), ("b.wav", 0.25)):
        soundfile.write(tmp_path / name, level * samples, 44100, subtype="FLOAT")
        tracks.append(_track("Original", load_recording(tmp_path / name)))
        assert np.abs(tracks[-1].samples).max() == pytest.approx(0.8 * level, abs=1e-3)
    loudness = [integrated_loudness(track.samples, track.sample_rate) for track in tracks]
    assert "the original plays 12.0 dB softer than its file, to match the edit" in levels_text(*loudness)


def test_every_score_carries_its_markers(recordings):
    found = entry(recordings, "circle_of_fifths_distance")
    assert (found["low"], found["high"], found["direction"]) == (0.0, 1.0, "lower")
    assert (found["identical"], found["unrelated"], found["state"]) == (0.0, 0.44, "defined")
    shown = bars_html(recordings.bars)
    assert shown.count('class="score"') == len(SHOWN)
    counts = [shown.count(f'<span class="{kind}"') for kind in ("best", "chance", "value")]
    assert counts == [len(SHOWN), sum(not math.isnan(CATALOGUE[name].chance) for name in SHOWN), len(SHOWN)]
    assert "0 and up, drawn to 30.5; lower is better; identical pair 0; unrelated pair about 24.4" in shown
    assert [shown.index(f"<h3>{facet}") for facet in ("Harmony", "Rhythm", "Structure", "Melody")] == sorted(
        shown.index(f"<h3>{facet}") for facet in ("Harmony", "Rhythm", "Structure", "Melody")
    )


@pytest.mark.slow
def test_markers_of_unrelated_pairs_are_left_out_where_they_were_not_measured(scores, examples):
    assert all(bar.row["unrelated"] is None for bar in scores.bars)
    assert "measured on recordings" in findings_html(scores)
    paper = compared(examples[-1].original, examples[-1].edit, variant="paper")
    assert all(bar.row["unrelated"] is None for bar in paper.bars)


@pytest.mark.slow
@pytest.mark.gradio
def test_of_a_silent_edit_nothing_was_kept_and_what_has_no_worst_value_is_undefined(examples):
    pair = compared(examples[3].original, examples[3].edit)
    undefined = {bar.score for bar in pair.bars if bar.state == "undefined"}
    sections = {"segment_ari", "boundary_f_measure", "ssm_correlation"}
    assert undefined == {"circle_of_fifths_distance", "delta_bpm", "swing_ratio", *sections}
    assert {bar.value for bar in pair.bars if bar.score not in undefined} == {0.0}
    shown = bars_html(pair.bars)
    assert shown.count(">undefined</b>") == len(undefined)
    assert shown.count('<span class="value"') == len(SHOWN) - len(undefined)
    assert "silent: the peak lies below -60 dBFS" in shown
    assert "both play as they are" in show(pair)[3]["html"].lower()


def test_failed_is_told_in_words_of_visitors_and_not_as_undefined(scores):
    error = MissingBackendError("essentia_bgate", "", "beats by <essentia>", install="pip install essentia")
    failed = scores.scores._replace(failures={"circle_of_fifths_distance": error})
    pair = dataclasses.replace(scores, scores=failed)
    assert [bar.state for bar in pair.bars[:2]] == ["failed", "defined"]
    shown = bars_html(pair.bars)
    assert ">not computed</b>" in shown
    assert "beats by &lt;essentia&gt;: not available on this page" in shown
    assert "pip install" not in shown


@pytest.mark.slow
def test_companions_without_bounds_are_drawn_as_far_as_they_go(examples):
    pair = compared(examples[-1].original, examples[-1].edit, companions=True)
    shown = bars_html(pair.bars)
    assert 'data-score="tempo_octave"' in shown
    assert "any number, drawn to 1; nearer to 0 is better" in shown
    of_facets = {name for name, metric in AUXILIARY.items() if metric.facet != "timbre"}
    assert {bar.score for bar in pair.bars} == {*PRESERVATION_METRICS, *of_facets}
    python, shell = code_of(pair)
    assert "companions=True" in python
    assert "--companions all" in shell


def test_what_the_verb_shows_by_default_is_shown(scores):
    """Scores that see which pitch sounds when, and form where sections are not found."""
    assert {bar.score for bar in scores.bars} == {*PRESERVATION_METRICS, *SHOWN_AUXILIARY}
    python, shell = code_of(scores)
    assert f"companions={list(scores.settings.companions)}" in python
    assert "--companions" not in shell


@pytest.mark.gradio
def test_everything_that_is_shown_is_there(scores, examples):
    results, bars, told, heard, python, shell, receipt, json_path, csv_path = show(scores)
    assert json.loads(Path(json_path).read_text(encoding="utf-8"))["findings"] == results["findings"]
    with Path(csv_path).open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["score"] for row in rows] == list(SHOWN)
    assert float(rows[0]["value"]) == results["scores"]["circle_of_fifths_distance"]["value"]
    assert results["entrance"] == "symbolic"
    assert "51 of 62 melody notes found again" in told
    assert 'class="timeline"' in heard["html"]
    assert len(heard["tracks"]) == 2
    assert "corrected" in receipt
    assert "beat_f_measure" in bars
    assert "evaluate_preservation" in python
    assert "--reference ./original.mid" in shell


def test_the_receipt_tells_extractors_of_recordings_and_content_of_files(recordings):
    receipt = results_of(recordings)["receipt"]
    assert {"beats", "chords", "key"} <= set(receipt["extractors"]["features"])
    assert receipt["original"]["content"] != receipt["edit"]["content"]
    assert receipt["versions"]["music_evals"]


def test_the_python_that_is_offered_gives_the_same_scores(scores, examples, monkeypatch, capsys):
    python, _ = code_of(scores)
    monkeypatch.chdir(Path(examples[-1].original).parent)
    exec(python.replace("print(", "import json; print(json.dumps(").replace("[0])", "[0], default=str))"), {})  # noqa: S102
    got = json.loads(capsys.readouterr().out)
    for found in (bar.row for bar in scores.bars):
        assert got[found["score"]] == pytest.approx(found["value"])


def test_the_command_that_is_offered_gives_the_same_scores(scores, examples, tmp_path, monkeypatch):
    _, shell = code_of(scores)
    words = shlex.split(shell)
    words[words.index("--out") + 1] = str(tmp_path / "out")
    monkeypatch.chdir(Path(examples[-1].original).parent)
    assert main([*words[1:], "--no-report", "--engine", "serial"]) == 0
    results = json.loads((tmp_path / "out" / "results.json").read_text(encoding="utf-8"))
    [system] = [system for system, about in results["systems"].items() if about["role"] == "system"]
    for found in (bar.row for bar in scores.bars):
        assert results["scores"][system][found["score"]]["value"] == pytest.approx(found["value"])


@pytest.mark.gradio
def test_names_of_files_are_escaped_everywhere(scores):
    names = ("=1+1;<b>'x'.mid", '$(touch hacked)"; `ls`.mid')
    pair = dataclasses.replace(scores, names=names)
    shown = show(pair)
    assert "<b>" not in shown[6]
    python, shell = shown[4], shown[5]
    compile(python, "offered", "exec")
    assert shlex.split(shell)[shlex.split(shell).index("--estimate") + 1] == f"edit=./{names[1]}"
    assert repr(names[0]) in python


@pytest.mark.parametrize(
    ("original", "edit", "error", "message"),
    [
        (None, None, NoDataError, "original and edit missing"),
        ("a.wav", None, NoDataError, "edit missing"),
        ("a.wav", "b.mid", InvalidInputError, "the original is a recording and the edit is a score"),
        ("a.exe", "b.wav", UnknownNameError, "exe"),
    ],
)
def test_bad_pairs_are_refused_in_words(tmp_path, original, edit, error, message):
    paths = []
    for name in (original, edit):
        if name is not None:
            (tmp_path / name).write_bytes(b"x")
        paths.append(None if name is None else str(tmp_path / name))
    with pytest.raises(error, match=message):
        compared(*paths)


def test_an_unknown_variant_and_a_broken_file_are_named(examples, tmp_path):
    with pytest.raises(UnknownNameError, match="variant"):
        compared(examples[-1].original, examples[-1].edit, variant="best")
    broken = tmp_path / "broken.flac"
    broken.write_bytes(b"fLaC and nothing else")
    with pytest.raises(UnreadableFileError, match=r"broken\.flac"):
        compared(str(broken), examples[0].edit)


def test_a_score_that_plays_for_an_hour_is_refused_before_it_is_rendered(tmp_path):
    notes = np.array([(0, 4, 60, 90, 0), (4 * 60 * 60, 4, 60, 90, 0)], dtype=NOTE_DTYPE)
    path = save_midi(Score(notes, 4, tempos=(Tempo(0, 60.0),)), tmp_path / "hour.mid")
    with pytest.raises(FileTooLargeError, match=r"hour\.mid: it plays 3601 s, more than 360"):
        compared(str(path), str(path))


@pytest.mark.slow
def test_an_identical_pair_scores_the_marker_of_identical_pairs(examples):
    pair = compared(examples[-1].original, examples[-1].original)
    assert all(math.isclose(bar.row["value"], bar.row["identical"], abs_tol=1e-9) for bar in pair.bars)
    assert (
        results_of(pair)["preserved"]
        == "Preserved in full: length, key, tempo, beats, chords, sections, melody, voicing."
    )
    assert {finding.kind for finding in pair.findings} == {"same"}


def test_the_examples_are_what_their_titles_say():
    plain, moved = score_of(Piece()), score_of(Piece(bpm=116.0, transpose=7))
    assert (
        moved.notes["pitch"][moved.notes["voice"] != 3] - plain.notes["pitch"][plain.notes["voice"] != 3] == 7
    ).all()
    assert plain.end_tick == 16 * 16  # sixteen measures of sixteen ticks
    altered = score_of(Piece(altered=True))
    differs = altered.voice(0)["pitch"] != plain.voice(0)["pitch"]
    assert set(altered.voice(0)["onset_tick"][differs] // 64) == {2}


@pytest.mark.slow
@pytest.mark.gradio
def test_the_page_builds_with_public_names():
    demo = pages.built(lambda: build_demo(warm_up=False))
    assert list(demo.get_api_info()["named_endpoints"]) == ["/compare"]
    assert demo.max_upload_bytes == 67108864
