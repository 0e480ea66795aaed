"""Pages and refusals in the language of their reader: nothing English on Chinese pages, and the other way round."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.caimap.routes import PAGES
from tests.caimap.test_web import PASSWORD, Browser
from tests.caimap_bench import StudyBench, description, one_verse

import music_evals.caimap
from music_evals.caimap.domain import grades, machine, structure
from music_evals.caimap.domain.values import ROLES, ScoreSheet
from music_evals.caimap.services import accounts, annotating, managing, training
from music_evals.caimap.services.study import Settings
from music_evals.caimap.storage.store import sqlite_url
from music_evals.caimap.storage.tables import PersonRow, SongRow, TaskRow, WarningRow, WeekRow
from music_evals.caimap.web.app import build_app
from music_evals.caimap.web.words import LANGUAGE_COOKIE, LANGUAGES, catalogue, preferred, reason_words, refusal
from music_evals.errors import InvalidInputError

testclient = pytest.importorskip("starlette.testclient")

CODES = {*machine.states(machine.SONG), *machine.states(machine.TASK), *ROLES, *structure.SCREENING_REASONS,
         "short_visit", "restless", "congruent lines"}  # fmt: skip
_SPOKEN = ("aria-label", "title", "placeholder", "data-saved", "data-unsaved", "data-blocked", "data-play", "alt")
_VOID = {"input", "br", "meta", "link", "img", "hr"}


class Texts(HTMLParser):
    """What a page says in its own language: texts and names of fields; not codes, not what somebody wrote."""

    def __init__(self, language: str) -> None:
        super().__init__()
        self.language, self.found = language, []
        self.open: list[tuple[str, bool]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        other = tag != "html" and given.get("lang", self.language)[:2] != self.language
        silent = other or tag in {"code", "textarea", "style", "script"} or (self.open and self.open[-1][1])
        if not silent:
            self.found += [given[name] for name in _SPOKEN if given.get(name)]
        if tag not in _VOID:
            self.open.append((tag, bool(silent)))

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        if data.strip() and not self.open[-1][1]:
            self.found.append(data.strip())


def foreign(page: str, language: str) -> list[str]:
    """Return the texts of a page that are in the other language."""
    reader = Texts(language)
    reader.feed(page)
    if language == "en":
        return [text for text in reader.found if re.search(r"[\u4e00-\u9fff]", text)]
    names = {f"{role}{number}" for number, role in enumerate(StudyBench.PEOPLE, 1)}
    found = []
    for text in reader.found:
        words = [word for word in re.findall(r"[A-Za-z_]+\d*", text) if word not in names]
        if re.search(r"[a-z]{2,}[ ,]+[a-z]{2,}", text) or CODES & set(words):
            found.append(text)
    return found


def test_the_search_for_foreign_texts_finds_them() -> None:
    page = '<html lang="zh-CN"><p aria-label="a foreign label">中</p><p>submitted</p><p lang="en">not this</p></html>'
    assert foreign(page, "zh") == ["a foreign label", "submitted"]
    assert foreign("<p>中文<code>中</code></p><textarea>中</textarea>", "en") == ["中文"]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> StudyBench:
    """A study with something on every page, which nobody has opened."""
    url = sqlite_url(tmp_path_factory.mktemp("busy") / "study.db")
    bench = StudyBench(url, Settings(seed=1, share=0.0, congruent_share=0.0))
    bench.songs("s1", "s2")
    training.choose_songs(bench.service, bench.ADMIN, 1)
    tasks = [bench.take(bench.PRO)]
    annotating.screen(
        bench.service, bench.PRO, tasks[0].id, bench.version(TaskRow, tasks[0].id), reason="other", note="0:30"
    )
    bench.songs("s3", "s4", "s5")
    for who, labels in ((bench.OTHER_PRO, ("verse1",) * 3), (bench.THIRD_PRO, ("bridge1", "verse1", "verse1"))):
        for label in labels:
            task = bench.take(who)
            given = one_verse("春眠不觉晓", "处处闻啼鸟", label=label)
            annotating.submit(bench.service, who, task.id, bench.version(TaskRow, task.id), given)
        bench.clock.wait(days=2)
    described = bench.take(bench.FAN)
    bench.listen(bench.FAN, described.id)
    annotating.submit(
        bench.service, bench.FAN, described.id, bench.version(TaskRow, described.id), description("amateur")
    )
    bench.take(bench.OTHER_FAN)
    managing.post_message(bench.service, bench.FAN, "2x?", place="/work")
    with bench.store.writing() as session:
        monday = grades.week_of(bench.clock()).isoformat()
        session.add(WeekRow(person=bench.FAN, monday=monday, grade_a="", grade_b="II", excluded=False))
        session.add(WarningRow(person=bench.FAN, task=described.id, kind="restless", moment=bench.clock()))
    bench.store.close()
    return bench


@pytest.fixture
def busy(filled: StudyBench, tmp_path: Path) -> Iterator[StudyBench]:
    """A copy of that study."""
    copy = filled.copied(tmp_path / "study")
    yield copy
    copy.store.close()


@pytest.fixture
def visitor(busy: StudyBench, tmp_path):
    (tmp_path / "audio").mkdir()
    app = build_app(busy.service, tmp_path / "audio")

    def come(who: int, language: str) -> Browser:
        browser = Browser(app, busy, who)
        if who:
            accounts.set_language(busy.service, who, language)
        else:
            browser.client.cookies.set(LANGUAGE_COOKIE, language)
        return browser

    return come


def addresses(bench: StudyBench) -> list[tuple[int, str]]:
    """Return who reads which page, every page that can be read among them."""
    with bench.store.reading() as session:
        # of each kind in each state
        tasks = [*{(row.kind, row.state): (row.id, row.kind, row.person) for row in session.query(TaskRow)}.values()]
        songs = [row.id for row in session.query(SongRow).where(SongRow.state == "inspecting")]
    readers = {"annotate": (bench.FAN, bench.PRO), "inspect": (bench.INSPECTOR,), "manage": (bench.ADMIN,),
               "public": (0,), "ask": (bench.FAN, bench.PRO, bench.INSPECTOR, bench.ADMIN)}  # fmt: skip
    found = []
    for page in PAGES:
        if page.method != "GET" or page.path.endswith(("audio", ".csv", "waveform")):
            continue
        for who in readers[page.right]:
            if page.path.startswith("/task/"):
                found += [(by, page.path.replace("{number:id}", str(task))) for task, _, by in tasks]
                break
            for song in songs:
                for task, _, by in tasks:
                    path = page.path
                    given = {"{number:id}": task, "{song}": song, "{token}": "x", "{person:id}": by,
                             "{group}": "amateur", "{dimension}": "instrumentation"}  # fmt: skip
                    for name, value in given.items():
                        path = path.replace(name, str(value))
                    found.append((who, path))
    return sorted(set(found))


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
def test_every_page_is_in_one_language(busy: StudyBench, visitor, language: str) -> None:
    read, wrong = 0, {}
    for who, path in addresses(busy):
        answer = visitor(who, language).get(path)
        if answer.status_code in {200, 400, 403, 404} and answer.headers["content-type"].startswith("text/html"):
            read += 1
            if found := foreign(answer.text, language):
                wrong[path] = found
    assert wrong == {}
    assert read > 40


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_refusal_is_in_one_language(busy: StudyBench, visitor, language: str) -> None:
    with busy.store.reading() as session:
        mine = {row.kind: row.id for row in session.query(TaskRow).where(TaskRow.person == busy.OTHER_FAN)}
        other = session.query(TaskRow).where(TaskRow.kind == "structure", TaskRow.state == "submitted").first().id
        open_song = session.query(SongRow).where(SongRow.state == "inspecting").first()
        song, seen = open_song.id, open_song.version
    fan, number = visitor(busy.OTHER_FAN, language), mine["amateur"]
    inspector, manager = visitor(busy.INSPECTOR, language), visitor(busy.ADMIN, language)
    stranger = visitor(0, language)
    version = str(busy.version(TaskRow, number))
    settle = f"/inspect/song/{song}"
    posts = [
        (fan, f"/task/{other}/submit", {}), (fan, f"/task/{number}/submit", {"version": version}),
        (fan, f"/task/{number}/submit", {"version": "77", "overall_text": "字"}),
        (fan, f"/task/{number}/submit", {"version": version, "clear": "yes"}),
        (fan, f"/task/{number}/submit", {"version": version, "clear": "yes", "overall_text": "字" * 60}),
        (fan, f"/task/{number}/save", {"version": version, "overall_text": "字"}),
        (fan, f"/task/{number}/skip", {"version": version, "reason": "other"}),
        (fan, "/feedback", {"content": " "}), (fan, "/manage/invite", {}),
        (inspector, settle, {"version": str(seen)}),
        (inspector, settle, {"version": str(seen), "line_0": "春", "label_0": "song1"}),
        (inspector, settle, {"version": str(seen), "line_0": "ab", "label_0": "verse1", "theme": "题"}),
        (inspector, settle, {"version": str(seen), "line_0": "春", "label_0": "verse1"}),
        (inspector, settle, {"version": "999", "line_0": "春", "label_0": "verse1", "theme": "题"}),
        (inspector, f"/inspect/task/{number}", {}), (inspector, "/inspect/song/none", {}),
        (manager, "/manage/week", {"monday": "2026-03-03"}), (manager, "/manage/week", {"monday": "x"}),
        (manager, "/ledger", {"person": "99", "cents": "1", "kind": "work", "reason": "r"}),
        (manager, "/ledger", {"person": "3", "cents": "-1", "kind": "work", "reason": "r"}),
        (manager, "/ledger", {"person": "3", "cents": "1", "kind": "gift", "reason": "r"}),
        (manager, "/ledger", {"person": "3", "cents": "x"}),
        (manager, "/manage/invite", {"role": "king"}), (manager, f"/manage/song/{song}", {"version": "1"}),
        (manager, f"/manage/song/{song}", {"version": str(seen), "decision": "finish"}),
        (manager, "/training/songs", {"songs": "99"}), (manager, "/training/round", {}),
        (manager, "/language", {"language": "fr"}),
    ]  # fmt: skip
    answers = [(path, browser.post(path, **fields)) for browser, path, fields in posts]
    answers += [(path, stranger.client.post(path, data=fields)) for path, fields in (
        ("/sign-in", {"name": "a", "password": "b"}),
        ("/invitation/x", {"name": "a", "password": PASSWORD}),
        ("/invitation/x", {"name": "a", "password": "short", "consents": "on"}),
        ("/invitation/x", {"name": "a", "password": PASSWORD, "consents": "on"}),
        (f"/task/{number}/submit", {"overall_text": "字"}),
    )]  # fmt: skip
    answers.append(("no token", fan.client.post(f"/task/{number}/submit", data={"overall_text": "字"})))
    generic = catalogue()["refused.any"][LANGUAGES.index(language)]
    for path, answer in answers:
        assert 400 <= answer.status_code < 500, path
        assert 'role="alert"' in answer.text, path
        assert foreign(answer.text, language) == [], path
        assert generic not in answer.text, path
    headers = {"x-csrf": fan.csrf}
    for address, body in ((f"/task/{number}/draft", {"version": 1}), (f"/task/{number}/events", {"events": [3]})):
        said = fan.client.post(address, json=body, headers=headers).json()["error"]
        assert bool(re.search(r"[\u4e00-\u9fff]", said)) is (language == "zh")


def test_a_language_is_kept_for_the_account_and_before_there_is_one(busy: StudyBench, visitor) -> None:
    fan = visitor(busy.FAN, "zh")
    answer = fan.post("/language", language="en", to="/work")
    assert (answer.status_code, answer.headers["location"]) == (303, "/work")
    assert "My work" in fan.get("/work").text
    with busy.store.reading() as session:
        assert session.get(PersonRow, busy.FAN).language == "en"
    assert "My work" in visitor(busy.FAN, "en").get("/work").text  # in another browser
    stranger = Browser(fan.client.app, busy, 0)
    assert "登录" in stranger.get("/sign-in").text
    assert (
        stranger.client.post("/language", data={"language": "en", "to": "/sign-in"}).headers["location"] == "/sign-in"
    )
    assert "Sign in" in stranger.get("/sign-in").text
    token = accounts.invite(busy.service, busy.ADMIN, "amateur")
    fields = {"name": "Lin", "password": PASSWORD, "consents": "on"}
    assert stranger.client.post(f"/invitation/{token}", data=fields).status_code == 303
    with busy.store.reading() as session:
        assert session.query(PersonRow).where(PersonRow.name == "Lin").one().language == "en"


@pytest.mark.parametrize(
    ("to", "reached"),
    [("//evil.example", "/"), ("https://evil.example", "/"), ("/task/1/submit", "/task/1"), ("", "/"),
     ("/manage/invite", "/manage"), ("/\\evil.example", "/"), ("/nowhere", "/")],
)  # fmt: skip
def test_the_language_leads_back_to_pages_of_ours_alone(visitor, to: str, reached: str) -> None:
    answer = visitor(0, "zh").client.post("/language", data={"language": "en", "to": to})
    assert answer.headers["location"] == reached


def raised() -> dict[str, list[set[str]]]:
    """Return kind -> names of the facts of each place that raises it."""
    found: dict[str, list[set[str]]] = {}
    for path in Path(music_evals.caimap.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("Error"):
                named = {word.arg: word.value for word in node.keywords}
                if isinstance(named.get("kind"), ast.Constant):
                    found.setdefault(named["kind"].value, []).append(set(named))
    return found


def test_every_kind_of_refusal_has_words_and_its_facts_are_given() -> None:
    kinds = raised()
    assert len(kinds) > 60
    for kind, places in kinds.items():
        for text in catalogue()[f"refused.{kind}"]:
            wanted = set(re.findall(r"\{(\w+)\}", text))
            assert all(wanted <= given for given in places), kind
    known = {name.partition(".")[2] for name in catalogue() if name.startswith("refused.")}
    assert {name for name in known - set(kinds) if not name.endswith("Error")} == {"any", "step", "unknown_name"}


# what is raised on the way of a request; the command line and imports speak English
_ASKED = ("services/*.py", "web/*.py", "web/routes/*.py", "domain/structure.py", "domain/description.py",
          "domain/listening.py", "domain/assurance.py", "domain/machine.py", "domain/ledger.py")  # fmt: skip
_ELSEWHERE = {"there is one of that id", "has its administrator already", "the study has no administrator",
              "the share must lie", "the seed must be", "the two annotations differ",
              # settings, what a server is started with, and exports
              "is less than one of 100", "must name a version of the text", "consent alone, and none is known of",
              "the address of the study", "the address of the provider", "the scopes must hold openid, got",
              "expected the address of a proxy", "is everybody: name the proxies"}  # fmt: skip


def test_whatever_pages_may_refuse_has_a_kind() -> None:
    bare = []
    root = Path(music_evals.caimap.__file__).parent
    assert all(list(root.glob(pattern)) for pattern in _ASKED)
    for path in (found for pattern in _ASKED for found in root.glob(pattern)):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)):
            if not (isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call)):
                continue
            said = ast.get_source_segment(text, node.exc) or ""
            if said.startswith(("UnknownNameError", "ForbiddenStepError")) or any(part in said for part in _ELSEWHERE):
                continue  # the first two bring theirs along
            if f"refused.{said.partition('(')[0].rpartition('.')[2]}" in catalogue():
                continue
            if "kind" not in {word.arg for word in node.exc.keywords}:
                bare.append(f"{path.name}: {said[:80]}")
    assert bare == []


def test_an_error_without_a_kind_says_no_english_on_a_chinese_page() -> None:
    error = InvalidInputError("of no rule of the platform")
    assert refusal(error, "en") == "of no rule of the platform"
    assert not re.search("[A-Za-z]", refusal(error, "zh"))


def test_reasons_of_entries_are_put_into_words() -> None:
    assert reason_words("structure of s1", "zh") == "结构标注：s1"
    assert reason_words("returned: amateur of s1", "zh") == "抽查退回，大众描述：s1"
    assert reason_words("discarded: amateur of s1", "en") == "Discarded, Amateur description: s1"
    assert reason_words("grade III, week of 2026-03-02", "zh") == "2026-03-02 那一周，等级 III"
    assert reason_words("bonus", "zh") == "bonus"


def test_points_of_a_sheet_name_their_row_in_the_language(busy: StudyBench) -> None:
    from music_evals.caimap.domain import assurance

    form = assurance.FORMS["amateur"]
    wrong = ScoreSheet(1, 2, {**dict.fromkeys(form, 1.0), ("instrumentation", "labels"): 99.0})
    with pytest.raises(InvalidInputError) as caught:
        assurance.check_sheet(wrong, "amateur")
    assert "99" in refusal(caught.value, "zh")
    assert foreign(f"<p>{refusal(caught.value, 'zh')}</p>", "zh") == []
    assert foreign(f"<p>{refusal(caught.value, 'en')}</p>", "en") == []


@pytest.mark.parametrize(
    ("accepted", "language"),
    [("en", "en"), ("en-GB", "en"), ("zh", "zh"), ("ZH-hant-TW", "zh"), ("zh_CN", "zh"), ("zh-Hant;q=.5, en", "en"),
     ("zh-Hant;q=.5, en;q=0.4", "zh"), ("en-GB,en;q=0.9,zh-CN;q=0.8", "en"), ("zh-CN,zh;q=0.9,en;q=0.8", "zh"),
     ("zh;q=0.1, en;q=0.2, zh-TW;q=0.9", "zh"), ("zh;q=0.7, en;q=0.7", "zh"), ("de", "en"), ("de, *;q=0.5", "en"),
     ("fr, zh;q=0.1", "zh"), ("en;q=0, *", "zh"), ("zh;q=0", "en"), ("en;q=0", "en"), ("", "en"), ("*", "en"),
     (";;,=,q=,zh;q=nan", "en"), ("zh;q=-1, zh;q=2, zh;q=1e999, zh;q", "en"), ("zh;level=1", "en"),
     ("\xe4,\xff;q", "en"), ("zhx, english", "en"), ("," * 100_000 + "zh", "zh")],
)  # fmt: skip
def test_a_browser_names_the_languages_that_its_reader_takes(accepted: str, language: str) -> None:
    assert preferred(accepted) == language


@pytest.mark.parametrize(("accepted", "language"), [("en-GB,en;q=0.9", "en"), ("zh-TW,en;q=0.3", "zh"), ("", "en")])
def test_pages_open_in_the_language_of_the_browser(busy: StudyBench, visitor, accepted: str, language: str) -> None:
    chief = visitor(busy.ADMIN, "")  # who has chosen no language
    stranger = Browser(chief.client.app, busy, 0)
    for browser in (chief, stranger):
        browser.client.headers["accept-language"] = accepted
    token = accounts.invite(busy.service, busy.ADMIN, "amateur")
    answers = [chief.get("/manage"), chief.post("/manage/invite", role="king"), stranger.get("/sign-in"),
               stranger.get(f"/invitation/{token}"), stranger.client.post("/sign-in", data={"name": "a"})]  # fmt: skip
    assert [answer.status_code for answer in answers] == [200, 400, 200, 200, 401]
    for answer in answers:
        assert f'<html lang="{"zh-CN" if language == "zh" else "en"}">' in answer.text
        assert foreign(answer.text, language) == []
        assert "set-cookie" not in answer.headers  # nothing was chosen, so that nothing is kept
    plain = [stranger.get("/nothing"), stranger.client.post("/sign-in", content=b"a" * 1_000_001)]
    assert [answer.status_code for answer in plain] == [404, 413]
    for answer in plain:
        assert bool(re.search(r"[\u4e00-\u9fff]", answer.text)) is (language == "zh")


def test_what_a_reader_chose_stands_above_what_the_browser_asks_for(busy: StudyBench, visitor) -> None:
    stranger = Browser(visitor(0, "").client.app, busy, 0)
    stranger.client.headers["accept-language"] = "zh-CN"
    assert "登录" in stranger.get("/sign-in").text
    stranger.client.post("/language", data={"language": "en", "to": "/sign-in"})
    assert "Sign in" in stranger.get("/sign-in").text
    assert stranger.get("/nothing").text == "There is no such page."
    accounts.set_language(busy.service, busy.FAN, "en")  # chosen in another browser
    assert "My work" in visitor(busy.FAN, "en").get("/work").text
