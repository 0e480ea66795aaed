"""Training, analytics, second verification and downloads: what their pages show, to whom."""

from __future__ import annotations

import math

import pytest
from tests.caimap_bench import StudyBench, description, one_verse

from music_evals.caimap import assurance
from music_evals.caimap.roles import ForbiddenError
from music_evals.caimap.storage.store import StaleError
from music_evals.caimap.storage.tables import SheetRow, SongRow, TaskRow, WarningRow
from music_evals.caimap.values import ScoreSheet
from music_evals.caimap.work import accounts, annotating, inspecting, managing, practising, watching
from music_evals.caimap.work.desk import Settings
from music_evals.errors import InvalidAnnotationError, InvalidInputError


def sheet(task: int, who: int, share: float = 1.0, group: str = "amateur") -> ScoreSheet:
    return ScoreSheet(task, who, {key: most * share for key, most in assurance.FORMS[group].items()})


def described(bench: StudyBench, task: int, who: int, group: str = "amateur") -> None:
    bench.listen(who, task)
    annotating.submit(bench.desk, who, task, bench.version(TaskRow, task), description(group))


def practised(bench: StudyBench) -> int:
    """Let an amateur practise; return their task."""
    bench.songs("s1", "s2", "s3")
    assert practising.choose_songs(bench.desk, bench.ADMIN, 1) == 1
    task = practising.take_training(bench.desk, bench.FAN)
    assert task is not None
    annotating.open_task(bench.desk, bench.FAN, task.id)
    assert practising.take_training(bench.desk, bench.FAN) == annotating.open_task(bench.desk, bench.FAN, task.id)
    described(bench, task.id, bench.FAN)
    assert practising.take_training(bench.desk, bench.FAN) is None
    return task.id


def test_training_is_neither_paid_nor_exported_nor_warned_of(bench: StudyBench) -> None:
    task = practised(bench)
    with bench.store.reading() as session:
        row = session.get(TaskRow, task)
        assert (row.state, row.training, session.get(SongRow, row.song).state) == ("submitted", True, "structuring")
        assert session.query(WarningRow).count() == 0
    assert managing.ledger_of(bench.desk, bench.ADMIN) == []
    songs = {bench.take(who).song for who in (bench.PRO, bench.OTHER_PRO)}
    assert row.song not in songs
    with pytest.raises(InvalidInputError, match="0 songs"):
        practising.choose_songs(bench.desk, bench.ADMIN, 1)


def test_professionals_practise_both_types_and_skip_no_song(bench: StudyBench) -> None:
    bench.songs("s1")
    practising.choose_songs(bench.desk, bench.ADMIN, 1)
    first = practising.take_training(bench.desk, bench.PRO)
    annotating.open_task(bench.desk, bench.PRO, first.id)
    seen = bench.version(TaskRow, first.id)
    with pytest.raises(InvalidAnnotationError, match="not in training"):
        annotating.screen(bench.desk, bench.PRO, first.id, seen, reason="poor_audio")
    annotating.submit(bench.desk, bench.PRO, first.id, seen, one_verse("春眠不觉晓"))
    second = practising.take_training(bench.desk, bench.PRO)
    assert {first.kind, second.kind} == {"structure", "professional"}


def test_inspectors_agree_within_ten_points_or_discuss_and_score_again(bench: StudyBench) -> None:
    task = practised(bench)
    assert practising.practice(bench.desk, bench.FAN).judged is None
    practising.score_item(bench.desk, sheet(task, bench.INSPECTOR, 0.9))
    with pytest.raises(StaleError):
        practising.score_item(bench.desk, sheet(task, bench.INSPECTOR, 0.5))
    blind = practising.practice(bench.desk, bench.OTHER_INSPECTOR)
    assert blind.scores == {task: {}}  # what another gave is not seen before one's own
    assert blind.judged.missing == ((task, bench.OTHER_INSPECTOR),)
    with pytest.raises(InvalidInputError, match="not over"):
        practising.new_round(bench.desk, bench.ADMIN)
    practising.score_item(bench.desk, sheet(task, bench.OTHER_INSPECTOR, 0.79))
    seen = practising.practice(bench.desk, bench.OTHER_INSPECTOR)
    assert seen.judged.discussed == (task,)
    assert {by: total for by, (total, _) in seen.scores[task].items()} == pytest.approx(
        {bench.INSPECTOR: 90, bench.OTHER_INSPECTOR: 79}
    )
    assert practising.new_round(bench.desk, bench.ADMIN) == 2
    for who, share in ((bench.INSPECTOR, 0.8), (bench.OTHER_INSPECTOR, 0.85)):
        practising.score_item(bench.desk, sheet(task, who, share))
    assert practising.practice(bench.desk, bench.ADMIN).judged.consistent
    with pytest.raises(ForbiddenError):
        practising.score_item(bench.desk, sheet(task, bench.FAN))
    with pytest.raises(ForbiddenError):
        practising.new_round(bench.desk, bench.INSPECTOR)


def scored(bench: StudyBench) -> int:
    """Let a description of the sample be scored; return its task."""
    bench.desk.configure(Settings(seed=1, share=1.0))
    bench.songs("s1")
    for who in (bench.PRO, bench.OTHER_PRO):
        task = bench.take(who)
        annotating.submit(bench.desk, who, task.id, bench.version(TaskRow, task.id), one_verse("春眠不觉晓"))
        bench.clock.wait(days=2)
    task = bench.take(bench.FAN)
    described(bench, task.id, bench.FAN)
    inspecting.score(bench.desk, sheet(task.id, bench.INSPECTOR, 0.9), bench.version(TaskRow, task.id))
    return task.id


def test_inspectors_are_verified_and_their_score_stays(bench: StudyBench) -> None:
    task = scored(bench)
    (before,) = watching.verifications(bench.desk, bench.ADMIN)
    assert (before.task, before.inspector, before.second, before.apart) == (task, bench.INSPECTOR, None, False)
    with pytest.raises(ForbiddenError):
        watching.verify(bench.desk, sheet(task, bench.OTHER_INSPECTOR))
    watching.verify(bench.desk, sheet(task, bench.ADMIN, 0.79))
    (after,) = watching.verifications(bench.desk, bench.ADMIN)
    assert (after.total, after.second, after.apart) == (pytest.approx(90), pytest.approx(79), True)
    with pytest.raises(StaleError):
        watching.verify(bench.desk, sheet(task, bench.ADMIN))
    with bench.store.reading() as session:
        assert session.get(TaskRow, task).state == "accepted"
        assert session.query(SheetRow).count() == 2
    other = bench.take(bench.THIRD_PRO)
    with pytest.raises(InvalidAnnotationError, match="nobody has scored"):
        watching.verify(bench.desk, sheet(other.id, bench.ADMIN))
    bench.desk.configure(Settings(seed=1, share=0.0))
    assert watching.verifications(bench.desk, bench.ADMIN) == []


def test_analytics_count_what_the_player_reported(bench: StudyBench) -> None:
    bench.songs("s1")
    task = bench.take(bench.PRO)
    reports = ["play", "pause", "play", "pause", "hidden", "shown", "blocked"]
    for kind in reports:
        annotating.record(bench.desk, bench.PRO, task.id, [{"kind": kind, "position_sec": 0}])
        bench.clock.wait(20)
    found = {row.person: row for row in watching.habits(bench.desk, bench.ADMIN)}
    assert found[bench.PRO].tasks == 0
    assert math.isnan(found[bench.PRO].page_min)
    annotating.submit(bench.desk, bench.PRO, task.id, bench.version(TaskRow, task.id), one_verse("春眠不觉晓"))
    with bench.store.writing() as session:
        session.add(WarningRow(person=bench.PRO, task=task.id, kind="restless", moment=bench.clock()))
    row = {row.person: row for row in watching.habits(bench.desk, bench.ADMIN)}[bench.PRO]
    assert (row.tasks, row.page_min, row.clicks, row.warnings) == (1, 2.0, (2, 0, 1, 1), {"restless": 1})
    with pytest.raises(ForbiddenError):
        watching.habits(bench.desk, bench.INSPECTOR)
    assert [task.kind for task in watching.submissions(bench.desk, bench.ADMIN, bench.PRO)] == ["structure"]
    with pytest.raises(InvalidInputError):
        watching.submissions(bench.desk, bench.ADMIN, 99)


def test_the_pages_of_oversight(bench: StudyBench, tmp_path) -> None:
    testclient = pytest.importorskip("starlette.testclient")
    from music_evals.caimap.web.app import COOKIE, build_app

    task = scored(bench)
    practising.take_training(bench.desk, bench.OTHER_FAN)
    app = build_app(bench.desk, tmp_path)

    def browser(who: int):
        client = testclient.TestClient(app, follow_redirects=False)
        token = accounts.open_session(bench.desk, who)
        client.cookies.set(COOKIE, token)
        client.headers["x-csrf"] = accounts.visit(bench.desk, token).csrf
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
