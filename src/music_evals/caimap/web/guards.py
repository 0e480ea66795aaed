"""What guards the pages: limits of attempts, whose word on addresses is taken, numbers and texts that can be kept."""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Sequence
from time import monotonic
from typing import Any, Final

from music_evals.errors import InvalidInputError

__all__ = ["MAX_DIGITS", "Attempts", "Waits", "check_texts", "is_text", "number_of", "proxies_of"]

MAX_DIGITS: Final = 9
"""Of a whole number in an address or a form: what every database keeps as one."""


LONGEST_WAIT_SEC: Final = 900.0

FORGOTTEN_SEC: Final = 3600.0
"""After the last attempt of a key, when it counts from the beginning."""

MOST_KEYS: Final = 10_000
"""That are kept in memory; of more, the oldest are forgotten."""


class Waits:
    """Counts attempts by a key, and after each lets the next one wait twice as long: 1 s, 2 s, 4 s.

    Parameters
    ----------
    free
        So many come before the first that makes wait.

    """

    def __init__(self, free: int) -> None:
        self.free = free
        self.seen: dict[str, tuple[int, float]] = {}

    def left_sec(self, key: str) -> float:
        """Return for how many seconds no attempt is taken; 0 where one is."""
        count, since = self._of(key)
        over = min(count - self.free, 20)
        return max(0.0, since + min(2.0 ** (over - 1), LONGEST_WAIT_SEC) - monotonic()) if over > 0 else 0.0

    def count(self, key: str) -> None:
        """Count an attempt when it begins: many at once are many."""
        count, _ = self._of(key)
        self.seen.pop(key, None)
        self.seen[key] = count + 1, monotonic()  # at the end, as the latest
        if len(self.seen) > MOST_KEYS:
            del self.seen[next(iter(self.seen))]

    def take_back(self, key: str) -> None:
        """Count one less, since it succeeded."""
        count, since = self._of(key)
        self.seen[key] = max(0, count - 1), since

    def _of(self, key: str) -> tuple[int, float]:
        count, since = self.seen.get(key, (0, 0.0))
        return (count, since) if monotonic() < since + FORGOTTEN_SEC else (0, 0.0)


class Attempts:
    """Makes those wait who guess: by account at an address, and by address over all accounts.

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
            self.limited.seen.pop(network, None)
        if is_owner and account:
            self.of_account.seen.pop(pair, None)
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
