"""The grammar that reads targets off the words of an instruction."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from music_evals.annotations import targets_to_dict
from music_evals.annotations.target_words import targets_between, targets_in_words
from music_evals.editing.instructions import generate


@pytest.mark.parametrize(
    ("text", "targets"),
    [
        ("Play it at 120 BPM.", {"tempo": "120 bpm"}),
        ("Make it 20% faster", {"tempo": "1.2x"}),
        ("10 percent slower, please", {"tempo": "0.9x"}),
        ("Half the speed!", {"tempo": "0.5x"}),
        ("twice as fast and half as long", {"tempo": "2x", "length": "0.5x"}),
        ("Move it up by two semitones", {"transpose": "+2"}),
        ("down a fifth", {"transpose": "-7"}),
        ("A whole-tone higher", {"transpose": "+2"}),
        ("3 semitones lower in E flat major", {"transpose": "-3", "key": "Eb major"}),
        ("Rewrite it in the key of F# minor", {"key": "F# minor"}),
        ("Turn it into A Minor", {"key": "A minor"}),
        ("Play it in 6/8.", {"metre": "6/8"}),
        ("as a waltz in waltz time", {"metre": "3/4"}),
        ("Cut it to 20 seconds", {"length": "20 s"}),
        ("6 dB louder", {"loudness": "+6 dB"}),
        ("3 dB quieter", {"loudness": "-3 dB"}),
        ("Replace the piano with a flute.", {"instrument_removed": "piano", "instrument_added": "flute"}),
        ("Add some drums and remove the bass guitar", {"instrument_removed": "bass", "instrument_added": "drums"}),
        ("With a sax instead of the violin", {"instrument_added": "saxophone"}),
        # no amount, no target
        ("Make it faster and sadder, in a major way", {}),
        ("Turn this rock piece into jazz, up to date.", {}),
        ("an added flutter of drummers' hands", {}),
        ("1/2/3, and 100/400", {}),
        ("", {}),
    ],
)
def test_words_that_name_a_target(text: str, targets: dict[str, str]) -> None:
    assert targets_to_dict(targets_in_words(text)) == targets


@given(st.text(max_size=80))
def test_any_text_is_read(text: str) -> None:
    assert len(targets_in_words(text)) == len({target.kind for target in targets_in_words(text)})


@pytest.mark.parametrize(
    ("before", "after", "targets"),
    [
        ("A man sings, a guitar and drums play.", "A violin, a guitar and drums.", {"instrument_added": "violin"}),
        ("a piano", "a flute", {"instrument_added": "flute", "instrument_removed": "piano"}),
        ("A rock song.", "a flute", {}),
        ("a piano", "A jazz song.", {}),
        ("two guitars", "a guitar", {}),
    ],
)
def test_descriptions_that_both_say_what_plays(before: str, after: str, targets: dict[str, str]) -> None:
    assert targets_to_dict(targets_between(before, after)) == targets


def test_generated_instructions_carry_the_targets_of_their_words() -> None:
    [timbre] = generate("x", "a calm piano tune", tasks=["timbre"])
    assert targets_to_dict(timbre.targets) == {"instrument_removed": "piano", "instrument_added": timbre.after}
    [mood] = generate("x", "a calm piano tune", tasks=["mood"])
    assert mood.targets == ()
