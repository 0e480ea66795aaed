"""Characters and phones with times by the Montreal Forced Aligner, where it is installed.

The aligner (McAuliffe et al., Interspeech 2017; MIT) is a program of its own with Kaldi inside. It comes by conda and
is called by its name, ``mfa``, with the options of its versions 2 and 3. Its models for Mandarin, ``mandarin_mfa`` and
the dictionary ``mandarin_china_mfa``, are CC BY 4.0. It was made for speech: `refinement` says what singing needs.

The program gets a folder with one recording and a TextGrid of the lines (or all of the lyrics, where lines have no
times), with a space between characters, so that words are characters; ``--no_tokenization`` keeps them so. It writes a
TextGrid with the tiers ``words`` and ``phones``, which `read_textgrid` reads. A package for that format exists
(praatio, which the aligner itself uses); here the reader is forty lines, because the two forms that the aligner
writes are numbers and quoted strings in a fixed order, and a break of that order is to be an error with its place.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import os
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from music_evals.audio.io import Audio
from music_evals.errors import BackendError, InvalidLyricsError, MissingBackendError, UnreadableFileError
from music_evals.preparation.lyrics import Character, characters_of_line
from music_evals.preparation.programs import run_program

PROGRAM: Final = "mfa"
ACOUSTIC_MODEL: Final = "mandarin_mfa"
"""Name of the aligner's acoustic model, or path of one."""
DICTIONARY: Final = "mandarin_china_mfa"
"""Name of the aligner's dictionary of pronunciations, or path of one."""
INSTALL: Final = (
    "conda install -c conda-forge 'montreal-forced-aligner<4', "
    f"then mfa model download acoustic {ACOUSTIC_MODEL} and mfa model download dictionary {DICTIONARY}"
)
"""How the aligner and its models are installed."""

TIMEOUT_SEC: Final = 1800.0
LARGEST_TEXTGRID: Final = 50_000_000  # bytes; an hour of phones has 5 MB
SILENT: Final = frozenset({"", "sil", "sp", "<eps>"})
UNKNOWN: Final = "spn"  # the phone of what the dictionary does not hold
_TOKEN: Final = re.compile(r'"((?:[^"]|"")*)"|<(\w+)>|(?<![\w\[."])(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)(?![\w\]:.])')


class Interval(NamedTuple):
    """A labelled stretch of a tier."""

    start_sec: float
    end_sec: float
    text: str


@dataclasses.dataclass(frozen=True)
class Phone:
    """A phone of a character, in the alphabet of the acoustic model."""

    text: str
    start_sec: float
    end_sec: float
    character: int


class Aligned(NamedTuple):
    """Characters and phones of a song, by time."""

    characters: tuple[Character, ...]
    phones: tuple[Phone, ...]


def align_phonemes(
    audio: Audio,
    lines: Sequence[str],
    *,
    starts_sec: Sequence[float] | None = None,
    acoustic_model: str = ACOUSTIC_MODEL,
    dictionary: str = DICTIONARY,
    timeout_sec: float = TIMEOUT_SEC,
) -> Aligned:
    """Align the lyrics of one song by the Montreal Forced Aligner."""
    program = shutil.which(PROGRAM)
    if program is None:
        raise MissingBackendError("montreal-forced-aligner", "", "phoneme alignment", install=INSTALL)
    words = [characters_of_line(line) for line in lines]
    if not any(words):
        raise InvalidLyricsError("no line has a letter that could be sung; check the lyrics")
    starts = None if starts_sec is None else [float(start) for start in starts_sec]
    if starts is not None and len(starts) != len(words):
        raise InvalidLyricsError(f"expected one start a line, got {len(starts)} for {len(words)} lines")
    edges = [*(starts or []), audio.duration_sec]
    increases = all(first < second for first, second in itertools.pairwise(edges))
    if not (edges[0] >= 0 and increases and all(map(math.isfinite, edges))):
        raise InvalidLyricsError(
            f"expected starts that increase from 0 s to the end of the recording at {edges[-1]:.1f} s, got {starts}"
        )
    with tempfile.TemporaryDirectory() as folder:
        corpus, out = Path(folder, "corpus"), Path(folder, "aligned")
        corpus.mkdir()
        _write_song(corpus, audio, words, starts)
        command = [
            program, "align", "--clean", "--single_speaker", "--no_tokenization", "--num_jobs", "1",
            "--output_format", "long_textgrid", "--temporary_directory", str(Path(folder, "work")),
            str(corpus), dictionary, acoustic_model, str(out),
        ]  # fmt: skip
        hint = f"where a model is missing, install it with: {INSTALL}"
        run_program(command, "mfa", timeout_sec=timeout_sec, folder=folder, task="align the song", hint=hint)
        paths = sorted(out.rglob("*.TextGrid")) if out.is_dir() else []
        if len(paths) != 1:
            raise BackendError(
                f"mfa wrote {len(paths)} alignments, expected one; it leaves out what it cannot align: give it the "
                f"voice alone, and check that the lyrics are those that are sung"
            )
        try:
            return _aligned(read_textgrid(paths[0]), words)
        except UnreadableFileError as error:
            raise BackendError(f"mfa wrote a file that is no TextGrid: {error}") from error


def _write_song(corpus: Path, audio: Audio, words: Sequence[Sequence[str]], starts: Sequence[float] | None) -> None:
    """Write the recording, and its text as one file or as a TextGrid of lines."""
    import soundfile

    soundfile.write(corpus / "song.wav", audio.samples, audio.sample_rate, subtype="PCM_16")
    if starts is None:
        (corpus / "song.lab").write_text("\n".join(" ".join(line) for line in words if line), encoding="utf-8")
        return
    ends = [*starts[1:], audio.duration_sec]
    intervals = [Interval(start, end, " ".join(line)) for start, end, line in zip(starts, ends, words, strict=True)]
    if starts[0] > 0:
        intervals.insert(0, Interval(0.0, starts[0], ""))
    rows = [  # one tier, in Praat's long form
        'File type = "ooTextFile"', 'Object class = "TextGrid"', "", "xmin = 0", f"xmax = {audio.duration_sec:.6f}",
        "tiers? <exists>", "size = 1", "item []:", "    item [1]:", '        class = "IntervalTier"',
        '        name = "voice"', "        xmin = 0", f"        xmax = {audio.duration_sec:.6f}",
        f"        intervals: size = {len(intervals)}",
    ]  # fmt: skip
    for i, interval in enumerate(intervals, start=1):
        text = interval.text.replace('"', '""')
        rows += [f"        intervals [{i}]:", f"            xmin = {interval.start_sec:.6f}",
                 f"            xmax = {interval.end_sec:.6f}", f'            text = "{text}"']  # fmt: skip
    (corpus / "song.TextGrid").write_text("\n".join(rows) + "\n", encoding="utf-8")


def _aligned(tiers: Mapping[str, Sequence[Interval]], words: Sequence[Sequence[str]]) -> Aligned:
    """Return the words of the lyrics, in order, with the times of the tier, and the phones within each."""
    missing = [name for name in ("words", "phones") if name not in tiers]
    if missing:
        raise BackendError(f"mfa wrote no tier {' and no tier '.join(missing)}, only {', '.join(tiers) or 'none'}")
    spoken = [interval for interval in tiers["words"] if interval.text not in SILENT]
    expected = [(word, line) for line, names in enumerate(words) for word in names]
    if len(spoken) != len(expected):
        raise BackendError(
            f"mfa aligned {len(spoken)} of {len(expected)} characters; it leaves out lines that do not fit the "
            f"recording: check that the lyrics are those that are sung"
        )
    for interval, (word, line) in zip(spoken, expected, strict=True):
        if interval.text not in {word, word.lower(), "<unk>"}:
            raise BackendError(f"mfa aligned {interval.text!r} where line {line + 1} of the lyrics has {word!r}")
    characters = tuple(
        Character(word, interval.start_sec, interval.end_sec, line)
        for interval, (word, line) in zip(spoken, expected, strict=True)
    )
    phones = []
    at = 0
    for phone in tiers["phones"]:
        middle = (phone.start_sec + phone.end_sec) / 2
        while at < len(characters) and characters[at].end_sec <= middle:
            at += 1
        if at < len(characters) and characters[at].start_sec <= middle and phone.text not in SILENT:
            phones.append(Phone(phone.text, phone.start_sec, phone.end_sec, at))
    return Aligned(characters, tuple(phones))


def read_textgrid(path: str | os.PathLike[str]) -> dict[str, list[Interval]]:
    """Read the tiers of intervals of a TextGrid, in Praat's long or short form."""
    place = Path(path)
    try:
        if place.stat().st_size > LARGEST_TEXTGRID:
            raise UnreadableFileError(f"{path} has more than {LARGEST_TEXTGRID} bytes; is it a TextGrid?")
        content = place.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableFileError(f"{path} cannot be read as a TextGrid in UTF-8: {error}") from error
    reader = _Tokens(content, str(path))
    if [reader.text(), reader.text()] != ["ooTextFile", "TextGrid"]:
        raise UnreadableFileError(f"{path} does not begin as a TextGrid does; expected ooTextFile, TextGrid")
    reader.number(), reader.number()
    tiers: dict[str, list[Interval]] = {}
    if reader.next(2, "<exists>") != "exists":
        return tiers
    for _ in range(reader.count()):
        kind, name = reader.text(), reader.text().rpartition(" - ")[2]  # the aligner writes `speaker - words`
        if kind != "IntervalTier" or name in tiers:
            raise UnreadableFileError(f"{path}: tier {name!r} is {kind}, or there twice; expected tiers of intervals")
        reader.number(), reader.number()
        tiers[name] = reader.intervals(name)
    return tiers


class _Tokens:
    """The numbers, quoted strings and flags of a TextGrid in their order; all other words are decoration."""

    def __init__(self, content: str, path: str) -> None:
        self._tokens = iter(_TOKEN.finditer(content))
        self._path, self._at = path, 0

    def next(self, group: int, expected: str) -> str:
        match = next(self._tokens, None)
        if match is None or match[group] is None:
            got = "the end of the file" if match is None else match[0]
            raise UnreadableFileError(f"{self._path}: expected {expected} after character {self._at}, got {got}")
        self._at = match.end()
        return match[group]

    def text(self) -> str:
        return self.next(1, "a text in quotes").replace('""', '"')

    def number(self) -> float:
        return float(self.next(3, "a number"))

    def count(self) -> int:
        number = self.number()
        if number < 0 or number != int(number):
            raise UnreadableFileError(f"{self._path}: expected a count before character {self._at}, got {number}")
        return int(number)

    def intervals(self, tier: str) -> list[Interval]:
        rows: list[Interval] = []
        for _ in range(self.count()):
            interval = Interval(self.number(), self.number(), self.text().strip())
            last = rows[-1].end_sec if rows else 0.0
            if not last - 1e-3 <= interval.start_sec < interval.end_sec:
                raise UnreadableFileError(
                    f"{self._path}: tier {tier!r} has {interval.text!r} from {interval.start_sec} s to "
                    f"{interval.end_sec} s after {last} s; times must increase"
                )
            rows.append(interval)
        return rows
