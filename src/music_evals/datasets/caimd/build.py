"""From a copy of the published CaiMD to a folder of Parquet files that `load_dataset` takes.

The folder holds the lyrics of the release, which belong to others: it is for the one who has the copy, and is refused
inside of a git checkout, where it could be committed by mistake.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from music_evals.datasets.caimd.release import FILES, IdMaps, find_release, read_maps, read_song
from music_evals.datasets.caimd.schema import features
from music_evals.datasets.caimd.texts import ANOMALIES, BROKEN, BrokenSongError
from music_evals.datasets.manifest import facts_of, parquet_bytes, rows_sha256
from music_evals.errors import InvalidInputError, NoDataError, OccupiedError
from music_evals.files import write_atomically

__all__ = ["SHARD_SONGS", "BuildSettings", "build_release", "check_out"]

SHARD_SONGS: Final = 250
"""Songs a Parquet file; what is written whole or not at all."""

_RECORDS: Final = ".shards"
_FORM: Final = 1  # of the records: goes up when rows or records change, so that old ones are not found

Progress = Callable[[int, int, str], None]


@dataclasses.dataclass(frozen=True)
class BuildSettings:
    """What is built, and where."""

    source: Path  # folder of the release
    out: Path  # folder to write, outside of any git checkout. A build that was stopped goes on there
    layout: str = "auto"  # see `release.find_release`
    # Folder of the id maps and file of the songs in both releases, where they are not beside the songs.
    maps: Path | None = None
    overlap: Path | None = None
    limit: int | None = None  # first songs of each split; None is all
    strict: bool = False  # raise at the first broken song instead of leaving it out
    allow_git: bool = False  # write into a git checkout all the same

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 1:
            raise InvalidInputError(f"limit must be at least 1, got {self.limit}")


class _Shard(NamedTuple):
    config: str
    split: str
    number: int
    total: int
    songs: tuple[Path, ...]

    @property
    def file(self) -> str:
        return f"data/{self.config}/{self.split}-{self.number:05d}-of-{self.total:05d}.parquet"

    @property
    def record(self) -> str:
        return f"{_RECORDS}/{self.config}-{self.split}-{self.number:05d}-of-{self.total:05d}.json"


def check_out(out: Path, *, allow_git: bool = False) -> None:
    """Refuse a folder inside of a git checkout."""
    target = out.resolve()
    checkout = next((path for path in (target, *target.parents) if (path / ".git").exists()), None)
    if checkout and not allow_git:
        raise OccupiedError(
            f"{out}: lies in the git checkout {checkout}; the lyrics of the release belong to others and must not be "
            "committed by mistake: choose a folder outside, or allow it on purpose"
        )


def build_release(settings: BuildSettings, progress: Progress | None = None) -> dict[str, Any]:
    """Convert a copy of the release."""
    check_out(settings.out, allow_git=settings.allow_git)
    release = find_release(settings.source, settings.layout, settings.overlap)
    maps = read_maps(settings.source, settings.maps)
    shards = []
    for split, songs in release.splits.items():
        parts = [songs[: settings.limit][start : start + SHARD_SONGS] for start in range(0, len(songs), SHARD_SONGS)]
        parts = [part for part in parts if part]
        shards += [_Shard(release.layout, split, number, len(parts), part) for number, part in enumerate(parts)]
    # a card must not offer the songs of two builds as one
    expected = {shard.file for shard in shards}
    present = {path.relative_to(settings.out).as_posix() for path in settings.out.glob("data/**/*.parquet")}
    if others := present - expected:
        raise OccupiedError(
            f"{settings.out}: holds {min(others)} of another build; choose an empty folder or remove that one"
        )
    records, done, total = [], 0, sum(len(shard.songs) for shard in shards)
    for shard in shards:
        records.append(_record(shard, maps, settings))
        done += len(shard.songs)
        if progress:
            progress(done, total, shard.split)
    left_out = [{"song": song, "reason": reason} for song, reason in release.left_out]
    manifest = _manifest(release.layout, shards, records, left_out)
    if not sum(facts["rows"] for facts in manifest["files"].values()):
        raise NoDataError(
            f"{settings.source}: all {total} songs are broken, the first: {manifest['left_out'][-1]['reason']}"
        )
    write_atomically(settings.out / "README.md", _card(manifest).encode(), parents=True)
    write_atomically(settings.out / "manifest.json", _json(manifest), parents=True)  # last: it vouches for everything
    return manifest


def _record(shard: _Shard, maps: IdMaps, settings: BuildSettings) -> dict[str, Any]:
    """Return what is known of a shard; build it if there is no record, or if its songs are not those of the record."""
    record, data = settings.out / shard.record, settings.out / shard.file
    identity = _identity(shard, maps)
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError):  # never built, or cut: it is built now
        known: dict[str, Any] = json.loads(record.read_text(encoding="utf-8"))
        same = known["identity"] == identity and hashlib.sha256(data.read_bytes()).hexdigest() == known["sha256"]
        if same and not (settings.strict and known["left_out"]):
            return known
    rows: list[dict[str, Any]] = []
    left_out: list[dict[str, str]] = []
    anomalies: Counter[str] = Counter()
    for folder in shard.songs:
        try:
            song = read_song(folder, maps, settings.source)
        except BrokenSongError as error:
            if settings.strict:
                raise
            left_out.append({"song": folder.name, "kind": error.kind, "reason": str(error)})
            continue
        rows.append(song.row)
        anomalies += song.anomalies
    content = parquet_bytes(rows, features())
    facts = {
        "left_out": left_out,
        "anomalies": dict(anomalies),
        "digests": {row["id"]: _digests(row) for row in rows},
        "identity": identity,
        **facts_of(rows, content),
    }
    write_atomically(data, content, parents=True)
    write_atomically(record, _json(facts), parents=True)
    return facts


def _identity(shard: _Shard, maps: IdMaps) -> str:
    """Return a digest of what the rows of a shard are made from: sizes and times of the files, as `make` sees them."""
    songs = []
    for folder in shard.songs:
        stamps: list[list[int]] = []
        for name in FILES:
            stamps.append([])
            with contextlib.suppress(OSError):
                facts = (folder / name).stat()
                stamps[-1] = [facts.st_size, facts.st_mtime_ns]
        songs.append([folder.name, stamps])
    reported = json.dumps([_FORM, list(maps), songs], ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(reported.encode()).hexdigest()


def _digests(row: Mapping[str, Any]) -> dict[str, str]:
    """Return what two songs are compared by."""
    parts = {
        "structure": [[part["label"], part["lines"], part["rhyme"]] for part in row["structure"]],
        "words": [[part["label"], part["lines"]] for part in row["structure"]],
        "lines": [part["lines"] for part in row["structure"]],
        "meta": [row["title"], row["artist"], row["genre"], row["album"]],
    }
    return {name: rows_sha256([{name: part}])[:16] for name, part in parts.items()}


def _manifest(
    layout: str, shards: Sequence[_Shard], records: Sequence[Mapping[str, Any]], left_out: list[dict[str, str]]
) -> dict[str, Any]:
    anomalies: Counter[str] = sum((Counter(record["anomalies"]) for record in records), Counter())
    broken = [entry for record in records for entry in record["left_out"]]
    kinds = Counter(entry["kind"] for entry in broken)
    # songs that agree in structure, in words with headers, in lines alone and in meta; each group once, by the most
    groups: dict[str, dict[str, list[str]]] = {"structure": {}, "words": {}, "lines": {}, "meta": {}}
    for record in records:
        for song, digests in record["digests"].items():
            for name, known in groups.items():
                known.setdefault(digests[name], []).append(song)
    duplicates = {name: [songs for songs in known.values() if len(songs) > 1] for name, known in groups.items()}
    for name, stronger in (("words", ("structure",)), ("lines", ("structure", "words"))):
        known_already = [songs for other in stronger for songs in duplicates[other]]
        duplicates[name] = [songs for songs in duplicates[name] if songs not in known_already]
    return {
        "source": "a local copy of the published CaiMD; lyrics and descriptions are third-party",
        "layout": layout,
        "songs": sum(len(shard.songs) for shard in shards),
        "left_out": [*left_out, *broken],
        "broken": {kind: kinds[kind] for kind in BROKEN if kinds[kind]},
        "anomalies": {name: anomalies[name] for name in ANOMALIES if anomalies[name]},
        "duplicates": duplicates,
        "files": {
            shard.file: {key: record[key] for key in ("rows", "sha256", "rows_sha256")}
            for shard, record in zip(shards, records, strict=True)
        },
    }


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode()


_CARD = """---
pretty_name: CaiMD ({layout}), converted from a local copy
license: other
license_name: third-party-lyrics
language: [zh]
configs:
- config_name: {layout}
  default: true
  data_files:
{data_files}
---

# CaiMD ({layout}), converted from a local copy

Do not upload or pass on this folder: the lyrics belong to their authors and publishers, and the MIT notice of the
release cannot grant rights in them. The release asks that it be used for academic purposes.

Columns and source: the card of `datasets_scripts/caimd` in `music_evals`. Cite Wang et al., MuChin, IJCAI 2024.

| Split | Songs |
|---|---|
{splits}

{n_left_out} of {n_folders} folders were left out; `manifest.json` names them.

| Found | Count | What it is |
|---|---|---|
{anomalies}

Songs that agree with another: {n_structure} groups in words and patterns, {n_words} in words alone, {n_lines} in words
under other headers, {n_meta} in title, performers, genre and album; `manifest.json` lists them.
"""


def _card(manifest: Mapping[str, Any]) -> str:
    layout = manifest["layout"]
    songs: Counter[str] = Counter()
    for name, facts in manifest["files"].items():
        songs[Path(name).name.split("-")[0]] += facts["rows"]
    problems = [(name, count, BROKEN[name]) for name, count in manifest["broken"].items()]
    problems += [(name, count, ANOMALIES[name]) for name, count in manifest["anomalies"].items()]
    return _CARD.format(
        layout=layout,
        data_files="\n".join(f'  - {{split: {split}, path: "data/{layout}/{split}-*.parquet"}}' for split in songs),
        splits="\n".join(f"| `{split}` | {count} |" for split, count in songs.items()),
        n_left_out=len(manifest["left_out"]),
        n_folders=manifest["songs"] + len(manifest["left_out"]) - sum(manifest["broken"].values()),
        anomalies="\n".join(f"| `{name}` | {count} | {meaning} |" for name, count, meaning in problems),
        **{f"n_{name}": len(groups) for name, groups in manifest["duplicates"].items()},
    )
