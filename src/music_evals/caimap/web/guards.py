"""Guards of the pages: limits of attempts, trusted proxies, checks of numbers and texts, headers of all responses."""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Any, Final

from fastapi import Request
from fastapi.responses import PlainTextResponse

from music_evals.caimap.web.words import language_of, translator
from music_evals.errors import InvalidInputError

MAX_DIGITS: Final = 9
"""Of a whole number in an address or a form: what every database keeps as one."""


LONGEST_WAIT_SEC: Final = 900.0

FORGOTTEN_SEC: Final = 3600.0
"""After the last attempt of a key, when it counts from the beginning."""

MOST_KEYS: Final = 10_000
"""That are kept in memory; of more, the oldest are forgotten."""


class Waits:
    """Counts attempts by a key, and after each lets the next one wait twice as long: 1 s, 2 s, 4 s."""

    def __init__(self, free: int) -> None:
        self.free = free
        self.attempts: dict[str, tuple[int, float]] = {}

    def left_sec(self, key: str) -> float:
        """Return for how many seconds no attempt is taken; 0 where one is."""
        count, since = self._of(key)
        over = min(count - self.free, 20)
        return max(0.0, since + min(2.0 ** (over - 1), LONGEST_WAIT_SEC) - monotonic()) if over > 0 else 0.0

    def count(self, key: str) -> None:
        """Count an attempt when it begins: many at once are many."""
        count, _ = self._of(key)
        self.attempts.pop(key, None)
        self.attempts[key] = count + 1, monotonic()  # at the end, as the latest
        if len(self.attempts) > MOST_KEYS:
            del self.attempts[next(iter(self.attempts))]

    def take_back(self, key: str) -> None:
        """Count one less, since it succeeded."""
        count, since = self._of(key)
        self.attempts[key] = max(0, count - 1), since

    def _of(self, key: str) -> tuple[int, float]:
        count, since = self.attempts.get(key, (0, 0.0))
        return (count, since) if monotonic() < since + FORGOTTEN_SEC else (0, 0.0)


class Attempts:
    """Delays those who guess: by account at an address, and by address over all accounts.

    Failures at other addresses never count, so that nobody locks others out. Where an account was signed in to before,
    those of others at its address do not count either: many share one, behind a proxy that is not trusted.
    """

    def __init__(self) -> None:
        self.of_address, self.of_account, self.limited = Waits(free=50), Waits(free=1), Waits(free=60)
        self.known: dict[str, None] = {}

    def begin(self, address: str, account: str, *, limited: bool = False) -> int:
        """Count an attempt and return 0, or the seconds until it may begin; of a limited page there is no account."""
        network, pair = _keys(address, account)
        counted = [(self.limited, network)] if limited else self._counted(network, pair, account)
        left = max(waits.left_sec(key) for waits, key in counted)
        for waits, key in counted if not left else ():
            waits.count(key)
        return math.ceil(left)

    def forgive(self, address: str, account: str, *, is_owner: bool) -> None:
        """Take an attempt back that did not fail; where the owner signed in, the account counts from the beginning."""
        network, pair = _keys(address, account)
        for waits, key in self._counted(network, pair, account):
            waits.take_back(key)
        if is_owner:
            self.limited.attempts.pop(network, None)
        if is_owner and account:
            self.of_account.attempts.pop(pair, None)
            self.known[pair] = None
            if len(self.known) > MOST_KEYS:
                del self.known[next(iter(self.known))]

    def _counted(self, network: str, pair: str, account: str) -> list[tuple[Waits, str]]:
        own = [(self.of_account, pair)] if account else []
        return own if pair in self.known else [*own, (self.of_address, network)]


def _keys(address: str, account: str) -> tuple[str, str]:
    """Return the network of an address, and it together with an account; of IPv6 people have a whole /64."""
    try:
        known = ipaddress.ip_address(address)
    except ValueError:
        network = address
    else:
        network = str(ipaddress.ip_network((known, 64 if known.version == 6 else 32), strict=False))
    return network, f"{network} {account.strip()[:80]}"


def proxies_of(proxies: Sequence[str]) -> list[str]:
    """Return the addresses and networks of trusted proxies."""
    parts = [part.strip() for text in proxies for part in text.split(",") if part.strip()]
    for part in parts:
        try:
            network = ipaddress.ip_network(part)
        except ValueError as error:
            raise InvalidInputError(
                f"expected the address of a proxy or its network, such as 127.0.0.1 or 10.0.0.0/8, got {part!r}"
            ) from error
        if network.prefixlen == 0:
            raise InvalidInputError(f"{part} is everybody: name the proxies that you trust alone")
    return parts


def number_of(text: str, field: str) -> int:
    """Read a whole number of a form."""
    digits = text.strip().removeprefix("-")
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= MAX_DIGITS):
        raise InvalidInputError(
            f"{field}: expected a whole number of at most {MAX_DIGITS} digits, got {text[:20]!r}",
            kind="whole_number",
            field=field,
            most=MAX_DIGITS,
        )
    return int(text)


def is_text(text: str) -> bool:
    """Tell whether a text has neither NUL nor lone surrogates, which can be neither stored nor shown."""
    return "\0" not in text and not any("\ud800" <= character <= "\udfff" for character in text)


def check_texts(*values: Any) -> None:
    """Refuse texts with NUL or a lone surrogate (`is_text`)."""
    left = list(values)
    while left:
        value = left.pop()
        if isinstance(value, str):
            if not is_text(value):
                raise InvalidInputError("text contains NUL or a lone surrogate", kind="no_text")
        elif isinstance(value, dict):
            left += [*value, *value.values()]
        elif isinstance(value, (list, tuple)):
            left += value


# around all responses

HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Cache-Control": "no-store",
}
"""Of all responses."""

MAX_BODY: Final = 1_000_000
"""Bytes of a request."""


class Hardened:
    """Adds those of `HEADERS` that a response does not set itself, and refuses bodies over `MAX_BODY` unread."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {name.lower(): value for name, value in scope["headers"]}
        length = headers.get(b"content-length", b"0" if scope["method"] in {"GET", "HEAD"} else b"")

        async def hardened(message: Any) -> None:
            if message["type"] == "http.response.start":
                own = {name.lower() for name, _ in message["headers"]}
                added = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message["headers"], *(each for each in added if each[0] not in own)]
            await send(message)

        if not length.isdigit() or len(length) > MAX_DIGITS or int(length) > MAX_BODY:
            text = translator(language_of(Request(scope)))("body_too_long")
            await PlainTextResponse(text, 413)(scope, receive, hardened)
            return
        await self.app(scope, receive, hardened)
