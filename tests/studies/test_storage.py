"""Submissions are kept whole or not at all, whatever happens to their writer."""

import signal
import subprocess
import sys

import pytest

from music_evals.errors import CorruptRecordsError, FileTooLargeError, InvalidInputError, NoDataError, OutputError
from music_evals.studies.storage import SubmissionStore, is_secret, new_token

TOKEN = "0123456789abcdef" * 2

WRITER = """
import sys
from music_evals.studies.storage import SubmissionStore, new_token
store = SubmissionStore(sys.argv[1])
number = 0
while True:
    number += 1
    token = new_token()
    print(token, store.submit(token, {"number": number, "padding": "x" * 200_000}), flush=True)
"""


def test_what_was_submitted_is_read(tmp_path):
    times = iter((1000.25, 2000.0))
    store = SubmissionStore(tmp_path / "study", clock=lambda: next(times))
    receipt = store.submit(TOKEN, {"rating": 4, "words": "schön"})
    assert store.submit(TOKEN, {"words": "schön", "rating": 4}) == receipt
    assert store.read() == ((TOKEN, receipt, {"rating": 4, "words": "schön"}, 1000.25),)
    store.submit(TOKEN, {"rating": 5})
    assert [said.received_at for said in store.read() if said.content["rating"] == 5] == [2000.0]


def test_two_files_of_one_submission_are_one_with_the_first_time(tmp_path):
    store = SubmissionStore(tmp_path, clock=lambda: 1000.0)
    receipt = store.submit(TOKEN, {"rating": 4})
    (path,) = tmp_path.iterdir()
    (tmp_path / f"{TOKEN}-{receipt}-0000000999000.json").write_bytes(path.read_bytes())
    assert [said.received_at for said in store.read()] == [999.0]


def test_a_store_of_an_earlier_version_has_no_times(tmp_path):
    store = SubmissionStore(tmp_path)
    receipt = store.submit(TOKEN, {"rating": 4})
    (path,) = tmp_path.iterdir()
    path.rename(tmp_path / f"{TOKEN}-{receipt}.json")
    assert store.submit(TOKEN, {"rating": 4}) == receipt
    assert store.read() == ((TOKEN, receipt, {"rating": 4}, None),)
    assert store.withdraw(TOKEN) == 1


def test_another_submission_of_a_participant_replaces_nothing(tmp_path):
    store = SubmissionStore(tmp_path)
    store.submit(TOKEN, {"rating": 4})
    store.submit(TOKEN, {"rating": 5})
    assert sorted(said.content["rating"] for said in store.read()) == [4, 5]


@pytest.mark.parametrize("token", ["", "../" + TOKEN[3:], TOKEN.upper(), TOKEN + "\n", TOKEN + "0"])
def test_other_tokens_are_refused(tmp_path, token):
    with pytest.raises(InvalidInputError, match="token"):
        SubmissionStore(tmp_path).submit(token, {})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("content", [["a"], {"a": float("nan")}, {"a": {1}}])
def test_what_is_no_object_of_json_is_refused(tmp_path, content):
    with pytest.raises(InvalidInputError):
        SubmissionStore(tmp_path).submit(TOKEN, content)


def test_limits(tmp_path):
    store = SubmissionStore(tmp_path, max_bytes=50, max_submissions=1)
    with pytest.raises(FileTooLargeError, match="50"):
        store.submit(TOKEN, {"a": "x" * 50})
    store.submit(TOKEN, {})
    store.submit(TOKEN, {})
    with pytest.raises(OutputError, match="limit"):
        store.submit(TOKEN, {"a": 1})


def test_no_submissions_and_changed_ones(tmp_path):
    store = SubmissionStore(tmp_path)
    with pytest.raises(NoDataError):
        store.read()
    store.submit(TOKEN, {"rating": 4})
    next(tmp_path.iterdir()).write_text('{"rating": 5}')
    with pytest.raises(CorruptRecordsError, match="changed"):
        store.read()


def test_secret():
    assert is_secret("a", "a")
    assert not is_secret("", "a")
    assert not is_secret("ä", "a")
    with pytest.raises(InvalidInputError, match="empty"):
        is_secret("", "")


def test_tokens_differ():
    assert len({new_token() for _ in range(100)}) == 100


def test_killed_writers_lose_nothing_that_was_acknowledged(tmp_path):
    acknowledged = set()
    for _ in range(2):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True
        ) as writer:
            lines = [writer.stdout.readline() for _ in range(8)]
            writer.send_signal(signal.SIGKILL)
            lines += writer.stdout.readlines()
        assert writer.returncode == -signal.SIGKILL
        acknowledged |= {tuple(line.split()) for line in lines if line.endswith("\n")}
    assert len(acknowledged) >= 16
    assert acknowledged <= {(said.token, said.receipt) for said in SubmissionStore(tmp_path).read()}
