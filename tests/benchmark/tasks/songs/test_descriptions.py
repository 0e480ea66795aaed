from __future__ import annotations

import copy
import json
import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from music_evals.annotations import GROUPS, SCORED
from music_evals.benchmark.contents import caveats
from music_evals.benchmark.tables import markdown_report, text_report
from music_evals.benchmark.tasks.songs import descriptions
from music_evals.benchmark.tasks.songs.descriptions import DESCRIPTIONS, Settings
from music_evals.benchmark.tasks.songs.songs import load_songs
from music_evals.benchmark.tasks.songs.text_controls import ANOTHER_SONG, COMMON_TAGS, OWN_TAGS, RANDOM_TAGS
from music_evals.errors import (
    CorruptRecordsError,
    InvalidInputError,
    InvalidTagsError,
    ModelUnavailableError,
    NoDataError,
    PairCountError,
    UnknownNameError,
    UnreadableFileError,
)
from music_evals.metrics.catalogue import DESCRIPTION_SCORES
from music_evals.pipelines.descriptions import evaluate_descriptions
from music_evals.protocols import TAGGERS

Tags = dict[str, dict[str, list[str]]]
QUICK: dict[str, Any] = {"encoder": "char-ngrams", "n_resamples": 20, "report": False}


@pytest.fixture
def settings(songs_file: Path, tmp_path: Path) -> dict[str, Any]:
    return {"out": tmp_path / "out", "dataset": str(songs_file), **QUICK}


@pytest.fixture
def tags(songs_file: Path) -> dict[str, Tags]:
    """Song -> its own tags."""
    songs = load_songs(str(songs_file))
    return {
        song.id: {group: {name: list(found) for name, found in named.items()} for group, named in song.tags.items()}
        for song in songs
    }


def predictions(path: Path, tags: dict[str, Tags], **fields: Any) -> str:
    rows = [{"id": item, **described, **fields} for item, described in tags.items()]
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def test_the_controls_alone(settings: dict[str, Any], tags: dict[str, Tags], read_page: Any) -> None:
    outcome = DESCRIPTIONS.run(Settings(**settings | {"report": True}))
    results = json.loads(outcome.files["results"].read_text())
    assert results == outcome.results
    assert list(results["systems"]) == [OWN_TAGS, ANOTHER_SONG, COMMON_TAGS, RANDOM_TAGS]
    assert results["encoder"]["name"] == "char-ngrams"
    assert list(results["scales"]) == list(DESCRIPTION_SCORES)
    own = list(tags.values())
    others = {OWN_TAGS: own, ANOTHER_SONG: [own[1], own[2], own[0], own[0]]}  # the last two songs are one group
    for control, made in others.items():
        expected = evaluate_descriptions(own, made, encoder="char-ngrams", groups=["1", "2", "3", "3"])
        for name in DESCRIPTION_SCORES:
            cell = results["scores"][control][name]
            assert cell["value"] == pytest.approx(expected[name])
            ends = [math.nan if cell[end] is None else cell[end] for end in ("low", "high")]
            assert ends == pytest.approx(expected[f"{name}_ci"], nan_ok=True)
    page = outcome.files["report"].read_text()
    text = " ".join(read_page(page).text)
    assert "http" not in page
    for shown in ("char-ngrams", "MERT 95M (published)", "not confirmed", "Professional, 2 of 2", "Cult. & Reg."):
        assert shown in text, shown


def test_systems_beside_the_published_averages(settings: dict[str, Any], tags: dict[str, Tags], tmp_path: Path) -> None:
    turned = dict(zip(tags, [*list(tags.values())[1:], tags["s1"]], strict=True))
    files = [f"same={predictions(tmp_path / 'a.jsonl', tags)}", f"turned={predictions(tmp_path / 'b.jsonl', turned)}"]
    results = DESCRIPTIONS.run(Settings(**settings, predictions=files, normalize_by_self=True)).results
    assert results["best"]["tag_semantic_similarity"] == ["same"]
    assert results["scores"]["same"]["amateur/song_purpose"]["value"] == pytest.approx(1)
    assert results["scores"]["same"] == results["scores"][OWN_TAGS]
    for shown in (text_report(results, published=True), markdown_report(results)):
        assert "Average, published" in shown
        assert "Professional, 1 of 2, published" not in shown
        assert "aggregation mean, divided by self-similarity, encoder char-ngrams" in shown
        assert "row labels of table 2 look permuted" in shown


@pytest.mark.slow
def test_a_system_for_one_group_has_no_score_over_both(
    settings: dict[str, Any], tags: dict[str, Tags], tmp_path: Path
) -> None:
    half = {item: {"amateur": described["amateur"]} for item, described in tags.items()}
    path = predictions(tmp_path / "half.jsonl", half)
    alone = DESCRIPTIONS.run(Settings(**settings, predictions=[path])).results
    assert (
        list(alone["scales"]) == alone["metrics"] == [name for name in DESCRIPTION_SCORES if name.startswith("amateur")]
    )
    assert alone["undefined"] == []
    assert "Professional" not in text_report(alone)
    # the records hold all scores, so that a system for the other group can be added
    other = {item: {"professional": described["professional"]} for item, described in tags.items()}
    added = [path, predictions(tmp_path / "other.jsonl", other)]
    grown = DESCRIPTIONS.run(Settings(**settings, predictions=added)).results
    assert grown["scores"]["half"]["amateur_average"] == alone["scores"]["half"]["amateur_average"]
    assert grown["scores"]["other"]["professional_average"]["n_defined"] == 4
    assert "tag_semantic_similarity" not in grown["scales"]
    both = [path, predictions(tmp_path / "whole.jsonl", tags)]
    results = DESCRIPTIONS.run(Settings(**settings | {"out": tmp_path / "both"}, predictions=both)).results
    cells = results["scores"]["half"]
    assert cells["amateur_average"]["n_defined"] == 4
    assert (cells["tag_semantic_similarity"]["n_defined"], cells["professional_average"]["n_defined"]) == (0, 0)
    assert cells["tag_semantic_similarity"]["n_failed"] == 0
    reasons = {row["metric"]: row["reason"] for row in results["undefined"] if row["item"] == "s1"}
    silent = "the system does not speak for the professional group"
    assert reasons["tag_semantic_similarity"] == reasons["professional/song_purpose"] == silent
    assert "half has no Both groups, Professional" in " ".join(caveats(results))
    assert results["best"]["tag_semantic_similarity"] == ["whole"]


@pytest.mark.slow
def test_dimensions_without_tags(settings: dict[str, Any], tags: dict[str, Tags], tmp_path: Path) -> None:
    gaps = copy.deepcopy(tags)
    gaps["s1"]["amateur"]["song_purpose"] = []
    del gaps["s2"]["amateur"]["song_purpose"]
    settings["predictions"] = [predictions(tmp_path / "gaps.jsonl", gaps)]
    results = DESCRIPTIONS.run(Settings(**settings)).results
    assert results["scores"]["gaps"]["amateur/song_purpose"]["n_defined"] == 2
    assert results["scores"]["gaps"]["amateur_average"]["n_defined"] == 2
    reasons = {row["metric"]: row["reason"] for row in results["undefined"]}
    assert reasons["amateur/song_purpose"] == "no generated tags"
    assert reasons["amateur_average"] == "no generated tags in 1 of 10 dimensions; `empty='zero'` counts them as 0"
    zero = DESCRIPTIONS.run(Settings(**settings | {"out": tmp_path / "zero"}, empty="zero")).results
    assert zero["scores"]["gaps"]["amateur/song_purpose"]["n_defined"] == 4
    strict = DESCRIPTIONS.run(Settings(**settings | {"out": tmp_path / "strict"}, empty="raise")).results
    assert [(row["item"], row["metric"]) for row in strict["failures"]] == [("s1", None), ("s2", None)]
    assert strict["failures"][0]["error"].startswith("InvalidTagsError: ")


@pytest.mark.parametrize("empty", ["nan", "zero"])
def test_with_gaps_the_library_says_the_same(
    settings: dict[str, Any], songs_file: Path, tags: dict[str, Tags], tmp_path: Path, empty: str
) -> None:
    rows = [json.loads(line) for line in songs_file.read_text(encoding="utf-8").splitlines()]
    rows[0]["professional"]["dimensions"]["song_purpose"]["tags"] = []
    rows[1]["amateur"]["dimensions"] = {}
    dataset = tmp_path / "gaps.songs.jsonl"
    dataset.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    gaps = copy.deepcopy(tags)
    del gaps["s1"]["amateur"]["song_purpose"]
    gaps["s2"]["professional"]["tempo_rhythm"] = []
    del gaps["s3"]["amateur"]
    settings |= {"dataset": str(dataset), "predictions": [predictions(tmp_path / "mine.jsonl", gaps)]}
    results = DESCRIPTIONS.run(Settings(**settings, empty=empty)).results
    own = [song.tags for song in load_songs(str(dataset))]
    expected = evaluate_descriptions(
        own, list(gaps.values()), encoder="char-ngrams", groups=["1", "2", "3", "3"], empty=empty
    )
    for name in DESCRIPTION_SCORES:
        cell = results["scores"]["mine"][name]
        assert cell["value"] == pytest.approx(expected[name]), name
        assert cell["n_defined"] == expected[f"{name}_n_defined"]
    remarks = {row["item"]: row["notes"] for row in results["notes"]}
    assert remarks["s1"][0].startswith(
        "professional: 1 of 10 dimensions are in no average, as the reference has no tags"
    )


def test_leaving_dimensions_out_does_not_win(settings: dict[str, Any], tags: dict[str, Tags], tmp_path: Path) -> None:
    turned = dict(zip(tags, [*list(tags.values())[1:], tags["s1"]], strict=True))
    easy = {
        item: {group: {"audio_effects": named["audio_effects"]} for group, named in described.items()}
        for item, described in tags.items()
    }
    files = [predictions(tmp_path / "whole.jsonl", turned), predictions(tmp_path / "easy.jsonl", easy)]
    outcome = DESCRIPTIONS.run(Settings(**settings, predictions=files))
    assert outcome.results["best"]["tag_semantic_similarity"] == ["whole"]
    assert outcome.results["scores"]["easy"]["professional_average"]["value"] is None
    reason = ": no generated tags in 9 of 10 dimensions; `empty='zero'` counts them as 0 (4 songs)"
    assert any(note.startswith("easy has no ") and reason in note for note in outcome.notes)


def test_each_tag_is_encoded_once(
    settings: dict[str, Any], tags: dict[str, Tags], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def counting(*arguments: Any, **options: Any) -> Any:
        encoder = load(*arguments, **options)
        encode = encoder.encode
        encoder.encode = lambda texts: (asked.extend(texts), encode(texts))[1]
        return encoder

    load = descriptions.load_encoder
    monkeypatch.setattr(descriptions, "load_encoder", counting)
    settings["predictions"] = [predictions(tmp_path / "mine.jsonl", tags)]
    first = DESCRIPTIONS.run(Settings(**settings)).results
    scored = {tag for song in tags.values() for group in GROUPS for name in SCORED[group] for tag in song[group][name]}
    assert sorted(asked) == sorted(scored)
    asked.clear()
    assert DESCRIPTIONS.run(Settings(**settings)).results == first  # all is there already
    assert asked == []


@pytest.mark.slow
def test_a_cache_changes_nothing(settings: dict[str, Any], tmp_path: Path) -> None:
    first = DESCRIPTIONS.run(Settings(**settings)).results
    cached = settings | {"out": tmp_path / "cached", "cache": tmp_path / "cache"}
    assert DESCRIPTIONS.run(Settings(**cached)).results == first
    assert any((tmp_path / "cache").rglob("*"))
    cached["overwrite"] = True
    assert DESCRIPTIONS.run(Settings(**cached)).results == first


def test_another_aggregation_is_another_run(settings: dict[str, Any]) -> None:
    DESCRIPTIONS.run(Settings(**settings))
    with pytest.raises(CorruptRecordsError, match="variant was 'mean' and is now 'f1'"):
        DESCRIPTIONS.run(Settings(**settings, aggregation="f1"))


@pytest.mark.parametrize(
    ("row", "error", "message"),
    [
        ({"id": "s1"}, InvalidTagsError, "neither professional nor amateur"),
        ({"id": 1, "amateur": {}}, InvalidInputError, r'expected {"id": text'),
        ({"id": "s1", "amateur": ["x"]}, InvalidTagsError, "amateur must be"),
        ({"id": "s1", "amateur": {"song_purpose": "x"}}, InvalidTagsError, "must be a list of strings"),
        ({"id": "s1", "amateur": {"song_purpose": [1]}}, InvalidTagsError, "must be strings"),
        ({"id": "s1", "amateur": {"song_porpose": []}}, UnknownNameError, "did you mean song_purpose"),
        ({"id": "s9", "amateur": {}}, PairCountError, "1 ids are not songs"),
        ({"id": "s1", "amateur": {}, "seed": -1}, InvalidInputError, "a seed must be"),
        ({"id": "s1", "amateur": {}, "system": OWN_TAGS}, InvalidInputError, "none of them own tags"),
        ([], UnreadableFileError, "line 1 holds a list"),
    ],
)
def test_predictions_that_are_none(
    settings: dict[str, Any], tmp_path: Path, row: Any, error: type[Exception], message: str
) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(json.dumps(row) + "\n")
    with pytest.raises(error, match=message):
        DESCRIPTIONS.run(Settings(**settings, predictions=[str(path)]))
    assert not settings["out"].exists()


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"dataset": None}, InvalidInputError, "give `dataset`"),
        ({"models": ["x"]}, InvalidInputError, "`models` and `audio` go together"),
        ({"audio": "x"}, InvalidInputError, "`models` and `audio` go together"),
        ({"threshold": 0.5}, InvalidInputError, "`threshold` goes with `models`"),
        ({"aggregation": "means"}, UnknownNameError, "did you mean mean"),
        ({"empty": "nil"}, UnknownNameError, "nil"),
        ({"encoder": "nowhere/nothing"}, ModelUnavailableError, "nowhere/nothing"),
        ({"encoder_revision": "x"}, InvalidInputError, "no revisions"),
        ({"controls": False}, NoDataError, "nothing to score"),
        ({"predictions": ["/nowhere.jsonl"]}, NoDataError, "no such file"),
    ],
)
def test_settings_that_make_no_sense(
    settings: dict[str, Any], change: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        DESCRIPTIONS.run(Settings(**settings | change))
    assert not settings["out"].exists()


FAKE_TAGGER = '''
from pathlib import Path

from music_evals.annotations import DIMENSIONS
from music_evals.errors import UnreadableFileError


class Fake:
    """Reads its tags out of the file: a recording that is a text."""

    name = "fake"
    groups = ("amateur",)
    heard = []
    commit = "1"

    @classmethod
    def from_pretrained(cls, folder, *, threshold=None):
        made = cls()
        made.threshold = threshold
        return made

    def describe(self):
        return {"encoder": self.commit}

    def tag(self, path):
        text = Path(path).read_text()
        self.heard.append(Path(path).stem)
        if text == "noise":
            raise UnreadableFileError(f"{path}: it is noise")
        return {"amateur": {name: [text] for name in DIMENSIONS["amateur"]}}
'''


@pytest.fixture
def tagger(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A model folder whose `model_type` is registered for this test."""
    folder = tmp_path_factory.mktemp("plugin")
    (folder / "fake_tagger.py").write_text(FAKE_TAGGER)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setitem(TAGGERS, "fake", "fake_tagger:Fake")
    model = folder / "fake_model"
    model.mkdir()
    (model / "config.json").write_text('{"model_type": "fake"}')
    (model / "model.safetensors").write_bytes(b"weights")
    yield model
    sys.modules.pop("fake_tagger", None)


@pytest.mark.slow
def test_a_tagger_hears_each_recording_once(
    settings: dict[str, Any], tagger: Path, write_files: Callable[[str, dict[str, str]], Path]
) -> None:
    audio = write_files("audio", {"s1.wav": "抒情", "more/s2.flac": "noise", "s3.mp3": "安静", "other.wav": "x"})
    settings |= {"audio": audio, "models": [str(tagger)], "limit": 3}
    seen: list[tuple[int, int, str]] = []
    results = DESCRIPTIONS.run(Settings(**settings), progress=lambda *told: seen.append(told)).results
    from fake_tagger import Fake

    assert Fake.heard == ["s1", "s2", "s3"]
    assert (3, 3, "s3") in seen
    assert next(iter(results["scales"])) == "amateur_average"
    assert results["scores"]["fake"]["amateur_average"]["n_defined"] == 2
    assert [(row["item"], row["error"].partition(":")[0]) for row in results["failures"]] == [
        ("s2", "UnreadableFileError")
    ]
    (audio / "more" / "s2.flac").write_text("明亮")
    again = DESCRIPTIONS.run(Settings(**settings)).results
    assert Fake.heard == ["s1", "s2", "s3", "s2"]  # only what failed is heard again
    assert again["failures"] == []
    Fake.commit = "2"  # another encoder hears everything again
    DESCRIPTIONS.run(Settings(**settings))
    assert Fake.heard[4:] == ["s1", "s2", "s3"]
    Fake.suffixes = (".txt",)  # one that reads files made of recordings
    write_files("audio", {"s1.txt": "慢", "s2.txt": "快", "s3.txt": "noise"})
    DESCRIPTIONS.run(Settings(**settings))
    assert Fake.heard[7:] == ["s1", "s2", "s3"]  # others than the recordings beside them
    (audio / "s1.txt").write_text("很慢")
    DESCRIPTIONS.run(Settings(**settings))
    assert Fake.heard[10:] == ["s1", "s3"]
    del Fake.suffixes
    named = settings | {"models": [f"mine={tagger}"], "limit": None, "threshold": 0.25, "overwrite": True}
    results = DESCRIPTIONS.run(Settings(**named)).results
    assert [row["item"] for row in results["failures"]] == ["s4"]
    assert "no recording called s4.wav" in results["failures"][0]["error"]
    assert next(iter(results["systems"])) == "mine"


def test_old_results_are_gone_before_anything_is_heard(
    settings: dict[str, Any], tagger: Path, write_files: Callable[[str, dict[str, str]], Path]
) -> None:
    audio = write_files("audio", {f"s{number}.wav": "x" for number in range(1, 5)})
    settings |= {"audio": audio, "models": [str(tagger)]}
    files = DESCRIPTIONS.run(Settings(**settings)).files
    assert files["results"].exists()

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        DESCRIPTIONS.run(Settings(**settings, overwrite=True), progress=stop)
    assert not files["results"].exists()


def test_taggers_and_recordings_that_are_not_there(
    settings: dict[str, Any], tagger: Path, tmp_path: Path, write_files: Callable[[str, dict[str, str]], Path]
) -> None:
    audio = write_files("audio", {"s1.wav": "x"})
    twice = write_files("twice", {"s1.wav": "x", "y/s1.flac": "x"})
    other = write_files("other", {"song.wav": "x"})
    model, empty = str(tagger), tmp_path / "model"
    empty.mkdir()
    for models, folder, error, message in (
        ([model], tmp_path / "none", NoDataError, "no such folder"),
        ([model], empty, NoDataError, "no recording is called by the id of a song"),
        ([model], other, NoDataError, "no recording is called by the id of a song"),
        ([model], twice, PairCountError, "are both recordings of 's1'"),
        ([str(empty)], audio, NoDataError, "holds no config.json"),
        (["no_such_tagger"], audio, UnknownNameError, "unknown model 'no_such_tagger'"),
        ([model, model], audio, InvalidInputError, "systems need different names"),
    ):
        with pytest.raises(error, match=message):
            DESCRIPTIONS.run(Settings(**settings, models=models, audio=folder))
    (empty / "config.json").write_text('{"model_type": "fakes"}')
    with pytest.raises(UnknownNameError, match="did you mean fake"):
        DESCRIPTIONS.run(Settings(**settings, models=[str(empty)], audio=audio))
