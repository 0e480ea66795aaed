"""The data set of an annotation study on the Hub: private, one commit, and nothing left of what went."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sqlalchemy", reason="needs the extra caimap")
pytest.importorskip("argon2", reason="needs the extra caimap")

FILES = {"README.md", "data/songs/test-00000-of-00001.parquet", "data/work/test-00000-of-00001.parquet"}


@pytest.fixture(scope="module")
def study_of_all(hub_client: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("caimap") / "study"
    assert hub_client.cli("caimap", "init", str(folder)).code == 0
    taken = hub_client.cli("caimap", "import", str(folder), "caimd", "--finished", "--licence", "Apache-2.0")
    assert taken.code == 0, taken.stderr
    return folder


@pytest.fixture
def study(study_of_all: Path, tmp_path: Path) -> str:
    """A study with the demo songs, annotated elsewhere; a copy of the test's own."""
    return str(shutil.copytree(study_of_all, tmp_path / "study"))


def test_an_export_is_private_and_stands_in_one_commit(house: Any, study: str) -> None:
    name = f"{house.org}/songs"
    first = house.cli("caimap", "publish", study, name, "--title", "Songs")
    assert first.code == 0, first.stderr
    assert "24 songs" in first.stdout
    repo = house.hub.repo("dataset", name)
    assert repo.private
    assert set(repo.head.tree) >= FILES
    assert 'pretty_name: "Songs"' in house.hub.text("dataset", name, "README.md")
    assert repo.history()[0] == "CaiMAP: 24 songs"
    # nothing has changed: nothing is sent
    again = house.cli("caimap", "publish", study, name, "--title", "Songs")
    assert again.stdout.startswith("24 songs, 0 files sent, 0 deleted")
    assert len(repo.history()) == 2


def test_what_a_study_does_not_hold_any_more_goes(house: Any, study: str, tmp_path: Path) -> None:
    name = f"{house.org}/songs"
    assert house.cli("caimap", "publish", study, name, "--public").code == 0
    repo = house.hub.repo("dataset", name)
    assert not repo.private
    before = set(repo.head.tree)
    house.client.python(
        f"""
from music_evals.caimap.storage.store import Store, sqlite_url
from music_evals.caimap.storage.tables import SongRow
with Store(sqlite_url({study + "/study.db"!r})).writing() as session:
    song = session.query(SongRow).order_by(SongRow.id).first()
    song.state = "describing"
""",
        token=None,
    )
    sent = house.cli("caimap", "publish", study, name)
    assert sent.code == 0, sent.stderr
    assert sent.stdout.startswith("23 songs")
    gone = before - set(repo.head.tree)
    assert gone
    assert all(path.startswith("release/") for path in gone)


def test_what_others_made_is_left_alone(house: Any, study: str) -> None:
    name = f"{house.org}/songs"
    house.client.python(
        f'from huggingface_hub import HfApi\nHfApi().create_repo("{name}", repo_type="dataset")', token=house.token
    )
    house.hub.put("dataset", name, {"data.csv": "1", "README.md": "theirs"})
    refused = house.cli("caimap", "publish", study, name)
    assert refused.code != 0
    assert "nothing was sent" in refused.stderr
    assert house.hub.text("dataset", name, "data.csv") == "1"
    assert house.cli("caimap", "publish", study, name, "--adopt").code == 0
    assert "data.csv" not in house.hub.repo("dataset", name).head.tree


def test_nobody_without_a_token_sends_anything(house: Any, study: str) -> None:
    answer = house.cli("caimap", "publish", study, f"{house.org}/songs", token=None)
    assert answer.code != 0
    assert "token" in answer.stderr
    assert house.cli("caimap", "publish", study, "songs").code == 2
