"""The player of notes, run in QuickJS with a clock and a sound card of our own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import music_evals.benchmark

PLAYER = Path(music_evals.benchmark.__file__).parent / "static" / "player.js"
STAGE = """
const told = [], frames = [], timers = [];
let time = 0;
const param = {setValueAtTime() {}, linearRampToValueAtTime() {}, exponentialRampToValueAtTime() {}};
globalThis.window = globalThis;
Object.defineProperty(globalThis, "performance", {value: {now: () => 1000 * time}});
globalThis.AudioContext = class {
  currentTime = 2; destination = {}; resume() {}
  createGain() { return {gain: param, connect: next => next}; }
  createOscillator() {
    const tone = {frequency: {}, connect: next => next, start: at => { tone.from = at; },
      stop: at => { if (at === undefined) told.push("cut"); else tone.to = at; }};
    told.push(tone);
    return tone;
  }
};
globalThis.requestAnimationFrame = call => frames.push(call);
globalThis.cancelAnimationFrame = () => {};
globalThis.setTimeout = (call, ms) => timers.push([call, ms]);
globalThis.clearTimeout = () => {};
"""


def run(script: str) -> Any:
    """Run a script after the player; it ends in an expression."""
    quickjs = pytest.importorskip("quickjs")
    code = f"{STAGE}\n{PLAYER.read_text(encoding='utf-8')}\nJSON.stringify((() => {{ {script} }})());"
    return json.loads(quickjs.Context().eval(code))


def test_a_span_cuts_what_sounds_into_it() -> None:
    found = run("return musicEvalsPlayer.heard([[0, 4, 60], [4, 4, 62], [8, 4, 64], [12, 4, 65]], 6, 10)")
    assert found == [[0, 2, 62], [2, 2, 64]]
    assert run("return musicEvalsPlayer.heard([[0, 4, 60], [4, 1, 62]])") == [[0, 4, 60], [4, 1, 62]]


def test_notes_have_their_pitch_and_time() -> None:
    low, high = run("musicEvalsPlayer.play([[0, 2, 57], [2, 4, 69]], 0.25); return told")
    assert (low["frequency"]["value"], high["frequency"]["value"]) == (220, 440)
    assert [low["from"], low["to"], high["from"], high["to"]] == pytest.approx([2.05, 2.55, 2.55, 3.55])


def test_it_ends_once_and_by_itself() -> None:
    script = """
      let ends = 0;
      musicEvalsPlayer.play([[0, 4, 60]], 0.5, {onEnd: () => { ends += 1; }});
      const [end, ms] = timers[0];
      end(); end(); musicEvalsPlayer.stop();
      return [ends, ms];
    """
    assert run(script) == [1, pytest.approx(2200)]


def test_two_never_sound_at_once() -> None:
    script = """
      const order = [];
      musicEvalsPlayer.play([[0, 4, 60]], 1, {onEnd: () => order.push("first ended")});
      musicEvalsPlayer.play([[0, 4, 62]], 1, {onEnd: () => order.push("second ended")});
      return [order, told.filter(one => one === "cut").length];
    """
    assert run(script) == [["first ended"], 1]


def test_the_playhead_keeps_to_the_span() -> None:
    script = """
      const steps = [];
      musicEvalsPlayer.play([[0, 4, 60], [4, 4, 62]], 0.5, {from: 4, onStep: step => steps.push(step)});
      for (const at of [0.05, 1.05, 9]) { time = at; frames.pop()(); }
      return steps;
    """
    assert run(script) == [4, 4, 6, 8]


def test_nothing_to_play_ends_too() -> None:
    assert run("musicEvalsPlayer.play([], 0.5); return [told.length, timers.length]") == [0, 1]
