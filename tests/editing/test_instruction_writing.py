"""Instructions by a language model: what it is asked, and which answers count."""

from __future__ import annotations

import datetime as dt
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from music_evals.editing.instruction_writing import (
    MOST_CHARACTERS,
    instruction_prompt,
    read_instruction,
    write_instructions,
)
from music_evals.editing.instructions import KINDS
from music_evals.errors import BackendError, InvalidInputError, MusicEvalsError, UnknownNameError
from music_evals.models.lyric_writers import CallableWriter

DESCRIPTION = "A sad bossa\n  nova with nylon guitar"
GOOD = {"before": "bossa nova", "after": "ska", "instruction": "Turn the bossa nova into ska."}


def read(answer: str, task: str = "genre"):
    return read_instruction(answer, source_id="song", description=DESCRIPTION, task=task, author="poet, 2026-01-01")


@pytest.mark.parametrize(
    "answer",
    [
        json.dumps(GOOD),
        f"```json\n{json.dumps(GOOD, indent=1)}\n```",
        f"Sure {{as you asked}}: {json.dumps(GOOD)} Anything else?",
        json.dumps(GOOD | {"before": "Bossa  Nova", "why": "it is one"}),
    ],
)
def test_an_answer_becomes_an_instruction(answer):
    made = read(answer)
    assert (made.id, made.task, made.author) == ("song-genre", "genre", "poet, 2026-01-01")
    assert made.text == "Turn the bossa nova into ska."
    assert made.target_caption() == "A sad ska with nylon guitar"
    assert made.intended_facets == KINDS["genre"].intended_facets


def test_a_model_may_find_no_word():
    assert read('{"before": null}') is None


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("", "no JSON object"),
        ("bossa nova -> ska", "no JSON object"),
        ("[" * 5000 + "{" * 5000, "no JSON object"),
        ("{}", "must be texts"),
        (json.dumps(GOOD | {"after": 3}), "must be texts"),
        (json.dumps(GOOD | {"after": " "}), "must be texts"),
        (json.dumps(GOOD | {"before": "samba"}), "does not hold 'samba'"),
        (json.dumps(GOOD | {"before": "uitar"}), "does not hold 'uitar'"),
        (json.dumps(GOOD | {"after": "Bossa Nova"}), "nothing would change"),
        (json.dumps(GOOD | {"instruction": "Make it different."}), "does not say 'ska'"),
        (json.dumps(GOOD | {"instruction": "ska " * MOST_CHARACTERS}), "no sentence"),
    ],
)
def test_other_answers_are_refused(answer, reason):
    with pytest.raises(BackendError, match=reason):
        read(answer)


@given(
    st.one_of(
        st.text(), st.dictionaries(st.sampled_from(sorted(GOOD)), st.one_of(st.none(), st.text())).map(json.dumps)
    )
)
def test_an_answer_is_read_or_refused_by_name(answer):
    try:
        made = read(answer)
    except MusicEvalsError:
        return
    assert made is None or made.target_caption()


def test_a_prompt_says_what_is_there():
    prompt = instruction_prompt(DESCRIPTION, "mood")
    assert "A sad bossa nova with nylon guitar" in prompt
    assert "name its mood" in prompt
    with pytest.raises(InvalidInputError, match="describe the source"):
        instruction_prompt(" ", "mood")
    with pytest.raises(UnknownNameError):
        instruction_prompt(DESCRIPTION, "refine")


def test_a_writer_is_asked_for_each_task_and_named_with_the_day():
    answers = {"genre": GOOD, "mood": {"before": "sad", "after": "glad", "instruction": "Make it glad."}}

    def answer(prompt: str) -> str:
        asked = next(task for task in KINDS if f"name its {task}," in prompt)
        return json.dumps(answers.get(asked, {"before": None}))

    writer = CallableWriter(answer, "poet", details={"commit": "0123456789abcdef"})
    made = write_instructions(writer, "song", DESCRIPTION, tasks=["genre", "style", "mood"])
    assert [one.id for one in made] == ["song-genre", "song-mood"]
    assert {one.author for one in made} == {f"poet@0123456789ab, {dt.datetime.now(dt.UTC).date()}"}
