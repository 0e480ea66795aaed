"""Who reaches what: every page by every role, on their own and on others' objects, with the one status that is right.

Each row sends what a person with the right would send, filled in validly, so that a 400 never stands for a refusal.
A page without a row fails, and so does a row without a page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import numpy as np
import pytest
import soundfile
from sqlalchemy import func, select
from tests.caimap.direct import Direct
from tests.caimap.local_provider import CLIENT, SECRET, LocalProvider, running
from tests.caimap.routes import PAGES, PROVIDER_PAGES
from tests.caimap_bench import START, StudyBench, description, one_verse

from music_evals.caimap.domain import assurance
from music_evals.caimap.domain.machine import RIGHTS
from music_evals.caimap.domain.values import ROLES, ScoreSheet
from music_evals.caimap.services import accounts, annotating, inspecting, managing, training
from music_evals.caimap.services.study import Settings
from music_evals.caimap.storage.store import Store, sqlite_file, sqlite_url
from music_evals.caimap.storage.tables import AuditRow, Base, IdentityRow, PersonRow, SheetRow, SongRow, TaskRow
from music_evals.caimap.web.app import build_app
from music_evals.caimap.web.forms import structure_fields
from music_evals.caimap.web.provider import CALLBACK, Provider
from music_evals.caimap.web.visitors import COOKIE

httpx2 = pytest.importorskip("httpx2")
PASSWORD = "a long password"  # noqa: S105  (of everybody)
ANOTHER = "another password"
ALL = {f"{page.method} {page.path}": page for page in (*PAGES, *PROVIDER_PAGES)}
REFUSED = {"400", "401", "403"}


# --- a study in which something waits for everybody


class Scene(NamedTuple):
    """A study, the names in it, the sessions of its people, the provider by which they may sign in, and its pages."""

    bench: StudyBench
    names: dict[str, str]
    tokens: dict[int, str]
    provider: Provider
    app: Any = None

    def version(self, name: str) -> str:
        """Return the version of a task or a song, as its page shows it."""
        found = self.names[name]
        table, key = (TaskRow, int(found)) if found.isdecimal() else (SongRow, found)
        return str(self.bench.version(table, key))


def hand_in(bench: StudyBench, who: int, given: Any, task: Any = None) -> int:
    """Take a task, or go on with one, listen and hand in."""
    task = task or bench.take(who)
    if task.kind != "structure":
        bench.listen(who, task.id)
    annotating.submit(bench.service, who, task.id, bench.version(TaskRow, task.id), given)
    return int(task.id)


def two_passes(bench: StudyBench, second: str = "verse1") -> None:
    for who, label in ((bench.PRO, "verse1"), (bench.OTHER_PRO, second)):
        hand_in(bench, who, one_verse("春眠不觉晓", label=label))
        bench.clock.wait(days=2)


def full_points(group: str) -> dict[tuple[str, str], float]:
    return {key: float(most) for key, most in assurance.FORMS[group].items()}


def fill_training(bench: StudyBench) -> dict[str, str]:
    """Let two professionals practise on the song of the training."""
    numbers = []
    for who in (bench.PRO, bench.OTHER_PRO):
        task = training.take_training(bench.service, who)
        annotating.open_task(bench.service, who, task.id)
        numbers.append(hand_in(bench, who, one_verse("春眠不觉晓"), task))
    return {"lesson": str(numbers[0]), "model": task.song}


def scores_are_apart(scene: Scene) -> None:
    for who, share in ((scene.bench.INSPECTOR, 1.0), (scene.bench.OTHER_INSPECTOR, 0.5)):
        points = {key: most * share for key, most in full_points("amateur").items()}
        training.score_item(scene.bench.service, ScoreSheet(int(scene.names["item"]), who, points))


def settle_differ(scene: Scene) -> None:
    bench = scene.bench
    inspecting.settle(
        bench.service, bench.INSPECTOR, "differ", bench.version(SongRow, "differ"), one_verse("春眠不觉晓")
    )


def fill(bench: StudyBench) -> dict[str, str]:
    """Leave a song in each state, and something to do for each role."""
    named: dict[str, str] = {}
    bench.songs("checking")
    two_passes(bench)
    for who, group in ((bench.THIRD_PRO, "professional"), (bench.FAN, "amateur")):
        number = hand_in(bench, who, description(group))
        sheet = ScoreSheet(number, bench.INSPECTOR, full_points(group))
        inspecting.score(bench.service, sheet, bench.version(TaskRow, number))
        named["scored"] = str(number)
    bench.songs("sampled")
    two_passes(bench)
    hand_in(bench, bench.THIRD_PRO, description("professional"))
    named["sampled"] = str(hand_in(bench, bench.OTHER_FAN, description("amateur")))
    bench.songs("differ")
    two_passes(bench, "chorus1")
    bench.songs("screened")
    skipped = bench.take(bench.PRO)
    annotating.screen(bench.service, bench.PRO, skipped.id, bench.version(TaskRow, skipped.id), reason="poor_audio")
    bench.songs("described")
    two_passes(bench)
    bench.take(bench.THIRD_PRO)
    task = bench.take(bench.FAN)
    bench.listen(bench.FAN, task.id)
    named["description"] = str(task.id)
    bench.songs("structured")
    named["structure"] = str(bench.take(bench.PRO).id)
    bench.songs("free1", "free2", "free3")
    training.choose_songs(bench.service, bench.ADMIN, 1)
    item = training.take_training(bench.service, bench.FAN)
    annotating.open_task(bench.service, bench.FAN, item.id)
    named["item"] = str(hand_in(bench, bench.FAN, description("amateur"), item))
    named |= fill_training(bench)
    named |= {song: song for song in ("checking", "differ", "screened")}
    member = accounts.invite(bench.service, bench.ADMIN, "amateur")
    named["member"] = str(accounts.accept(bench.service, member, "林", PASSWORD, consents=True))
    named["token"] = accounts.invite(bench.service, bench.ADMIN, "professional")
    named["link"] = accounts.reset_link(bench.service, bench.ADMIN, int(named["member"]))
    return named


@pytest.fixture(scope="module")
def served() -> Iterator[LocalProvider]:
    with running(LocalProvider()) as provider:
        yield provider


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory, served: LocalProvider) -> Scene:
    folder = tmp_path_factory.mktemp("authorisation")
    bench = StudyBench(sqlite_url(folder / "study.db"), Settings(seed=1, share=1.0, congruent_share=0.0))
    (folder / "audio").mkdir()
    soundfile.write(folder / "audio" / "song.flac", np.zeros(8000), 8000)
    named = fill(bench)
    with bench.store.writing() as session:
        for row in session.scalars(select(SongRow)):
            row.content = {**row.content, "audio": "song.flac"}
        for person in session.scalars(select(PersonRow)):
            person.password_hash = accounts._hasher().hash(PASSWORD)
    people = {who: accounts.open_session(bench.service, who) for who in range(1, len(bench.PEOPLE) + 1)}
    bench.store.close()  # which moves all of it into the file
    provider = Provider(CLIENT, SECRET, address="http://127.0.0.1:7860", url=served.url)
    return Scene(bench, named, people, provider)


@pytest.fixture
def scene(template: Scene, tmp_path: Path) -> Iterator[Callable[[], Scene]]:
    """Return what makes a copy of the study."""
    opened: list[Store] = []

    def copy() -> Scene:
        bench = template.bench.copied(tmp_path / str(len(opened)))
        opened.append(bench.store)
        app = build_app(bench.service, sqlite_file(bench.url).parent / "audio", provider=template.provider)
        return template._replace(bench=bench, app=app)

    yield copy
    for store in opened:
        store.close()


# --- the table

NOBODY = "nobody"
COLUMNS = {
    NOBODY: 0,
    "amateur, whose object it is": StudyBench.FAN,
    "another amateur": StudyBench.OTHER_FAN,
    "professional, whose object it is": StudyBench.PRO,
    "another professional": StudyBench.OTHER_PRO,
    "inspector": StudyBench.INSPECTOR,
    "another inspector": StudyBench.OTHER_INSPECTOR,
    "administrator": StudyBench.ADMIN,
}
"""Who asks, in the order of the statuses of a row."""

Fields = Callable[[Scene], dict[str, Any]]


class Row(NamedTuple):
    """One row: a page on one object.

    Attributes
    ----------
    page
        Method and path, as in `PAGES`.
    statuses
        By column; ``in`` sends who is not signed in there: by a redirect or, where they had written something, a 401.
    path
        Names in the path -> names in the scene, or values of their own.
    form, json
        What is sent.
    before
        What has to happen first.
    returns
        The provider sends them here; otherwise they come by themselves.

    """

    page: str
    statuses: str
    path: dict[str, str] = {}  # noqa: RUF012
    form: Fields = lambda _: {}
    json: Fields | None = None
    before: Callable[[Scene], None] = lambda _: None
    returns: bool = False


def structure_form(name: str) -> Fields:
    return lambda scene: {"version": scene.version(name), **structure_fields(one_verse("春眠不觉晓"))}


def description_form(scene: Scene) -> dict[str, Any]:
    given = description("amateur")
    tags = {f"tags_{name}": "、".join(said.tags) for name, said in given.dimensions.items()}
    return {"version": scene.version("description"), "overall_text": given.overall_text, "clear": "yes", **tags}


def score_form(name: str) -> Fields:
    points = {f"{row}.{part}": str(most) for (row, part), most in assurance.FORMS["amateur"].items()}
    return lambda scene: {"version": scene.version(name), **points}


def version_of(name: str, **fields: str) -> Fields:
    return lambda scene: {"version": scene.version(name), **fields}


def plain(**fields: str) -> Fields:
    return lambda _: fields


def all_score(scene: Scene) -> None:
    for who in (scene.bench.INSPECTOR, scene.bench.OTHER_INSPECTOR):
        training.score_item(scene.bench.service, ScoreSheet(int(scene.names["item"]), who, full_points("amateur")))


def all_link(scene: Scene) -> None:
    """Link an identity to everybody; "林" is known by the one that signs in at the provider."""
    with scene.bench.store.writing() as session:
        for who in session.scalars(select(PersonRow.id)):
            subject = LocalProvider.SUBJECT if str(who) == scene.names["member"] else f"of {who}"
            session.add(IdentityRow(provider=scene.provider.url, subject=subject, person=who))


def draft(name: str) -> Fields:
    return lambda scene: {"version": int(scene.version(name)), "fields": {"theme": "春天"}}


def listened(_: Scene) -> dict[str, Any]:
    return {"events": [{"kind": "beat", "position_sec": 1}]}


THEIRS, FANS = {"number:id": "structure"}, {"number:id": "description"}
FAN, NO_SUCH = {"person:id": str(StudyBench.FAN)}, {"person:id": "99"}
SCORED, SAMPLED, ITEM = {"number:id": "scored"}, {"number:id": "sampled"}, {"number:id": "item"}
ALL_GET = "{0} {0} {0} {0} {0} {0} {0} {0}"
SIGNED_IN_GET = "in  {0} {0} {0} {0} {0} {0} {0}"
EVERYBODY, WHO_IS_IN = ALL_GET.format(200), SIGNED_IN_GET.format(200)
PRO_ALONE = "in  403 403 {} 403 403 403 403"
FAN_ALONE = "in  {} 403 403 403 403 403 403"
INSPECTORS = "in  403 403 403 403 {0} {0} 403"
MANAGERS = "in  403 403 403 403 403 403 {}"

ROWS = (
    #                                  nobody, amateurs, professionals, inspectors, administrator
    Row("GET /",                       SIGNED_IN_GET.format(303)),
    Row("GET /sign-in",                EVERYBODY),
    Row("POST /sign-in",               ALL_GET.format(303), form=plain(name="林", password=PASSWORD)),
    Row("POST /sign-in",               ALL_GET.format(401), form=plain(name="林", password=ANOTHER)),
    Row("POST /language",              ALL_GET.format(303), form=plain(language="en", to="/")),
    Row("POST /sign-out",              SIGNED_IN_GET.format(303)),
    Row("GET /invitation/{token}",     EVERYBODY, {"token": "token"}),
    Row("POST /invitation/{token}",    ALL_GET.format(303), {"token": "token"},
        plain(name="王", password=PASSWORD, consents="on")),
    Row("POST /invitation/{token}",    ALL_GET.format(400), {"token": "none"},
        plain(name="王", password=PASSWORD, consents="on")),
    Row("GET /new-password/{token}",   EVERYBODY, {"token": "link"}),
    Row("POST /new-password/{token}",  ALL_GET.format(303), {"token": "link"}, plain(password=ANOTHER)),
    Row("POST /new-password/{token}",  ALL_GET.format(400), {"token": "none"}, plain(password=ANOTHER)),
    # with a provider
    Row("GET /sign-in/hugging-face",        ALL_GET.format(303)),
    Row(f"GET {CALLBACK}",                  EVERYBODY, before=all_link, returns=True),
    Row(f"GET {CALLBACK}",                  ALL_GET.format(403), returns=True),  # nobody takes part by it
    Row(f"GET {CALLBACK}",                  ALL_GET.format(400)),
    Row("POST /invitation/{token}/hugging-face", EVERYBODY, {"token": "token"},
        plain(name="王", consents="on")),
    Row("POST /invitation/{token}/hugging-face", ALL_GET.format(400), {"token": "none"},
        plain(name="王", consents="on")),
    Row("GET /account",                     WHO_IS_IN),
    Row("POST /account/link",               WHO_IS_IN),
    Row("POST /account/unlink",             SIGNED_IN_GET.format(303), before=all_link),
    Row("POST /account/unlink",             SIGNED_IN_GET.format(400)),  # nothing is linked
    # without one
    Row("GET /feedback",               WHO_IS_IN),
    Row("POST /feedback",              SIGNED_IN_GET.format(303), form=plain(content="你好")),
    Row("POST /feedback",              "in  303 403 403 403 403 403 303",
        form=plain(content="你好", thread=str(StudyBench.FAN))),
    Row("GET /ledger",                 WHO_IS_IN),
    Row("POST /ledger",                MANAGERS.format(303),
        form=plain(person="4", cents="5", kind="correction", reason="test")),
    Row("GET /ledger.csv",             WHO_IS_IN),
    Row("GET /withdraw",               WHO_IS_IN),
    Row("POST /withdraw",              "in  303 303 303 303 303 303 400",  # the last administrator stays
        form=plain(password=PASSWORD)),
    Row("POST /withdraw",              SIGNED_IN_GET.format(401), form=plain(password=ANOTHER)),
    Row("GET /work",                   "in  200 200 200 200 403 403 403"),
    Row("POST /work/next",             "in  303 303 303 303 403 403 403"),
    Row("GET /task/{number:id}",           PRO_ALONE.format(200), THEIRS),
    Row("GET /task/{number:id}",           FAN_ALONE.format(200), FANS),
    Row("POST /task/{number:id}/save",     PRO_ALONE.format(303), THEIRS, structure_form("structure")),
    Row("POST /task/{number:id}/save",     FAN_ALONE.format(303), FANS, description_form),
    Row("POST /task/{number:id}/draft",    "in  403 403 200 403 403 403 403", THEIRS, json=draft("structure")),
    Row("POST /task/{number:id}/draft",    "in  200 403 403 403 403 403 403", FANS, json=draft("description")),
    Row("POST /task/{number:id}/submit",   PRO_ALONE.format(303), THEIRS, structure_form("structure")),
    Row("POST /task/{number:id}/submit",   FAN_ALONE.format(303), FANS, description_form),
    Row("POST /task/{number:id}/skip",     PRO_ALONE.format(303), THEIRS,
        version_of("structure", reason="poor_audio")),
    Row("POST /task/{number:id}/restart",  PRO_ALONE.format(200), THEIRS, version_of("structure")),  # asks first
    Row("POST /task/{number:id}/restart",  PRO_ALONE.format(303), THEIRS, version_of("structure", sure="1")),
    Row("POST /task/{number:id}/restart",  FAN_ALONE.format(200), FANS, version_of("description")),
    Row("POST /task/{number:id}/restart",  FAN_ALONE.format(303), FANS, version_of("description", sure="1")),
    Row("POST /task/{number:id}/events",   "in  403 403 200 403 403 403 403", THEIRS, json=listened),
    Row("POST /task/{number:id}/events",   "in  200 403 403 403 403 403 403", FANS, json=listened),
    Row("GET /task/{number:id}/audio",     "in  403 403 200 403 200 200 200", THEIRS),
    Row("GET /task/{number:id}/audio",     "in  200 403 403 403 200 200 200", FANS),
    Row("GET /task/{number:id}/waveform",  "in  403 403 200 403 200 200 200", THEIRS),
    Row("GET /task/{number:id}/waveform",  "in  200 403 403 403 200 200 200", FANS),
    Row("GET /lexicon/{group}/{dimension}", "in  200 200 200 200 403 403 403",
        {"group": "amateur", "dimension": "instrumentation"}),
    Row("GET /inspect",                     INSPECTORS.format(200)),
    Row("GET /inspect/song/{song}",         INSPECTORS.format(200), {"song": "differ"}),
    Row("POST /inspect/song/{song}",        INSPECTORS.format(303), {"song": "differ"}, structure_form("differ")),
    Row("POST /inspect/song/{song}/rows",   INSPECTORS.format(200), {"song": "differ"}, structure_form("differ")),
    Row("GET /inspect/task/{number:id}",   INSPECTORS.format(200), SAMPLED),
    Row("POST /inspect/task/{number:id}",  INSPECTORS.format(303), SAMPLED, score_form("sampled")),
    Row("GET /manage",                      MANAGERS.format(200)),
    Row("GET /manage/progress",             MANAGERS.format(200)),
    Row("POST /manage/invite",              MANAGERS.format(200), form=plain(role="amateur")),
    Row("POST /manage/screening/{song}",    MANAGERS.format(303), {"song": "screened"},
        version_of("screened", decision="keep")),
    Row("POST /manage/song/{song}",         MANAGERS.format(303), {"song": "checking"},
        version_of("checking", decision="finish")),
    Row("POST /manage/week",                MANAGERS.format(303), form=plain(monday=START.date().isoformat())),
    Row("GET /manage/analytics",            MANAGERS.format(200)),
    Row("GET /manage/person/{person:id}",  MANAGERS.format(200), FAN),
    Row("GET /manage/task/{number:id}",    MANAGERS.format(200), SCORED),
    Row("POST /manage/task/{number:id}/release", MANAGERS.format(303), THEIRS),
    Row("POST /manage/task/{number:id}/release", MANAGERS.format(409), SCORED),
    Row("GET /manage/people",               MANAGERS.format(200)),
    Row("POST /manage/person/{person:id}/reset", MANAGERS.format(200), FAN),
    Row("POST /manage/person/{person:id}/reset", MANAGERS.format(400), NO_SUCH),
    Row("POST /manage/person/{person:id}/sign-out", MANAGERS.format(303), FAN),
    Row("POST /manage/person/{person:id}/sign-out", MANAGERS.format(400), NO_SUCH),
    Row("GET /manage/person/{person:id}/withdraw", MANAGERS.format(200), FAN),
    Row("POST /manage/person/{person:id}/withdraw", MANAGERS.format(303), FAN, plain(password=PASSWORD)),
    Row("POST /manage/person/{person:id}/withdraw", MANAGERS.format(401), FAN, plain(password=ANOTHER)),
    Row("POST /manage/person/{person:id}/withdraw", MANAGERS.format(400), NO_SUCH, plain(password=PASSWORD)),
    Row("GET /manage/grades",               MANAGERS.format(200)),
    Row("GET /manage/agreement",            MANAGERS.format(200)),
    Row("GET /manage/verify",               MANAGERS.format(200)),
    Row("GET /manage/verify/{number:id}",  MANAGERS.format(200), SCORED),
    Row("POST /manage/verify/{number:id}", MANAGERS.format(303), SCORED, score_form("scored")),
    Row("GET /training",                    WHO_IS_IN),
    Row("POST /training/next",              "in  303 303 303 303 403 403 403"),
    Row("POST /training/songs",             MANAGERS.format(303), form=plain(songs="1")),
    Row("POST /training/round",             MANAGERS.format(303), before=all_score),
    Row("GET /training/task/{number:id}",  INSPECTORS.format(200), ITEM),
    Row("POST /training/task/{number:id}", INSPECTORS.format(303), ITEM, score_form("item")),
    # structures of the training, discussions, and structures settled again
    Row("GET /training/lesson/{number:id}",            "in  403 403 200 403 200 200 200",
        {"number:id": "lesson"}),
    Row("GET /training/lesson/{number:id}",            "in  400 403 403 403 400 400 400", ITEM),  # no structure
    Row("GET /training/song/{song}",                    INSPECTORS.format(200), {"song": "model"}),
    Row("POST /training/song/{song}",                   INSPECTORS.format(303), {"song": "model"},
        structure_form("model")),
    Row("POST /training/song/{song}/rows",              INSPECTORS.format(200), {"song": "model"},
        structure_form("model")),
    Row("POST /training/item/{number:id}/discussion",  "in  403 403 403 403 303 303 303", ITEM,
        plain(content="你好"), before=scores_are_apart),
    Row("GET /manage/settled/{song}",                   MANAGERS.format(200), {"song": "differ"},
        before=settle_differ),
    Row("POST /manage/settled/{song}",                  MANAGERS.format(200), {"song": "differ"},
        structure_form("differ"), before=settle_differ),
    Row("POST /manage/settled/{song}/rows",             MANAGERS.format(200), {"song": "differ"},
        structure_form("differ"), before=settle_differ),
)  # fmt: skip


def ask(scene: Scene, row: Row, who: int) -> str:
    """Send the request of a row as a person, and return the status, or ``in`` for who has to sign in first."""
    client = httpx2.Client(transport=Direct(scene.app), base_url="http://testserver")
    csrf, visit = "", None
    if who:
        client.cookies.set(COOKIE, scene.tokens[who])
        visit = accounts.visit(scene.bench.service, scene.tokens[who])
        csrf = visit.csrf if visit else "gone"
    method, path = row.page.split()
    for name, value in row.path.items():
        path = path.replace(f"{{{name}}}", scene.names.get(value, value))
    sent: dict[str, Any] = {"data": {"csrf": csrf, **row.form(scene)}} if method == "POST" else {}
    if row.json is not None:
        sent = {"json": row.json(scene), "headers": {"x-csrf": csrf}}
    if row.returns:
        there = client.get("/sign-in/hugging-face").headers["location"]
        path += "?" + urlsplit(httpx2.get(there, trust_env=False, verify=False).headers["location"]).query
    answer = client.request(method, path, **sent)
    if visit is None and ALL[row.page].right != "public":
        is_sent = answer.status_code == 303 and answer.headers["location"] == "/sign-in"
        return "in" if is_sent or answer.status_code == 401 else f"{answer.status_code} for nobody"
    return str(answer.status_code)


COUNTS = select(
    *(
        select(func.count()).select_from(table).scalar_subquery().label(table.name)
        for table in Base.metadata.sorted_tables
    )
)


def counts(scene: Scene) -> dict[str, int]:
    """Count the rows of each table, and what was logged."""
    with scene.bench.store.reading() as session:
        return dict(session.execute(COUNTS).mappings().one())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.page} {' '.join(row.path.values())}".strip())
@pytest.mark.requirement(number=1)
def test_each_page_by_each_role(scene: Callable[[], Scene], row: Row) -> None:
    shared = scene()
    row.before(shared)
    found, wanted = {}, dict(zip(COLUMNS, row.statuses.split(), strict=True))
    for column, who in COLUMNS.items():
        at, status = shared, wanted[column]
        if status not in {"in", "403"} and (row.page.startswith("POST") or row.returns):
            at = scene()  # whoever is let in changes something, and whoever guesses is locked out at last
            row.before(at)
        before = counts(at)
        found[column] = ask(at, row, who)
        if status in {"in", *REFUSED} and not row.returns:  # that a sign-in began is kept
            assert counts(at) == before, f"{column} was refused, and something was kept"
    assert found == wanted


def test_every_page_has_its_rows_and_every_row_its_page() -> None:
    assert set(ALL) == {row.page for row in ROWS}


def test_rows_say_what_the_rights_say() -> None:
    roles = ["", "amateur", "amateur", "professional", "professional", "inspector", "inspector", "administrator"]
    let_in: dict[str, set[str]] = {name: set() for name in ALL}
    for row in ROWS:
        if ALL[row.page].right != "public":
            assert row.statuses.split()[0] == "in", row.page
        allowed = {role for role, status in zip(roles, row.statuses.split(), strict=True)
                   if status not in {"in", "401", "403"}}  # fmt: skip
        let_in[row.page] |= allowed
    # every role that has a right is let in by some row of each page, and no other
    for name, page in ALL.items():
        wanted = set(roles) if page.right == "public" else set(RIGHTS[page.right])
        wanted -= {"amateur"} if name.endswith("/skip") else set()  # who describes does not screen
        assert let_in[name] == wanted, name


def test_objects_of_others_are_rows_too() -> None:
    """On pages of one's own objects somebody of the same role is refused."""
    for name, page in ALL.items():
        if page.right in {"annotate", "ask"} and "{number:id}" in page.path:
            rows = [row.statuses.split() for row in ROWS if row.page == name]
            assert rows
            for row in rows:
                assert "403" in (row[1:3] if row[3] == "403" else row[3:5]), page.path


@pytest.mark.slow
def test_who_withdrew_is_nobody(scene: Callable[[], Scene]) -> None:
    at = scene()
    for who in (at.bench.FAN, at.bench.PRO, at.bench.INSPECTOR):
        managing.withdraw(at.bench.service, who, who)
        for row in ROWS:
            if ALL[row.page].right != "public":
                assert ask(at, row, who) == "in", row.page


def test_the_scene_holds_what_the_rows_ask_for(template: Scene) -> None:
    bench = StudyBench.__new__(StudyBench)
    bench.store = Store(template.bench.url)
    with bench.store.reading() as session:
        states = {row.id: row.state for row in session.scalars(select(SongRow))}
        roles = set(session.scalars(select(PersonRow.role)))
        assert session.scalar(select(func.count()).select_from(SheetRow)) == 2
        assert session.scalar(select(func.count()).select_from(AuditRow))
    bench.store.close()
    assert roles == set(ROLES)
    wanted = {"checking": "checking", "sampled": "assuring", "differ": "inspecting", "screened": "screened",
              "described": "describing", "structured": "structuring"}  # fmt: skip
    assert {name: states[name] for name in wanted} == wanted
