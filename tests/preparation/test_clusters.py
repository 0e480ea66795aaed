"""Clusters of songs, and samples that are even over them: hand-made groups, counts by hand, and the way to CaiMAP."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import datasets
import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from music_evals.benchmark.records import read_records
from music_evals.caimap.exchange.importing import read_songs
from music_evals.caimap.exchange.prepared import read_prepared
from music_evals.cli import main
from music_evals.errors import InvalidInputError, MissingBackendError
from music_evals.preparation.clusters import cluster, sample_evenly
from music_evals.preparation.task import Settings, run_preparation

pytest.importorskip("sklearn")

RATE = 8000


def test_groups_that_lie_apart_are_the_clusters() -> None:
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2], [12, 7, 4])  # the largest first
    centres = np.array([[0.0, 0.0], [50.0, 0.0], [0.0, 50.0]])
    order = rng.permutation(len(truth))
    vectors = (centres[truth] + rng.standard_normal((len(truth), 2)))[order].astype(np.float32)
    found = cluster(vectors, 3, seed=1)
    np.testing.assert_array_equal(found.labels, truth[order])
    again = cluster(vectors, 3, seed=1)
    np.testing.assert_array_equal(cluster(vectors, 3, seed=2**62).labels, truth[order])  # any seed of ours
    np.testing.assert_array_equal(found.labels, again.labels)
    np.testing.assert_array_equal(found.distances, again.distances)


def test_distances_are_from_the_mean_of_a_cluster_in_deviations() -> None:
    # one cluster; the first dimension has mean 3 and deviation 2, the second never varies
    vectors = np.array([[1.0, 7.0], [5.0, 7.0], [1.0, 7.0], [5.0, 7.0]], np.float32)
    found = cluster(vectors, 1, seed=0)
    np.testing.assert_allclose(found.distances, [1, 1, 1, 1])
    np.testing.assert_array_equal(found.labels, [0, 0, 0, 0])


def test_more_clusters_than_songs_are_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"1\.\.2"):
        cluster(np.eye(2, dtype=np.float32), 3, seed=0)


def test_equal_songs_share_a_cluster() -> None:
    vectors = np.repeat(np.array([[0.0], [9.0]], np.float32), 3, axis=0)
    found = cluster(vectors, 4, seed=0)
    assert len(set(found.labels[:3])) == len(set(found.labels[3:])) == 1


def test_a_sample_is_even_as_far_as_clusters_go() -> None:
    labels = np.repeat([0, 1, 2], [5, 2, 1])
    rng = np.random.default_rng(0)
    assert Counter(labels[sample_evenly(labels, 3, rng)].tolist()) == {0: 1, 1: 1, 2: 1}
    assert Counter(labels[sample_evenly(labels, 6, rng)].tolist()) == {0: 3, 1: 2, 2: 1}
    assert sample_evenly(labels, 8, rng).all()
    with pytest.raises(InvalidInputError, match="sample"):
        sample_evenly(labels, 9, rng)


@given(sizes=st.lists(st.integers(1, 9), min_size=1, max_size=6), share=st.floats(0, 1), seed=st.integers(0, 99))
def test_no_cluster_gives_two_more_than_one_that_has_songs_left(sizes: list[int], share: float, seed: int) -> None:
    labels = np.repeat(np.arange(len(sizes)), sizes)
    n = max(1, round(share * len(labels)))
    drawn = np.bincount(labels[sample_evenly(labels, n, np.random.default_rng(seed))], minlength=len(sizes))
    assert drawn.sum() == n
    left = [count for count, size in zip(drawn.tolist(), sizes, strict=True) if count < size]
    assert all(drawn.max() - count <= 1 for count in left)


def test_other_seeds_draw_other_songs_equally_often() -> None:
    labels = np.repeat([0, 1, 2], 4)
    counts = sum(sample_evenly(labels, 4, np.random.default_rng(seed)).astype(int) for seed in range(600))
    # 4 of 12: each song 200 times; four deviations of a binomial count are 4 * sqrt(600 / 3 * 2 / 3) = 46
    assert np.abs(counts - 200).max() < 46


@pytest.fixture
def songs(tmp_path: Path) -> Path:
    """Six songs of two kinds of sound, in a folder with one more that holds none."""
    folder = tmp_path / "songs"
    (folder / "b").mkdir(parents=True)
    rng = np.random.default_rng(0)
    time = np.arange(2 * RATE) / RATE
    for number in range(3):
        tone = 0.4 * np.sin(2 * np.pi * (220 + 5 * number) * time)
        soundfile.write(folder / f"tone{number}.wav", tone, RATE)
        soundfile.write(folder / "b" / f"noise{number}.flac", 0.1 * rng.standard_normal(2 * RATE), RATE)
        (folder / f"tone{number}.txt").write_text("灯火微光\n船过小江\n", encoding="utf-8")
    (folder / "b" / "noise0.txt").write_text("今夜无眠\n风吹衣裳\n", encoding="utf-8")
    soundfile.write(folder / "mute.wav", np.zeros(RATE), RATE)
    return folder


def _run(songs: Path, out: Path, *more: str) -> int:
    command = ["prepare", str(songs), "--out", str(out), "--encoder", "audio-statistics", "--steps", "rhymes,clusters"]
    return main([*command, "--n-clusters", "2", *more])


def test_from_recordings_to_caimap(songs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("argon2")
    out, study = tmp_path / "out", str(tmp_path / "study")
    # songs without lyrics, and one without sound
    assert _run(songs, out, "--sample", "4", "--seed", "3", "--json") == 1
    rows = {row["song"]: row for row in json.loads(capsys.readouterr().out)}
    clusters = {name: row["cluster"] for name, row in rows.items() if row["cluster"] is not None}
    assert set(clusters) == {*(f"tone{n}" for n in range(3)), *(f"b/noise{n}" for n in range(3))}
    assert len({clusters[f"tone{n}"] for n in range(3)}) == len({clusters[f"b/noise{n}"] for n in range(3)}) == 1
    assert clusters["tone0"] != clusters["b/noise0"]
    sampled = [name for name, row in rows.items() if row["sampled"]]
    assert Counter(clusters[name] for name in sampled) == {0: 2, 1: 2}
    assert (rows["mute"]["sampled"], rows["mute"]["cluster_distance"]) == (None, None)
    assert "silent" in {one["step"]: one["error"] for one in rows["mute"]["failures"]}["embeddings"]

    read = read_songs(out / "songs.jsonl", songs, licence="CC0-1.0", prepared=read_prepared(out)).songs
    imported = {Path(song.audio).with_suffix("").as_posix(): song for song in read}
    assert set(imported) == {name for name in sampled if name in {"tone0", "tone1", "tone2", "b/noise0"}}
    assert {song.id for name, song in imported.items() if "/" not in name} == {
        name for name in imported if "/" not in name
    }
    for name, song in imported.items():
        assert song.cluster == clusters[name]
        assert (len(song.lines), len(song.rhymes)) == (2, 2)
        assert {"cluster", "lines", "rhymes"} <= {column for column, _ in song.automatic}
    assert main(["caimap", "init", study]) == 0
    table = ["caimap", "import", study, str(out / "songs.jsonl"), "--audio", str(songs)]
    assert main([*table, "--prepared", str(out), "--licence", "CC0-1.0"]) == 0
    assert f"{len(imported)} songs" in capsys.readouterr().out


@pytest.mark.slow
def test_neither_engine_nor_a_second_run_changes_a_cluster(songs: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    _run(songs, first, "--engine", "serial")
    _run(songs, second, "--engine", "local", "--workers", "2")
    read = [(out / "automatic" / "test-00000-of-00001.parquet").read_bytes() for out in (first, second)]
    assert read[0] == read[1]
    vectors = [(out / "embeddings" / "test-00000-of-00001.parquet").read_bytes() for out in (first, second)]
    assert vectors[0] == vectors[1]
    lines = len(list(read_records(first / "preparation").of("preparation")))
    _run(songs, first)
    again = len(list(read_records(first / "preparation").of("preparation")))
    assert again - lines == 4  # what failed is tried again: three without lyrics and the one without sound, twice
    assert (first / "automatic" / "test-00000-of-00001.parquet").read_bytes() == read[0]
    (first / "vectors" / "tone0.npy").write_bytes(b"damaged")
    _run(songs, first)
    assert (first / "embeddings" / "test-00000-of-00001.parquet").read_bytes() == vectors[0]


def test_embeddings_are_a_config_of_their_own(songs: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    _run(songs, out)
    loaded = datasets.load_dataset(str(out), "embeddings", split="test", cache_dir=str(tmp_path / "cache"))
    assert loaded.features["embedding"] == datasets.List(datasets.Value("float32"))
    rows = {row["song"]: row["embedding"] for row in loaded}
    assert "mute" not in rows
    np.testing.assert_array_equal(np.float32(rows["tone1"]), np.load(out / "vectors" / "tone1.npy"))
    about = json.loads((out / "clusters.json").read_text(encoding="utf-8"))["clusters"]
    assert (about["n_songs"], about["n_clusters"], about["encoder"]) == (6, 2, "audio-statistics")
    # a run without them leaves none of the last one's
    assert main(["prepare", str(songs), "--out", str(out), "--steps", "rhymes"]) == 1
    assert not (out / "embeddings" / "test-00000-of-00001.parquet").exists()
    assert not (out / "clusters.json").exists()


def test_what_goes_with_clusters_is_refused_without_them(songs: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="goes with the step clusters"):
        run_preparation(Settings(tmp_path / "out", songs=songs, sample=2))
    with pytest.raises(InvalidInputError, match="at most 7"):
        run_preparation(Settings(tmp_path / "out", songs=songs, encoder="audio-statistics", n_clusters=8))
    assert not (tmp_path / "out").exists()
    # seven files, but six that have an embedding
    done = run_preparation(
        Settings(tmp_path / "out", songs=songs, steps=["clusters"], encoder="audio-statistics", n_clusters=7)
    )
    assert ("clusters", done.failures[-1][1]) == done.failures[-1]
    assert "1..6" in done.failures[-1][1]
    assert all(row["cluster"] is None for row in done.rows)


def test_without_an_encoder_they_are_left_out_aloud(
    songs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["prepare", str(songs), "--out", str(tmp_path / "out")]) == 1
    told = capsys.readouterr().err
    assert "note: embeddings was left out: no --encoder is named" in told
    assert "note: clusters was left out" in told
    assert main(["prepare", str(songs), "--out", str(tmp_path / "out"), "--steps", "clusters"]) == 2


@pytest.mark.slow
def test_without_scikit_learn_they_are_left_out_unless_asked_for(
    songs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    done = run_preparation(Settings(tmp_path / "out", songs=songs, encoder="audio-statistics"))
    assert "needs the package 'sklearn'" in done.left_out["clusters"]
    assert (tmp_path / "out" / "embeddings").is_dir()
    with pytest.raises(MissingBackendError, match="sklearn"):
        run_preparation(Settings(tmp_path / "out", songs=songs, encoder="audio-statistics", n_clusters=2))
