"""The page of a metric: its callbacks as plain functions, its layout in a process of its own."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from music_evals.annotations import Score
from music_evals.errors import (
    FileTooLargeError,
    InvalidInputError,
    InvalidLyricsError,
    InvalidTagsError,
    InvalidTokensError,
    NoDataError,
    ParserCrashError,
    PolyphonyError,
    UnknownNameError,
    UnreadableFileError,
)
from music_evals.symbolic.midi import write_midi
from music_evals.symbolic.notes import make_notes
from music_evals.ui import metric_page

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = sorted(path.parent for path in (ROOT / "metrics").glob("*/app.py"))
EDITS = [path.name for path in FOLDERS if "mh.AudioMetric" in (path / f"{path.name}.py").read_text(encoding="utf-8")]
TEXTS = {"lyric_structure": "lyrics", "tag_semantic_similarity": "tags"}
SCALE = "| score | range | direction |"


def page_metric(name: str) -> metric_page.PageMetric:
    return metric_page.load_metric(name, ROOT / "metrics" / name / "app.py")


@pytest.fixture(scope="module")
def note_f1() -> metric_page.PageMetric:
    return page_metric("note_f1")


def midi_file(path: Path, n_measures: int, pitch: int = 60) -> str:
    onsets = [4 * 480 * i for i in range(n_measures)]
    score = Score(make_notes(onsets, [1920] * n_measures, [pitch] * n_measures), 480)
    path.write_bytes(write_midi(score))
    return str(path)


def test_the_example_is_a_context_and_a_middle() -> None:
    assert len(metric_page.parse_tokens(metric_page.EXAMPLE_REFERENCE)) == 384
    assert len(metric_page.parse_tokens(metric_page.EXAMPLE_PREDICTION)) == 96


def test_the_example_scores_what_a_reader_counts(note_f1: metric_page.PageMetric) -> None:
    """12 notes asked, 10 given; all of measures 1 and 4, two of measure 2, one of measure 3: 2 * 9 / 22 = 0.818."""
    text = metric_page.judge_tokens(note_f1, metric_page.EXAMPLE_REFERENCE, metric_page.EXAMPLE_PREDICTION, "corrected")
    assert "| `note_f1` | **0.818** |" in text
    assert "1 of 1" in text
    assert SCALE in text
    assert "higher is better" in text


@pytest.mark.parametrize("name", [path.name for path in FOLDERS if path.name not in {*EDITS, *TEXTS}])
def test_every_metric_answers_its_example(name: str) -> None:
    metric = page_metric(name)
    score = "position_score" if name == "musical_inpainting" else name
    if metric.kind == "contexts":
        example = (metric_page.EXAMPLE_REFERENCE, metric_page.EXAMPLE_PREDICTION)
        for variant in metric_page.VARIANTS:
            assert f"| `{score}` |" in metric_page.judge_tokens(metric, *example, variant)
    else:
        text = metric_page.judge_numbers(metric, metric_page.EXAMPLE_NUMBERS)
        assert "**0.500**" in text  # (0.1 + 0.2 + 0.7 + 0.1 + 1.3 + 0.6) / 6
        assert "2 of 2" in text


def test_files(note_f1: metric_page.PageMetric, tmp_path: Path) -> None:
    reference = midi_file(tmp_path / "reference.mid", 16)
    same, other = midi_file(tmp_path / "same.mid", 4), midi_file(tmp_path / "other.mid", 16, pitch=61)
    assert "**1.000**" in metric_page.judge_files(note_f1, reference, same, "corrected")
    wrong = metric_page.judge_files(note_f1, reference, other, "corrected")
    assert "**0.000**" in wrong
    assert "*1 of 1 predictions, the first at index 0, came with a past or future that differs" in wrong


def test_files_that_cannot_be_judged(note_f1: metric_page.PageMetric, tmp_path: Path) -> None:
    reference = midi_file(tmp_path / "reference.mid", 16)
    with pytest.raises(NoDataError, match="two files"):
        metric_page.judge_files(note_f1, reference, None, "corrected")
    large = tmp_path / "large.mid"
    large.write_bytes(b"MThd" + bytes(metric_page.MAX_UPLOAD_BYTES))
    with pytest.raises(FileTooLargeError, match=r"large\.mid: more than 1048576 bytes"):
        metric_page.judge_files(note_f1, reference, str(large), "corrected")
    broken = tmp_path / "broken.mid"
    broken.write_bytes(b"this is no music")
    with pytest.raises(UnreadableFileError, match=r"broken\.mid: not a readable MIDI file"):
        metric_page.judge_files(note_f1, reference, str(broken), "corrected")
    text = tmp_path / "notes.txt"
    text.write_text("C D E", encoding="utf-8")
    with pytest.raises(UnknownNameError, match="kind of score file"):
        metric_page.judge_files(note_f1, str(text), reference, "corrected")
    chord = tmp_path / "chord.mid"
    chord.write_bytes(write_midi(Score(make_notes([0, 0], [480, 480], [60, 64]), 480)))
    with pytest.raises(PolyphonyError):
        metric_page.judge_files(note_f1, reference, str(chord), "corrected")


@pytest.mark.parametrize("name", EDITS)
def test_every_metric_of_edits_judges_two_files(name: str, tmp_path: Path) -> None:
    """Sixteen whole notes on C, and sixteen on the G above."""
    metric = page_metric(name)
    original, edited = midi_file(tmp_path / "a.mid", 16), midi_file(tmp_path / "b.mid", 16, pitch=67)
    text = metric_page.judge_edit(metric, original, edited, "corrected")
    assert SCALE in text
    assert "1 of 1" in text
    assert "*both: no tempo at the start of the file: 120 quarters a minute assumed*" in text


def test_two_recordings(tmp_path: Path) -> None:
    """A tone, and one a fifth higher: no frame shares a pitch class."""
    import numpy as np
    import soundfile

    time = np.arange(4 * 22050) / 22050
    for name, hz in (("a.wav", 440.0), ("b.wav", 659.26)):
        soundfile.write(tmp_path / name, np.sin(2 * np.pi * hz * time) / 2, 22050)
    metric = page_metric("chroma_dtw_similarity")
    same = metric_page.judge_edit(metric, str(tmp_path / "a.wav"), str(tmp_path / "a.wav"), "corrected")
    assert "| `chroma_dtw_similarity` | **1.000** |" in same
    other = metric_page.judge_edit(metric, str(tmp_path / "a.wav"), str(tmp_path / "b.wav"), "corrected")
    assert "| `chroma_dtw_similarity` | **1.000** |" not in other


def test_the_example_lyrics() -> None:
    """One line of 7 characters for 5, and one of three rhymes: 20 * 10 / 12 and 20 * 4 / 5, times 8 / 8.01."""
    metric = page_metric("lyric_structure")
    example = (metric_page.EXAMPLE_LYRICS, metric_page.EXAMPLE_PATTERN)
    text = metric_page.judge_lyrics(metric, *example, "official", "char", True)
    assert "| `lyric_word` | **16.646** |" in text
    assert "| `lyric_rhyme` | **15.980** |" in text
    assert SCALE in text
    assert "line 1 '举起头来望明月': 5 characters expected, 7 found" in text
    assert "note: headers:" in text
    assert (
        metric_page.judge_lyrics(
            metric, example[0], example[1].replace("\n", "\r\n") + "\r\n", "official", "char", True
        )
        == text
    )
    assert "| `lyric_word` |" in metric_page.judge_lyrics(metric, *example, "paper", "char", True)
    with pytest.raises(InvalidLyricsError, match="no section header"):
        metric_page.judge_lyrics(metric, *example, "official", "char", False)


def test_lyrics_do_not_leave_their_frame() -> None:
    """What visitors type is shown in a block that it cannot close."""
    lyrics = "(verse)\n```<b>床前明月光\n疑是地上霜"
    text = metric_page.judge_lyrics(page_metric("lyric_structure"), lyrics, "(verse)\nccccR", "official", "char", False)
    assert text.count("```") == 2


def test_the_example_tags() -> None:
    """Nine pairs, of which one is equal: at least a ninth."""
    metric = page_metric("tag_semantic_similarity")
    text = metric_page.judge_tags(metric, *metric_page.EXAMPLE_TAGS, "char-ngrams", "mean")
    assert "| `tag_semantic_similarity` | **0.169** |" in text
    assert SCALE in text
    assert "*encoder: char-ngrams, revision 1*" in text
    alone = metric_page.judge_tags(metric, "抒情", "抒情", "char-ngrams", "f1")
    assert "**1.000**" in alone
    assert "**undefined**" in metric_page.judge_tags(metric, " ,", "抒情", "char-ngrams", "mean")


def test_tags_are_cut_at_commas_of_both_widths() -> None:
    assert metric_page.parse_tags(" 抒情，慢速,Lo-Fi; 钢琴、\n现场 版 ") == ["抒情", "慢速", "Lo-Fi", "钢琴", "现场 版"]
    assert metric_page.parse_tags(" ，; ") == []
    assert len(metric_page.parse_tags(",".join(["a"] * 100))) == 100
    with pytest.raises(InvalidTagsError, match="at most 100 tags, got 101"):
        metric_page.parse_tags(",".join(["a"] * 101))


def test_a_recording_that_is_too_long_is_refused_undecoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import soundfile

    soundfile.write(tmp_path / "a.wav", [0.0] * 16000, 8000)
    monkeypatch.setattr(metric_page, "MAX_RECORDING_SEC", 1.0)
    monkeypatch.setattr(soundfile.SoundFile, "read", None)
    with pytest.raises(FileTooLargeError, match=r"a\.wav: more than 1 s"):
        metric_page.judge_edit(page_metric("delta_bpm"), *[str(tmp_path / "a.wav")] * 2, "corrected")


def test_edits_that_cannot_be_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    metric = page_metric("chroma_dtw_similarity")
    score = midi_file(tmp_path / "a.mid", 16)
    with pytest.raises(NoDataError, match="two files"):
        metric_page.judge_edit(metric, score, None, "corrected")
    text = tmp_path / "text.wav"
    text.write_text("this is no music")
    with pytest.raises(UnreadableFileError, match=r"text\.wav"):
        metric_page.judge_edit(metric, str(text), str(text), "corrected")
    monkeypatch.setattr(metric_page, "MAX_UPLOAD_BYTES", 10)
    monkeypatch.setattr(metric_page, "MAX_RECORDING_BYTES", 5)
    for path, bound in ((score, 10), (str(text), 5)):
        with pytest.raises(FileTooLargeError, match=f"more than {bound} bytes"):
            metric_page.judge_edit(metric, path, path, "corrected")


def test_an_upload_has_little_time(
    note_f1: metric_page.PageMetric, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert metric_page.TIMEOUT_SEC <= 15
    monkeypatch.setattr(metric_page, "TIMEOUT_SEC", 1e-6)
    files = [midi_file(tmp_path / name, 16) for name in ("reference.mid", "prediction.mid")]
    with pytest.raises(ParserCrashError):
        metric_page.judge_files(note_f1, *files, "corrected")


def test_a_message_shows_what_was_typed_and_does_not_run_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gradio", SimpleNamespace(Error=RuntimeError))
    with pytest.raises(RuntimeError, match=r"got '&lt;b&gt;&amp;amp;'$"):
        metric_page._answer(lambda text: str(metric_page.parse_tokens(text)), "<b>&amp;")


def test_an_undefined_score_is_said_to_be_one() -> None:
    silence = "129*96"
    text = metric_page.judge_tokens(page_metric("pitch_accuracy"), metric_page.EXAMPLE_REFERENCE, silence, "corrected")
    assert "**undefined**" in text
    assert "0 of 1" in text
    assert "*pitch_accuracy is undefined" in text


@pytest.mark.parametrize("text", ["", "sixty", "60;62", "-1", "60 128*", "60 *3", "1234", "60 0x1F", "٦٠", "60.5"])
def test_what_is_no_token_is_quoted(text: str) -> None:
    with pytest.raises(InvalidTokensError, match="expected tokens such as 60"):
        metric_page.parse_tokens(text)


def test_repeats_are_bounded() -> None:
    assert len(metric_page.parse_tokens("128*4096")) == 4096
    with pytest.raises(InvalidTokensError, match="at most 4096"):
        metric_page.parse_tokens("128*4096 60")
    with pytest.raises(InvalidTokensError, match="at most 4096"):
        metric_page.parse_tokens(" ".join(["1*9999"] * 1000))


def test_numbers() -> None:
    assert metric_page.parse_numbers(" -1, -2 \n-0.5 -1e-3") == [[-1.0, -2.0], [-0.5, -0.001]]
    assert metric_page.parse_numbers("-inf") == [[-math.inf]]
    with pytest.raises(InvalidInputError, match="row of numbers"):
        metric_page.parse_numbers("-1 minus two")
    with pytest.raises(InvalidInputError, match="at most 4096"):
        metric_page.parse_numbers("-1 " * 5000)


def test_a_page_needs_its_card(tmp_path: Path) -> None:
    with pytest.raises(NoDataError, match=r"README\.md"):
        metric_page.load_card(tmp_path)
    (tmp_path / "README.md").write_text("# No YAML\n", encoding="utf-8")
    with pytest.raises(InvalidInputError, match="YAML between two lines"):
        metric_page.load_card(tmp_path)


def test_nothing_is_left_on_disk(note_f1: metric_page.PageMetric) -> None:
    from evaluate import config

    before = set(Path(config.HF_METRICS_CACHE).rglob("*.arrow"))
    metric_page.judge_tokens(note_f1, metric_page.EXAMPLE_REFERENCE, metric_page.EXAMPLE_PREDICTION, "corrected")
    assert set(Path(config.HF_METRICS_CACHE).rglob("*.arrow")) == before


BUILD = """
import importlib.util, json, socket, sys, warnings
from pathlib import Path

def refuse(*arguments, **options):
    raise AssertionError(f"a page must not reach for the network: {arguments}")

socket.socket.connect = refuse
pages = {}
for app in sys.argv[1:]:
    spec = importlib.util.spec_from_file_location("app_" + Path(app).parent.name, app)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    config = module.demo.get_config_file()
    public = [d["api_name"] for d in config["dependencies"] if d["api_visibility"] == "public"]
    pages[Path(app).parent.name] = {
        "title": config["title"],
        "api": [name for name in public if name],
        "labels": [c["props"].get("label") for c in config["components"]],
        "text": " ".join(str(c["props"].get("value")) for c in config["components"] if c["type"] == "markdown"),
    }
print(json.dumps(pages))
"""


@pytest.mark.gradio
def test_every_app_builds() -> None:
    """One process builds them all: what takes its time is the import of Gradio."""
    command = [sys.executable, "-W", "error::UserWarning", "-c", BUILD, *(str(path / "app.py") for path in FOLDERS)]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=300)
    assert run.returncode == 0, run.stderr
    pages = json.loads(run.stdout.splitlines()[-1])
    assert set(pages) == {path.name for path in FOLDERS}
    for name, page in pages.items():
        kind = TEXTS.get(name, "edits" if name in EDITS else "numbers" if name == "inpainting_nll" else "contexts")
        assert page["title"].lower().replace(" ", "_").replace("-", "_") == name
        buttons = {
            "contexts": {"judge_files", "judge_tokens"},
            "numbers": {"judge_numbers"},
            "edits": {"judge_edit"},
            "lyrics": {"judge_lyrics"},
            "tags": {"judge_tags"},
        }
        assert set(page["api"]) == buttons[kind]
        assert ("Reference: 384 tokens" in page["labels"]) == (kind == "contexts")
        assert ({"Original", "Edited"} <= set(page["labels"])) == (kind == "edits")
        assert ("Pattern that was asked for" in page["labels"]) == (kind == "lyrics")
        assert ({"Generated tags", "Reference tags"} <= set(page["labels"])) == (kind == "tags")
        assert "## Limitations" in page["text"]


SERVE = """
import json, sys
from gradio_client import Client, handle_file
from music_evals.ui.metric_page import build_metric_page, launch, EXAMPLE_REFERENCE, EXAMPLE_PREDICTION

page = build_metric_page("note_f1", "metrics/note_f1/app.py")
_, url, _ = launch(page, prevent_thread_lock=True, quiet=True, server_name="127.0.0.1")
client = Client(url, verbose=False)
files = [handle_file(path) for path in sys.argv[1:]]
answers = [
    client.predict(EXAMPLE_REFERENCE, EXAMPLE_PREDICTION, "corrected", api_name="/judge_tokens"),
    client.predict(*files, "paper", api_name="/judge_files"),
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
    tokens, uploaded, refused = json.loads(run.stdout.splitlines()[-1])
    assert "**0.818**" in tokens
    assert "**1.000**" in uploaded
    assert "predictions[0]: expected tokens of 96 steps" in refused
