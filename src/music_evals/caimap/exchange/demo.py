"""A study to look at: the 24 demo songs of CaiMD, played by our synthesiser, with work at every stage.

The recordings are tunes made from the lyrics, one note a character; nobody sings. The annotations are those of the demo
songs, handed in by the rules as people would.

Four weeks of work are done before it is opened, all of it by `caimap.services`. The clock of the study is moved from
Monday to Monday and ends at the present, so that grades, payments and agreement over weeks have something to show.
Whose turn it is, and how careful they are, is written here; who gets which song follows from the seed of the study.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from music_evals.annotations import Score, Tempo
from music_evals.caimap.domain import assurance, ledger, lexica
from music_evals.caimap.domain.grades import week_of
from music_evals.caimap.domain.ledger import Rates
from music_evals.caimap.domain.values import Description, ScoreSheet, Song, Structure, Task
from music_evals.caimap.exchange.rows import finished_of
from music_evals.caimap.services import accounts, annotating, inspecting, managing, oversight, training, views
from music_evals.caimap.services.study import Settings, StudyService, utc_now
from music_evals.caimap.storage.store import Store, migrate
from music_evals.caimap.storage.tables import SongRow, TaskRow

__all__ = [
    "HASTY",
    "PEOPLE",
    "WEEKS",
    "DemoClock",
    "DemoWork",
    "demo_rows",
    "demo_songs",
    "make_demo",
    "structure_of_row",
]

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


def demo_rows() -> list[dict[str, Any]]:
    """Return the rows of the demo songs; by eye every second line rhymes."""
    from music_evals.datasets.caimd.demo import demo_rows as rows_of_caimd

    # the data set works rhymes out, which needs the extra lyrics
    return rows_of_caimd(marks=lambda lines: [number % 2 == 1 for number in range(len(lines))])


def demo_songs(folder: str | os.PathLike[str], rows: Sequence[Mapping[str, Any]]) -> list[Song]:
    """Render the demo songs into a folder, and return them."""
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
    """Make the demo study: songs, people with one password, and work at every stage."""
    migrate(url)
    store = Store(url)
    present = present or utc_now()
    monday = dt.datetime.combine(week_of(present), dt.time(8), dt.UTC)
    clock = DemoClock(monday - dt.timedelta(weeks=WEEKS))
    service = StudyService(store, clock)
    try:
        # where there are people already, this is refused and nothing is changed
        people = {"admin": accounts.create_first_admin(service, "admin", password)}
        for name in [name for name in PEOPLE if name != "admin"]:
            token = accounts.invite(service, people["admin"], PEOPLE[name])
            people[name] = accounts.accept(service, token, name, password, consents=True)
        service.configure(Settings(seed=5, share=0.5, congruent_share=0.0, rates=Rates(currency="CNY")))
        rows = demo_rows()
        managing.add_songs(service, people["admin"], demo_songs(folder, rows))
        DemoWork(service, clock, people, {row["id"]: row for row in rows}, present=present).do()
    finally:
        store.close()


WEEKS: Final = 4
"""Of work before the present; the last of them is left for the administrator to close."""

HASTY: Final = "amateur3"
"""Who hands in two descriptions right after the song has ended, is warned twice, and is excluded for it."""

_PLAN: Final[tuple[tuple[Mapping[str, int], ...], ...]] = (
    (
        {"professional1": 3, "professional2": 3},
        {"professional3": 4, "professional1": 1},
        {"professional2": 3, "amateur1": 1, "amateur2": 1},
    ),
    (
        {"professional1": 3, "professional3": 4, "amateur1": 1},
        {"professional2": 4, HASTY: 2},
        {"professional1": 1, "amateur2": 1},
    ),
    (
        {"professional1": 3, "professional2": 2},
        {"professional3": 3, "professional2": 2, "amateur1": 4},
        {"professional1": 2, "professional3": 1, "amateur2": 2},
    ),
    (
        {"professional1": 2, "professional2": 2, "amateur1": 1},
        {"professional3": 3, "professional1": 1},
        {"amateur2": 1},
    ),
)
"""Of each week, of its days from Tuesday: who hands in how many tasks."""

_LEFT_OUT: Final = {1: "professional3", 3: "professional2"}
"""Week -> who skips a song in it; the administrator has decided on the first."""

_DIFFERING: Final = {"professional2": ("bridge1", 2), "professional3": ("ending1", 3)}
"""Who labels the first section otherwise than the others do, how, and of every how many of their structures."""

_CARE: Final = {"professional1": 0.1, "professional2": 0.4, "professional3": 0.5, "amateur1": 0.15, "amateur2": 0.5}
"""How often a part of the form is one point short of the most."""

_TRAINING_SONGS: Final = 3
_TRAINED: Final = {"professional1": 5, "professional2": 5, "professional3": 2, "amateur1": 2, "amateur2": 2, HASTY: 1}
_LOW_WEEK: Final = 2
_SEED: Final = 5
_ANSWERS: Final = (
    ("amateur1", "播放器可以快进吗？", "/work", "整首歌听完一遍之后就可以。"),
    ("amateur2", "流行和民谣都像的时候怎么选？", "/work", "选更接近的，在文字里说明。"),
    ("professional1", "间奏没有歌词，也要标出来吗？", "/work", "要，间奏可以没有歌词。"),
    ("professional2", "副歌第二次出现时歌词有改动。", "/work", "请标为另一个副歌。"),
    ("professional3", "这首歌录音太差，我跳过了。", "/work", "谢谢，我来决定。"),
    ("inspector1", "创新性怎样算满分？", "/inspect", "请看训练一轮的讨论。"),
    ("inspector2", "我想再看一遍评分表。", "/training", "训练页里可以再打开。"),
    (HASTY, "为什么我不能再领任务了？", "/feedback", "一周内两次警告，描述写得太快了。"),
)
"""Who asked what, where, and what the administrator answered."""


@dataclasses.dataclass
class DemoClock:
    """A clock that the demo moves, forwards alone."""

    now: dt.datetime

    def __call__(self) -> dt.datetime:
        """Return the moment."""
        return self.now

    def wait(self, **span: float) -> None:
        """Let time pass."""
        self.now += dt.timedelta(**span)

    def move_to(self, moment: dt.datetime) -> None:
        """Go on at a moment, unless it is over."""
        self.now = max(self.now, moment)


class DemoWork:
    """The people of the demo at work."""

    def __init__(
        self,
        service: StudyService,
        clock: DemoClock,
        people: Mapping[str, int],
        rows: Mapping[str, Mapping[str, Any]],
        *,
        present: dt.datetime,
    ) -> None:
        self.service, self.clock, self.people, self.rows = service, clock, people, rows
        self.names = {number: name for name, number in people.items()}
        self.start, self.present = clock.now, present
        self.structures: Counter[str] = Counter()

    @property
    def _admin(self) -> int:
        """Number of the administrator."""
        return self.people["admin"]

    def do(self) -> None:
        """Let four weeks pass: songs of the training set aside, a lexicon kept, then practice, work and today."""
        training.choose_songs(self.service, self._admin, _TRAINING_SONGS)
        captions = [row["professional"]["dimensions"]["musical_genres"]["tags"] for row in self.rows.values()]
        built = lexica.build_lexicon(captions, source="the demo songs of CaiMD", licence="Apache-2.0")
        managing.keep_lexica(self.service, self._admin, "professional", {"musical_genres": built})
        # let annotators practise; inspectors accept two of the structures, score, and discuss one item
        service, first, second = self.service, self.people["inspector1"], self.people["inspector2"]
        for trained, count in _TRAINED.items():
            for _ in range(count):
                self._hand_in(trained, self._begin(self.people[trained], training.take_training))
        for model in training.models(service, first)[:2]:
            training.set_model(service, first, model.song.id, model.version, structure_of_row(self.rows[model.song.id]))
        items = sorted(training.practice(service, first).scores)
        for item in items:
            training.score_item(service, self._sheet("inspector1", item, 0.2))
            training.score_item(service, self._sheet("inspector2", item, 0.3, strict=item == items[0]))
        training.discuss(service, second, items[0], "标签都很普通，创新性我只给一半。")
        training.discuss(service, first, items[0], "和歌曲相符，我觉得不该扣这么多。")
        training.discuss(service, self._admin, items[0], "创新性看是否说出这首歌的特点，请按这个再打一轮。")
        for number in range(WEEKS):
            self._week(number)
        # leave a day in the middle of its work: tasks handed in, one begun, questions asked and answered
        self.clock.move_to(self.present - dt.timedelta(hours=3))
        for name in ("professional1", "amateur1"):
            self._hand_in(name, self._begin(self.people[name]))
        who = self.people["professional3"]
        self._begin(who)
        for name, question, place, answer in _ANSWERS:
            managing.post_message(self.service, self.people[name], question, place=place)
            managing.post_message(self.service, self._admin, answer, thread=self.people[name])
        self.clock.move_to(self.present)

    # weeks

    def _week(self, number: int) -> None:
        """Let a week pass: tasks from Tuesday, inspection and decisions on Friday, the week before closed on Monday."""
        monday = self.start + dt.timedelta(weeks=number)
        if number:
            self.clock.move_to(monday + dt.timedelta(hours=8))
            last_monday = week_of(self.start + dt.timedelta(weeks=number - 1))
            managing.close_week(self.service, self._admin, last_monday)
            owed = ledger.balances(managing.ledger_of(self.service, self._admin))
            for person, cents in sorted(owed.items()) if number == 1 else ():  # what is owed after the first
                entry = ledger.Entry(person, "payment", -cents, f"银行转账，{last_monday} 那一周")
                managing.add_ledger_entry(self.service, self._admin, entry)
        for day, counts in enumerate(_PLAN[number], 1):
            self.clock.move_to(monday + dt.timedelta(days=day, hours=1))
            for name, count in counts.items():
                for _ in range(count):
                    self._hand_in(name, self._begin(self.people[name]))
        if number in _LEFT_OUT:
            self._skip(_LEFT_OUT[number])
        self.clock.move_to(monday + dt.timedelta(days=4, hours=8))
        last = number == WEEKS - 1
        self._inspect(leave=2 if last else 0, low=number == _LOW_WEEK)
        # the administrator lets songs in but a few, and leaves skipped ones out
        ready = views.decisions(self.service, self._admin)
        for song, version, _ in ready.checking[: len(ready.checking) - (2 if last else 0)]:
            managing.review_song(self.service, self._admin, song, version)
        for song, version, _ in () if last else ready.screened:
            managing.decide_screening(self.service, self._admin, song, version, keep=False)
        if number == 1:
            self._verify()

    # annotators

    def _begin(self, who: int, take: Callable[[StudyService, int], Task | None] = annotating.take_next) -> int:
        """Let somebody take and open their next task."""
        task = take(self.service, who)
        if task is None:
            raise LookupError("the demo gives its people more work than there is")
        annotating.open_task(self.service, who, task.id)
        return task.id

    def _hand_in(self, name: str, number: int) -> None:
        """Let somebody listen, write and hand in what they have begun."""
        who = self.people[name]
        view = views.task_view(self.service, who, number)
        row = self.rows[view.song.id]
        hasty = name == HASTY and not view.task.training
        if hasty:  # says of a song what fits the one before
            names = list(self.rows)
            row = self.rows[names[names.index(view.song.id) - 1]]
        annotation: Structure | Description
        annotation = self._structure(name, row) if view.task.kind == "structure" else _description(row, view.task.kind)
        self.clock.wait(seconds=0 if hasty else 2 + number % 7)
        # the song is heard whole
        duration_sec = view.song.duration_sec
        annotating.record(self.service, who, number, [{"kind": "play", "position_sec": 0.0}])
        for at in [*np.arange(10.0, duration_sec, 10.0), duration_sec]:
            self.clock.wait(seconds=10 if at < duration_sec else duration_sec % 10 or 10)
            kind = "ended" if at == duration_sec else "beat"
            annotating.record(self.service, who, number, [{"kind": kind, "position_sec": float(at)}])
        self.clock.wait(minutes=0 if hasty else 15 + number % 11)
        annotating.submit(self.service, who, number, self._version(number), annotation)

    def _structure(self, name: str, row: Mapping[str, Any]) -> Structure:
        """Return what somebody makes of a song; now and then they take its first section for another kind."""
        structure = structure_of_row(row)
        self.structures[name] += 1
        label, every = _DIFFERING.get(name, ("", 0))
        if every and self.structures[name] % every == 1:
            first = dataclasses.replace(structure.sections[0], label=label)
            structure = dataclasses.replace(structure, sections=(first, *structure.sections[1:]))
        return structure

    def _skip(self, name: str) -> None:
        """Let somebody work until a structure comes, and skip its song."""
        who = self.people[name]
        number = self._begin(who)
        while views.task_view(self.service, who, number).task.kind != "structure":
            self._hand_in(name, number)
            number = self._begin(who)
        annotating.screen(self.service, who, number, self._version(number), reason="poor_audio")

    # inspectors and the administrator

    def _inspect(self, leave: int, *, low: bool) -> None:
        """Settle and score in turn all that waits but a few; one description of somebody with two is bad."""
        turn = ("inspector1", "inspector2")
        songs, tasks = inspecting.waiting(self.service, self.people["inspector1"])
        for at, song in enumerate(songs[: len(songs) - leave]):
            who = self.people[turn[at % 2]]
            inspecting.settle(self.service, who, song, self._version(song), structure_of_row(self.rows[song]))
        authors = {number: views.task_view(self.service, self._admin, number).task.person for number in tasks}
        counts = Counter(authors.values())
        bad = next((task for task in tasks if counts[authors[task]] > 1), 0) if low else 0
        for at, number in enumerate(tasks[: len(tasks) - leave]):
            name = self.names[authors[number]]
            sheet = self._sheet(turn[at % 2], number, _CARE.get(name, 0.9), strict=number == bad)
            inspecting.score(self.service, sheet, self._version(number))

    def _sheet(self, name: str, number: int, short: float, *, strict: bool = False) -> ScoreSheet:
        """Fill a form in: a part is one point short of the most now and then, or all are half of it."""
        who = self.people[name]
        form = assurance.FORMS[views.task_view(self.service, who, number).task.kind]
        rng = np.random.default_rng([_SEED, number])
        lost = dict(zip(form, rng.random(len(form)) < short, strict=True))
        points = {key: float(most // 2 if strict else most - lost[key]) for key, most in form.items()}
        return ScoreSheet(number, who, points, "说得太笼统，请写出这首歌的特点。" if strict else "写得清楚。")

    def _verify(self) -> None:
        """Verify one score of each inspector and one settled structure again."""
        inspectors = set()
        for row in oversight.verifications(self.service, self._admin):
            if row.inspector not in inspectors:
                oversight.verify(self.service, self._sheet("admin", row.task, 0.4))
            inspectors.add(row.inspector)
        for settled in inspecting.settlements(self.service, self._admin)[:1]:
            inspecting.verify_settlement(
                self.service, self._admin, settled.song, structure_of_row(self.rows[settled.song])
            )

    def _version(self, row: int | str) -> int:
        """Return the version of a task, by its number, or of a song, by its id, as its page has it."""
        with self.service.store.reading() as session:
            if isinstance(row, str):
                return session.get_one(SongRow, row).version
            return session.get_one(TaskRow, row).version


def structure_of_row(row: Mapping[str, Any]) -> Structure:
    """Return the structure of a row of the data set."""
    theme = row["professional"]["dimensions"]["lyric_themes"]["text"] or row["title"]
    return dataclasses.replace(finished_of(row, licence="Apache-2.0").structure, theme=theme)


def _description(row: Mapping[str, Any], group: str) -> Description:
    """Return a description of a row, without the remarks on sound, for which pages have no fields."""
    description: Description = getattr(finished_of(row, licence="Apache-2.0"), group)
    effects = dataclasses.replace(description.effects, live_text="", lo_fi_text="")
    return dataclasses.replace(description, effects=effects)
