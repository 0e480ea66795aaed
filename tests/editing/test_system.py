"""The door of all editing systems: checks, keys and seeds, alignment, and the registry."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.editing.house import ASK, RATE, audio_request, recording, score_request, triads

from music_evals.annotations import EditInstruction, EditorInfo, EditRequest
from music_evals.audio.loudness import integrated_loudness
from music_evals.editing.alignment import PEAK, align
from music_evals.editing.system import Edited, Editor, Seeds, request_key
from music_evals.errors import (
    BackendError,
    FileTooLargeError,
    InvalidAudioError,
    InvalidInputError,
    UnknownNameError,
    UnsupportedEditError,
)
from music_evals.protocols import EDITORS, EditingSystem, load_plugin

WITH_WEIGHTS = {name for name in EDITORS if hasattr(load_plugin(EDITORS, name, "editing system"), "from_pretrained")}
WITHOUT_WEIGHTS = sorted(EDITORS.keys() - WITH_WEIGHTS)


class Fussy(Editor):
    """Takes one channel of at most two seconds, and needs everything."""

    @property
    def info(self) -> EditorInfo:
        return EditorInfo(
            name="fussy",
            title="Fussy",
            mono=True,
            max_seconds=2.0,
            needs=("target_caption", "word_pair", "bars", "confidence", "source_prompt"),
        )

    def _edited(self, request: EditRequest, seeds: Seeds) -> Edited:  # noqa: ARG002
        return Edited(request.audio, request.sample_rate)


COMPLETE = EditInstruction(
    text="x", source_prompt="a rock song", before="rock", after="jazz", bars=(0, 2), confidence=0
)


def requests(name: str) -> list[EditRequest]:
    entrances = load_plugin(EDITORS, name, "editing system")().info.entrances
    return [{"audio": audio_request, "score": score_request}[entrance](COMPLETE) for entrance in entrances]


@pytest.mark.parametrize("name", WITHOUT_WEIGHTS)
def test_every_registered_system_obeys_the_protocol(name: str) -> None:
    system = load_plugin(EDITORS, name, "editing system")()
    assert isinstance(system, EditingSystem)
    assert system.info.name == name
    for request in requests(name):
        before = None if request.audio is None else request.audio.copy()
        (result,) = system.edit([request])
        assert result.provenance["system"] == name
        if before is None:
            assert result.score is not None
            assert result.audio is None
            continue
        assert np.array_equal(request.audio, before), "the source was written to"
        assert result.audio is not None
        assert result.audio.dtype == np.float32
        assert result.sample_rate == RATE
        if system.info.keeps_time:
            assert result.audio.shape == before.shape


@pytest.mark.parametrize("name", WITHOUT_WEIGHTS)
def test_an_item_alone_is_the_item_in_a_batch(name: str) -> None:
    system = load_plugin(EDITORS, name, "editing system")()
    make = audio_request if "audio" in system.info.entrances else score_request
    wanted = make(COMPLETE, source_id="b", seed=1)
    batch = system.edit([make(COMPLETE, source_id="a", seed=0), wanted, make(ASK, source_id="c", seed=1)])
    (alone,) = load_plugin(EDITORS, name, "editing system")().edit([wanted])
    assert batch[1].key == alone.key
    if alone.score is not None:
        assert batch[1].score is not None
        assert alone.score.to_dict() == batch[1].score.to_dict()
    else:
        assert np.array_equal(alone.audio, batch[1].audio)


@pytest.mark.parametrize("name", WITHOUT_WEIGHTS)
def test_the_seed_changes_what_is_drawn_and_nothing_else(name: str) -> None:
    system = load_plugin(EDITORS, name, "editing system")()
    make = audio_request if "audio" in system.info.entrances else score_request
    first, second = system.edit([make(seed=0), make(seed=1)])
    if first.score is not None:
        assert second.score is not None
        same = first.score.to_dict() == second.score.to_dict()
    else:
        same = np.array_equal(first.audio, second.audio)
    assert same == system.info.deterministic


@pytest.mark.slow
def test_stereo_stays_stereo_where_a_system_takes_it() -> None:
    for name in WITHOUT_WEIGHTS:
        system = load_plugin(EDITORS, name, "editing system")()
        if "audio" in system.info.entrances:
            (result,) = system.edit([audio_request(channels=2)])
            assert result.audio is not None
            assert len(result.audio) == 2, name


def test_key_depends_on_what_decides_the_edit() -> None:
    system = Fussy()
    base = request_key(system.info, audio_request(COMPLETE))
    assert request_key(system.info, audio_request(COMPLETE, source_id="other")) == base
    louder = audio_request(COMPLETE, audio=recording() * np.float32(0.5))
    others = [
        request_key(system.info, audio_request(COMPLETE, seed=1)),
        request_key(system.info, audio_request(dataclasses.replace(COMPLETE, after="folk"))),
        request_key(system.info, louder),
        request_key(system.info, audio_request(COMPLETE, sample_rate=RATE + 1)),
        request_key(dataclasses.replace(system.info, parameters={"a": 1}), audio_request(COMPLETE)),
        request_key(dataclasses.replace(system.info, name="other"), audio_request(COMPLETE)),
    ]
    assert len({base, *others}) == len(others) + 1


def test_what_is_missing_is_named() -> None:
    said = Fussy().supports(audio_request(ASK))
    for name in ("target_prompt", "before", "bars", "confidence", "source_prompt"):
        assert f"`{name}`" in said
    assert Fussy().supports(audio_request(COMPLETE)) == ""
    with pytest.raises(UnsupportedEditError):
        Fussy().edit([audio_request(ASK, seconds=1)])
    with pytest.raises(UnsupportedEditError):
        Fussy().edit([score_request(COMPLETE)])


def test_bad_sources_are_refused() -> None:
    with pytest.raises(FileTooLargeError, match=r"3\.0") as caught:
        Fussy().edit([audio_request(COMPLETE)])
    assert (caught.value.unit, caught.value.limit, caught.value.size) == ("seconds", 2.0, 3.0)
    with pytest.raises(InvalidAudioError, match="one channel, and the source has 2"):
        Fussy().edit([audio_request(COMPLETE, channels=2, seconds=1)])
    with pytest.raises(InvalidAudioError, match="silent"):
        Fussy().edit([audio_request(COMPLETE, audio=np.zeros((1, RATE), np.float32))])
    for audio, rate in [
        (np.zeros((1, 0), np.float32), RATE),
        (np.zeros(RATE, np.float32), RATE),
        (np.zeros((1, RATE)), RATE),
        (np.full((1, RATE), np.nan, np.float32), RATE),
        (np.zeros((1, RATE), np.float32), None),
    ]:
        with pytest.raises(InvalidAudioError):
            audio_request(audio=audio, sample_rate=rate)
    with pytest.raises(InvalidInputError, match="either a recording or a score"):
        EditRequest(source_id="x", instruction=ASK)
    with pytest.raises(InvalidInputError, match="either a recording or a score"):
        EditRequest(source_id="x", instruction=ASK, audio=recording(), sample_rate=RATE, score=triads())


def test_an_unknown_system_names_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="transposition"):
        load_plugin(EDITORS, "transpositon", "editing system")


@pytest.mark.parametrize("factor", [0.05, 0.7, 3.0])
def test_alignment_matches_loudness(factor: float) -> None:
    source = recording() * np.float32(0.3)
    samples, log = align(source, RATE, source * np.float32(factor), RATE)
    assert integrated_loudness(samples[0], RATE) == pytest.approx(integrated_loudness(source[0], RATE), abs=0.01)
    assert log["gain_db"] == pytest.approx(-20 * np.log10(factor), abs=0.02)
    assert not log["peak_limited"]


def test_alignment_never_clips() -> None:
    source = recording() * np.float32(0.9 / np.abs(recording()).max())
    clicks = np.zeros_like(source)
    clicks[:, ::2000] = 1.0  # far softer than its peak
    samples, log = align(source, RATE, clicks, RATE)
    assert log["peak_limited"]
    assert np.abs(samples).max() == pytest.approx(PEAK, abs=1e-5)


@given(st.integers(1000, 80000), st.sampled_from([16000, 22050, 44100]))
def test_alignment_brings_any_length_to_that_of_the_source(n: int, rate: int) -> None:
    source = np.full((1, 30000), 0.1, np.float32)
    samples, log = align(source, RATE, np.full((1, n), 0.2, np.float32), rate)
    assert samples.shape == source.shape
    assert log["seconds"][1] == pytest.approx(30000 / RATE)
    free, _ = align(source, RATE, np.full((1, n), 0.2, np.float32), rate, keeps_time=False)
    assert free.shape[1] == pytest.approx(n * RATE / rate, abs=2)
    off = free.shape[1] - 30000
    assert log.get("cut_sec", 0) - log.get("padded_sec", 0) == pytest.approx(off / RATE)


def test_alignment_keeps_what_sounds_when_the_rate_changes() -> None:
    time_sec = np.arange(3 * 44100) / 44100
    tone = (0.3 * np.sin(2 * np.pi * 440 * time_sec)).astype(np.float32)[None]
    wanted = (0.3 * np.sin(2 * np.pi * 440 * np.arange(3 * RATE) / RATE)).astype(np.float32)[None]
    samples, log = align(wanted, RATE, tone, 44100)
    assert log["sample_rate"] == [44100, RATE]
    middle = slice(1000, -1000)
    assert np.abs(samples - wanted)[:, middle].max() < 2e-3


@pytest.mark.parametrize("broken", [np.zeros((1, 0), np.float32), np.full((1, 9), np.inf, np.float32)])
def test_a_system_that_returns_no_music_has_failed(broken: np.ndarray) -> None:
    with pytest.raises(BackendError, match="empty or not finite"):
        align(recording(), RATE, broken, RATE)
