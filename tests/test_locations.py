"""What a text means, what is known of a file at a URL before it is read, and that what is fetched is that file."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path, PurePath

import fsspec
import pytest
from tests.web import WebServer

from music_evals.errors import (
    FileTooLargeError,
    InvalidInputError,
    MissingBackendError,
    MusicEvalsError,
    NoDataError,
    OutputError,
    UnreadableFileError,
)
from music_evals.locations import (
    LISTED_FROM,
    Remote,
    fetched,
    files_below,
    fingerprints,
    folder_of,
    hash_file,
    location,
    read_bytes,
    resolve,
    without_suffix,
)

FILES = {"a.wav": b"first", "C# 50%.wav": b"second", "deep/b.mid": b"third", "deep/a-b/c.wav": b"fourth"}


@pytest.fixture
def web() -> Iterator[WebServer]:
    with WebServer({f"music/{name}": content for name, content in FILES.items()}) as server:
        yield server


@pytest.fixture
def memory() -> Iterator[str]:
    system = fsspec.filesystem("memory")
    for name, content in FILES.items():
        system.pipe(f"/music/{name}", content)
    yield "memory://music"
    system.rm("/music", recursive=True)


def fingerprint(url: str) -> str:
    (found,) = fingerprints([Remote(url)]).values()
    if isinstance(found, MusicEvalsError):
        raise found
    return found


def fetch(url: str, content: str, **options: object) -> bytes:
    with fetched(url, content, **{"max_bytes": 1000, **options}) as path:
        return Path(path).read_bytes()


def refuse(url: str, content: str) -> None:
    with fetched(url, content, max_bytes=1000) as path:
        message = f"reference: {path}: no music"
        raise UnreadableFileError(message)


class TestMeaning:
    def test_a_scheme_makes_a_url_and_nothing_else_does(self, tmp_path, monkeypatch):
        for text in ("a.wav", "/data/a.wav", "a=b/c", "C:a", "file:/a.wav", ""):
            assert location(text) == Path(text)
        assert location("s3://bucket/a.wav") == Remote("s3://bucket/a.wav")
        assert location("HTTPS://host/") == Remote("https://host/")
        assert location("file:///data/a b.wav") == Path("/data/a b.wav")
        assert location(Path("s3://bucket")) == Path("s3:/bucket")
        monkeypatch.chdir(tmp_path)
        (tmp_path / "s3:" / "bucket").mkdir(parents=True)
        assert location("s3://bucket") == Path("s3:/bucket")  # it exists
        assert location("s3://" + 300 * "x") == Remote("s3://" + 300 * "x")  # too long for a path

    @pytest.mark.parametrize(
        "text",
        [
            "ftp://host/a.wav", "ssh://host/a.wav", "github://a:b@main/c", "data://text", "zip://a.wav::s3://bucket/b.zip",
            "simplecache::https://host/a.wav", "https://host/a.zip::zip://b", "file://host/a.wav",
        ],
    )  # fmt: skip
    def test_what_is_not_opened(self, text):
        with pytest.raises(InvalidInputError, match=r"is not opened; expected a path, or a URL|names another machine"):
            location(text)

    @pytest.mark.parametrize(
        "text",
        [
            "https://me:SECRET@host/a.wav", "https://SECRET@host/a.wav", "https://host/a.wav?token=SECRET",
            "https://host/a.wav?SECRET", "http://host/a.wav#SECRET", "s3://key:SECRET@bucket/a.wav",
            "s3://bucket/a.wav?X-Amz-Signature=SECRET", "abfs://me:SECRET@account.host/a.wav", "file://x:SECRET@h/a",
            "ftp://me:SECRET@host/a?b", "hf://x:SECRET@b/c",
        ],
    )  # fmt: skip
    def test_what_may_hold_a_secret_is_refused_without_telling_it(self, text):
        with pytest.raises(InvalidInputError) as refused:
            location(text)
        assert "SECRET" not in str(refused.value)

    def test_what_only_looks_like_a_secret(self):
        for text in (
            "s3://b/C# What?.wav", "hf://datasets/o/n@refs%2Fpr%2F1/a.wav", "abfs://box@account.host/a.wav", "gs://b/a@b",
        ):  # fmt: skip
            assert location(text) == Remote(text)

    def test_parts(self):
        place = location("s3://bucket/songs/C# (1).WAV")
        assert (place.name, place.stem, place.suffix) == ("C# (1).WAV", "C# (1)", ".WAV")
        assert str(place.parent) == "s3://bucket/songs"
        assert str(place.parent / "../edits/a.wav") == "s3://bucket/edits/a.wav"
        assert str(location("https://host/list.csv").parent / "C# 50%.wav") == "https://host/C%23%2050%25.wav"
        assert location("https://host/C%23%2050%25.wav").name == "C# 50%.wav"
        for path in ("../a.wav", "x/../../a.wav", "/a.wav"):
            with pytest.raises(InvalidInputError, match=r"is no path below s3://bucket, where its manifest lies"):
                location("s3://bucket/list.csv").parent / path

    def test_names_in_records(self):
        assert without_suffix("x/a.b.wav") == "x/a.b"
        assert without_suffix("https://host/x/a.wav") == "https://host/x/a"
        assert folder_of("a.wav") == "."
        assert folder_of("x/a.wav") == "x"
        assert folder_of("https://host/x/a.wav") == "https://host/x"

    def test_what_a_manifest_names(self, tmp_path):
        here, there = tmp_path, Remote("https://host/lists")
        assert resolve(here, "x/a.wav") == tmp_path / "x/a.wav"
        assert resolve(here, "/data/a.wav") == Path("/data/a.wav")
        assert resolve(here, "file:///data/a.wav") == Path("/data/a.wav")
        assert resolve(here, "s3://bucket/a.wav") == Remote("s3://bucket/a.wav")
        assert resolve(there, "x/a.wav") == Remote("https://host/lists/x/a.wav")
        assert resolve(there, "s3://bucket/a.wav") == Remote("s3://bucket/a.wav")
        for text in ("file:///etc/passwd", "memory://a.wav"):
            with pytest.raises(InvalidInputError, match="cannot name files of this machine"):
                resolve(there, text)
        with pytest.raises(InvalidInputError, match="is no path below https://host"):
            resolve(there, "/etc/passwd")


class TestFolders:
    def test_files_come_in_one_order_from_everywhere(self, web, memory, tmp_path):
        for name, content in FILES.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        expected = [(str(name), place.read_bytes()) for name, place in files_below(tmp_path)]
        assert len(expected) == len(FILES)
        for folder in (memory, f"{web.url}/music/", f"{web.url}/music"):
            place = location(folder)
            assert (place.is_dir(), place.is_file()) == (True, False)
            assert [(str(name), read_bytes(file)) for name, file in files_below(place)] == expected

    def test_files_and_what_is_not_there(self, web, memory):
        for folder in (memory, f"{web.url}/music"):
            file, missing = location(f"{folder}/a.wav"), location(f"{folder}/none.wav")
            assert (file.is_file(), file.is_dir()) == (True, False)
            assert (missing.is_file(), missing.is_dir()) == (False, False)
            with pytest.raises(NoDataError, match=r"none\.wav"):
                read_bytes(missing)

    def test_a_folder_below_that_cannot_be_listed_is_not_passed_over(self, web):
        for status, error in {403: UnreadableFileError, 404: NoDataError, 500: UnreadableFileError}.items():
            web.statuses["music/deep/"] = status
            with pytest.raises(error, match=f"{web.url}/music/: "):
                list(files_below(location(f"{web.url}/music/")))
        with WebServer({}) as gone:
            pass
        with pytest.raises(UnreadableFileError, match="ClientConnectorError"):
            list(files_below(location(f"{gone.url}/music/")))

    def test_nothing_is_read_of_what_is_listed(self, web):
        places = [place for _, place in files_below(location(f"{web.url}/music/"))]
        assert len(set(fingerprints(places).values())) == len(FILES)
        assert [f"GET music/{name}" for name in FILES if f"GET music/{name}" in web.asked] == []


class TestFingerprints:
    @pytest.mark.parametrize("versions", ["ETag", "Last-Modified"])
    def test_of_the_web(self, web, versions):
        web.versions = versions
        url = f"{web.url}/music/a.wav"
        before = fingerprint(url)
        assert before.startswith("url:")
        assert fingerprint(url) == before
        web.files["music/a.wav"] = b"other"
        assert fingerprint(url) != before
        web.files["music/b.wav"] = b"other"
        assert fingerprint(f"{web.url}/music/b.wav") != fingerprint(url)  # an ETag is that of one address

    def test_a_server_that_tells_no_version(self, web):
        web.versions = ""
        with pytest.raises(UnreadableFileError, match=r"a\.wav"):
            fingerprint(f"{web.url}/music/a.wav")

    def test_another_process_finds_the_same(self, web):
        url = f"{web.url}/music/a.wav"
        code = f"from music_evals.locations import *; print(*fingerprints([location({url!r})]).values())"
        environment = {**os.environ, "PYTHONHASHSEED": "1"}
        told = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        assert told.stdout.strip() == fingerprint(url)

    def test_many_of_one_folder_are_asked_for_at_once(self, monkeypatch):
        system = fsspec.filesystem("memory")
        places = [location(f"memory://many/{number}.wav") for number in range(LISTED_FROM)]
        for place in places[1:]:
            system.pipe(place.url.removeprefix("memory:/"), place.url.encode())
        singly = {place: fingerprint(place.url) for place in places[1:]}
        asked = []
        ask = Remote.ask
        monkeypatch.setattr(Remote, "ask", lambda place, **options: asked.append(place) or ask(place, **options))
        found = fingerprints(places)
        assert {place: found[place] for place in places[1:]} == singly
        assert asked == places[:1]  # it is not in the list
        assert isinstance(found[places[0]], NoDataError)
        system.rm("/many", recursive=True)

    def test_a_listing_that_does_not_tell_enough(self, memory, monkeypatch):
        places = [location(f"{memory}/a.wav")] * LISTED_FROM + [location(f"{memory}/C# 50%.wav")]
        expected = {place: fingerprint(place.url) for place in places}
        system = type(fsspec.filesystem("memory"))
        bare = [{"name": "/music/a.wav", "type": "file", "size": 5}]
        monkeypatch.setattr(system, "ls", lambda *_, **__: bare)
        monkeypatch.setattr("music_evals.locations.LISTED_FROM", 2)
        assert fingerprints(places) == expected

    def test_a_folder_is_no_file(self, memory):
        with pytest.raises(NoDataError):
            fingerprint(f"{memory}/deep")


class TestWhatIsWrong:
    """One named error each, with the URL and without secrets."""

    @pytest.mark.parametrize("status", [401, 403])
    def test_refused(self, web, status):
        web.statuses["music/a.wav"] = status
        with pytest.raises(UnreadableFileError, match=rf"a\.wav: not found, or access is denied \({status}\)"):
            fingerprint(f"{web.url}/music/a.wav")

    def test_a_server_that_fails(self, web):
        web.statuses["music/a.wav"] = 500
        with pytest.raises(UnreadableFileError, match=r"a\.wav"):
            fingerprint(f"{web.url}/music/a.wav")

    def test_nobody_answers(self):
        with WebServer({}) as gone:
            pass
        with pytest.raises(UnreadableFileError, match=r"cannot be read \(ClientConnectorError: Cannot connect"):
            fingerprint(f"{gone.url}/a.wav")

    def test_what_a_server_sends_on_to_is_not_told(self, web):
        web.moved["music/a.wav"] = f"{web.url}/elsewhere?signature=SECRET"
        web.statuses["elsewhere"] = 500
        with pytest.raises(UnreadableFileError, match="cannot be read") as told:
            fingerprint(f"{web.url}/music/a.wav")
        assert "SECRET" not in str(told.value)

    def test_a_package_is_missing(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "s3fs", None)
        with pytest.raises(MissingBackendError, match="'s3fs'"):
            fingerprint("s3://bucket/a.wav")


class TestFetching:
    def test_a_path_is_taken_as_it_is(self):
        with fetched("some/a.wav", "whatever", max_bytes=1) as path:
            assert path == "some/a.wav"

    def test_a_copy_has_the_bytes_and_the_suffix_and_goes_away(self, web, memory, tmp_path):
        for url in (f"{web.url}/music/C%23%2050%25.wav", f"{memory}/C# 50%.wav"):
            with fetched(url, fingerprint(url), max_bytes=1000, folder=tmp_path) as path:
                copy = Path(path)
                assert copy.read_bytes() == b"second"
                assert copy.suffix == ".wav"
                assert copy.is_relative_to(tmp_path)
            assert list(tmp_path.iterdir()) == []

    def test_a_file_that_changed_is_not_taken(self, web, memory):
        for url in (f"{web.url}/music/a.wav", f"{memory}/a.wav"):
            before = fingerprint(url)
            web.files["music/a.wav"] = b"other"
            fsspec.filesystem("memory").pipe("/music/a.wav", b"other")
            with pytest.raises(UnreadableFileError, match=r"a\.wav"):
                fetch(url, before)

    def test_no_more_is_read_than_allowed(self, web):
        url = f"{web.url}/music/a.wav"
        assert fetch(url, fingerprint(url), max_bytes=5) == b"first"
        with pytest.raises(FileTooLargeError, match=r"a\.wav"):
            fetch(url, fingerprint(url), max_bytes=4)

    def test_a_hash_that_is_known_is_held_against_the_bytes(self, memory, tmp_path):
        url = f"{memory}/a.wav"
        copy = tmp_path / "a"
        copy.write_bytes(b"first")
        assert fetch(url, hash_file(copy)) == b"first"
        assert fetch(url, "git:fe4f02ad058b43f6ed467fdf65b935107529564b") == b"first"  # of `git hash-object`
        for other in (hash_file(copy)[::-1], "git:" + 40 * "0"):
            with pytest.raises(UnreadableFileError, match="changed"):
                fetch(url, other)

    def test_errors_name_the_url_and_not_the_copy(self, memory):
        url = f"{memory}/a.wav"
        with pytest.raises(UnreadableFileError, match=r"^reference: memory://music/a\.wav: no music$"):
            refuse(url, fingerprint(url))

    def test_no_room_for_a_copy(self, memory, tmp_path, monkeypatch):
        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(Remote, "blocks", full)
        with pytest.raises(OutputError, match=f"{tmp_path}: cannot hold a copy of memory://music/a.wav"):
            fetch(f"{memory}/a.wav", "url:0", folder=tmp_path)


def test_the_order_of_names_is_that_of_paths():
    assert PurePath("a/b") < PurePath("a-b")  # as parts, not as characters
