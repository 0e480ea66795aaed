"""A study on the Hub: what was acknowledged is there when the server and its disk are gone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from music_evals.studies.answers import participants_of
from music_evals.studies.folders import Introduction, StudyFolder, read_study_folder, write_study_folder
from music_evals.studies.storage import SlotBook, SubmissionStore

pytest.importorskip("starlette")

PAGE = b'<html data-submit="file"><script type="application/json" id="study"></script></html>'

SERVER = """
import json, shutil
from pathlib import Path
from starlette.testclient import TestClient
from music_evals.hub.mirrors import HubMirror
from music_evals.studies.folders import read_study_folder
from music_evals.studies.storage import SubmissionStore
from music_evals.ui.studies.server import build_app

folder, headers = Path({folder!r}), {{"Content-Type": "application/json", "X-Study-Page": "1"}}

def started():
    mirror = HubMirror({name!r})
    study = read_study_folder(mirror.fetch(folder))
    store = SubmissionStore(study.submissions, mirror=mirror)
    return TestClient(build_app(study, secret="a secret of sixteen", store=store))

def post(client, path, content, token=""):
    answer = client.post(path, headers={{**headers, "X-Participant": token}}, content=json.dumps(content))
    return [answer.status_code, answer.json()]
"""


@pytest.fixture
def study(tmp_path: Path) -> StudyFolder:
    return write_study_folder(
        tmp_path / "leader", kind="editing", study="ours",
        introduction=Introduction(title="T", consent=("Yes.",), instructions=("Go.",)), settings={},
        plans=[{"samples": ["a"]}, {"samples": ["b"]}], page={"index.html": PAGE}, key={"key.csv": b"who made it"},
    )  # fmt: skip


def uploaded(house: Any, study: StudyFolder, *, private: bool = True) -> str:
    """Put a study without its key on the local Hub, as the docs say."""
    code = f"""
from huggingface_hub import HfApi
api = HfApi()
api.create_repo("{house.org}/ours", repo_type="dataset", private={private}, exist_ok=True)
where = {{"repo_id": "{house.org}/ours", "repo_type": "dataset"}}
api.upload_folder(folder_path={str(study.folder)!r}, ignore_patterns=["key/*"], **where)
"""
    house.client.python(code, token=house.token)
    return f"{house.org}/ours"


def run(house: Any, name: str, folder: Path, code: str) -> Any:
    return house.client.python(SERVER.format(folder=str(folder), name=name) + code, token=house.token)


PART = {"format": 1, "study": "ours", "kind": "editing", "sent": 0, "part": "sample-1", "content": 1}


def test_what_was_acknowledged_survives_the_disk(house: Any, study: StudyFolder, tmp_path: Path) -> None:
    name = uploaded(house, study)
    code = f"""
client = started()
status, joined = post(client, "/api/join", {{"study": "ours"}})
stored = post(client, "/api/submit", {{**{PART!r}, "slot": joined["slot"]}}, joined["token"])
shutil.rmtree(folder)
again = started()
second = post(again, "/api/join", {{"study": "ours"}})[1]
more = post(again, "/api/submit", {{**{PART!r}, "slot": joined["slot"], "sent": 1, "part": "about"}}, joined["token"])
result = [status, joined, stored, second, more]
"""
    status, joined, stored, second, more = run(house, name, tmp_path / "server", code)
    assert (status, stored[0], more[0]) == (200, 200, 200)
    assert {joined["slot"], second["slot"]} == {0, 1}
    (found,) = participants_of(read_study_folder(tmp_path / "server"))
    assert (found.token, found.parts) == (joined["token"], {"sample-1": 1, "about": 1})
    held = house.hub.repo("dataset", name)
    assert not any("key" in path for path in held.head.tree)
    copy = SubmissionStore(tmp_path / "server" / "submissions")
    assert len(copy.read()) == 2


def test_what_the_hub_does_not_take_is_not_acknowledged(house: Any, study: StudyFolder, tmp_path: Path) -> None:
    name = uploaded(house, study)
    code = """
client = started()
status, joined = post(client, "/api/join", {"study": "ours"})
result = joined
"""
    joined = run(house, name, tmp_path / "server", code)
    house.hub.fault("commit", "refuse")
    code = f"""
client = started()
result = post(client, "/api/submit", {{**{PART!r}, "slot": {joined["slot"]}}}, {joined["token"]!r})
"""
    status, answer = run(house, name, tmp_path / "server", code)
    assert status == 503, answer  # the page keeps it, and sends it again
    assert SubmissionStore(tmp_path / "server" / "submissions").read(or_none=True) == ()


def test_a_public_data_set_is_refused(house: Any, study: StudyFolder, tmp_path: Path) -> None:
    name = uploaded(house, study, private=False)
    answer = house.cli("editing-test", "serve", str(tmp_path / "server"), "--hub", name)
    assert answer.code == 2
    assert "is public; make it private" in answer.stderr


def test_who_withdraws_is_gone_from_the_data_set_as_well(house: Any, study: StudyFolder, tmp_path: Path) -> None:
    name = uploaded(house, study)
    code = f"""
client = started()
_, joined = post(client, "/api/join", {{"study": "ours"}})
post(client, "/api/submit", {{**{PART!r}, "slot": joined["slot"]}}, joined["token"])
mirror = HubMirror({name!r})
study = read_study_folder(folder)
result = [SubmissionStore(study.submissions, mirror=mirror).withdraw(joined["token"]), joined["token"]]
"""
    removed, token = run(house, name, tmp_path / "server", code)
    assert removed == 1
    files = house.hub.repo("dataset", name).head.tree
    (left,) = [path for path in files if token in path]
    assert left.startswith(f"submissions/slot-0-{token}-")


def test_an_invitation_is_the_same_participant_when_the_disk_is_gone(
    house: Any, study: StudyFolder, tmp_path: Path
) -> None:
    code, other = SlotBook(study.submissions, 2).invite(2)
    name = uploaded(house, study)
    script = f"""
client = started()
ask = {{"study": "ours", "invitation": {code!r}}}
first = post(client, "/api/join", ask)
post(client, "/api/submit", {{**{PART!r}, "slot": first[1]["slot"]}}, first[1]["token"])
shutil.rmtree(folder)
again = started()
result = [first, post(again, "/api/join", ask), post(again, "/api/join", {{**ask, "invitation": {other!r}}}),
          post(again, "/api/join", {{"study": "ours"}})]
"""
    first, second, third, stranger = run(house, name, tmp_path / "server", script)
    assert first[0] == 200
    assert second == [200, {**first[1], "sent": 1, "stored": ["sample-1"]}]
    assert {first[1]["slot"], third[1]["slot"]} == {0, 1}
    assert stranger[0] == 400
    (held,) = participants_of(read_study_folder(tmp_path / "server"))
    assert held.joined_at is not None  # the times are part of the names
    assert held.joined_at <= held.received_at["sample-1"]
