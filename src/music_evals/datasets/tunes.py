"""Pieces of one voice as rows of 16-measure windows: what folk tunes and users' own corpora share with JSB Chorales.

The columns are those of `jsb_chorales` and three more: the title, the collection and the family, which is the name of
the first of the tunes that `datasets.families` holds to be settings of one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from music_evals.annotations import HOLD, MUSIB_LAYOUT, ContextLayout, Score, Tokens
from music_evals.datasets.near_copies import Passages, near_train, quarter_skeletons, repeats_in_context
from music_evals.errors import ContextLengthError
from music_evals.symbolic.contexts import Measures, check_measures, tokens_from_score
from music_evals.symbolic.measures import meter_map
from music_evals.symbolic.notes import rescale_tick
from music_evals.symbolic.noteseq import decode

__all__ = ["Training", "Tune", "features", "tune_from_score", "tune_rows", "window_rows"]

STEPS_PER_QUARTER = MUSIB_LAYOUT.steps_per_measure // 4


@dataclasses.dataclass(frozen=True, eq=False)
class Tune:
    """One voice of a piece in whole measures of 4/4."""

    name: str  # unique in its data set, such as ``"ryansMammoth/AcaciaReel"``; with `voice`, if there are several
    title: str
    collection: str
    tokens: Tokens  # shape (24 * n_measures,), from measure 0 on
    key_fifths: int = 0
    mode: str = ""  # as written, ``"major"``, ``"dorian"``, ...; "" where the source does not say
    time_signature: str = "4/4"
    pickup_quarters: float = 0.0
    voice: str = "melody"
    voice_index: int = 0
    one_of_several: bool = False  # whether other voices of the piece are tunes too: ids then name the voice's index

    @property
    def n_measures(self) -> int:
        """Number of measures."""
        return len(self.tokens) // MUSIB_LAYOUT.steps_per_measure

    @property
    def n_windows(self) -> int:
        """Number of 16-measure windows, one measure apart."""
        return max(self.n_measures - MUSIB_LAYOUT.n_measures + 1, 0)


def tune_from_score(
    score: Score,
    name: str,
    *,
    title: str = "",
    collection: str = "",
    mode: str = "",
    measures: Measures = "notated",
    voice: int | None = None,
    n_measures: int | None = None,
) -> Tune:
    """Read one voice of a score as a tune.

    Onsets and ends are counted from the first bar line, after a pickup, and rounded half up to a sixth of a quarter.

    Parameters
    ----------
    score, name, title, collection, mode
        As in `Tune`; an empty mode is that of the score's first key signature, if there is one.
    measures
        ``"notated"``: the bars of the page. A pickup is left out, and of a piece whose bars are not all four quarters
        long the longest run of such bars is taken. ``"fixed"``: four quarters a measure from the start, whatever the
        page says, as MUSIB does.
    voice
        Index of the voice; None takes the only one that has notes.
    n_measures
        How many measures are taken where they are ``"fixed"``; by default all, up to the end of the last note.

    Raises
    ------
    PolyphonyError
        Several voices and none chosen, or two notes at once.
    ContextLengthError
        Fewer than 16 measures in a row. Its facts are how many there are, `measures`, and `fixed`, how many there would
        be of four quarters from the start, whatever the page says.
    """
    check_measures(measures)
    tpq = score.ticks_per_quarter
    bars = meter_map(score)
    end = int(rescale_tick(score.end_tick, tpq, STEPS_PER_QUARTER))
    fixed = -(-end // MUSIB_LAYOUT.steps_per_measure)
    first = 0
    if measures == "notated":
        # the longest run of bars of four quarters, the first of several
        edges = np.flatnonzero(np.diff(np.concatenate([[0], (bars.lengths == 4 * tpq).astype(np.int8), [0]])))
        runs = edges[1::2] - edges[::2]
        first, count = (int(edges[::2][runs.argmax()]), int(runs.max())) if len(runs) else (0, 0)
        origin = bars.pickup_ticks if first else 0
        start = int(rescale_tick(bars.starts[first] - origin, tpq, STEPS_PER_QUARTER)) if count else 0
    else:
        origin, start, count = 0, 0, fixed if n_measures is None else n_measures
    if count < MUSIB_LAYOUT.n_measures:
        raise ContextLengthError(
            f"{count} measures of four quarters in a row; a window has {MUSIB_LAYOUT.n_measures}",
            kind="too_few_measures",
            measures=count,
            fixed=fixed,
        )
    stop = start + count * MUSIB_LAYOUT.steps_per_measure
    tokens = tokens_from_score(score, stop, voice=voice, start_tick=origin)[start:].copy()
    key = score.key_signatures[0] if score.key_signatures else None
    meter = bars.signatures[first] if bars.signatures else None
    return Tune(
        name,
        title,
        collection,
        tokens,
        key_fifths=key.fifths if key else 0,
        mode=mode or ("" if key is None else "minor" if key.minor else "major"),
        time_signature=f"{meter.numerator}/{meter.denominator}" if meter else "4/4",
        pickup_quarters=bars.pickup_ticks / tpq,
        voice="melody" if voice is None else score.voices[voice] or str(voice),
        voice_index=voice or 0,
        one_of_several=voice is not None,
    )


def features() -> Any:
    """Return the columns as `datasets.Features`."""
    from datasets import Features, List, Value

    note = {"onset_step": Value("int16"), "duration_step": Value("int16"), "pitch": Value("uint8")}
    text = Value("string")
    return Features(
        {
            **dict.fromkeys(("item_id", "song", "title", "collection", "family", "voice"), text),
            "voice_index": Value("int8"),
            "start": Value("int16"),
            "tokens": List(Value("uint8"), length=MUSIB_LAYOUT.n_steps),
            "notes": List(note),
            "key_fifths": Value("int8"),
            "mode": text,
            "time_signature": text,
            "pickup_quarters": Value("float32"),
            "n_measures": Value("int16"),
            "seen_in_train": Value("bool"),
            "near_train": Value("float32"),
            "repeats_in_context": Value("float32"),
        }
    )


def voice_tokens(
    score: Score, voice: int, n_measures: int, *, pickup_quarters: float = 0.0, layout: ContextLayout = MUSIB_LAYOUT
) -> Tokens:
    """Return `n_measures` measures of 4/4 of one voice as NoteSeq tokens, shape (n_measures * steps_per_measure,)."""
    # What lies before `pickup_quarters` is cut off: a note held over the cut appears as leading holds. After the last
    # note come rests. See `symbolic.contexts.tokens_from_score`.
    steps_per_quarter = layout.steps_per_measure // 4
    skipped = round(pickup_quarters * steps_per_quarter)
    n_steps = skipped + n_measures * layout.steps_per_measure
    return tokens_from_score(score, n_steps, voice=voice, steps_per_quarter=steps_per_quarter)[skipped:]


def cut_windows(tokens: Tokens, layout: ContextLayout = MUSIB_LAYOUT) -> Tokens:
    """Return all windows, one measure apart, of a voice from a bar line on: (n_windows, layout.n_steps), read-only."""
    if len(tokens) < layout.n_steps:
        return np.empty((0, layout.n_steps), dtype=np.uint8)
    windows = np.lib.stride_tricks.sliding_window_view(tokens, layout.n_steps)
    return windows[:: layout.steps_per_measure]


def content_key(tokens: Tokens) -> bytes:
    """Return the interval and rhythm content of a passage, equal for passages that are transpositions of each other."""
    # Every onset is written as its distance from the first onset in semitones, every hold and rest is kept. A passage
    # without an onset is its holds and rests.
    values = tokens.astype(np.int16)
    onsets = tokens < HOLD
    if onsets.any():
        # 512 keeps the intervals, -127..127 around it, apart from the tokens 128 and 129.
        values[onsets] += 512 - values[onsets][0]
    return values.tobytes()


def middle_keys(windows: Tokens, layout: ContextLayout = MUSIB_LAYOUT) -> list[bytes]:
    """Return `content_key` of the middle of each window, shape (n, layout.n_steps) in."""
    return [content_key(window[layout.middle]) for window in windows]


def training_keys(voices: Iterable[Tokens], layout: ContextLayout = MUSIB_LAYOUT) -> set[bytes]:
    """Return the content of every bar-aligned passage, as long as a middle, anywhere in windows or whole voices."""
    return {
        content_key(voice[start : start + layout.middle_steps])
        for voice in voices
        for start in range(0, len(voice) - layout.middle_steps + 1, layout.steps_per_measure)
    }


@dataclasses.dataclass(frozen=True, eq=False)
class Training:
    """What the tunes of train hold, as middles are compared with it."""

    keys: set[bytes]  # the exact content of every passage, for `seen_in_train`
    passages: Passages  # their quarter skeletons, for `near_train`

    @classmethod
    def of(cls, tunes: Sequence[Tune]) -> Training:
        """Return what tunes hold, at every bar line."""
        step, length = MUSIB_LAYOUT.steps_per_measure, MUSIB_LAYOUT.middle_steps
        views = [np.lib.stride_tricks.sliding_window_view(tune.tokens, length)[::step] for tune in tunes]
        passages = np.concatenate([np.empty((0, length), dtype=np.uint8), *views])
        return cls(training_keys(tune.tokens for tune in tunes), Passages(quarter_skeletons(passages)))


def window_rows(prefix: str, windows: Tokens, train: Training | None, **columns: Any) -> Iterator[dict[str, Any]]:
    """Make the rows of windows in time order, with the given columns; what training consists of (None) it holds."""
    in_train, near = [True] * len(windows), [1.0] * len(windows)
    if train is not None:
        in_train = [key in train.keys for key in middle_keys(windows)]
        near = near_train(windows, train.passages).tolist()
    repeats = repeats_in_context(windows).tolist()
    for start, tokens in enumerate(windows):
        notes = decode(tokens)
        values = (notes["onset_tick"].tolist(), notes["duration_tick"].tolist(), notes["pitch"].tolist())
        yield {
            "item_id": f"{prefix}/{start:03d}",
            **columns,
            "start": start,
            "tokens": tokens.tolist(),
            "notes": [
                {"onset_step": onset, "duration_step": duration, "pitch": pitch}
                for onset, duration, pitch in zip(*values, strict=True)
            ],
            "seen_in_train": in_train[start],
            "near_train": near[start],
            "repeats_in_context": repeats[start],
        }


def tune_rows(tune: Tune, family: str, split: str, train: Training) -> Iterator[dict[str, Any]]:
    """Make the rows of one tune, its windows in time order."""
    names = ("title", "collection", "voice", "voice_index", "key_fifths", "mode", "time_signature", "pickup_quarters")
    yield from window_rows(
        f"{tune.name}/{tune.voice_index}" if tune.one_of_several else tune.name,
        cut_windows(tune.tokens),
        None if split == "train" else train,
        song=tune.name,
        family=family,
        n_measures=tune.n_measures,
        **{name: getattr(tune, name) for name in names},
    )
