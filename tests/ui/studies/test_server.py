"""The server of a study: what it takes, what it refuses, and that nothing is lost."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from music_evals.errors import InvalidInputError
from music_evals.studies.answers import participants_of
from music_evals.studies.folders import Introduction, StudyFolder, write_study_folder
from music_evals.studies.storage import SlotBook, SubmissionStore
from music_evals.ui.studies.organiser import TRIES
from music_evals.ui.studies.page import study_page
from music_evals.ui.studies.server import HEADERS, build_app

pytest.importorskip("starlette")
httpx2 = pytest.importorskip("httpx2")

SECRET = "a secret of sixteen"  # noqa: S105
PAGE = {"Content-Type": "application/json", "X-Study-Page": "1"}
EVIL = "<script>alert(1)</script>"


@pytest.fixture
def study(tmp_path: Path) -> StudyFolder:
    return write_study_folder(
        tmp_path / "study", kind="editing", study="ours",
        introduction=Introduction(title=EVIL, consent=("Yes.",), instructions=("Go.",)), settings={},
        plans=[{"samples": ["a"]}, {"samples": ["b"]}], page=study_page("editing", EVIL),
        key={"key.csv": b"who made it"},
    )  # fmt: skip


@pytest.fixture
def client(study: StudyFolder) -> Iterator[Any]:
    from starlette.testclient import TestClient

    store = SubmissionStore(study.submissions, max_bytes=2000)
    with TestClient(build_app(study, secret=SECRET, store=store), base_url="http://study.test") as found:
        yield found


def joined(client: Any) -> tuple[str, int]:
    answer = client.post("/api/join", headers=PAGE, content=json.dumps({"study": "ours"}))
    assert answer.status_code == 200, answer.text
    return answer.json()["token"], answer.json()["slot"]


def part(slot: int, **changes: Any) -> dict[str, Any]:
    return {
        "format": 1, "study": "ours", "kind": "editing", "slot": slot, "sent": 0, "part": "sample-1", "content": 1
    } | changes  # fmt: skip


def submit(client: Any, token: str, content: Any, **headers: str) -> Any:
    return client.post("/api/submit", headers={**PAGE, "X-Participant": token, **headers}, content=json.dumps(content))


def entered(client: Any) -> str:
    """Enter as the organiser, and return the word of the forms."""
    answer = client.post("/organiser/enter", data={"secret": SECRET})
    assert answer.status_code == 200, answer.text  # after the redirection
    word = re.search(r'name="word" value="([0-9a-f]+)"', answer.text)
    assert word is not None
    return word[1]


def test_the_page_is_served_and_told_that_there_is_a_server(client: Any) -> None:
    page = client.get("/")
    assert 'data-submit="server"' in page.text
    assert page.headers["content-type"].startswith("text/html")
    assert client.get("/study.js").headers["content-type"].startswith("text/javascript")
    assert client.get("/study.css").status_code == 200
    for path in ("/", "/study.js", "/nothing", "/organiser"):
        headers = client.get(path).headers
        for name, value in HEADERS.items():
            assert headers[name] == value, path
    assert "unsafe" not in HEADERS["Content-Security-Policy"]


@pytest.mark.parametrize(
    "path", ["/study.json", "/key/key.csv", "/../key/key.csv", "/%2e%2e/key/key.csv", "/submissions"]
)
def test_nothing_but_the_page_is_served(client: Any, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 404
    assert "who made it" not in answer.text


def test_what_is_acknowledged_is_stored_and_what_comes_twice_once(client: Any, study: StudyFolder) -> None:
    (token, slot), (_, other) = joined(client), joined(client)
    assert {slot, other} == {0, 1}
    receipts = {submit(client, token, part(slot)).json()["receipt"] for _ in range(2)}
    assert len(receipts) == 1
    (stored,) = SubmissionStore(study.submissions).read()
    assert (stored.token, {stored.receipt}) == (token, receipts)
    assert stored.content == part(slot)


@pytest.mark.parametrize(
    ("changes", "status", "said"),
    [
        ({"study": "theirs"}, 400, "of the study"),
        ({"slot": 1}, 400, "was not given this plan"),
        ({"slot": 7}, 400, "slot must be"),
        ({"content": "x" * 3000}, 413, "2000 bytes"),
    ],
)
def test_what_no_page_sends_is_refused(client: Any, study: StudyFolder, changes: Any, status: int, said: str) -> None:
    token, slot = joined(client)
    assert slot == 0
    answer = submit(client, token, part(**{"slot": slot, **changes}))
    assert (answer.status_code, said in answer.json()["error"]) == (status, True), answer.text
    assert SubmissionStore(study.submissions).read(or_none=True) == ()


def test_only_tokens_that_were_given_are_taken(client: Any) -> None:
    joined(client)
    for token in ("", "f" * 32, "../../x"):
        assert submit(client, token, part(0)).status_code == 400


def test_no_form_of_another_site_can_send(client: Any) -> None:
    token, slot = joined(client)
    for headers in ({"Content-Type": "text/plain"}, {"Content-Type": "application/x-www-form-urlencoded"}):
        assert submit(client, token, part(slot), **headers).status_code == 400
    bare = client.post("/api/submit", json=part(slot), headers={"X-Participant": token})
    assert bare.status_code == 400  # without the header of the page, which another site may not set
    assert "access-control-allow-origin" not in client.options("/api/submit").headers
    for text in ("{", "[]", "[" * 100_000):
        answer = client.post("/api/submit", headers={**PAGE, "X-Participant": token}, content=text)
        assert answer.status_code in {400, 413}


def test_by_invitation_a_code_goes_on_where_it_stood_in_another_browser(client: Any, study: StudyFolder) -> None:
    code, _ = SlotBook(study.submissions, 2).invite(2)

    def join(**content: Any) -> Any:
        return client.post("/api/join", headers=PAGE, content=json.dumps({"study": "ours", **content}))

    for wrong in ({}, {"invitation": "x"}, {"invitation": None}, {"invitation": [code]}, {"invitation": 3}):
        answer = join(**wrong)
        assert (answer.status_code, "no invitation to this study" in answer.json()["error"]) == (400, True)
    me = join(invitation=code).json()
    assert (me["sent"], me["stored"]) == (0, [])
    assert submit(client, me["token"], part(me["slot"])).status_code == 200
    assert join(invitation=code).json() == {**me, "sent": 1, "stored": ["sample-1"]}
    assert len(SlotBook(study.submissions, 2).given()) == 1


def test_the_organiser_needs_the_secret(client: Any) -> None:
    assert "Secret" in client.get("/organiser").text
    answer = client.post("/organiser/enter", data={"secret": "guessed"})
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers
    for action in ("export", "withdraw", "leave", "nothing"):
        assert client.post(f"/organiser/{action}", data={"word": "x"}).status_code == 403
    for forged in ("", "99999999999.ab.cd", f"99999999999.{'0' * 64}"):
        client.cookies.set("study_organiser", forged)
        assert "Remove all of it" not in client.get("/organiser").text


def test_plans_lie_where_the_submissions_do_with_the_time_of_their_clock(study: StudyFolder, tmp_path: Path) -> None:
    from starlette.testclient import TestClient

    store = SubmissionStore(tmp_path / "elsewhere", clock=lambda: 1000.0)
    with TestClient(build_app(study, secret=SECRET, store=store), base_url="http://study.test") as client:
        token, slot = joined(client)
        assert submit(client, token, part(slot)).status_code == 200
    (stored,) = participants_of(study, store=store)
    assert (stored.joined_at, stored.received_at) == (1000.0, {"sample-1": 1000.0})
    assert not study.submissions.exists()


def test_the_secret_cannot_be_guessed_at_speed(client: Any) -> None:
    codes = [client.post("/organiser/enter", data={"secret": f"{n}"}).status_code for n in range(TRIES + 2)]
    assert codes == [403] * TRIES + [429] * 2
    assert client.post("/organiser/enter", data={"secret": SECRET}).status_code == 429


@pytest.mark.parametrize("secret", ["", "short"])
def test_a_secret_that_protects_nothing_is_refused(study: StudyFolder, secret: str) -> None:
    with pytest.raises(InvalidInputError, match="16 characters"):
        build_app(study, secret=secret)


def test_the_organiser_sees_progress_takes_all_and_removes(client: Any, study: StudyFolder, tmp_path: Path) -> None:
    token, slot = joined(client)
    submit(client, token, part(slot, part=EVIL))
    word = entered(client)
    cookie = next(iter(client.cookies.jar))
    assert cookie.has_nonstandard_attr("HttpOnly")
    assert cookie.get_nonstandard_attr("SameSite") == "strict"
    page = client.get("/organiser").text
    assert token in page
    assert EVIL not in page  # title and part are shown as text
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;") == 3
    assert client.post("/organiser/export", data={"word": "of another page"}).status_code == 403
    (study.submissions / ".a.part").write_bytes(b"what is being written just now")
    export = client.post("/organiser/export", data={"word": word})
    with zipfile.ZipFile(BytesIO(export.content)) as archive:
        assert not [name for name in archive.namelist() if name.endswith(".part")]
        archive.extractall(tmp_path / "copy")
    (stored,) = participants_of(study)
    assert participants_of(study, store=SubmissionStore(tmp_path / "copy" / "submissions")) == (stored,)
    assert stored.joined_at is not None
    assert stored.joined_at <= stored.received_at[EVIL]
    assert client.post("/organiser/withdraw", data={"word": word, "token": "*"}).status_code == 400
    removed = client.post("/organiser/withdraw", data={"word": word, "token": token})
    assert "1 submissions" in removed.text
    assert SubmissionStore(study.submissions).read(or_none=True) == ()
    assert submit(client, token, part(slot)).status_code == 400
    assert "Secret" in client.post("/organiser/leave", data={"word": word}).text


def test_a_damaged_submission_is_told_and_hides_nothing(client: Any, study: StudyFolder) -> None:
    token, slot = joined(client)
    submit(client, token, part(slot))
    (path,) = study.submissions.glob("*.json")
    path.write_bytes(b"{}")
    word = entered(client)
    assert "was changed after it was stored" in client.get("/organiser").text
    assert client.post("/organiser/export", data={"word": word}).status_code == 409


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def started(study: StudyFolder, port: int) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-m", "music_evals", "editing-test", "serve", str(study.folder), "--port", str(port)],
        env=os.environ | {"MUSIC_EVALS_STUDY_SECRET": SECRET},
        stderr=subprocess.DEVNULL,
    )
    end = time.monotonic() + 120
    while time.monotonic() < end and process.poll() is None:
        try:
            httpx2.get(f"http://127.0.0.1:{port}/", timeout=5, trust_env=False).raise_for_status()
        except httpx2.HTTPError:
            time.sleep(0.1)
        else:
            return process
    process.kill()
    pytest.fail("the server did not start")


def insistent(url: str, content: Any, token: str, stop: Callable[[], bool]) -> Any:
    """Post until it is taken, as the page does."""
    while not stop():
        headers = {**PAGE, "X-Participant": token}
        try:
            answer = httpx2.post(url, json=content, headers=headers, timeout=10, trust_env=False)
            if answer.status_code < 500:
                return answer.raise_for_status().json()
        except (httpx2.TransportError, ValueError):  # killed before or while it answered
            time.sleep(0.05)
    return None


@pytest.mark.slow
def test_ten_editors_at_once_lose_nothing_when_the_server_is_killed(study: StudyFolder) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    acknowledged: dict[str, list[int]] = {}
    over = threading.Event()

    def edit() -> None:
        me = insistent(f"{url}/api/join", {"study": "ours"}, "", over.is_set)
        mine = acknowledged.setdefault(me["token"], [])
        for sent in range(40):
            content = part(me["slot"], sent=sent, part=f"part-{sent}", content="x" * 20_000)
            if insistent(f"{url}/api/submit", content, me["token"], over.is_set) is None:
                return
            mine.append(sent)

    process = started(study, port)
    editors = [threading.Thread(target=edit) for _ in range(10)]
    for editor in editors:
        editor.start()
    for _ in range(5):
        time.sleep(0.4)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process = started(study, port)
    timer = threading.Timer(120, over.set)
    timer.start()
    for editor in editors:
        editor.join()
    timer.cancel()
    process.kill()
    process.wait()
    assert not over.is_set(), "somebody could not finish"
    stored = {one.token: set(one.parts) for one in participants_of(study)}
    assert len(acknowledged) == 10
    for token, sent in acknowledged.items():
        assert sent == list(range(40))
        assert stored[token] == {f"part-{number}" for number in sent}
