"""Acts of people in a study, on a real database: who wins, what is kept, and that no path leaves the tables."""

from __future__ import annotations

import datetime as dt
import threading

import pytest
from sqlalchemy import select, text
from sqlalchemy.exc import DBAPIError
from tests.caimap_bench import StudyBench, description, one_verse

from music_evals.caimap import assurance, ledger
from music_evals.caimap.roles import ForbiddenError
from music_evals.caimap.storage.store import StaleError, Store, migrate, sqlite_url
from music_evals.caimap.storage.tables import SongRow, TaskRow
from music_evals.caimap.values import ScoreSheet, Song
from music_evals.caimap.work import accounts, annotating, inspecting, managing
from music_evals.caimap.work.desk import Settings
from music_evals.errors import (
    InvalidAnnotationError,
    InvalidInputError,
    MusicEvalsError,
)


def state(bench: StudyBench, song: str = "s1") -> str:
    with bench.store.reading() as session:
        return session.get(SongRow, song).state


def two_passes(bench: StudyBench, first, second) -> list[int]:
    numbers = []
    for who, given in ((bench.PRO, first), (bench.OTHER_PRO, second)):
        task = bench.take(who)
        annotating.submit(bench.desk, who, task.id, bench.version(TaskRow, task.id), given)
        bench.clock.wait(days=2)
        numbers.append(task.id)
    return numbers


def describe(bench: StudyBench) -> list[int]:
    numbers = []
    for who, group in ((bench.THIRD_PRO, "professional"), (bench.FAN, "amateur")):
        task = bench.take(who)
        bench.listen(who, task.id)
        annotating.submit(bench.desk, who, task.id, bench.version(TaskRow, task.id), description(group))
        numbers.append(task.id)
    return numbers


def whole_song(bench: StudyBench) -> None:
    bench.songs("s1")
    two_passes(bench, one_verse("春眠不觉晓"), one_verse("春眠不觉晓"))
    describe(bench)
    managing.decide(bench.desk, bench.ADMIN, "s1", bench.version(SongRow, "s1"))


@pytest.mark.requirement(number=3)
def test_a_song_passes_all_phases_and_is_paid(bench: StudyBench) -> None:
    whole_song(bench)
    assert state(bench) == "finished"
    (done,) = managing.finished_songs(bench.desk)
    assert done.structure == one_verse("春眠不觉晓")
    assert (done.professional_person, done.amateur_person) == (bench.THIRD_PRO, bench.FAN)
    assert set(done.structure_people) == {bench.PRO, bench.OTHER_PRO}
    owed = ledger.balances(managing.ledger_of(bench.desk, bench.ADMIN))
    assert owed == {bench.PRO: 1000, bench.OTHER_PRO: 1000, bench.THIRD_PRO: 1500, bench.FAN: 1000}
    assert managing.progress(bench.desk, bench.ADMIN).songs == {"finished": 1}


@pytest.mark.requirement(number=7)
def test_different_structures_go_to_an_inspector_and_the_first_of_two_wins(bench: StudyBench) -> None:
    bench.songs("s1")
    two_passes(bench, one_verse("春眠不觉晓"), one_verse("春眠不觉晓", label="chorus1"))
    assert inspecting.waiting(bench.desk, bench.INSPECTOR) == (["s1"], [])
    seen = bench.version(SongRow, "s1")
    inspecting.settle(bench.desk, bench.INSPECTOR, "s1", seen, one_verse("春眠不觉晓"))
    with pytest.raises(StaleError, match="still on the page"):
        inspecting.settle(bench.desk, bench.OTHER_INSPECTOR, "s1", seen, one_verse("春眠不觉晓", label="chorus1"))
    assert state(bench) == "describing"
    with bench.store.reading() as session:
        assert list(session.scalars(select(TaskRow.agreement).order_by(TaskRow.number))) == [1.0, 0.0]


@pytest.mark.requirement(number=4)
def test_a_song_is_skipped_and_the_administrator_decides(bench: StudyBench) -> None:
    bench.songs("s1", "s2")
    task = bench.take(bench.PRO)
    version = bench.version(TaskRow, task.id)
    annotating.screen(bench.desk, bench.PRO, task.id, version, reason="poor_audio")
    assert state(bench, task.song) == "screened"
    managing.decide_screening(bench.desk, bench.ADMIN, task.song, bench.version(SongRow, task.song), keep=True)
    again = bench.take(bench.PRO)
    assert again.id == task.id
    annotating.screen(bench.desk, bench.PRO, task.id, bench.version(TaskRow, task.id), reason="poor_audio")
    managing.decide_screening(bench.desk, bench.ADMIN, task.song, bench.version(SongRow, task.song), keep=False)
    assert state(bench, task.song) == "excluded"
    assert bench.take(bench.PRO).song != task.song


def test_a_description_without_listening_is_refused_and_may_be_started_again(bench: StudyBench) -> None:
    bench.songs("s1")
    two_passes(bench, one_verse("春眠不觉晓"), one_verse("春眠不觉晓"))
    task = bench.take(bench.FAN)
    annotating.record(bench.desk, bench.FAN, task.id, [{"kind": "play", "position_sec": 0}])
    bench.clock.wait(3)
    with pytest.raises(InvalidAnnotationError, match="first 30 s"):
        annotating.save(bench.desk, bench.FAN, task.id, bench.version(TaskRow, task.id), {"text": "字"})
    # a forged end of the song, 3 s after its beginning
    annotating.record(bench.desk, bench.FAN, task.id, [{"kind": "ended", "position_sec": 40}])
    with pytest.raises(InvalidAnnotationError, match="faster_than_time"):
        annotating.submit(bench.desk, bench.FAN, task.id, bench.version(TaskRow, task.id), description("amateur"))
    annotating.restart_listening(bench.desk, bench.FAN, task.id, bench.version(TaskRow, task.id))
    bench.listen(bench.FAN, task.id)
    version = annotating.save(bench.desk, bench.FAN, task.id, bench.version(TaskRow, task.id), {"text": "字"})
    assert annotating.heard(bench.desk, bench.FAN, task.id).complete
    submitted = annotating.submit(bench.desk, bench.FAN, task.id, version, description("amateur"))
    assert submitted.state == "accepted"


def test_a_double_submit_and_a_stale_page_are_refused(bench: StudyBench) -> None:
    bench.songs("s1")
    task = bench.take(bench.PRO)
    old = bench.version(TaskRow, task.id)
    assert annotating.save(bench.desk, bench.PRO, task.id, old, {"theme": "一"}) == old + 1
    with pytest.raises(StaleError):
        annotating.save(bench.desk, bench.PRO, task.id, old, {"theme": "二"})
    annotating.submit(bench.desk, bench.PRO, task.id, old + 1, one_verse("春眠不觉晓"))
    with pytest.raises(StaleError):
        annotating.submit(bench.desk, bench.PRO, task.id, old + 1, one_verse("处处闻啼鸟"))
    with bench.store.reading() as session:
        assert session.get(TaskRow, task.id).result == one_verse("春眠不觉晓").to_dict()


def test_a_place_is_given_once_to_many_who_ask_at_once(bench: StudyBench) -> None:
    assert_one_is_given(bench)


def assert_one_is_given(bench: StudyBench) -> None:
    bench.songs("s9")
    given, barrier = [], threading.Barrier(3)

    def ask(who: int) -> None:
        barrier.wait()
        try:
            given.append(annotating.take_next(bench.desk, who))
        except StaleError:  # where rows are locked, not the study, the index refuses who comes second
            given.append(None)

    threads = [threading.Thread(target=ask, args=(who,)) for who in (bench.PRO, bench.OTHER_PRO, bench.THIRD_PRO)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(given) == 3
    assert sum(task is not None for task in given) == 1


@pytest.mark.requirement(number=10)
def test_the_sample_is_scored_by_the_form_and_a_failing_one_is_made_again(bench: StudyBench) -> None:
    bench.desk.configure(Settings(share=1.0))
    bench.songs("s1")
    two_passes(bench, one_verse("春眠不觉晓"), one_verse("春眠不觉晓"))
    numbers = describe(bench)
    assert inspecting.waiting(bench.desk, bench.INSPECTOR) == ([], numbers)
    assert state(bench) == "assuring"
    full, none = ({key: most * share for key, most in assurance.FORMS[group].items()}
                  for group, share in (("professional", 1), ("amateur", 0.5)))  # fmt: skip
    good = ScoreSheet(numbers[0], bench.INSPECTOR, full)
    seen = bench.version(TaskRow, numbers[0])
    assert inspecting.score(bench.desk, good, seen) == "accepted"
    with pytest.raises(StaleError):
        inspecting.score(bench.desk, good, seen)
    bad = ScoreSheet(numbers[1], bench.INSPECTOR, none)
    assert inspecting.score(bench.desk, bad, bench.version(TaskRow, numbers[1])) == "rejected"
    assert state(bench) == "describing"
    assert annotating.take_next(bench.desk, bench.FAN) is None
    assert annotating.take_next(bench.desk, bench.OTHER_FAN) is not None


@pytest.mark.requirement(number=12)
def test_a_bad_week_is_discarded_and_the_song_still_finishes(bench: StudyBench) -> None:
    bench.songs("s1")
    two_passes(bench, one_verse("春眠不觉晓"), one_verse("春眠不觉晓", label="chorus1"))
    inspecting.settle(bench.desk, bench.INSPECTOR, "s1", bench.version(SongRow, "s1"), one_verse("春眠不觉晓"))
    bench.clock.wait(days=7)
    weeks = managing.close_week(bench.desk, bench.ADMIN, dt.date(2026, 3, 2))
    assert weeks[bench.PRO].grade_a == "I"
    assert weeks[bench.OTHER_PRO].excluded
    assert state(bench) == "structuring"
    assert annotating.take_next(bench.desk, bench.OTHER_PRO) is None
    owed = ledger.balances(managing.ledger_of(bench.desk, bench.ADMIN))
    assert (owed[bench.PRO], owed[bench.OTHER_PRO]) == (1100, 0)
    assert managing.close_week(bench.desk, bench.ADMIN, dt.date(2026, 3, 2)) == {}
    task = bench.take(bench.THIRD_PRO)
    annotating.submit(bench.desk, bench.THIRD_PRO, task.id, bench.version(TaskRow, task.id), one_verse("春眠不觉晓"))
    assert state(bench) == "describing"


def test_a_week_is_closed_on_its_monday_after_it_is_over(bench: StudyBench) -> None:
    for monday in (dt.date(2026, 3, 2), dt.date(2026, 2, 24)):
        with pytest.raises(InvalidInputError):
            managing.close_week(bench.desk, bench.ADMIN, monday)


def test_a_spot_check_returns_a_description_and_withdrawal_takes_data_back(bench: StudyBench) -> None:
    bench.songs("s1")
    two_passes(bench, one_verse("春眠不觉晓"), one_verse("春眠不觉晓"))
    describe(bench)
    with pytest.raises(InvalidInputError):
        managing.decide(bench.desk, bench.ADMIN, "s1", bench.version(SongRow, "s1"), returned=["experts"])
    managing.decide(bench.desk, bench.ADMIN, "s1", bench.version(SongRow, "s1"), returned=["amateur"])
    task = bench.take(bench.OTHER_FAN)
    bench.listen(bench.OTHER_FAN, task.id)
    version = bench.version(TaskRow, task.id)
    annotating.submit(bench.desk, bench.OTHER_FAN, task.id, version, description("amateur"))
    managing.decide(bench.desk, bench.ADMIN, "s1", bench.version(SongRow, "s1"))
    assert managing.finished_songs(bench.desk)[0].amateur_person == bench.OTHER_FAN
    managing.withdraw(bench.desk, bench.OTHER_FAN, bench.OTHER_FAN)
    assert managing.finished_songs(bench.desk) == []
    assert state(bench) == "describing"
    with pytest.raises(ForbiddenError):
        annotating.take_next(bench.desk, bench.OTHER_FAN)


def test_nothing_is_half_imported(bench: StudyBench) -> None:
    with pytest.raises(InvalidInputError, match="song 2, 's1'"):
        bench.songs("s1", "s1")
    assert managing.progress(bench.desk, bench.ADMIN).songs == {}


# --- accounts


@pytest.mark.requirement(number=1)
def test_invitations_work_once_and_need_consent(bench: StudyBench) -> None:
    token = accounts.invite(bench.desk, bench.ADMIN, "professional")
    with pytest.raises(InvalidInputError, match="consent"):
        accounts.accept(bench.desk, token, "林", "a long password", consents=False)
    who = accounts.accept(bench.desk, token, "林", "a long password", consents=True)
    visit = accounts.visit(bench.desk, accounts.sign_in(bench.desk, "林", "a long password"))
    assert visit is not None
    assert (visit.person.id, visit.person.role) == (who, "professional")
    with pytest.raises(InvalidInputError, match="not valid"):
        accounts.accept(bench.desk, token, "王", "a long password", consents=True)
    with pytest.raises(ForbiddenError):
        accounts.invite(bench.desk, bench.PRO, "administrator")
    late = accounts.invite(bench.desk, bench.ADMIN, "amateur")
    bench.clock.wait(days=15)
    with pytest.raises(InvalidInputError, match="not valid"):
        accounts.accept(bench.desk, late, "王", "a long password", consents=True)


def test_wrong_passwords_lock_an_account_for_a_while(bench: StudyBench) -> None:
    token = accounts.invite(bench.desk, bench.ADMIN, "amateur")
    accounts.accept(bench.desk, token, "林", "a long password", consents=True)
    for _ in range(accounts.MAX_FAILURES):
        with pytest.raises(accounts.SignInError):
            accounts.sign_in(bench.desk, "林", "another password")
    with pytest.raises(accounts.SignInError):
        accounts.sign_in(bench.desk, "林", "a long password")
    bench.clock.wait(minutes=16)
    session = accounts.sign_in(bench.desk, "林", "a long password")
    assert session != accounts.sign_in(bench.desk, "林", "a long password")
    bench.clock.wait(hours=13)
    assert accounts.visit(bench.desk, session) is None
    with pytest.raises(accounts.SignInError):
        accounts.sign_in(bench.desk, "nobody", "a long password")


# --- storage


def test_migrations_go_up_and_down_and_equal_the_models(tmp_path) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    from music_evals.caimap.storage.tables import Base

    url = sqlite_url(tmp_path / "study.db")
    migrate(url)
    store = Store(url)
    with store.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), Base.metadata) == []
    store.close()
    migrate(url, "base")
    store = Store(url)
    with store.engine.connect() as connection:
        left = connection.execute(text("SELECT name FROM sqlite_master WHERE type IN ('table', 'trigger')"))
        assert list(left.scalars()) == ["alembic_version"]
    store.close()
    migrate(url)


def test_a_study_is_kept_in_sqlite_or_postgresql() -> None:
    with pytest.raises(InvalidInputError):
        Store("mysql://somewhere/study")


def test_a_study_runs_on_postgresql(postgres: str) -> None:
    bench = StudyBench(postgres, Settings(share=0.0))
    try:
        whole_song(bench)
        assert state(bench) == "finished"
        seen = bench.version(SongRow, "s1")
        assert_one_is_given(bench)
        with pytest.raises(MusicEvalsError):
            managing.decide(bench.desk, bench.ADMIN, "s1", seen)
        with bench.store.engine.begin() as connection, pytest.raises(DBAPIError, match="never changed"):
            connection.execute(text("DELETE FROM audit"))
    finally:
        bench.store.close()
        migrate(postgres, "base")


@pytest.mark.requirement(number=16)
def test_a_person_is_given_the_cluster_that_they_have_had_least(bench: StudyBench) -> None:
    lines = ("春眠不觉晓", "处处闻啼鸟")
    clusters = {"a1": 0, "a2": 0, "a3": 0, "b1": 1, "n1": None, "n2": None}
    songs = [Song(name, lines, 40.0, rhymes=(True, True), cluster=cluster) for name, cluster in clusters.items()]
    managing.add_songs(bench.desk, bench.ADMIN, songs)
    had = []
    for _ in range(6):
        task = bench.take(bench.PRO)
        had.append(clusters[task.song])
        annotating.submit(bench.desk, bench.PRO, task.id, bench.version(TaskRow, task.id), one_verse("春眠不觉晓"))
    assert set(had[:3]) == {0, 1, None}  # songs without a cluster are one of their own
    assert sorted(map(str, had[3:5])) == ["0", "None"]
    assert had[5] == 0
