"""Songs prepared from end to end: settings in; records, lead sheets and a data set with config ``automatic`` out."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from music_evals.audio.extraction import receipt
from music_evals.benchmark.engines import Failed, Unit
from music_evals.benchmark.preparation.lead_sheet import FEATURES
from music_evals.benchmark.preparation.steps import STEPS, Song, StepWork
from music_evals.benchmark.records import Records
from music_evals.benchmark.run import Job, Progress, Row, record
from music_evals.benchmark.run import Settings as RunSettings
from music_evals.benchmark.versions import package_versions
from music_evals.errors import InvalidInputError, NoDataError, UnknownNameError
from music_evals.files import write_atomically, written_whole

__all__ = ["CONFIG", "RECORDS", "Prepared", "Settings", "find_songs", "run_preparation"]

CONFIG: Final = "automatic"
"""Config of the data set."""
RECORDS: Final = "preparation.jsonl"
"""File of the records, in the folder of a run."""

_AUDIO: Final = (".wav", ".flac", ".ogg", ".mp3", ".m4a")
_LYRICS: Final = (".lrc", ".txt")
_ENDINGS: Final = {"midi": ".mid", "musicxml": ".musicxml"}
_PACKAGES: Final = ("music_evals", "numpy", "scipy", "librosa", "soxr", "soundfile", "pypinyin", "pypinyin-dict")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings(RunSettings):
    """Which songs are prepared, and how.

    Parameters
    ----------
    out, limit, engine, workers, ray_address, overwrite
        See `run.Settings`. `limit` takes the first songs.
    songs
        Folder, searched with its sub-folders: recordings, and lyrics as ``.lrc`` or ``.txt`` of the same name.
    steps
        Out of `steps.STEPS`; all where it is empty.

    Raises
    ------
    UnknownNameError
        A step that does not exist.

    """

    songs: str | os.PathLike[str]
    steps: Sequence[str] = ()

    def __post_init__(self) -> None:
        self._local("songs")
        super().__post_init__()
        for name in self.steps:
            if name not in STEPS:
                raise UnknownNameError("step", name, STEPS)


@dataclasses.dataclass(frozen=True)
class Prepared:
    """What a run of preparation made.

    Attributes
    ----------
    rows
        One a song, as in the data set.
    failures
        Song with step, and why it failed.
    files
        ``records``, ``data`` and ``card``.

    """

    rows: list[dict[str, Any]]
    failures: list[tuple[str, str]]
    files: dict[str, Path]


def find_songs(folder: str | os.PathLike[str]) -> list[Song]:
    """Return the songs of a folder and its sub-folders, sorted by id.

    Raises
    ------
    NoDataError
        No such folder, or nothing in it that is a recording or lyrics.
    InvalidInputError
        Two recordings, or two files of lyrics, of one name.

    """
    root = Path(folder)
    found: dict[str, dict[str, str]] = {}
    for path in sorted(root.rglob("*")) if root.is_dir() else ():
        ending = path.suffix.lower()
        kind = "audio" if ending in _AUDIO else "lyrics" if ending in _LYRICS else ""
        if not kind or not path.is_file():
            continue
        name = path.relative_to(root).with_suffix("").as_posix()
        other = found.setdefault(name, {}).setdefault(kind, str(path))
        if other != str(path):
            raise InvalidInputError(f"{other} and {path} are both the {kind} of song {name}; take one away")
    if not found:
        raise NoDataError(f"{folder}: no recording ({', '.join(_AUDIO)}) and no lyrics ({', '.join(_LYRICS)}) in it")
    return [Song(name, **files) for name, files in sorted(found.items())]


def run_preparation(settings: Settings, *, progress: Progress | None = None) -> Prepared:
    """Do all steps for all songs, and write records, lead sheets, and a data set that `load_dataset` reads.

    A run that was killed, or whose songs have changed since, does what is left. What failed is tried again.

    Raises
    ------
    NoDataError, InvalidInputError
        As `find_songs`; nothing was done.
    OtherResultsError
        `out` holds what other versions of the extractors made.

    """
    out = Path(settings.out)
    songs = find_songs(settings.songs)[: settings.limit]
    names = list(dict.fromkeys(settings.steps)) or list(STEPS)
    header = {
        "task": "preparation",
        "features": receipt(features=FEATURES),
        "versions": package_versions(_PACKAGES),
    }
    job = PreparationJob(header, songs, names, out)
    records = record(job, out / RECORDS, settings, progress=progress)
    latest = job.latest(records)
    failures = [(f"{song} {step}", row["error"]) for (song, step), row in latest.items() if "error" in row]
    rows = [_row(song, latest) for song in songs]
    data = out / CONFIG / "test-00000-of-00001.parquet"
    _write_parquet(rows, data)
    card = write_atomically(out / "README.md", _card(names, len(songs), len(failures)).encode())
    return Prepared(rows, failures, {"records": out / RECORDS, "data": data, "card": card})


@dataclasses.dataclass
class PreparationJob(Job):
    """Every step of every song into one record file; lead sheets lie beside it."""

    header: Mapping[str, Any]
    songs: Sequence[Song]
    steps: Sequence[str]
    out: Path

    def __post_init__(self) -> None:
        self.size = len(self.songs) * len(self.steps)
        self._hashes: dict[str | None, str | None] = {None: None}

    @property
    def work(self) -> StepWork:
        """Do the step of a unit."""
        return StepWork()

    def left(self, rows: Records) -> list[Unit]:
        """Leave out what is done with files that are as they were."""
        done = {key for key, row in self.latest(rows).items() if "error" not in row and self._is_whole(row)}
        return [
            Unit((step, song), f"{song.song} {step}", song.song)
            for song in self.songs
            for step in self.steps
            if (song.song, step) not in done
        ]

    def latest(self, rows: Records) -> dict[tuple[str, str], Row]:
        """Return the last record of each song and step that is asked for and was made of the file that is there."""
        last = {(row["song"], row["step"]): row for row in rows.of("preparation")}
        keys = [(song, step) for song in self.songs for step in self.steps]
        return {
            (song.song, step): last[song.song, step]
            for song, step in keys
            if (song.song, step) in last and last[song.song, step]["sha256"] == self._hash(song, step)
        }

    def rows(self, unit: Unit, answer: Any) -> list[Row]:
        """Write the files of an answer, and return its record."""
        name, song = unit.payload
        about: Row = {"kind": "preparation", "song": song.song, "step": name, "sha256": self._hash(song, name)}
        if isinstance(answer, Failed):
            return [about | {"error": answer.reason}]
        value, files = dict(answer), {}
        for key, ending in _ENDINGS.items():
            if key in value:
                content = value.pop(key)
                place = f"lead_sheets/{song.song}{ending}"
                write_atomically(self.out / place, content, parents=True)
                files[place] = hashlib.sha256(content).hexdigest()
                value[key] = place
        return [about | {"value": value, "files": files}]

    def _hash(self, song: Song, step: str) -> str | None:
        """Return the hash of the file that a step reads, None where there is none."""
        path = getattr(song, STEPS[step].needs)
        if path not in self._hashes:
            self._hashes[path] = hashlib.sha256(Path(path).read_bytes()).hexdigest()
        return self._hashes[path]

    def _is_whole(self, row: Row) -> bool:
        paths = {self.out / place: digest for place, digest in row["files"].items()}
        return all(
            path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == digest for path, digest in paths.items()
        )


def _row(song: Song, latest: Mapping[tuple[str, str], Row]) -> dict[str, Any]:
    """Return the row of a song: what every step made, and what failed."""
    mine = {step: row for (name, step), row in latest.items() if name == song.song}
    values = {step: row.get("value", {}) for step, row in mine.items()}
    return {
        "song": song.song,
        "lines": values.get("alignment", {}).get("lines", []),
        "sections": values.get("rhymes", {}).get("sections", []),
        "lead_sheet": values.get("lead_sheet") or None,
        "failures": [{"step": step, "error": row["error"]} for step, row in mine.items() if "error" in row],
    }


def _write_parquet(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    import datasets

    text, number, count = (datasets.Value(kind) for kind in ("string", "float64", "int64"))
    sheet = {"midi": text, "musicxml": text, "bpm": number, "n_notes": count, "n_dropped": count, "off_grid": number}
    features = datasets.Features(
        {
            "song": text,
            "lines": datasets.List({"start_sec": number, "text": text}),
            "sections": datasets.List(
                {"section": text, "lines": datasets.List(text), "rhymes": datasets.List(datasets.Value("bool"))}
            ),
            "lead_sheet": sheet,
            "failures": datasets.List({"step": text, "error": text}),
        }
    )
    columns = {name: [row[name] for row in rows] for name in features}
    with written_whole(path, parents=True) as part:
        datasets.Dataset.from_dict(columns, features=features).to_parquet(part)


def _card(names: Sequence[str], n_songs: int, n_failures: int) -> str:
    table = "\n".join(
        f"| `{one.name}` | {one.source} | {one.licence} | {one.sure} |" for one in map(STEPS.get, names) if one
    )
    return f"""---
configs:
- config_name: {CONFIG}
  data_files:
  - split: test
    path: {CONFIG}/test-*.parquet
---

# Songs prepared by programs

{n_songs} songs, one row each, joined to other data of theirs by `song`; {n_failures} steps of songs failed, each with
its reason in `failures`. Nothing here was checked by a person. Lyrics and lead sheets have the rights of their songs:
ask before publishing them.

| step | source | licence | how sure |
|---|---|---|---|
{table}

| column | what it holds |
|---|---|
| `song` | name of the song's files without ending, with its folder |
| `lines` | lines with the time at which they begin, in seconds |
| `sections` | lines of each section, and for each whether it rhymes with another one of its section |
| `lead_sheet.midi`, `lead_sheet.musicxml` | paths of the two files in this folder |
| `lead_sheet.bpm` | beats a minute |
| `lead_sheet.n_notes`, `lead_sheet.n_dropped` | notes written, and left out because another one fell on their place |
| `lead_sheet.off_grid` | mean distance of onsets from the grid in beats, 0 to 0.25 |
| `failures` | steps that failed, and why |
"""
