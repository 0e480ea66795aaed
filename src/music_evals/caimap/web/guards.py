"""What guards the pages: limits of attempts, whose word on addresses is taken, numbers and texts that can be kept."""

from __future__ import annotations

import ipaddress
import time
from collections import deque
from collections.abc import Sequence
from typing import Any, Final

from music_evals.errors import InvalidInputError

__all__ = ["MAX_DIGITS", "Attempts", "RateLimit", "check_texts", "is_text", "number_of", "proxies_of"]

MAX_DIGITS: Final = 9
"""Of a whole number in an address or a form: what every database keeps as one."""


class RateLimit:
    """Counts attempts by a key; keys are kept in memory for the span alone.

    Parameters
    ----------
    most
        So many in a span.
    span_sec
        Its length.

    """

    def __init__(self, most: int = 20, span_sec: float = 300.0) -> None:
        self.most, self.span = most, span_sec
        self.seen: dict[str, deque[float]] = {}

    def allows(self, key: str) -> bool:
        """Count one more, and tell whether it is within the limit."""
        has_room = self.has_room(key)
        self.count(key)
        return has_room

    def has_room(self, key: str) -> bool:
        """Tell whether one more would be within the limit."""
        since = time.monotonic() - self.span
        return sum(moment > since for moment in self.seen.get(key, ())) < self.most

    def count(self, key: str) -> None:
        """Count one more."""
        now = time.monotonic()
        self.seen = {known: moments for known, moments in self.seen.items() if moments[-1] > now - self.span}
        self.seen.setdefault(key, deque(maxlen=self.most)).append(now)

    def forget(self, key: str) -> None:
        """Count from the beginning."""
        self.seen.pop(key, None)


class Attempts:
    """Counts what failed on pages for everybody: by address, and by account at an address.

    A person at an address that many share, behind a proxy that is not trusted, is stopped by their own failures long
    before those of others stop them. The account itself has its own lock, wherever the failures come from
    (`work.accounts`).

    """

    def __init__(self) -> None:
        self.of_address, self.of_account = RateLimit(most=100), RateLimit(most=20)

    def allows(self, address: str, account: str) -> bool:
        """Tell whether one more attempt is within both limits."""
        address, pair = _keys(address, account)
        return self.of_address.has_room(address) and (not account or self.of_account.has_room(pair))

    def count(self, address: str, account: str) -> None:
        """Count an attempt that failed, of the address alone where it names no account."""
        address, pair = _keys(address, account)
        self.of_address.count(address)
        if account:
            self.of_account.count(pair)

    def forgive(self, address: str, account: str) -> None:
        """Count from the beginning for an account, since its owner has signed in at this address."""
        self.of_account.forget(_keys(address, account)[1])


def _keys(address: str, account: str) -> tuple[str, str]:
    """Return the network of an address, and it together with an account; of IPv6 people have a whole /64."""
    try:
        known = ipaddress.ip_address(address)
    except ValueError:
        network = address
    else:
        network = str(ipaddress.ip_network((known, 64 if known.version == 6 else 32), strict=False))
    return network, f"{network} {account.strip()[:80]}"


def proxies_of(named: Sequence[str]) -> list[str]:
    """Return the addresses and networks of proxies whose word on addresses is taken.

    Parameters
    ----------
    named
        As ``"127.0.0.1"`` or ``"10.0.0.0/8"``; several with commas.

    Raises
    ------
    InvalidInputError
        Something else, or everybody: then anybody could choose the address that is counted.

    """
    parts = [part.strip() for text in named for part in text.split(",") if part.strip()]
    for part in parts:
        try:
            network = ipaddress.ip_network(part)
        except ValueError as error:
            raise InvalidInputError(
                f"expected the address of a proxy or its network, such as 127.0.0.1 or 10.0.0.0/8, got {part!r}"
            ) from error
        if network.prefixlen == 0:
            raise InvalidInputError(f"{part} is everybody: name the proxies alone, whose word on addresses is taken")
    return parts


def number_of(text: str, what: str) -> int:
    """Read a whole number of a form.

    Raises
    ------
    InvalidInputError
        It is none, or has more than `MAX_DIGITS` digits.

    """
    digits = text.strip().removeprefix("-")
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= MAX_DIGITS):
        raise InvalidInputError(
            f"{what}: expected a whole number of at most {MAX_DIGITS} digits, got {text[:20]!r}",
            kind="whole_number",
            field=what,
            most=MAX_DIGITS,
        )
    return int(text)


def is_text(given: str) -> bool:
    """Tell whether all characters are some: NUL and halves of surrogate pairs can be neither kept nor shown."""
    return "\0" not in given and not any("\ud800" <= character <= "\udfff" for character in given)


def check_texts(*given: Any) -> None:
    """Refuse texts that are none (`is_text`).

    Parameters
    ----------
    *given
        Texts, and lists and mappings of them to any depth.

    Raises
    ------
    InvalidInputError
        One of them does.

    """
    left = list(given)
    while left:
        found = left.pop()
        if isinstance(found, str):
            if not is_text(found):
                raise InvalidInputError(
                    "a text holds characters that are none (NUL, or half of a surrogate pair)", kind="no_text"
                )
        elif isinstance(found, dict):
            left += [*found, *found.values()]
        elif isinstance(found, (list, tuple)):
            left += found
