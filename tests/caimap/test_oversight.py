"""Training, analytics, second verification and downloads: what their pages show, to whom."""

from __future__ import annotations

import datetime as dt
import math

import pytest
from tests.caimap_bench import StudyBench, description, one_verse

from music_evals.caimap.domain import assurance
from music_evals.caimap.domain.machine import ForbiddenError
from music_evals.caimap.domain.values import ScoreSheet
from music_evals.caimap.services import accounts, annotating, inspecting, managing, oversight, people, training, views
from music_evals.caimap.services.study import Settings
from music_evals.caimap.storage.store import StaleError
from music_evals.caimap.storage.tables import SheetRow, SongRow, TaskRow, WarningRow
from music_evals.errors import InvalidAnnotationError, InvalidInputError


def sheet(task: int, who: int, share: float = 1.0, group: str = "amateur") -> ScoreSheet:
    return ScoreSheet(task, who, {key: most * share for key, most in assurance.FORMS[group].items()})


def described(bench: StudyBench, task: int, who: int, group: str = "amateur") -> None:
    bench.listen(who, task)
    annotating.submit(bench.service, who, task, bench.version(TaskRow, task), description(group))


def practised(bench: StudyBench) -> int:
    """Let an amateur practise; return their task."""
    bench.songs("s1", "s2", "s3")
    assert training.choose_songs(bench.service, bench.ADMIN, 1) == 1
    task = training.take_training(bench.service, bench.FAN)
    assert task is not None
    annotating.open_task(bench.service, bench.FAN, task.id)
    assert training.take_training(bench.service, bench.FAN) == annotating.open_task(bench.service, bench.FAN, task.id)
    described(bench, task.id, bench.FAN)
    assert training.take_training(bench.service, bench.FAN) is None
    return task.id


def test_training_is_neither_paid_nor_exported_nor_warned_of(bench: StudyBench) -> None:
    task = practised(bench)
    with bench.store.reading() as session:
        row = session.get(TaskRow, task)
        assert (row.state, row.training, session.get(SongRow, row.song).state) == ("submitted", True, "structuring")
        assert session.query(WarningRow).count() == 0
    assert managing.ledger_of(bench.service, bench.ADMIN) == []
    songs = {bench.take(who).song for who in (bench.PRO, bench.OTHER_PRO)}
    assert row.song not in songs
    with pytest.raises(InvalidInputError, match="0 songs"):
        training.choose_songs(bench.service, bench.ADMIN, 1)


@pytest.mark.requirement(number=14)
def test_professionals_practise_both_types_and_skip_no_song(bench: StudyBench) -> None:
    bench.songs("s1")
    training.choose_songs(bench.service, bench.ADMIN, 1)
    first = training.take_training(bench.service, bench.PRO)
    annotating.open_task(bench.service, bench.PRO, first.id)
    seen = bench.version(TaskRow, first.id)
    with pytest.raises(InvalidAnnotationError, match="not in training"):
        annotating.screen(bench.service, bench.PRO, first.id, seen, reason="poor_audio")
    annotating.submit(bench.service, bench.PRO, first.id, seen, one_verse("春眠不觉晓"))
    second = training.take_training(bench.service, bench.PRO)
    assert {first.kind, second.kind} == {"structure", "professional"}


@pytest.mark.requirement(number=14)
def test_inspectors_agree_within_ten_points_or_discuss_and_score_again(bench: StudyBench) -> None:
    task = practised(bench)
    assert training.practice(bench.service, bench.FAN).judged is None
    training.score_item(bench.service, sheet(task, bench.INSPECTOR, 0.9))
    with pytest.raises(StaleError):
        training.score_item(bench.service, sheet(task, bench.INSPECTOR, 0.5))
    blind = training.practice(bench.service, bench.OTHER_INSPECTOR)
    assert blind.scores == {task: {}}  # what another gave is not seen before one's own
    assert blind.judged.missing == ((task, bench.OTHER_INSPECTOR),)
    with pytest.raises(InvalidInputError, match="not over"):
        training.new_round(bench.service, bench.ADMIN)
    training.score_item(bench.service, sheet(task, bench.OTHER_INSPECTOR, 0.79))
    seen = training.practice(bench.service, bench.OTHER_INSPECTOR)
    assert seen.judged.discussed == (task,)
    assert {by: total for by, (total, _) in seen.scores[task].items()} == pytest.approx(
        {bench.INSPECTOR: 90, bench.OTHER_INSPECTOR: 79}
    )
    assert training.new_round(bench.service, bench.ADMIN) == 2
    for who, share in ((bench.INSPECTOR, 0.8), (bench.OTHER_INSPECTOR, 0.85)):
        training.score_item(bench.service, sheet(task, who, share))
    assert training.practice(bench.service, bench.ADMIN).judged.consistent
    with pytest.raises(ForbiddenError):
        training.score_item(bench.service, sheet(task, bench.FAN))
    with pytest.raises(ForbiddenError):
        training.new_round(bench.service, bench.INSPECTOR)


@pytest.mark.parametrize("leaves", ["author", "inspector"])
def test_a_round_ends_though_somebody_withdrew(bench: StudyBench, leaves: str) -> None:
    task = practised(bench)
    other = training.take_training(bench.service, bench.OTHER_FAN)
    annotating.open_task(bench.service, bench.OTHER_FAN, other.id)
    described(bench, other.id, bench.OTHER_FAN)
    training.score_item(bench.service, sheet(task, bench.INSPECTOR, 0.2))
    if leaves == "author":
        managing.withdraw(bench.service, bench.FAN, bench.FAN)
        for who in (bench.INSPECTOR, bench.OTHER_INSPECTOR):
            training.score_item(bench.service, sheet(other.id, who))
        found = training.practice(bench.service, bench.OTHER_INSPECTOR)
        assert (list(found.scores), found.judged.missing, found.judged.consistent) == ([other.id], (), True)
        assert training.new_round(bench.service, bench.ADMIN) == 2
    else:
        token = accounts.invite(bench.service, bench.ADMIN, "inspector")
        third = accounts.accept(bench.service, token, "林", "a long password", consents=True)
        managing.withdraw(bench.service, bench.INSPECTOR, bench.INSPECTOR)
        for who in (bench.OTHER_INSPECTOR, third):
            for item in (task, other.id):
                training.score_item(bench.service, sheet(item, who))
        found = training.practice(bench.service, third)
        assert (set(found.scores[task]), found.judged.consistent) == ({bench.OTHER_INSPECTOR, third}, True)


def test_training_is_kept_when_a_week_is_discarded(bench: StudyBench) -> None:
    task = practised(bench)
    with bench.store.writing() as session:
        for _ in range(2):
            session.add(WarningRow(person=bench.FAN, task=task, kind="restless", moment=bench.clock()))
    monday = bench.clock.now.date() - dt.timedelta(days=bench.clock.now.weekday())
    bench.clock.wait(days=7)
    assert managing.close_week(bench.service, bench.ADMIN, monday)[bench.FAN].excluded
    assert list(training.practice(bench.service, bench.INSPECTOR).scores) == [task]


def scored(bench: StudyBench) -> int:
    """Let a description of the sample be scored; return its task."""
    bench.service.configure(Settings(seed=1, share=1.0, congruent_share=0.0))
    bench.songs("s1")
    for who in (bench.PRO, bench.OTHER_PRO):
        task = bench.take(who)
        annotating.submit(bench.service, who, task.id, bench.version(TaskRow, task.id), one_verse("春眠不觉晓"))
        bench.clock.wait(days=2)
    task = bench.take(bench.FAN)
    described(bench, task.id, bench.FAN)
    inspecting.score(bench.service, sheet(task.id, bench.INSPECTOR, 0.9), bench.version(TaskRow, task.id))
    return task.id


@pytest.mark.requirement(number=13)
def test_inspectors_are_verified_and_their_score_stays(bench: StudyBench) -> None:
    task = scored(bench)
    (before,) = oversight.verifications(bench.service, bench.ADMIN)
    assert (before.task, before.inspector, before.second, before.apart) == (task, bench.INSPECTOR, None, False)
    with pytest.raises(ForbiddenError):
        oversight.verify(bench.service, sheet(task, bench.OTHER_INSPECTOR))
    oversight.verify(bench.service, sheet(task, bench.ADMIN, 0.79))
    (after,) = oversight.verifications(bench.service, bench.ADMIN)
    assert (after.total, after.second, after.apart) == (pytest.approx(90), pytest.approx(79), True)
    with pytest.raises(StaleError):
        oversight.verify(bench.service, sheet(task, bench.ADMIN))
    with bench.store.reading() as session:
        assert session.get(TaskRow, task).state == "accepted"
        assert session.query(SheetRow).count() == 2
    other = bench.take(bench.THIRD_PRO)
    with pytest.raises(InvalidAnnotationError, match="nobody has scored"):
        oversight.verify(bench.service, sheet(other.id, bench.ADMIN))
    bench.service.configure(Settings(seed=1, share=0.0, congruent_share=0.0))
    assert oversight.verifications(bench.service, bench.ADMIN) == []


def settled(bench: StudyBench, *names: str) -> None:
    """Let an inspector settle songs whose passes differ."""
    bench.songs(*names)
    for who, label in ((bench.PRO, "verse1"), (bench.OTHER_PRO, "chorus1")):
        for _ in names:
            task = bench.take(who)
            given = one_verse("春眠不觉晓", label=label)
            annotating.submit(bench.service, who, task.id, bench.version(TaskRow, task.id), given)
        bench.clock.wait(days=2)
    for name in names:
        seen = bench.version(SongRow, name)
        inspecting.settle(bench.service, bench.INSPECTOR, name, seen, one_verse("春眠不觉晓", "处处闻啼鸟"))


def test_settled_structures_are_verified_without_seeing_what_was_settled(bench: StudyBench) -> None:
    bench.service.configure(Settings(seed=1, share=1.0, congruent_share=0.0))
    settled(bench, "s1")
    asked = inspecting.settlements(bench.service, bench.ADMIN)
    assert asked == [inspecting.Settled("s1", bench.INSPECTOR, None, False)]
    shown = inspecting.unsettled(bench.service, bench.ADMIN, "s1")
    assert shown.passes == (one_verse("春眠不觉晓"), one_verse("春眠不觉晓", label="chorus1"))
    second = one_verse("春眠不觉晓")
    rows = inspecting.verify_settlement(bench.service, bench.ADMIN, "s1", second)
    assert [bool(row.fields) for row in rows] == [False, True]  # the second line is the inspector's alone
    assert inspecting.settlements(bench.service, bench.ADMIN) == [inspecting.Settled("s1", bench.INSPECTOR, 0.5, True)]
    with bench.store.reading() as session:
        kept = session.get(SongRow, "s1")
        assert (kept.state, kept.accepted["people"][-1]) == ("describing", bench.INSPECTOR)
        assert kept.accepted["structure"] == one_verse("春眠不觉晓", "处处闻啼鸟").to_dict()
    with pytest.raises(StaleError, match="already"):
        inspecting.verify_settlement(bench.service, bench.ADMIN, "s1", second)
    for act in (inspecting.settlements, lambda service, who: inspecting.unsettled(service, who, "s1")):
        with pytest.raises(ForbiddenError):
            act(bench.service, bench.INSPECTOR)
    managing.withdraw(bench.service, bench.INSPECTOR, bench.INSPECTOR)
    assert inspecting.settlements(bench.service, bench.ADMIN) == []
    with pytest.raises(InvalidAnnotationError, match="not in the sample"):
        inspecting.unsettled(bench.service, bench.ADMIN, "s1")


@pytest.mark.slow
def test_a_fifth_of_what_an_inspector_settled_is_verified(bench: StudyBench) -> None:
    bench.service.configure(Settings(seed=1, share=0.2, congruent_share=0.0))
    settled(bench, *(f"s{number}" for number in range(5)))
    (drawn,) = inspecting.settlements(bench.service, bench.ADMIN)
    (other, *_) = {f"s{number}" for number in range(5)} - {drawn.song}
    with pytest.raises(InvalidAnnotationError, match="not in the sample"):
        inspecting.verify_settlement(bench.service, bench.ADMIN, other, one_verse("春眠不觉晓"))


def practised_structure(bench: StudyBench, who: int, given) -> int:
    task = training.take_training(bench.service, who)
    assert task.kind == "structure"
    annotating.open_task(bench.service, who, task.id)
    annotating.submit(bench.service, who, task.id, bench.version(TaskRow, task.id), given)
    return task.id


def test_structures_of_the_training_are_judged(bench: StudyBench) -> None:
    bench.songs("s1", "s2")
    training.choose_songs(bench.service, bench.ADMIN, 1)
    first = practised_structure(bench, bench.PRO, one_verse("春眠不觉晓", "处处闻啼鸟"))
    (alone,) = training.lessons(bench.service, bench.PRO)
    assert (alone.against, math.isnan(alone.agreement)) == ("", True)
    with pytest.raises(InvalidAnnotationError, match="nothing yet"):
        training.lesson(bench.service, bench.PRO, first)
    practised_structure(bench, bench.OTHER_PRO, one_verse("春眠不觉晓"))  # one line of two
    practised_structure(bench, bench.THIRD_PRO, one_verse("春眠不觉晓", "处处闻啼鸟"))
    (with_others,) = training.lessons(bench.service, bench.PRO)
    assert with_others[3:] == ("others", 0.75)  # the mean of 1/2 and 1
    assert [row.second is None for row in training.lesson(bench.service, bench.PRO, first)] == [False, True]
    with pytest.raises(ForbiddenError):
        training.lesson(bench.service, bench.OTHER_PRO, first)
    (model,) = training.models(bench.service, bench.INSPECTOR)
    assert (model.accepted, model.passes) == (None, 3)
    accepted = one_verse("春眠不觉晓", "处处闻啼鸟", label="chorus1")
    training.set_model(bench.service, bench.INSPECTOR, model.song.id, model.version, accepted)
    with pytest.raises(StaleError):
        training.set_model(bench.service, bench.OTHER_INSPECTOR, model.song.id, model.version, accepted)
    assert [row[3:] for row in training.lessons(bench.service, bench.ADMIN)] == [("accepted", 0.0)] * 3
    assert [row.second[0] for row in training.lesson(bench.service, bench.PRO, first)] == ["chorus1", "chorus1"]
    for refused in (bench.PRO, bench.ADMIN):
        with pytest.raises(ForbiddenError):
            training.set_model(bench.service, refused, model.song.id, model.version + 1, accepted)
    with pytest.raises(ForbiddenError):
        training.models(bench.service, bench.PRO)
    (other,) = {"s1", "s2"} - {model.song.id}
    seen = bench.version(SongRow, other)
    with pytest.raises(InvalidAnnotationError, match="training set"):
        training.set_model(bench.service, bench.INSPECTOR, other, seen, accepted)
    assert managing.finished_songs(bench.service) == []
    managing.withdraw(bench.service, bench.INSPECTOR, bench.INSPECTOR)
    assert training.models(bench.service, bench.OTHER_INSPECTOR)[0].accepted is None


def test_inspectors_discuss_items_that_spread_once_all_have_scored(bench: StudyBench) -> None:
    task = practised(bench)
    training.score_item(bench.service, sheet(task, bench.INSPECTOR, 0.9))
    with pytest.raises(InvalidInputError, match="once all have scored"):
        training.discuss(bench.service, bench.INSPECTOR, task, "标签太少")
    training.score_item(bench.service, sheet(task, bench.OTHER_INSPECTOR, 0.7))
    training.discuss(bench.service, bench.INSPECTOR, task, "标签太少")
    training.discuss(bench.service, bench.ADMIN, task, "见第二条")
    for empty in (" ", "字" * 2001):
        with pytest.raises(InvalidInputError, match="characters"):
            training.discuss(bench.service, bench.ADMIN, task, empty)
    said = training.discussion(bench.service, bench.OTHER_INSPECTOR, task)
    assert [(row.author, row.role, row.round, row.content) for row in said] == [
        (bench.INSPECTOR, "inspector", 1, "标签太少"), (bench.ADMIN, "administrator", 1, "见第二条"),
    ]  # fmt: skip
    assert training.discussion(bench.service, bench.ADMIN, task + 10) == []
    assert views.messages(bench.service, bench.ADMIN) == []  # no feedback
    for act in (
        lambda: training.discussion(bench.service, bench.FAN, task),
        lambda: training.discuss(bench.service, bench.FAN, task, "我"),
    ):
        with pytest.raises(ForbiddenError):
            act()
    with pytest.raises(InvalidInputError, match="own threads"):
        managing.post_message(bench.service, bench.FAN, "我", place=f"training/1/{task}")
    training.new_round(bench.service, bench.ADMIN)
    for who in (bench.INSPECTOR, bench.OTHER_INSPECTOR):
        training.score_item(bench.service, sheet(task, who, 0.8))
    with pytest.raises(InvalidInputError, match="over 10 points apart"):
        training.discuss(bench.service, bench.INSPECTOR, task, "现在一致")
    assert len(training.discussion(bench.service, bench.INSPECTOR, task)) == 2


def test_grades_of_weeks_are_seen_by_whom_they_concern(bench: StudyBench) -> None:
    settled(bench, "s1")  # of the two lines that the inspector accepted the passes have one and none
    assert people.so_far(bench.service, bench.PRO) == ("IV", "", True)
    assert people.so_far(bench.service, bench.FAN) is None
    bench.clock.wait(days=7)
    managing.close_week(bench.service, bench.ADMIN, dt.date(2026, 3, 2))
    (own,) = people.graded(bench.service, bench.PRO)
    assert own == (bench.PRO, "professional", dt.date(2026, 3, 2), "IV", "", True, 0, 1000)
    assert [row.person for row in people.graded(bench.service, bench.ADMIN)] == [bench.PRO, bench.OTHER_PRO]
    assert people.graded(bench.service, bench.FAN) == people.graded(bench.service, bench.INSPECTOR) == []
    with bench.store.writing() as session:
        for who in (bench.FAN, bench.OTHER_FAN):
            session.add(WarningRow(person=who, task=1, kind="restless", moment=bench.clock()))
    assert people.cautions(bench.service, bench.FAN) == [(bench.FAN, 1, "restless", bench.clock())]
    assert [row.person for row in people.cautions(bench.service, bench.ADMIN)] == [bench.OTHER_FAN, bench.FAN]


@pytest.mark.requirement(number=11)
def test_analytics_count_what_the_player_reported(bench: StudyBench) -> None:
    bench.songs("s1")
    task = bench.take(bench.PRO)
    reports = ["play", "pause", "play", "pause", "hidden", "shown", "blocked"]
    for kind in reports:
        annotating.record(bench.service, bench.PRO, task.id, [{"kind": kind, "position_sec": 0}])
        bench.clock.wait(20)
    found = {row.person: row for row in oversight.habits(bench.service, bench.ADMIN)}
    assert found[bench.PRO].tasks == 0
    assert math.isnan(found[bench.PRO].page_min)
    annotating.submit(bench.service, bench.PRO, task.id, bench.version(TaskRow, task.id), one_verse("春眠不觉晓"))
    with bench.store.writing() as session:
        session.add(WarningRow(person=bench.PRO, task=task.id, kind="restless", moment=bench.clock()))
    row = {row.person: row for row in oversight.habits(bench.service, bench.ADMIN)}[bench.PRO]
    assert (row.tasks, row.page_min, row.clicks, row.warnings) == (
        1,
        pytest.approx(4.0),  # 100 s of listening as well
        (2, 0, 1, 1),
        {"restless": 1},
    )
    with pytest.raises(ForbiddenError):
        oversight.habits(bench.service, bench.INSPECTOR)
    assert [task.kind for task in oversight.submissions(bench.service, bench.ADMIN, bench.PRO)] == ["structure"]
    with pytest.raises(InvalidInputError):
        oversight.submissions(bench.service, bench.ADMIN, 99)


@pytest.mark.slow
@pytest.mark.requirement(number=13)
def test_the_pages_of_oversight(bench: StudyBench, tmp_path) -> None:
    testclient = pytest.importorskip("starlette.testclient")
    from music_evals.caimap.web.app import build_app
    from music_evals.caimap.web.visitors import COOKIE

    task = scored(bench)
    training.take_training(bench.service, bench.OTHER_FAN)
    app = build_app(bench.service, tmp_path)

    def browser(who: int):
        client = testclient.TestClient(app, follow_redirects=False)
        token = accounts.open_session(bench.service, who)
        client.cookies.set(COOKIE, token)
        client.headers["x-csrf"] = accounts.visit(bench.service, token).csrf
        return client

    admin = browser(bench.ADMIN)
    table = admin.get("/ledger.csv")
    assert table.headers["content-disposition"] == 'attachment; filename="ledger.csv"'
    assert table.text.splitlines()[0] == "person,kind,cents,reason,task,moment"
    own = browser(bench.FAN).get("/ledger.csv").text.splitlines()[1:]
    assert own
    assert {line.partition(",")[0] for line in own} == {str(bench.FAN)}
    assert f'href="/manage/person/{bench.FAN}"' in admin.get("/manage/analytics").text
    assert f'href="/manage/verify/{task}"' in admin.get(f"/manage/person/{bench.FAN}").text
    fields = {f"{row}.{part}": str(most / 2) for (row, part), most in assurance.FORMS["amateur"].items()}
    page = admin.get(f"/manage/verify/{task}").text
    assert f'action="/manage/verify/{task}"' in page
    assert admin.post(f"/manage/verify/{task}", data=fields).headers["location"] == "/manage/verify"
    assert '<td class="differs">50.0</td>' in admin.get("/manage/verify").text
    refused = admin.post("/training/songs", data={"songs": "many"})
    assert (refused.status_code, "many" in refused.text) == (400, True)
    assert browser(bench.FAN).post("/training/next").headers["location"] == "/training"
