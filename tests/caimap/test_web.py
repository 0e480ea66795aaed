"""The pages of the annotation platform: what is kept when an act is refused, and what guards them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest
import soundfile
from tests.caimap.local_provider import CLIENT, SECRET, LocalProvider, running
from tests.caimap.routes import PAGES, PROVIDER_PAGES
from tests.caimap_bench import StudyBench, description, one_verse

from music_evals.caimap.domain import machine, structure
from music_evals.caimap.domain.machine import RIGHTS
from music_evals.caimap.domain.values import ROLES
from music_evals.caimap.services import accounts, annotating
from music_evals.caimap.storage.tables import SongRow, TaskRow
from music_evals.caimap.web.app import build_app
from music_evals.caimap.web.forms import structure_fields, structure_of
from music_evals.caimap.web.guards import HEADERS
from music_evals.caimap.web.provider import Provider
from music_evals.caimap.web.rendering import STATIC
from music_evals.caimap.web.visitors import COOKIE
from music_evals.caimap.web.words import LANGUAGES, catalogue, translator
from music_evals.errors import InvalidAnnotationError, UnknownNameError

testclient = pytest.importorskip("starlette.testclient")
PASSWORD = "a long password"  # noqa: S105  (of nobody)
ALL = (*PAGES, *PROVIDER_PAGES)


class Browser:
    """Somebody who is signed in."""

    def __init__(self, app, bench: StudyBench, who: int) -> None:
        asks = {"accept-language": "zh-CN, zh;q=0.9"}
        self.client = testclient.TestClient(app, base_url="http://testserver", follow_redirects=False, headers=asks)
        self.who = who
        if who:
            token = accounts.open_session(bench.service, who)
            self.client.cookies.set(COOKIE, token)
            self.csrf = accounts.visit(bench.service, token).csrf

    def get(self, path: str):
        return self.client.get(path)

    def post(self, path: str, **fields):
        return self.client.post(path, data={"csrf": self.csrf, **fields})

    def send(self, path: str, content: object):
        """Send JSON, as the scripts of pages do."""
        return self.client.post(path, json=content, headers={"x-csrf": self.csrf})


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with running(LocalProvider()) as served:
        yield Provider(CLIENT, SECRET, address="http://127.0.0.1:7860", url=served.url)


@pytest.fixture
def app(bench: StudyBench, provider: Provider, tmp_path):
    (tmp_path / "audio").mkdir()
    (tmp_path / "audio" / "s1.flac").write_bytes(b"fLaC")
    (tmp_path / "secret.txt").write_text("secret", encoding="utf-8")
    return build_app(bench.service, tmp_path / "audio", provider=provider)


@pytest.fixture
def visitor(app, bench: StudyBench) -> Iterator:
    return lambda who: Browser(app, bench, who)


def first_task(bench: StudyBench) -> int:
    bench.songs("s1")
    return bench.take(bench.PRO).id


WHO = {"amateur": StudyBench.FAN, "professional": StudyBench.OTHER_PRO, "inspector": StudyBench.INSPECTOR,
       "administrator": StudyBench.ADMIN}  # fmt: skip


def test_no_form_without_its_token(bench: StudyBench, visitor) -> None:
    let_in, people = [], {role: (visitor(who), visitor(who).csrf) for role, who in WHO.items()}
    pages = [page for page in ALL if page.method == "POST" and page.right != "public"]
    assert len(pages) > 30
    for page in pages:
        browser, of_another_session = people[min(RIGHTS[page.right])]
        path = re.sub(r"\{[^}]*\}", "1", page.path)
        for fields in ({}, {"csrf": "wrong"}, {"csrf": of_another_session}):
            answer = browser.client.post(path, data=fields)
            if answer.status_code != 403 or "页面已过期" not in answer.text:
                let_in.append((path, fields))
        crossed = browser.client.post(path, data={"csrf": browser.csrf}, headers={"origin": "https://evil.example"})
        if crossed.status_code != 403:
            let_in.append((path, "from elsewhere"))
    assert let_in == []


def test_signing_in_makes_a_new_session_that_no_script_reads(bench: StudyBench, app) -> None:
    token = accounts.invite(bench.service, bench.ADMIN, "amateur")
    client = testclient.TestClient(app, follow_redirects=False)
    fields = {"name": "林", "password": PASSWORD, "consents": "on"}
    assert client.post(f"/invitation/{token}", data=fields).headers["location"] == "/sign-in"
    client.cookies.set(COOKIE, "planted-by-somebody")
    answer = client.post("/sign-in", data={"name": "林", "password": PASSWORD})
    cookie = answer.headers["set-cookie"]
    assert "planted" not in cookie
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    value = cookie.partition("=")[2].partition(";")[0]
    browser = testclient.TestClient(app, follow_redirects=False, cookies={COOKIE: value})
    assert browser.get("/work").status_code == 200
    csrf = re.search(r'name="csrf" value="([^"]+)"', browser.get("/work").text)[1]
    assert browser.post("/sign-out", data={"csrf": csrf}).status_code == 303
    assert browser.get("/work").headers["location"] == "/sign-in"
    wrong = client.post("/sign-in", data={"name": "林", "password": "another password"})
    assert wrong.status_code == 401
    assert "林" in wrong.text


def test_guessing_is_slowed_down(app) -> None:
    client = testclient.TestClient(app)
    answers = [client.post("/sign-in", data={"name": "a", "password": "b"}).status_code for _ in range(9)]
    assert answers[:2] == [401, 401]
    assert answers.count(429) >= 3  # 1 s, 2 s, 4 s


def test_every_answer_is_hardened_and_no_page_holds_a_script(bench: StudyBench, visitor) -> None:
    number = first_task(bench)
    paths = {"/sign-in": 0, f"/task/{number}": bench.PRO, "/manage": bench.ADMIN, "/static/caimap.js": 0, "/nowhere": 0}
    for path, who in paths.items():
        answer = visitor(who).get(path)
        for name, value in HEADERS.items():
            assert answer.headers[name] == value
        if answer.headers["content-type"].startswith("text/html"):
            assert not re.search(r"<script(?![^>]*\bsrc=)|\son\w+=|style=|javascript:|https?://", answer.text)
    assert visitor(bench.PRO).client.post("/work/next", content=b"x" * 1_000_001).status_code == 413


def test_a_waveform_is_that_of_the_recording(bench: StudyBench, visitor, tmp_path) -> None:
    number = first_task(bench)
    browser, sound = visitor(bench.PRO), np.repeat([0.5, -0.25, 0.0, 1.0], 2000)
    soundfile.write(tmp_path / "audio" / "s1.flac", sound * 0.5, 22050)
    with bench.store.writing() as session:
        row = session.get(SongRow, "s1")
        row.content = {**row.content, "audio": "s1.flac"}
    peaks = browser.get(f"/task/{number}/waveform").json()["peaks"]
    assert [peaks[at] for at in (100, 400, 600, 900)] == [128, 64, 0, 255]
    (tmp_path / "audio" / "s1.flac").write_bytes(b"fLaC")
    refused = browser.get(f"/task/{number}/waveform")
    assert (refused.status_code, browser.get(f"/task/{number}").status_code) == (400, 200)
    assert visitor(bench.FAN).get(f"/task/{number}/waveform").status_code == 403


def test_the_language_that_was_chosen_stays(bench: StudyBench, visitor) -> None:
    browser = visitor(bench.ADMIN)
    assert 'lang="zh-CN"' in browser.get("/manage").text
    assert "Management" in browser.get("/manage?language=en").text
    assert "Management" in browser.get("/manage").text
    refused = browser.post("/manage/invite", role="nobody")
    assert (refused.status_code, "Management" in refused.text) == (400, True)
    assert "Management" in browser.get("/manage?language=fr").text
    assert "set-cookie" not in browser.get("/manage?language=fr").headers
    assert "管理" in browser.get("/manage?language=zh").text


def test_no_script_of_others_lies_here() -> None:
    ours = {"caimap.js", "parts.js", "reports.js", "rows.js", "waveform.js"}
    assert {path.name for path in STATIC.rglob("*.js")} == ours


def test_what_was_written_is_kept_when_somebody_was_quicker(bench: StudyBench, visitor) -> None:
    number = first_task(bench)
    browser, seen = visitor(bench.PRO), bench.version(TaskRow, number)
    fields = structure_fields(one_verse("春眠不觉晓", theme="我写的主题"))
    assert browser.post(f"/task/{number}/save", version=str(seen), **fields).status_code == 303
    stale = browser.post(f"/task/{number}/save", version=str(seen), **{**fields, "theme": "另一个主题"})
    assert stale.status_code == 409
    assert "任务已有改动" in stale.text
    assert "另一个主题" in stale.text
    bad = browser.post(f"/task/{number}/submit", version=str(seen + 1), **{**fields, "line_0": "春眠<b>abc"})
    assert bad.status_code == 400
    assert "春眠&lt;b&gt;abc" in bad.text
    assert browser.post(f"/task/{number}/submit", version=str(seen + 1), **fields).headers["location"] == "/work"
    assert browser.post(f"/task/{number}/submit", version=str(seen + 1), **fields).status_code == 409


@pytest.mark.requirement(number=9)
def test_a_forged_description_is_refused_and_an_honest_one_taken(bench: StudyBench, visitor) -> None:
    bench.songs("s1")
    for who in (bench.PRO, bench.OTHER_PRO):
        task = bench.take(who)
        annotating.submit(bench.service, who, task.id, bench.version(TaskRow, task.id), one_verse("春眠不觉晓"))
        bench.clock.wait(days=2)
    browser = visitor(bench.FAN)
    where = browser.post("/work/next").headers["location"]
    number = int(where.rpartition("/")[2])
    given = description("amateur")
    fields = {f"tags_{name}": "、".join(said.tags) for name, said in given.dimensions.items()}
    fields |= {"overall_text": given.overall_text, "clear": "yes"}
    refused = browser.post(f"{where}/submit", version=str(bench.version(TaskRow, number)), **fields)
    assert refused.status_code == 400
    assert "一次听完整首歌" in refused.text
    assert given.overall_text in refused.text
    headers = {"x-csrf": browser.csrf}
    forged = {"events": [{"kind": "ended", "position_sec": 40, "received_sec": 40}]}
    assert browser.client.post(f"{where}/events", json=forged, headers=headers).status_code == 200
    assert browser.post(f"{where}/submit", version="2", **fields).status_code == 400
    for wrong in ({"events": [3]}, {"events": [{"kind": "dance", "position_sec": 0}]}, []):
        answer = browser.client.post(f"{where}/events", json=wrong, headers=headers)
        assert answer.status_code == 400 or wrong == []
    bench.listen(bench.FAN, number)
    taken = browser.post(f"{where}/submit", version=str(bench.version(TaskRow, number)), **fields)
    assert taken.headers["location"] == "/work"


@pytest.mark.requirement(number=7)
def test_two_inspectors_on_one_song_by_the_pages(bench: StudyBench, visitor) -> None:
    bench.two_passes("s1", "verse1", "chorus1")
    first, second = visitor(bench.INSPECTOR), visitor(bench.OTHER_INSPECTOR)
    page = first.get("/inspect/song/s1").text
    assert page.count('class="differs') == 2  # the label on both sides, and nothing else
    seen = str(bench.version(SongRow, "s1"))
    fields = structure_fields(one_verse("春眠不觉晓"))
    assert first.post("/inspect/song/s1", version=seen, **fields).headers["location"] == "/inspect"
    late = second.post("/inspect/song/s1", version=seen, **{**fields, "theme": "第二位的主题"})
    assert late.status_code == 409
    assert "第二位的主题" in late.text


def test_recordings_are_those_of_the_study_alone(bench: StudyBench, visitor, tmp_path) -> None:
    number = first_task(bench)
    browser = visitor(bench.PRO)
    for name, status in (("s1.flac", 200), ("../secret.txt", 403), ("", 403), ("none.flac", 403)):
        with bench.store.writing() as session:
            row = session.get(SongRow, "s1")
            row.content = {**row.content, "audio": name}
        assert browser.get(f"/task/{number}/audio").status_code == status


@pytest.mark.parametrize(("language", "said"), [("zh", "没有这一页。"), ("en-GB", "There is no such page.")])
def test_an_address_of_no_page_is_answered_in_the_language_of_the_browser(
    bench: StudyBench, visitor, language: str, said: str
) -> None:
    browser = visitor(bench.FAN)
    browser.client.headers["accept-language"] = language
    for path, status in (("/nothing", 404), ("/work/next", 405)):
        answer = browser.get(path)
        assert (answer.status_code, answer.text) == (status, said)
        assert "content-security-policy" in answer.headers


@pytest.mark.requirement(number=8)
def test_terms_are_suggested_while_somebody_types(bench: StudyBench, visitor) -> None:
    answer = visitor(bench.FAN).get("/lexicon/amateur/instrumentation?tags_instrumentation=随便、钢琴")
    assert answer.status_code == 200
    assert 'data-term="钢琴"' in answer.text
    assert visitor(bench.FAN).get("/lexicon/amateur/nothing").status_code == 404


@pytest.mark.requirement(number=5)
def test_structures_round_trip_through_the_editor() -> None:
    made = one_verse("春眠不觉晓", "处处闻啼鸟")
    assert structure_of(structure_fields(made)) == made
    split = {**structure_fields(made), "line_0": "春眠/不觉晓"}
    assert structure_of(split).sections[0].lines == ("春眠", "不觉晓", "处处闻啼鸟")
    merged = {**structure_fields(made), "line_0": "", "line_1": "春眠不觉晓 处处闻啼鸟"}
    assert structure_of(merged).sections[0].lines == ("春眠不觉晓 处处闻啼鸟",)
    with pytest.raises(InvalidAnnotationError, match="must begin a section"):
        structure_of({"line_0": "春", "theme": "x"})


def test_both_languages_have_every_text() -> None:
    for name, given in catalogue().items():
        assert all(text.strip() for text in given), name
    for language in LANGUAGES:
        assert translator(language)("sign_in")
    with pytest.raises(UnknownNameError):
        translator("zh")("no such text")


def test_every_role_and_state_has_a_text() -> None:
    tables = {"song": machine.SONG, "task": machine.TASK}
    names = [f"{kind}_{state}" for kind, table in tables.items() for state in machine.states(table)]
    for name in (*names, *(f"{role}_role" for role in ROLES), *structure.SCREENING_REASONS):
        assert translator("en")(name)


def test_pages_speak_both_languages(visitor) -> None:
    assert "登录" in visitor(0).get("/sign-in").text
    assert "Sign in" in visitor(0).get("/sign-in?language=en").text


def test_drafts_save_themselves_and_nothing_is_written_too_early(bench: StudyBench, visitor) -> None:
    number = first_task(bench)
    browser, address = visitor(bench.PRO), f"/task/{number}/draft"
    headers = {"x-csrf": browser.csrf}

    def draft(version: object, **fields: object):
        return browser.client.post(address, json={"version": version, "fields": fields}, headers=headers)

    seen = bench.version(TaskRow, number)
    kept = draft(seen, line_0="春眠", theme="早晨", csrf="x")
    assert kept.json() == {"version": seen + 1}
    with bench.store.reading() as session:
        assert session.get(TaskRow, number).draft == {"line_0": "春眠", "theme": "早晨"}
    assert "早晨" in browser.get(f"/task/{number}").text
    late = draft(seen, theme="x")
    assert (late.status_code, "任务已有改动" in late.json()["error"]) == (409, True)
    for version, fields in (("1", {}), (seen + 1, {"theme": 3})):
        assert draft(version, **fields).status_code == 400
    assert browser.client.post(address, json={"version": seen + 1}, headers=headers).status_code == 400
    assert browser.client.post(address, json={"version": seen + 1, "fields": {}}).status_code == 403


def test_a_page_says_whether_its_reader_may_write(bench: StudyBench, visitor) -> None:
    bench.songs("s1")
    for who in (bench.PRO, bench.OTHER_PRO):
        task = bench.take(who)
        annotating.submit(bench.service, who, task.id, bench.version(TaskRow, task.id), one_verse("春眠不觉晓"))
        bench.clock.wait(days=2)
    browser = visitor(bench.FAN)
    where = browser.post("/work/next").headers["location"]
    headers = {"x-csrf": browser.csrf}
    assert 'data-writes="no"' in browser.get(where).text
    early = browser.client.post(
        f"{where}/draft", json={"version": 2, "fields": {"overall_text": "字"}}, headers=headers
    )
    assert early.status_code == 400
    browser.client.post(f"{where}/events", json={"events": [{"kind": "play", "position_sec": 0}]}, headers=headers)
    for at, may in ((15, False), (30, True)):
        bench.clock.wait(15)
        beat = {"events": [{"kind": "beat", "position_sec": at}]}
        assert browser.client.post(f"{where}/events", json=beat, headers=headers).json()["writes"] is may
    assert 'data-writes="yes"' in browser.get(where).text
    kept = browser.client.post(f"{where}/draft", json={"version": 2, "fields": {"overall_text": "字"}}, headers=headers)
    assert kept.status_code == 200


@pytest.mark.slow
def test_a_break_is_suggested_after_long_work(bench: StudyBench, visitor) -> None:
    number = first_task(bench)
    browser = visitor(bench.PRO)
    for minute in range(0, 52, 4):
        assert 'class="rest"' not in browser.get(f"/task/{number}").text, minute
        annotating.save(bench.service, bench.PRO, number, bench.version(TaskRow, number), {"theme": str(minute)})
        bench.clock.wait(240)
    assert 'class="rest"' in browser.get(f"/task/{number}").text
    assert 'class="rest"' in browser.get("/work").text
    bench.clock.wait(600)
    assert 'class="rest"' not in browser.get("/work").text
