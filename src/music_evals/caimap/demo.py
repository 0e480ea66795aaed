"""A study to look at: the 24 demo songs of CaiMD, played by our synthesiser, with work at every stage.

The recordings are tunes made from the lyrics, one note a character; nobody sings. The annotations are those of the demo
songs, handed in by the rules as people would (`demo_work`).
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from music_evals.annotations import Score, Tempo
from music_evals.caimap.demo_work import WEEKS, DemoClock, DemoWork, structure_of_row
from music_evals.caimap.grades import week_of
from music_evals.caimap.ledger import Rates
from music_evals.caimap.storage.store import Store, migrate
from music_evals.caimap.values import Song
from music_evals.caimap.work import accounts, managing
from music_evals.caimap.work.service import Settings, StudyService, utc_now

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
    "amateur3": "amateur",
}
"""Name of an account of the demo -> its role."""

_PENTATONIC: Final = (60, 62, 64, 67, 69, 72, 74)
_NOTES: Final = 60
_RATE: Final = 22_050
_CLUSTERS: Final = 4


def demo_songs(folder: str | os.PathLike[str], rows: Sequence[Mapping[str, Any]]) -> list[Song]:
    """Render the demo songs into a folder, and return them.

    Parameters
    ----------
    folder
        For the recordings, about 20 s each; it is made.
    rows
        Of the data set.

    """
    import soundfile

    from music_evals.audio.rendering import render_additive

    Path(folder).mkdir(parents=True, exist_ok=True)
    songs = []
    for number, row in enumerate(rows):
        truth = structure_of_row(row)
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


def make_demo(folder: str | os.PathLike[str], url: str, password: str, *, present: dt.datetime | None = None) -> None:
    """Make the demo study: songs, people with one password, and work at every stage.

    Parameters
    ----------
    folder
        For the recordings.
    url
        Of an empty database.
    password
        Of all accounts of `PEOPLE`.
    present
        Moment at which the work of its people ends, in UTC; now if left out.

    """
    migrate(url)
    store = Store(url)
    present = present or utc_now()
    monday = dt.datetime.combine(week_of(present), dt.time(8), dt.UTC)
    clock = DemoClock(monday - dt.timedelta(weeks=WEEKS))
    service = StudyService(store, clock)
    try:
        people = _people(service, password)  # where there are people already, this is refused and nothing is changed
        service.configure(Settings(seed=5, share=0.5, congruent_share=0.0, rates=Rates(currency="CNY")))
        rows = _rows()
        managing.add_songs(service, people["admin"], demo_songs(folder, rows))
        DemoWork(service, clock, people, {row["id"]: row for row in rows}, present=present).do()
    finally:
        store.close()


def _people(service: StudyService, password: str) -> dict[str, int]:
    numbers = {"admin": accounts.create_first_admin(service, "admin", password)}
    for name, role in PEOPLE.items():
        if name != "admin":
            token = accounts.invite(service, numbers["admin"], role)
            numbers[name] = accounts.accept(service, token, name, password, consents=True)
    return numbers
