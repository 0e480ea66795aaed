"""Files of the Hub as URLs: what is known of them, and that they are fetched as they are."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from music_evals.locations import hash_file

from .hub_house import House
from .hub_server import Blob

SMALL, LARGE = b"a small file", b"one in large storage" * 1000

READ = """
from pathlib import Path
from music_evals.errors import MusicEvalsError
from music_evals.locations import fetched, files_below, fingerprints, location

def told(place, content):
    if isinstance(content, MusicEvalsError):
        return f"{{type(content).__name__}}: {{content}}"
    try:
        with fetched(str(place), content, max_bytes=10**6) as path:
            return content, Path(path).read_bytes().decode()
    except MusicEvalsError as error:
        return f"{{type(error).__name__}}: {{error}}"

place = location({url!r})
places = [place] if {single} else [found for _, found in files_below(place)]
result = {{str(place): told(place, content) for place, content in fingerprints(places).items()}}
"""


def dataset(house: House, name: str, *, private: bool = False) -> str:
    """Make a data set of a small and a large file, and return its id."""
    hub, repository = house.hub, f"{house.org}/{name}"
    hub.put("dataset", repository, {"songs/small.mid": SMALL.decode()})
    repo = hub.repo("dataset", repository)
    sha256 = hashlib.sha256(LARGE).hexdigest()
    hub.large[sha256] = LARGE
    blob = Blob(sha256=sha256, large_size=len(LARGE))
    repo.add("main", repo.head.sha, "a large file", {**repo.head.tree, "songs/deep/C# big.wav": blob})
    repo.private = private
    return repository


def read(house: House, url: str, *, single: bool = False, token: str | None = None) -> dict[str, Any]:
    found: dict[str, Any] = house.client.python(READ.format(url=url, single=single), token=token)
    return found


def test_the_fingerprint_is_the_hash_that_the_hub_has(house: House, tmp_path: Path) -> None:
    repository = dataset(house, "songs")
    (tmp_path / "large").write_bytes(LARGE)
    git = hashlib.sha1(b"blob %d\0" % len(SMALL) + SMALL).hexdigest()  # noqa: S324 (git's own)
    folder = f"hf://datasets/{repository}/songs"
    expected = {
        f"{folder}/deep/C# big.wav": [hash_file(tmp_path / "large"), LARGE.decode()],  # as of the same file on a disk
        f"{folder}/small.mid": [f"git:{git}", SMALL.decode()],
    }
    assert read(house, folder) == expected
    for url, told in expected.items():
        assert read(house, url, single=True) == {url: told}


def test_a_revision_is_read_as_it_was(house: House) -> None:
    repository = dataset(house, "revised")
    commit = house.hub.repo("dataset", repository).head.sha
    house.hub.put("dataset", repository, {"songs/small.mid": "another one"})
    pinned, newest = (f"hf://datasets/{repository}{at}/songs/small.mid" for at in (f"@{commit}", ""))
    assert read(house, pinned, single=True)[pinned][1] == SMALL.decode()
    assert read(house, newest, single=True)[newest][1] == "another one"
    house.hub.put("dataset", repository, {"songs/small.mid": "a third"})
    assert read(house, newest, single=True)[newest][1] == "a third"  # nobody remembers the second


def test_what_the_token_may_not_see_and_what_is_not_there(house: House) -> None:
    repository = dataset(house, "private", private=True)
    url = f"hf://datasets/{repository}/songs/small.mid"
    assert read(house, url, single=True, token=house.token)[url][1] == SMALL.decode()
    assert read(house, url, single=True)[url].startswith(f"UnreadableFileError: {url}: not found, or access is denied")
    missing = f"hf://datasets/{dataset(house, 'public')}/songs/none.mid"
    assert read(house, missing, single=True)[missing] == f"NoDataError: {missing}: no such file; check the URL"
