"""Whether a song was listened to, worked out from playback events by the server's own clock.

A page that is forged can send any event, but not faster than time passes: the server notes when each event came, and
a player cannot have moved on by more than the time between. So a whole song takes at least its duration, whatever is
sent. What a forger cannot be kept from is to let the time pass without listening. On a slow line the report of the
beginning comes late, and the server's clock starts late: an honest page lets all that it reports afterwards wait as
long (`static/reports.js`).

Source: Wang et al., "MuChin", IJCAI 2024: the whole song in one sitting before seeking or changing the speed, no
writing in the first 30 s, no paste, texts of at least 50 words (see `description`). `SLACK`, `AHEAD`, `MAX_GAP` and
`MAX_PAUSE` are ours.

A break is suggested after long work, since hearing tires; nobody is kept from going on. The paper has no such rule; the
spans are ours.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from music_evals.caimap.domain.values import PlaybackEvent
from music_evals.errors import InvalidAnnotationError

EVENT_KINDS: Final = (
    "play", "pause", "seek", "rate", "beat", "ended", "write", "paste", "blocked", "hidden", "shown",
)  # fmt: skip
"""What a page may report; ``"blocked"`` is a paste that it kept away, which is counted and breaks no rule."""

SILENT_START: Final = 30.0
"""Seconds of the song that are heard before anything is written; a shorter song is heard whole."""

SLACK: Final = 1.5
"""Seconds that may be missing at the ends of what is heard, for the times at which a page reports."""

AHEAD: Final = 4.0
"""Seconds by which a player may be ahead of the server's clock."""

MAX_GAP: Final = 15.0
"""Seconds between two events of a playing player; a longer one ends the sitting.

A page sends a beat every 5 s, so a line is good enough whose answers take less than 10 s.
"""

FASTEST: Final = 1.5
"""Highest speed that the pages offer."""

MAX_PAUSE: Final = 600.0
"""Seconds of a pause, beyond which it is another sitting."""

_BROKEN: Final = -1.0


class Listening(NamedTuple):
    """What the events of a task show."""

    complete: bool  # the whole song was played in one sitting
    longest_sec: float  # longest stretch of the song from its beginning that was played in one sitting
    problems: tuple[str, ...]
    pauses: int
    seeks: int
    heard_sec: float = 0.0

    def may_write(self, duration_sec: float) -> bool:
        """Tell whether enough was heard to write, of a song of so many seconds."""
        return self.complete or self.longest_sec >= min(SILENT_START, duration_sec) - SLACK


def check_event(event: PlaybackEvent, duration_sec: float, previous: PlaybackEvent | None = None) -> None:
    """Refuse an event that no player of the song can have sent."""
    if event.kind not in EVENT_KINDS:
        raise InvalidAnnotationError(
            f"an event must be one of {', '.join(EVENT_KINDS)}, got {event.kind!r}", kind="event"
        )
    numbers = event.position_sec, event.value, event.received_sec
    if not all(math.isfinite(number) for number in numbers):
        raise InvalidAnnotationError("an event must hold finite numbers", kind="event")
    if not 0 <= event.position_sec <= duration_sec + SLACK:
        raise InvalidAnnotationError(
            f"the song lasts {duration_sec:.1f} s; nothing is played at {event.position_sec:.1f} s",
            kind="event_position",
            duration=f"{duration_sec:.1f}",
            found=f"{event.position_sec:.1f}",
        )
    if event.kind == "rate" and not 0.25 <= event.value <= 4:
        raise InvalidAnnotationError(f"the speed must lie between 0.25 and 4, got {event.value}", kind="event")
    if previous is not None and event.received_sec < previous.received_sec:
        raise InvalidAnnotationError("events must come in the order of time", kind="event")


class _Player:
    """Follows one sitting after the other."""

    def __init__(self, duration_sec: float) -> None:
        self.duration = duration_sec
        self.reached = 0.0  # of this sitting, from the beginning of the song; below 0 once the sitting is broken
        self.clock = 0.0  # seconds of the server's clock for which this sitting has played
        self.longest = 0.0
        self.complete = False
        self.playing = False
        self.last = 0.0
        self.position = 0.0
        self.played: set[int] = set()  # seconds of the song
        self.allowed = AHEAD  # seconds of the song that can have been played by now
        self.counts = {"pause": 0, "seek": 0}
        self.problems: dict[str, None] = {}

    def take(self, event: PlaybackEvent) -> None:
        passed = event.received_sec - self.last
        self.last = event.received_sec
        if self.playing:
            self._advance(event, passed)
            self.allowed += FASTEST * min(passed, MAX_GAP)
            if passed <= MAX_GAP and 0 <= event.position_sec - self.position <= FASTEST * passed + AHEAD:
                self.played.update(range(int(self.position), math.ceil(event.position_sec)))
        self.position = event.value if event.kind == "seek" else event.position_sec
        if event.kind in self.counts and not self.complete:
            self.counts[event.kind] += 1
        match event.kind:
            case "play":
                self._start(event, passed)
            case "pause" | "ended":
                self.playing = False
            case "seek" if not self.complete:
                self.problems["seek_before_end"] = None
                self.reached = _BROKEN
            case "rate" if not self.complete and event.value != 1.0:
                self.problems["rate_before_end"] = None
            case "write" if self.longest < min(SILENT_START, self.duration) - SLACK and not self.complete:
                self.problems["early_writing"] = None
            case "paste":
                self.problems["paste"] = None

    def _start(self, event: PlaybackEvent, passed: float) -> None:
        """Go on where the sitting was, or begin a new one."""
        if self.playing and self.reached >= 0:
            return  # a page that was loaded again while it played says nothing of a pause: that one is broken by now
        self.playing = True
        on = self.reached >= 0 and abs(event.position_sec - self.reached) <= SLACK and passed <= MAX_PAUSE
        if not on:
            self.reached, self.clock = (0.0, 0.0) if event.position_sec <= SLACK else (_BROKEN, 0.0)

    def _advance(self, event: PlaybackEvent, passed: float) -> None:
        """Move on to the position of an event; the song cannot have run ahead of the clock."""
        if self.reached < 0 or self.complete:
            return
        self.clock += passed
        if event.position_sec > self.clock + AHEAD:
            self.problems["faster_than_time"] = None
            self.reached = _BROKEN
        elif passed > MAX_GAP or event.position_sec < self.reached - SLACK:
            self.reached = _BROKEN
        self.reached = max(self.reached, event.position_sec) if self.reached >= 0 else _BROKEN
        self.longest = max(self.longest, self.reached)
        self.complete = self.longest >= self.duration - SLACK


def listening_of(events: Sequence[PlaybackEvent], duration_sec: float) -> Listening:
    """Work out what was listened to."""
    player = _Player(duration_sec)
    previous: PlaybackEvent | None = None
    for event in events:
        check_event(event, duration_sec, previous)
        player.take(event)
        previous = event
    heard_sec = min(float(len(player.played)), player.allowed, duration_sec)
    pauses, seeks = player.counts["pause"], player.counts["seek"]
    return Listening(player.complete, player.longest, tuple(player.problems), pauses, seeks, heard_sec)


def broken_rules(listening: Listening) -> InvalidAnnotationError | None:
    """Return the refusal of a listening that broke rules, None of one that kept them."""
    if not listening.problems:
        return None
    return InvalidAnnotationError(
        f"the rules of listening were broken: {', '.join(listening.problems)}; start again",
        kind="listening_broken",
        problems=listening.problems,
    )


def check_listening(events: Sequence[PlaybackEvent], duration_sec: float) -> Listening:
    """Refuse a description whose writer did not listen as the rules ask."""
    listening = listening_of(events, duration_sec)
    if broken := broken_rules(listening):
        raise broken
    if not listening.complete:
        raise InvalidAnnotationError(
            "listen to the whole song in one sitting first; "
            f"so far {listening.longest_sec:.0f} of {duration_sec:.0f} s",
            kind="listen_whole",
            found=f"{listening.longest_sec:.0f}",
            duration=f"{duration_sec:.0f}",
        )
    return listening


LONGEST_STRETCH: Final = dt.timedelta(minutes=50)
"""Of work without a rest, after which a break is suggested."""

REST: Final = dt.timedelta(minutes=10)
"""Between two acts, which counts as a rest."""
