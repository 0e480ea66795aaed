"""Inputs of every task: texts, paths and URLs mean the same, and give equal scores."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest

from music_evals import run
from music_evals.benchmark.inputs import manifest_rows, named_path
from music_evals.benchmark.tasks.inpainting.items import load_items
from music_evals.benchmark.tasks.inpainting.predictions import load_predictions
from music_evals.benchmark.tasks.preservation.task import PRESERVATION
from music_evals.benchmark.tasks.preservation.task import Settings as PairSettings
from music_evals.benchmark.tasks.songs.songs import read_songs
from music_evals.errors import InvalidInputError, ModelUnavailableError, NoDataError, UnreadableFileError
from music_evals.locations import Remote, location

Write = Callable[[str, dict[str, str]], Path]
PATTERN = "(verse1)\nccccR\nccccR\nccccc\nccccR"
POEM = "(verse1)\n床前明月光\n疑是地上霜\n举头望明月\n低头思故乡"
QUICK: dict[str, Any] = {"n_resamples": 20, "report": False}


@pytest.fixture
def shelf() -> Iterator[Callable[[str, str | bytes], str]]:
    """Write a file into memory, and return its URL."""
    system = fsspec.filesystem("memory")

    def write(name: str, content: str | bytes) -> str:
        system.pipe(f"/shelf/{name}", content.encode() if isinstance(content, str) else content)
        return f"memory://shelf/{name}"

    yield write
    system.rm("/shelf", recursive=True)


def lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


class TestNames:
    def test_a_url_is_never_cut_and_a_name_before_one_is(self, shelf):
        shelf("a=b/x.wav", "1")
        for text, expected in {
            "mine=https://host/a=b/c/x.wav": ("mine", "https://host/a=b/c/x.wav"),
            "memory://shelf/a=b": ("a=b", "memory://shelf/a=b"),
            "memory://shelf/a=b/x.wav": ("x", "memory://shelf/a=b/x.wav"),
            "a=b=memory://shelf/x": ("a", "b=memory://shelf/x"),
        }.items():
            name, place = named_path(text, "estimates")
            assert (name, str(place)) == (expected[0], str(location(expected[1])))
        for wrong in ("=https://host/a", "mine=https://me:SECRET@host/a", "https://host/a?SECRET=b"):
            with pytest.raises(InvalidInputError) as told:
                named_path(wrong, "estimates")
            assert "SECRET" not in str(told.value)

    def test_a_path_is_never_cut(self, tmp_path):
        assert named_path(Path("a=b/c.d"), "estimates") == ("c.d", Path("a=b/c.d"))
        (tmp_path / "x.wav").touch()
        assert named_path(tmp_path / "x.wav", "estimates") == ("x", tmp_path / "x.wav")


class TestPathsInLists:
    def test_preservation(self, write_files, tmp_path, stub_judge):
        folders = [write_files(name, {"a.wav": "0.1", "b.wav": "0.2"}) for name in ("originals", "edits", "others")]
        settings = PairSettings(
            tmp_path / "out", reference=folders[0], estimates=folders[1:], metrics="delta_bpm", engine="serial", **QUICK
        )
        results = PRESERVATION.run(settings, scorer=stub_judge(("delta_bpm",))).results
        assert {"edits", "others"} < {*results["systems"]}
        assert results["failures"] == []

    def test_lyrics(self, write_files, tmp_path):
        folder = write_files("texts", {"p/a.txt": PATTERN, "one/a.txt": POEM})
        results = run("lyrics", tmp_path / "out", reference=folder / "p", generated=[folder / "one"], **QUICK).results
        assert results["failures"] == []
        assert "one" in results["systems"]

    @pytest.mark.parametrize(("task", "more"), [("lyrics", {}), ("descriptions", {"encoder": "char-ngrams"})])
    def test_predictions(self, tmp_path, songs_file, song_rows, task, more):
        tags = {"lyric_themes": ["抒情"]}
        path = tmp_path / "mine.jsonl"
        path.write_text(lines([{"id": row["id"], "text": POEM, "professional": tags} for row in song_rows]))
        settings = {"dataset": songs_file, "predictions": [path], **more, **QUICK}
        assert "mine" in run(task, tmp_path / "out", **settings).results["systems"]

    @pytest.mark.slow
    def test_models(self, settings, fake_model):
        results = run("inpainting", models=[fake_model], baselines="none", report=False, **settings).results
        assert "fake" in results["systems"]

    @pytest.mark.parametrize(
        ("task", "more"), [("descriptions", {"audio": ".", "encoder": "char-ngrams"}), ("lyric_writing", {})]
    )
    def test_models_that_are_not_there(self, songs_file, tmp_path, task, more):
        with pytest.raises(ModelUnavailableError, match="nobody/no-model"):
            run(task, tmp_path / "out", dataset=songs_file, models=[Path("nobody/no-model")], **more)


class TestUrls:
    def test_texts(self, shelf, write_files, tmp_path):
        folder = write_files("texts", {"p/a.txt": PATTERN + "\r\n", "one/a.txt": POEM, "one/deep/b.txt": POEM})
        for path in folder.rglob("*.txt"):
            shelf(str(path.relative_to(folder)), path.read_bytes())
        here = run("lyrics", tmp_path / "here", reference=folder / "p", generated=[str(folder / "one")], **QUICK)
        there = run(
            "lyrics", tmp_path / "there", reference="memory://shelf/p", generated=["one=memory://shelf/one"], **QUICK
        )
        assert there.results["scores"] == here.results["scores"]
        assert there.results["failures"] == here.results["failures"]
        assert [row["item"] for row in there.results["failures"]] == ["deep/b"]

    def test_a_manifest_of_texts_reads_its_folder_only(self, shelf, tmp_path):
        shelf("m/a.txt", POEM)
        shelf("secret.txt", POEM)
        cells = ["a.txt", "memory://shelf/m/a.txt", "../secret.txt", "memory://shelf/m/../secret.txt",
                 "memory://shelf/secret.txt", "file:///etc/hostname", "https://host/a.txt"]  # fmt: skip
        rows = [{"id": str(place), "generated_file": cell, "reference": PATTERN} for place, cell in enumerate(cells)]
        there = run("lyrics", tmp_path / "there", manifest=shelf("m/list.jsonl", lines(rows)), **QUICK).results
        assert {row["item"]: row["error"].partition(":")[0] for row in there["failures"]} == dict.fromkeys(
            "23456", "InvalidInputError"
        )
        here = tmp_path / "list.jsonl"
        here.write_text(lines(rows[1:2]))
        found = run("lyrics", tmp_path / "here", manifest=here, **QUICK).results
        assert "does not lie below the manifest's folder" in found["failures"][0]["error"]

    def test_songs_and_predictions(self, shelf, songs_file, song_rows, tmp_path):
        rows = [{"id": row["id"], "text": POEM} for row in song_rows]
        (tmp_path / "mine.jsonl").write_text(lines(rows))
        dataset, predictions = shelf("songs.jsonl", songs_file.read_bytes()), shelf("mine.jsonl", lines(rows))
        assert read_songs(dataset).songs == read_songs(str(songs_file)).songs
        here = run("lyrics", tmp_path / "here", dataset=songs_file, predictions=[tmp_path / "mine.jsonl"], **QUICK)
        there = run("lyrics", tmp_path / "there", dataset=dataset, predictions=[predictions], **QUICK)
        assert there.results["scores"] == here.results["scores"]
        with pytest.raises(NoDataError, match=r"memory://shelf/none\.jsonl: no such file"):
            read_songs("memory://shelf/none.jsonl")

    def test_predictions_of_middles(self, shelf, tiny_dataset, tmp_path):
        items = load_items(str(tiny_dataset), "musib", "validation")
        text = lines([{"item_id": item, "middle": [60] * 96} for item in items.item_ids])
        (tmp_path / "mine.jsonl").write_text(text)
        (here,), (there,) = (
            load_predictions(place, items) for place in (tmp_path / "mine.jsonl", shelf("mine.jsonl", text))
        )
        assert (there.name, there.content_hash) == (here.name, here.content_hash)

    def test_a_manifest_is_read_as_from_a_disk(self, shelf, tmp_path):
        for name, content in {"a.csv": "\ufeffx,y\r\n1,2\r\n", "b.jsonl": '{"x": "1"}\n', "c.JSONL": "{"}.items():
            path = tmp_path / name
            path.write_bytes(content.encode())
            place = Remote(shelf(name, content))
            if content == "{":
                with pytest.raises(UnreadableFileError, match=r"c\.JSONL, line 1 is not JSON"):
                    manifest_rows(place)
            else:
                assert manifest_rows(place) == manifest_rows(path)

    @pytest.mark.parametrize(
        ("task", "change", "setting"),
        [
            ("lyrics", {"dataset": "x", "out": "s3://bucket/out"}, "out"),
            ("inpainting", {"pairs": "s3://bucket/pairs"}, "pairs"),
            ("descriptions", {"dataset": "x", "models": ["m"], "audio": "s3://bucket/audio"}, "audio"),
            ("descriptions", {"dataset": "x", "cache": "s3://bucket/cache"}, "cache"),
            ("discrepancy", {"dataset": "x", "cache": "s3://bucket/cache"}, "cache"),
        ],
    )
    def test_what_must_be_a_path(self, tmp_path, task, change, setting):
        with pytest.raises(InvalidInputError, match=f"`{setting}` must be a path, on this machine"):
            run(task, **{"out": tmp_path / "out", **change})
