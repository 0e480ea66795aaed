"""Repeats, endings and jumps of MusicXML, gathered from all parts into the measures that they stand in."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from xml.etree import ElementTree as ET

from music_evals.symbolic.reading.written import Jump, WrittenMeasure

# attributes of <sound> that change the order of playing
SOUND_MARKS = ("coda", "dacapo", "dalsegno", "fine", "forward-repeat", "segno", "tocoda")
JUMP_WORDS = re.compile(r"(?:(?P<dacapo>dc|dacapo)|ds|dalsegno)(?:al(?P<goal>fine|coda))?")
MAX_PASSES = 10**9  # longer numbers are damage; what is played is bounded by `Limits`


class _JumpMark(NamedTuple):
    segno: str | None  # None: da capo
    goal: str  # "fine", "coda", or "" where the mark does not say


class PlayingMarks:
    """Writes the marks that change the order of playing into measures."""

    def __init__(self, measures: Sequence[WrittenMeasure]) -> None:
        self._measures = measures
        self.contradictions: list[str] = []  # what cannot be played as it stands, in words
        self.has_open_ending = False  # of the part that is being read
        self._coda_signs: set[int] = set()  # of these the standard does not say whether they leave or arrive
        self._jumps: dict[int, _JumpMark] = {}

    def read(self, index: int, element: ET.Element, *, is_at_end: bool) -> None:
        """Read a barline, direction or sound; signs at the end of a measure belong to the next one."""
        if element.tag == "barline":
            self._read_barline(index, element)
            return
        sounds = [element] if element.tag == "sound" else element.findall("sound")
        marks = {
            key: sound.get(key, "") for sound in sounds for key in SOUND_MARKS if sound.get(key) not in {None, "no"}
        }
        words = "".join(word.text or "" for word in element.iterfind("direction-type/words"))
        words = re.sub(r"[\W_]", "", words).lower()
        next_start = index + 1 if is_at_end else index
        if marks:
            passes = {sound.get("time-only", "1") for sound in sounds} - {"1"}
            if passes:
                self._contradict(f"a jump of measure {self._name(index)} is for pass {min(passes)} alone")
            self._read_sound(index, next_start, marks, words)
        elif element.tag == "direction":
            # read what is printed, where nothing says how it sounds
            has_segno, has_coda = (element.find(f"direction-type/{sign}") is not None for sign in ("segno", "coda"))
            if jump := JUMP_WORDS.fullmatch(words):
                self._set_jump(index, _JumpMark(None if jump["dacapo"] else "segno", jump["goal"] or ""))
            elif words in {"tocoda", "alcoda"} or (has_coda and words in {"to", "al"}):
                self._measures[index].to_coda = True
            elif words == "fine":
                self._measures[index].fine = True
            elif has_coda or words == "coda":
                self._coda_signs.add(min(next_start, len(self._measures) - 1))
            elif has_segno or words == "segno":
                self._set_segno(next_start, "segno")

    def finish(self) -> None:
        """Decide what could not be decided before all marks were read."""
        measures = self._measures
        codas = sorted(self._coda_signs | {index for index, measure in enumerate(measures) if measure.coda})
        has_to_coda = any(measure.to_coda for measure in measures)
        if not has_to_coda and len(codas) > 1 and codas[0] in self._coda_signs:
            # two bare signs: the music leaves at the first one
            measures[codas.pop(0)].to_coda = has_to_coda = True
        for index in codas:
            measures[index].coda = True
        for index, mark in self._jumps.items():
            measures[index].jump = Jump(mark.segno, mark.goal == "coda" or (not mark.goal and has_to_coda))
            if mark.goal == "coda" and not has_to_coda:
                self._contradict(f"measure {self._name(index)} leads to a coda, and none leaves for it")
            if mark.goal == "fine" and not any(measure.fine for measure in measures):
                self._contradict(f"measure {self._name(index)} leads to a fine that is not there")
        # a bracket that stops short of its repeat sign reaches to it, where the next ending follows the sign
        for index, measure in enumerate(measures):
            if not measure.ends_ending or measure.ends_repeat:
                continue
            sign = index + 1
            while sign < len(measures) and not measures[sign].ends_repeat and not _begins_anew(measures[sign]):
                sign += 1
            if sign < len(measures) - 1 and not _begins_anew(measures[sign]) and measures[sign + 1].ending - {1}:
                measure.ends_ending = False
        self._check_repeats()

    def _check_repeats(self) -> None:
        """Note a repeat that starts and does not end before another one starts."""
        start = None
        for index, measure in enumerate(self._measures):
            if measure.starts_repeat:
                if start is not None:
                    self._contradict(f"the repeat that starts in measure {self._name(start)} does not end")
                start = index
            if measure.ends_repeat:
                start = None

    def _read_barline(self, index: int, barline: ET.Element) -> None:
        location = barline.get("location", "right")
        repeat, ending = barline.find("repeat"), barline.find("ending")
        if location == "middle" and (repeat is not None or ending is not None):
            self._contradict(f"a repeat or an ending stands within measure {self._name(index)}")
            return
        next_start = index if location == "left" else index + 1
        if ending is not None:
            self._read_ending(index, ending)
        if barline.find("segno") is not None:
            self._set_segno(next_start, barline.get("segno", "segno"))
        if barline.find("coda") is not None:
            self._set_coda(next_start)
        if repeat is None:
            return
        if repeat.get("direction") == "forward":
            self._start_repeat(next_start)
        elif repeat.get("direction") == "backward":
            self._end_repeat(next_start - 1, repeat.get("times", "2").strip())
        else:
            self._contradict(f"a repeat of measure {self._name(index)} has the direction {repeat.get('direction')!r}")

    def _read_ending(self, index: int, ending: ET.Element) -> None:
        measure = self._measures[index]
        kind = ending.get("type")
        if kind == "start" or not self.has_open_ending:
            passes = self._passes(index, ending)
            if measure.ending and passes and passes != measure.ending:
                self._contradict(f"measure {self._name(index)} has two endings")
            measure.ending = measure.ending or passes
        self.has_open_ending = kind == "start"
        if kind in {"stop", "discontinue"}:
            measure.ends_ending = True

    def _passes(self, index: int, ending: ET.Element) -> frozenset[int]:
        """Return the passes in which an ending is played; Finale names a second one in its text alone."""
        number = ending.get("number", "").strip()  # one without a number is a first one
        if shown := re.fullmatch(r"\s*(\d{1,4})\.?\s*", ending.text or ""):
            number = shown[1]
        passes = frozenset(map(int, re.findall(r"\d{1,4}", number or "1")))
        if not passes or re.search(r"[^\d,.\s]", number) or min(passes) < 1:
            self._contradict(f"an ending of measure {self._name(index)} has the number {number!r}")
            return frozenset()
        return passes

    def _start_repeat(self, index: int) -> None:
        if index < len(self._measures):
            self._measures[index].starts_repeat = True
        else:
            self._contradict("a repeat starts at the end of the last measure")

    def _end_repeat(self, index: int, times: str) -> None:
        if index < 0:
            self._contradict("a repeat ends before the first measure")
        elif not times.isdecimal() or not 1 <= int(times[:20]) <= MAX_PASSES:
            self._contradict(f"measure {self._name(index)} is to be played {times[:20]!r} times")
        elif self._measures[index].ends_repeat not in {0, int(times)}:
            self._contradict(f"parts differ in how often measure {self._name(index)} is played")
        else:
            self._measures[index].ends_repeat = int(times)

    def _read_sound(self, index: int, next_start: int, marks: Mapping[str, str], words: str) -> None:
        if "forward-repeat" in marks:
            self._start_repeat(next_start)
        if "segno" in marks:
            self._set_segno(next_start, marks["segno"])
        if "coda" in marks:
            self._set_coda(next_start)
        if "tocoda" in marks:
            self._measures[index].to_coda = True
        if "fine" in marks:
            self._measures[index].fine = True
        if "dacapo" in marks or "dalsegno" in marks:
            jump = JUMP_WORDS.fullmatch(words)
            goal = (jump["goal"] or "") if jump else ""
            self._set_jump(index, _JumpMark(None if "dacapo" in marks else marks["dalsegno"], goal))

    def _set_segno(self, index: int, name: str) -> None:
        if index < len(self._measures):
            self._measures[index].segno = name

    def _set_coda(self, index: int) -> None:
        if index < len(self._measures):
            self._measures[index].coda = True

    def _set_jump(self, index: int, mark: _JumpMark) -> None:
        other = self._jumps.setdefault(index, mark)
        if (other.segno is None) != (mark.segno is None) or (other.goal and mark.goal and other.goal != mark.goal):
            self._contradict(f"measure {self._name(index)} has two jumps")
        self._jumps[index] = _JumpMark(other.segno, other.goal or mark.goal)

    def _name(self, index: int) -> str:
        return self._measures[index].name

    def _contradict(self, reason: str) -> None:
        self.contradictions.append(reason)


def _begins_anew(measure: WrittenMeasure) -> bool:
    return bool(measure.ending) or measure.starts_repeat
