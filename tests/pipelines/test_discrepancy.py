from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from music_evals.annotations import DIMENSIONS
from music_evals.errors import InvalidInputError, InvalidTagsError, NoDataError, PairCountError, UnknownNameError
from music_evals.lyrics.embeddings import CharNgrams
from music_evals.pipelines.descriptions import description_of_row
from music_evals.pipelines.discrepancy import ALL, FACING, common_tags, facing_similarities, study_discrepancy

DEV = Path(__file__).resolve().parents[2] / "../shared/data/muchin/dev.jsonl"

AXES = {
    "红": [1.0, 0.0, 0.0],
    "绿": [0.0, 1.0, 0.0],
    "橙": [0.6, 0.8, 0.0],
    "红,绿": [0.0, 0.6, 0.8],
    "红,橙": [0.0, 0.0, 1.0],
}


def colours(texts: Any) -> list[list[float]]:
    """Three-dimensional vectors whose cosines are known: red to green 0, red to orange .6, green to orange .8."""
    return [AXES[text] for text in texts]


def song(genre: str, professional: list[str], amateur: list[str]) -> dict[str, dict[str, list[str]]]:
    return {
        "professional": {"musical_genres": [genre], "tempo_rhythm": professional},
        "amateur": {"perception_of_tempo": amateur},
    }


# by hand: similarities of tempo .6, 0, .7, 1 and nothing
SONGS = [
    song("摇滚", ["红"], ["橙"]),
    song("流行摇滚", ["红"], ["绿"]),
    song("流行", ["红", "绿"], ["橙"]),
    song("流行", ["绿"], ["绿"]),
    song("流行", [], ["绿"]),
]
OPTIONS: dict[str, Any] = {"encoder": colours, "by": ["genre"], "dimensions": ["tempo"]}


def test_facing_dimensions_exist() -> None:
    assert len(FACING) == 10
    for facing in FACING.values():
        assert facing.professional in DIMENSIONS["professional"]
        assert facing.amateur in DIMENSIONS["amateur"]


def test_by_hand() -> None:
    study = study_discrepancy(SONGS, **OPTIONS)
    every, rock, pop = (
        study.cell(*key, "tempo") for key in ((ALL, ALL), ("genre", "rock"), ("genre", "pop"))
    )  # fmt: skip
    assert every.similarity == pytest.approx((0.6 + 0 + 0.7 + 1) / 4)
    assert (every.n, every.n_defined) == (5, 4)
    assert math.isnan(every.p_value)
    assert rock.similarity == pytest.approx(0.3)
    assert (rock.n, rock.n_defined) == (2, 2)
    assert rock.difference == pytest.approx(0.3 - 0.85)
    # two of four songs: six choices, and only this one and its mirror image are as far apart
    assert rock.p_value == pytest.approx(2 / 6)
    assert pop.similarity == pytest.approx((0 + 0.7 + 1) / 3)
    assert (pop.n, pop.n_defined) == (4, 3)
    assert pop.difference == pytest.approx(1.7 / 3 - 0.6)
    jazz = study.cell("genre", "jazz", "tempo")
    assert (jazz.n, jazz.n_defined) == (0, 0)
    assert math.isnan(jazz.similarity)
    # two tests could be made
    assert rock.p_adjusted == pytest.approx(min(1, 2 * rock.p_value))
    assert study.n_ungrouped == {"genre": 0}
    assert study.settings["encoder"] == {"name": "colours", "revision": ""}


def test_joined_texts_are_one_text() -> None:
    # red,green against orange: (0, .6, .8) by (.6, .8, 0)
    study = study_discrepancy(SONGS[2:3], level="joined", **OPTIONS)
    assert study.cell(ALL, ALL, "tempo").similarity == pytest.approx(0.48)
    nothing = study_discrepancy(SONGS[4:], level="joined", **OPTIONS).cell(ALL, ALL, "tempo")
    assert math.isnan(nothing.similarity)
    assert (nothing.n, nothing.n_defined) == (1, 0)


def test_self_similarity_is_taken_out() -> None:
    # red and green against themselves .5, orange 1
    study = study_discrepancy(SONGS[2:3], normalize_by_self=True, **OPTIONS)
    assert study.cell(ALL, ALL, "tempo").similarity == pytest.approx(0.7 / math.sqrt(0.5))


def test_tests_can_be_left_out() -> None:
    study = study_discrepancy(SONGS, n_permutations=0, **OPTIONS)
    for cell in study.cells:
        assert all(math.isnan(value) for value in (cell.difference, cell.p_value, cell.p_adjusted))
    with_both = study_discrepancy(SONGS, **OPTIONS)
    assert repr(with_both) == repr(study_discrepancy(SONGS, **OPTIONS))
    cell = with_both.cell("genre", "pop", "tempo")
    assert -1 <= cell.low < cell.similarity < cell.high <= 1


def test_songs_of_a_cluster_share_their_groups() -> None:
    study = study_discrepancy(SONGS, groups=["a", "a", "b", "a", "c"], **OPTIONS)
    rock = study.cell("genre", "rock", "tempo")
    assert (rock.n, rock.n_defined) == (3, 3)
    assert rock.similarity == pytest.approx((0.6 + 0 + 1) / 3)
    # songs a and b define tempo: two choices of one cluster, equally far apart
    assert rock.p_value == 1


def test_a_planted_difference_is_found_and_noise_is_not() -> None:
    rng = np.random.default_rng(0)
    songs = []
    for number in range(80):
        calm = number % 2 == 0
        amateur = "慢速" if not calm or rng.random() < 0.2 else "轻快"
        noise = [str(rng.choice(["红", "绿", "橙"])) for _ in range(2)]
        songs.append(
            {
                "professional": {
                    "emotional_impact_lyrics_melody": ["平静" if calm else "悲伤"],
                    "tempo_rhythm": ["慢速"],
                    "song_purpose": noise[:1],
                },
                "amateur": {"perception_of_tempo": [amateur], "song_purpose": noise[1:]},
            }
        )
    study = study_discrepancy(
        songs, encoder=CharNgrams(), by=["emotion"], dimensions=["tempo", "song_purpose"], n_permutations=2000
    )
    calm_tempo = study.cell("emotion", "calm", "tempo")
    assert calm_tempo.p_adjusted < 0.01
    assert calm_tempo.difference < -0.5
    assert study.cell("emotion", "calm", "song_purpose").p_adjusted > 0.05


def test_plain_values() -> None:
    found = study_discrepancy(dict(zip("abcde", SONGS, strict=True)), **OPTIONS).to_dict()
    assert found["n_songs"] == 5
    assert found["cells"][0]["dimension"] == "tempo"
    json.dumps(found)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"by": ["genres"]}, UnknownNameError, "did you mean genre"),
        ({"by": "genre"}, InvalidInputError, "list of groupings"),
        ({"dimensions": ["tempi"]}, UnknownNameError, "did you mean tempo"),
        ({"level": "tag"}, UnknownNameError, "did you mean tags"),
        ({"aggregation": "median"}, UnknownNameError, "aggregation"),
        ({"level": "joined", "aggregation": "f1"}, InvalidInputError, "one text with one text"),
        ({"groups": ["a"]}, PairCountError, "groups"),
        ({"n_permutations": -1}, InvalidInputError, "n_permutations"),
        ({"confidence": 2}, InvalidInputError, "confidence"),
    ],
)
def test_options_that_are_wrong(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        study_discrepancy(SONGS, **{**OPTIONS, **options})


def test_songs_that_are_wrong() -> None:
    with pytest.raises(NoDataError):
        study_discrepancy([], **OPTIONS)
    with pytest.raises(InvalidTagsError, match="song b, amateur/song_purpose"):
        study_discrepancy({"a": SONGS[0], "b": {"amateur": {"song_purpose": "KTV"}}}, **OPTIONS)  # type: ignore[dict-item]
    with pytest.raises(UnknownNameError, match="did you mean tempo_rhythm"):
        study_discrepancy([{"professional": {"tempo_rhytm": []}}], **OPTIONS)
    with pytest.raises(UnknownNameError, match="genre/rock/tempo"):
        study_discrepancy(SONGS, **OPTIONS).cell("genre", "rock", "tempi")


@pytest.mark.skipif(not DEV.is_file(), reason="the development songs of MuChin are not beside the repository")
def test_real_songs() -> None:
    with DEV.open(encoding="utf-8") as lines:
        songs = [description_of_row(json.loads(line)) for line, _ in zip(lines, range(60), strict=False)]
    study = study_discrepancy(songs, encoder="char-ngrams", n_permutations=50)
    for name in FACING:
        cell = study.cell(ALL, ALL, name)
        assert (cell.n, cell.n_defined) == (60, 60)
        assert -0.1 < cell.low <= cell.similarity <= cell.high <= 1
    # nearly all songs are clear, and say so in the same word
    assert study.cell(ALL, ALL, "audio_effects").similarity > 0.8
    assert study.n_ungrouped["genre"] < 5


def test_similarities_that_are_known_already() -> None:
    chosen = {name: OPTIONS[name] for name in ("encoder", "dimensions") if name in OPTIONS}
    values = facing_similarities(SONGS, **chosen)
    study = study_discrepancy(SONGS, **OPTIONS)
    assert values[:, 0] == pytest.approx([0.6, 0, 0.7, 1, math.nan], nan_ok=True)
    again = study_discrepancy(SONGS, similarities=values, **OPTIONS)
    assert again.cell("genre", "rock", "tempo") == study.cell("genre", "rock", "tempo")
    turned = study_discrepancy(SONGS, similarities=values * 0 + 0.5, **OPTIONS)
    assert turned.cell(ALL, ALL, "tempo").similarity == 0.5
    with pytest.raises(InvalidInputError, match=r"one row a song and one column a dimension, shape \(5, "):
        study_discrepancy(SONGS, similarities=values[:2], **OPTIONS)
    with pytest.raises(InvalidInputError, match="leave aggregation"):
        facing_similarities(SONGS, level="joined", aggregation="f1", **chosen)


def test_common_tags_are_those_that_both_wrote() -> None:
    professional = {"song_purpose": ["KTV", "运动", "助眠"], "tempo_rhythm": ["快"], "musical_genres": ["摇滚"]}
    amateur = {"song_purpose": [" ktv", "助眠"], "perception_of_tempo": ["快"], "perception_of_uniqueness": ["摇滚"]}
    common = common_tags({"professional": professional, "amateur": amateur})
    assert common["song_purpose"] == ("KTV", "助眠")
    assert common["tempo"] == ("快",)
    assert list(common) == list(FACING)
    assert not common["target_audience"]
    with pytest.raises(UnknownNameError):
        common_tags({"professional": professional})
