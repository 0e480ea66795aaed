"""Extraction: order, edges, reasons and receipts with made-up backends, and laws with our own."""

from __future__ import annotations

import json
import sys
import threading
import types

import numpy as np
import pytest
import soundfile

from music_evals.annotations import FEATURES, F0Track, Key, Melody, Segments, StructureFrames
from music_evals.audio import backends as registry
from music_evals.audio import extraction
from music_evals.audio.backends import Backend, UndefinedFeature
from music_evals.audio.extraction import extract, receipt
from music_evals.audio.io import AudioPolicy, load_audio
from music_evals.audio.store import FeatureStore
from music_evals.errors import BackendError, MissingBackendError, UnknownNameError

RATE = 22050


def sine(seconds: float, rate: int = RATE) -> np.ndarray:
    return np.sin(2 * np.pi * 440 * np.arange(round(seconds * rate)) / rate)


@pytest.fixture
def calls() -> list[tuple[str, int]]:
    """(feature, sample rate) of every call of a made-up backend."""
    return []


@pytest.fixture
def made_up(monkeypatch, calls):
    """Backends that give away what they were called with, in place of the real ones."""

    def f0(audio):
        calls.append(("f0", audio.sample_rate))
        return F0Track(np.array([0.0, 1.0]), np.array([440.0, 0.0]))

    def melody(audio, *, f0, lowest=0):
        calls.append(("melody", audio.sample_rate))
        return Melody(np.array([[0.0, 1.0]]), f0.frequencies_hz[:1] + lowest)

    def structure(audio):
        calls.append(("structure", audio.sample_rate))
        return StructureFrames(np.ones((4, 6)).T[::2], 0.5)  # a view, neither in C nor in Fortran order

    def segments(audio, *, structure):
        calls.append(("segments", audio.sample_rate))
        return Segments(np.array([[0.0, structure.hop_sec]]), ("A",))

    def no_f0(audio):
        calls.append(("no f0", 0))
        raise UndefinedFeature("no frame is voiced")

    def not_f0(audio):
        return Key(0, "major")

    def broken(audio):
        return audio.samples[len(audio.samples)]

    module = types.ModuleType("made_up")
    for function in (f0, melody, structure, segments, no_f0, not_f0, broken):
        setattr(module, function.__name__, function)
    monkeypatch.setitem(sys.modules, "made_up", module)
    plain = {"packages": ("numpy",)}
    entries = [
        Backend("f0", "plain", "made_up:f0", **plain),
        Backend("f0", "newer", "made_up:f0", version=2, **plain),
        Backend("f0", "high", "made_up:f0", rate=44100, **plain),
        Backend("f0", "none", "made_up:no_f0", **plain),
        Backend("f0", "wrong", "made_up:not_f0", **plain),
        Backend("f0", "broken", "made_up:broken", **plain),
        Backend("f0", "foreign", "made_up:broken", install="pip install foreign", **plain),
        Backend("f0", "absent", "made_up:f0", packages=("no-such-package",), install="pip install no-such-package"),
        Backend("melody", "plain", "made_up:melody", inputs=("f0",), **plain),
        Backend("melody", "higher", "made_up:melody", inputs=("f0",), parameters={"lowest": 1000}, **plain),
        Backend("structure", "plain", "made_up:structure", **plain),
        Backend("segments", "plain", "made_up:segments", inputs=("structure",), **plain),
    ]
    given = {entry.feature for entry in entries}
    others = [Backend(feature, "plain", "made_up:f0", **plain) for feature in FEATURES if feature not in given]
    table = {feature: {} for feature in FEATURES}
    for entry in [*entries, *others]:
        table[entry.feature][entry.name] = entry
    monkeypatch.setattr(registry, "BACKENDS", table)
    monkeypatch.setattr(registry, "DEFAULT_BACKENDS", dict.fromkeys(FEATURES, "plain"))


@pytest.mark.usefixtures("made_up")
class TestOrder:
    def test_what_was_not_asked_for_is_not_there(self, calls):
        found = extract(load_audio(sine(12), rate=RATE), ["structure"])
        assert found.structure is not None
        assert all(getattr(found, name) is None for name in FEATURES if name != "structure")
        assert not found.undefined
        assert found.duration_sec == 12.0
        assert calls == [("structure", RATE)]

    def test_inputs_come_first_and_stay_inside(self, calls):
        found = extract(load_audio(sine(12), rate=RATE), ["melody"])
        assert found.melody.pitches.tolist() == [440.0]
        assert found.f0 is None
        assert [name for name, _ in calls] == ["f0", "melody"]

    @pytest.mark.parametrize("asked", [["melody", "f0"], ["f0", "melody"], ["f0", "melody", "f0"]])
    def test_each_is_worked_out_once(self, calls, asked):
        found = extract(load_audio(sine(12), rate=RATE), asked)
        assert found.f0 is not None
        assert [name for name, _ in calls] == ["f0", "melody"]

    def test_a_recording_remembers(self, calls):
        audio = load_audio(sine(12), rate=RATE)
        assert extract(audio, ["f0"]).f0 is extract(audio, ["f0", "melody"]).f0
        assert [name for name, _ in calls] == ["f0", "melody"]
        extract(audio, ["f0"], backends={"f0": "newer"})
        assert len(calls) == 3

    def test_the_input_is_that_of_the_chosen_backend(self, calls):
        audio = load_audio(sine(12), rate=RATE)
        extract(audio, ["melody"])
        extract(audio, ["melody"], backends={"f0": "newer"})
        assert [name for name, _ in calls] == ["f0", "melody"] * 2

    def test_parameters_reach_the_backend(self):
        found = extract(load_audio(sine(12), rate=RATE), ["melody"], backends={"melody": "higher"})
        assert found.melody.pitches.tolist() == [1440.0]

    def test_a_backend_gets_the_rate_that_it_wants(self, calls):
        audio = load_audio(sine(12, 44100), rate=44100)
        extract(audio, ["f0"], backends={"f0": "high"})
        extract(load_audio(sine(12, 44100), rate=44100, policy=AudioPolicy(48000)), ["f0"])
        assert calls == [("f0", 44100), ("f0", RATE)]

    def test_threads_share_the_work(self, calls):
        audio = load_audio(sine(12), rate=RATE)
        start = threading.Barrier(6)
        found = []

        def ask() -> None:
            start.wait()
            found.append(extract(audio, ["melody", "segments"]))

        threads = [threading.Thread(target=ask) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(name for name, _ in calls) == ["f0", "melody", "segments", "structure"]
        assert len({id(features.melody) for features in found}) == 1


CANCELLED = (
    "silent: the peak of the mean of the channels lies below -60 dBFS, though a channel is louder (channels in "
    "opposite phase cancel); turn one of them over, or give one alone"
)


@pytest.mark.usefixtures("made_up")
class TestEdges:
    @pytest.mark.parametrize(
        ("samples", "reason"),
        [
            (np.zeros(12 * RATE), "silent: the peak lies below -60 dBFS"),
            (np.full(12 * RATE, 0.5), "silent: the peak, the mean aside, lies below -60 dBFS"),
            (sine(12) * 0.0009, "silent: the peak lies below -60 dBFS"),
            (np.stack([sine(12), -sine(12)]), CANCELLED),
            (sine(0.3), "shorter than 2 s"),
            (sine(1.99), "shorter than 2 s"),
        ],
    )
    def test_nothing_is_asked_of_silence_and_shreds(self, calls, samples, reason):
        found = extract(load_audio(samples, rate=RATE))
        assert found.undefined == dict.fromkeys(FEATURES, reason)
        assert not calls

    @pytest.mark.parametrize("seconds", [2.0, 9.99])
    def test_form_takes_ten_seconds(self, seconds):
        found = extract(load_audio(sine(seconds), rate=RATE), ["f0", "structure", "segments"])
        assert found.undefined == dict.fromkeys(["structure", "segments"], "shorter than 10 s")
        assert found.f0 is not None

    def test_ten_seconds_are_enough(self):
        assert not extract(load_audio(sine(10), rate=RATE), ["structure", "segments"]).undefined

    def test_what_stands_on_nothing_is_nothing(self, calls):
        found = extract(load_audio(sine(12), rate=RATE), ["f0", "melody"], backends={"f0": "none"})
        assert found.undefined == {"f0": "no frame is voiced", "melody": "no f0: no frame is voiced"}
        assert calls == [("no f0", 0)]

    def test_a_backend_that_returns_something_else(self):
        with pytest.raises(BackendError, match="'wrong'"):
            extract(load_audio(sine(12), rate=RATE), ["f0"], backends={"f0": "wrong"})

    def test_an_optional_backend_that_fails_is_named_with_its_cause(self):
        with pytest.raises(BackendError, match="'foreign'") as caught:
            extract(load_audio(sine(12), rate=RATE), ["melody"], backends={"f0": "foreign"})
        assert isinstance(caught.value.__cause__, IndexError)

    def test_a_mistake_of_our_own_is_not_dressed_up(self):
        with pytest.raises(IndexError):
            extract(load_audio(sine(12), rate=RATE), ["f0"], backends={"f0": "broken"})

    def test_a_package_that_is_missing(self):
        with pytest.raises(MissingBackendError, match="pip install no-such-package"):
            extract(load_audio(sine(12), rate=RATE), ["melody"], backends={"f0": "absent"})

    def test_a_missing_package_of_another_feature_is_no_matter(self):
        assert extract(load_audio(sine(12), rate=RATE), ["structure"], backends={"f0": "absent"}).structure is not None

    @pytest.mark.parametrize("wrong", [{"features": ["tempo"]}, {"backends": {"f0": "best"}}, {"backends": {"x": "y"}}])
    def test_wrong_names(self, wrong):
        with pytest.raises(UnknownNameError):
            extract(load_audio(sine(12), rate=RATE), **wrong)


@pytest.mark.usefixtures("made_up")
class TestStore:
    def test_the_second_time_nothing_is_worked_out(self, tmp_path, calls):
        store = FeatureStore(tmp_path)
        for _ in range(3):
            extract(load_audio(sine(12), rate=RATE), ["melody", "f0"], store=store)
        assert [name for name, _ in calls] == ["f0", "melody"]
        extract(load_audio(sine(12), rate=RATE), ["melody"], store=FeatureStore(tmp_path))
        assert len(calls) == 2

    def test_that_there_is_none_is_stored_too(self, tmp_path, calls):
        for _ in range(2):
            found = extract(
                load_audio(sine(12), rate=RATE), ["melody"], backends={"f0": "none"}, store=FeatureStore(tmp_path)
            )
            assert found.undefined == {"melody": "no f0: no frame is voiced"}
        assert calls == [("no f0", 0)]

    def test_another_version_input_parameter_or_recording_is_another_entry(self, tmp_path, calls):
        store = FeatureStore(tmp_path)
        choices = [{}, {"f0": "newer"}, {"f0": "high"}, {"melody": "higher"}]
        for backends in choices:
            extract(load_audio(sine(12), rate=RATE), ["melody"], backends=backends, store=store)
        extract(load_audio(sine(13), rate=RATE), ["melody"], store=store)
        assert [name for name, _ in calls].count("melody") == len(choices) + 1
        assert [name for name, _ in calls].count("f0") == len(choices)  # the f0 under `higher` is the first one's

    def test_a_store_that_cannot_be_written_to_costs_no_feature(self, tmp_path, calls, caplog):
        (tmp_path / "file").write_text("in the way")
        store = FeatureStore(tmp_path / "file" / "store")
        kept, lost = (
            extract(load_audio(sine(12), rate=RATE), ["melody"], store=one) for one in (FeatureStore(tmp_path), store)
        )
        assert (kept.melody.intervals_sec == lost.melody.intervals_sec).all()
        assert [name for name, _ in calls] == ["f0", "melody"] * 2
        assert len(caplog.records) == 1

    def test_what_other_kernels_worked_out_is_not_taken(self, tmp_path, calls, monkeypatch):
        extract(load_audio(sine(12), rate=RATE), ["f0"], store=FeatureStore(tmp_path))
        monkeypatch.setattr(extraction, "kernels", lambda: "another processor")
        extract(load_audio(sine(12), rate=RATE), ["f0"], store=FeatureStore(tmp_path))
        assert [name for name, _ in calls] == ["f0", "f0"]

    def test_a_difference_above_our_rate_is_seen_by_whoever_hears_it(self, tmp_path, calls):
        """Two recordings that are one at 22,050 Hz and two at 44,100 Hz."""
        low = 0.5 * sine(12, 44100)
        first, second = load_audio(low, rate=44100), load_audio(low, rate=44100)
        high = 0.1 * np.sin(2 * np.pi * 18_000 * np.arange(len(low)) / 44100)
        object.__setattr__(second, "reload", load_audio(low + high, rate=44100).reload)
        assert first.content_hash == second.content_hash
        store = FeatureStore(tmp_path)
        for audio in (first, second):
            extract(audio, ["melody"], backends={"f0": "high"}, store=store)
        assert [name for name, _ in calls] == ["f0", "melody"] * 2

    def test_a_damaged_entry_is_worked_out_again_and_replaced(self, tmp_path, calls):
        store = FeatureStore(tmp_path)
        before = extract(load_audio(sine(12), rate=RATE), ["f0"], store=store)
        (path,) = tmp_path.rglob("*.entry")
        path.write_bytes(path.read_bytes()[:100])
        after = extract(load_audio(sine(12), rate=RATE), ["f0"], store=store)
        np.testing.assert_array_equal(after.f0.frequencies_hz, before.f0.frequencies_hz)
        assert len(calls) == 2
        extract(load_audio(sine(12), rate=RATE), ["f0"], store=store)
        assert len(calls) == 2

    def test_arrays_are_laid_out_alike_with_and_without_it(self, tmp_path):
        store = FeatureStore(tmp_path)
        audios = [load_audio(sine(12), rate=RATE) for _ in range(3)]
        for audio, kept in zip(audios, (None, store, store), strict=True):
            frames = extract(audio, ["structure"], store=kept).structure.frames
            assert frames.flags.c_contiguous
            assert frames.shape == (3, 4)


@pytest.mark.usefixtures("made_up")
class TestReceipt:
    def test_it_is_plain_and_whole(self):
        given = receipt({"melody": "higher"}, features=["melody"], policy=AudioPolicy(44100))
        assert json.loads(json.dumps(given)) == given
        assert given["policy"] == {
            "sample_rate": 44100,
            "peak_normalise": True,
            "silence_dbfs": -60.0,
            "decoder": "soundfile",
        }
        assert given["decoder"]["libsndfile"] == soundfile.__libsndfile_version__
        assert given["features"] == {
            "f0": {
                "backend": "plain",
                "version": 1,
                "packages": {"numpy": np.__version__},
                "parameters": {},
                "weights": {},
                "rate": 22050,
                "licence": "Apache-2.0",
                "inputs": [],
            },
            "melody": {
                "backend": "higher",
                "version": 1,
                "packages": {"numpy": np.__version__},
                "parameters": {"lowest": 1000},
                "weights": {},
                "rate": 22050,
                "licence": "Apache-2.0",
                "inputs": ["f0"],
            },
        }

    def test_it_tells_of_all_features_where_none_is_named(self):
        assert set(receipt()["features"]) == set(FEATURES)

    def test_a_missing_package_is_told(self):
        with pytest.raises(MissingBackendError, match="no-such-package"):
            receipt({"f0": "absent"}, features=["melody"])


def arrays_of(features) -> dict[str, np.ndarray]:
    found = {name: getattr(features, name) for name in FEATURES}
    return {
        f"{name}.{field}": array for name, value in found.items() if value for field, array in value.to_arrays().items()
    }


def equal(left, right) -> None:
    assert left.undefined == right.undefined
    assert left.duration_sec == right.duration_sec
    left, right = arrays_of(left), arrays_of(right)
    assert left.keys() == right.keys()
    for name, array in left.items():
        assert array.dtype == right[name].dtype, name
        np.testing.assert_array_equal(array, right[name], err_msg=name)


@pytest.fixture(scope="module")
def features(song):
    """All features of `song` by the default backends."""
    return extract(load_audio(song, rate=RATE))


class TestOurOwn:
    """All eight features by their default backends."""

    @pytest.mark.slow
    def test_all_are_there(self, features):
        assert not features.undefined
        assert features.beats.bpm == pytest.approx(120, rel=0.01)
        assert features.chords.labels == ("C:maj", "F:maj", "G:maj", "C:maj", "F:maj", "G:maj", "C:maj")
        assert features.key == Key(0, "major")

    def test_the_store_does_not_change_a_number(self, features, song, tmp_path):
        for _ in range(2):
            equal(extract(load_audio(song, rate=RATE), store=FeatureStore(tmp_path)), features)

    def test_the_order_of_the_features_does_not_change_a_number(self, features, song):
        equal(extract(load_audio(song, rate=RATE), reversed(FEATURES)), features)

    @pytest.mark.parametrize("gain", [0.5, 0.125])
    def test_a_gain_of_a_power_of_two_does_not_change_a_number(self, features, song, gain):
        equal(extract(load_audio(song * gain, rate=RATE)), features)

    @pytest.mark.parametrize("gain", [0.1, 0.77])
    def test_no_gain_changes_more_than_rounding(self, features, song, gain):
        softer = arrays_of(extract(load_audio(song * gain, rate=RATE)))
        for name, array in arrays_of(features).items():
            if array.dtype.kind == "f":
                # a sixth of a cent: a guess of the pitch between notes depends on the last bits
                np.testing.assert_allclose(softer[name], array, rtol=1e-4, atol=1e-4, err_msg=name)
            else:
                np.testing.assert_array_equal(softer[name], array, err_msg=name)

    @pytest.mark.slow
    def test_threads_do_not_change_a_number(self, features, song):
        audios = [load_audio(song, rate=RATE) for _ in range(2)]
        found = {}
        threads = [
            threading.Thread(target=lambda number=number: found.update({number: extract(audios[number])}))
            for number in range(2)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for one in found.values():
            equal(one, features)
        assert len(found) == 2
