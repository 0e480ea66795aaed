"""Songs prepared from end to end: settings in; records, lead sheets and a data set with config ``automatic`` out."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

from music_evals.audio.extraction import receipt
from music_evals.benchmark.columns import dump_json
from music_evals.benchmark.run import Progress, Row, record
from music_evals.benchmark.run import Settings as RunSettings
from music_evals.errors import InvalidInputError, NoDataError, UnknownNameError
from music_evals.files import item_name, write_atomically, written_whole
from music_evals.numerics import package_versions
from music_evals.options import MISSING, option
from music_evals.preparation.contract import Column, Corpus, Described, Song, Step
from music_evals.preparation.embeddings import write_embeddings
from music_evals.preparation.job import Key, PreparationJob, Wanted
from music_evals.preparation.lead_sheet import FEATURES
from music_evals.preparation.steps import CORPUS_STEPS, STEPS, all_steps, in_waves, with_earlier
from music_evals.protocols import MUSIC_ENCODERS, LyricWriter

__all__ = ["CONFIG", "RECORDS", "Prepared", "Settings", "find_songs", "run_preparation"]

RECORDS: Final = "preparation"
"""File of the records, in the folder of a run."""

_AUDIO: Final = (".wav", ".flac", ".ogg", ".mp3", ".m4a")
_LYRICS: Final = (".lrc", ".txt")
_PACKAGES: Final = ("music_evals", "numpy", "scipy", "librosa", "soxr", "soundfile", "pypinyin", "pypinyin-dict")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings(RunSettings):
    """Which songs are prepared, and how; what is not said here `run.Settings` and the options say.

    `songs` is a folder, searched with its sub-folders. `steps` are out of `steps.all_steps`, and with each those that
    it needs; where it is empty: all that can be done with what is there and named (`Prepared.left_out` says which not,
    and why). `encoder` is a name out of `protocols.MUSIC_ENCODERS` (``NAME@REVISION`` at a commit), a folder, or
    ``NAME=ID`` for another model of the same class. `n_clusters` are at most as many as songs; None is 1,000, or as
    many as songs have an embedding where these are fewer. `sample` songs are drawn as evenly from clusters as possible,
    by `seed`; None draws none. `theme_writer` is ``model`` with perhaps ``endpoint`` and ``api_key_env``, as
    `benchmark.inputs.load_lyric_writer` takes them, or a `protocols.LyricWriter`. Raises `UnknownNameError` for a step
    that does not exist.
    """

    songs: str | os.PathLike[str] = option(
        MISSING, "folder with recordings, and lyrics as .lrc or .txt of the same name", flag="songs", group="data"
    )
    steps: Sequence[str] = ()
    encoder: str | None = option(
        None,
        f"{', '.join(MUSIC_ENCODERS)}, or a folder; NAME@REVISION at a commit, NAME=ID for another model of its class. "
        "audio-statistics needs no weights: means and deviations of timbre and pitch classes",
        group="clusters",
        metavar="NAME",
    )
    device: str | None = option(
        None, "where encoder and demucs compute, as cpu or cuda:1 (default: a GPU if any)", group="clusters"
    )
    trust_remote_code: bool = option(False, "run Python code that comes with the encoder", group="clusters")
    n_clusters: int | None = option(
        None, "at most as many as songs (default: 1000, or as many as songs)", group="clusters"
    )
    sample: int | None = option(None, "draw N songs, as evenly from clusters as possible", group="clusters")
    demucs: str | None = option(
        None, "its command, by name or path (default: demucs)", group="stems", metavar="COMMAND"
    )
    stem_model: str = option("htdemucs", "model of demucs (default: %(default)s)", group="stems", metavar="NAME")
    two_stems: bool = option(
        False, "two stems in place of voice, drums, bass, other", flag="--voice-and-rest", group="stems"
    )
    theme_writer: Mapping[str, Any] | LyricWriter | None = None
    seed: int = option(0, "of clusters and sample (default: %(default)s)", group="clusters", metavar="SEED")

    GROUPS: ClassVar = {
        "data": "", "run": "", "output": "", "clusters": "embeddings and clusters", "themes": "themes", "stems": "stems"
    }  # fmt: skip
    TEXTS: ClassVar = {
        "out": "folder for records, what steps make and the data set",
        "limit": "take the first N songs only",
        "overwrite": "start afresh in the folder, whatever it holds",
        **dict.fromkeys(("dataset", "config", "split", "revision", "confidence", "n_resamples", "report")),
    }

    BOUNDS: ClassVar = {**RunSettings.BOUNDS, "n_clusters": (1, 1_000_000), "sample": (1, sys.maxsize)}
    PATHS = ("out", "songs")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in self.steps:
            if name not in all_steps():
                raise UnknownNameError("step", name, all_steps())


@dataclasses.dataclass(frozen=True)
class Prepared:
    """What a run of preparation made."""

    rows: list[dict[str, Any]]  # one a song, as in the data set
    failures: list[tuple[str, str]]  # song with step (a step over all songs alone), and why it failed
    files: dict[str, Path]
    """``records``, ``data`` and ``card``; where there are such, ``embeddings``, ``clusters`` and ``table``, songs as
    ``caimap import`` takes them."""
    left_out: dict[str, str]  # step that was not asked for by name -> why it was left out


def find_songs(folder: str | os.PathLike[str], out: str | os.PathLike[str] | None = None) -> list[Song]:
    """Return the songs of a folder and its sub-folders, sorted by id; the folder `out` is left out.

    Raises `NoDataError`: no such folder, or nothing in it that is a recording or lyrics; `InvalidInputError`: two
    recordings, or two files of lyrics, of one name.
    """
    root = Path(folder)
    files_by_song: dict[str, dict[str, str]] = {}
    made = None if out is None else Path(out).resolve()
    for path in sorted(root.rglob("*")) if root.is_dir() else ():
        ending = path.suffix.lower()
        kind = "audio" if ending in _AUDIO else "lyrics" if ending in _LYRICS else ""
        if not kind or not path.is_file() or (made is not None and path.resolve().is_relative_to(made)):
            continue
        name = item_name(path.relative_to(root).with_suffix("").as_posix())
        other = files_by_song.setdefault(name, {}).setdefault(kind, str(path))
        if other != str(path):
            raise InvalidInputError(f"{other} and {path} are both the {kind} of song {name}; take one away")
    if not files_by_song:
        raise NoDataError(f"{folder}: no recording ({', '.join(_AUDIO)}) and no lyrics ({', '.join(_LYRICS)}) in it")
    return [Song(name, **files) for name, files in sorted(files_by_song.items())]


def run_preparation(settings: Settings, *, progress: Progress | None = None) -> Prepared:
    """Do all steps for all songs, and write records, what steps made, and a data set that `load_dataset` reads.

    A run that was killed, or whose songs have changed since, does what is left. What failed is tried again.

    Before anything is done it raises `NoDataError` and `InvalidInputError` as `find_songs` does, or for a setting that
    no step reads, and `MissingBackendError` or `ModelUnavailableError` where a step was asked for and what it needs is
    missing; `OtherResultsError` where `out` holds what other versions of the extractors made.
    """
    out = Path(settings.out)
    songs = find_songs(settings.songs, out)[: settings.limit]
    names, left_out = _chosen(settings, songs)
    _check(settings, names, len(songs))
    options = {name: _options(all_steps()[name], settings) for name in names}
    about = {name: all_steps()[name].about(options[name]) for name in names}
    wanted = [Wanted(STEPS[name], options[name], about[name]) for name in names if name in STEPS]
    latest, path = _record(wanted, songs, settings, progress)
    failures = [(f"{song} {step}", row["error"]) for (song, step), row in latest.items() if "error" in row]
    answers = {key: row["value"] for key, row in latest.items() if "value" in row}
    summaries: dict[str, Any] = {}
    for name in (name for name in names if name in CORPUS_STEPS):
        step = CORPUS_STEPS[name]
        read = {  # of the songs that have all that the step reads
            song.song: {earlier: answers[song.song, earlier] for earlier in step.after}
            for song in songs
            if all((song.song, earlier) in answers for earlier in step.after)
        }
        try:
            by_song, summary = step.does(Corpus(read, options[name], out))
        except (InvalidInputError, NoDataError) as error:  # fewer songs have what it reads than were found
            failures.append((name, f"{type(error).__name__}: {error}"))
            continue
        answers |= {(song, name): answer for song, answer in by_song.items()}
        summaries[name] = {**summary, **about[name]}
    rows = [_row(song, answers, latest) for song in songs]
    made = _Made(out, Path(settings.songs), songs, rows, answers)
    files = {"records": path, **_export(made, [all_steps()[name] for name in names], summaries, len(failures))}
    return Prepared(rows, failures, files, left_out)


def _chosen(settings: Settings, songs: Sequence[Song]) -> tuple[list[str], dict[str, str]]:
    """Return the steps that are done, and why others are not."""
    if settings.steps:
        return with_earlier(settings.steps), {}
    left_out: dict[str, str] = {}
    for name, step in all_steps().items():
        reasons = [f"it needs the step {other}" for other in step.after if other in left_out]
        if isinstance(step, Step):
            reasons += [f"no song has {kind}" for kind in step.needs if all(kind not in song.files for song in songs)]
        reason = step.left_out(_options(step, settings)) or "".join(reasons[:1])
        if reason:
            left_out[name] = reason
    return [name for name in all_steps() if name not in left_out], left_out


def _options(step: Described, settings: Settings) -> dict[str, Any]:
    return {option: getattr(settings, option) for option in step.options}


def _check(settings: Settings, names: Sequence[str], n_songs: int) -> None:
    """Refuse settings of steps that are not done, and more clusters or drawn songs than there are songs."""
    owners = {
        "encoder": "embeddings", "trust_remote_code": "embeddings", "n_clusters": "clusters", "sample": "clusters",
        "demucs": "stems", "stem_model": "stems", "two_stems": "stems", "theme_writer": "themes",
    }  # fmt: skip
    for name, step in owners.items():
        if getattr(settings, name) != getattr(Settings, name) and step not in names:
            raise InvalidInputError(f"`{name}` goes with the step {step}, which is not done; ask for that, or leave it")
    for name in ("n_clusters", "sample"):
        given = getattr(settings, name)
        if given is not None and given > n_songs:
            raise InvalidInputError(f"`{name}` must be at most {n_songs}, the number of songs, got {given}")


def _record(
    wanted: Sequence[Wanted], songs: Sequence[Song], settings: Settings, progress: Progress | None
) -> tuple[dict[Key, Row], Path]:
    """Do what is left, one wave after the other; return the last record of each song and step, and the file."""
    header = {"task": "preparation", "features": receipt(features=FEATURES), "versions": package_versions(_PACKAGES)}
    known = {planned.step.name: planned for planned in wanted}
    path = Path(settings.out) / RECORDS
    latest: dict[Key, Row] = {}
    n_done, n_all = 0, len(songs) * len(wanted)

    def of_all(done: int, _: int, label: str) -> None:
        if progress is not None:
            progress(n_done + done, n_all, label)

    for wave in in_waves(list(known)):
        job = PreparationJob(header, songs, [known[name] for name in wave], Path(settings.out), dict(latest))
        records = record(job, Path(settings.out) / RECORDS, settings, progress=None if progress is None else of_all)
        settings = dataclasses.replace(settings, overwrite=False)  # what the first wave wrote is to stay
        latest |= job.latest(records)
        path = records.path
        n_done += job.size
    keys = [(song.song, name) for song in songs for name in known]
    return {key: latest[key] for key in keys if key in latest}, path


def _row(song: Song, answers: Mapping[Key, Any], latest: Mapping[Key, Row]) -> dict[str, Any]:
    """Return the row of a song: what every step made, and what failed."""
    filled = {
        column.name: column.value(answers.get((song.song, step.name)))
        for step in all_steps().values()
        for column in step.columns
    }
    mine = {step: latest[song.song, step] for step in STEPS if (song.song, step) in latest}
    failures = [{"step": step, "error": row["error"]} for step, row in mine.items() if "error" in row]
    return {"song": song.song, **filled, "failures": failures}


CONFIG: Final = "automatic"
"""Config of the data set."""
EMBEDDINGS: Final = "embeddings"
"""Config of the vectors."""
CLUSTERS, TABLE = "clusters.json", "songs.jsonl"
"""What is to be known of the clusters; and ids and recordings of songs, as ``caimap import`` takes them."""

_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_FILE: Final = "test-00000-of-00001.parquet"
_FAILURES: Final = [{"step": "string", "error": "string"}]


@dataclasses.dataclass(frozen=True)
class _Made:
    """What a run made."""

    out: Path
    source: Path  # folder of the songs
    songs: Sequence[Song]
    rows: Sequence[Mapping[str, Any]]  # one a song
    answers: Mapping[Key, Mapping[str, Any]]


def _export(made: _Made, steps: Sequence[Described], summaries: Mapping[str, Any], n_failures: int) -> dict[str, Path]:
    """Write all files, and return them by kind; those of an earlier run that this one does not make are removed."""
    import datasets

    out = made.out
    files = {
        "data": out / CONFIG / _FILE, "embeddings": out / EMBEDDINGS / _FILE, "clusters": out / CLUSTERS,
        "table": out / TABLE,
    }  # fmt: skip
    kinds = {"song": "string", **{column.name: column.kind for column in _columns()}, "failures": _FAILURES}
    features = datasets.Features({name: _feature(kind) for name, kind in kinds.items()})
    columns = {name: [row[name] for row in made.rows] for name in features}
    with written_whole(files["data"], parents=True) as part:
        datasets.Dataset.from_dict(columns, features=features).to_parquet(part)
    embedded = [song.song for song in made.songs if (song.song, "embeddings") in made.answers]
    table = _table(made)
    if embedded:
        places = [out / made.answers[song, "embeddings"]["vector"] for song in embedded]
        write_embeddings(embedded, places, files["embeddings"])
    if summaries:
        write_atomically(files["clusters"], f"{dump_json(summaries, indent=1)}\n".encode())
    if table:
        write_atomically(files["table"], "".join(f"{dump_json(row)}\n" for row in table).encode())
    for kind, is_made in {"embeddings": embedded, "clusters": summaries, "table": table}.items():
        if not is_made:
            files.pop(kind).unlink(missing_ok=True)
    notes = _notes(len(embedded), summaries, len(table))
    text = _card(steps, len(made.songs), n_failures, notes, [CONFIG, *([EMBEDDINGS] if embedded else [])])
    return {**files, "card": write_atomically(out / "README.md", text.encode())}


def _columns() -> list[Column]:
    return [column for step in all_steps().values() for column in step.columns]


def _feature(kind: Any) -> Any:
    """Return the feature of `datasets` for the kind of a column."""
    import datasets

    if isinstance(kind, Mapping):
        return {name: _feature(inner) for name, inner in kind.items()}
    return datasets.List(_feature(kind[0])) if isinstance(kind, list) else datasets.Value(kind)


def _table(made: _Made) -> list[dict[str, str]]:
    """Return the songs with recording and lyrics, of a sample that alone, as `caimap.exchange` imports them."""
    rows = []
    for song, row in zip(made.songs, made.rows, strict=True):
        if song.audio is None or not (row["sections"] or row["lines"]) or row["sampled"] is False:
            continue
        known = {"audio": Path(song.audio).relative_to(made.source).as_posix()}
        if _ID.fullmatch(song.song):
            rows.append({"id": song.song, **known})
        else:  # a name with a folder or in Chinese cannot be an id of a release
            digest = hashlib.sha256(song.song.encode()).hexdigest()[:16]
            rows.append({"id": f"song-{digest}", "prepared": song.song, **known})
    return rows


def _notes(n_embedded: int, summaries: Mapping[str, Any], n_table: int) -> list[str]:
    """Return what the card says of files beside the data set."""
    notes = []
    if n_embedded:
        notes.append(f"The config `{EMBEDDINGS}` has the vectors of {n_embedded} songs: `song`, `embedding` (float32).")
    if "clusters" in summaries:
        about = summaries["clusters"]
        sampled = "" if about["sample"] is None else f"; {about['sample']} were drawn, evenly from clusters"
        notes.append(
            f"{about['n_songs']} songs stand in {about['n_held']} clusters by the encoder {about['encoder']}, seed "
            f"{about['seed']}{sampled} (`{CLUSTERS}`)."
        )
    if n_table:
        notes.append(f"`{TABLE}` names {n_table} songs with recording and lyrics, for `music-evals caimap import`.")
    return notes


def _card(
    steps: Sequence[Described], n_songs: int, n_failures: int, notes: Sequence[str], configs: Sequence[str]
) -> str:
    table = "\n".join(f"| `{step.name}` | {step.source} | {step.licence} | {step.sure} |" for step in steps)
    columns = "\n".join(f"| `{name}` | {text} |" for column in _columns() for name, text in column.descriptions.items())
    listed = "\n".join(
        f"- config_name: {name}\n  data_files:\n  - split: test\n    path: {name}/test-*.parquet" for name in configs
    )
    extra = "".join(f"\n{note}\n" for note in notes)
    return f"""---
configs:
{listed}
---

# Songs prepared by programs

{n_songs} songs, one row each, joined to other data of theirs by `song`; {n_failures} steps failed, those of a song with
their reason in `failures`. Nothing here was checked by a person. Lyrics, stems and lead sheets have the rights of their
songs: ask before publishing them. A column of a step that was not done is empty.
{extra}
| step | source | licence | how sure |
|---|---|---|---|
{table}

| column | what it holds |
|---|---|
| `song` | name of the song's files without ending, with its folder |
{columns}
| `failures` | steps that failed, and why |
"""
