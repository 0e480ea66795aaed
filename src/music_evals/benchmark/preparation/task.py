"""Songs prepared from end to end: settings in; records, lead sheets and a data set with config ``automatic`` out."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from music_evals.audio.extraction import receipt
from music_evals.benchmark.preparation.contract import Column, Song
from music_evals.benchmark.preparation.job import Key, PreparationJob, Wanted
from music_evals.benchmark.preparation.lead_sheet import FEATURES
from music_evals.benchmark.preparation.steps import STEPS, in_waves, with_earlier
from music_evals.benchmark.run import Progress, Row, record
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
    wanted = [_wanted(name, settings) for name in with_earlier(settings.steps or list(STEPS))]
    latest = _record(wanted, songs, settings, progress)
    failures = [(f"{song} {step}", row["error"]) for (song, step), row in latest.items() if "error" in row]
    rows = [_row(song, latest) for song in songs]
    data = out / CONFIG / "test-00000-of-00001.parquet"
    _write_parquet(rows, data)
    card = write_atomically(out / "README.md", _card(wanted, len(songs), len(failures)).encode())
    return Prepared(rows, failures, {"records": out / RECORDS, "data": data, "card": card})


def _wanted(name: str, settings: Settings) -> Wanted:
    step = STEPS[name]
    options = {option: getattr(settings, option) for option in step.options}
    return Wanted(step, options, step.about(options))


def _record(
    wanted: Sequence[Wanted], songs: Sequence[Song], settings: Settings, progress: Progress | None
) -> dict[Key, Row]:
    """Do what is left, one wave of steps after the other, and return the last record of each song and step."""
    header = {
        "task": "preparation",
        "features": receipt(features=FEATURES),
        "versions": package_versions(_PACKAGES),
    }
    known = {one.step.name: one for one in wanted}
    path = Path(settings.out) / RECORDS
    latest: dict[Key, Row] = {}
    n_done, n_all = 0, len(songs) * len(wanted)
    for wave in in_waves(list(known)):
        job = PreparationJob(header, songs, [known[name] for name in wave], Path(settings.out), dict(latest))
        own = None if progress is None else _within(progress, n_done, n_all)
        records = record(job, path, settings, progress=own)
        settings = dataclasses.replace(settings, overwrite=False)  # what the first wave wrote is to stay
        latest |= job.latest(records)
        n_done += job.size
    return {
        (song.song, name): latest[song.song, name] for song in songs for name in known if (song.song, name) in latest
    }


def _within(progress: Progress, start: int, total: int) -> Progress:
    """Return the progress of one wave among all."""
    return lambda done, _, label: progress(start + done, total, label)


def _row(song: Song, latest: Mapping[Key, Row]) -> dict[str, Any]:
    """Return the row of a song: what every step made, and what failed."""
    mine = {step: latest[song.song, step] for step in STEPS if (song.song, step) in latest}
    filled = {
        column.name: column.value(mine.get(step.name, {}).get("value"))
        for step in STEPS.values()
        for column in step.columns
    }
    failures = [{"step": step, "error": row["error"]} for step, row in mine.items() if "error" in row]
    return {"song": song.song, **filled, "failures": failures}


_FAILURES: Final = [{"step": "string", "error": "string"}]


def _columns() -> list[Column]:
    return [column for step in STEPS.values() for column in step.columns]


def _write_parquet(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    import datasets

    kinds = {"song": "string", **{column.name: column.kind for column in _columns()}, "failures": _FAILURES}
    features = datasets.Features({name: _feature(kind) for name, kind in kinds.items()})
    columns = {name: [row[name] for row in rows] for name in features}
    with written_whole(path, parents=True) as part:
        datasets.Dataset.from_dict(columns, features=features).to_parquet(part)


def _feature(kind: Any) -> Any:
    """Return the feature of `datasets` for the kind of a column."""
    import datasets

    if isinstance(kind, Mapping):
        return {name: _feature(inner) for name, inner in kind.items()}
    return datasets.List(_feature(kind[0])) if isinstance(kind, list) else datasets.Value(kind)


def _card(wanted: Sequence[Wanted], n_songs: int, n_failures: int) -> str:
    table = "\n".join(
        f"| `{one.step.name}` | {one.step.source} | {one.step.licence} | {one.step.sure} |" for one in wanted
    )
    columns = "\n".join(f"| `{name}` | {text} |" for column in _columns() for name, text in column.what.items())
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
ask before publishing them. A column of a step that was not done is empty.

| step | source | licence | how sure |
|---|---|---|---|
{table}

| column | what it holds |
|---|---|
| `song` | name of the song's files without ending, with its folder |
{columns}
| `failures` | steps that failed, and why |
"""
