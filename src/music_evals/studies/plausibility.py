"""Whether what a page says of its times can have happened, held against the clock of the server.

Whoever writes what a page sends can claim any time, and not more than passed between joining and sending. Who pauses,
has a slow line or sends later had more, which says nothing against anybody.
"""

from __future__ import annotations

import math

__all__ = ["FASTER_THAN_TIME", "is_possible", "passed_sec"]

FASTER_THAN_TIME = "faster_than_time"
"""Mark of who claims more seconds than passed at the server."""

_OVER_SHARE, _OVER_SEC = 1.02, 1.0
"""By so much may a page count more than the server: clocks differ."""


def passed_sec(start: float | None, end: float | None) -> float:
    """Return the seconds between two times of the server; NaN where one is not known, or the clock was set back."""
    return math.nan if start is None or end is None or end < start else end - start


def is_possible(claimed_sec: float, passed: float) -> bool:
    """Tell whether a page can have spent so much where `passed` seconds passed; True if unknown (NaN)."""
    return not claimed_sec > _OVER_SHARE * passed + _OVER_SEC
