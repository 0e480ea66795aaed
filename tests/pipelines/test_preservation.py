"""The pipeline of edits: what is asked for, what comes back, and what cannot be judged."""

from __future__ import annotations

import dataclasses
import inspect
import math
import os
import threading
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from music_evals.annotations import Beats, Chords, Chroma, F0Track, Features, Key, Melody, Score, Segments, Tempo
from music_evals.audio.beats import FRAME_RATE_HZ, beats_within
from music_evals.audio.io import Audio, AudioPolicy, load_audio
from music_evals.audio.store import FeatureStore
from music_evals.errors import (
    InvalidInputError,
    MissingBackendError,
    NoDataError,
    PairCountError,
    UndefinedMetricWarning,
    UnknownNameError,
    UnreadableFileError,
    UnsupportedTypeError,
)
from music_evals.metrics.arrays import MUSECPEVAL
from music_evals.metrics.catalogue import features_of
from music_evals.pipelines import preservation
from music_evals.pipelines.preservation import (
    AUXILIARY,
    FACETS,
    PRESERVATION_METRICS,
    Settings,
    Source,
    SourceLoader,
    Value,
    compare,
    evaluate_preservation,
    load_features,
    modality,
    score_pair,
)
from music_evals.pipelines.preservation_features import check_options, measure, options_of, select_metrics
from music_evals.pipelines.score_features import score_features
from music_evals.symbolic.midi import save_midi
from music_evals.symbolic.notation import from_abc
from music_evals.symbolic.notes import make_notes

ALL = list(PRESERVATION_METRICS)
HARMONY = list(FACETS["harmony"])


def features(**known: Any) -> Features:
    """Twelve seconds of hand-made music; what is named replaces what is there."""
    times_sec = np.arange(24) / 2
    whole: dict[str, Any] = {
        "beats": Beats(times_sec, 120.0),
        "key": Key(0, "major"),
        "chords": Chords(np.array([[0.0, 6.0], [6.0, 12.0]]), ("C:maj", "G:maj")),
        "chroma": Chroma(np.eye(12), 1.0),
        "f0": F0Track(times_sec, np.full(24, 440.0)),
        "melody": Melody(np.stack([times_sec, times_sec + 0.4], axis=1), 60.0 + np.arange(24) % 7),
        "segments": Segments(np.array([[0.0, 6.0], [6.0, 12.0]]), ("A", "B")),
    }
    return Features(**({"duration_sec": 12.0} | whole | known))


def piece(bpm: float = 120.0, up: int = 0, n_bars: int = 8) -> Score:
    """A cadence of block chords below a tune of quarters with a rest in every other bar, 4/4."""
    chords = ((48, 60, 64), (53, 60, 65), (55, 59, 62), (48, 60, 64))
    rows = [(1920 * bar, 1920, pitch + up, 0) for bar in range(n_bars) for pitch in chords[bar % 4]]
    rows += [(480 * i, 480, 72 + up + (i * i) % 7, 1) for i in range(4 * n_bars) if i % 8 != 5]
    onsets, durations, pitches, voices = zip(*rows, strict=True)
    notes = make_notes(onsets, durations, pitches, voice=voices)
    return Score(notes, 480, tempos=(Tempo(0, bpm),), voices=("Piano", "Melody"))


def sound(seconds: float = 4.0, up: int = 0) -> np.ndarray:
    """C major and F major, half of the time each."""
    time = np.arange(int(seconds * 22050)) / 22050
    chords = [
        sum(np.sin(2 * np.pi * 440 * 2 ** ((pitch + up - 69) / 12) * time) for pitch in chord)
        for chord in ((60, 64, 67), (60, 65, 69))
    ]
    return np.asarray(np.where(time < seconds / 2, *chords) / 4)


@pytest.fixture
def wav(tmp_path: Path) -> Callable[..., str]:
    def write(name: str, samples: np.ndarray) -> str:
        soundfile.write(tmp_path / name, samples, 22050)
        return str(tmp_path / name)

    return write


# The table of metrics


def test_the_facets_hold_all_metrics_once() -> None:
    assert [name for names in FACETS.values() for name in names] == ALL
    assert list(FACETS) == ["harmony", "rhythm", "structure", "melody"]
    assert {scale.facet for scale in AUXILIARY.values()} == {*FACETS, "timbre"}


def test_a_facet_stands_for_its_metrics_and_timbre_for_its_auxiliary_one() -> None:
    assert select_metrics("harmony", "corrected") == tuple(HARMONY)
    assert select_metrics(["timbre"], "corrected") == ("timbre_similarity",)
    assert select_metrics("timbre", MUSECPEVAL) == ("mfcc_skl_similarity", "mean_mfcc_cosine")


@pytest.mark.parametrize("name", [*ALL, *AUXILIARY])
def test_every_score_has_a_function_that_takes_its_arguments(name: str) -> None:
    function, arguments = measure(name, "corrected", 10.0)
    parameters = inspect.signature(function).parameters
    assert {"reference", "estimate", *arguments} <= set(parameters)
    assert all(parameters[given].kind is inspect.Parameter.KEYWORD_ONLY for given in arguments)


# Comparing features


def test_values_of_hand_made_features() -> None:
    """G major is one fifth away; half of the chords agree; 120 to 90 is 30; one boundary moved by 2 s."""
    edited = features(
        key=Key(7, "major"),
        chords=Chords(np.array([[0.0, 12.0]]), ("C:maj",)),
        beats=Beats(np.arange(18) / 1.5, 90.0),
        segments=Segments(np.array([[0.0, 8.0], [8.0, 12.0]]), ("A", "B")),
    )
    found = compare(features(), edited)
    assert list(found) == ALL
    assert found["circle_of_fifths_distance"] == Value(1 / 6)
    assert found["major_minor_score"].value == pytest.approx(0.5)
    assert found["chroma_dtw_similarity"].value == 1.0
    assert found["delta_bpm"].value == pytest.approx(30.0)
    # of 24 and 18 beats, those at 0, 2, 4, 6, 8 and 10 s are common; the next nearest are 0.17 s apart
    assert found["beat_f_measure"].value == pytest.approx(2 * 6 / (24 + 18))
    assert found["boundary_f_measure"].value == 0.0
    assert found["voicing_recall"].value == 1.0
    assert found["motif_jaccard"] == found["motif_recall"] == Value(1.0)


def test_a_feature_that_is_undefined_makes_nan_with_its_reason() -> None:
    silent = Features(12.0, undefined=dict.fromkeys(("key", "chords", "chroma"), "silent"))
    for pair, side in (((silent, features()), "reference"), ((features(), silent), "estimate")):
        for value in compare(*pair, metrics=HARMONY).values():
            assert math.isnan(value.value)
            assert value.reason == f"{side}: silent"


@pytest.mark.parametrize("variant", ["corrected", "paper"])
def test_an_estimate_without_a_sound_scores_as_low_as_can_be(variant: str) -> None:
    score = Score(make_notes(480 * np.arange(48), [400] * 48, [60, 64, 67, 65] * 12), 480)
    music, nothing = score_features(score), score_features(Score(make_notes([], [], []), 480))
    found = compare(music, nothing, companions=True, variant=variant)
    of_sound = {name for name, value in found.items() if math.isnan(value.value)}
    features = {feature for name in of_sound - {"tuning_cents"} for feature in features_of(name, variant)}
    assert features == {"key", "beats", "segments", "structure"}  # no key, no tempo, no form
    assert of_sound.isdisjoint({"beat_f_measure", "information_gain"})
    low = {name: value.value for name, value in found.items() if name not in of_sound}
    assert low.pop("overall_accuracy") == pytest.approx(1 / 6, abs=0.01)  # a sixth has no pitch on either side
    assert low == pytest.approx(dict.fromkeys(low, 0))
    assert all(math.isnan(value.value) for value in compare(nothing, music, companions=True, variant=variant).values())


def test_what_is_there_but_empty_is_the_metrics_affair() -> None:
    none = features(beats=Beats(np.zeros(0)))
    found = compare(features(), none, metrics=FACETS["rhythm"])
    assert found["beat_f_measure"] == found["information_gain"] == Value(0.0)
    assert math.isnan(found["delta_bpm"].value)
    assert found["delta_bpm"].reason == "the estimate has no tempo"
    assert compare(none, none, metrics=["beat_f_measure"])["beat_f_measure"].reason == "neither side has a beat"


def test_a_feature_that_nobody_loaded_is_an_error() -> None:
    with pytest.raises(InvalidInputError, match="delta_bpm needs beats, which the estimate lacks"):
        compare(features(), features(beats=None), metrics=["delta_bpm"])


def test_official_motifs_are_made_of_frames() -> None:
    """Without a melody the official ones are there, without an f0 track the corrected ones."""
    assert compare(features(melody=None), features(melody=None), metrics=["motif_recall"], variant="official")
    assert compare(features(f0=None), features(f0=None), metrics=["motif_recall"])["motif_recall"].value == 1.0
    with pytest.raises(InvalidInputError, match="motif_recall needs f0"):
        compare(features(f0=None), features(f0=None), metrics=["motif_recall"], variant="official")


@pytest.mark.parametrize("name", ["beat_f_measure", "information_gain", "beat_f_measure_aligned"])
def test_beats_after_the_end_of_the_reference_are_not_judged(name: str) -> None:
    longer = features(duration_sec=30.0, beats=Beats(np.arange(60) / 2, 120.0))
    chosen = {"metrics": ["beat_f_measure", "information_gain"], "companions": ["beat_f_measure_aligned"]}
    assert compare(features(), longer, **chosen)[name].value == 1.0
    if name == "beat_f_measure":  # the official code judges them
        official = compare(features(), longer, metrics=[name], variant="official")[name].value
        assert official == pytest.approx(2 * 14 / (14 + 50))  # beats from 5 s on


def flipped_pair() -> tuple[Beats, Beats]:
    """One pulse of 100 a minute, counted at 100 and at 200."""
    frames = np.arange(round(20 * FRAME_RATE_HZ))
    places = (frames / FRAME_RATE_HZ / 0.3) % 1  # a hit every 0.3 s, every other one as strong as any
    odds = np.maximum(3 - 12 * np.minimum(places, 1 - places), -4).astype(np.float32)
    bars = np.cos(2 * np.pi * np.arange(240) / 48) + np.cos(2 * np.pi * np.arange(240) / 31)
    evidence = Beats(np.zeros(0), float("nan"), odds, np.array([0.0, 20.0]), bars)
    return beats_within(evidence, 90, 110), beats_within(evidence, 180, 220)


def test_corrected_counts_the_beats_of_a_pair_at_one_level() -> None:
    first, second = flipped_pair()
    assert (first.bpm, second.bpm) == (pytest.approx(100, abs=1), pytest.approx(200, abs=2))
    metrics = ["delta_bpm", "beat_f_measure"]
    pair = features(beats=first), features(beats=second)
    corrected = compare(*pair, metrics=metrics)
    assert corrected["delta_bpm"].value == pytest.approx(0, abs=0.5)
    for variant in ("official", "paper"):  # as they were, to the bit
        assert compare(*pair, metrics=metrics, variant=variant)["delta_bpm"].value == second.bpm - first.bpm


def test_a_side_that_was_counted_again_is_in_the_notes() -> None:
    sources = [Source(features(beats=beats), "audio", "", (), {}) for beats in flipped_pair()]
    settings = Settings.of(metrics=["delta_bpm"])
    assert any("counted at" in note for note in score_pair(*sources, settings).notes)
    assert not any("counted at" in note for note in score_pair(sources[0], sources[0], settings).notes)


def test_options_reach_their_metric() -> None:
    late = features(beats=Beats(np.arange(24) / 2 + 0.1, 120.0))
    strict = compare(features(), late, metrics=["beat_f_measure"])["beat_f_measure"].value
    lax = compare(features(), late, metrics=["beat_f_measure"], options={"beat_f_measure": {"tolerance_sec": 0.11}})[
        "beat_f_measure"
    ].value
    assert (strict, lax) == (0.0, pytest.approx(1.0, abs=0.03))
    with pytest.raises(UnknownNameError, match="did you mean beat_f_measure"):
        compare(features(), late, metrics=["beat_f_measure"], options={"beat_f": {}})


@pytest.mark.parametrize("name", [*ALL, *AUXILIARY])
def test_every_free_option_takes_its_default(name: str) -> None:
    function, _ = measure(name, "corrected", 10.0)
    free = options_of(name, "corrected")
    defaults = {option: inspect.signature(function).parameters[option].default for option in free}
    check_options({name: defaults}, [name], "corrected")
    assert not {"variant", "end_sec"} & set(free)


@pytest.mark.parametrize(
    ("name", "options", "error", "message"),
    [
        ("beat_f_measure", {"variant": "official"}, UnknownNameError, "unknown option of beat_f_measure 'variant'"),
        ("beat_f_measure", {"end_sec": 3.0}, UnknownNameError, "unknown option of beat_f_measure 'end_sec'"),
        ("beat_f_measure", {"tolerance": 0.1}, UnknownNameError, "did you mean tolerance_sec"),
        ("beat_f_measure_aligned", {"align": "none"}, UnknownNameError, "unknown option of beat_f_measure_aligned"),
        ("boundary_f_measure_3s", {"window_sec": 0.5}, UnknownNameError, "known: none"),
        ("beat_f_measure", {"align": "ofset"}, UnknownNameError, "did you mean offset"),
        ("beat_f_measure", {"tolerance_sec": -1}, InvalidInputError, "must be a finite number of seconds, at least 0"),
        ("information_gain", {"tolerance_sec": math.nan}, InvalidInputError, "got nan"),
        ("information_gain", {"min_beat_time_sec": "5"}, InvalidInputError, "or None, got '5'"),
        ("boundary_f_measure", {"window_sec": None}, InvalidInputError, "got None"),
        ("ssm_correlation", {"tempo_ratio": 0}, InvalidInputError, "must be a finite number above 0"),
        ("chroma_dtw_centred", {"transposition_invariant": 1}, InvalidInputError, "must be True or False"),
        ("motif_recall", {"n": 0}, InvalidInputError, "must be a whole number, at least 1"),
        ("motif_recall", {"n": 3.0}, InvalidInputError, "got 3.0"),
        ("motif_recall", {"n": True}, InvalidInputError, "got True"),
        ("motif_recall", 3, UnsupportedTypeError, "options of motif_recall must be a mapping"),
    ],
)
def test_options_that_would_mislead_are_errors_of_the_call(
    name: str, options: Any, error: type[Exception], message: str
) -> None:
    """Also where failures of pairs are recorded: nothing is wrong with a pair."""
    with pytest.raises(error, match=message):
        evaluate_preservation([piece()], [piece()], companions=True, failures="record", options={name: options})


def test_options_that_change_nothing_are_taken() -> None:
    chosen = {"beat_f_measure": {"tolerance_sec": np.float64(0.07), "align": "none", "min_beat_time_sec": None}}
    metrics = ["beat_f_measure", "motif_recall"]
    plain = compare(features(), features(), metrics=metrics)
    assert (
        compare(features(), features(), metrics=metrics, options={**chosen, "motif_recall": {"n": np.int64(3)}})
        == plain
    )


def test_companions_by_name_or_all_of_the_facets() -> None:
    some = compare(features(), features(), metrics=["delta_bpm"], companions=["tempo_octave"])
    assert list(some) == ["delta_bpm", "tempo_octave"]
    rhythm = compare(features(), features(), metrics=["delta_bpm"], companions=True)
    assert list(rhythm) == ["delta_bpm", *(name for name, scale in AUXILIARY.items() if scale.facet == "rhythm")]
    with pytest.raises(UnknownNameError, match="unknown auxiliary metric 'tempo'"):
        compare(features(), features(), companions=["tempo"])
    with pytest.raises(UnknownNameError, match="did you mean delta_bpm"):
        compare(features(), features(), metrics="delta_pbm")
    with pytest.raises(UnknownNameError, match="did you mean corrected"):
        compare(features(), features(), variant="correct")


def test_warnings_of_others_pass_through(monkeypatch: pytest.MonkeyPatch) -> None:
    def warn(*_: Any, **__: Any) -> float:
        warnings.warn("the sky is falling", RuntimeWarning, stacklevel=1)
        warnings.warn("x is undefined: no reason", UndefinedMetricWarning, stacklevel=1)
        return float("nan")

    monkeypatch.setattr(preservation, "measure", lambda *_: (warn, {}))
    with pytest.warns(RuntimeWarning, match="sky"):
        assert compare(features(), features(), metrics=["delta_bpm"])["delta_bpm"].reason == "no reason"


# Pairs of scores


def test_a_score_against_itself_is_exactly_best() -> None:
    result = evaluate_preservation([piece()], [piece()], companions=True)
    known = {name: scale for name, scale in (PRESERVATION_METRICS | AUXILIARY).items() if scale.facet in FACETS}
    assert {name: result[name] for name in known} == {name: scale.best for name, scale in known.items()}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("G4|ABcd|F2F2|[K:D]FGAB|cdec|F4|GABc|d4|]", "G4|ABcd|F2F2|\nK:D\nFGAB|cdec|F4|GABc|d4|]"),
        ("GABc|CDEF|Z2|GABc|edcB|A4|]", "GABc|CDEF|z4|z4|GABc|edcB|A4|]"),
        ("CDEF|GABc:|cBAG|FEDC:|EGcG|EDC2:|", "|:CDEF|GABc:||:cBAG|FEDC:||:EGcG|EDC2:|"),
    ],
    ids=["a key within a line", "rests of two bars", "repeats without a start"],
)
@pytest.mark.filterwarnings("ignore:.*is undefined")
def test_two_legal_spellings_of_one_piece_are_one_piece(one: str, other: str) -> None:
    scores = [from_abc(f"X:1\nM:4/4\nL:1/4\nK:C\n{music}\n") for music in (one, other)]
    result = evaluate_preservation([scores[0]], [scores[1]])
    defined = {name: scale.best for name, scale in PRESERVATION_METRICS.items() if not math.isnan(result[name])}
    assert len(defined) >= 10
    assert {name: result[name] for name in defined} == pytest.approx(defined, abs=1e-12)


def test_each_pair_is_told_and_the_mean_is_theirs() -> None:
    result = evaluate_preservation(
        [piece(), piece(100.0)], [piece(90.0), piece(120.0)], metrics=["delta_bpm"], per_item=True
    )
    assert [item["delta_bpm"] for item in result["per_item"]] == pytest.approx([30.0, 20.0])
    assert result["delta_bpm"] == pytest.approx(25.0)
    assert (result["delta_bpm_n"], result["delta_bpm_n_defined"]) == (2, 2)
    keys = ["delta_bpm", "delta_bpm_ci", "delta_bpm_n", "delta_bpm_n_defined", "delta_bpm_n_clusters"]
    assert list(result) == [*keys, "per_item"]
    assert {item["entrance"] for item in result["per_item"]} == {"symbolic"}
    assert all(item["errors"] == {} for item in result["per_item"])


def test_a_pair_that_is_undefined_is_left_out_and_counted() -> None:
    short = piece(n_bars=4)  # 8 s: no sections
    result = evaluate_preservation([piece(), short], [piece(), short], metrics=FACETS["structure"], per_item=True)
    assert (result["segment_ari"], result["segment_ari_n"], result["segment_ari_n_defined"]) == (1.0, 2, 1)
    assert math.isnan(result["per_item"][1]["segment_ari"])
    assert result["per_item"][1]["reasons"]["segment_ari"] == "reference: shorter than 10 s"
    with pytest.warns(UndefinedMetricWarning, match="segment_ari is undefined: none of the 1 items") as caught:
        evaluate_preservation([short], [short], metrics=["segment_ari"])
    assert caught[0].filename == __file__


def test_edits_of_one_original_are_one_cluster() -> None:
    """Told by what the originals hold, not by who holds them: the copies are one song, the others another."""
    originals = [piece(), piece(), piece(up=1), piece(up=1), piece(up=2)]
    edits = [piece(bpm) for bpm in (110, 100, 90, 80, 70)]
    told = evaluate_preservation(originals, edits, metrics=["delta_bpm"], groups=["a", "a", "b", "b", "c"])
    assert evaluate_preservation(originals, edits, metrics=["delta_bpm"]) == told
    apart = evaluate_preservation(originals, edits, metrics=["delta_bpm"], groups=range(5))
    assert apart["delta_bpm_ci"] != told["delta_bpm_ci"]


def test_order_of_pairs_and_what_else_is_computed_change_no_digit() -> None:
    originals = [piece(), piece(110.0), piece(100.0)]
    edits = [piece(90.0, up=1), piece(95.0), piece(130.0)]
    one = evaluate_preservation(originals, edits, metrics=["delta_bpm"])
    back = evaluate_preservation(originals[::-1], edits[::-1])
    assert {key: back[key] for key in one} == one


def test_a_source_is_analysed_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    loaded: list[Any] = []
    load = SourceLoader.load_music

    def count(self: SourceLoader, source: Any) -> Any:
        loaded.append(source)
        return load(self, source)

    monkeypatch.setattr(SourceLoader, "load_music", count)
    path = save_midi(piece(), tmp_path / "original.mid")
    edits = [piece(100.0), piece(90.0)]
    evaluate_preservation([path, str(path)], edits, metrics=["delta_bpm"])
    assert loaded == [path, *edits]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::music_evals.errors.UndefinedMetricWarning")
def test_both_recordings_are_analysed_at_once_where_the_process_may(
    monkeypatch: pytest.MonkeyPatch, wav: Callable[..., str]
) -> None:
    """A pair waits for the slower side; but where processes share the cores, each keeps to one."""
    paths = [wav("first.wav", sound(12)), wav("second.wav", sound(11, up=2))]
    both, load = threading.Barrier(2, timeout=120), SourceLoader.load_music

    def together(loader: SourceLoader, source: Any) -> Any:
        both.wait()  # the other side is there too, or never
        return load(loader, source)

    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    alone = evaluate_preservation(paths[:1], paths[1:], companions=True)
    monkeypatch.delenv("OMP_NUM_THREADS")
    monkeypatch.setattr("music_evals.pipelines.preservation_features.n_threads", lambda: 2)
    monkeypatch.setattr(SourceLoader, "load_music", together)
    for _ in range(3):
        np.testing.assert_equal(evaluate_preservation(paths[:1], paths[1:], companions=True), alone)


def test_of_two_files_that_cannot_be_read_the_first_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, wav: Callable[..., str]
) -> None:
    monkeypatch.setattr("music_evals.pipelines.preservation_features.n_threads", lambda: 2)
    missing = [str(tmp_path / name) for name in ("a.wav", "b.wav")]
    for pair, place in (
        (missing, r"references\[0\]: .*a.wav"),
        ([wav("a.flac", sound()), missing[1]], r"predictions\[0\]: .*b.wav"),
    ):
        with pytest.raises(NoDataError, match=place):
            evaluate_preservation(pair[:1], pair[1:])


@pytest.mark.slow
def test_score_files_give_the_numbers_of_their_scores(tmp_path: Path) -> None:
    paths = [save_midi(piece(bpm), tmp_path / f"{bpm}.mid") for bpm in (120, 60)]
    values = evaluate_preservation([piece(120)], [piece(60)], metrics=["delta_bpm"])
    assert evaluate_preservation(paths[:1], paths[1:], metrics=["delta_bpm"]) == values
    assert load_features(paths[0], metrics=["delta_bpm"]).beats.bpm == 120.0  # type: ignore[union-attr]


def test_assumptions_are_in_the_notes() -> None:
    bare = dataclasses.replace(piece(), tempos=())
    [item] = evaluate_preservation([bare], [piece()], metrics=["delta_bpm"], per_item=True)["per_item"]
    assert item["notes"] == [
        "both: no time signature at the start of the file: 4/4 assumed",
        "both: melody: the voice 'Melody'",
        "reference: no tempo at the start of the file: 120 quarters a minute assumed",
    ]


def test_doubts_are_in_the_notes() -> None:
    longer = piece(n_bars=9)
    [item] = evaluate_preservation([piece()], [longer], metrics=FACETS["structure"], per_item=True)["per_item"]
    assert any(note.startswith("lengths differ by more than 5%: 16.0 s and 18.0 s; ") for note in item["notes"])
    assert "shorter than 60 s: sections are uncertain" in item["notes"]
    [item] = evaluate_preservation([piece()], [piece(n_bars=8)], metrics=["delta_bpm"], per_item=True)["per_item"]
    assert not any("lengths" in note or "sections" in note for note in item["notes"])


def test_the_official_melody_needs_equal_lengths() -> None:
    pair = [piece()], [piece(n_bars=9)]
    with pytest.raises(InvalidInputError, match=r"^pair 0: voicing_recall: the official code cannot compare tracks"):
        evaluate_preservation(*pair, metrics=["voicing_recall", "delta_bpm"], variant="official")
    result = evaluate_preservation(
        *pair, metrics=["delta_bpm", "motif_recall"], variant="official", failures="record", per_item=True
    )
    assert result["delta_bpm"] == 0.0


@pytest.mark.filterwarnings("ignore::music_evals.errors.UndefinedMetricWarning")
def test_what_the_official_code_cannot_compare_costs_its_metric_alone() -> None:
    result = evaluate_preservation(
        [piece()], [piece(n_bars=9)],
        metrics=["voicing_recall", "delta_bpm"], variant="official", failures="record", per_item=True,
    )  # fmt: skip
    [item] = result["per_item"]
    assert item["delta_bpm"] == 0.0
    assert math.isnan(item["voicing_recall"])
    assert list(item["errors"]) == ["voicing_recall"]
    assert item["errors"]["voicing_recall"].startswith("NotComparableError: voicing_recall: the official code cannot")


# Recordings


def test_recordings_by_path_and_by_value_give_the_same(wav: Callable[..., str]) -> None:
    first, second = sound(), sound(up=7)
    paths = [wav("first.wav", first)], [wav("second.wav", second)]
    by_path = evaluate_preservation(*paths, metrics=HARMONY, per_item=True)
    assert by_path["circle_of_fifths_distance"] == pytest.approx(1 / 6)
    assert by_path["major_minor_score"] == 0.0
    audio = [load_audio(paths[0][0])], [load_audio(paths[1][0])]
    assert evaluate_preservation(*audio, metrics=HARMONY, per_item=True) == by_path
    assert by_path["per_item"][0]["entrance"] == "audio"


def test_a_recording_against_itself_is_exactly_best(wav: Callable[..., str]) -> None:
    path = wav("same.wav", sound())
    result = evaluate_preservation([path], [path], metrics=HARMONY, companions=True)
    for name in [*HARMONY, "same_mode", "chroma_dtw_centred", "chroma_dtw_centred_transposed"]:
        assert result[name] == {**PRESERVATION_METRICS, **AUXILIARY}[name].best


def test_a_store_changes_no_number_and_is_used(wav: Callable[..., str], tmp_path: Path) -> None:
    paths = [wav("first.wav", sound())], [wav("second.wav", sound(up=2))]
    plain = evaluate_preservation(*paths, metrics=HARMONY)
    store = tmp_path / "store"
    assert evaluate_preservation(*paths, metrics=HARMONY, store=store) == plain
    stored = list(store.rglob("*.entry"))
    assert len(stored) == 6
    for path in stored:
        os.utime(path, ns=(0, 0))  # one that is written again bears another time, however coarse the clock of the disk
    assert evaluate_preservation(*paths, metrics=HARMONY, store=FeatureStore(store)) == plain
    assert {path: path.stat().st_mtime_ns for path in store.rglob("*.entry")} == dict.fromkeys(stored, 0)


@pytest.mark.filterwarnings("ignore::music_evals.errors.UndefinedMetricWarning")
def test_silent_and_short_recordings_are_undefined(wav: Callable[..., str]) -> None:
    silence, moment = wav("silence.wav", np.zeros(4 * 22050)), wav("moment.wav", sound(1.0))
    whole = wav("whole.wav", sound())
    result = evaluate_preservation(
        [silence, whole], [whole, moment], metrics=["circle_of_fifths_distance"], per_item=True
    )
    assert result["circle_of_fifths_distance_n_defined"] == 0
    reasons = [item["reasons"]["circle_of_fifths_distance"] for item in result["per_item"]]
    assert reasons[0].startswith("reference: silent")
    assert reasons[1] == "estimate: shorter than 2 s"


def test_an_edit_that_falls_silent_has_another_timbre(wav: Callable[..., str]) -> None:
    silence, whole = wav("silence.wav", np.zeros(4 * 22050)), wav("whole.wav", sound())
    result = evaluate_preservation([whole, silence], [silence, whole], metrics=["timbre"], per_item=True)
    first, second = (item["timbre_similarity"] for item in result["per_item"])
    assert first == 0
    assert np.isnan(second)


def test_the_level_stays_as_it_is_for_the_official_code() -> None:
    assert Settings.of(metrics=HARMONY, variant="official").audio_policy == AudioPolicy(peak_normalise=False)
    assert Settings.of(metrics=HARMONY).audio_policy == AudioPolicy()
    assert Settings.of(metrics=HARMONY, variant="paper").audio_policy == AudioPolicy()


def test_a_recording_decoded_otherwise_is_remarked_on() -> None:
    audio = load_audio(sound(), rate=22050, policy=AudioPolicy(peak_normalise=False))
    result = evaluate_preservation([audio], [audio], metrics=["chroma_dtw_similarity"], per_item=True)
    [note] = result["per_item"][0]["notes"]
    assert note.startswith("both: decoded under another policy than asked for")


# Official extractors


@pytest.mark.usefixtures("without_essentia")
def test_a_missing_backend_is_an_error_that_says_how_to_install_it(wav: Callable[..., str]) -> None:
    path = wav("a.wav", sound())
    with pytest.raises(MissingBackendError, match=r"^pair 0: the key backend 'essentia_bgate' .* pip install essentia"):
        evaluate_preservation([path], [path], metrics=["circle_of_fifths_distance"], variant="official")
    with pytest.raises(MissingBackendError, match="essentia"):
        load_features(path, metrics=["circle_of_fifths_distance"], variant="official")


@pytest.mark.usefixtures("without_essentia")
def test_a_missing_backend_costs_its_metric_alone(wav: Callable[..., str]) -> None:
    path = wav("a.wav", sound())
    chosen = ["circle_of_fifths_distance", "chroma_dtw_similarity"]
    with pytest.warns(UndefinedMetricWarning, match="circle_of_fifths_distance"):
        result = evaluate_preservation(
            [path], [path], metrics=chosen, variant="official", failures="record", per_item=True
        )
    [item] = result["per_item"]
    assert item["chroma_dtw_similarity"] == pytest.approx(1.0)
    assert math.isnan(item["circle_of_fifths_distance"])
    assert "circle_of_fifths_distance" not in item["reasons"]  # it failed, which is not the same
    assert item["errors"]["circle_of_fifths_distance"].startswith("MissingBackendError: the key backend")
    one = evaluate_preservation([path], [path], metrics=["chroma_dtw_similarity"], variant="official")
    assert one["chroma_dtw_similarity"] == item["chroma_dtw_similarity"]


def test_backends_by_name(wav: Callable[..., str]) -> None:
    path = wav("a.wav", sound())
    one, other = (
        load_features(path, metrics=["chroma_dtw_similarity"], backends={"chroma": name}).chroma
        for name in ("cqt", "librosa_cqt")
    )
    assert one is not None
    assert other is not None
    assert not np.array_equal(one.frames, other.frames)
    with pytest.raises(UnknownNameError, match="unknown chroma backend 'cq'; did you mean cqt"):
        evaluate_preservation([path], [path], backends={"chroma": "cq"}, failures="record")


# What cannot be judged


def test_entrances() -> None:
    assert modality("a/b.MID") == modality(Path("x.mxl")) == modality(piece()) == "symbolic"
    assert modality("a.wav") == modality("a") == modality(Audio(np.zeros(9, np.float32))) == "audio"
    with pytest.raises(UnsupportedTypeError, match="load_audio"):
        modality(np.zeros(9))


def test_a_recording_is_not_compared_with_a_score(wav: Callable[..., str]) -> None:
    with pytest.raises(InvalidInputError, match=r"^pair 1: the reference is audio, the prediction symbolic"):
        evaluate_preservation(
            [piece(), wav("a.wav", sound())], [piece(), piece()], metrics=["circle_of_fifths_distance"]
        )


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    text = tmp_path / "text.wav"
    text.write_text("no music")
    broken = tmp_path / "broken.mid"
    broken.write_bytes(b"no MIDI")
    good = save_midi(piece(), tmp_path / "good.mid")
    for references, predictions, error, message in (
        ([good], [tmp_path / "missing.mid"], NoDataError, r"^predictions\[0\]: .*missing\.mid"),
        ([tmp_path / "missing.wav"], [good], NoDataError, r"^references\[0\]: .*missing\.wav"),
        ([text], [text], UnreadableFileError, r"^references\[0\]: .*text\.wav"),
        ([good, good], [good, broken], UnreadableFileError, r"^predictions\[1\]: .*broken\.mid"),
    ):
        with pytest.raises(error, match=message):
            evaluate_preservation(references, predictions, metrics=["circle_of_fifths_distance"])


def test_a_file_that_cannot_be_read_costs_its_pair_alone(tmp_path: Path) -> None:
    good = save_midi(piece(), tmp_path / "good.mid")
    result = evaluate_preservation(
        [good, tmp_path / "gone.mid"], [good, good], metrics=["delta_bpm"], failures="record", per_item=True
    )
    assert (result["delta_bpm"], result["delta_bpm_n"], result["delta_bpm_n_defined"]) == (0.0, 2, 1)
    assert result["per_item"][1]["errors"]["delta_bpm"].startswith("NoDataError: references[1]: ")
    assert result["per_item"][1]["entrance"] == "symbolic"


def test_a_pair_that_failed_stays_with_the_edits_of_its_original(tmp_path: Path, wav: Callable[..., str]) -> None:
    gone = tmp_path / "gone.mid"
    pairs: list[tuple[Any, Any]] = [
        (piece(), piece(110)), (piece(), gone), (piece(), wav("a.wav", sound())), (piece(up=1), piece()),
        (gone, piece()), (gone, piece(90)),
    ]  # fmt: skip
    rows = list(preservation._score_pairs(Settings.of(metrics=["delta_bpm"]), pairs, keep_going=True))
    assert [bool(row.errors) for row in rows] == [False, True, True, False, True, True]
    clusters = [row.cluster for row in rows]
    assert clusters[0] == clusters[1] == clusters[2]
    assert clusters[4] == clusters[5]
    assert len(set(clusters)) == 3


def test_a_source_that_cannot_be_read_is_tried_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    loaded: list[Any] = []
    load = SourceLoader.load_music

    def count(self: SourceLoader, source: Any) -> Any:
        loaded.append(source)
        return load(self, source)

    monkeypatch.setattr(SourceLoader, "load_music", count)
    gone, edits = tmp_path / "gone.mid", [piece(100.0), piece(90.0)]
    with pytest.warns(UndefinedMetricWarning):
        result = evaluate_preservation([gone, gone], edits, metrics=["delta_bpm"], failures="record", per_item=True)
    assert loaded == [gone, *edits]
    places = [item["errors"]["delta_bpm"].partition("]")[0] for item in result["per_item"]]
    assert places == ["NoDataError: references[0", "NoDataError: references[1"]


def test_a_source_is_let_go_after_its_last_pair_though_the_other_side_failed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    features: list[Any] = []
    load = SourceLoader.load_music

    def note(self: SourceLoader, source: Any) -> Any:
        loaded = load(self, source)
        features.append(weakref.ref(loaded[1].features))
        return loaded

    monkeypatch.setattr(SourceLoader, "load_music", note)
    gone, shared = tmp_path / "gone.mid", piece()
    pairs: list[tuple[Any, Any]] = [(gone, shared), (shared, shared), (shared, gone), (piece(90), piece(80))]
    rows = preservation._score_pairs(Settings.of(metrics=["delta_bpm"]), pairs, keep_going=True)
    assert [sum(reference() is not None for reference in features) for _ in rows] == [1, 1, 1, 2]


def test_pairs_must_pair_up() -> None:
    with pytest.raises(PairCountError, match="2 references and 1 predictions"):
        evaluate_preservation([piece(), piece()], [piece()])
    with pytest.raises(PairCountError):
        evaluate_preservation([piece()], [piece()], groups=["a", "b"])
    with pytest.raises(NoDataError):
        evaluate_preservation([], [])
    with pytest.raises(UnsupportedTypeError, match="predictions must be a list of sources, got str"):
        evaluate_preservation([piece()], "edited.mid")
    with pytest.raises(UnsupportedTypeError, match=r"^references\[0\]: expected a path"):
        evaluate_preservation([np.zeros(9)], [piece()])  # type: ignore[list-item]


def test_options_out_of_range_are_refused() -> None:
    pair = [piece()], [piece()]
    with pytest.raises(UnknownNameError, match="did you mean record"):
        evaluate_preservation(*pair, failures="records")
    with pytest.raises(InvalidInputError, match="confidence"):
        evaluate_preservation(*pair, confidence=1.5)
    with pytest.raises(InvalidInputError, match="confidence"):
        evaluate_preservation(*pair, confidence=2)
