"""Pages about people: accounts and what administrators do for them, pay, grades and warnings, feedback in place."""

from __future__ import annotations

import csv
import datetime as dt
import io
import re

import pytest
from tests.caimap.test_pages import PASSWORD, app, described, structured, visitor  # noqa: F401  (fixtures)
from tests.caimap.test_web import Browser
from tests.caimap_bench import StudyBench

from music_evals.caimap.domain import ledger
from music_evals.caimap.domain.machine import ForbiddenError
from music_evals.caimap.services import accounts, annotating, managing, people
from music_evals.caimap.services.study import Settings
from music_evals.caimap.storage.tables import AuditRow, MessageRow, PersonRow, TaskRow, WarningRow, WeekRow
from music_evals.caimap.web.words import amount_words
from music_evals.errors import InvalidInputError

pytest.importorskip("starlette.testclient")


def newcomer(bench: StudyBench, name: str = "林") -> int:
    return accounts.accept(
        bench.service, accounts.invite(bench.service, bench.ADMIN, "amateur"), name, PASSWORD, consents=True
    )


def audited(bench: StudyBench) -> list[tuple[str, str]]:
    with bench.store.reading() as session:
        return [(row.object, row.action) for row in session.query(AuditRow).where(AuditRow.kind == "person")]


# accounts


def test_the_people_page_names_every_account_and_what_is_open(bench: StudyBench, visitor) -> None:  # noqa: F811
    who = newcomer(bench)
    bench.songs("s1")
    task = bench.take(bench.PRO)
    managing.withdraw(bench.service, bench.ADMIN, bench.FAN)
    page = visitor(bench.ADMIN).get("/manage/people").text
    rows = {
        found[1]: found[0] for found in re.finditer(r'<tr><td><a href="/manage/person/(\d+)">.*?</tr>', page, re.DOTALL)
    }
    assert len(rows) == len(StudyBench.PEOPLE) + 1
    assert "林" in rows[str(who)]
    assert "大众标注员" in rows[str(who)]
    assert "<td>1</td>" in rows[str(who)]  # the version that was consented to
    assert f'action="/manage/task/{task.id}/release"' in rows[str(bench.PRO)]
    assert "最近操作 2026-03-02, 自动收回 2026-03-16" in rows[str(bench.PRO)]  # 14 days later
    assert "已撤回" in rows[str(bench.FAN)]
    assert "/reset" not in rows[str(bench.FAN)]


def test_a_released_task_goes_to_somebody_else(bench: StudyBench, visitor) -> None:  # noqa: F811
    bench.songs("s1")
    task = bench.take(bench.PRO)
    manager = visitor(bench.ADMIN)
    assert manager.post(f"/manage/task/{task.id}/release").headers["location"] == "/manage/people"
    with bench.store.reading() as session:
        assert session.get(TaskRow, task.id).state == "cancelled"
    assert bench.take(bench.OTHER_PRO).song == "s1"
    refused = manager.post(f"/manage/task/{task.id}/release")
    assert refused.status_code == 409
    assert "现在的状态是“已取消”" in refused.text
    assert manager.post("/manage/task/99/release").status_code == 403
    with pytest.raises(ForbiddenError):
        managing.release(bench.service, bench.PRO, task.id)


def test_an_administrator_withdraws_somebody_with_their_own_password(bench: StudyBench, app) -> None:  # noqa: F811
    token = accounts.invite(bench.service, bench.ADMIN, "administrator")
    chief = accounts.accept(bench.service, token, "主管", PASSWORD, consents=True)
    manager, path = Browser(app, bench, chief), f"/manage/person/{bench.FAN}/withdraw"
    assert f'action="{path}"' in manager.get(path).text
    assert manager.post(path, password=PASSWORD[::-1]).status_code == 401
    assert manager.post(path, password=PASSWORD).headers["location"] == "/manage/people"
    with bench.store.reading() as session:
        assert session.get(PersonRow, bench.FAN).withdrawn
        assert not session.get(PersonRow, chief).withdrawn


def test_a_new_password_by_a_link_that_works_once(bench: StudyBench, visitor, app) -> None:  # noqa: F811
    who = newcomer(bench)
    signed_in = Browser(app, bench, who)
    page = visitor(bench.ADMIN).post(f"/manage/person/{who}/reset").text
    link = re.search(r"<code>(/new-password/[\w-]+)</code>", page)[1]
    stranger, fresh = Browser(app, bench, 0).client, "quite another password"
    assert stranger.get(link).status_code == 200
    assert stranger.post(link, data={"password": "short"}).status_code == 400
    assert stranger.post(link, data={"password": fresh}).headers["location"] == "/sign-in"
    assert signed_in.get("/work").headers["location"] == "/sign-in"  # every session has ended
    assert stranger.post(link, data={"password": PASSWORD}).status_code == 400
    assert stranger.post("/sign-in", data={"name": "林", "password": PASSWORD}).status_code == 401
    assert stranger.post("/sign-in", data={"name": "林", "password": fresh}).status_code == 303
    assert [row for row in audited(bench) if row[0] == str(who)][-2:] == [
        (str(who), "reset"),
        (str(who), "new_password"),
    ]
    with bench.store.reading() as session:
        assert link.rpartition("/")[2] not in str([row.detail for row in session.query(AuditRow)])


def test_wrong_passwords_lock_nobody_out_of_their_account(bench: StudyBench) -> None:
    who = newcomer(bench)
    for _ in range(20):
        with pytest.raises(accounts.SignInError):
            accounts.confirm(bench.service, who, "wrong")
    accounts.confirm(bench.service, who, PASSWORD)


def test_links_for_passwords_end(bench: StudyBench) -> None:
    who = newcomer(bench)
    first = accounts.reset_link(bench.service, bench.ADMIN, who)
    second = accounts.reset_link(bench.service, bench.ADMIN, who)
    with pytest.raises(InvalidInputError, match="not valid"):
        accounts.set_password(bench.service, first, PASSWORD)  # the newer one replaces it
    bench.clock.wait(accounts.RESET.total_seconds() + 1)
    with pytest.raises(InvalidInputError, match="not valid"):
        accounts.set_password(bench.service, second, PASSWORD)
    third = accounts.reset_link(bench.service, bench.ADMIN, who)
    managing.withdraw(bench.service, bench.ADMIN, who)
    with pytest.raises(InvalidInputError, match="not valid"):
        accounts.set_password(bench.service, third, PASSWORD)
    with bench.store.reading() as session:
        assert accounts.reset_links(session, who) == []
    for nobody in (who, 99):
        with pytest.raises(InvalidInputError, match="no account"):
            accounts.reset_link(bench.service, bench.ADMIN, nobody)
    with pytest.raises(ForbiddenError):
        accounts.reset_link(bench.service, bench.FAN, bench.ADMIN)
    # no invitation, and no setting of the study, is taken for a link
    invitation = accounts.invite(bench.service, bench.ADMIN, "amateur")
    for token in (invitation, "study", ""):
        with pytest.raises(InvalidInputError, match="not valid"):
            accounts.set_password(bench.service, token, PASSWORD)
    with pytest.raises(InvalidInputError, match="not valid"):
        accounts.accept(bench.service, third, "另一位", PASSWORD, consents=True)


def test_an_administrator_ends_the_sessions_of_an_account(bench: StudyBench, visitor) -> None:  # noqa: F811
    fan, other = visitor(bench.FAN), visitor(bench.OTHER_FAN)
    assert visitor(bench.ADMIN).post(f"/manage/person/{bench.FAN}/sign-out").status_code == 303
    assert fan.get("/work").headers["location"] == "/sign-in"
    assert other.get("/work").status_code == 200
    assert (str(bench.FAN), "end_sessions") in audited(bench)
    with pytest.raises(ForbiddenError):
        accounts.end_sessions(bench.service, bench.FAN, bench.ADMIN)


# pay, grades and warnings


def test_annotators_see_their_counts_rates_balance_grades_and_warnings(bench: StudyBench, visitor) -> None:  # noqa: F811
    number = described(bench)
    bench.service.configure(Settings(seed=1, share=0.0, rates=ledger.Rates(amateur=1234, currency="CNY")))
    with bench.store.writing() as session:
        session.add(WeekRow(person=bench.FAN, monday="2026-02-23", grade_a="", grade_b="II", excluded=False))
        session.add(WeekRow(person=bench.PRO, monday="2026-02-23", grade_a="III", grade_b="", excluded=False))
        session.query(WarningRow).delete()
        session.add(WarningRow(person=bench.FAN, task=number, kind="restless", moment=bench.clock()))
    seen = people.standing(bench.service, bench.FAN)
    assert seen.counts == {("amateur", "accepted"): 1}
    assert (seen.rates, seen.balance, seen.currency) == ({"amateur": 1234}, 1000, "CNY")
    page = visitor(bench.FAN).get("/work").text
    for said in ("10.00 CNY", "12.34 CNY", "<td>II</td>", "频繁操作", "加 10 %"):
        assert said in page
    assert "III</td>" not in page  # of somebody else
    page = visitor(bench.ADMIN).get("/manage/grades").text
    assert "<td>II</td>" in page
    assert "<td>III</td>" in page
    with pytest.raises(ForbiddenError):
        people.people(bench.service, bench.FAN)


def test_amounts_stand_in_the_currency_of_the_study(bench: StudyBench, visitor) -> None:  # noqa: F811
    described(bench)
    assert "1000 分" in visitor(bench.FAN).get("/ledger").text
    bench.service.configure(Settings(share=0.0, rates=ledger.Rates(currency="EUR")))
    for path in ("/ledger", "/manage"):
        assert "EUR" in visitor(bench.ADMIN).get(path).text
    assert "10.00 EUR" in visitor(bench.FAN).get("/ledger").text
    assert Settings.from_dict(Settings(rates=ledger.Rates(currency="EUR")).to_dict()).rates.currency == "EUR"
    assert amount_words(-105, "EUR", "zh") == "-1.05 EUR"


def test_the_ledger_says_when_each_entry_was_made(bench: StudyBench, visitor) -> None:  # noqa: F811
    described(bench)
    rows = list(csv.DictReader(io.StringIO(visitor(bench.ADMIN).get("/ledger.csv").text)))
    assert len(rows) == 3
    moments = [dt.datetime.fromisoformat(row["moment"]) for row in rows]
    assert moments == sorted(moments)
    assert all(moment.tzinfo is not None for moment in moments)
    assert moments[-1] == bench.clock()
    assert str(bench.clock().date()) in visitor(bench.FAN).get("/ledger").text


# feedback


def test_feedback_is_given_where_somebody_works_and_says_from_where(bench: StudyBench, visitor) -> None:  # noqa: F811
    structured(bench, "verse1", "bridge1")
    task = annotating.take_next(bench.service, bench.THIRD_PRO)
    assert task is None
    bench.songs("s2")
    task = bench.take(bench.PRO)
    browser, inspector = visitor(bench.PRO), visitor(bench.INSPECTOR)
    for reader, path in ((browser, f"/task/{task.id}"), (inspector, "/inspect/song/s1")):
        page = reader.get(path).text
        form = re.search(r'<form method="post" action="/feedback" data-here.*?</form>', page, re.DOTALL)[0]
        assert f'name="place" value="{path}"' in form
        answer = reader.post("/feedback", content="这里不清楚", place=path, here="yes")
        assert answer.status_code == 200
        assert "反馈已发送" in answer.text
        assert "<html" not in answer.text
    with bench.store.reading() as session:
        places = [(row.thread, row.place) for row in session.query(MessageRow)]
    assert places == [(bench.PRO, f"/task/{task.id}"), (bench.INSPECTOR, "/inspect/song/s1")]
    assert f"/task/{task.id}" in visitor(bench.ADMIN).get("/feedback").text
    assert browser.post("/feedback", content="在反馈页").headers["location"] == "/feedback"
