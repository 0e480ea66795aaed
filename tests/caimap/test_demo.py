"""The demo study, songs from tables, and the verb ``caimap``."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import soundfile
from sqlalchemy import select

from music_evals.caimap.demo import PEOPLE, make_demo
from music_evals.caimap.importing import read_songs
from music_evals.caimap.storage.store import Store, sqlite_url
from music_evals.caimap.storage.tables import PersonRow, SongRow
from music_evals.caimap.web.app import COOKIE, build_app
from music_evals.caimap.web.pages import PAGES
from music_evals.caimap.work import accounts
from music_evals.caimap.work.desk import Desk
from music_evals.cli import main
from music_evals.cli.caimap import PASSWORD_VARIABLE
from music_evals.errors import InvalidInputError, NoDataError, UnreadableFileError


def test_the_demo_has_work_at_every_stage_and_every_page(tmp_path: Path) -> None:
    testclient = pytest.importorskip("starlette.testclient")
    make_demo(tmp_path / "audio", sqlite_url(tmp_path / "study.db"), "a long password")
    desk = Desk(Store(sqlite_url(tmp_path / "study.db")))
    with desk.store.reading() as session:
        states = set(session.scalars(select(SongRow.state)))
        roles = dict(session.execute(select(PersonRow.name, PersonRow.role)).all())
    assert states >= {"structuring", "inspecting", "screened", "describing", "checking"}
    assert roles == PEOPLE
    for name, role in PEOPLE.items():
        client = testclient.TestClient(build_app(desk, tmp_path / "audio"))
        client.cookies.set(COOKIE, accounts.sign_in(desk, name, "a long password"))
        from music_evals.caimap.roles import RIGHTS

        for page in PAGES:
            if page.method == "GET" and "{" not in page.path and role in RIGHTS.get(page.right, ()):
                assert client.get(page.path).status_code == 200, (name, page.path)
    desk.store.close()


def table(folder: Path, *rows: dict) -> Path:
    path = folder / "songs.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def recordings(tmp_path: Path) -> Path:
    folder = tmp_path / "recordings"
    folder.mkdir()
    soundfile.write(folder / "a.flac", np.zeros(8000), 8000)
    (folder / "broken.flac").write_bytes(b"no audio")
    (tmp_path / "outside.flac").write_bytes((folder / "a.flac").read_bytes())
    return folder


GOOD = {"id": "s1", "lines": ["春眠不觉晓"], "audio": "a.flac", "cluster": 3}


def test_songs_come_with_the_length_of_their_recordings(tmp_path: Path, recordings: Path) -> None:
    (song,) = read_songs(table(tmp_path, GOOD), recordings)
    assert (song.duration_sec, song.cluster, song.lines) == (1.0, 3, ("春眠不觉晓",))


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({**GOOD, "audio": "none.flac"}, "no recording"),
        ({**GOOD, "audio": "../outside.flac"}, "no recording"),
        ({**GOOD, "audio": "broken.flac"}, "does not decode"),
        ({**GOOD, "lines": []}, "no lyrics"),
        ({**GOOD, "lines": "春眠"}, "list"),
        ({"id": "s1", "lines": ["春"]}, "audio"),
        ({**GOOD, "rhymes": [True, False]}, "marks of rhyme"),
        ([1], "type"),
    ],
)
def test_a_bad_row_is_named_and_nothing_is_taken(tmp_path: Path, recordings: Path, row, reason: str) -> None:
    with pytest.raises(InvalidInputError, match=rf"row 2.*{reason}.*nothing was imported"):
        read_songs(table(tmp_path, GOOD, row), recordings)


def test_tables_that_cannot_be_read(tmp_path: Path, recordings: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("\n", encoding="utf-8")
    with pytest.raises(NoDataError):
        read_songs(tmp_path / "empty.jsonl", recordings)
    with pytest.raises(UnreadableFileError):
        read_songs(tmp_path / "none.jsonl", recordings)


def test_a_study_is_made_filled_and_copied_by_the_verb(tmp_path: Path, recordings: Path, capsys, monkeypatch) -> None:
    study = str(tmp_path / "study")
    monkeypatch.setenv(PASSWORD_VARIABLE, "a long password")
    assert main(["caimap", "import", study, "x.jsonl", "--audio", "y"]) != 0
    assert main(["caimap", "init", study, "--seed", "4"]) == 0
    assert main(["caimap", "init", study]) == 2
    capsys.readouterr()
    assert main(["caimap", "import", study, str(table(tmp_path, GOOD)), "--audio", str(recordings)]) == 0
    assert capsys.readouterr().out == "1 songs\n"
    assert main(["caimap", "import", study, str(table(tmp_path, GOOD)), "--audio", str(recordings)]) == 2
    assert "nothing was imported" in capsys.readouterr().err
    assert main(["caimap", "backup", study, str(tmp_path / "copy")]) == 0
    assert main(["caimap", "restore", str(tmp_path / "again"), str(tmp_path / "copy")]) == 0
    store = Store(sqlite_url(tmp_path / "again" / "study.db"))
    with store.reading() as session:
        assert list(session.scalars(select(SongRow.state))) == ["structuring"]
    store.close()


def test_the_seed_of_the_sample_is_drawn_and_kept(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setenv(PASSWORD_VARIABLE, "a long password")
    seeds = []
    for name in ("one", "two"):
        assert main(["caimap", "init", str(tmp_path / name)]) == 0
        desk = Desk(Store(sqlite_url(tmp_path / name / "study.db")))
        with desk.store.reading() as session:
            seeds += [desk.settings(session).seed, desk.settings(session).seed]
        desk.store.close()
    assert seeds[0] == seeds[1] != seeds[2] == seeds[3]
    assert min(seeds) > 1_000_000  # as good as sure of a number of 63 bits
    said = "".join(capsys.readouterr())
    assert not any(str(seed) in said for seed in seeds)
