from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from music_evals.annotations import DIMENSIONS, SCORED
from music_evals.errors import (
    BackendError,
    InvalidInputError,
    InvalidTagsError,
    ModelUnavailableError,
    NoDataError,
    PairCountError,
    UnknownNameError,
)
from music_evals.lyrics.embeddings import CharNgrams
from music_evals.metrics.catalogue import DESCRIPTION_SCORES
from music_evals.pipelines.descriptions import (
    description_of_row,
    evaluate_descriptions,
    score_description,
    tag_semantic_similarity,
    tag_similarity_table,
)

DEV = Path(__file__).resolve().parents[2] / "../shared/data/muchin/dev.jsonl"
WORDS = ["悲伤", "伤感", "快乐", "钢琴", "吉他", "慢速", "快速", "年轻人", "KTV", "华语 "]

Description = dict[str, dict[str, list[str]]]


class Counting(CharNgrams):
    def __init__(self) -> None:
        self.asked: list[str] = []

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        self.asked += texts
        return super().encode(texts)


def described(seed: int) -> Description:
    rng = np.random.default_rng(seed)
    return {
        group: {name: rng.choice(WORDS, rng.integers(1, 6)).tolist() for name in DIMENSIONS[group]}
        for group in DIMENSIONS
    }


def plain_similarity(generated: Sequence[str], reference: Sequence[str]) -> tuple[float, float]:
    """Mean and deviation over all pairs as the released code has them: every pair by itself, in single precision."""
    encoder = CharNgrams()
    cosines = [
        (encoder.encode([one]) @ encoder.encode([other]).T)[0][0] for one in generated for other in reference
    ]  # fmt: skip
    return float(np.mean(np.array(cosines))), float(np.std(np.array(cosines)))


GENERATED, REFERENCES = [described(seed) for seed in range(4)], [described(seed) for seed in range(10, 14)]


def test_one_pair_of_lists() -> None:
    found = tag_semantic_similarity(["伤感", "慢速"], ["悲伤", "慢速", "慢速"], encoder="char-ngrams")
    mean, std = plain_similarity(["悲伤", "慢速", "慢速"], ["伤感", "慢速"])
    assert (found.value, found.std) == (pytest.approx(mean, abs=1e-6), pytest.approx(std, abs=1e-6))
    assert (found.n_generated, found.n_reference) == (3, 2)
    assert tag_semantic_similarity(np.array(["悲伤"]), ("悲伤",), encoder=CharNgrams()).value == pytest.approx(1)  # type: ignore[arg-type]
    normalized = tag_semantic_similarity(
        ["悲伤", "慢速"], ["悲伤", "慢速"], encoder="char-ngrams", normalize_by_self=True
    )
    assert normalized.value == 1


def test_tags_are_scored_as_they_are_written() -> None:
    lengths = {"慢": [1.0, 0.0], "慢 ": [0.0, 1.0]}
    found = tag_semantic_similarity(["慢 "], ["慢"], encoder=lambda texts: [lengths[text] for text in texts])
    assert found.value == 0


def test_parity_with_a_plain_loop() -> None:
    for group, names in SCORED.items():
        table = tag_similarity_table(REFERENCES, GENERATED, group, encoder="char-ngrams")
        expected = [
            [plain_similarity(one[group][name], other[group][name]) for name in names]
            for one, other in zip(GENERATED, REFERENCES, strict=True)
        ]
        assert table.shape == (4, 10, 2)
        np.testing.assert_allclose(table, expected, atol=1e-6)


def test_evaluation_is_the_mean_of_rows_of_means() -> None:
    encoder = Counting()
    result = evaluate_descriptions(REFERENCES, GENERATED, encoder=encoder, per_item=True)
    assert sorted(encoder.asked) == sorted(set(encoder.asked))  # each once, over all songs
    averages = []
    for group, names in SCORED.items():
        rows = tag_similarity_table(REFERENCES, GENERATED, group, encoder="char-ngrams").mean(axis=0)
        for name, (mean, std) in zip(names, rows, strict=True):
            assert result[f"{group}/{name}"] == pytest.approx(mean, abs=1e-6)
            assert result[f"{group}/{name}_std"] == pytest.approx(std, abs=1e-6)
        averages.append(rows[:, 0].mean())
        assert result[f"{group}_average"] == pytest.approx(averages[-1], abs=1e-6)
    assert result["tag_semantic_similarity"] == pytest.approx(np.mean(averages), abs=1e-6)
    assert set(DESCRIPTION_SCORES) <= set(result)
    low, high = result["tag_semantic_similarity_ci"]
    assert low < result["tag_semantic_similarity"] < high
    assert (result["tag_semantic_similarity_n"], result["tag_semantic_similarity_n_defined"]) == (4, 4)
    assert result["n_dimensions"] == {"professional": 10, "amateur": 10}
    assert result["encoder"] == {"name": "char-ngrams", "revision": "1"}
    songs = result["per_item"]
    assert "id" not in songs[0]
    for name in DESCRIPTION_SCORES:
        assert np.mean([song[name] for song in songs]) == pytest.approx(result[name], abs=1e-9)


def test_songs_one_by_one_and_together_agree() -> None:
    generated, references = dict(zip("abcd", GENERATED, strict=True)), dict(zip("dcba", REFERENCES[::-1], strict=True))
    together = evaluate_descriptions(references, generated, encoder="char-ngrams", per_item=True)
    songs = {song["id"]: song for song in together["per_item"]}
    assert list(songs) == list("dcba")
    for place, item in enumerate("abcd"):
        alone = score_description(REFERENCES[place], GENERATED[place], encoder="char-ngrams")
        assert alone.values == pytest.approx({name: songs[item][name] for name in DESCRIPTION_SCORES}, abs=1e-6)
        assert alone.n_dimensions == {"professional": 10, "amateur": 10}


def test_perfect_and_options() -> None:
    perfect = evaluate_descriptions(REFERENCES, REFERENCES, encoder="char-ngrams", normalize_by_self=True)
    assert perfect["tag_semantic_similarity"] == 1
    assert np.isnan(perfect["tag_semantic_similarity_ci"]).all()  # all songs alike: nobody knows how far the next is
    scores = [
        evaluate_descriptions(REFERENCES, REFERENCES, encoder="char-ngrams", aggregation=name)
        for name in ("mean", "best_match", "f1")
    ]
    assert scores[0]["amateur_average"] < 0.9
    for result in scores[1:]:
        assert result["amateur_average"] == pytest.approx(1, abs=1e-6)


def test_nobody_gains_by_silence() -> None:
    silent = copy.deepcopy(GENERATED)
    silent[0]["professional"] = {"audio_effects": REFERENCES[0]["professional"]["audio_effects"]}  # the easy one alone
    del silent[1]["amateur"]["song_purpose"]
    result = evaluate_descriptions(REFERENCES, silent, encoder="char-ngrams", per_item=True)
    first, second, third, _ = result["per_item"]
    reason = "no generated tags in 9 of 10 dimensions; `empty='zero'` counts them as 0"
    assert np.isnan(first["professional_average"])
    assert first["reasons"]["professional_average"] == reason
    assert first["reasons"]["tag_semantic_similarity"] == f"professional: {reason}"
    assert first["reasons"]["professional/song_purpose"] == "no generated tags"
    assert not np.isnan(first["amateur_average"])
    assert np.isnan(second["tag_semantic_similarity"])
    assert third["reasons"] == {}
    assert (result["professional_average_n_defined"], result["tag_semantic_similarity_n_defined"]) == (3, 2)
    assert result["n_dimensions"] == {"professional": 10, "amateur": 10}
    zero = evaluate_descriptions(REFERENCES, silent, encoder="char-ngrams", empty="zero", per_item=True)
    song = zero["per_item"][0]
    assert song["professional_average"] == pytest.approx(song["professional/audio_effects"] / 10)
    assert zero["professional_average_n_defined"] == 4
    with pytest.raises(InvalidTagsError, match=r"song 0, professional/.*: the generated list is empty"):
        evaluate_descriptions(REFERENCES, silent, encoder="char-ngrams", empty="raise")


def test_what_the_reference_leaves_empty_is_left_out_and_counted() -> None:
    references = copy.deepcopy(REFERENCES)
    references[0]["professional"]["song_purpose"] = []
    references[0]["professional"]["tempo_rhythm"] = []
    references[1]["amateur"] = {}
    for empty in ("nan", "zero"):
        result = evaluate_descriptions(references, GENERATED, encoder="char-ngrams", per_item=True, empty=empty)
        first, second = result["per_item"][:2]
        told = [name for name in SCORED["professional"] if name not in {"song_purpose", "tempo_rhythm"}]
        own = [first[f"professional/{name}"] for name in told]
        assert first["professional_average"] == pytest.approx(np.mean(own), abs=1e-12)
        assert second["tag_semantic_similarity"] == second["professional_average"]  # who was not asked tells nothing
        assert second["reasons"]["amateur_average"] == "no reference tags in any amateur dimension"
        assert result["n_without_reference"] == {"professional": 2, "amateur": 10}
        assert result["tag_semantic_similarity_n_defined"] == 4
        songs = [song["tag_semantic_similarity"] for song in result["per_item"]]
        assert result["tag_semantic_similarity"] == pytest.approx(np.mean(songs), abs=1e-12)


def test_one_group_is_judged_where_nobody_speaks_for_the_other() -> None:
    generated = [{"professional": song["professional"]} for song in GENERATED]
    result = evaluate_descriptions(REFERENCES, generated, encoder="char-ngrams")
    assert "amateur_average" not in result
    assert result["tag_semantic_similarity"] == result["professional_average"]


def test_vectors_that_cancel_out_leave_an_average_undefined() -> None:
    ways = {"a": [1.0, 0.0], "b": [-1.0, 0.0]}
    generated, reference = ({"amateur": {"song_purpose": tags}} for tags in (["a", "b"], ["a"]))
    judged = score_description(
        reference, generated, encoder=lambda texts: [ways[text] for text in texts], normalize_by_self=True
    )
    assert judged.reasons["amateur_average"] == "the vectors of a list cancel out in 1 of 1 dimensions"


def test_a_song_with_nothing_is_undefined() -> None:
    generated: list[Description] = [*GENERATED[:3], {"professional": {}, "amateur": {}}]
    result = evaluate_descriptions(REFERENCES, generated, encoder="char-ngrams", per_item=True)
    assert result["tag_semantic_similarity_n"] == 4
    assert result["tag_semantic_similarity_n_defined"] == 3
    assert np.isnan(result["per_item"][3]["tag_semantic_similarity"])
    reason = result["per_item"][3]["reasons"]["tag_semantic_similarity"]
    assert reason.startswith("professional: no generated tags in 10 of 10 dimensions")
    assert ", and amateur: no generated tags in 10 of 10 dimensions" in reason
    whole = evaluate_descriptions(REFERENCES[:3], GENERATED[:3], encoder="char-ngrams")
    assert result["tag_semantic_similarity"] == pytest.approx(whole["tag_semantic_similarity"], abs=1e-6)
    nothing = score_description({}, GENERATED[0], encoder="char-ngrams")
    assert nothing.reasons["tag_semantic_similarity"] == "no reference tags in any dimension"


def test_clusters_widen_intervals() -> None:
    generated, references = GENERATED * 2, REFERENCES * 2
    alone = evaluate_descriptions(references, generated, encoder="char-ngrams")
    clustered = evaluate_descriptions(references, generated, encoder="char-ngrams", groups=list("abcd") * 2)
    widths = [np.diff(result["tag_semantic_similarity_ci"])[0] for result in (alone, clustered)]
    assert widths[0] < widths[1]


def test_other_groups_and_dimensions_can_be_chosen() -> None:
    chosen = score_description(
        REFERENCES[0],
        GENERATED[0],
        encoder="char-ngrams",
        annotators=["amateur"],
        dimensions={"amateur": ["lyric_themes"]},
    )
    assert list(chosen.values) == ["tag_semantic_similarity", "amateur_average", "amateur/lyric_themes"]
    assert (
        "professional/lyric_themes" not in score_description(GENERATED[0], GENERATED[0], encoder="char-ngrams").values
    )


@pytest.mark.parametrize(
    ("tags", "message"),
    [
        ("慢速", "list of strings"),
        ([1], "tag 0 is int 1"),
        (["慢", None], "tag 1 is NoneType"),
        (None, "NoneType"),
        ({"a"}, "set"),
    ],
)
def test_tags_that_are_none(tags: Any, message: str) -> None:
    with pytest.raises(InvalidTagsError, match=message):
        tag_semantic_similarity(["慢"], tags, encoder="char-ngrams")
    with pytest.raises(InvalidTagsError, match=f"references, song 0, amateur/song_purpose.*{message}"):
        evaluate_descriptions([{"amateur": {"song_purpose": tags}}], [{"amateur": {}}], encoder="char-ngrams")


@pytest.mark.parametrize(
    ("description", "message"),
    [
        ({"amateur": {"song_purposes": []}}, "amateur dimension 'song_purposes'; did you mean song_purpose"),
        ({"amateur": {"musical_genres": []}}, "unknown amateur dimension 'musical_genres'"),
        ({"amateurs": {}}, "did you mean amateur"),
    ],
)
def test_names_that_do_not_exist(description: Any, message: str) -> None:
    for pair in ((description, {}), ({"amateur": {}}, description)):
        with pytest.raises(UnknownNameError, match=message):
            score_description(*pair, encoder="char-ngrams")


def test_choices_that_do_not_exist() -> None:
    with pytest.raises(UnknownNameError, match="professional"):
        score_description(REFERENCES[0], GENERATED[0], encoder="char-ngrams", annotators=["professionals"])
    with pytest.raises(UnknownNameError, match="song_purpose"):
        score_description(REFERENCES[0], GENERATED[0], encoder="char-ngrams", dimensions={"amateur": ["purpose_song"]})
    with pytest.raises(UnknownNameError, match="amateur"):
        tag_similarity_table(REFERENCES, GENERATED, "amateurs", encoder="char-ngrams")
    with pytest.raises(UnknownNameError, match="best_match"):
        evaluate_descriptions(REFERENCES, GENERATED, encoder="char-ngrams", aggregation="best")
    with pytest.raises(InvalidInputError, match="confidence"):
        evaluate_descriptions(REFERENCES, GENERATED, encoder="char-ngrams", confidence=95)
    with pytest.raises(ModelUnavailableError, match="hf download BAAI/bge-large-zh"):
        tag_semantic_similarity(["快"], ["慢"])
    with pytest.raises(BackendError, match="<lambda>"):
        tag_semantic_similarity(["快"], ["慢"], encoder=lambda _: [[1.0]])


@pytest.mark.parametrize(
    ("generated", "references", "message"),
    [
        (GENERATED[:2], REFERENCES, "got 2 and 4 songs"),
        ({"a": GENERATED[0]}, {"b": REFERENCES[0]}, "generated lacks 1: b; references lacks 1: a"),
        ({}, {str(item): REFERENCES[0] for item in range(9)}, r"generated lacks 9: 0, 1, 2, 3, 4 \.\.\."),
        ({"a": GENERATED[0]}, REFERENCES[:1], "one of each"),
    ],
)
def test_songs_that_do_not_pair_up(generated: Any, references: Any, message: str) -> None:
    with pytest.raises(PairCountError, match=message):
        evaluate_descriptions(references, generated, encoder="char-ngrams")


def test_nothing_to_judge() -> None:
    with pytest.raises(NoDataError):
        evaluate_descriptions([], [], encoder="char-ngrams")
    with pytest.raises(NoDataError):
        evaluate_descriptions(REFERENCES[:1], [{}], encoder="char-ngrams")
    with pytest.raises(PairCountError, match="groups"):
        evaluate_descriptions(REFERENCES, GENERATED, encoder="char-ngrams", groups=["a"])
    with pytest.raises(InvalidTagsError, match="got list"):
        evaluate_descriptions(REFERENCES[:1], [[]], encoder="char-ngrams")  # type: ignore[list-item]


def test_rows_of_caimd() -> None:
    row: Mapping[str, Any] = {
        "id": "x",
        "amateur": {"overall_text": "", "dimensions": {"song_purpose": {"tags": ["KTV"], "text": None}}},
        "professional": None,
    }
    assert description_of_row(row) == {"amateur": {"song_purpose": ["KTV"]}}
    with pytest.raises(InvalidTagsError):
        description_of_row({"amateur": {"dimensions": {"song_purpose": ["KTV"]}}})


@pytest.mark.skipif(not DEV.is_file(), reason="the development songs of MuChin are not beside the repository")
def test_parity_on_real_songs() -> None:
    with DEV.open(encoding="utf-8") as lines:
        songs = [description_of_row(json.loads(line)) for line, _ in zip(lines, range(12), strict=False)]
    generated = [*songs[1:], songs[0]]
    for group, names in SCORED.items():
        table = tag_similarity_table(songs, generated, group, encoder="char-ngrams")
        expected = [
            [plain_similarity(one[group][name], other[group][name]) for name in names]
            for one, other in zip(generated, songs, strict=True)
        ]
        np.testing.assert_allclose(table, expected, atol=1e-6)
