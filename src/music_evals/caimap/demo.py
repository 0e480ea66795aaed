"""A study to look at: the 24 demo songs of CaiMD, played by our synthesiser, with work at every stage.

The recordings are tunes made from the lyrics, one note a character; nobody sings. The annotations are those of the demo
songs, handed in by the rules as people would.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from music_evals.annotations import AUDIO_EFFECTS, DIMENSIONS, Score, Tempo
from music_evals.caimap.storage.store import Store, migrate
from music_evals.caimap.storage.tables import TaskRow
from music_evals.caimap.values import Description, Effects, Section, Song, Structure, Tagged
from music_evals.caimap.work import accounts, annotating, managing
from music_evals.caimap.work.desk import Desk, Settings

__all__ = ["PEOPLE", "demo_songs", "make_demo"]

PEOPLE: Final = {
    "admin": "administrator",
    "inspector1": "inspector",
    "inspector2": "inspector",
    "professional1": "professional",
    "professional2": "professional",
    "professional3": "professional",
    "amateur1": "amateur",
    "amateur2": "amateur",
}
"""Name of an account of the demo -> its role."""

_PENTATONIC: Final = (60, 62, 64, 67, 69, 72, 74)
_NOTES: Final = 60
_RATE: Final = 22_050
_CLUSTERS: Final = 4


def demo_songs(folder: str | os.PathLike[str], n: int = 24) -> list[Song]:
    """Render the demo songs into a folder, and return them.

    Parameters
    ----------
    folder
        For the recordings, about 20 s each; it is made.
    n
        How many songs.

    """
    import soundfile

    from music_evals.audio.rendering import render_additive

    Path(folder).mkdir(parents=True, exist_ok=True)
    songs = []
    for number, row in enumerate(_rows()[:n]):
        truth = _structure(row)
        lines = tuple(line for section in truth.sections for line in section.lines)
        rhymes = tuple(pattern.endswith("R") for section in truth.sections for pattern in section.rhyme)
        sound = render_additive(_tune(lines, number), seed=number, sample_rate=_RATE)
        name = f"{row['id']}.flac"
        soundfile.write(Path(folder) / name, sound, _RATE)
        songs.append(
            Song(
                id=row["id"],
                lines=lines,
                duration_sec=len(sound) / _RATE,
                title=row["title"],
                artist=tuple(row["artist"]),
                genre=row["genre"],
                album=row["album"],
                audio=name,
                cluster=number % _CLUSTERS,
                rhymes=rhymes,
                licence="Apache-2.0",
            )
        )
    return songs


def _rows() -> list[dict[str, Any]]:
    from music_evals.datasets.caimd.demo import demo_rows

    # marks by eye: every second line; the demo of the data set works rhymes out, which needs the extra lyrics
    return demo_rows(marks=lambda lines: [number % 2 == 1 for number in range(len(lines))])


def _tune(lines: tuple[str, ...], number: int) -> Score:
    """Return a tune with one note a character and a rest after each line."""
    from music_evals.symbolic.notes import make_notes

    onsets, pitches, at = [], [], 0
    for line in lines:
        for letter in line.replace(" ", ""):
            onsets.append(at)
            pitches.append(_PENTATONIC[(ord(letter) + number) % len(_PENTATONIC)])
            at += 1
        at += 1
    notes = make_notes(onsets[:_NOTES], [1] * len(onsets[:_NOTES]), pitches[:_NOTES])
    return Score(notes, 2, tempos=(Tempo(0, 96.0),), voices=("melody",), programs=((0, 40, 73, 24)[number % 4],))


def make_demo(folder: str | os.PathLike[str], url: str, password: str, n: int = 24) -> None:
    """Make the demo study: songs, people with one password, and work at every stage.

    Parameters
    ----------
    folder
        For the recordings.
    url
        Of an empty database.
    password
        Of all accounts of `PEOPLE`.
    n
        How many songs, at least 12.

    """
    migrate(url)
    store = Store(url)
    clock = _Clock(dt.datetime.now(dt.UTC) - dt.timedelta(days=9))
    desk = Desk(store, clock)
    try:
        desk.configure(Settings(seed=5, share=0.3))
        people = _people(desk, password)
        songs = demo_songs(folder, n)
        managing.add_songs(desk, people["admin"], songs)
        _Work(desk, clock, people, {song.id: song for song in songs}).do()
    finally:
        store.close()


@dataclasses.dataclass
class _Clock:
    now: dt.datetime

    def __call__(self) -> dt.datetime:
        return self.now

    def wait(self, **span: float) -> None:
        self.now += dt.timedelta(**span)


def _people(desk: Desk, password: str) -> dict[str, int]:
    numbers = {"admin": accounts.found(desk, "admin", password)}
    for name, role in PEOPLE.items():
        if name != "admin":
            token = accounts.invite(desk, numbers["admin"], role)
            numbers[name] = accounts.accept(desk, token, name, password, consents=True)
    return numbers


class _Work:
    """What people of the demo have done before it is opened."""

    def __init__(self, desk: Desk, clock: _Clock, people: Mapping[str, int], songs: Mapping[str, Song]) -> None:
        self.desk, self.clock, self.people, self.songs = desk, clock, people, songs
        self.rows = {row["id"]: row for row in _rows()}

    def do(self) -> None:
        for _ in range(8):
            self.annotate("professional1")
        self.clock.wait(days=2)
        for number in range(8):
            self.annotate("professional2", other=number < 2)
        for name, count in (("professional3", 9), ("amateur1", 5)):
            for _ in range(count):
                self.annotate(name)
        who = self.people["professional3"]
        number = self.begin(who)
        if self.kind(number)[0] == "structure":
            annotating.screen(self.desk, who, number, self.kind(number)[2], reason="poor_audio")
        managing.say(self.desk, self.people["amateur1"], "播放器可以快进吗？", place="/work")

    def begin(self, who: int) -> int:
        task = annotating.take_next(self.desk, who)
        if task is None:
            raise LookupError("the demo gives its people more work than there is")
        annotating.open_task(self.desk, who, task.id)
        return task.id

    def kind(self, number: int) -> tuple[str, str, int]:
        with self.desk.store.reading() as session:
            row = session.get_one(TaskRow, number)
            return row.kind, row.song, row.version

    def annotate(self, name: str, *, other: bool = False) -> None:
        who = self.people[name]
        number = self.begin(who)
        kind, song, version = self.kind(number)
        given: Structure | Description
        if kind == "structure":
            given = _structure(self.rows[song])
            if other:  # one label differs, so that an inspector has something to settle
                first = dataclasses.replace(given.sections[0], label="bridge1")
                given = dataclasses.replace(given, sections=(first, *given.sections[1:]))
        else:
            given = _description(self.rows[song], kind)
            self.listen(who, number, self.songs[song].duration_sec)
        self.clock.wait(minutes=20)
        annotating.submit(self.desk, who, number, version, given)

    def listen(self, who: int, number: int, duration_sec: float) -> None:
        annotating.record(self.desk, who, number, [{"kind": "play", "position_sec": 0.0}])
        for at in [*np.arange(5.0, duration_sec, 5.0), duration_sec]:
            self.clock.wait(seconds=5)
            kind = "ended" if at == duration_sec else "beat"
            annotating.record(self.desk, who, number, [{"kind": kind, "position_sec": float(at)}])


def _structure(row: Mapping[str, Any]) -> Structure:
    sections = [Section(part["label"], tuple(part["lines"]), tuple(part["rhyme"])) for part in row["structure"]]
    theme = row["professional"]["dimensions"]["lyric_themes"]["text"] or row["title"]
    return Structure(tuple(sections), theme)


def _description(row: Mapping[str, Any], group: str) -> Description:
    given = row[group]["dimensions"]
    dimensions = {
        name: Tagged(tuple(given[name]["tags"]), given[name]["text"] or "")
        for name in DIMENSIONS[group]
        if name != AUDIO_EFFECTS
    }
    sound = given[AUDIO_EFFECTS]
    effects = Effects(sound["sound_quality"] != "unclear", bool(sound["live"]), bool(sound["lo_fi"]))
    return Description(group, row[group]["overall_text"], dimensions, effects)
