"""Instructions: one type for every system, and templates that always say the same."""

from __future__ import annotations

import pytest

from music_evals.annotations import FACETS, EditInstruction
from music_evals.editing.instructions import KINDS, exchange, find_tags, generate
from music_evals.errors import InvalidInputError, NoDataError, UnknownNameError
from music_evals.metrics.catalogue import PRESERVATION_METRICS


def test_facets_are_those_of_the_benchmark() -> None:
    assert tuple(dict.fromkeys(metric.facet for metric in PRESERVATION_METRICS.values())) == FACETS


def test_target_caption_is_derived_from_whole_words() -> None:
    pair = {"text": "x", "before": "rock", "after": "jazz"}
    assert (
        EditInstruction(**pair, source_prompt="Rock on a rocket; rock.").target_caption() == "jazz on a rocket; jazz."
    )
    assert EditInstruction(**pair, source_prompt="a folk song").target_caption() == ""
    assert EditInstruction(**pair).target_caption() == ""
    assert EditInstruction(**pair, source_prompt="rock", target_prompt="a waltz").target_caption() == "a waltz"
    assert EditInstruction(text="x", before="a", after=r"\1", source_prompt="a b").target_caption() == r"\1 b"


def test_round_trip_through_json() -> None:
    whole = EditInstruction(
        text="x", id="7", task="refine", bars=(1, 3), confidence=4, intended_facets=("melody",), author="template"
    )
    assert EditInstruction.from_dict(whole.to_dict()) == whole
    with pytest.raises(UnknownNameError, match="target_prompt"):
        EditInstruction.from_dict({"text": "x", "target_promt": "y"})


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"text": " "}, InvalidInputError),
        ({"text": "x", "task": "styl"}, UnknownNameError),
        ({"text": "x", "before": "rock"}, InvalidInputError),
        ({"text": "x", "bars": (3, 3)}, InvalidInputError),
        ({"text": "x", "confidence": 11}, InvalidInputError),
        ({"text": "x", "intended_facets": ("harmonie",)}, UnknownNameError),
        ({"text": "x", "intended_facets": ("melody", "melody")}, InvalidInputError),
    ],
)
def test_broken_instructions_are_refused(wrong: dict[str, object], error: type[Exception]) -> None:
    with pytest.raises(error):
        EditInstruction(**wrong)


def test_templates_are_deterministic_and_independent_of_other_sources() -> None:
    description = "A happy rock song in acoustic style"
    first = generate("song", description, seed=3)
    assert generate("song", description, seed=3) == first
    assert [one.task for one in first] == ["genre", "style", "mood"]
    assert generate("song", description, tasks=["mood"], seed=3) == first[2:]
    assert len({generate(str(i), description)[0].after for i in range(40)}) > 5
    for one in first:
        assert one.after != one.before
        assert one.after in one.target_caption()
        assert one.before not in one.target_caption().split()
        assert one.intended_facets == KINDS[one.task].intended_facets


def test_what_templates_do_not_know_is_said() -> None:
    with pytest.raises(NoDataError):
        generate("song", "music with piano")
    with pytest.raises(UnknownNameError, match="genre"):
        generate("song", "a rock song", tasks=["genr"])
    with pytest.raises(UnknownNameError):
        exchange("a", "b", task="refine")
    assert exchange("a", "b").text == "Change a to b."
    assert exchange("a", "b").intended_facets == ()


def test_tags_are_whole_words() -> None:
    assert find_tags("rocky jazzman") == {}
    assert find_tags("Bossa Nova with flute") == {"style": "bossa nova", "timbre": "flute"}


@pytest.mark.parametrize("task", sorted(KINDS))
def test_every_sentence_names_both_words(task: str) -> None:
    for sentence in KINDS[task].sentences:
        text = sentence.format(before="AAA", after="BBB")
        assert "AAA" in text
        assert "BBB" in text
    assert len(set(KINDS[task].words)) == len(KINDS[task].words)
