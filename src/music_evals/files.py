"""Files: read with errors that say what to do, written whole or not at all; the cache folder, and the one store."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import shutil
import stat
import tempfile
import unicodedata
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from music_evals.errors import InvalidInputError, MusicEvalsError, NoDataError, OutputError, UnreadableFileError

LOGGER = logging.getLogger(__name__)

CACHE_VARIABLE = "MUSIC_EVALS_CACHE"

UNSENT: Final = ".cache/huggingface"
"""Folder that `huggingface_hub` never uploads, wherever it is."""

STALE_SEC = 86_400.0
"""A part of a file that nobody has written to for so long is of a writer that was killed."""

_POINTER: Final = b"version https://git-lfs.github.com/spec/v1"
"""How each pointer file of Git LFS begins: https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md."""
_NAME, _PATH = 255, 3000  # bytes of a name, and of a path; with the folder that it starts from, systems take 4,096
_TABLES: Final = frozenset({".parquet", ".arrow", ".csv", ".json", ".jsonl"})


def check_no_pointer(start: bytes, place: object) -> None:
    """Raise `UnreadableFileError` where a file begins as a pointer of Git LFS, which stands for another file."""
    if start.startswith(_POINTER):
        raise UnreadableFileError(
            f"{place}: a Git LFS pointer, not the file that it stands for; run `git lfs pull` in its repository"
        )


def check_no_pointer_in(path: str | os.PathLike[str]) -> None:
    """Raise as `check_no_pointer` of a file on this machine; an OSError of the system is left to the caller."""
    with Path(path).open("rb") as file:
        check_no_pointer(file.read(len(_POINTER)), path)


def check_no_pointers_below(folder: str | os.PathLike[str]) -> None:
    """Raise as `check_no_pointer` of the tables in a folder; nothing happens for what is no folder."""
    for path in sorted(Path(folder).rglob("*")) if os.path.isdir(folder) else ():  # noqa: PTH112
        if path.suffix.lower() in _TABLES and path.is_file():
            check_no_pointer_in(path)


@contextlib.contextmanager
def reading(path: object) -> Iterator[None]:
    """Turn what the system says of a user's file, within what opens or reads it, into named errors."""
    shown = f"{path!s:.300}".encode(errors="backslashreplace").decode()
    try:
        yield
    except MusicEvalsError:
        raise
    except FileNotFoundError:
        raise NoDataError(f"{shown}: no such file; check the path") from None
    except (OSError, ValueError) as error:  # ValueError: a null byte, or half a character, in its name
        reason = getattr(error, "strerror", None) or error
        raise UnreadableFileError(f"{shown}: cannot be read ({reason}); check the path") from error


def check_path(text: str, prefix: str = "no path can be") -> None:
    """Raise `InvalidInputError` where no file system takes a text for a path: a null byte, half a character, length."""
    shown = f"{text:.60}".encode("ascii", "backslashreplace").decode()
    try:
        names = os.fsencode(text).split(b"/")
    except UnicodeEncodeError:
        names = [b"\0"]
    if any(b"\0" in name for name in names) or max(map(len, names)) > _NAME or sum(map(len, names)) > _PATH:
        raise InvalidInputError(
            f"{prefix} {shown!r}: it holds a null byte or half a character, or has more than {_NAME} bytes "
            f"in a name or {_PATH} in all"
        )


def decode_text(content: bytes, place: object) -> str:
    """Return the text of a UTF-8 file, with its line ends and without a byte order mark.

    Raises `UnreadableFileError`, with place and line: not UTF-8, or a pointer of Git LFS.
    """
    check_no_pointer(content, place)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        is_utf_16 = content.startswith((b"\xff\xfe", b"\xfe\xff"))
        known, kind = ("since it is", "UTF-16") if is_utf_16 else ("if it is", "GBK")
        raise UnreadableFileError(
            f"{place}, line {line} cannot be read: not UTF-8; convert the file, {known} {kind} by "
            f"`iconv -f {kind} -t UTF-8 OLD > NEW`"
        ) from error


def parse_json(text: str | bytes, place: str, expected: str = "") -> Any:
    """Return what a text in JSON of the user holds.

    Raises `UnreadableFileError`, which names the place and what is `expected` there: not JSON, nested too deeply, or a
    key that comes twice in one object, of which Python alone would keep the last.
    """
    if isinstance(text, bytes):
        text = decode_text(text, place)

    def unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        mapping = dict(pairs)
        if len(mapping) < len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise UnreadableFileError(
                f"{place}: the key {twice!r} comes more than once in one object; keep one of them"
            )
        return mapping

    try:
        return json.loads(text, object_pairs_hook=unique)
    except UnreadableFileError:
        raise
    except (ValueError, RecursionError) as error:  # nested thousands deep is JSON that Python cannot read
        reason = "nested too deeply" if isinstance(error, RecursionError) else error
        raise UnreadableFileError(f"{place} is not JSON ({reason}){expected and f'; expected {expected}'}") from error


def json_lines(content: str | bytes, place: object) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line number, object) of each line that is not empty.

    Raises `UnreadableFileError`, which names the line, as `parse_json`, and for half a character: it fits no record.
    """
    text = decode_text(content, place) if isinstance(content, bytes) else content
    # a text may hold other characters that str.splitlines takes for ends of lines
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        where = f"{place}, line {number}"
        row = parse_json(line, where, "JSON lines, one object a line")
        if not isinstance(row, dict):
            raise UnreadableFileError(f"{where} holds a {type(row).__name__}; expected one object a line")
        try:
            json.dumps(row, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise UnreadableFileError(
                f"{where} is not JSON (half a character: surrogates not allowed); expected one object a line"
            ) from error
        yield number, row


def item_name(name: object) -> str:
    """Return the name of an item in Unicode's form NFC: by it references and estimates are matched.

    Some systems write file names with accents as two characters (form NFD). They look the same, and mean the same.
    """
    text = unicodedata.normalize("NFC", str(name))
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise InvalidInputError(f"the name {text!a} is no text in UTF-8; rename the file")
    return text


def check_folder(path: str | os.PathLike[str], setting: str) -> None:
    """Raise `InvalidInputError` where no folder can be, whatever the rights: at a file, or for too long a name."""
    for place in (Path(path), *Path(path).parents):
        try:
            is_folder = stat.S_ISDIR(place.stat().st_mode)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except PermissionError:
            return  # what may not be looked at cannot be written to either, which is said then
        except OSError as error:
            shown = f"{str(path)[:40]}..., of {len(os.fsencode(path))} bytes"
            raise InvalidInputError(
                f"`{setting}` cannot be {shown} ({error.strerror}); choose another folder"
            ) from error
        if not is_folder:
            raise InvalidInputError(f"`{setting}` needs a folder, and {place} is a file; choose another folder")
        return


def cache_folder(name: str) -> Path:
    """Return ``$MUSIC_EVALS_CACHE/<name>``, or ``~/.cache/music_evals/<name>``; it may not exist."""
    root = os.environ.get(CACHE_VARIABLE)
    return (Path(root) if root else Path.home() / ".cache" / "music_evals") / name


@contextlib.contextmanager
def written_whole(
    path: str | os.PathLike[str], *, parents: bool = False, sync: bool = True, parts: str = ""
) -> Iterator[Path]:
    """Yield the place for a new file beside `path`; when the block ends well, the file is moved to `path`.

    Any number of processes and machines may write the same file at once: one of them wins, whole. `parents` makes the
    folders that are missing. `sync` waits until the file is on the disk; one that is checked when it is read, as in
    `Store`, can do without. `parts` is the folder below that of `path`, made where it is missing, for the file until it
    is whole: `UNSENT` where the folder is uploaded as it is, as somebody may be killed.

    Raises `OutputError`: the folder is missing, cannot be made, is full or not writable. No part of a file is left
    behind, and a file that was there is kept.
    """
    target = Path(path)
    if parents:
        _make_folder(target.parent)
    part = target.parent / parts / f".{target.name}.{uuid.uuid4().hex}.part"
    if parts:
        _make_folder(part.parent)
    try:
        yield part
        if sync:
            with part.open("r+b") as file:
                os.fsync(file.fileno())
        part.replace(target)
    except OSError as error:
        raise OutputError(
            f"{target}: cannot be written ({error.strerror}); check that the folder exists and has room"
        ) from error
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


def write_atomically(
    path: str | os.PathLike[str], content: bytes, *, parents: bool = False, sync: bool = True, parts: str = ""
) -> Path:
    """Write a file whole or not at all, as `written_whole`; return its path."""
    with written_whole(path, parents=parents, sync=sync, parts=parts) as part:
        part.write_bytes(content)
    return Path(path)


@contextlib.contextmanager
def folder_written_whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a new folder beside `path`; when the block ends well, it takes the place of what was there.

    The caller checks first what stands there. `OutputError`: it cannot be written; what was there is kept.
    """
    target = Path(path)
    part, old = (target.with_name(f".{target.name}.{uuid.uuid4().hex}.{suffix}") for suffix in ("part", "old"))
    try:
        part.mkdir(parents=True)
        yield part
        if target.exists():
            target.replace(old)
        part.replace(target)
    except OutputError:
        raise
    except OSError as error:
        raise OutputError(
            f"{target}: cannot be written ({error.strerror}); check that the folder above exists and has room"
        ) from error
    finally:
        if old.exists() and not target.exists():  # the second move failed
            old.replace(target)
        for folder in (part, old):
            shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """Yield an empty folder that lasts as long as the block; raise `OutputError` where the system can make none."""
    try:
        made = tempfile.TemporaryDirectory(prefix="music_evals_", ignore_cleanup_errors=True)
    except OSError as error:
        raise OutputError(f"no folder can be made in TMPDIR ({error.strerror}); make room or name another") from error
    with made as folder:
        yield Path(folder)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(
            f"{folder}: cannot be made ({error.strerror}); choose another folder, one that can be written to"
        ) from error


def private_folder(path: str | os.PathLike[str]) -> Path:
    """Make a folder, close it to all but its owner, whatever the umask, and return it."""
    folder = Path(path)
    _make_folder(folder)
    with contextlib.suppress(PermissionError):  # of a folder of somebody else, who decides
        folder.chmod(0o700)
    return folder


class Store:
    """Bytes by key in files: what was worked out once is read the next time.

    A file holds one entry: a line with its key and a checksum, then the bytes. Any number of processes may share the
    folder, on one machine or on several: nothing is locked, an entry is moved into its place whole, and of several
    writers of one entry one wins. An entry that is damaged, or that stands for another key, counts as missing: a
    warning is logged, and the next `put` replaces it. With a store or without one, the numbers are the same: where the
    folder cannot be read or written, or is full, that is logged once, and nothing more is kept. Entries lie in the
    folder as ``<2 digits>/<digest>.entry``; it is made with the first of them.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self._tidied = self._closed = self._warned = False

    def path(self, key: Mapping[str, Any]) -> Path:
        """Return where the entry of a key lies; a key is all that the bytes depend on, as plain values."""
        text = json.dumps(key, sort_keys=True)  # ASCII: half of a surrogate pair in a text is kept as it is
        digest = hashlib.sha256(text.encode()).hexdigest()
        return self.folder / digest[:2] / f"{digest}.entry"

    def get(self, key: Mapping[str, Any]) -> bytes | None:
        """Return what is stored under a key, or None."""
        path = self.path(key)
        try:
            entry = path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            self._warn(f"{path}: cannot be read ({error.strerror})")
            return None
        head, _, content = entry.partition(b"\n")
        if head != _head(key, content):
            LOGGER.warning("%s: damaged, or of another key; the entry is worked out again", path)
            return None
        return content

    def put(self, key: Mapping[str, Any], content: bytes) -> None:
        """Store bytes under a key, in place of those that were there; nothing is left behind where that fails."""
        if self._closed:
            return
        path = self.path(key)
        try:
            # not synchronised: an entry that a power cut leaves empty is damaged, and damage is found when it is read
            write_atomically(path, _head(key, content) + b"\n" + content, parents=True, sync=False)
        except OutputError as error:
            # shared file systems refuse to replace what somebody reads, or report a move that was made as failed
            if self.get(key) is None:
                self._closed = True
                self._warn(str(error))
                return
        if not self._tidied:  # in one folder of 256: with every process it is another one
            self._tidied = True
            self._remove_stale(path.parent.glob(_PARTS))

    def try_out(self) -> None:
        """Write and remove a file: what workers cannot keep is logged by the process that people see."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.folder) as file:
                file.write(bytes(2**16))
        except OSError as error:
            self._closed = True
            self._warn(f"{self.folder}: cannot be written to ({error.strerror})")

    def _warn(self, reason: str) -> None:
        """Log, the first time, that entries cannot be had or kept."""
        if not self._warned:
            LOGGER.warning("%s; the run goes on without, and works out again what is not there", reason)
        self._warned = True

    def size(self) -> int:
        """Return the bytes of all entries."""
        total = 0
        for path in self.folder.glob(f"??/{_ENTRIES}"):
            with contextlib.suppress(FileNotFoundError):  # somebody clears the store
                total += path.stat().st_size
        return total

    def clear(self) -> None:
        """Remove every entry, and what writers left that were killed; other files and the folder stay."""
        for path in self.folder.glob(f"??/{_ENTRIES}"):
            path.unlink(missing_ok=True)
        self._remove_stale(self.folder.glob(f"??/{_PARTS}"))

    def _remove_stale(self, parts: Iterable[Path]) -> None:
        """Remove parts of entries that nobody writes any more, by the clock of the file system and not by our own."""
        try:
            with tempfile.TemporaryFile(dir=self.folder) as new:
                now = os.fstat(new.fileno()).st_mtime
        except OSError:  # nothing is lost by leaving them
            return
        for part in parts:
            with contextlib.suppress(OSError):  # it was moved into its place in the meantime
                if now - part.stat().st_mtime > STALE_SEC:
                    part.unlink(missing_ok=True)


_ENTRIES, _PARTS = "*.entry", ".*.entry.*.part"


def _head(key: Mapping[str, Any], content: bytes) -> bytes:
    text = json.dumps(key, sort_keys=True).encode()
    return b'{"key":%b,"sha256":"%b"}' % (text, hashlib.sha256(content).hexdigest().encode())
