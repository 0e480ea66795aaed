"""Signing in by a provider that runs on this machine: its people, what it may do wrong, and what nobody gets around."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator
from urllib.parse import parse_qs, urlsplit

import pytest
from sqlalchemy import func, select
from tests.caimap.local_provider import CLIENT, SECRET, Key, LocalProvider, running
from tests.caimap.routes import PROVIDER_PAGES
from tests.caimap.test_languages import foreign
from tests.caimap_bench import START, StudyBench

from music_evals.caimap.services import accounts, identities, managing
from music_evals.caimap.services.study import Settings
from music_evals.caimap.storage.store import Store, migrate, sqlite_url
from music_evals.caimap.storage.tables import AttemptRow, AuditRow, IdentityRow, InviteRow, PersonRow, SessionRow
from music_evals.caimap.web import provider as web_provider
from music_evals.caimap.web.app import build_app
from music_evals.caimap.web.guards import HEADERS
from music_evals.caimap.web.provider import CALLBACK, Provider, ProviderError, keys_of, provider_of
from music_evals.caimap.web.visitors import ATTEMPT_COOKIE, COOKIE
from music_evals.caimap.web.words import LANGUAGE_COOKIE, catalogue
from music_evals.cli import main
from music_evals.errors import InvalidInputError

testclient = pytest.importorskip("starlette.testclient")
httpx2 = pytest.importorskip("httpx2")

ADDRESS = "http://127.0.0.1:7860"
BEGIN = "/sign-in/hugging-face"
PASSWORD = "a long password"  # noqa: S105  (of nobody)


@pytest.fixture(scope="module")
def served() -> Iterator[LocalProvider]:
    with running(LocalProvider()) as provider:
        yield provider


@pytest.fixture
def provider(served: LocalProvider) -> Iterator[LocalProvider]:
    served.wrong, served.subject, served.claims, served.header = "", "6482a1", {}, {}
    served.asked.clear()
    yield served
    served.wrong = ""


@pytest.fixture
def app(bench: StudyBench, provider: LocalProvider, tmp_path):
    known = Provider(CLIENT, SECRET, address=ADDRESS, url=provider.url)
    return build_app(bench.service, tmp_path, provider=known)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return what waits less where the provider never comes to an end."""

    def wait_for(wrong: str) -> None:
        monkeypatch.setattr(web_provider, "TIMEOUT_SEC", 0.2 if wrong.endswith("drip") else 10.0)

    return wait_for


class Person:
    """A browser that reads the pages in a language, and the way to the provider and back."""

    def __init__(self, app, bench: StudyBench, who: int = 0, language: str = "en") -> None:
        self.client = testclient.TestClient(app, base_url=ADDRESS, follow_redirects=False)
        self.client.cookies.set(LANGUAGE_COOKIE, language)
        self.bench, self.csrf = bench, ""
        if who:
            token = accounts.open_session(bench.service, who)
            self.client.cookies.set(COOKIE, token)
            self.csrf = accounts.visit(bench.service, token).csrf

    def at_provider(self, answer) -> str:
        """Go where the answer leads, and return the address to which the provider sends back."""
        where = answer.headers.get("location") or onward(answer)
        return httpx2.get(where, trust_env=False, verify=False).headers["location"]  # without TLS

    def back(self, where: str):
        """Come back as a browser does, which keeps a strict cookie to itself on a way that began elsewhere."""
        kept = self.client.cookies.get(COOKIE)
        self.client.cookies.delete(COOKIE) if kept else None
        answer = self.client.get(where)
        if kept and not self.client.cookies.get(COOKIE):
            self.client.cookies.set(COOKIE, kept)
        return answer

    def sign_in(self):
        return self.back(self.at_provider(self.client.get(BEGIN)))

    def join(self, role: str = "amateur", name: str = "林", **fields: str):
        token = accounts.invite(self.bench.service, self.bench.ADMIN, role)
        return self.client.post(f"/invitation/{token}/hugging-face", data={"name": name, "consents": "on", **fields})

    def link(self):
        return self.client.post("/account/link", data={"csrf": self.csrf})


def onward(answer) -> str:
    """Where a page goes on to by itself."""
    assert answer.status_code == 200, answer.text
    found = re.search(r'<meta http-equiv="refresh" content="0; url=([^"]+)">', answer.text)
    assert found
    assert f'<a href="{found[1]}">' in answer.text
    return found[1].replace("&amp;", "&")


def identity_of(bench: StudyBench, who: int, subject: str, provider: LocalProvider) -> None:
    with bench.store.writing() as session:
        session.add(IdentityRow(provider=provider.url, subject=subject, person=who))


def logged(bench: StudyBench, action: str) -> list[AuditRow]:
    with bench.store.reading() as session:
        return list(session.scalars(select(AuditRow).where(AuditRow.action == action)))


def count(bench: StudyBench, table) -> int:
    with bench.store.reading() as session:
        return session.scalar(select(func.count()).select_from(table))


# --- the way there and back


def test_somebody_joins_by_an_invitation_and_signs_in_again(bench: StudyBench, app, provider: LocalProvider) -> None:
    person = Person(app, bench)
    answer = person.join("professional")
    where = onward(answer)
    assert where.startswith(f"{provider.url}/oauth/authorize?")
    asked = {name: values[0] for name, values in parse_qs(urlsplit(where).query).items()}
    assert asked["redirect_uri"] == ADDRESS + CALLBACK
    assert len({asked["state"], asked["nonce"], asked["code_challenge"]}) == 3
    assert min(len(asked[name]) for name in ("state", "nonce", "code_challenge")) == 43  # 256 bits each
    back = person.back(person.at_provider(answer))
    assert onward(back) == "/"
    assert "SameSite=strict" in back.headers["set-cookie"]
    assert person.client.get("/work").status_code == 200
    with bench.store.reading() as session:
        row = session.scalars(select(PersonRow).where(PersonRow.name == "林")).one()
        assert (row.role, row.consent, row.password_hash) == ("professional", "1", "")
        identity = session.scalars(select(IdentityRow)).one()
        assert (identity.provider, identity.subject, identity.person) == (provider.url, "6482a1", row.id)
        assert session.scalars(select(InviteRow)).one().used_by == row.id
    [entry] = logged(bench, "accept")
    assert entry.detail == {"consent": "1", "provider": provider.url}
    again = Person(app, bench)
    assert onward(again.sign_in()) == "/"
    assert again.client.get("/work").status_code == 200
    # both sessions stand, and neither token is the other's
    assert again.client.cookies[COOKIE] != person.client.cookies[COOKIE]
    assert provider.asked.count("/.well-known/openid-configuration") == 1  # known for an hour


def test_without_a_client_there_are_no_pages_and_no_button(bench: StudyBench, app, tmp_path) -> None:
    with_it = Person(app, bench).client
    assert f'href="{BEGIN}"' in with_it.get("/sign-in").text
    assert "/hugging-face" in with_it.get("/invitation/x").text
    assert 'href="/account"' in Person(app, bench, bench.FAN).client.get("/work").text
    plain = build_app(bench.service, tmp_path)
    without = Person(plain, bench, bench.FAN)
    for page in ("/sign-in", "/invitation/x", "/work"):
        text = without.client.get(page).text
        assert "Hugging Face" not in text
        assert "/account" not in text
    for page in PROVIDER_PAGES:
        asked = without.client.request(page.method, page.path.replace("{token}", "x"), data={"csrf": without.csrf})
        assert asked.status_code == 404, page.path


def test_the_cookies_of_a_sign_in(bench: StudyBench, provider: LocalProvider, app, tmp_path) -> None:
    cookie = Person(app, bench).client.get(BEGIN).headers["set-cookie"]
    assert cookie.startswith(f"{ATTEMPT_COOKIE}=")
    assert {"HttpOnly", "SameSite=lax", "Max-Age=600", "Path=/"} <= set(cookie.split("; "))
    # behind a proxy that speaks TLS and does not say so
    known = Provider(CLIENT, SECRET, address="https://study.example/", url=provider.url)
    person = testclient.TestClient(build_app(bench.service, tmp_path, provider=known), follow_redirects=False)
    answer = person.get(BEGIN, headers={"host": "evil.example", "x-forwarded-host": "evil.example"})
    assert answer.headers["set-cookie"].startswith(f"__Host-{ATTEMPT_COOKIE}=")
    assert "Secure" in answer.headers["set-cookie"]
    asked = parse_qs(urlsplit(answer.headers["location"]).query)
    assert asked["redirect_uri"] == [f"https://study.example{CALLBACK}"]


def test_every_answer_on_the_way_is_hardened(bench: StudyBench, app, provider: LocalProvider) -> None:
    person = Person(app, bench, bench.FAN)
    begun = person.link()
    done = person.back(person.at_provider(begun))
    for answer in (begun, done, person.client.get("/account"), person.client.get(CALLBACK)):
        assert all(answer.headers[name] == value for name, value in HEADERS.items())
        assert not re.search(r"<script(?![^>]*\bsrc=)|\son\w+=|style=|javascript:", answer.text)
    assert "form-action 'self';" in HEADERS["Content-Security-Policy"]  # the provider is not in it


def test_nothing_that_signs_anybody_in_is_in_the_database(bench: StudyBench, app, provider: LocalProvider) -> None:
    person = Person(app, bench)
    answer = person.client.get(BEGIN)
    secret = person.client.cookies[ATTEMPT_COOKIE]
    with bench.store.reading() as session:
        row = session.scalars(select(AttemptRow)).one()
        kept = " ".join(str(value) for value in vars(row).values())
    assert not any(value in kept for value in (secret, *keys_of(secret)))
    assert keys_of(secret).verifier not in answer.headers["location"]


# --- what comes back


def test_a_callback_is_used_once(bench: StudyBench, app, provider: LocalProvider) -> None:
    accounts.set_language(bench.service, bench.FAN, "en")
    identity_of(bench, bench.FAN, "6482a1", provider)
    person = Person(app, bench)
    where = person.at_provider(person.client.get(BEGIN))
    secret = person.client.cookies[ATTEMPT_COOKIE]
    assert person.back(where).status_code == 200
    assert ATTEMPT_COOKIE not in person.client.cookies
    person.client.cookies.set(ATTEMPT_COOKIE, secret)
    asked = len(provider.asked)
    again = person.back(where)
    assert again.status_code == 400
    assert "used already" in again.text
    assert len(provider.asked) == asked  # the code goes to the provider once
    assert count(bench, SessionRow) == 1


@pytest.mark.slow
def test_another_state_is_refused_and_ends_nothing(bench: StudyBench, app, provider: LocalProvider) -> None:
    identity_of(bench, bench.FAN, "6482a1", provider)
    person, other = Person(app, bench), Person(app, bench)
    where = person.at_provider(person.client.get(BEGIN))
    stranger = other.at_provider(other.client.get(BEGIN))
    for wrong in (stranger, f"{CALLBACK}?code=x", f"{CALLBACK}?code=x&state=", f"{CALLBACK}?state=字&code=x"):
        answer = person.back(wrong)
        assert answer.status_code == 400
        assert f"at {ADDRESS}" in answer.text
    assert Person(app, bench).back(where).status_code == 400  # no cookie: another browser
    empty = Person(app, bench)
    empty.client.cookies.set(ATTEMPT_COOKIE, "")
    assert empty.back(f"{CALLBACK}?code=x&state={keys_of('').state}").status_code == 400
    assert count(bench, SessionRow) == 0
    assert person.back(where).status_code == 200


def test_a_planted_session_is_worth_nothing(bench: StudyBench, app, provider: LocalProvider) -> None:
    identity_of(bench, bench.FAN, "6482a1", provider)
    person = Person(app, bench)
    person.client.cookies.set(COOKIE, "planted")
    person.sign_in()
    first = person.client.cookies[COOKIE]
    person.sign_in()
    assert len({"planted", first, person.client.cookies[COOKIE]}) == 3


def test_a_sign_in_is_too_old_after_ten_minutes(bench: StudyBench, app, provider: LocalProvider) -> None:
    identity_of(bench, bench.FAN, "6482a1", provider)
    person = Person(app, bench)
    where = person.at_provider(person.client.get(BEGIN))
    bench.clock.wait(601)
    assert person.back(where).status_code == 400
    assert count(bench, AttemptRow) == 0
    Person(app, bench).client.get(BEGIN)
    bench.clock.wait(601)
    Person(app, bench).client.get(BEGIN)
    assert count(bench, AttemptRow) == 1  # old ones go when another begins


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("denied", "You did not agree"),
        ("error", "an error without a known name"),
        ("iss", "another provider"),
        ("token failing", "status 500"),
        ("token redirect", "status 307"),
        ("token big", "longer than 65536 bytes"),
        ("token deep", "no JSON object"),
        ("token list", "no JSON object"),
        ("token drip", "did not answer within 0.2 s"),
        ("no token", "no ID token"),
        ("no signature", "refused"),
        ("shared secret", "refused"),
        ("forged", "refused"),
        ("changed", "refused"),
    ],
)
def test_what_the_provider_does_wrong_is_named(
    bench: StudyBench, app, provider: LocalProvider, *, impatient: Callable[[str], None], wrong: str, said: str
) -> None:
    identity_of(bench, bench.FAN, "6482a1", provider)
    person = Person(app, bench)
    begun = person.client.get(BEGIN)
    provider.wrong = wrong
    impatient(wrong)
    answer = person.back(person.at_provider(begun))
    assert answer.status_code == (403 if wrong == "denied" else 502)
    assert said in answer.text
    assert "<script>" not in answer.text.replace("<script src", "")
    assert "/elsewhere" not in provider.asked
    assert count(bench, SessionRow) == 0


def test_a_provider_may_change_its_keys(bench: StudyBench, app, provider: LocalProvider) -> None:
    identity_of(bench, bench.FAN, "6482a1", provider)
    assert Person(app, bench).sign_in().status_code == 200
    old = provider.key
    try:
        provider.key = Key("second")
        provider.published = [old, provider.key]
        assert Person(app, bench).sign_in().status_code == 200
        assert provider.asked.count("/oauth/jwks") == 2
        provider.key = Key("third")  # which it tells of nobody
        assert Person(app, bench).sign_in().status_code == 502
    finally:
        provider.key, provider.published = old, [old]
    assert count(bench, SessionRow) == 2


@pytest.mark.parametrize(
    ("claims", "said"),
    [
        ({"nonce": "another"}, "another sign-in"),
        ({"nonce": None}, "nonce"),
        ({"iss": "https://evil.example"}, "iss"),
        ({"aud": "another-client"}, "aud"),
        ({"aud": [CLIENT, "another-client"]}, "azp"),
        ({"aud": [CLIENT, "another-client"], "azp": "another-client"}, "azp"),
        ({"exp": 1_700_000_000}, "expired"),
        ({"exp": []}, "refused"),
        ({"exp": None}, "exp"),
        ({"iat": 4_000_000_000}, "issued in the future"),
        ({"sub": None}, "sub"),
        ({"sub": ""}, "1 to 255"),
        ({"sub": "x" * 256}, "1 to 255"),
        ({"sub": 7}, "sub"),
    ],
)
def test_an_id_token_that_breaks_a_rule_is_refused(
    bench: StudyBench, app, provider: LocalProvider, claims: dict, said: str
) -> None:
    identity_of(bench, bench.FAN, "6482a1", provider)
    provider.claims = claims
    answer = Person(app, bench).sign_in()
    assert answer.status_code == 502
    assert said.lower() in answer.text.lower()
    assert count(bench, SessionRow) == 0


def test_an_id_token_for_several_names_us_as_the_one_it_was_made_for(bench: StudyBench, app, provider) -> None:
    identity_of(bench, bench.FAN, "6482a1", provider)
    provider.claims = {"aud": [CLIENT, "another-client"], "azp": CLIENT}
    assert Person(app, bench).sign_in().status_code == 200


def test_fields_of_a_header_that_nobody_knows_are_ignored_but_for_critical_ones(
    bench: StudyBench, app, provider: LocalProvider
) -> None:
    """As RFC 7515 has it, in section 4 and section 4.1.11."""
    identity_of(bench, bench.FAN, "6482a1", provider)
    provider.header = {"x-note": "of tomorrow"}
    assert Person(app, bench).sign_in().status_code == 200
    assert count(bench, SessionRow) == 1
    provider.header |= {"crit": ["x-note"]}
    assert Person(app, bench).sign_in().status_code == 502
    provider.header, provider.wrong = {"x-note": "of tomorrow"}, "changed"
    assert Person(app, bench).sign_in().status_code == 502
    assert count(bench, SessionRow) == 1


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("issuer", "OPENID_PROVIDER_URL must be its name"),
        ("plain endpoint", "must begin with https://"),
        ("no endpoint", "must be an address"),
        ("failing", "status 500"),
        ("redirect", "status 307"),
        ("big", "longer than"),
        ("drip", "did not answer within 0.2 s"),
    ],
)
def test_a_provider_that_describes_itself_badly_is_not_gone_to(
    bench: StudyBench, app, provider: LocalProvider, *, impatient: Callable[[str], None], wrong: str, said: str
) -> None:
    provider.wrong = wrong
    impatient(wrong)
    person = Person(app, bench, bench.FAN)
    for answer in (person.client.get(BEGIN), person.link(), person.join()):
        assert answer.status_code == 502
        assert said in answer.text
        assert "location" not in answer.headers
    provider.wrong = ""
    impatient("")
    assert person.client.get(BEGIN).status_code == 303  # a failure is not remembered


def assert_refused_in_chinese(answer, said: str = "") -> None:
    assert answer.status_code in {400, 401, 403, 502}
    assert 'role="alert"' in answer.text
    assert foreign(answer.text, "zh") == []
    assert catalogue()["refused.any"][0] not in answer.text
    assert said in answer.text


def test_whatever_ends_a_sign_in_is_said_in_chinese(bench: StudyBench, app, provider: LocalProvider) -> None:
    def person(who: int = 0) -> Person:
        return Person(app, bench, who, "zh")

    assert_refused_in_chinese(person().sign_in(), "没有人用这个账户参加")
    assert_refused_in_chinese(person().client.get(f"{CALLBACK}?code=x&state=x"), ADDRESS)
    identity_of(bench, bench.FAN, "6482a1", provider)
    joining, linking = person(), person(bench.OTHER_FAN)
    assert_refused_in_chinese(joining.back(joining.at_provider(joining.join())), "已经参加")
    assert_refused_in_chinese(joining.join(name=" "), "80")
    assert_refused_in_chinese(linking.back(linking.at_provider(linking.link())), "其他参与者")
    assert_refused_in_chinese(linking.client.post("/account/unlink", data={"csrf": linking.csrf}), "没有关联")
    for claims, said in ({"nonce": "another"}, "nonce"), ({"exp": 1_700_000_000}, "ExpiredTokenError"):
        provider.claims = claims
        assert_refused_in_chinese(person().sign_in(), said)
    provider.claims = {}
    for wrong in ("denied", "error", "iss", "token failing", "token redirect", "token big", "token list", "no token"):
        trying = person()
        begun = trying.client.get(BEGIN)
        provider.wrong = wrong
        assert_refused_in_chinese(trying.back(trying.at_provider(begun)))
        provider.wrong = ""


@pytest.mark.parametrize("wrong", ["issuer", "plain endpoint", "no endpoint", "failing", "redirect", "big", "drip"])
def test_what_a_provider_says_badly_of_itself_is_said_in_chinese(
    bench: StudyBench, app, provider: LocalProvider, impatient: Callable[[str], None], wrong: str
) -> None:
    provider.wrong = wrong
    impatient(wrong)
    assert_refused_in_chinese(Person(app, bench, language="zh").client.get(BEGIN))


def test_a_provider_that_is_away_stops_nobody_with_a_password(bench: StudyBench, tmp_path) -> None:
    away = Provider(CLIENT, SECRET, address=ADDRESS, url="http://127.0.0.1:9")
    token = accounts.invite(bench.service, bench.ADMIN, "amateur")
    accounts.accept(bench.service, token, "林", PASSWORD, consents=True)
    client = testclient.TestClient(build_app(bench.service, tmp_path, provider=away), follow_redirects=False)
    assert client.get(BEGIN).status_code == 502
    assert client.post("/sign-in", data={"name": "林", "password": PASSWORD}).status_code == 303


def test_nobody_is_led_elsewhere(bench: StudyBench, app, provider: LocalProvider) -> None:
    identity_of(bench, bench.FAN, "6482a1", provider)
    person = Person(app, bench)
    more = "next=https://evil.example&redirect_uri=https://evil.example&language=en"
    begun = person.client.get(f"{BEGIN}?{more}")
    assert "evil" not in begun.headers["location"]
    back = person.back(f"{person.at_provider(begun)}&{more}")
    assert onward(back) == "/"
    assert "evil" not in back.text


@pytest.mark.slow
def test_beginning_is_slowed_down(app, bench: StudyBench, provider: LocalProvider) -> None:
    client = Person(app, bench).client
    assert {client.get(BEGIN).status_code for _ in range(61)} == {303}
    assert client.get(BEGIN).status_code == 429
    assert client.get(CALLBACK).status_code == 400  # which sends nothing to the provider


# --- whose account it is


def test_who_is_unknown_is_told_to_ask_for_an_invitation(bench: StudyBench, app, provider: LocalProvider) -> None:
    answer = Person(app, bench).sign_in()
    assert answer.status_code == 403
    assert "ask the administrator for an invitation" in answer.text
    assert count(bench, PersonRow) == len(bench.PEOPLE)
    # a name is no identity, even if it is that of an account
    provider.claims = {"preferred_username": "amateur7", "name": "amateur7"}
    assert Person(app, bench).sign_in().status_code == 403


def test_who_has_withdrawn_is_refused(bench: StudyBench, app, provider: LocalProvider) -> None:
    identity_of(bench, bench.FAN, "6482a1", provider)
    managing.withdraw(bench.service, bench.FAN, bench.FAN)
    answer = Person(app, bench).sign_in()
    assert answer.status_code == 403
    assert "has withdrawn" in answer.text
    person = Person(app, bench)
    assert person.back(person.at_provider(person.join())).status_code == 400  # nor by another invitation
    assert count(bench, SessionRow) == 0


def test_wrong_passwords_keep_nobody_from_signing_in_by_a_provider(
    bench: StudyBench, app, provider: LocalProvider
) -> None:
    token = accounts.invite(bench.service, bench.ADMIN, "amateur")
    identity_of(bench, accounts.accept(bench.service, token, "林", PASSWORD, consents=True), "6482a1", provider)
    person = Person(app, bench)
    wrong = [person.client.post("/sign-in", data={"name": "林", "password": "x"}).status_code for _ in range(10)]
    assert set(wrong) == {401, 429}
    assert person.sign_in().status_code == 200


@pytest.mark.usefixtures("patient")
def test_joining_needs_what_joining_by_password_needs(bench: StudyBench, app, provider: LocalProvider) -> None:
    person = Person(app, bench)
    token = accounts.invite(bench.service, bench.ADMIN, "amateur")
    for path, fields, said in (
        (token, {"name": "林"}, "without consent"),
        (token, {"name": " ", "consents": "on"}, "1 to 80"),
        (token, {"name": "amateur7", "consents": "on"}, "taken"),
        ("none", {"name": "林", "consents": "on"}, "not valid any more"),
    ):
        answer = person.client.post(f"/invitation/{path}/hugging-face", data=fields)
        assert answer.status_code == 400
        assert said in answer.text
        assert fields["name"] in answer.text
    assert count(bench, AttemptRow) == 0
    begun = person.join()
    bench.clock.wait(days=15)
    assert person.back(person.at_provider(begun)).status_code == 400


def test_an_invitation_is_used_once_whichever_way(bench: StudyBench, app, provider: LocalProvider) -> None:
    token = accounts.invite(bench.service, bench.ADMIN, "inspector")
    fields = {"name": "林", "consents": "on"}
    person = Person(app, bench)
    begun = person.client.post(f"/invitation/{token}/hugging-face", data=fields)
    accounts.accept(bench.service, token, "王", PASSWORD, consents=True)
    answer = person.back(person.at_provider(begun))
    assert answer.status_code == 400
    assert "not valid any more" in answer.text
    assert count(bench, IdentityRow) == 0
    assert person.client.post(f"/invitation/{token}/hugging-face", data=fields).status_code == 400


def test_who_joins_reads_on_in_their_language(bench: StudyBench, app, provider: LocalProvider) -> None:
    person = Person(app, bench)  # whose browser reads English
    assert person.back(person.at_provider(person.join())).status_code == 200
    with bench.store.reading() as session:
        assert session.scalars(select(PersonRow.language).where(PersonRow.name == "林")).one() == "en"
    elsewhere = Person(app, bench)
    elsewhere.client.cookies.clear()
    assert elsewhere.back(elsewhere.at_provider(elsewhere.client.get(BEGIN))).status_code == 200
    assert elsewhere.client.cookies[LANGUAGE_COOKIE] == "en"


def test_an_identity_joins_once(bench: StudyBench, app, provider: LocalProvider) -> None:
    identity_of(bench, bench.FAN, "6482a1", provider)
    person = Person(app, bench)
    answer = person.back(person.at_provider(person.join("administrator")))
    assert answer.status_code == 400
    assert "takes part in the study already" in answer.text
    with bench.store.reading() as session:
        assert session.scalars(select(InviteRow)).one().used_by is None


def test_an_account_is_linked_and_unlinked(bench: StudyBench, app, provider: LocalProvider) -> None:
    token = accounts.invite(bench.service, bench.ADMIN, "amateur")
    who = accounts.accept(bench.service, token, "林", PASSWORD, consents=True)
    person = Person(app, bench, who)
    assert 'action="/account/link"' in person.client.get("/account").text
    kept = person.client.cookies[COOKIE]
    assert onward(person.back(person.at_provider(person.link()))) == "/account"
    assert person.client.cookies[COOKIE] == kept
    assert 'action="/account/unlink"' in person.client.get("/account").text
    assert onward(Person(app, bench).sign_in()) == "/"
    # the same again changes nothing, another one is refused
    assert person.back(person.at_provider(person.link())).status_code == 200
    provider.subject = "another"
    second = person.back(person.at_provider(person.link()))
    assert (second.status_code, "unlink it first" in second.text) == (400, True)
    assert person.client.post("/account/unlink", data={"csrf": person.csrf}).headers["location"] == "/sign-in"
    assert count(bench, SessionRow) == 0  # those that the link opened end too
    provider.subject = "6482a1"
    assert Person(app, bench).sign_in().status_code == 403
    assert accounts.sign_in(bench.service, "林", PASSWORD)
    assert [(row.action, row.person, row.detail) for name in ("link", "unlink") for row in logged(bench, name)] == [
        ("link", who, {"provider": provider.url}), ("unlink", who, {"provider": provider.url}),
    ]  # fmt: skip


def test_what_belongs_to_another_is_not_linked(bench: StudyBench, app, provider: LocalProvider) -> None:
    identity_of(bench, bench.FAN, "6482a1", provider)
    person = Person(app, bench, bench.OTHER_FAN)
    answer = person.back(person.at_provider(person.link()))
    assert answer.status_code == 400
    assert "belongs to somebody else" in answer.text
    assert logged(bench, "link") == []


def test_who_signed_out_meanwhile_is_not_linked(bench: StudyBench, app, provider: LocalProvider) -> None:
    """Else whoever signs in to the provider next at a shared machine were let in to the account for ever."""
    person = Person(app, bench, bench.FAN)
    where = person.at_provider(person.link())
    person.client.post("/sign-out", data={"csrf": person.csrf})
    answer = person.back(where)
    assert answer.status_code == 403
    assert "signed out" in answer.text
    idle = Person(app, bench, bench.FAN)
    bench.clock.wait(hours=11, minutes=55)
    where = idle.at_provider(idle.link())
    bench.clock.wait(minutes=6)
    assert idle.back(where).status_code == 403
    withdrawn = Person(app, bench, bench.OTHER_FAN)
    where = withdrawn.at_provider(withdrawn.link())
    managing.withdraw(bench.service, bench.OTHER_FAN, bench.OTHER_FAN)
    assert withdrawn.back(where).status_code == 403
    assert count(bench, IdentityRow) == 0


def test_the_only_way_in_is_not_taken_away(bench: StudyBench, app, provider: LocalProvider) -> None:
    person = Person(app, bench)
    person.back(person.at_provider(person.join()))
    page = person.client.get("/account").text
    assert "/account/unlink" not in page
    csrf = re.search(r'name="csrf" value="([^"]+)"', page)[1]
    answer = person.client.post("/account/unlink", data={"csrf": csrf})
    assert (answer.status_code, "no password" in answer.text) == (400, True)
    nothing = Person(app, bench, bench.FAN)
    assert nothing.client.post("/account/unlink", data={"csrf": nothing.csrf}).status_code == 400


def test_linking_needs_the_form_of_the_account(bench: StudyBench, app, provider: LocalProvider) -> None:
    person = Person(app, bench, bench.FAN)
    for path in ("/account/link", "/account/unlink"):
        assert person.client.get(path).status_code == 405
        assert person.client.post(path, data={"csrf": "wrong"}).status_code == 403
        crossed = person.client.post(path, data={"csrf": person.csrf}, headers={"sec-fetch-site": "cross-site"})
        assert crossed.status_code == 403
        stranger = Person(app, bench).client.post(path)
        assert (stranger.status_code, stranger.headers["location"]) == (303, "/sign-in")


# --- how it is set up


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"address": "http://study.example"}, "must begin with https://"),
        ({"address": "http://0.0.0.0:7860"}, "must begin with https://"),
        ({"address": "https://study.example/caimap"}, "must end with its host"),
        ({"address": "https://a@study.example"}, "must be an address"),
        ({"address": "study.example"}, "must be an address"),
        ({"address": "https://study.example:x"}, "must be an address"),
        ({"url": "http://huggingface.co"}, "address of the provider must begin with https://"),
        ({"url": "http://localhost.evil.example"}, "must begin with https://"),
        ({"scopes": "profile"}, "must hold openid"),
    ],
)
def test_what_is_set_up_unsafely_is_refused(changed: dict, said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        Provider(CLIENT, SECRET, **{"address": "https://study.example", **changed})


def test_the_variables_of_a_space_are_read() -> None:
    given = {"OAUTH_CLIENT_ID": CLIENT, "OAUTH_CLIENT_SECRET": SECRET}
    for missing in given:
        assert provider_of({name: value for name, value in given.items() if name != missing}, "anything") is None
    made = provider_of(given, "https://lab-caimap.hf.space")
    assert (made.url, made.scopes) == ("https://huggingface.co", "openid")
    assert made.redirect_uri == "https://lab-caimap.hf.space/sign-in/hugging-face/callback"
    assert SECRET not in repr(vars(made).keys()) + repr(made)
    space = {**given, "OAUTH_SCOPES": "openid profile", "OPENID_PROVIDER_URL": "https://hub.example"}
    assert provider_of(space, "https://x.example").scopes == "openid profile"


@pytest.mark.parametrize(
    ("options", "space", "address"),
    [
        ([], "", "http://127.0.0.1:7860"),
        (["--port", "80"], "lab-caimap.hf.space", "https://lab-caimap.hf.space"),
        ([], "lab-caimap.hf.space,study.example", "https://lab-caimap.hf.space"),
        (["--address", "https://study.example/"], "lab-caimap.hf.space", "https://study.example"),
    ],
)
def test_the_public_address_is_what_the_operator_says(
    tmp_path, monkeypatch: pytest.MonkeyPatch, options: list[str], space: str, address: str
) -> None:
    served: dict = {}
    monkeypatch.setattr("music_evals.caimap.web.app.serve", lambda *_, **given: served.update(given))
    for name, value in (("SPACE_HOST", space), ("OAUTH_CLIENT_ID", CLIENT), ("OAUTH_CLIENT_SECRET", SECRET)):
        monkeypatch.setenv(name, value)
    assert main(["caimap", "init", str(tmp_path)]) == 0
    assert main(["caimap", "serve", str(tmp_path), *options]) == 0
    assert served["provider"].redirect_uri == address + CALLBACK


def test_serving_says_what_is_missing_and_never_the_secret(tmp_path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    served: dict = {}
    monkeypatch.setattr("music_evals.caimap.web.app.serve", lambda *_, **given: served.update(given))
    assert main(["caimap", "init", str(tmp_path)]) == 0
    monkeypatch.setenv("OAUTH_CLIENT_ID", CLIENT)
    assert main(["caimap", "serve", str(tmp_path)]) == 0
    assert served["provider"] is None
    assert "OAUTH_CLIENT_SECRET" in capsys.readouterr().err
    monkeypatch.setenv("OAUTH_CLIENT_SECRET", SECRET)
    assert main(["caimap", "serve", str(tmp_path), "--host", "0.0.0.0"]) != 0  # noqa: S104  (nothing is served)
    said = capsys.readouterr().err
    assert "--address" in said
    assert SECRET not in said


def test_an_error_of_the_provider_is_one_of_ours() -> None:
    assert issubclass(ProviderError, OSError)


def test_the_second_migration_goes_up_and_down(tmp_path) -> None:
    check_migration(sqlite_url(tmp_path / "study.db"))


@pytest.mark.slow
def test_the_second_migration_and_a_sign_in_on_postgresql(postgres: str, provider: LocalProvider, tmp_path) -> None:
    check_migration(postgres)
    migrate(postgres, "base")
    bench = StudyBench(postgres, Settings(seed=1))
    try:
        known = Provider(CLIENT, SECRET, address=ADDRESS, url=provider.url)
        app = build_app(bench.service, tmp_path, provider=known)
        person = Person(app, bench)
        assert onward(person.back(person.at_provider(person.join()))) == "/"
        again = Person(app, bench)
        where = again.at_provider(again.client.get(BEGIN))
        secret = again.client.cookies[ATTEMPT_COOKIE]
        assert again.back(where).status_code == 200
        with pytest.raises(InvalidInputError, match="used already"):
            identities.take(bench.service, secret)
    finally:
        bench.store.close()
        migrate(postgres, "base")


def check_migration(url: str) -> None:
    """People who were there before stay, up and down."""
    migrate(url, "0001")
    store = Store(url)
    with store.writing() as session:
        session.add(PersonRow(name="林", role="amateur", created=START))
    migrate(url, "0002")
    with store.writing() as session:
        who = session.scalars(select(PersonRow.id)).one()
        session.add(IdentityRow(provider="p", subject="s", person=who))
        session.add(AttemptRow(secret_hash="h" * 64, purpose="sign_in", expires=START + dt.timedelta(hours=1)))
    store.close()
    migrate(url, "-1")
    with store.engine.connect() as connection:
        assert not {"identity", "attempt"} & set(tables_of(connection))
        assert connection.scalar(select(PersonRow.name)) == "林"
    store.close()
    migrate(url)


def tables_of(connection) -> list[str]:
    from sqlalchemy import inspect

    return inspect(connection).get_table_names()
