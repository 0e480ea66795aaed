"""The notes and the log of the piano roll: edits can be undone, and the page counts and replays as the library does."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from music_evals.studies.editing.logs import check_log, count_log, replay_log
from music_evals.ui.assets import script

NOTES = [[0, 120, 60, 80, 0], [120, 120, 64, 80, 0], [120, 240, 60, 70, 1], [480, 60, 67, 90, 1]]
END = 960

WRAPPED = """
globalThis.run = (what, notes, ...rest) => {
  const map = new Map(notes.map(([id, ...note]) => [id, note]));
  if (what === "apply") return musicEvals.noteEdits.toList(musicEvals.noteEdits.apply(map, ...rest));
  if (what === "reset") return musicEvals.noteEdits.reset(map, new Map(rest[0].map(([id, ...note]) => [id, note])));
  return musicEvals.noteEdits[what](map, ...rest);
};
globalThis.replay = (notes, events) => {
  const { notes: after } = musicEvals.editLog.replay(musicEvals.noteEdits.fromList(notes), events);
  return musicEvals.noteEdits.toList(after);
};
"""


@pytest.fixture(scope="module")
def js() -> Callable[..., Any]:
    """`js("run", ...)` calls a global function with JSON values."""
    quickjs = pytest.importorskip("quickjs")
    context = quickjs.Context()
    context.eval(script("piano_roll", "note_edits", "edit_log") + WRAPPED)

    def call(name: str, *values: Any) -> Any:
        given_ = ", ".join(map(json.dumps, values))
        text = context.eval(f"JSON.stringify({name}({given_}))")
        return None if text is None else json.loads(text)

    return call


@pytest.fixture
def edit(js: Callable[..., Any]) -> Callable[..., Any]:
    """`edit("move", notes, ...)` gives the changes, notes being a list with ids."""
    return lambda what, *values: js("run", what, *values)


def numbered(notes: list[list[int]]) -> list[list[int]]:
    return [[id_, *note] for id_, note in enumerate(notes)]


def test_notes_move_together_and_stay_on_the_paper(edit: Any) -> None:
    notes = numbered(NOTES)
    changes = edit("move", notes, [0, 1], 60, 2, END)
    assert changes == [[0, NOTES[0], [60, 120, 62, 80, 0]], [1, NOTES[1], [180, 120, 66, 80, 0]]]
    assert edit("move", notes, [0, 1], -60, 0, END) == []  # the first cannot go further left, so neither does
    assert edit("move", notes, [3], 10_000, 0, END)[0][2][0] == END - 60


def test_a_note_keeps_a_unit_of_the_grid_and_ends_on_the_paper(edit: Any) -> None:
    notes = numbered(NOTES)
    assert edit("resize", notes, [2], -1000, 60, END)[0][2][1] == 60
    assert edit("resize", notes, [3], 10_000, 60, END)[0][2][1] == END - 480
    assert edit("resize", notes, [3], -30, 120, END) == []  # as short as it was


def test_a_split_note_sounds_as_long_as_before_and_merges_again(edit: Any) -> None:
    notes = numbered(NOTES)
    changes = edit("split", notes, [2, 3], 180, 9)
    assert changes == [[2, NOTES[2], [120, 60, 60, 70, 1]], [9, None, [180, 180, 60, 70, 1]]]
    after = edit("apply", notes, changes)
    merged = edit("merge", after, [2, 9, 3])
    assert edit("apply", after, merged) == notes


def test_copies_begin_on_the_grid_behind_what_is_copied(edit: Any) -> None:
    notes = numbered(NOTES)
    assert edit("duplicate", notes, [0, 1], 120, END, 4) == [
        [4, None, [240, 120, 60, 80, 0]],
        [5, None, [360, 120, 64, 80, 0]],
    ]
    assert edit("duplicate", notes, [0, 3], 120, END, 4) == []  # no room


def test_quantised_notes_lie_on_the_grid(edit: Any) -> None:
    notes = [[0, 50, 100, 60, 80, 0], [1, 910, 20, 62, 80, 0]]
    assert [after[:2] for _, _, after in edit("quantise", notes, [0, 1], 120, END)] == [[0, 120], [840, 120]]


def test_notes_of_one_voice_and_pitch_may_not_sound_together(edit: Any) -> None:
    notes = numbered(NOTES)
    assert edit("clashes", notes, [[1, NOTES[1], [60, 120, 60, 80, 0]]]) == [0]
    assert edit("clashes", notes, [[1, NOTES[1], [60, 120, 60, 80, 1]]]) == [2]
    assert edit("clashes", notes, [[0, NOTES[0], None], [1, NOTES[1], [60, 120, 60, 80, 0]]]) == []
    assert edit("clashes", notes, [[1, NOTES[1], [120, 120, 60, 80, 0]]]) == []  # one after the other


def test_locked_voices_are_never_selected(edit: Any) -> None:
    assert edit("inside", numbered(NOTES), [0, 1000], [0, 127], [0]) == [2, 3]
    assert edit("inside", numbered(NOTES), [100, 130], [60, 60], []) == [0, 2]


@st.composite
def edits(draw: st.DrawFn) -> list[tuple[str, list[Any]]]:
    """Names of edits with what they take besides notes and ids."""
    kinds = {
        "move": st.tuples(st.integers(-500, 500), st.integers(-20, 20), st.just(END)),
        "resize": st.tuples(st.integers(-500, 500), st.just(60), st.just(END)),
        "quantise": st.tuples(st.just(120), st.just(END)),
        "merge": st.just(()),
        "remove": st.just(()),
    }
    names = draw(st.lists(st.sampled_from(sorted(kinds)), min_size=1, max_size=8))
    return [(name, list(draw(kinds[name]))) for name in names]


@settings(max_examples=25)
@given(edits(), st.data())
def test_what_was_done_is_undone_replayed_and_counted_as_in_python(
    js: Callable[..., Any], todo: list[tuple[str, list[Any]]], data: st.DataObject
) -> None:
    notes, log, done = numbered(NOTES), [[0, "load"]], []
    at = 0
    for name, rest in todo:
        ids = [note[0] for note in notes]
        chosen = data.draw(st.lists(st.sampled_from(ids), min_size=1, unique=True)) if ids else []
        changes = js("run", name, notes, chosen, *rest) if chosen else []
        at += data.draw(st.integers(0, 100_000))
        if at > log[-1][0] + 60_000:
            log.append([at, "idle", at - log[-1][0]])
        log.append([at, "select", len(chosen)])
        log.append([at, "key", "edit" if changes else "navigation"])
        if changes:
            log.append([at, "edit", name, changes])
            notes = js("run", "apply", notes, changes)
            done.append(changes)
    for changes in reversed(data.draw(st.sampled_from([[], done]))):
        back = js("musicEvals.noteEdits.backwards", changes)
        log += [[at, "key", "edit"], [at, "undo", back]]
        notes = js("run", "apply", notes, back)
    log += [[at, "click", "other", "mouse"], [at, "submit"]]
    replayed = replay_log(NOTES, check_log(log))
    assert [[id_, *note] for id_, note in sorted(replayed.items())] == notes == js("replay", NOTES, log)
    if any(event[1] == "undo" for event in log):
        assert notes == numbered(NOTES)
    assert js("musicEvals.editLog.count", log) == count_log(log)._asdict()
    assert js("run", "apply", notes, js("run", "reset", notes, numbered(NOTES))) == numbered(NOTES)


LOGS = st.lists(
    st.tuples(
        st.integers(0, 90_000),
        st.sampled_from(
            [["hide"], ["show"], ["blur"], ["focus"], ["play", 0], ["stop", 5], ["select", 2], ["absent", 5],
             ["key", "edit"], ["key", "modifier"], ["midi", "other"], ["click", "edit", "mouse"],
             ["click", "other", "pen"]]
        ),
    ),
    max_size=30,
)  # fmt: skip


@given(LOGS, st.booleans())
def test_times_and_presses_are_counted_as_in_python(
    js: Callable[..., Any], steps: list[tuple[int, list[Any]]], limit: bool
) -> None:
    log: list[list[Any]] = [[0, "load"]]
    for gap, event in steps:
        log.append([log[-1][0] + gap, *event])
    if limit:
        log.append([log[-1][0], "limit"])
    log.append([log[-1][0], "submit"])
    assert js("musicEvals.editLog.count", log) == count_log(check_log(log))._asdict()
