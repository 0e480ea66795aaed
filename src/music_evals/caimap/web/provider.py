"""Requests to Hugging Face, or to another OpenID Connect provider, to learn who somebody is.

Authorisation code with PKCE (RFC 7636), by the provider's own description of itself (OpenID Connect Discovery 1.0).
The subject comes from the ID token. Its claims are checked by PyJWT; its signature is not, and needs not be: the token
comes straight from the token endpoint over TLS, which shows who made it (OpenID Connect Core 1.0, section 3.1.3.7,
step 6). Nothing that a browser brings is ever read as a token.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import ipaddress
import json
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from music_evals.errors import InvalidInputError, MusicEvalsError, importing

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CALLBACK", "AddressError", "Keys", "Provider", "ProviderError", "keys_of", "provider_of"]

CALLBACK: Final = "/sign-in/hugging-face/callback"
"""Path to which the provider sends people back."""

HUGGING_FACE: Final = "https://huggingface.co"

TIMEOUT_SEC: Final = 10.0
"""For one answer of the provider, from the connection to its last byte."""

MAX_ANSWER: Final = 65_536
"""Bytes of one answer of the provider."""

_KNOWN_SEC: Final = 3600.0  # for so long its configuration is not requested again
_LEEWAY_SEC: Final = 60  # between its clock and ours
_MAX_SUBJECT: Final = 255  # characters, OpenID Connect Core 1.0, section 2
_MAX_SHOWN: Final = 60


class ProviderError(MusicEvalsError, OSError):
    """The provider of identities did not answer, or not as the protocol has it."""


class AddressError(InvalidInputError):
    """The public address of the study is invalid: no provider may send people back there."""


class Keys(NamedTuple):
    """The values of one sign-in that nobody else can know; each goes another way.

    Attributes
    ----------
    state
        Comes back with the browser.
    nonce
        Comes back in the ID token.
    verifier
        Goes to the token endpoint; the browser carries its hash alone.

    """

    state: str
    nonce: str
    verifier: str


def keys_of(secret: str) -> Keys:
    """Derive the keys of a sign-in from the secret that its browser keeps, so that they are stored nowhere."""
    return Keys(*(_text(hmac.digest(secret.encode(), name.encode(), "sha256")) for name in Keys._fields))


def _text(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


class _Endpoints(NamedTuple):
    """Addresses of the provider."""

    authorization: str
    token: str


class Provider:
    """A provider of identities that a study lets people sign in by.

    Parameters
    ----------
    client_id, client_secret
        What the provider knows the study by.
    address
        Public address of the study, ``"https://..."``; people are sent back there, whatever their browser says.
    url
        Of the provider; it must call itself exactly so.
    scopes
        Requested of the provider; ``"openid"`` suffices.

    Raises
    ------
    AddressError
        The address of the study is without TLS and not of this machine, or has a path.
    InvalidInputError
        The same of the provider, or scopes without ``openid``.

    """

    def __init__(
        self, client_id: str, client_secret: str, *, address: str, url: str = HUGGING_FACE, scopes: str = "openid"
    ) -> None:
        problem = _problem(address)
        if not problem and (urlsplit(address).path.strip("/") or "?" in address):
            problem = "must end with its host, as in https://study.example"
        if problem:
            raise AddressError(f"the address of the study {problem}, got {address!r}")
        problem = _problem(url)
        if problem:
            raise InvalidInputError(f"the address of the provider {problem}, got {url!r}")
        if "openid" not in scopes.split():
            raise InvalidInputError(f"the scopes must hold openid, got {scopes!r}")
        self.client_id, self._client_secret = client_id, client_secret
        self.address, self.url, self.scopes = address.rstrip("/"), url, scopes
        self._known: tuple[float, _Endpoints] | None = None

    @property
    def redirect_uri(self) -> str:
        """Address to which the provider sends people back."""
        return self.address + CALLBACK

    async def authorization_url(self, keys: Keys) -> str:
        """Return where a browser goes to sign in.

        Raises
        ------
        ProviderError
            The provider's configuration cannot be read.

        """
        endpoint = (await self._endpoints()).authorization
        parameters = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": self.redirect_uri,
            "scope": self.scopes,
            "state": keys.state,
            "nonce": keys.nonce,
            "code_challenge": _text(hashlib.sha256(keys.verifier.encode()).digest()),
            "code_challenge_method": "S256",
        }
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(parameters)}"

    async def subject(self, code: str, keys: Keys) -> str:
        """Exchange the code that a browser brought back, and return who it stands for.

        Raises
        ------
        ProviderError
            The code is not taken, or the ID token breaks a rule.

        """
        parameters = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self.redirect_uri,
            "client_id": self.client_id,
            "code_verifier": keys.verifier,
        }
        # RFC 6749, section 2.3.1: both are form-encoded first
        client = quote(self.client_id, safe=""), quote(self._client_secret, safe="")
        token_response = await _request_json("POST", (await self._endpoints()).token, data=parameters, auth=client)
        return self._subject(token_response.get("id_token"), keys.nonce)

    def _subject(self, token: Any, nonce: str) -> str:
        """Check the claims of an ID token (OpenID Connect Core 1.0, section 3.1.3.7), and return its subject."""
        with importing("caimap", "sign-in with Hugging Face"):
            import jwt
        if not isinstance(token, str):
            raise ProviderError("the provider sent no ID token; the scopes must hold openid", kind="no_token")
        try:
            claims = jwt.decode(
                token,
                options={
                    "verify_signature": False,  # TLS has shown who made it; all the rest is checked
                    "verify_iss": True,
                    "verify_sub": True,
                    "verify_aud": True,
                    "verify_exp": True,
                    "verify_nbf": True,
                    "verify_iat": True,
                    "require": ["iss", "sub", "aud", "exp", "iat", "nonce"],
                },
                audience=self.client_id,
                issuer=self.url,
                leeway=_LEEWAY_SEC,
            )
        except (jwt.PyJWTError, TypeError, ValueError, OverflowError, RecursionError) as error:
            raise ProviderError(
                f"the provider's ID token is refused ({error})",
                kind="token_refused",
                problem=error,
                name=type(error).__name__,
            ) from error
        if not hmac.compare_digest(str(claims["nonce"]).encode(), nonce.encode()):
            raise ProviderError("the provider's ID token is of another sign-in (nonce)", kind="token_of_another")
        if claims["aud"] not in (self.client_id, [self.client_id]) and claims.get("azp") != self.client_id:
            raise ProviderError("the provider's ID token was made for somebody else (azp)", kind="token_for_another")
        subject = str(claims["sub"])
        if not 1 <= len(subject) <= _MAX_SUBJECT:
            raise ProviderError(
                f"a subject has 1 to {_MAX_SUBJECT} characters, the provider's has {len(subject)}",
                kind="token_subject",
                most=_MAX_SUBJECT,
                found=len(subject),
            )
        return subject

    async def _endpoints(self) -> _Endpoints:
        if self._known is not None and time.monotonic() < self._known[0]:
            return self._known[1]
        configuration = await _request_json("GET", f"{self.url.rstrip('/')}/.well-known/openid-configuration")
        if configuration.get("issuer") != self.url:
            raise ProviderError(
                f"expected a provider that calls itself {self.url!r}, got {_shown(configuration.get('issuer'))}; "
                "OPENID_PROVIDER_URL must be its name, letter by letter",
                kind="provider_name",
                url=self.url,
                found=_shown(configuration.get("issuer")),
            )
        endpoints = _Endpoints(*(str(configuration.get(f"{name}_endpoint", "")) for name in _Endpoints._fields))
        for name, url in endpoints._asdict().items():
            problem = _problem(url)
            if problem:
                raise ProviderError(
                    f"the provider's {name} endpoint {problem}, got {_shown(url)}",
                    kind="provider_endpoint",
                    name=name,
                    problem=problem,
                    found=_shown(url),
                )
        self._known = time.monotonic() + _KNOWN_SEC, endpoints
        return endpoints


def provider_of(environment: Mapping[str, str], address: str) -> Provider | None:
    """Return the provider that the variables of a Space name; None where there is no client or no secret.

    Parameters
    ----------
    environment
        With ``OAUTH_CLIENT_ID`` and ``OAUTH_CLIENT_SECRET``; perhaps ``OPENID_PROVIDER_URL`` (Hugging Face where it is
        missing) and ``OAUTH_SCOPES``.
    address
        As of `Provider`.

    Raises
    ------
    AddressError, InvalidInputError
        As of `Provider`.

    """
    client, secret = environment.get("OAUTH_CLIENT_ID", ""), environment.get("OAUTH_CLIENT_SECRET", "")
    if not client or not secret:
        return None
    url = environment.get("OPENID_PROVIDER_URL") or HUGGING_FACE
    return Provider(client, secret, address=address, url=url, scopes=environment.get("OAUTH_SCOPES") or "openid")


def is_loopback(url: str) -> bool:
    """Tell whether an address is that of this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _problem(url: str) -> str:
    """Return what is wrong with an address; nothing where it may be used."""
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018  (it is read when it is asked for)
    except ValueError:
        return "must be an address"
    if not parts.hostname or parts.username is not None or parts.fragment or not url.isprintable() or " " in url:
        return "must be an address, without a name or a fragment in it"
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(url)):
        return "must begin with https://"
    return ""


def _shown(value: Any) -> str:
    return repr(value)[:_MAX_SHOWN]


async def _request_json(method: str, url: str, **content: Any) -> dict[str, Any]:
    """Send a request to the provider, and return the JSON object of its response."""
    with importing("caimap", "sign-in with Hugging Face"):
        import httpx2
    headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
    body = bytearray()
    try:
        async with (
            asyncio.timeout(TIMEOUT_SEC),  # the library's own time-outs begin anew with each byte
            # no proxy stands between us and ourselves
            httpx2.AsyncClient(timeout=TIMEOUT_SEC, follow_redirects=False, trust_env=not is_loopback(url)) as client,
            client.stream(method, url, headers=headers, **content) as response,
        ):
            async for piece in response.aiter_raw():
                body += piece
                if len(body) > MAX_ANSWER:
                    raise ProviderError(
                        f"the provider's answer is longer than {MAX_ANSWER} bytes",
                        kind="provider_long",
                        most=MAX_ANSWER,
                    )
            status = response.status_code
    except (TimeoutError, httpx2.TimeoutException) as error:
        raise ProviderError(
            f"the provider did not answer within {TIMEOUT_SEC:g} s; try again later",
            kind="provider_slow",
            most=f"{TIMEOUT_SEC:g}",
        ) from error
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise ProviderError(
            f"the provider cannot be reached ({type(error).__name__}); try again later",
            kind="provider_away",
            name=type(error).__name__,
        ) from error
    return _object(bytes(body), status)


def _object(body: bytes, status: int) -> dict[str, Any]:
    try:
        parsed = json.loads(body)
    except (ValueError, RecursionError):
        parsed = None
    if status != 200:
        error = parsed.get("error") if isinstance(parsed, dict) else None
        reported = f"{status} ({_shown(error)})" if error else str(status)
        raise ProviderError(f"the provider answered with status {reported}", kind="provider_status", found=reported)
    if not isinstance(parsed, dict):
        raise ProviderError("the provider's answer is not a JSON object", kind="provider_no_json")
    return parsed
