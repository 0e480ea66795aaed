"""The demo study, songs from tables, and the verb ``caimap``."""

from __future__ import annotations

import datetime as dt
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from tests.caimap.routes import PAGES
from tests.caimap.test_importing import GOOD, recordings, table

from music_evals.caimap.domain import grades
from music_evals.caimap.domain.assurance import PASS_MARK
from music_evals.caimap.domain.ledger import Rates
from music_evals.caimap.domain.machine import RIGHTS, SONG, states
from music_evals.caimap.domain.values import Song
from music_evals.caimap.exchange import demo
from music_evals.caimap.exchange.demo import HASTY, PEOPLE, demo_songs, make_demo
from music_evals.caimap.services import accounts, inspecting, managing, people, training
from music_evals.caimap.services.study import Settings, StudyService
from music_evals.caimap.storage.store import Store, migrate, sqlite_url
from music_evals.caimap.storage.tables import AuditRow, LedgerRow, PersonRow, SheetRow, SongRow, TaskRow, WarningRow
from music_evals.caimap.web.app import build_app
from music_evals.caimap.web.visitors import COOKIE
from music_evals.caimap.web.words import translator
from music_evals.cli import main
from music_evals.cli.caimap import PASSWORD_VARIABLE
from music_evals.errors import InvalidInputError

pytestmark = pytest.mark.slow

__all__ = ["recordings"]  # a fixture


PASSWORD = "a long password"  # noqa: S105  (of the demo)
NUMBERS = {name: number for number, name in enumerate(PEOPLE, 1)}
CAREFUL = [name for name, role in PEOPLE.items() if role in {"professional", "amateur"} and name != HASTY]
NOTHING = 'class="none"'
"""Of what a page says where it has nothing to show."""


@pytest.fixture(scope="module", autouse=True)
def played() -> Iterator[None]:
    """The songs sound the same in every demo study: they are played once."""
    with pytest.MonkeyPatch.context() as patch:
        songs: list[Song] = []
        patch.setattr(demo, "demo_songs", lambda *given: songs or songs.extend(demo_songs(*given)) or songs)
        yield


@pytest.fixture(scope="module")
def made(played: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A demo study that nobody has touched; tests work on copies of it."""
    folder = tmp_path_factory.mktemp("demo") / "study"
    folder.mkdir()
    make_demo(folder / "audio", sqlite_url(folder / "study.db"), PASSWORD)
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "study"))


@pytest.fixture
def service(folder: Path) -> Iterator[StudyService]:
    found = StudyService(Store(sqlite_url(folder / "study.db")))
    yield found
    found.store.close()


@pytest.fixture
def reader(service: StudyService, folder: Path) -> Callable[[str], Any]:
    testclient = pytest.importorskip("starlette.testclient")

    def sign_in(name: str) -> Any:
        client = testclient.TestClient(build_app(service, folder / "audio"), headers={"accept-language": "zh"})
        client.cookies.set(COOKIE, accounts.sign_in(service, name, PASSWORD))
        return client

    return sign_in


def read(client: Any, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200, path
    return str(answer.text)


def links(page: str, pattern: str) -> list[str]:
    return re.findall(rf'href="({pattern})"', page)


def moments(service: StudyService) -> list[dt.datetime]:
    with service.store.reading() as session:
        return list(session.scalars(select(AuditRow.moment).order_by(AuditRow.id)))


def what_was_done(url: str) -> list[Any]:
    """Return songs, tasks, points and amounts of a study, without moments."""
    store = Store(url)
    with store.reading() as session:
        found = [
            session.execute(chosen).all()
            for chosen in (
                select(SongRow.id, SongRow.state, SongRow.training, SongRow.accepted),
                select(TaskRow.id, TaskRow.song, TaskRow.kind, TaskRow.person, TaskRow.state, TaskRow.agreement),
                select(SheetRow.task, SheetRow.inspector, SheetRow.purpose, SheetRow.points),
                select(WarningRow.person, WarningRow.task, WarningRow.kind),
                select(LedgerRow.person, LedgerRow.kind, LedgerRow.cents),
                select(AuditRow.person, AuditRow.object, AuditRow.action).where(AuditRow.kind != "person"),
            )
        ]
    store.close()
    return found


def test_songs_stand_at_every_stage(service: StudyService) -> None:
    songs = managing.progress(service, NUMBERS["admin"]).songs
    assert set(songs) == set(states(SONG)) - {"imported"}
    assert sum(songs.values()) == 21  # three of 24 are for training
    assert songs["finished"] >= 3
    with service.store.reading() as session:
        assert dict(session.execute(select(PersonRow.name, PersonRow.role)).all()) == PEOPLE
    assert moments(service) == sorted(moments(service))
    assert dt.timedelta() < dt.datetime.now(dt.UTC) - moments(service)[-1] < dt.timedelta(hours=4)
    assert moments(service)[-1] - moments(service)[0] > dt.timedelta(days=14)


def test_every_page_of_every_role_has_something_on_it(reader: Callable[[str], Any]) -> None:
    for name, role in PEOPLE.items():
        client = reader(name)
        for page in PAGES:
            if page.method != "GET" or "{" in page.path or role not in RIGHTS.get(page.right, ()):
                continue
            if name == HASTY and page.path in {"/", "/work"}:  # who is excluded reads why, and gets no further tasks
                assert 'action="/work/next"' not in read(client, page.path)
            # what careful people have none of are warnings
            expected = 1 if page.path in {"/", "/work"} and name in CAREFUL else 0
            assert read(client, page.path).count(NOTHING) == expected, (name, page.path)


def test_pages_of_annotators(reader: Callable[[str], Any]) -> None:
    for name in CAREFUL:
        client = reader(name)
        work = read(client, "/work")
        assert "没有警告" in work
        assert re.search(r"<td>I{1,3}</td>", work), f"{name} has no grade"
        for path in links(work, r"/task/\d+")[-3:]:
            assert NOTHING not in read(client, path)
        assert links(read(client, "/ledger"), "/ledger.csv")
        assert read(client, "/ledger").count("<tr>") > 2
        found = read(client, "/feedback")
        assert found.count('<li class="card">') == 2  # a question and its answer


def test_everybody_has_a_next_task(reader: Callable[[str], Any]) -> None:
    for name in CAREFUL:
        client = reader(name)
        csrf = re.search(r'name="csrf" value="([^"]+)"', read(client, "/work"))
        assert csrf is not None
        answer = client.post("/work/next", data={"csrf": csrf[1]})
        assert answer.status_code == 200
        assert re.fullmatch(r"/task/\d+", answer.url.path), (name, answer.url.path)
        assert 'class="player' in answer.text
    for name in ("inspector1", "inspector2"):
        waiting = read(reader(name), "/inspect")
        assert len(links(waiting, r"/inspect/song/\w+")) >= 2
        assert len(links(waiting, r"/inspect/task/\d+")) >= 2
    manage = read(reader("admin"), "/manage")
    assert 'value="exclude"' in manage
    assert 'value="finish"' in manage


def test_pages_of_inspectors(reader: Callable[[str], Any], service: StudyService) -> None:
    client = reader("inspector1")
    inspection = read(client, "/inspect")
    for path in links(inspection, r"/inspect/song/\w+"):
        assert 'class="differs' in read(client, path)
    for path in links(inspection, r"/inspect/task/\d+"):
        assert 'type="number"' in read(client, path)
    page = read(client, "/training")
    assert page.count('class="differs"') == 1  # one item is over 10 points apart
    for path in links(page, r"/training/task/\d+"):
        read(client, path)
    judged = training.practice(service, NUMBERS["inspector1"]).judged
    assert judged is not None
    (item,) = judged.discussed
    assert judged.missing == ()
    said = training.discussion(service, NUMBERS["inspector2"], item)
    assert [remark.author for remark in said] == [NUMBERS[name] for name in ("inspector2", "inspector1", "admin")]


def test_pages_of_the_administrator(reader: Callable[[str], Any]) -> None:
    client = reader("admin")
    verification = read(client, "/manage/verify")
    assert len(re.findall(r"<td>\u2013</td>", verification)) >= 1  # left to verify
    assert len(re.findall(r"<td[^>]*>[\d.]+</td>\s*<td[^>]*>[\d.]+</td>\s*<td[^>]*>[\d.]+</td>", verification)) == 2
    for path in links(verification, r"/manage/verify/\d+"):
        read(client, path)
    grades = read(client, "/manage/grades")
    assert len(set(re.findall(r"<td>(\d{4}-\d\d-\d\d)</td>", grades))) == 3
    assert grades.count('class="differs"') == 1  # one person was excluded
    analytics = read(client, "/manage/analytics")
    assert len(re.findall('class="[^"]*differs"', analytics)) == 1  # and nobody else was warned
    assert "release" in read(client, "/manage/people")  # a task that somebody has begun
    ledger = read(client, "/ledger")
    for kind in ("work", "reward", "penalty", "correction", "payment"):
        assert f"<td>{translator('zh')(kind)}</td>" in ledger, kind
    for number in NUMBERS.values():
        page = read(client, f"/manage/person/{number}")
        for path in links(page, r"/manage/task/\d+")[:2]:
            read(client, path)
    agreement = read(client, "/manage/agreement")
    assert agreement.count("<table>") == 5


def test_scores_settlements_and_training(service: StudyService) -> None:
    admin = NUMBERS["admin"]
    with service.store.reading() as session:
        totals = list(session.scalars(select(SheetRow.total).where(SheetRow.purpose == "assurance")))
    assert len([total for total in totals if total < PASS_MARK]) == 1
    assert len(totals) > 8
    agreements = [one.agreement for one in inspecting.settlements(service, admin)]
    assert 1.0 in agreements  # one was verified
    assert None in agreements  # and one is left
    found = training.lessons(service, admin)
    assert {one.against for one in found} == {"accepted", "others"}
    assert min(one.agreement for one in found) < 1.0 == max(one.agreement for one in found)
    for name in ("professional1", "professional2", "professional3"):
        assert training.lessons(service, NUMBERS[name])
    assert managing.lexica_of(service, "professional")["musical_genres"].terms


def test_nobody_is_excluded_who_did_not_deserve_it(service: StudyService) -> None:
    admin = NUMBERS["admin"]
    assert {one.person for one in people.cautions(service, admin)} == {NUMBERS[HASTY]}
    last = grades.week_of(dt.datetime.now(dt.UTC)) - dt.timedelta(weeks=1)
    closed = managing.close_week(service, admin, last)  # the administrator of the demo may close it
    assert closed
    assert not any(week.excluded for week in closed.values())
    assert [one.name for one in people.people(service, admin) if one.excluded] == [HASTY]


def test_the_demo_is_exported_and_reported(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["caimap", "export", str(folder), "--out", str(tmp_path / "data")]) == 0
    count = int(capsys.readouterr().out.split()[0])
    assert count >= 3
    assert main(["caimap", "report", str(folder), "--out", str(tmp_path / "report")]) == 0
    written = [Path(line) for line in capsys.readouterr().out.split()]
    assert len(written) == 6
    for path in written:
        text = path.read_text(encoding="utf-8")
        assert len(text.splitlines()) > 1
        assert NOTHING not in text


def test_the_demo_is_the_same_on_every_day(made: Path, tmp_path: Path) -> None:
    early = dt.datetime(2026, 3, 2, 0, 5, tzinfo=dt.UTC)  # a Monday, just after midnight
    make_demo(tmp_path / "audio", sqlite_url(tmp_path / "study.db"), PASSWORD, present=early)
    other = what_was_done(sqlite_url(tmp_path / "study.db"))
    assert other == what_was_done(sqlite_url(made / "study.db"))
    service = StudyService(Store(sqlite_url(tmp_path / "study.db")))
    assert max(moments(service)) <= early
    service.store.close()


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
        service = StudyService(Store(sqlite_url(tmp_path / name / "study.db")))
        with service.store.reading() as session:
            seeds += [service.settings(session).seed, service.settings(session).seed]
        service.store.close()
    assert seeds[0] == seeds[1] != seeds[2] == seeds[3]
    assert min(seeds) > 1_000_000  # as good as sure of a number of 63 bits
    said = "".join(capsys.readouterr())
    assert not any(str(seed) in said for seed in seeds)


def test_the_demo_changes_no_study_that_is_there(tmp_path: Path) -> None:
    url = sqlite_url(tmp_path / "study.db")
    migrate(url)
    store = Store(url)
    service = StudyService(store)
    accounts.create_first_admin(service, "admin", "a long password")
    service.configure(Settings(seed=987_654_321, rates=Rates(currency="EUR")))
    with pytest.raises(InvalidInputError, match="its administrator already"):
        make_demo(tmp_path / "audio", url, "a long password")
    with store.reading() as session:
        assert service.settings(session) == Settings(seed=987_654_321, rates=Rates(currency="EUR"))
    store.close()
