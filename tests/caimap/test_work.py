"""Acts of people in a study, on a real database: who wins, what is kept, and that no path leaves the tables."""

from __future__ import annotations

import datetime as dt
import threading

import pytest
from sqlalchemy import select, text
from sqlalchemy.exc import DBAPIError
from tests.caimap_bench import StudyBench, description, one_verse

from music_evals.caimap.domain import assurance, ledger
from music_evals.caimap.domain.machine import ForbiddenError, ForbiddenStepError
from music_evals.caimap.domain.values import ScoreSheet, Song
from music_evals.caimap.services import accounts, annotating, inspecting, managing, oversight, training, views
from music_evals.caimap.services.study import Settings
from music_evals.caimap.storage.store import StaleError, Store, migrate, sqlite_url
from music_evals.caimap.storage.tables import EventRow, MessageRow, SessionRow, SheetRow, SongRow, TaskRow, WarningRow
from music_evals.errors import InvalidAnnotationError, InvalidInputError, MusicEvalsError


def state(bench: StudyBench, song: str = "s1") -> str:
    with bench.store.reading() as session:
        return session.get(SongRow, song).state


def two_passes(bench: StudyBench, first, second) -> list[int]:
    numbers = []
    for who, given in ((bench.PRO, first), (bench.OTHER_PRO, second)):
        task = bench.take(who)
        annotating.submit(bench.service, who, task.id, bench.version(TaskRow, task.id), given)
        bench.clock.wait(days=2)
        numbers.append(task.id)
    return numbers


def describe(bench: StudyBench) -> list[int]:
    numbers = []
    for who, group in ((bench.THIRD_PRO, "professional"), (bench.FAN, "amateur")):
        task = bench.take(who)
        bench.listen(who, task.id)
        annotating.submit(bench.service, who, task.id, bench.version(TaskRow, task.id), description(group))
        numbers.append(task.id)
    return numbers


def whole_song(bench: StudyBench) -> None:
    bench.songs("s1")
    two_passes(bench, one_verse("春眠不觉晓"), one_verse("春眠不觉晓"))
    describe(bench)
    managing.review_song(bench.service, bench.ADMIN, "s1", bench.version(SongRow, "s1"))


@pytest.mark.requirement(number=3)
def test_a_song_passes_all_phases_and_is_paid(bench: StudyBench) -> None:
    whole_song(bench)
    assert state(bench) == "finished"
    (done,) = managing.finished_songs(bench.service)
    assert done.structure == one_verse("春眠不觉晓")
    assert (done.professional_person, done.amateur_person) == (bench.THIRD_PRO, bench.FAN)
    assert set(done.structure_people) == {bench.PRO, bench.OTHER_PRO}
    owed = ledger.balances(managing.ledger_of(bench.service, bench.ADMIN))
    assert owed == {bench.PRO: 1000, bench.OTHER_PRO: 1000, bench.THIRD_PRO: 1500, bench.FAN: 1000}
    assert managing.progress(bench.service, bench.ADMIN).songs == {"finished": 1}
    assert warnings_given(bench) == []


@pytest.mark.requirement(number=7)
def test_different_structures_go_to_an_inspector_and_the_first_of_two_wins(bench: StudyBench) -> None:
    bench.songs("s1")
    two_passes(bench, one_verse("春眠不觉晓"), one_verse("春眠不觉晓", label="chorus1"))
    assert inspecting.waiting(bench.service, bench.INSPECTOR) == (["s1"], [])
    seen = bench.version(SongRow, "s1")
    inspecting.settle(bench.service, bench.INSPECTOR, "s1", seen, one_verse("春眠不觉晓"))
    with pytest.raises(StaleError):
        inspecting.settle(bench.service, bench.OTHER_INSPECTOR, "s1", seen, one_verse("春眠不觉晓", label="chorus1"))
    assert state(bench) == "describing"
    with bench.store.reading() as session:
        assert list(session.scalars(select(TaskRow.agreement).order_by(TaskRow.number))) == [1.0, 0.0]


@pytest.mark.requirement(number=4)
def test_a_song_is_skipped_and_the_administrator_decides(bench: StudyBench) -> None:
    bench.songs("s1", "s2")
    task = bench.take(bench.PRO)
    version = bench.version(TaskRow, task.id)
    annotating.screen(bench.service, bench.PRO, task.id, version, reason="poor_audio")
    assert state(bench, task.song) == "screened"
    managing.decide_screening(bench.service, bench.ADMIN, task.song, bench.version(SongRow, task.song), keep=True)
    again = bench.take(bench.PRO)
    assert again.id == task.id
    annotating.screen(bench.service, bench.PRO, task.id, bench.version(TaskRow, task.id), reason="poor_audio")
    managing.decide_screening(bench.service, bench.ADMIN, task.song, bench.version(SongRow, task.song), keep=False)
    assert state(bench, task.song) == "excluded"
    assert bench.take(bench.PRO).song != task.song


def test_work_on_a_song_that_is_left_out_is_paid_and_its_open_tasks_end(bench: StudyBench) -> None:
    bench.songs("s1")
    task = bench.take(bench.PRO)
    version = bench.version(TaskRow, task.id)
    annotating.submit(bench.service, bench.PRO, task.id, version, one_verse("春眠不觉晓"))
    bench.clock.wait(days=2)
    second = bench.take(bench.OTHER_PRO)
    annotating.screen(bench.service, bench.OTHER_PRO, second.id, bench.version(TaskRow, second.id), reason="poor_audio")
    managing.decide_screening(bench.service, bench.ADMIN, "s1", bench.version(SongRow, "s1"), keep=False)
    with bench.store.reading() as session:
        states = list(session.scalars(select(TaskRow.state).order_by(TaskRow.id)))
    assert states == ["accepted", "cancelled"]
    assert ledger.balances(managing.ledger_of(bench.service, bench.ADMIN)) == {bench.PRO: 1000}
    monday = bench.clock().date() - dt.timedelta(days=bench.clock().weekday())
    bench.clock.wait(days=7)
    assert bench.PRO not in managing.close_week(bench.service, bench.ADMIN, monday)  # nobody judged it


def sampled(bench: StudyBench) -> int:
    """Hand in a description that an inspector has to score, and return its task."""
    bench.service.configure(Settings(share=1.0, congruent_share=0.0))
    bench.songs("s1")
    two_passes(bench, one_verse("春眠不觉晓"), one_verse("春眠不觉晓"))
    task = bench.take(bench.FAN)
    bench.listen(bench.FAN, task.id)
    annotating.submit(bench.service, bench.FAN, task.id, bench.version(TaskRow, task.id), description("amateur"))
    return int(task.id)


def test_descriptions_of_a_song_that_is_left_out_wait_for_nobody(bench: StudyBench) -> None:
    number = sampled(bench)
    working = bench.take(bench.THIRD_PRO)
    managing.withdraw(bench.service, bench.ADMIN, bench.PRO)  # the song is structured again
    with bench.store.writing() as session:
        found = session.get(SongRow, "s1")
        assert found.state == "structuring"
        found.state = "screened"  # by whoever takes the place that became free
    managing.decide_screening(bench.service, bench.ADMIN, "s1", bench.version(SongRow, "s1"), keep=False)
    assert inspecting.waiting(bench.service, bench.INSPECTOR) == ([], [])
    with bench.store.reading() as session:
        assert session.get(TaskRow, number).state == "accepted"
        assert session.get(TaskRow, working.id).state == "cancelled"
    assert ledger.balances(managing.ledger_of(bench.service, bench.ADMIN))[bench.FAN] == 1000


def test_an_earlier_sitting_that_got_further_does_not_break_a_new_one(bench: StudyBench) -> None:
    managing.add_songs(bench.service, bench.ADMIN, [Song("s1", ("春眠不觉晓",), 200.0, rhymes=(True,))])
    two_passes(bench, one_verse("春眠不觉晓"), one_verse("春眠不觉晓"))
    task = bench.take(bench.FAN)

    def play(upto: int) -> None:
        annotating.record(bench.service, bench.FAN, task.id, [{"kind": "play", "position_sec": 0}])
        for at in range(5, upto + 1, 5):
            bench.clock.wait(5)
            annotating.record(bench.service, bench.FAN, task.id, [{"kind": "beat", "position_sec": at}])

    play(100)
    annotating.record(bench.service, bench.FAN, task.id, [{"kind": "pause", "position_sec": 100}])
    bench.clock.wait(3600)  # another sitting
    play(35)
    annotating.save(bench.service, bench.FAN, task.id, bench.version(TaskRow, task.id), {"text": "字"})
    for at in range(40, 201, 5):
        bench.clock.wait(5)
        annotating.record(bench.service, bench.FAN, task.id, [{"kind": "beat", "position_sec": at}])
    found = annotating.task_listening(bench.service, bench.FAN, task.id)
    assert (found.complete, found.problems) == (True, ())


def test_authors_read_the_score_that_counts_alone(bench: StudyBench) -> None:
    number = sampled(bench)
    full = dict(assurance.FORMS["amateur"])
    version = bench.version(TaskRow, number)
    inspecting.score(bench.service, ScoreSheet(number, bench.INSPECTOR, full, "good"), version)
    oversight.verify(bench.service, ScoreSheet(number, bench.ADMIN, dict.fromkeys(full, 0), "far too generous"))
    assert [remark for _, remark in views.task_view(bench.service, bench.FAN, number).remarks] == ["good"]


def test_songs_for_training_are_no_part_of_the_progress(bench: StudyBench) -> None:
    bench.songs("s1", "s2", "s3")
    training.choose_songs(bench.service, bench.ADMIN, 1)
    assert sum(managing.progress(bench.service, bench.ADMIN).songs.values()) == 2


def test_a_description_without_listening_is_refused_and_may_be_started_again(bench: StudyBench) -> None:
    bench.songs("s1")
    two_passes(bench, one_verse("春眠不觉晓"), one_verse("春眠不觉晓"))
    task = bench.take(bench.FAN)
    annotating.record(bench.service, bench.FAN, task.id, [{"kind": "play", "position_sec": 0}])
    bench.clock.wait(3)
    with pytest.raises(InvalidAnnotationError, match="first 30 s"):
        annotating.save(bench.service, bench.FAN, task.id, bench.version(TaskRow, task.id), {"text": "字"})
    # a forged end of the song, 3 s after its beginning
    annotating.record(bench.service, bench.FAN, task.id, [{"kind": "ended", "position_sec": 40}])
    with pytest.raises(InvalidAnnotationError, match="faster_than_time"):
        annotating.submit(bench.service, bench.FAN, task.id, bench.version(TaskRow, task.id), description("amateur"))
    annotating.restart_listening(bench.service, bench.FAN, task.id, bench.version(TaskRow, task.id))
    bench.listen(bench.FAN, task.id)
    version = annotating.save(bench.service, bench.FAN, task.id, bench.version(TaskRow, task.id), {"text": "字"})
    assert annotating.task_listening(bench.service, bench.FAN, task.id).complete
    submitted = annotating.submit(bench.service, bench.FAN, task.id, version, description("amateur"))
    assert submitted.state == "accepted"


def warnings_given(bench: StudyBench) -> list[tuple[int, str]]:
    with bench.store.reading() as session:
        return [tuple(row) for row in session.execute(select(WarningRow.person, WarningRow.kind))]


@pytest.mark.slow
def test_who_listens_and_writes_slowly_is_not_warned(bench: StudyBench) -> None:
    # what a page sends: the player's events, the first word, and drafts while somebody writes for ten minutes
    bench.songs("s1")
    two_passes(bench, one_verse("春眠不觉晓"), one_verse("春眠不觉晓"))
    task = bench.take(bench.FAN)
    annotating.record(bench.service, bench.FAN, task.id, [{"kind": "play", "position_sec": 0}])
    version = bench.version(TaskRow, task.id)
    for at in range(5, 41, 5):
        bench.clock.wait(5)
        annotating.record(bench.service, bench.FAN, task.id, [{"kind": "beat", "position_sec": at}])
        if at == 30:
            version = annotating.save(bench.service, bench.FAN, task.id, version, {"overall_text": "字"})
            annotating.record(bench.service, bench.FAN, task.id, [{"kind": "write", "position_sec": 30}])
    annotating.record(bench.service, bench.FAN, task.id, [{"kind": "ended", "position_sec": 40}])
    for saved in range(120):
        bench.clock.wait(5)
        version = annotating.save(bench.service, bench.FAN, task.id, version, {"overall_text": "字" * saved})
    annotating.submit(bench.service, bench.FAN, task.id, version, description("amateur"))
    assert warnings_given(bench) == []
    (row,) = [row for row in oversight.habits(bench.service, bench.ADMIN) if row.person == bench.FAN]
    assert row.page_min == pytest.approx(640 / 60)


@pytest.mark.slow
def test_a_task_warns_once_and_restarting_to_listen_takes_no_time_off(bench: StudyBench) -> None:
    bench.songs("s1", "s2")
    for _ in range(2):
        for who in (bench.PRO, bench.OTHER_PRO):
            task = bench.take(who)
            version = bench.version(TaskRow, task.id)
            annotating.submit(bench.service, who, task.id, version, one_verse("春眠不觉晓"))
        bench.clock.wait(days=2)
    tasks = {}
    for who in (bench.FAN, bench.OTHER_FAN):
        tasks[who] = task = bench.take(who)
        for _ in range(25 * (who == bench.FAN)):
            for kind in ("play", "pause"):
                annotating.record(bench.service, who, task.id, [{"kind": kind, "position_sec": 0}])
        if who == bench.OTHER_FAN:  # listens twice, writes nothing in between
            bench.listen(who, task.id)
            annotating.restart_listening(bench.service, who, task.id, bench.version(TaskRow, task.id))
        annotating.record(bench.service, who, task.id, [{"kind": "play", "position_sec": 0}])
        for at in range(5, 41, 5):
            bench.clock.wait(5)
            annotating.record(bench.service, who, task.id, [{"kind": "beat", "position_sec": at}])
        annotating.submit(bench.service, who, task.id, bench.version(TaskRow, task.id), description("amateur"))
    assert warnings_given(bench) == [(bench.FAN, "short_visit")]  # restless too, and warned of it once


def test_a_double_submit_and_a_stale_page_are_refused(bench: StudyBench) -> None:
    bench.songs("s1")
    task = bench.take(bench.PRO)
    old = bench.version(TaskRow, task.id)
    assert annotating.save(bench.service, bench.PRO, task.id, old, {"theme": "一"}) == old + 1
    with pytest.raises(StaleError):
        annotating.save(bench.service, bench.PRO, task.id, old, {"theme": "二"})
    annotating.submit(bench.service, bench.PRO, task.id, old + 1, one_verse("春眠不觉晓"))
    with pytest.raises(StaleError):
        annotating.submit(bench.service, bench.PRO, task.id, old + 1, one_verse("处处闻啼鸟"))
    with bench.store.reading() as session:
        assert session.get(TaskRow, task.id).result == one_verse("春眠不觉晓").to_dict()


def test_a_place_is_given_once_to_many_who_ask_at_once(bench: StudyBench) -> None:
    assert_one_is_given(bench)


def assert_one_is_given(bench: StudyBench) -> None:
    bench.songs("s9")
    given, barrier = [], threading.Barrier(3)

    def ask(who: int) -> None:
        barrier.wait()
        given.append(annotating.take_next(bench.service, who))

    threads = [threading.Thread(target=ask, args=(who,)) for who in (bench.PRO, bench.OTHER_PRO, bench.THIRD_PRO)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(given) == 3
    assert sum(task is not None for task in given) == 1


@pytest.mark.requirement(number=10)
def test_the_sample_is_scored_by_the_form_and_a_failing_one_is_made_again(bench: StudyBench) -> None:
    bench.service.configure(Settings(share=1.0, congruent_share=0.0))
    bench.songs("s1")
    two_passes(bench, one_verse("春眠不觉晓"), one_verse("春眠不觉晓"))
    numbers = describe(bench)
    assert inspecting.waiting(bench.service, bench.INSPECTOR) == ([], numbers)
    assert state(bench) == "assuring"
    full, none = ({key: most * share for key, most in assurance.FORMS[group].items()}
                  for group, share in (("professional", 1), ("amateur", 0.5)))  # fmt: skip
    good = ScoreSheet(numbers[0], bench.INSPECTOR, full)
    seen = bench.version(TaskRow, numbers[0])
    assert inspecting.score(bench.service, good, seen) == "accepted"
    with pytest.raises(StaleError):
        inspecting.score(bench.service, good, seen)
    bad = ScoreSheet(numbers[1], bench.INSPECTOR, none)
    assert inspecting.score(bench.service, bad, bench.version(TaskRow, numbers[1])) == "rejected"
    assert state(bench) == "describing"
    assert annotating.take_next(bench.service, bench.FAN) is None
    assert annotating.take_next(bench.service, bench.OTHER_FAN) is not None


@pytest.mark.slow
def test_one_of_five_descriptions_of_everybody_is_scored(bench: StudyBench) -> None:
    bench.service.configure(Settings(seed=1, share=0.2, congruent_share=0.0))
    bench.songs(*(f"s{number}" for number in range(10)))
    with bench.store.writing() as session:
        for song in session.scalars(select(SongRow)):
            song.state = "describing"
    for who, group in ((bench.FAN, "amateur"), (bench.OTHER_FAN, "amateur"), (bench.PRO, "professional")):
        states = []
        for _ in range(5):
            task = bench.take(who)
            bench.listen(who, task.id)
            version = bench.version(TaskRow, task.id)
            states.append(annotating.submit(bench.service, who, task.id, version, description(group)).state)
        assert states.count("sampled") in {1, 2}  # that of the block, and perhaps one drawn by itself
        assert states.count("accepted") + states.count("sampled") == 5


@pytest.mark.requirement(number=12)
def test_a_bad_week_is_discarded_and_the_song_still_finishes(bench: StudyBench) -> None:
    bench.songs("s1")
    two_passes(bench, one_verse("春眠不觉晓"), one_verse("春眠不觉晓", label="chorus1"))
    inspecting.settle(bench.service, bench.INSPECTOR, "s1", bench.version(SongRow, "s1"), one_verse("春眠不觉晓"))
    bench.clock.wait(days=7)
    weeks = managing.close_week(bench.service, bench.ADMIN, dt.date(2026, 3, 2))
    assert weeks[bench.PRO].grade_a == "I"
    assert weeks[bench.OTHER_PRO].excluded
    assert state(bench) == "structuring"
    with pytest.raises(ForbiddenError):
        annotating.take_next(bench.service, bench.OTHER_PRO)
    owed = ledger.balances(managing.ledger_of(bench.service, bench.ADMIN))
    assert (owed[bench.PRO], owed[bench.OTHER_PRO]) == (1100, 0)
    assert managing.close_week(bench.service, bench.ADMIN, dt.date(2026, 3, 2)) == {}
    task = bench.take(bench.THIRD_PRO)
    annotating.submit(bench.service, bench.THIRD_PRO, task.id, bench.version(TaskRow, task.id), one_verse("春眠不觉晓"))
    assert state(bench) == "describing"


def test_a_structure_is_graded_in_the_week_in_which_it_was_settled(bench: StudyBench) -> None:
    bench.songs("s1")
    bench.clock.wait(days=5)
    two_passes(bench, one_verse("春眠不觉晓", label="chorus1"), one_verse("春眠不觉晓"))  # on Saturday and on Monday
    assert managing.close_week(bench.service, bench.ADMIN, dt.date(2026, 3, 2)) == {}
    inspecting.settle(bench.service, bench.INSPECTOR, "s1", bench.version(SongRow, "s1"), one_verse("春眠不觉晓"))
    bench.clock.wait(days=7)
    found = managing.close_week(bench.service, bench.ADMIN, dt.date(2026, 3, 9))
    assert {who: week.grade_a for who, week in found.items()} == {bench.PRO: "IV", bench.OTHER_PRO: "I"}
    assert found[bench.PRO].excluded
    assert state(bench) == "structuring"  # the pass of the week before is discarded too: it is what was graded
    assert ledger.balances(managing.ledger_of(bench.service, bench.ADMIN))[bench.PRO] == 0
    assert managing.close_week(bench.service, bench.ADMIN, dt.date(2026, 3, 2)) == {}


def test_a_description_is_graded_in_the_week_in_which_it_was_scored(bench: StudyBench) -> None:
    bench.service.configure(Settings(share=1.0, congruent_share=0.0))
    bench.songs("s1")
    two_passes(bench, one_verse("春眠不觉晓"), one_verse("春眠不觉晓"))
    numbers = describe(bench)
    bench.clock.wait(days=7)
    managing.close_week(bench.service, bench.ADMIN, dt.date(2026, 3, 2))
    points = {key: most * 0.5 for key, most in assurance.FORMS["amateur"].items()}
    sheet = ScoreSheet(numbers[1], bench.INSPECTOR, points)
    inspecting.score(bench.service, sheet, bench.version(TaskRow, numbers[1]))
    bench.clock.wait(days=7)
    found = managing.close_week(bench.service, bench.ADMIN, dt.date(2026, 3, 9))
    assert {who: week.grade_b for who, week in found.items()} == {bench.FAN: "IV"}


def test_who_is_excluded_loses_open_tasks_and_works_no_more(bench: StudyBench) -> None:
    bench.songs("s1", "s2")
    bad, good = one_verse("春眠不觉晓", label="chorus1"), one_verse("春眠不觉晓")
    first = bench.take(bench.OTHER_PRO)
    annotating.submit(bench.service, bench.OTHER_PRO, first.id, bench.version(TaskRow, first.id), bad)
    left = bench.take(bench.OTHER_PRO)
    seen = bench.version(TaskRow, left.id)
    bench.clock.wait(days=2)
    second = bench.take(bench.PRO)
    assert (second.song, second.number) == (first.song, 2)
    annotating.submit(bench.service, bench.PRO, second.id, bench.version(TaskRow, second.id), good)
    inspecting.settle(bench.service, bench.INSPECTOR, first.song, bench.version(SongRow, first.song), good)
    bench.clock.wait(days=7)
    assert managing.close_week(bench.service, bench.ADMIN, dt.date(2026, 3, 2))[bench.OTHER_PRO].excluded
    with bench.store.reading() as session:
        assert session.get(TaskRow, left.id).state == "cancelled"
    for act in (
        lambda: annotating.take_next(bench.service, bench.OTHER_PRO),
        lambda: annotating.open_task(bench.service, bench.OTHER_PRO, left.id),
        lambda: annotating.save(bench.service, bench.OTHER_PRO, left.id, seen + 1, {"theme": "一"}),
        lambda: annotating.submit(bench.service, bench.OTHER_PRO, left.id, seen + 1, good),
        lambda: training.take_training(bench.service, bench.OTHER_PRO),
    ):
        with pytest.raises(ForbiddenError):
            act()
    assert {annotating.take_next(bench.service, who).song for who in (bench.PRO, bench.THIRD_PRO)} == {"s1", "s2"}


def test_an_abandoned_task_goes_to_somebody_else(bench: StudyBench) -> None:
    bench.songs("s1")
    left = bench.take(bench.PRO)
    bench.clock.wait(days=10)
    annotating.save(bench.service, bench.PRO, left.id, bench.version(TaskRow, left.id), {"theme": "一"})
    bench.clock.wait(days=10)  # 20 since it was given, 10 since something was done
    assert annotating.take_next(bench.service, bench.OTHER_PRO) is None
    (open_now,) = oversight.open_tasks(bench.service, bench.ADMIN)
    assert (open_now.task.id, bench.clock.now - open_now.last) == (left.id, dt.timedelta(days=10))
    assert open_now.released - bench.clock.now == dt.timedelta(days=4)
    bench.clock.wait(days=4, seconds=1)
    assert annotating.take_next(bench.service, bench.OTHER_PRO).song == "s1"
    with bench.store.reading() as session:
        assert session.get(TaskRow, left.id).state == "cancelled"
    assert annotating.take_next(bench.service, bench.PRO) is None


def test_an_administrator_takes_a_task_back(bench: StudyBench) -> None:
    bench.songs("s1")
    left = bench.take(bench.PRO)
    with pytest.raises(ForbiddenError):
        managing.release(bench.service, bench.OTHER_PRO, left.id)
    annotating.screen(bench.service, bench.PRO, left.id, bench.version(TaskRow, left.id), reason="poor_audio")
    with pytest.raises(ForbiddenStepError):
        managing.release(bench.service, bench.ADMIN, left.id)
    managing.decide_screening(bench.service, bench.ADMIN, "s1", bench.version(SongRow, "s1"), keep=True)
    managing.release(bench.service, bench.ADMIN, left.id)
    task = bench.take(bench.OTHER_PRO)
    annotating.submit(bench.service, bench.OTHER_PRO, task.id, bench.version(TaskRow, task.id), one_verse("春眠不觉晓"))
    with pytest.raises(ForbiddenStepError):
        managing.release(bench.service, bench.ADMIN, task.id)


def test_training_is_not_the_next_task(bench: StudyBench) -> None:
    bench.songs("s1", "s2")
    training.choose_songs(bench.service, bench.ADMIN, 1)
    practised = training.take_training(bench.service, bench.PRO)
    task = annotating.take_next(bench.service, bench.PRO)
    assert (task.training, task.song != practised.song) == (False, True)


def test_a_week_is_closed_on_its_monday_after_it_is_over(bench: StudyBench) -> None:
    bench.clock.wait(days=7, seconds=-1 - 8 * 3600)  # a second before the week of the bench is over
    for monday in (dt.date(2026, 3, 2), dt.date(2026, 2, 24), dt.date(9999, 12, 27)):
        with pytest.raises(InvalidInputError):
            managing.close_week(bench.service, bench.ADMIN, monday)
    bench.clock.wait(seconds=1)
    assert managing.close_week(bench.service, bench.ADMIN, dt.date(2026, 3, 2)) == {}


def test_a_spot_check_returns_a_description_and_withdrawal_takes_data_back(bench: StudyBench) -> None:
    bench.songs("s1")
    two_passes(bench, one_verse("春眠不觉晓"), one_verse("春眠不觉晓"))
    describe(bench)
    with pytest.raises(InvalidInputError):
        managing.review_song(bench.service, bench.ADMIN, "s1", bench.version(SongRow, "s1"), returned=["experts"])
    managing.review_song(bench.service, bench.ADMIN, "s1", bench.version(SongRow, "s1"), returned=["amateur"])
    assert ledger.balances(managing.ledger_of(bench.service, bench.ADMIN))[bench.FAN] == 0
    task = bench.take(bench.OTHER_FAN)
    bench.listen(bench.OTHER_FAN, task.id)
    version = bench.version(TaskRow, task.id)
    annotating.submit(bench.service, bench.OTHER_FAN, task.id, version, description("amateur"))
    managing.review_song(bench.service, bench.ADMIN, "s1", bench.version(SongRow, "s1"))
    assert managing.finished_songs(bench.service)[0].amateur_person == bench.OTHER_FAN
    owed = ledger.balances(managing.ledger_of(bench.service, bench.ADMIN))
    assert (owed[bench.FAN], owed[bench.OTHER_FAN]) == (0, 1000)
    managing.withdraw(bench.service, bench.OTHER_FAN, bench.OTHER_FAN)
    assert managing.finished_songs(bench.service) == []
    assert state(bench) == "describing"
    with pytest.raises(ForbiddenError):
        annotating.take_next(bench.service, bench.OTHER_FAN)


def settled_song(bench: StudyBench) -> None:
    """Let a song finish whose structure an inspector settled."""
    bench.songs("s1")
    two_passes(bench, one_verse("春眠不觉晓"), one_verse("春眠不觉晓", label="chorus1"))
    accepted = one_verse("春眠不觉晓", label="bridge1")
    inspecting.settle(bench.service, bench.INSPECTOR, "s1", bench.version(SongRow, "s1"), accepted)
    describe(bench)
    managing.review_song(bench.service, bench.ADMIN, "s1", bench.version(SongRow, "s1"))
    assert managing.finished_songs(bench.service)[0].structure == accepted


def test_what_an_inspector_settled_leaves_with_them_and_another_settles_it(bench: StudyBench) -> None:
    settled_song(bench)
    managing.withdraw(bench.service, bench.INSPECTOR, bench.INSPECTOR)
    assert managing.finished_songs(bench.service) == []
    with bench.store.reading() as session:
        assert session.get(SongRow, "s1").accepted is None
    assert inspecting.waiting(bench.service, bench.OTHER_INSPECTOR) == (["s1"], [])
    again = one_verse("春眠不觉晓", label="verse1")
    inspecting.settle(bench.service, bench.OTHER_INSPECTOR, "s1", bench.version(SongRow, "s1"), again)
    assert state(bench) == "checking"  # both descriptions still stand
    managing.review_song(bench.service, bench.ADMIN, "s1", bench.version(SongRow, "s1"))
    (done,) = managing.finished_songs(bench.service)
    assert (done.structure, bench.INSPECTOR in done.structure_people) == (again, False)


def test_the_texts_of_who_withdraws_are_erased_and_what_others_rest_on_stays(bench: StudyBench) -> None:
    bench.service.configure(Settings(share=1.0, congruent_share=0.0))
    bench.songs("s1")
    two_passes(bench, one_verse("春眠不觉晓"), one_verse("春眠不觉晓"))
    numbers = describe(bench)
    managing.post_message(bench.service, bench.FAN, "我的话")
    points = {key: float(most) for key, most in assurance.FORMS["amateur"].items()}
    sheet = ScoreSheet(numbers[1], bench.INSPECTOR, points, "说得好")
    inspecting.score(bench.service, sheet, bench.version(TaskRow, numbers[1]))
    for who in (bench.FAN, bench.INSPECTOR):
        accounts.open_session(bench.service, who)
        managing.withdraw(bench.service, bench.ADMIN, who)
    with bench.store.reading() as session:
        task = session.get(TaskRow, numbers[1])
        assert (task.state, task.result, task.draft) == ("discarded", None, {})
        assert session.scalars(select(EventRow).where(EventRow.task == task.id)).first() is None
        assert session.scalars(select(EventRow).where(EventRow.task == numbers[0])).first() is not None
        assert [(row.total, row.remark) for row in session.scalars(select(SheetRow))] == [(100, "")]
        assert list(session.scalars(select(MessageRow))) == []
        assert list(session.scalars(select(SessionRow))) == []
    owed = ledger.balances(managing.ledger_of(bench.service, bench.ADMIN))
    assert (owed[bench.FAN], owed[bench.INSPECTOR]) == (1000, 500)
    assert oversight.verifications(bench.service, bench.ADMIN) == []
    with pytest.raises(InvalidAnnotationError):
        oversight.verify(bench.service, ScoreSheet(numbers[1], bench.ADMIN, points))


def test_one_administrator_stays(bench: StudyBench) -> None:
    with pytest.raises(InvalidInputError, match="last administrator"):
        managing.withdraw(bench.service, bench.ADMIN, bench.ADMIN)
    other = accounts.accept(
        bench.service,
        accounts.invite(bench.service, bench.ADMIN, "administrator"),
        "林",
        "a long password",
        consents=True,
    )
    managing.withdraw(bench.service, bench.ADMIN, bench.ADMIN)
    with pytest.raises(InvalidInputError, match="last administrator"):
        managing.withdraw(bench.service, other, other)
    assert accounts.first_administrator(bench.service) == other


def test_nothing_is_half_imported(bench: StudyBench) -> None:
    with pytest.raises(InvalidInputError, match="song 2, 's1'"):
        bench.songs("s1", "s1")
    assert managing.progress(bench.service, bench.ADMIN).songs == {}


# --- accounts


@pytest.mark.requirement(number=1)
def test_invitations_work_once_and_need_consent(bench: StudyBench) -> None:
    token = accounts.invite(bench.service, bench.ADMIN, "professional")
    with pytest.raises(InvalidInputError, match="consent"):
        accounts.accept(bench.service, token, "林", "a long password", consents=False)
    who = accounts.accept(bench.service, token, "林", "a long password", consents=True)
    visit = accounts.visit(bench.service, accounts.sign_in(bench.service, "林", "a long password"))
    assert visit is not None
    assert (visit.person.id, visit.person.role) == (who, "professional")
    with pytest.raises(InvalidInputError, match="not valid"):
        accounts.accept(bench.service, token, "王", "a long password", consents=True)
    with pytest.raises(ForbiddenError):
        accounts.invite(bench.service, bench.PRO, "administrator")
    late = accounts.invite(bench.service, bench.ADMIN, "amateur")
    bench.clock.wait(days=15)
    with pytest.raises(InvalidInputError, match="not valid"):
        accounts.accept(bench.service, late, "王", "a long password", consents=True)


def test_wrong_passwords_lock_nobody_out(bench: StudyBench) -> None:
    token = accounts.invite(bench.service, bench.ADMIN, "amateur")
    accounts.accept(bench.service, token, "林", "a long password", consents=True)
    for _ in range(30):
        with pytest.raises(accounts.SignInError):
            accounts.sign_in(bench.service, "林", "another password")
    session = accounts.sign_in(bench.service, "林", "a long password")
    assert session != accounts.sign_in(bench.service, "林", "a long password")
    bench.clock.wait(hours=13)
    assert accounts.visit(bench.service, session) is None
    with pytest.raises(accounts.SignInError):
        accounts.sign_in(bench.service, "nobody", "a long password")


def test_an_unknown_account_costs_one_hash_as_a_known_one_does(
    bench: StudyBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = accounts.invite(bench.service, bench.ADMIN, "amateur")
    accounts.accept(bench.service, token, "林", "a long password", consents=True)
    hasher, done = accounts._hasher(), []

    class Counted:
        def hash(self, password: str) -> str:
            done.append("hash")
            return hasher.hash(password)

        def verify(self, kept: str, password: str) -> bool:
            done.append("hash")
            return hasher.verify(kept, password)

    monkeypatch.setattr(accounts, "_hasher", Counted)
    told = []
    for name in ("林", "nobody", "professional4"):  # the last has no password
        with pytest.raises(accounts.SignInError) as caught:
            accounts.sign_in(bench.service, name, "another password")
        told.append((str(caught.value), caught.value.kind))
    assert done == ["hash"] * 3
    assert len(set(told)) == 1


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


@pytest.mark.slow
def test_a_study_runs_on_postgresql(postgres: str) -> None:
    bench = StudyBench(postgres, Settings(share=0.0, congruent_share=0.0))
    try:
        whole_song(bench)
        assert state(bench) == "finished"
        seen = bench.version(SongRow, "s1")
        assert_one_is_given(bench)
        with pytest.raises(MusicEvalsError):
            managing.review_song(bench.service, bench.ADMIN, "s1", seen)
        with bench.store.engine.begin() as connection, pytest.raises(DBAPIError, match="never changed"):
            connection.execute(text("DELETE FROM audit"))
    finally:
        bench.store.close()
        migrate(postgres, "base")


@pytest.mark.slow
def test_who_withdraws_on_postgresql_holds_no_place_afterwards(postgres: str) -> None:
    bench = StudyBench(postgres, Settings(share=0.0, congruent_share=0.0))
    try:
        bench.songs("s1")
        leaving = threading.Thread(target=managing.withdraw, args=(bench.service, bench.PRO, bench.PRO))
        with bench.store.writing() as session:  # as take_next does, step by step
            bench.service.person(session, bench.PRO, "annotate", locked=True)
            leaving.start()
            leaving.join(0.5)
            assert leaving.is_alive()  # it waits, and then sees the task
            row = TaskRow(song="s1", kind="structure", number=1, person=bench.PRO, assigned=bench.clock())
            session.add(row)
        leaving.join(10)
        with bench.store.reading() as session:
            assert session.get(TaskRow, row.id).state == "cancelled"
        assert bench.take(bench.OTHER_PRO).song == "s1"
    finally:
        bench.store.close()
        migrate(postgres, "base")


@pytest.mark.requirement(number=16)
def test_a_person_is_given_the_cluster_that_they_have_had_least(bench: StudyBench) -> None:
    lines = ("春眠不觉晓", "处处闻啼鸟")
    clusters = {"a1": 0, "a2": 0, "a3": 0, "b1": 1, "n1": None, "n2": None}
    songs = [Song(name, lines, 40.0, rhymes=(True, True), cluster=cluster) for name, cluster in clusters.items()]
    managing.add_songs(bench.service, bench.ADMIN, songs)
    had = []
    for _ in range(6):
        task = bench.take(bench.PRO)
        had.append(clusters[task.song])
        annotating.submit(bench.service, bench.PRO, task.id, bench.version(TaskRow, task.id), one_verse("春眠不觉晓"))
    assert set(had[:3]) == {0, 1, None}  # songs without a cluster are one of their own
    assert sorted(map(str, had[3:5])) == ["0", "None"]
    assert had[5] == 0
