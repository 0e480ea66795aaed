"""When a break is suggested: hearing tires, and tired people annotate worse. Nobody is kept from going on.

The paper has no such rule; the spans are ours.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Final

__all__ = ["LONGEST_STRETCH", "REST", "suggests_break"]

LONGEST_STRETCH: Final = dt.timedelta(minutes=50)
"""Of work without a rest, after which a break is suggested."""

REST: Final = dt.timedelta(minutes=10)
"""Between two acts, which counts as a rest."""


def suggests_break(acts: Sequence[dt.datetime], now: dt.datetime) -> bool:
    """Tell whether somebody has worked for long without a rest.

    Parameters
    ----------
    acts
        Moments in UTC at which they did something, in order.
    now
        In UTC; a rest up to now counts.

    Examples
    --------
    >>> noon = dt.datetime(2026, 3, 4, 12, tzinfo=dt.UTC)
    >>> acts = [noon + dt.timedelta(minutes=at) for at in range(0, 52, 4)]
    >>> suggests_break(acts, acts[-1]), suggests_break(acts, acts[-1] + 3 * REST)
    (False, False)
    >>> suggests_break(acts, acts[-1] + dt.timedelta(minutes=3))
    True

    """
    began = now
    for act in reversed(acts):
        if began - act >= REST:
            break
        began = act
    return now - began >= LONGEST_STRETCH
