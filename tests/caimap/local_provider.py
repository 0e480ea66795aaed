"""An OpenID Connect provider on this machine, that behaves, and misbehaves as it is told.

It makes its tokens by hand, and checks what the platform sends by the text of the standards: RFC 6749, RFC 7636 and
OpenID Connect Core 1.0.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import functools
import hashlib
import hmac
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlencode

import uvicorn
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Route

CLIENT, SECRET = "study-client", "a secret: of the study/%"


def encoded(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def token_of(header: dict[str, Any], claims: dict[str, Any], sign: Callable[[bytes], bytes]) -> str:
    """A JSON Web Token by hand (RFC 7515, section 3.1)."""
    text = ".".join(encoded(json.dumps(part).encode()) for part in (header, claims))
    return f"{text}.{encoded(sign(text.encode()))}"


class Key:
    """A key of the provider: its public half as a JSON Web Key, and what it signs by RS256 (RFC 7518, section 3.3)."""

    def __init__(self, name: str) -> None:
        self.name, self.private = name, rsa.generate_private_key(65537, 2048)

    def public(self) -> dict[str, str]:
        numbers = self.private.public_key().public_numbers()
        n, e = (encoded(number.to_bytes((number.bit_length() + 7) // 8)) for number in (numbers.n, numbers.e))
        return {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": self.name, "n": n, "e": e}

    def pem(self) -> bytes:
        kinds = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        return self.private.public_key().public_bytes(*kinds)

    def sign(self, text: bytes) -> bytes:
        return self.private.sign(text, padding.PKCS1v15(), hashes.SHA256())


class LocalProvider:
    """What it does wrong stands in `wrong`, who signs in in `subject`, whether people must agree in `asks`."""

    SUBJECT = "6482a1"

    def __init__(self, host: str = "127.0.0.1") -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            self.port = taken.getsockname()[1]
        self.url = f"http://{host}:{self.port}"
        self.subject = self.SUBJECT
        self.wrong = ""
        self.asks = False
        self.key = Key("first")
        self.published = [self.key]
        """Of which keys it tells."""
        self.claims: dict[str, Any] = {}
        self.header: dict[str, Any] = {}
        """Of ID tokens, besides what stands in each."""
        self.codes: dict[str, dict[str, str]] = {}
        self.asked: list[str] = []
        """Paths that were asked for."""
        self.authorized: dict[str, str] = {}
        """What a browser brought last."""

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/.well-known/openid-configuration", self.describe),
                Route("/oauth/jwks", self.keys),
                Route("/oauth/authorize", self.authorize),
                Route("/oauth/token", self.token, methods=["POST"]),
                Route("/agreed", self.agreed),
                Route("/elsewhere", self.elsewhere, methods=["GET", "POST"]),
            ]
        )

    async def describe(self, request: Request) -> Response:
        self.asked.append(request.url.path)
        found = {
            "issuer": "https://evil.example" if self.wrong == "issuer" else self.url,
            "authorization_endpoint": f"{self.url}/oauth/authorize",
            "token_endpoint": f"{self.url}/oauth/token",
            "jwks_uri": f"{self.url}/oauth/jwks",
        }
        if self.wrong == "plain endpoint":
            found["token_endpoint"] = "http://provider.example/oauth/token"  # noqa: S105  (an address)
        if self.wrong == "no endpoint":
            del found["token_endpoint"]
        return self.badly() or JSONResponse(found)

    async def keys(self, request: Request) -> Response:
        self.asked.append(request.url.path)
        unreadable = {"kty": "of tomorrow", "kid": "new"}
        return JSONResponse({"keys": [unreadable, *(key.public() for key in self.published)]})

    async def authorize(self, request: Request) -> Response:
        asked = self.authorized = dict(request.query_params)
        assert asked["client_id"] == CLIENT
        assert asked["response_type"] == "code"
        assert "openid" in asked["scope"].split()
        assert asked["code_challenge_method"] == "S256"
        back = {"state": asked["state"]}
        if self.wrong == "denied":
            back |= {"error": "access_denied", "error_description": "<b>no</b>"}
        elif self.wrong == "error":
            back |= {"error": "<script>"}
        else:
            back["code"] = encoded(hashlib.sha256(str(time.time_ns()).encode()).digest())
            self.codes[back["code"]] = asked
        if self.wrong == "iss":
            back["iss"] = "https://evil.example"
        where = f"{asked['redirect_uri']}?{urlencode(back)}"
        if self.asks:  # from here on a browser is on the way from this site, not from that of the study
            link = f'<a href="/agreed?{urlencode({"to": where})}">Agree</a>'
            return HTMLResponse(f'<link rel="icon" href="data:,"><title>Agree?</title>{link}')
        return RedirectResponse(where, 302)

    async def agreed(self, request: Request) -> Response:
        return RedirectResponse(request.query_params["to"], 302)

    async def token(self, request: Request) -> Response:
        self.asked.append(request.url.path)
        if self.wrong.startswith("token "):
            return self.badly(self.wrong.removeprefix("token ")) or Response(status_code=500)
        form = dict(await request.form())
        # RFC 6749, section 2.3.1: user and password are form-encoded before they are put together
        kind, _, text = request.headers["authorization"].partition(" ")
        client = base64.b64decode(text).decode()
        if (kind, client) != ("Basic", f"{CLIENT}:a%20secret%3A%20of%20the%20study%2F%25"):
            return JSONResponse({"error": "invalid_client"}, 401)
        asked = self.codes.pop(str(form.get("code")), None)
        if asked is None or form.get("grant_type") != "authorization_code":
            return JSONResponse({"error": "invalid_grant"}, 400)
        challenge = encoded(hashlib.sha256(str(form["code_verifier"]).encode()).digest())
        if challenge != asked["code_challenge"] or form["redirect_uri"] != asked["redirect_uri"]:
            return JSONResponse({"error": "invalid_grant"}, 400)
        now = int(time.time())
        claims = {"iss": self.url, "aud": CLIENT, "sub": self.subject, "iat": now, "exp": now + 300}
        claims |= {"nonce": asked["nonce"], "preferred_username": "lin", **self.claims}
        given = {"access_token": "t", "token_type": "Bearer"}
        if self.wrong != "no token":
            given["id_token"] = self.id_token({name: value for name, value in claims.items() if value is not None})
        return JSONResponse(given)

    def id_token(self, claims: dict[str, Any]) -> str:
        header = {"alg": "RS256", "typ": "JWT", "kid": self.key.name, **self.header}
        if self.wrong == "no signature":
            return token_of({**header, "alg": "none"}, claims, lambda _: b"")
        if self.wrong == "shared secret":  # the public key taken for one
            sign = functools.partial(hmac.digest, self.key.pem(), digest="sha256")
            return token_of({**header, "alg": "HS256"}, claims, sign)
        if self.wrong == "forged":
            return token_of(header, claims, Key("first").sign)
        if self.wrong == "changed":
            head, _, signature = token_of(header, claims, self.key.sign).split(".")
            return ".".join([head, encoded(json.dumps({**claims, "sub": "somebody"}).encode()), signature])
        return token_of(header, claims, self.key.sign)

    async def elsewhere(self, request: Request) -> Response:
        self.asked.append(request.url.path)
        return JSONResponse({})

    def badly(self, how: str = "") -> Response | None:
        how = how or self.wrong
        if how == "redirect":
            return RedirectResponse(f"{self.url}/elsewhere", 307)
        if how == "drip":
            return StreamingResponse(self.drip(), media_type="application/json")
        if how == "big":
            return PlainTextResponse("[" + "1," * 50_000 + "1]")
        if how == "deep":
            return PlainTextResponse("[" * 60_000)
        if how == "list":
            return JSONResponse([])
        if how == "failing":
            return PlainTextResponse("<html>", 500)
        return None

    async def drip(self) -> Any:
        for _ in range(60):
            yield b" "
            await asyncio.sleep(0.1)


@contextlib.contextmanager
def running(provider: LocalProvider) -> Iterator[LocalProvider]:
    """Serve it in a thread, until the block is left."""
    settings = uvicorn.Config(provider.app(), host="127.0.0.1", port=provider.port, log_level="error", lifespan="off")
    server = uvicorn.Server(settings)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    end = time.monotonic() + 30
    while not server.started and time.monotonic() < end:
        time.sleep(0.01)
    assert server.started
    try:
        yield provider
    finally:
        server.should_exit = True
        server.force_exit = True
        thread.join(30)
