"""Songs with known characters: public-domain tunes and words, sung by `voices`, alone or over chords.

The tunes are those of the data set `irish_folk` (train for development, test for the test half), the words the opening
of the Thousand Character Classic (6th century). A character has one note, or two to five; lines end in a breath, and
within a line some characters are followed by a pause or a breath.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from benchmarks.lyric_alignment.voices import CONTROL, RATE, VOICES, Controls, Floats, Phones, SungTruth, Voice, sing

from music_evals.annotations import NOTE_DTYPE, F0Track, Score, Tempo
from music_evals.audio.rendering import render_additive
from music_evals.audio.spectra import HOP_LENGTH

__all__ = ["Song", "f0_truth", "make_song", "mixed", "n_songs"]

ROOT: Final = Path(__file__).resolve().parents[2]
SPLITS: Final = {"development": "train", "test": "test"}
N_SONGS: Final = {"development": 16, "test": 22}
N_LINES: Final = 6
WORDS: Final = {
    "development": "天地玄黄宇宙洪荒日月盈昃辰宿列张寒来暑往秋收冬藏闰余成岁律吕调阳云腾致雨露结为霜金生丽水玉出昆冈",
    "test": "龙师火帝鸟官人皇始制文字乃服衣裳推位让国有虞陶唐吊民伐罪周发殷汤坐朝问道垂拱平章爱育黎首臣伏戎羌",
}
KINDS: Final = {
    **dict.fromkeys(("b", "p", "d", "t", "g", "k"), "stop"),
    **dict.fromkeys(("zh", "ch", "z", "c", "j", "q"), "affricate"),
    **dict.fromkeys(("sh", "s", "x", "h", "f"), "fricative"),
    **dict.fromkeys(("m", "n", "l", "r"), "sonorant"),
}
# Least and greatest length of a consonant, in seconds.
LENGTHS: Final = {
    "none": (0.03, 0.05), "sonorant": (0.05, 0.1), "stop": (0.05, 0.1), "affricate": (0.08, 0.15),
    "fricative": (0.08, 0.16),
}  # fmt: skip
MELISMA: Final = (0.74, 0.13, 0.07, 0.04, 0.02)  # shares of characters with one to five notes
PAUSE, BREATH = 0.06, 0.04  # chance of each after a character within a line
MIX_DB: Final = -6.0  # accompaniment against the voice


class Song(NamedTuple):
    """A song of the benchmark: who is sung, where lines begin, and how it sounds."""

    name: str
    voice: Voice
    characters: tuple[SungTruth, ...]
    controls: Controls
    samples: Floats


def n_songs(half: str) -> int:
    """Return how many songs a half has."""
    return N_SONGS[half]


def make_song(half: str, number: int) -> Song:
    """Return a song, the same at every call."""
    rng = np.random.default_rng([20261125, list(SPLITS).index(half), number])
    voice = VOICES[half][number % len(VOICES[half])]
    tune = _tunes(half)[number]
    characters, breaths = _write(half, tune, voice, rng)
    samples, controls = sing(characters, breaths, voice, rng)
    samples = _in_a_room(samples, rng)
    return Song(f"{half}/{number:02d}", voice, characters, controls, samples)


def mixed(song: Song) -> Floats:
    """Return the song over chords, `MIX_DB` softer than the voice."""
    chords = _accompaniment(song)
    backing = np.zeros(len(song.samples))
    n = min(len(chords), len(backing))
    backing[:n] = chords[:n]
    voiced = song.controls.voice[np.arange(len(backing)) * CONTROL // RATE] > 0.3
    gain = np.sqrt(np.mean(song.samples[voiced] ** 2) / np.mean(backing**2)) * 10 ** (MIX_DB / 20)
    both: Floats = song.samples + gain * backing
    return both


def f0_truth(song: Song) -> F0Track:
    """Return the pitch that was sung, on the frames of the extractors; voiced where the voice sounds."""
    times: Floats = np.arange(1 + len(song.samples) // HOP_LENGTH, dtype=np.float64) * (HOP_LENGTH / RATE)
    grid = np.arange(len(song.controls.pitch)) / CONTROL
    hertz: Floats = 440.0 * 2 ** ((np.interp(times, grid, song.controls.pitch) - 69) / 12)
    voiced = np.interp(times, grid, song.controls.voice) > 0.12
    return F0Track(times, np.where(voiced, hertz, 0.0))


@functools.cache
def _tunes(half: str) -> list[list[tuple[float, int]]]:
    """Return tunes of as many titles, as (quarters, pitch), drawn once for all."""
    import pyarrow.parquet as pq

    folder = ROOT / "datasets_scripts" / "irish_folk" / "data" / "music21_folk_cleared"
    table = pq.read_table(folder / f"{SPLITS[half]}-00000-of-00001.parquet", columns=["family", "notes", "near_train"])
    first: dict[str, Any] = {}
    for row in table.to_pylist():
        if half == "development" or row["near_train"] < 0.9:
            first.setdefault(row["family"], row)
    rng = np.random.default_rng([20261125, 7])
    chosen = rng.permutation(len(first))[: N_SONGS[half]]
    rows = [list(first.values())[i] for i in chosen]
    return [[(note["duration_step"] / 6, note["pitch"]) for note in row["notes"]] for row in rows]


def _write(
    half: str, tune: list[tuple[float, int]], voice: Voice, rng: np.random.Generator
) -> tuple[tuple[SungTruth, ...], list[tuple[float, float]]]:
    """Lay words under a tune."""
    quarter = float(rng.uniform(0.75, 1.0))
    shift = voice.lowest + int(rng.integers(2, 7)) - min(pitch for _, pitch in tune)
    notes = [(max(length, 0.25) * quarter, pitch + shift) for length, pitch in tune]
    words = WORDS[half]
    at, now, word, before = 0, float(rng.uniform(0.6, 1.2)), int(rng.integers(len(words))), "breath"
    written: list[SungTruth] = []
    breaths = [(now - 0.4, now - 0.08)]
    for line in range(N_LINES):
        length = int(rng.integers(6, 10))
        for place in range(length):
            n = 1 + int(rng.choice(5, p=MELISMA))
            group = [notes[(at + i) % len(notes)] for i in range(n)]
            at, text, word = at + n, words[word % len(words)], word + 1
            if place == length - 1:
                group[-1] = (group[-1][0] * 1.4, group[-1][1])
            one, now = _character((text, line, before), group, now, rng)
            _shorten(written, one)
            written.append(one)
            last = place == length - 1
            draw = float(rng.random())
            before = "breath" if last or draw < BREATH else "pause" if draw < BREATH + PAUSE else ""
            rest = {"": 0.0, "pause": rng.uniform(0.13, 0.45), "breath": rng.uniform(0.3, 0.5)}[before]
            if before == "breath":
                quiet = float(rng.uniform(0.0, 0.5)) if last else 0.0
                breaths.append((now + quiet + 0.02, now + quiet + rest - 0.03))
                rest += quiet
            now += rest + (0.14 if before else 0.0)  # room for the consonant after a rest
    return tuple(written), breaths


def _character(
    what: tuple[str, int, str], group: list[tuple[float, int]], beat: float, rng: np.random.Generator
) -> tuple[SungTruth, float]:
    """Return a character, of text, line and rest before it, whose vowel begins on the beat, and the next beat."""
    text, line, before = what
    phones = _phones(text)
    consonant = float(rng.uniform(*LENGTHS[phones.kind]))
    notes: list[tuple[float, float, int]] = []
    now = beat + float(rng.normal(0, 0.012))
    start = now - consonant
    for length, pitch in group:
        if notes and notes[-1][2] == pitch:  # held on
            notes[-1] = (notes[-1][0], now + length, pitch)
        else:
            notes.append((now if notes else start, now + length, pitch))
        now += length
    return SungTruth(text, line, start, now, tuple(notes), before, phones, consonant), now


def _shorten(written: list[SungTruth], one: SungTruth) -> None:
    """End the character before where the next begins, or where its own last note does if there is a rest."""
    if written and not one.before:
        last = written[-1]
        notes = (*last.notes[:-1], (last.notes[-1][0], one.start_sec, last.notes[-1][2]))
        written[-1] = last._replace(end_sec=one.start_sec, notes=notes)


def _in_a_room(samples: Floats, rng: np.random.Generator) -> Floats:
    """Return the samples with a room that dies away within 0.2 to 0.8 s, and with noise 35 to 60 dB below."""
    n = RATE
    time = np.arange(n) / RATE
    tail = rng.standard_normal(n) * 10 ** (-3 * time / rng.uniform(0.2, 0.8))
    tail *= 10 ** (-rng.uniform(8, 20) / 20) / np.linalg.norm(tail)
    tail[0] = 1.0
    size = 1 << (len(samples) + n).bit_length()
    wet = np.fft.irfft(np.fft.rfft(samples, size) * np.fft.rfft(tail, size), size)[: len(samples)]
    noise = rng.standard_normal(len(wet)) * np.sqrt(np.mean(wet**2)) * 10 ** (-rng.uniform(35, 60) / 20)
    heard: Floats = 0.5 * (wet + noise) / np.abs(wet).max()
    return heard


@functools.cache
def _phones(text: str) -> Phones:
    from pypinyin import Style, pinyin

    syllable = pinyin(text, style=Style.NORMAL, v_to_u=False)[0][0]
    initial = next((one for one in sorted(KINDS, key=len, reverse=True) if syllable.startswith(one)), "")
    final = syllable[len(initial) :].replace("yu", "v").replace("y", "i").replace("w", "u")
    nasal = final.endswith(("n", "ng"))
    vowels = tuple(dict.fromkeys(letter for letter in final if letter in "aoeiuv"))
    return Phones(KINDS.get(initial, "none"), vowels or ("e",), nasal)


def _accompaniment(song: Song) -> Floats:
    """Return piano chords and a bass, a triad for each 1.2 s of what is sung."""
    step = 1.2
    end = song.characters[-1].end_sec
    heard = np.zeros((int(end // step) + 1, 12))
    for one in song.characters:
        for start, stop, pitch in one.notes:
            heard[int(start // step), pitch % 12] += stop - start
    triads = [(root, (root + third) % 12, (root + 7) % 12) for root in range(12) for third in (4, 3)]
    tonal = heard.sum(axis=0)
    rows = []
    for i, weights in enumerate(heard):
        root, third, fifth = max(triads, key=lambda triad: (weights + 0.05 * tonal)[list(triad)].sum())
        tick = round(100 * step * i)
        rows += [(tick, 118, 36 + root, 90, 1)]
        rows += [(tick + beat, 55, 60 + degree - (12 if degree > 7 else 0), 70, 0)
                 for beat in (0, 60) for degree in (root, third, fifth)]  # fmt: skip
    table = np.array(sorted(rows, key=lambda row: (row[0], row[4], row[2])), dtype=NOTE_DTYPE)
    score = Score(table, 100, tempos=(Tempo(0, 60.0),), voices=("chords", "bass"), programs=(0, 33))
    return np.asarray(render_additive(score, sample_rate=RATE), dtype=np.float64)
