"""What the player of the annotation platform works out."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from music_evals.caimap.domain import listening
from music_evals.caimap.domain.values import PlaybackEvent
from music_evals.caimap.web.rendering import STATIC


def test_peaks_become_heights(call: Any) -> None:
    assert call("waveform")("heights", [0, 51, 255]) == [0, 0.2, 1]


@pytest.mark.parametrize(
    ("x", "left", "width", "second"),
    [
        (100, 100, 400, 0),
        (200, 100, 400, 50),
        (500, 100, 400, 200),
        (90, 100, 400, 0),
        (501, 100, 400, 200),
        (100, 100, 0, 0),
    ],
)
def test_a_place_of_the_waveform_is_a_second_of_the_song(
    call: Any, x: float, left: float, width: float, second: float
) -> None:
    assert call("waveform")("secondAt", x, left, width, 200) == second


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0, "0:00"), (9.99, "0:09"), (65.9, "1:05"), (600, "10:00"), (3725, "62:05"), (-1, "0:00")]
)
def test_clock(call: Any, seconds: float, shown: str) -> None:
    assert call("waveform")("clock", seconds) == shown


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("", "钢琴、"),
        ("钢", "钢琴、"),
        ("温暖、钢", "温暖、钢琴、"),
        ("温暖, 明亮，钢", "温暖、明亮、钢琴、"),
        ("温暖、", "温暖、钢琴、"),
    ],
)
def test_a_term_takes_the_place_of_the_tag_that_is_being_written(call: Any, text: str, field: str) -> None:
    assert call("waveform")("withTerm", text, "钢琴") == field


@pytest.mark.parametrize(
    ("kind", "labels", "at", "label"),
    [
        ("verse", ["", ""], 0, "verse1"),
        ("verse", ["verse1", "", "chorus1", ""], 3, "verse2"),
        ("chorus", ["verse1", "pre-chorus3", ""], 2, "chorus1"),  # of another kind
        ("chorus", ["chorus1", "chorus2", "verse1"], 2, "chorus3"),
        ("chorus", ["chorus1", "chorus2", "chorus3"], 2, "chorus1"),  # pressed again: the others in turn
        ("chorus", ["chorus1", "chorus2", "chorus1"], 2, "chorus2"),
        ("chorus", ["chorus1", "chorus2", "chorus2"], 2, "chorus3"),
        ("verse", ["verse1", "verse2"], 0, "verse1"),  # rows below are numbered later
        ("verse", ["verse7"], 0, "verse1"),
        ("verse", ["verse11", ""], 1, "verse12"),
    ],
)
def test_a_digit_gives_the_next_number_of_a_kind(call: Any, kind: str, labels: list[str], at: int, label: str) -> None:
    assert call("rows")("nextLabel", kind, labels, at) == label


PLAY = """
((made, ways) => {
  let time = 0;
  let sent = 0;
  const timers = [];
  const got = [];
  const sleep = (sec) => new Promise((done) => timers.push([time + sec, done]));
  const report = musicEvals.reports.line(async ([kind, position]) => {
    const [there, back] = ways[sent++ % ways.length];
    await sleep(there);
    got.push([kind, position, time]);
    await sleep(back);
  }, { now: () => time, sleep });
  for (const [kind, position, at] of made) sleep(at).then(() => report(kind, [kind, position]));
  globalThis.step = () => {
    const next = timers.reduce((first, timer) => (timer[0] < first[0] ? timer : first), [Infinity]);
    if (next[0] === Infinity) return JSON.stringify(got);
    timers.splice(timers.indexOf(next), 1);
    [time] = next;
    next[1]();
    return null;
  };
})
"""
"""What a page reports (kind, position, time) over a line whose ways there and back take so many seconds, in turn."""


def received(made: list[tuple[str, float, float]], ways: list[tuple[float, float]]) -> list[PlaybackEvent]:
    """Return what the server gets, by its clock."""
    quickjs = pytest.importorskip("quickjs")
    context = quickjs.Context()
    context.eval((STATIC / "reports.js").read_text(encoding="utf-8"))
    context.eval(f"{PLAY}({json.dumps(made)}, {json.dumps(ways)})")
    while True:
        while context.execute_pending_job():
            pass
        if (got := context.eval("step()")) is not None:
            return [PlaybackEvent(kind, position, at) for kind, position, at in json.loads(got)]


def playing(start: float, stop: float, at: float = 0.0) -> list[tuple[str, float, float]]:
    """What a page reports from one second of the song to another."""
    beats = [("beat", float(second), at + float(second) - start) for second in np.arange(start + 5, stop, 5)]
    return [("play", start, at), *beats, ("ended" if stop == 60 else "pause", stop, at + stop - start)]


# a beat every 5 s whose answer takes less than 10 s stays within the gap that is allowed
WAYS = st.lists(st.tuples(st.floats(0, 4.9), st.floats(0, 4.9)), min_size=1, max_size=20)


@given(WAYS, st.floats(0, 60), st.floats(0, 30))
def test_an_honest_listener_on_a_slow_line_breaks_no_rule(ways, stop, rest) -> None:
    made = playing(0, 60) if stop in {0, 60} else [*playing(0, stop), *playing(stop, 60, stop + rest)]
    found = listening.listening_of(received(made, ways), 60.0)
    assert (found.complete, found.problems) == (True, ())


def test_on_a_fast_line_every_report_is_sent_at_once() -> None:
    made = playing(0, 60)
    assert [(event.kind, event.position_sec, event.received_sec) for event in received(made, [(0.0, 0.0)])] == made


def test_beats_that_a_later_report_made_needless_are_not_sent() -> None:
    kinds = [event.kind for event in received(playing(0, 60), [(0.0, 0.0), (8.0, 8.0)])]
    assert (kinds[0], kinds[-1]) == ("play", "ended")
    assert 2 < len(kinds) < len(playing(0, 60)) - 4


@pytest.mark.parametrize("tempo", [1.25, 4.0])
def test_a_page_that_plays_faster_is_refused_on_any_line(tempo: float) -> None:
    made = [(kind, position, at / tempo) for kind, position, at in playing(0, 60)]
    for ways in ([(0.0, 0.0)], [(6.0, 6.0)], [(6.0, 0.0), (0.0, 0.0)]):
        assert not listening.listening_of(received(made, ways), 60.0).complete
