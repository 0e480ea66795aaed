"""Score files read into tunes, each in a process of its own, and kept so that a run that was stopped goes on.

A piece is a file, or one tune of an ABC book. What is read of it are the facts that `symbolic.filters` judges and its
voices as tunes, or all of it as the columns of a whole piece, or the reason why it gives none.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from music_evals.annotations import MUSIB_LAYOUT, Score
from music_evals.datasets.style_pieces import whole_columns
from music_evals.datasets.tunes import Tune, tune_from_score
from music_evals.errors import ContextLengthError, MusicEvalsError, NoDataError, PolyphonyError, UnreadableFileError
from music_evals.files import Store
from music_evals.processes import ReaderProcess
from music_evals.symbolic.contexts import Measures
from music_evals.symbolic.encodings.piano_rolls import STEPS_PER_QUARTER
from music_evals.symbolic.files import READERS
from music_evals.symbolic.frame import Counting, FileFacts, file_facts
from music_evals.symbolic.limits import DEFAULT_LIMITS, read_bytes
from music_evals.symbolic.melody import skyline_score, without_drums
from music_evals.symbolic.notation import abc_fields, from_abc
from music_evals.symbolic.roles import take_roles

Voices = Literal["one", "each", "skyline"]
VOICES: tuple[Voices, ...] = ("one", "each", "skyline")
"""What becomes of several voices: a piece that has them is left out, each is a tune, or their skyline is.

Drums are no voice: what they play is left out first."""

TIMEOUT_SEC = 120.0
READER = 5
"""Raised when pieces are read otherwise, so that nothing kept of an older reading is taken for it."""

_MODES = {
    "maj": "major", "ion": "major", "min": "minor", "aeo": "minor", "dor": "dorian", "phr": "phrygian",
    "lyd": "lydian", "mix": "mixolydian", "loc": "locrian",
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Reading:
    """How pieces are read."""

    voices: Voices = "one"
    measures: Measures = "notated"  # see `tunes.tune_from_score`
    counting: Counting = "notated"  # rule for the measures of the facts; "published" also says how many are windowed
    roles: Mapping[str, Sequence[str]] | None = None  # of a whole piece, as `symbolic.roles.take_roles`; None: tunes
    ticks_per_quarter: int = STEPS_PER_QUARTER  # of a whole piece


class Source(NamedTuple):
    """What a piece is read from."""

    name: str  # of the tune, unique in its data set
    collection: str
    suffix: str  # ``".mid"``, ``".abc"``, ...: how the content is read
    content: bytes | Path  # the file, or the text of one tune of an ABC book


class Piece(NamedTuple):
    """What was read."""

    facts: FileFacts
    tunes: tuple[Tune, ...]
    left_out: str = ""  # why there is no tune; "" where there is one
    as_written: bool = False  # whether its repeats lead nowhere, so that it was taken in the order of the page
    title: str = ""
    columns: Mapping[str, Any] | None = None  # of a whole piece, see `symbolic.piece_rows`
    remedies: tuple[str, ...] = ()  # settings of a `Reading` under which the piece may give a tune: "voices='each'"


def mode_of(text: str) -> str:
    """Return the mode that the first ``K:`` field of an ABC tune names, "" for one that names no key."""
    match = re.match(r"[A-G][#b]?\s*([A-Za-z]*)", next(iter(abc_fields(text, "K")), ""))
    if match is None:
        return ""
    word = match[1].lower()
    return "minor" if word == "m" else _MODES.get(word[:3], "major")


def read_pieces(
    sources: Sequence[Source],
    reading: Reading,
    *,
    store: Store | None = None,
    workers: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Iterator[Piece]:
    """Read pieces in their order; a broken one costs itself alone, and what is in the store is not read again."""
    local = threading.local()  # each thread has a process of its own
    started: list[ReaderProcess[bytes]] = []

    def process() -> ReaderProcess[bytes]:
        if not hasattr(local, "process"):
            local.process = ReaderProcess(read_request, timeout_sec=TIMEOUT_SEC)
            started.append(local.process)
        return local.process  # type: ignore[no-any-return]

    pool = ThreadPoolExecutor(min(workers or os.cpu_count() or 1, max(len(sources), 1)))
    try:
        for number, piece in enumerate(pool.map(lambda source: _read(source, reading, store, process), sources)):
            yield piece
            if progress is not None:
                progress(number + 1, len(sources))
    finally:
        pool.shutdown(cancel_futures=True)
        for reader in started:
            reader.close()


def _read(source: Source, reading: Reading, store: Store | None, process: Callable[[], ReaderProcess[bytes]]) -> Piece:
    """Read one piece, or take it from the store."""
    try:
        content = source.content if isinstance(source.content, bytes) else read_bytes(source.content, DEFAULT_LIMITS)
    except MusicEvalsError as error:
        return _failed(source.name, error, b"")
    options = dataclasses.asdict(reading)
    # all that what is read depends on
    key = {"piece": hashlib.sha256(content).hexdigest(), "name": source.name, "reader": READER, **options}
    entry = None if store is None else store.get(key)
    if entry is None:
        head = {"name": source.name, "suffix": source.suffix, "reading": options}
        result = process().read(json.dumps(head).encode() + b"\n" + content, name=source.name)
        if isinstance(result, MusicEvalsError):  # the process died
            return _failed(source.name, result, content)
        entry = result
        if store is not None:
            store.put(key, entry)
    values = json.loads(entry)
    tunes = []
    for tune in values["tunes"]:
        tokens = np.frombuffer(base64.b64decode(tune["tokens"]), "u1")
        tunes.append(Tune(**{**tune, "collection": source.collection, "tokens": tokens}))
    facts = FileFacts(**{name: _tuples(value) for name, value in values["facts"].items()})
    return Piece(**{**values, "facts": facts, "tunes": tuple(tunes), "remedies": tuple(values["remedies"])})


def read_request(request: bytes) -> bytes:
    """Read one piece: a line of JSON and the content in, JSON out; runs in a process of its own."""
    head, _, content = request.partition(b"\n")
    values = json.loads(head)
    reading = Reading(**values["reading"])
    name = values["name"]
    try:
        score, as_written = _score_of(name, values["suffix"], content)
        facts = dataclasses.replace(file_facts(name, score, counting=reading.counting), hash=_md5(content))
    except MusicEvalsError as error:
        return _to_bytes(_failed(name, error, content))
    title, mode = Path(name).name, ""
    if values["suffix"] == ".abc":
        text = content.decode()
        title, mode = next(iter(abc_fields(text, "T")), title), mode_of(text)
    counted = facts.n_measures if reading.counting == "published" and reading.measures == "fixed" else None
    if reading.roles is not None:
        try:
            columns = whole_columns(take_roles(score, reading.roles), reading.ticks_per_quarter)
        except MusicEvalsError as error:
            return _to_bytes(Piece(facts, (), f"{type(error).__name__}: {error}", as_written, title))
        return _to_bytes(Piece(facts, (), "", as_written, title, columns))
    try:
        tunes = tuple(
            tune_from_score(
                chosen, name, title=title, mode=mode, measures=reading.measures, voice=voice, n_measures=counted
            )
            for chosen, voice in _voices_of(score, reading.voices)
        )
    except PolyphonyError as error:  # what to do about it is said in the words of a corpus
        left_out = f"PolyphonyError: {str(error).partition('; ')[0]}"
        remedies: tuple[str, ...] = ("voices='skyline'",)
        if error.kind == "voices":
            remedies = ("voices='each'", *remedies)
        return _to_bytes(Piece(facts, (), left_out, as_written, title, remedies=remedies))
    except ContextLengthError as error:
        n_fixed = error.facts.get("fixed", 0)
        helps = reading.measures == "notated" and isinstance(n_fixed, int) and n_fixed >= MUSIB_LAYOUT.n_measures
        remedies = ("measures='fixed'",) if helps else ()
        return _to_bytes(Piece(facts, (), f"ContextLengthError: {error}", as_written, title, remedies=remedies))
    except MusicEvalsError as error:
        return _to_bytes(Piece(facts, (), f"{type(error).__name__}: {error}", as_written, title))
    names = own_names([tune.voice for tune in tunes])
    tunes = tuple(dataclasses.replace(tune, voice=voice) for tune, voice in zip(tunes, names, strict=True))
    return _to_bytes(Piece(facts, tunes, "", as_written, title))


def own_names(names: Iterable[str]) -> list[str]:
    """Return names that all differ: where one comes again, it is given a number, as in ``Piano`` and ``Piano.2``."""
    taken: dict[str, None] = {}
    for name in names:
        unique, number = name, 1
        while unique in taken:
            number += 1
            unique = f"{name}.{number}"
        taken[unique] = None
    return list(taken)


def with_own_names(sources: Sequence[Source]) -> list[Source]:
    """Give each source a name of its own, as `own_names` does."""
    names = own_names(source.name for source in sources)
    return [source._replace(name=own) for source, own in zip(sources, names, strict=True)]


def _score_of(name: str, suffix: str, content: bytes) -> tuple[Score, bool]:
    """Return the score, and whether its repeats lead nowhere, so that it is as written."""
    if suffix != ".abc":
        return READERS[suffix](content), False
    try:
        return from_abc(content.decode(), name=name), False
    except UnreadableFileError:
        return from_abc(content.decode(), name=name, expand_repeats=False), True


def _voices_of(score: Score, voices: Voices) -> list[tuple[Score, int | None]]:
    """Return the voices that are made tunes of, each as a score and the index in it, None for the only one."""
    pitched = without_drums(score)
    if len(score.notes) and not len(pitched.notes):
        raise NoDataError("drums alone have notes; a melody needs another voice")
    if voices == "skyline":
        return [(skyline_score(pitched), None)]
    sounding = np.unique(pitched.notes["voice"]).tolist()
    return [(pitched, voice) for voice in sounding] if voices == "each" and len(sounding) > 1 else [(pitched, None)]


def _failed(name: str, error: MusicEvalsError, content: bytes) -> Piece:
    reason = f"{type(error).__name__}: {error}"
    return Piece(FileFacts(name, error=reason, hash=_md5(content)), (), reason)


def _to_bytes(piece: Piece) -> bytes:
    tunes = [
        {**dataclasses.asdict(tune), "tokens": base64.b64encode(tune.tokens.tobytes()).decode()} for tune in piece.tunes
    ]
    return json.dumps({**piece._asdict(), "facts": dataclasses.asdict(piece.facts), "tunes": tunes}).encode()


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _md5(content: bytes) -> str:
    return hashlib.md5(content, usedforsecurity=False).hexdigest()
