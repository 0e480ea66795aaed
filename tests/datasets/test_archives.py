"""Archives that somebody hands in are read, and never trusted."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

from music_evals.datasets.archives import read_archive
from music_evals.errors import FileTooLargeError, NoDataError, UnreadableFileError
from music_evals.symbolic.limits import Limits

MIDI = frozenset({".mid"})


def tar(path: Path, members: dict[str, bytes], *, link: str = "") -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
        if link:
            entry = tarfile.TarInfo("link.mid")
            entry.type, entry.linkname = tarfile.SYMTYPE, link
            archive.addfile(entry)
    return path


def test_files_of_the_kind_come_sorted_and_links_are_passed_over(tmp_path: Path) -> None:
    path = tar(tmp_path / "a.tgz", {"midi/b.mid": b"b", "midi/a.MID": b"a", "notes.txt": b"x"}, link="/etc/passwd")
    assert read_archive(path, MIDI) == [("midi/a.MID", b"a"), ("midi/b.mid", b"b")]
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.tgz"]  # nothing is unpacked


def test_zip(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("x/b.mid", b"b")
    assert read_archive(tmp_path / "a.zip", MIDI) == [("x/b.mid", b"b")]


@pytest.mark.parametrize("name", ["../a.mid", "/a.mid", "x/../../a.mid", "..\\a.mid"])
def test_a_path_that_leaves_the_archive_refuses_it(tmp_path: Path, name: str) -> None:
    with pytest.raises(UnreadableFileError, match="leaves the archive"):
        read_archive(tar(tmp_path / "a.tgz", {name: b"a"}), MIDI)


def test_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tar(tmp_path / "a.tgz", {"a.mid": b"aaaa", "other.bin": b"0" * 100, "b.mid": b"b"})
    with pytest.raises(FileTooLargeError, match=r"a\.mid has more than 3 bytes"):
        read_archive(path, MIDI, limits=Limits(max_bytes=3))
    monkeypatch.setattr("music_evals.datasets.archives.MAX_TOTAL_BYTES", 50)
    with pytest.raises(FileTooLargeError, match="more than 50 bytes"):  # what is passed over is unpacked on the way
        read_archive(path, MIDI)
    monkeypatch.setattr("music_evals.datasets.archives.MAX_MEMBERS", 1)
    with pytest.raises(UnreadableFileError, match="more than 1 files"):
        read_archive(path, MIDI)


def test_no_archive_is_named(tmp_path: Path) -> None:
    with pytest.raises(NoDataError):
        read_archive(tmp_path / "a.tgz", MIDI)
    (tmp_path / "a.tgz").write_bytes(b"no archive")
    with pytest.raises(UnreadableFileError, match="not an archive"):
        read_archive(tmp_path / "a.tgz", MIDI)
    whole = tar(tmp_path / "b.tgz", {"a.mid": bytes(range(256)) * 40}).read_bytes()
    (tmp_path / "b.tgz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UnreadableFileError, match="not an archive"):
        read_archive(tmp_path / "b.tgz", MIDI)
    with pytest.raises(NoDataError, match=r"no file that ends in \.mid"):
        read_archive(tar(tmp_path / "c.tgz", {"a.txt": b"x"}), MIDI)


@pytest.mark.parametrize("packing", ["gz", "bz2", "xz"])
def test_an_archive_that_is_damaged_far_from_its_start_is_named(tmp_path: Path, packing: str) -> None:
    noise = np.random.default_rng(0).bytes(200_000)  # which no packing makes small
    path = tmp_path / f"a.tar.{packing}"
    with tarfile.open(path, f"w:{packing}") as archive:
        for name in ("a.mid", "b.mid"):
            entry = tarfile.TarInfo(name)
            entry.size = len(noise)
            archive.addfile(entry, io.BytesIO(noise))
    whole = bytearray(path.read_bytes())
    whole[len(whole) // 2 : len(whole) // 2 + 5000] = bytes(5000)
    path.write_bytes(whole)
    with pytest.raises(UnreadableFileError, match="not an archive"):
        read_archive(path, MIDI)
