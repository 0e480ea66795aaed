"""The finished songs of a study as a data set: Parquet in the schema of CaiMD with a card, and the release's files.

People are numbers that say nothing of who they are: a keyed hash of their number in the study. Whoever withdrew has
taken their songs out of the finished ones before (`services.managing.withdraw`), so that nothing of theirs is here.

On the Hub an export is private unless it is asked for otherwise, and always what the study holds now.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import io
import json
import os
import secrets
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from music_evals.caimap.domain.values import FinishedSong
from music_evals.caimap.exchange.rows import AS_PUBLISHED, row_of
from music_evals.datasets.caimd.schema import features
from music_evals.datasets.caimd.writing import write_release
from music_evals.errors import InvalidInputError, NoDataError, OccupiedError, OutputError
from music_evals.files import write_atomically
from music_evals.hub.client import Hub
from music_evals.hub.folders import SentFolder, send_folder

__all__ = ["Exported", "Publication", "anonymous", "export_songs", "publish_songs", "read_key"]

KEY_BYTES: Final = 32
SPLIT: Final = "test"


class Exported(NamedTuple):
    """What an export wrote; `people` are those of the study itself."""

    folder: Path
    songs: int
    people: int


def anonymous(person: int, key: bytes) -> str:
    """Return what a person is called in an export: the same for the same key, and not to be traced without it."""
    return f"p_{hmac.new(key, str(person).encode(), hashlib.sha256).hexdigest()[:12]}"


def read_key(path: Path) -> bytes:
    """Return the key of a study's exports, made at the first one, or at one of several, and its owner's alone to read.

    Raises `OutputError`: it cannot be written or read; `InvalidInputError`: the file holds something else.
    """
    try:
        if not path.exists():
            _make_key(path)
        key = bytes.fromhex(path.read_text(encoding="ascii"))
    except OSError as error:
        raise OutputError(f"{path}: the key of the exports cannot be kept ({error.strerror})") from error
    except ValueError as error:
        raise InvalidInputError(f"{path} holds no key; move it away to get a new one, and new names") from error
    if len(key) != KEY_BYTES:
        raise InvalidInputError(f"{path} holds a key of {len(key)} bytes; move it away to get a new one, and new names")
    return key


def _make_key(path: Path) -> None:
    """Write a new key, unless another process is quicker: a link, unlike a move, takes nothing's place."""
    part = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.fchmod(descriptor, 0o600)  # the umask may have taken from it
        os.write(descriptor, secrets.token_hex(KEY_BYTES).encode())
        os.fsync(descriptor)
        with contextlib.suppress(FileExistsError):
            os.link(part, path)
    finally:
        os.close(descriptor)
        part.unlink()


def export_songs(finished: Sequence[FinishedSong], out: Path, *, key: bytes, title: str = "") -> Exported:
    """Write the songs of `services.managing.finished_songs` into a new or empty folder that `load_dataset` reads.

    ``data/songs`` holds the rows of CaiMD, ``data/work`` who made them under names that say nothing (by the key of
    `read_key`), what they consented to and the licence of each song; ``release/`` is the same in the files of the
    published release. The title is that of the study, for the card.

    Raises `NoDataError` where no song is finished, `InvalidInputError` for a song without a licence, or whose id or
    texts the release's files cannot hold, and `OutputError` where the folder is not empty, or cannot be written to.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq
    from datasets import Features, List, Value

    if not finished:
        raise NoDataError("no song of this study is finished; nothing can be exported")
    bare = [item.song.id for item in finished if not item.song.licence.strip()]
    if bare:
        raise InvalidInputError(
            f"{len(bare)} songs have no licence, such as {bare[0]}; say under which their recording and lyrics are, in "
            "the column `licence` of the table that is imported"
        )
    if out.exists() and any(out.iterdir()):
        raise OccupiedError(f"{out} holds something; name a new or empty folder")
    rows = [row_of(item) for item in finished]
    write_release(rows, out / "release")
    work = [_work(item, key) for item in finished]
    text = Value("string")
    lists = {"structure": List(text), "automatic": List({"field": text, "program": text})}
    names = ("id", "theme", "professional", "amateur", "consent", "licence")
    columns = Features({**dict.fromkeys(names, text), **lists, "readings": List(List(text))})
    for config, table, schema in (("songs", rows, features()), ("work", work, columns)):
        sink = io.BytesIO()
        pq.write_table(pa.Table.from_pylist(table, schema=schema.arrow_schema), sink, compression="zstd")
        path = out / f"data/{config}/{SPLIT}-00000-of-00001.parquet"
        write_atomically(path, sink.getvalue(), parents=True)
    here = [row for row in work if row["consent"] != AS_PUBLISHED]
    people = {name for row in here for name in (*row["structure"], row["professional"], row["amateur"])}
    card = _card(finished, title or "a study of CaiMAP", len(people))
    write_atomically(out / "README.md", card.encode())
    return Exported(out, len(rows), len(people))


def _work(finished: FinishedSong, key: bytes) -> dict[str, Any]:
    return {
        "id": finished.song.id,
        "theme": finished.structure.theme or None,
        "readings": [list(part.readings) for part in finished.structure.sections],
        "structure": [anonymous(person, key) for person in finished.structure_people],
        "professional": anonymous(finished.professional_person, key),
        "amateur": anonymous(finished.amateur_person, key),
        "consent": finished.consent,
        "licence": finished.song.licence,
        "automatic": [{"field": field, "program": program} for field, program in finished.song.automatic],
    }


_HERE: Final = """\
{n_songs} were annotated on the platform of `music_evals` (`music-evals caimap`) by {n_people} people: structure by two
professionals, congruent or settled by an inspector; a description by a professional and one by an amateur, who listened
to the whole song first; a sample of descriptions was scored by inspectors."""

_ELSEWHERE: Final = """\
{n_songs} were annotated elsewhere and taken in finished: how, and by whom, is not known here. In `work` they stand
in the name of two accounts that are nobody, with the consent "as published"."""

_CARD: Final = """---
pretty_name: {quoted}
license: other
license_name: see-the-column-licence
language: [zh]
tags: [music, lyrics, music-description, caimap]
configs:
- config_name: songs
  default: true
  data_files:
  - {{split: test, path: "data/songs/test-*.parquet"}}
- config_name: work
  data_files:
  - {{split: test, path: "data/work/test-*.parquet"}}
---

# {title}

{n_songs} songs. {origin}

- `songs`: the columns of CaiMD (`datasets_scripts/caimd` of `music_evals` explains them).
- `work`: joined by `id`: who annotated what, under names that say nothing of them, the version of the text that they
  consented to, the theme of the lyrics, the licence of the song, and what a program had written before people corrected
  it (`automatic`). `readings`: of each section, how the last character of each line is read where an annotator
  corrected it (pinyin with its tone, 5 for none), else an empty text.
- `release/`: the same songs in the files of the published CaiMD, which `build.py` of `caimd` reads.

Whoever withdrew is not in it. Recordings are not part of it.

| licence of recording and lyrics | songs |
|---|---|
{licences}
"""


def _card(finished: Sequence[FinishedSong], title: str, n_people: int) -> str:
    counts = Counter(item.song.licence for item in finished)
    licences = "\n".join(f"| {' '.join(name.split())} | {n} |" for name, n in sorted(counts.items()))
    plain = " ".join(title.split())
    elsewhere = sum(item.consent == AS_PUBLISHED for item in finished)
    origin = [_HERE.format(n_songs=len(finished) - elsewhere, n_people=n_people)] if elsewhere < len(finished) else []
    origin += [_ELSEWHERE.format(n_songs=elsewhere)] if elsewhere else []
    return _CARD.format(
        title=plain,
        quoted=json.dumps(plain, ensure_ascii=False),
        n_songs=len(finished),
        origin="\n\n".join(origin),
        licences=licences,
    )


TITLE: Final = "CaiMAP: {count} songs"


class Publication(NamedTuple):
    """What was sent, and how many songs the data set holds now."""

    sent: SentFolder
    songs: int


def publish_songs(
    finished: Sequence[FinishedSong],
    name: str,
    *,
    key: bytes,
    title: str = "",
    public: bool = False,
    adopt: bool = False,
    hub: Hub | None = None,
) -> Publication:
    """Put the finished songs of a study on the Hub, in one commit; what they do not hold any more goes.

    Earlier commits stay in the history of the data set, and with them what somebody handed in who withdrew since.
    Songs, key and title are those of `export_songs`, the other parameters those of `hub.folders.send_folder`; so are
    the errors.
    """
    with tempfile.TemporaryDirectory() as folder:
        exported = export_songs(finished, Path(folder) / "export", key=key, title=title)
        commit_title = TITLE.format(count=exported.songs)
        sent = send_folder(exported.folder, name, title=commit_title, public=public, adopt=adopt, hub=hub)
    return Publication(sent, exported.songs)
