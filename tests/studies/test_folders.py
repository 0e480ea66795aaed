"""The folder of a study, who takes part, and what they sent."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from music_evals.errors import InvalidInputError, NoDataError, OutputError, UnreadableFileError
from music_evals.studies.answers import check_part, participants_of, read_export
from music_evals.studies.folders import (
    Introduction,
    StudyFolder,
    default_introduction,
    read_introduction,
    read_study_folder,
    write_study_folder,
)
from music_evals.studies.storage import SlotBook, SubmissionStore, new_token

TEXTS = Introduction(title="Ours", consent=("You agree.",), instructions=("Do it.",))
PAGE = b'<p><script type="application/json" id="study"></script>'


@pytest.fixture
def study(tmp_path: Path) -> StudyFolder:
    return made(tmp_path / "study")


def made(folder: Path, **changes: Any) -> StudyFolder:
    values: dict[str, Any] = {
        "kind": "editing", "study": "ours", "introduction": TEXTS, "settings": {"limit_sec": None},
        "plans": [{"samples": ["a"]}, {"samples": ["b"]}], "page": {"index.html": PAGE, "sub/x.txt": b"x"},
        "key": {"samples.csv": b"code\n"},
    }  # fmt: skip
    return write_study_folder(folder, **(values | changes))


def part(**changes: Any) -> dict[str, Any]:
    return {
        "format": 1, "study": "ours", "kind": "editing", "slot": 1, "sent": 0, "part": "sample-1", "content": {"x": 1},
    } | changes  # fmt: skip


def test_a_study_is_read_as_it_was_written(study: StudyFolder) -> None:
    assert read_study_folder(study.folder) == study
    assert study.introduction == TEXTS
    assert study.plans[1] == {"samples": ["b"]}
    assert (study.page / "sub" / "x.txt").read_bytes() == b"x"
    assert not (study.page / "samples.csv").exists()


def test_the_page_holds_the_study_as_data_that_cannot_end_its_element(tmp_path: Path) -> None:
    texts = Introduction(title="</script><script>alert(1)</script>", consent=("<b>",), instructions=("&",))
    study = made(tmp_path / "study", introduction=texts)
    page = (study.page / "index.html").read_text()
    assert page.count("<script") == page.count("</script>") == 1
    data = re.search(r'id="study">(.*)</script>', page)
    assert data is not None
    assert json.loads(data[1])["title"] == texts.title


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"kind": "cooking"}, "editing, listening"),
        ({"study": "../x"}, "lower-case"),
        ({"plans": []}, "at least one participant"),
        ({"settings": {"x": float("nan")}}, "plain values"),
        ({"page": {"index.html": b"nothing"}}, "once"),
        ({"page": {"index.html": PAGE, "../out": b""}}, "inside"),
        ({"key": {"/etc/x": b""}}, "inside"),
    ],
)
def test_a_study_that_cannot_be_leaves_nothing_behind(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        made(tmp_path / "study", **changes)
    assert list(tmp_path.iterdir()) == []


def test_a_study_is_never_replaced(study: StudyFolder) -> None:
    with pytest.raises(InvalidInputError, match="is there already"):
        made(study.folder)


def test_participants_are_told_before_they_start() -> None:
    with pytest.raises(InvalidInputError, match="consent"):
        Introduction(title="x", consent=(), instructions=("y",))
    with pytest.raises(InvalidInputError, match="instructions"):
        Introduction(title="x", consent=("y",), instructions=(" ",))


@pytest.mark.parametrize("kind", ["editing", "listening"])
def test_our_texts_name_who_leads_the_study(kind: str) -> None:
    texts = default_introduction(kind, "Ours", "Ada {lovelace}, ada@example.org")
    assert sum("Ada {lovelace}, ada@example.org" in text for text in texts.consent) == 2
    assert not any("{contact}" in text for text in (*texts.consent, *texts.instructions))
    with pytest.raises(InvalidInputError, match="contact"):
        default_introduction(kind, "Ours", " ")


def test_own_texts_are_read_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "texts.yaml"
    path.write_text("title: T\nconsent: [a, b]\ninstructions: [c]\n")
    assert read_introduction(path) == Introduction(title="T", consent=("a", "b"), instructions=("c",))
    path.write_text("title: T\n")
    with pytest.raises(UnreadableFileError, match=r"texts\.yaml"):
        read_introduction(path)
    path.write_text("a: [")
    with pytest.raises(UnreadableFileError, match=r"texts\.yaml"):
        read_introduction(path)
    with pytest.raises(NoDataError):
        read_introduction(tmp_path / "none.yaml")


def test_what_is_no_study_says_so(tmp_path: Path, study: StudyFolder) -> None:
    with pytest.raises(NoDataError, match=r"study\.json"):
        read_study_folder(tmp_path)
    for text in ("{", "[]", '{"format": 2}', '{"format": 1}'):
        (study.folder / "study.json").write_text(text)
        with pytest.raises(UnreadableFileError, match=r"study\.json"):
            read_study_folder(study.folder)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"format": 2}, "format 1"),
        ({"study": "other"}, "of the study 'other'"),
        ({"kind": "listening"}, "not of"),
        ({"slot": 2}, r"0\.\.1"),
        ({"slot": True}, r"0\.\.1"),
        ({"sent": -1}, "sent"),
        ({"part": ""}, "names its part"),
        ({"part": "x" * 65}, "names its part"),
    ],
)
def test_a_part_of_something_else_is_refused(study: StudyFolder, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        check_part(study, part(**changes))


def test_the_last_part_of_a_name_counts(study: StudyFolder) -> None:
    store, token = SubmissionStore(study.submissions), new_token()
    for sent, value in enumerate("abc"):
        store.submit(token, part(sent=sent, content=value))
    store.submit(token, part(sent=9, part="about", content={}))
    (one,) = participants_of(study)
    assert (one.token, one.slot, one.parts) == (token, 1, {"sample-1": "c", "about": {}})
    store.submit(token, part(sent=10, slot=0))
    with pytest.raises(InvalidInputError, match=rf"{token} followed the plans \[0, 1\]"):
        participants_of(study)


def test_the_servers_clock_is_told_of_joining_and_of_each_part(study: StudyFolder) -> None:
    times = iter((1000.5, 1100.0, 1200.0, 1300.0))
    clock = lambda: next(times)  # noqa: E731
    token, slot = SlotBook(study.submissions, 2, clock=clock).join()
    store = SubmissionStore(study.submissions, clock=clock)
    for sent, (name, content) in enumerate((("sample-1", 1), ("sample-2", 1), ("sample-1", 2))):
        store.submit(token, part(slot=slot, sent=sent, part=name, content=content))
    (one,) = participants_of(study)
    assert one.joined_at == 1000.5
    assert one.received_at == {"sample-1": 1300.0, "sample-2": 1200.0}


def test_stores_of_earlier_versions_have_no_times(study: StudyFolder) -> None:
    token, slot = SlotBook(study.submissions, 2).join()
    SubmissionStore(study.submissions).submit(token, part(slot=slot))
    for path in study.submissions.iterdir():
        path.rename(path.with_name("-".join(path.stem.split("-")[:-1]) + path.suffix))
    (one,) = participants_of(study)
    assert (one.slot, one.joined_at, dict(one.received_at)) == (slot, None, {})
    book = SlotBook(study.submissions, 2)
    assert book.given() == {token: slot}
    book.forget(token)
    assert book.given() == {}


def test_files_of_a_static_page_are_read_beside_the_store(study: StudyFolder, tmp_path: Path) -> None:
    token = new_token()
    path = tmp_path / "one.json"
    export = {key: value for key, value in part().items() if key not in {"part", "content", "sent"}}
    path.write_text(json.dumps({**export, "token": token, "parts": {"sample-1": {"x": 1}}}))
    (one,) = participants_of(study, [path])
    assert (one.parts, one.joined_at, dict(one.received_at)) == ({"sample-1": {"x": 1}}, None, {})
    with pytest.raises(InvalidInputError, match="sent to the server and is in a file"):
        participants_of(study, [path, path])
    for text in ("{", "[]", "{}", json.dumps({**export, "token": "me", "parts": {"a": 1}})):
        path.write_text(text)
        with pytest.raises(InvalidInputError, match=r"one\.json"):
            read_export(study, path)
    with pytest.raises(NoDataError, match=r"none\.json"):
        read_export(study, tmp_path / "none.json")


def test_nobody_is_an_error(study: StudyFolder) -> None:
    with pytest.raises(NoDataError, match="nobody"):
        participants_of(study)


def test_plans_are_given_out_evenly_at_once_and_again_after_a_restart(tmp_path: Path) -> None:
    given: list[tuple[str, int]] = []
    book = SlotBook(tmp_path, 3)
    threads = [threading.Thread(target=lambda: given.append(book.join())) for _ in range(9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(slot for _, slot in given) == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    again = SlotBook(tmp_path, 3)
    assert again.given() == dict(given)
    token, slot = given[0]
    again.forget(token)
    assert again.join()[1] == slot
    with pytest.raises(OutputError, match="limit"):
        SlotBook(tmp_path, 3, max_participants=9).join()


def test_an_invitation_is_one_participant_with_one_plan(tmp_path: Path) -> None:
    book = SlotBook(tmp_path, 3)
    codes = book.invite(4)
    assert len(set(codes)) == 4
    stored = (tmp_path / "invitations.txt").read_text()
    assert not any(code in stored for code in codes)  # only hashes
    joined = [book.join(code) for code in codes]
    assert sorted(slot for _, slot in joined) == [0, 0, 1, 2]
    assert {token for token, _ in joined} == book.invited()
    assert [SlotBook(tmp_path, 3).join(code) for code in codes] == joined  # again, after a restart
    for wrong in ("", "x", codes[0][:-1], codes[0].upper(), "\ud800", joined[0][0]):
        with pytest.raises(InvalidInputError, match="no invitation"):
            book.join(wrong)
    (more,) = book.invite(1)
    assert book.join(more)[0] not in {token for token, _ in joined}
    assert book.join(codes[0]) == joined[0]
    for count in (0, -1, 10_001):
        with pytest.raises(InvalidInputError, match="invite 1 to"):
            book.invite(count)


def test_a_code_in_an_open_study_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="no invitation"):
        SlotBook(tmp_path, 3).join("a" * 32)
    assert len(SlotBook(tmp_path, 3).join()) == 2


JOINER = """
import sys
from music_evals.studies.storage import SlotBook
book, codes = SlotBook(sys.argv[1], 3), sys.argv[2:]
for code in codes:
    print(*book.join(code), flush=True)
"""


@pytest.mark.slow
def test_two_servers_give_a_code_one_plan_also_when_they_are_killed(tmp_path: Path) -> None:
    codes = SlotBook(tmp_path, 3).invite(60)
    told: set[tuple[str, ...]] = set()
    for turn in range(3):
        command = [sys.executable, "-c", JOINER, str(tmp_path)]
        servers = [
            subprocess.Popen([*command, *order], stdout=subprocess.PIPE, text=True) for order in (codes, codes[::-1])
        ]
        for server in servers:
            assert server.stdout is not None
            lines = [server.stdout.readline() for _ in range(5 if turn < 2 else 60)]
            if turn < 2:
                server.send_signal(signal.SIGKILL)
            lines += server.stdout.readlines()
            told |= {tuple(line.split()) for line in lines if line.endswith("\n")}
        for server in servers:
            # one may be done before it is killed
            assert server.wait() in ({0, -signal.SIGKILL} if turn < 2 else {0})
            assert server.stdout is not None
            server.stdout.close()
    assert len(told) == 60  # each code one token and one plan, whoever was asked
    given = SlotBook(tmp_path, 3).given()
    assert {(token, str(slot)) for token, slot in given.items()} == told
    slots = list(given.values())
    assert [slots.count(slot) for slot in range(3)] == [20] * 3


def test_who_withdraws_is_forgotten(tmp_path: Path) -> None:
    store, mine, other = SubmissionStore(tmp_path), new_token(), new_token()
    for token in (mine, other):
        store.submit(token, {"x": 1})
        store.submit(token, {"x": 2})
    assert store.withdraw(mine) == 2
    assert {submission.token for submission in store.read()} == {other}
    for wrong in ("", "*", mine[:8]):
        with pytest.raises(InvalidInputError, match="token"):
            store.withdraw(wrong)
