"""The editing page without a browser: what is offered, edited, compared and kept, and what is refused."""

from __future__ import annotations

import functools
import io
import json
import math
import shlex
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from music_evals.cli import main
from music_evals.errors import InvalidInputError, ModelUnavailableError, NoDataError, UnknownNameError
from music_evals.ui.gpu import MOST_SEC, START_SEC
from music_evals.ui.spaces import editing as page
from music_evals.ui.spaces import preservation
from music_evals.ui.spaces.editing import (
    VARIABLE,
    EditedUpload,
    Offer,
    Wishes,
    _cancelled,
    _describe,
    _run,
    _summary,
    about_html,
    code_of,
    edit_upload,
    find_editors,
    shown,
)
from music_evals.ui.spaces.preservation_examples import write_examples

soundfile = pytest.importorskip("soundfile")
pytest.importorskip("librosa")


def edited(upload: str | None, wishes: Wishes) -> EditedUpload:
    """What `edit_upload` returns, without its stages."""
    stages = edit_upload(upload, wishes)
    while True:
        try:
            next(stages)
        except StopIteration as end:
            found: EditedUpload = end.value
            return found


@pytest.fixture(scope="module")
def tune(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_examples(tmp_path_factory.mktemp("examples"))[0].original


@pytest.fixture(scope="module")
def transposed(tune: str) -> EditedUpload:
    return edited(tune, Wishes("transposition", "semitones=3", text="Play it up three semitones."))


@pytest.fixture(scope="module")
def equalised(tune: str) -> tuple[list[preservation.Stage], EditedUpload]:
    """The stages of an edit that was asked for in words, and what came out."""
    stages = edit_upload(tune, Wishes("equaliser", text="  Make it warmer."))
    passed: list[preservation.Stage] = []
    while True:
        try:
            passed.append(next(stages))
        except StopIteration as end:
            return passed, end.value


def test_systems_without_weights_are_always_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    offers = find_editors()
    assert {"transposition", "time_stretch", "noise_vocoder", "hpss_remix", "equaliser", "effects"} <= set(offers)
    assert not {"identity", "unrelated", "reorchestration", "zeta"} & set(offers)
    assert all(not offer.licence and not offer.place for offer in offers.values())
    assert offers["transposition"].defaults == {"semitones": 2.0}


@pytest.mark.slow
def test_systems_with_weights_are_offered_where_they_are_named() -> None:
    offers = find_editors({VARIABLE: "zeta=cvssp/audioldm2-music@abc123"})
    assert offers["zeta"] == Offer("zeta", "cvssp/audioldm2-music", "abc123")
    assert offers["zeta"].licence == "CC-BY-NC-SA-4.0"
    assert "abc123, licence CC-BY-NC-SA-4.0" in about_html(offers["zeta"])
    with pytest.raises(InvalidInputError, match="NAME=PLACE"):
        find_editors({VARIABLE: "zeta"})
    with pytest.raises(UnknownNameError, match="zeta"):
        find_editors({VARIABLE: "transposition=somewhere"})


def test_systems_of_other_packages_are_offered_where_they_are_named() -> None:
    name = "tests.zero_gpu:Muffler"
    offers = find_editors({VARIABLE: f"{name}=there@abc"})
    assert offers[name] == Offer(name, "there", "abc")
    assert offers[name].licence == "CC0-1.0"
    with pytest.raises(ModelUnavailableError, match="No module named"):
        find_editors({VARIABLE: "no_such_package:System=there"})


@pytest.mark.parametrize(
    ("calls", "backbone", "seconds"), [(1504, "autoregressive", 76), (600, "diffusion", 48), (800, "diffusion", 64)]
)
def test_the_card_is_asked_for_as_long_as_the_system_needs_it(calls: int, backbone: str, seconds: int) -> None:
    """Worked by hand, MusicGen, ZETA and MusicMagus at 30 s: 1504 tokens x 0.05 s, 600 and 800 steps x 0.08 s."""
    editor = SimpleNamespace(info=SimpleNamespace(backbone=backbone), network_calls=lambda _: calls)
    offer, request = SimpleNamespace(make=lambda _: editor), SimpleNamespace(duration_sec=30.0)
    n = page._n_calls(offer, "", request)  # type: ignore[arg-type]
    assert math.ceil(n * page.STEP_SEC) == seconds < MOST_SEC - START_SEC


@pytest.mark.slow
def test_a_licence_is_accepted_before_anything_is_loaded(
    tune: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(VARIABLE, f"zeta={tmp_path}")
    with pytest.raises(InvalidInputError, match="tick that you accept it"):
        edited(tune, Wishes("zeta", target_prompt="jazz"))
    pytest.importorskip("diffusers")
    with pytest.raises(ModelUnavailableError, match="cannot be loaded"):
        edited(tune, Wishes("zeta", target_prompt="jazz", accepted=True))


@pytest.mark.slow
def test_what_is_known_of_the_edit_is_found(transposed: EditedUpload) -> None:
    texts = [finding.text for finding in transposed.pair.findings]
    assert any("key moved up a minor third" in text for text in texts), texts
    assert transposed.changes == ("harmony", "melody")
    assert "changes harmony and melody by design" in _summary(transposed)


@pytest.mark.slow
def test_the_stages_come_in_order(equalised: tuple[list[preservation.Stage], EditedUpload]) -> None:
    stages, _ = equalised
    assert stages[0] == preservation.Stage(0.0, "Reading the recording")
    assert stages[1].text == "Editing with equaliser"
    assert [stage.done for stage in stages] == sorted(stage.done for stage in stages)
    assert stages[-1].done < 1


def test_the_archive_holds_the_edit_and_where_it_comes_from(transposed: EditedUpload) -> None:
    with zipfile.ZipFile(io.BytesIO(transposed.archive)) as archive:
        samples, rate = soundfile.read(io.BytesIO(archive.read("edit.flac")))
        about = json.loads(archive.read("provenance.json"))
    assert (samples.ndim, rate) == (1, 22050)
    assert about["system"] == "transposition"
    assert about["parameters"] == {"semitones": 3}
    assert about["source"] == "original.flac"
    assert len(about["source_sha256"]) == 64
    assert about["alignment"]["sample_rate"] == [22050, 22050]


@pytest.mark.slow
def test_the_commands_that_are_offered_make_the_same_edit_and_scores(
    transposed: EditedUpload, tune: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, shell = code_of(transposed)
    edit, judge = (shlex.split(line)[1:] for line in shell.splitlines())
    (tmp_path / "original.flac").write_bytes(Path(tune).read_bytes())
    monkeypatch.chdir(tmp_path)
    assert main([*edit, "--engine", "serial"]) == 0
    [made] = (tmp_path / "edited/edits").glob("**/*.flac")
    with zipfile.ZipFile(io.BytesIO(transposed.archive)) as archive:
        assert made.read_bytes() == archive.read("edit.flac")
    assert main([*judge, "--engine", "serial"]) == 0
    results = json.loads((tmp_path / "results/edited/results.json").read_text())
    [scores] = results["scores"].values()
    for bar in transposed.pair.bars:
        assert scores[bar.score]["value"] == pytest.approx(bar.row["value"], abs=1e-9)


@pytest.mark.slow
def test_only_the_first_half_minute_is_edited_and_one_channel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_stages(*_: str, start: float, targets: str) -> Iterator[preservation.Stage]:
        yield from ()

    monkeypatch.setattr(preservation, "compare_uploads", no_stages)
    noise = np.random.default_rng(0).normal(0, 0.1, (35 * 8000, 2))
    soundfile.write(tmp_path / "long.wav", noise, 8000)
    found = edited(str(tmp_path / "long.wav"), Wishes("equaliser"))
    assert found.result.audio is not None
    assert found.result.audio.shape == (1, 30 * 8000)


@pytest.mark.parametrize(
    ("wishes", "error", "match"),
    [
        (Wishes("nothing"), UnknownNameError, "transposition"),
        (Wishes("transposition", "semitones"), InvalidInputError, "NAME=VALUE"),
        (Wishes("transposition", "semitone=3"), UnknownNameError, "semitones"),
        (Wishes("transposition", "semitones=99"), InvalidInputError, "must lie in"),
    ],
)
def test_what_cannot_be_done_says_what_to_do(tune: str, wishes: Wishes, error: Any, match: str) -> None:
    with pytest.raises(error, match=match):
        edited(tune, wishes)


OFFERS = find_editors({})
PARAMETERS = [(name, parameter) for name, offer in OFFERS.items() for parameter in offer.defaults]
WRONG = ["abc", "nan", "NaN", "inf", "-Infinity", "1e999", "true", "null", '"3"', "1e6", "[1]"]


@pytest.mark.parametrize(("system", "parameter"), PARAMETERS, ids=str)
def test_a_parameter_of_another_type_or_out_of_range_is_refused(system: str, parameter: str) -> None:
    assert isinstance(OFFERS[system].defaults[parameter], float)
    for value in WRONG:
        with pytest.raises(InvalidInputError) as caught:
            OFFERS[system].read(f"{parameter}={value}")
        assert parameter in str(caught.value) or value == "[1]"
        assert "\n" not in str(caught.value)


def test_parameters_are_refused_before_anything_is_read() -> None:
    stages = edit_upload(None, Wishes("transposition", "semitones=abc"))
    with pytest.raises(InvalidInputError):
        next(stages)


def test_parameters_of_systems_with_weights_are_refused_before_these_are_loaded(monkeypatch: Any) -> None:
    from music_evals.editing.musicgen import MusicGen
    from music_evals.editing.zeta import Zeta

    for kind in (MusicGen, Zeta):
        monkeypatch.setattr(kind, "from_pretrained", classmethod(_unloaded(kind)))
    offers = find_editors({VARIABLE: "zeta=there musicgen=there"})
    for system, parameters in {
        "zeta": ("steps=many", "steps=0", "steps=2.5", "start=-1", "zero_last=1", "target_guidance=nan"),
        "musicgen": ("top_k=0", "top_k=true", "guidance=inf", "temperature=hot", "text=3"),
    }.items():
        for text in parameters:
            with pytest.raises(InvalidInputError, match=text.partition("=")[0]):
                offers[system].make(text)
        with pytest.raises(UnknownNameError):
            offers[system].make("stepps=3")


def _unloaded(kind: Any) -> Any:
    """What stands in for the loader of a system, with its parameters; it must not be called."""
    wraps = kind.from_pretrained.__func__

    @functools.wraps(wraps)
    def load(*_: Any, **__: Any) -> Any:
        raise AssertionError("weights were loaded")

    return load


@pytest.mark.slow
@pytest.mark.gradio
def test_a_bug_too_ends_the_stage(tune: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise TypeError("'<=' not supported")

    monkeypatch.setattr(Offer, "make", broken)
    told: list[str] = []
    with pytest.raises(TypeError):
        told.extend(status for status, *_ in _run(tune, "equaliser", "", "", "", "", "", 0, False))
    assert told[-2].endswith("...")
    assert not told[-1].endswith("...")


@pytest.mark.slow
@pytest.mark.gradio
def test_words_and_a_licence_are_asked_for_where_there_are_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "zeta=there")
    assert [part["visible"] for part in _describe("zeta")[1:]] == [True, True]
    assert [part["visible"] for part in _describe("transposition")[1:]] == [False, False]


def test_scores_and_nothing_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NoDataError):
        edited(None, Wishes("equaliser"))
    (tmp_path / "tune.mid").write_bytes(b"MThd")
    with pytest.raises(UnknownNameError, match="kind of recording"):
        edited(str(tmp_path / "tune.mid"), Wishes("equaliser"))


@pytest.mark.slow
@pytest.mark.gradio
def test_everything_that_is_shown_is_there(transposed: EditedUpload) -> None:
    archive, results, _bars, told, heard, _python, shell, _receipt, json_path, _csv = shown(transposed)
    assert Path(archive).name == "original_transposition.zip"
    assert results["edited"]["system"] == "transposition"
    assert "minor third" in told
    assert len(heard["tracks"]) == 2
    assert "--set semitones=3" in shell
    assert Path(json_path).is_file()
    assert [_cancelled("Editing ..."), _cancelled("Done.")] == ["Cancelled.", "Done."]


def test_what_the_words_ask_for_is_measured(transposed: EditedUpload) -> None:
    score = transposed.pair.targets["transpose"]
    assert (score.verdict, score.success) == ("done", pytest.approx(1, abs=0.05))
    _, shell = code_of(transposed)
    assert "--targets transpose=+3" in shell
    flutes = Wishes("zeta", source_prompt="a piano solo", target_prompt="a flute solo").instruction
    assert [target.kind for target in flutes.targets] == ["instrument_added", "instrument_removed"]


def test_an_instruction_in_words_is_told_as_it_is(equalised: tuple[list[preservation.Stage], EditedUpload]) -> None:
    _, warmer = equalised
    assert warmer.wishes.instruction.text == "Make it warmer."
    assert Wishes("equaliser", before="rock", after="jazz").instruction.text == "Change rock to jazz."
    _, shell = code_of(warmer)
    assert "--instruction 'Make it warmer.'" in shell
