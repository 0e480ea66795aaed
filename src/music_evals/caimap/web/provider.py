"""Requests to Hugging Face, or to another OpenID Connect provider, to learn who somebody is.

Authorisation code with PKCE (RFC 7636), by the provider's own description of itself (OpenID Connect Discovery 1.0).
The subject comes from the ID token, whose signature is verified by the provider's published keys (joserfc) and whose
claims by Authlib. Answers are bounded in time and bytes.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import functools
import hmac
import json
import time
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlsplit

from music_evals.errors import InvalidInputError, MusicEvalsError, importing
from music_evals.remote import is_loopback

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
_ALGORITHMS: Final = (
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519", "EdDSA",
)  # fmt: skip
"""Of signatures: with a key that the provider alone has; never "none", never a shared secret."""


class ProviderError(MusicEvalsError, OSError):
    """The provider of identities did not answer, or not as the protocol has it."""


class AddressError(InvalidInputError):
    """The public address of the study is invalid: no provider may send people back there."""


class Keys(NamedTuple):
    """The values of one sign-in that nobody else can know; each goes another way."""

    state: str  # comes back with the browser
    nonce: str  # comes back in the ID token
    verifier: str  # goes to the token endpoint; the browser carries its hash alone


def keys_of(secret: str) -> Keys:
    """Derive the keys of a sign-in from the secret that its browser keeps, so that they are stored nowhere."""
    digests = (hmac.digest(secret.encode(), name.encode(), "sha256") for name in Keys._fields)
    return Keys(*(base64.urlsafe_b64encode(digest).rstrip(b"=").decode() for digest in digests))


class _Endpoints(NamedTuple):
    """Addresses of the provider, as its configuration names them."""

    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str


class Provider:
    """A provider of identities that a study lets people sign in by; it knows the study by a client id and its secret.

    People are sent back to the public address of the study, ``"https://..."``, whatever their browser says. The
    provider calls itself exactly by its URL, and its configuration names ``jwks_uri``. Of the scopes ``"openid"``
    suffices.

    Raises `AddressError` where the address of the study is without TLS and not of this machine, or has a path, and
    `InvalidInputError` for the same of the provider, or scopes without ``openid``.
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
        self._known: tuple[float, _Endpoints, dict[str, Any]] | None = None

    @property
    def redirect_uri(self) -> str:
        """Address to which the provider sends people back."""
        return self.address + CALLBACK

    async def authorization_url(self, keys: Keys) -> str:
        """Return where a browser goes to sign in; `ProviderError` where configuration or keys cannot be read."""
        with importing("caimap", "sign-in with Hugging Face"):
            from authlib.oauth2.rfc6749.parameters import prepare_grant_uri
            from authlib.oauth2.rfc7636 import create_s256_code_challenge
        endpoints, _ = await self._configuration()
        return str(
            prepare_grant_uri(
                endpoints.authorization_endpoint,
                self.client_id,
                "code",
                redirect_uri=self.redirect_uri,
                scope=self.scopes,
                state=keys.state,
                nonce=keys.nonce,
                code_challenge=create_s256_code_challenge(keys.verifier),
                code_challenge_method="S256",
            )
        )

    async def subject(self, code: str, keys: Keys) -> str:
        """Exchange the code that a browser brought back, and return who it stands for.

        Raises `ProviderError` where the code is not taken, or the ID token breaks a rule or is signed by no known key.
        """
        parameters = {
            "grant_type": "authorization_code", "code": code, "redirect_uri": self.redirect_uri,
            "client_id": self.client_id, "code_verifier": keys.verifier,
        }  # fmt: skip
        # RFC 6749, section 2.3.1: both are form-encoded first
        client = quote(self.client_id, safe=""), quote(self._client_secret, safe="")
        endpoints, known_keys = await self._configuration()
        token_response = await _request_json("POST", endpoints.token_endpoint, data=parameters, auth=client)
        token = token_response.get("id_token")
        if not isinstance(token, str):
            raise ProviderError("the provider sent no ID token; the scopes must hold openid", kind="no_token")
        try:
            return self._subject(_verified(token, known_keys), keys.nonce)
        except _SignatureError:  # its keys may have changed since they were read
            _, known_keys = await self._configuration(anew=True)
            return self._subject(_verified(token, known_keys), keys.nonce)

    def _subject(self, token: Any, nonce: str) -> str:
        """Check the claims of a verified ID token (OpenID Connect Core 1.0, section 3.1.3.7); return its subject."""
        from authlib.oidc.core import CodeIDToken
        from joserfc.errors import JoseError

        options: dict[str, Any] = {
            "iss": {"essential": True, "value": self.url},
            "aud": {"essential": True, "value": self.client_id},
        }
        try:
            claims = CodeIDToken(token.claims, token.header, options, {"nonce": nonce, "client_id": self.client_id})
            claims.validate(leeway=_LEEWAY_SEC)
        except (JoseError, TypeError, ValueError, OverflowError, RecursionError) as error:
            claim = getattr(error, "claim", "")
            if claim == "nonce":
                message = "the provider's ID token is of another sign-in (nonce)"
                raise ProviderError(message, kind="token_of_another") from error
            if claim == "azp":
                message = "the provider's ID token was made for somebody else (azp)"
                raise ProviderError(message, kind="token_for_another") from error
            raise ProviderError(
                f"the provider's ID token is refused ({error})",
                kind="token_refused",
                problem=str(error),
                name=type(error).__name__,
            ) from error
        subject = claims["sub"]
        if not isinstance(subject, str) or not 1 <= len(subject) <= _MAX_SUBJECT:
            raise ProviderError(
                f"a subject is a text of 1 to {_MAX_SUBJECT} characters, the provider's is {_shown(subject)}",
                kind="token_subject",
                most=_MAX_SUBJECT,
                found=len(str(subject)),
            )
        return subject

    async def _configuration(self, *, anew: bool = False) -> tuple[_Endpoints, dict[str, Any]]:
        """Return the endpoints and the keys of the provider, known for an hour."""
        if not anew and self._known is not None and time.monotonic() < self._known[0]:
            return self._known[1], self._known[2]
        configuration = await _request_json("GET", f"{self.url.rstrip('/')}/.well-known/openid-configuration")
        if configuration.get("issuer") != self.url:
            raise ProviderError(
                f"expected a provider that calls itself {self.url!r}, got {_shown(configuration.get('issuer'))}; "
                "OPENID_PROVIDER_URL must be its name, letter by letter",
                kind="provider_name",
                url=self.url,
                found=_shown(configuration.get("issuer")),
            )
        endpoints = _Endpoints(*(str(configuration.get(name, "")) for name in _Endpoints._fields))
        for name, url in endpoints._asdict().items():
            problem = _problem(url)
            if problem:
                raise ProviderError(
                    f"the provider's {name} {problem}, got {_shown(url)}",
                    kind="provider_endpoint",
                    name=name.partition("_")[0],
                    problem=problem,
                    found=_shown(url),
                )
        keys = await _request_json("GET", endpoints.jwks_uri)
        self._known = time.monotonic() + _KNOWN_SEC, endpoints, keys
        return endpoints, keys


class _SignatureError(ProviderError):
    """No known key of the provider made the signature of a token."""


def _verified(token: str, known_keys: Mapping[str, Any]) -> Any:
    """Verify the signature of a token by the keys of a provider; those that cannot be read are passed over."""
    with importing("caimap", "sign-in with Hugging Face"):
        from joserfc import jwt
        from joserfc.errors import JoseError
        from joserfc.jwk import JWKRegistry, KeySet
        from joserfc.jws import JWSRegistry

    usable, rows = [], known_keys.get("keys")
    for key in rows if isinstance(rows, list) else ():
        with contextlib.suppress(JoseError, TypeError, ValueError, KeyError):
            usable.append(JWKRegistry.import_key(key))
    try:
        # header parameters that nobody knows are ignored, but those that are critical (RFC 7515, section 4)
        registry = JWSRegistry(algorithms=_ALGORITHMS, strict_check_header=False)
        return jwt.decode(token, KeySet(usable), registry=registry)
    except (JoseError, TypeError, ValueError, KeyError, OverflowError, RecursionError) as error:
        raise _SignatureError(
            f"the provider's ID token is refused ({error})",
            kind="token_refused",
            problem=str(error),
            name=type(error).__name__,
        ) from error


def provider_of(environment: Mapping[str, str], address: str) -> Provider | None:
    """Return the provider that the variables of a Space name; None where there is no client or no secret."""
    client, secret = environment.get("OAUTH_CLIENT_ID", ""), environment.get("OAUTH_CLIENT_SECRET", "")
    if not client or not secret:
        return None
    url = environment.get("OPENID_PROVIDER_URL") or HUGGING_FACE
    return Provider(client, secret, address=address, url=url, scopes=environment.get("OAUTH_SCOPES") or "openid")


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


@functools.cache
def _certificates(*, trust_env: bool) -> Any:
    """Read the certificates that are trusted once: that takes longer than a request, and everybody waits."""
    import httpx2

    return httpx2.create_ssl_context(trust_env=trust_env)


async def _request_json(method: str, url: str, **content: Any) -> dict[str, Any]:
    """Send a request to the provider, and return the JSON object of its response."""
    with importing("caimap", "sign-in with Hugging Face"):
        import httpx2
    headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
    body, trust_env = bytearray(), not is_loopback(url)  # no proxy stands between us and ourselves
    certificates = _certificates(trust_env=trust_env)
    try:
        async with (
            asyncio.timeout(TIMEOUT_SEC),  # the library's own time-outs begin anew with each byte
            httpx2.AsyncClient(
                verify=certificates, timeout=TIMEOUT_SEC, trust_env=trust_env, follow_redirects=False
            ) as client,
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
    try:
        parsed = json.loads(body)
    except (ValueError, RecursionError):
        parsed = None
    if status != 200:
        reason = parsed.get("error") if isinstance(parsed, dict) else None
        reported = f"{status} ({_shown(reason)})" if reason else str(status)
        raise ProviderError(f"the provider answered with status {reported}", kind="provider_status", found=reported)
    if not isinstance(parsed, dict):
        raise ProviderError("the provider's answer is not a JSON object", kind="provider_no_json")
    return parsed
