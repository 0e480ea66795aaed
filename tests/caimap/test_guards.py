"""What guards the pages: nothing that is sent breaks them, addresses cannot be forged, and failures are counted."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from tests.caimap.routes import PAGES
from tests.caimap_bench import StudyBench

from music_evals.caimap.domain.machine import RIGHTS
from music_evals.caimap.services import accounts
from music_evals.caimap.services.study import Settings
from music_evals.caimap.storage.store import migrate
from music_evals.caimap.storage.tables import TaskRow
from music_evals.caimap.web.app import build_app
from music_evals.caimap.web.guards import (
    HEADERS,
    LONGEST_WAIT_SEC,
    MOST_KEYS,
    Attempts,
    check_texts,
    number_of,
    proxies_of,
)
from music_evals.caimap.web.visitors import COOKIE
from music_evals.cli import main
from music_evals.errors import InvalidInputError

testclient = pytest.importorskip("starlette.testclient")
PASSWORD = "a long password"  # noqa: S105  (of nobody)


def signed_in(app: Any, bench: StudyBench, who: int) -> tuple[Any, str]:
    """Return a browser, and the token of its forms; failures of the server come back as answers."""
    client = testclient.TestClient(app, follow_redirects=False, raise_server_exceptions=False)
    if not who:
        return client, ""
    token = accounts.open_session(bench.service, who)
    client.cookies.set(COOKIE, token)
    return client, accounts.visit(bench.service, token).csrf


def assert_hardened(answer: Any) -> None:
    for name, value in HEADERS.items():
        assert answer.headers[name] == value


@pytest.fixture
def app(bench: StudyBench, tmp_path: Path) -> Any:
    (tmp_path / "audio").mkdir()
    return build_app(bench.service, tmp_path / "audio")


# --- nothing that is sent breaks a page

NUMBERS = (
    "0",
    "-1",
    "9" * 9,
    "9" * 10,
    "9" * 30,
    "9" * 5000,
    "-" + "9" * 30,
    "1e999",
    "nan",
    "",
    "\uff11\uff12",
    "1_0",
)
TEXTS = ("\0", "春\0眠", "<b>", "=1+1", "x" * 3000, "9999-12-27", "2026-03-02", "/" * 300)
FIELDS = ("person", "cents", "kind", "reason", "thread", "content", "place", "version", "songs", "monday", "decision",
          "role", "name", "password", "consents", "note", "line_0", "label_0", "theme", "clear", "overall_text",
          "remark")  # fmt: skip
PLAIN = {"kind": "correction", "reason": "test", "person": "4", "cents": "5", "content": "一", "version": "1"}
SURROGATE = b'{"version": 2, "fields": {"theme": "\\ud800"}, "events": [{"kind": "\\udfff", "position_sec": 0}]}'
JSONS = (
    SURROGATE,
    SURROGATE.replace(b"theme", b"\\udc00"),
    b'{"version": 2, "fields": {"theme": "\\u0000"}}',
    b'{"events": [{"kind": "play", "position_sec": ' + b"9" * 400 + b"}]}",
    b'{"events": [{"kind": "play", "position_sec": 0, "value": ' + b"9" * 400 + b"}]}",
    b'{"events": [{"kind": "play", "position_sec": 1e999, "value": NaN}]}',
    b'{"version": ' + b"9" * 30 + b', "fields": {}}',
    b'{"version": ' + b"9" * 5000 + b', "fields": {}}',
    b"[" * 100_000,
    b"\xff",
    b"null",
)
PART = b'--x\r\ncontent-disposition: form-data; name="theme"\r\n\r\n%b\r\n--x--\r\n'
BROKEN = (
    ("application/x-www-form-urlencoded", b"csrf=%ff%fe&theme=%ed%a0%80&version=%00"),
    ("application/x-www-form-urlencoded", b"&".join(b"f%d=1" % number for number in range(3001))),
    ("multipart/form-data", b"no boundary"),
    ("multipart/form-data; boundary=x; charset=punycode", PART % b"\xff-\xff"),
    ("multipart/form-data; boundary=x; charset=raw_unicode_escape", PART % b"\\ud800"),
)


def paths_of(page: Any, task: int) -> list[str]:
    """Fill in the address of a page: as it should be, and with what nobody should send."""
    plain = {"{number:id}": str(task), "{person:id}": "4", "{song}": "s1", "{group}": "amateur"}
    good = page.path
    for name, value in plain.items():
        good = good.replace(name, value)
    good = re.sub(r"\{[^}]*\}", "x", good)
    bad = [re.sub(r"\{[^}]*\}", value, page.path) for value in (*NUMBERS[:6], "%00", "%ed%a0%80", "a%2Fb")]
    return [good, *(bad if "{" in page.path else ())]


def assert_nothing_breaks(bench: StudyBench, app: Any, values: tuple[str, ...] = (*NUMBERS, *TEXTS)) -> None:
    bench.songs("s1", "s2")
    task = bench.take(bench.PRO).id
    for page in PAGES:
        role = min(RIGHTS.get(page.right, ("",)))
        who = {"": 0, "administrator": bench.ADMIN, "inspector": bench.INSPECTOR}.get(role, bench.PRO)
        for path in paths_of(page, task):
            if page.method == "GET":
                answer = signed_in(app, bench, who)[0].get(f"{path}?base=%00&language=%ed%a0%80&tags_x={'9' * 5000}")
                assert answer.status_code < 500, path
                assert_hardened(answer)
        if page.method == "POST" and page.path not in {"/withdraw", "/sign-out"}:
            assert_no_form_breaks(bench, app, who, paths_of(page, task)[0], values)
    client, _ = signed_in(app, bench, bench.PRO)
    assert client.get(f"/task/{task}").status_code == 200  # as before


def assert_no_form_breaks(bench: StudyBench, app: Any, who: int, path: str, values: tuple[str, ...]) -> None:
    client, csrf = signed_in(app, bench, who)
    sent = [dict.fromkeys(FIELDS, value) for value in values]
    of_numbers = ("person", "cents", "thread", "version", "songs")
    sent += [{**PLAIN, field: value} for field in of_numbers for value in values if value in (*NUMBERS, "\0")]
    forms = [client.post(path, data={"csrf": csrf, **fields}) for fields in sent]
    headers = {"x-csrf": csrf}
    jsons = [client.post(path, content=body, headers={**headers, "content-type": "application/json"}) for body in JSONS]
    broken = [
        client.post(path, content=body, headers={**headers, "content-type": kind, "content-length": str(len(body))})
        for kind, body in BROKEN
    ]
    for answer in (*forms, *jsons, *broken):
        assert answer.status_code < 500, (path, answer.request.content[:200])
        assert_hardened(answer)


@pytest.mark.slow
def test_nothing_that_is_sent_breaks_a_page(bench: StudyBench, app: Any) -> None:
    assert_nothing_breaks(bench, app)


@pytest.mark.slow
def test_nothing_that_is_sent_breaks_a_page_in_postgresql(postgres: str, tmp_path: Path) -> None:
    bench = StudyBench(postgres, Settings(share=0.0, congruent_share=0.0))
    try:
        assert_nothing_breaks(bench, build_app(bench.service, tmp_path), ("9" * 9, "9" * 30, "\0", "x" * 3000))
    finally:
        bench.store.close()
        migrate(postgres, "base")


def test_half_a_surrogate_pair_is_refused_and_the_draft_stays_as_it_was(bench: StudyBench, app: Any) -> None:
    bench.songs("s1")
    task = bench.take(bench.PRO).id
    client, csrf = signed_in(app, bench, bench.PRO)
    headers = {"x-csrf": csrf, "content-type": "application/json"}
    version = bench.version(TaskRow, task)
    for wrong in ("\\ud800", "\\u0000"):
        body = f'{{"version": {version}, "fields": {{"theme": "{wrong}"}}}}'.encode()
        answer = client.post(f"/task/{task}/draft", content=body, headers=headers)
        assert answer.status_code == 400
        assert answer.json()["error"]
    assert bench.version(TaskRow, task) == version
    assert client.get(f"/task/{task}").status_code == 200
    emoji = client.post(f"/task/{task}/draft", json={"version": version, "fields": {"theme": "🎵"}}, headers=headers)
    assert emoji.status_code == 200  # a whole pair is one character


def test_a_failure_of_ours_is_hardened_too(bench: StudyBench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("a bug")

    app = build_app(bench.service, tmp_path)
    monkeypatch.setattr("music_evals.caimap.services.managing.progress", fails)
    client, _ = signed_in(app, bench, bench.ADMIN)
    answer = client.get("/manage")
    assert answer.status_code == 500
    assert_hardened(answer)
    assert "a bug" not in answer.text
    assert "Something went wrong" in answer.text
    with pytest.raises(RuntimeError, match="a bug"):  # the server's log has it
        testclient.TestClient(app, cookies=dict(client.cookies)).get("/manage")


def test_lengths_that_are_none_are_refused(app: Any) -> None:
    client = testclient.TestClient(app, raise_server_exceptions=False)
    for length in ("9" * 5000, "1000001", "-1", "", "1 2"):
        answer = client.post("/sign-in", content=b"", headers={"content-length": length})
        assert answer.status_code == 413, length
        assert_hardened(answer)


@pytest.mark.slow
def test_files_are_refused_as_a_whole(bench: StudyBench, app: Any) -> None:
    people = {right: {"annotate": bench.PRO, "inspect": bench.INSPECTOR, "public": 0}.get(right, bench.ADMIN)
              for right in {page.right for page in PAGES}}  # fmt: skip
    browsers, taken = {who: signed_in(app, bench, who) for who in people.values()}, []
    pages = [page for page in PAGES if page.method == "POST"]
    assert len(pages) > 30
    for page in pages:
        (client, csrf), path = browsers[people[page.right]], re.sub(r"\{[^}]*\}", "1", page.path)
        files = {"upload": ("song.flac", b"fLaC", "audio/flac")}
        answer = client.post(path, data={"csrf": csrf, **PLAIN}, files=files)
        assert_hardened(answer)
        if answer.status_code != 400 or "Too many files" not in answer.text:
            taken.append(path)
        if people[page.right]:  # nothing was done
            assert client.get("/").status_code == 303, path
            assert accounts.visit(bench.service, client.cookies[COOKIE]) is not None, path
    assert taken == []


def test_numbers_of_forms_have_nine_digits_at_most() -> None:
    assert [number_of(text, "cents") for text in ("0", " 12 ", "-7", "9" * 9)] == [0, 12, -7, 999_999_999]
    for text in ("", "-", "--1", "1.0", "9" * 10, "9" * 5000, "\uff11", "x"):
        with pytest.raises(InvalidInputError, match="cents"):
            number_of(text, "cents")


def test_texts_are_looked_through_to_any_depth() -> None:
    deep: Any = "\ud800"
    for _ in range(100_000):
        deep = [deep]
    for wrong in ("a\0", {"a": ["\udfff"]}, {"\0": 1}, deep):
        with pytest.raises(InvalidInputError):
            check_texts("fine", wrong)
    check_texts("春眠🎵", {"a": ["b", 1, None, True, 2.5]}, None)


# --- whose word on addresses is taken


def attempts(app: Any, trusted: list[str], peer: str, forwarded: list[str]) -> list[int]:
    """Sign in wrongly as another account each time, as what uvicorn makes of the headers, and return the statuses."""
    from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

    behind = ProxyHeadersMiddleware(app, trusted) if trusted else app
    client = testclient.TestClient(behind, client=(peer, 50000))
    return [
        client.post(
            "/sign-in", data={"name": f"{number}", "password": "wrong"}, headers={"x-forwarded-for": address}
        ).status_code
        for number, address in enumerate(forwarded)
    ]


FORGED = [f"198.51.100.{number}" for number in range(52)]


@pytest.mark.slow
def test_a_forged_address_changes_nothing_without_a_proxy(app: Any) -> None:
    found = attempts(app, proxies_of([]), "203.0.113.5", FORGED)
    assert found == [401] * 51 + [429]


@pytest.mark.slow
def test_behind_a_proxy_the_address_that_it_saw_counts(app: Any) -> None:
    # the proxy adds what it saw at the end of what the client had written
    trusted = proxies_of(["10.0.0.0/8"])
    written = [f"{address}, 203.0.113.5" for address in FORGED]
    assert attempts(app, trusted, "10.16.3.80", written) == [401] * 51 + [429]
    assert attempts(app, trusted, "10.16.3.80", ["203.0.113.5, 203.0.113.6"]) == [401]  # somebody else
    # who is no proxy of ours is counted by their own address
    assert attempts(app, trusted, "203.0.113.9", FORGED) == [401] * 51 + [429]


@pytest.mark.parametrize("wrong", ["*", "0.0.0.0/0", "::/0", "proxy.example", "10.0.0.1/8", "10.0.0.0/8,*"])
def test_everybody_is_no_proxy(wrong: str) -> None:
    with pytest.raises(InvalidInputError):
        proxies_of([wrong])
    assert proxies_of(["127.0.0.1, 10.0.0.0/8", "::1"]) == ["127.0.0.1", "10.0.0.0/8", "::1"]


@pytest.mark.parametrize(("given", "trusted"), [([], []), (["--proxy", "10.0.0.0/8"], ["10.0.0.0/8"])])
def test_the_server_trusts_the_proxies_that_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: list[str], trusted: list[str]
) -> None:
    import uvicorn

    asked: dict[str, Any] = {}
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "*")  # uvicorn would read it
    monkeypatch.setattr(uvicorn, "run", lambda _, **settings: asked.update(settings))
    assert main(["caimap", "init", str(tmp_path / "study")]) == 0
    assert main(["caimap", "serve", str(tmp_path / "study"), *given]) == 0
    assert (asked["proxy_headers"], asked["forwarded_allow_ips"]) == (bool(trusted), trusted)
    settings = uvicorn.Config(build_app, **{key: asked[key] for key in ("proxy_headers", "forwarded_allow_ips")})
    assert settings.forwarded_allow_ips == trusted


def test_the_space_trusts_the_network_of_its_proxy_alone() -> None:
    space = Path(__file__).parents[2] / "spaces" / "caimap"
    written = (space / "Dockerfile").read_text(encoding="utf-8") + (space / "start.sh").read_text(encoding="utf-8")
    assert "FORWARDED_ALLOW_IPS" not in written
    (named,) = re.findall(r'--proxy "\$\{CAIMAP_PROXIES:-([^}]+)\}"', written)
    assert proxies_of([named]) == ["10.0.0.0/8"]


# --- failures are counted


@pytest.fixture
def member(bench: StudyBench) -> str:
    token = accounts.invite(bench.service, bench.ADMIN, "amateur")
    accounts.accept(bench.service, token, "林", PASSWORD, consents=True)
    return "林"


@pytest.mark.slow
def test_those_who_sign_in_rightly_are_not_counted(app: Any, member: str) -> None:
    client = testclient.TestClient(app, follow_redirects=False)
    sent = {"name": member, "password": PASSWORD}
    assert {client.post("/sign-in", data=sent).status_code for _ in range(len(FORGED) + 8)} == {303}


@pytest.fixture
def moment(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The clock of the guards, which stands until a test moves it."""
    now = [1000.0]
    monkeypatch.setattr("music_evals.caimap.web.guards.monotonic", lambda: now[0])
    return now


def sign_in(app: Any, name: str, password: str, address: str = "192.0.2.1") -> int:
    client = testclient.TestClient(app, follow_redirects=False, client=(address, 50000))
    status: int = client.post("/sign-in", data={"name": name, "password": password}).status_code
    return status


@pytest.mark.slow
def test_each_failure_doubles_the_wait_up_to_a_quarter_of_an_hour(app: Any, member: str, moment: list[float]) -> None:
    assert [sign_in(app, member, "x") for _ in range(2)] == [401, 401]
    for wait in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900):
        assert sign_in(app, member, PASSWORD) == 429  # also with the right one
        moment[0] += wait - 0.5
        assert sign_in(app, member, PASSWORD) == 429
        moment[0] += 0.5
        assert sign_in(app, member, "x") == 401
    moment[0] += LONGEST_WAIT_SEC
    assert sign_in(app, member, PASSWORD) == 303
    assert [sign_in(app, member, "x") for _ in range(2)] == [401, 401]  # from the beginning
    moment[0] += 4000  # and after an hour without one
    assert [sign_in(app, member, "x") for _ in range(2)] == [401, 401]


def test_an_unknown_account_waits_as_a_known_one(app: Any, member: str, moment: list[float]) -> None:
    found = {name: [] for name in (member, "nobody")}
    for wait in (0, 0, 0.5, 0.5, 1, 2, 4, 1, 3):
        moment[0] += wait
        for name, statuses in found.items():
            statuses.append(sign_in(app, name, "x"))
    assert found[member] == found["nobody"]
    assert set(found["nobody"]) == {401, 429}


@pytest.mark.slow
def test_nobody_locks_the_owner_out_from_elsewhere(app: Any, member: str, moment: list[float]) -> None:
    for number in range(300):
        sign_in(app, member, "x", f"198.51.{number // 250}.{number % 250}")
    assert sign_in(app, member, PASSWORD) == 303
    assert sign_in(app, member, PASSWORD, "192.0.2.77") == 303  # where they never were before


@pytest.mark.slow
def test_an_address_waits_over_many_accounts_but_not_its_own_people(app: Any, member: str, moment: list[float]) -> None:
    assert sign_in(app, member, PASSWORD) == 303
    found = [sign_in(app, f"guess{number}", "x") for number in range(60)]
    assert found == [401] * 51 + [429] * 9
    moment[0] += 1
    assert [sign_in(app, f"more{number}", "x") for number in range(2)] == [401, 429]
    assert sign_in(app, member, PASSWORD) == 303
    assert sign_in(app, "other", "x", "192.0.2.2") == 401


def test_those_who_try_at_once_are_counted_when_they_begin() -> None:
    attempts = Attempts()
    assert [attempts.begin("192.0.2.1", "林") > 0 for _ in range(5)] == [False, False, True, True, True]
    assert sum(attempts.begin("192.0.2.3", f"n{number}") == 0 for number in range(1000)) == 51


def test_people_of_one_office_sign_in_at_once_and_are_not_counted(moment: list[float]) -> None:
    attempts = Attempts()
    for _ in range(20):
        begun = [attempts.begin("192.0.2.1", f"n{number}") for number in range(40)]
        assert begun == [0] * 40
        for number in range(40):
            attempts.forgive("192.0.2.1", f"n{number}", is_owner=True)


@pytest.mark.slow
def test_counters_are_bounded(moment: list[float]) -> None:
    attempts = Attempts()
    for number in range(MOST_KEYS + 500):
        address = f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"
        attempts.begin(address, "林")
        attempts.begin(address, "", limited=True)
        attempts.forgive(address, "王", is_owner=True)
    waits = attempts.of_address, attempts.of_account, attempts.limited
    for counters in (*(each.attempts for each in waits), attempts.known):
        assert len(counters) <= MOST_KEYS


def test_who_has_a_network_of_ipv6_is_one(moment: list[float]) -> None:
    attempts = Attempts()
    waits = [attempts.begin(f"2001:db8::{number:x}", str(number)) for number in range(60)]
    assert [wait > 0 for wait in waits] == [False] * 51 + [True] * 9
    assert attempts.begin("2001:db8:0:1::1", "x") == 0


def test_invitations_cannot_be_guessed_without_an_end(app: Any, moment: list[float]) -> None:
    client = testclient.TestClient(app, follow_redirects=False)
    fields = {"name": "林", "password": PASSWORD, "consents": "on"}
    found = [client.post(f"/invitation/{number}", data=fields).status_code for number in range(5)]
    assert found == [400, 400, 429, 429, 429]


def test_what_guesses_nothing_neither_counts_nor_forgives(app: Any, member: str, moment: list[float]) -> None:
    client = testclient.TestClient(app, follow_redirects=False)

    def speak() -> int:
        return client.post("/language", data={"language": "en", "name": member, "from": "/sign-in"}).status_code

    assert [sign_in(app, member, "x", "testclient") for _ in range(2)] == [401, 401]
    assert speak() == 303
    assert sign_in(app, member, "x", "testclient") == 429
    assert speak() == 303


@pytest.mark.slow
def test_links_without_a_name_count_for_the_address_alone(app: Any, member: str, moment: list[float]) -> None:
    client = testclient.TestClient(app, follow_redirects=False)
    found = [client.post(f"/new-password/{number}", data={"password": PASSWORD}).status_code for number in range(52)]
    assert found == [400] * 51 + [429]
