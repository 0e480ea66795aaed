import pytest

from music_evals.annotations import Score
from music_evals.errors import OutputError, UnknownNameError, UnreadableFileError
from music_evals.files import write_atomically
from music_evals.symbolic.files import READERS, read_score
from music_evals.symbolic.midi import save_midi
from music_evals.symbolic.notes import make_notes


def test_the_suffix_chooses_the_reader(tmp_path):
    score = Score(make_notes([0], [240], [60]), 480)
    for name in ("a.mid", "b.MIDI"):
        assert read_score(save_midi(score, tmp_path / name)).notes.tolist() == score.notes.tolist()
    pytest.importorskip("music21")
    (tmp_path / "c.abc").write_text("X:1\nM:4/4\nL:1/4\nK:C\nCDEF|]\n")
    assert len(read_score(tmp_path / "c.abc").notes) == 4
    for name in ("d.xml", "e.mxl", "f.musicxml"):
        (tmp_path / name).write_text("text")
        with pytest.raises(UnreadableFileError, match=name):
            read_score(tmp_path / name)


def test_other_suffixes_raise(tmp_path):
    for name in ("a.wav", "a", "a.mid.gz"):
        with pytest.raises(UnknownNameError):
            read_score(tmp_path / name)
    with pytest.raises(UnknownNameError):
        read_score("a.mdi")


def test_suffixes():
    assert set(READERS) == {".mid", ".midi", ".rmi", ".musicxml", ".xml", ".mxl", ".abc"}


def test_an_old_file_survives_a_failed_write(tmp_path, monkeypatch):
    path = write_atomically(tmp_path / "a.txt", b"old")

    def full_disk(self, content):
        self.touch()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(path), "write_bytes", full_disk)
    with pytest.raises(OutputError, match="No space left on device"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.txt"]


def test_a_folder_is_made_on_request(tmp_path):
    assert write_atomically(tmp_path / "a" / "b" / "c.txt", b"new", parents=True).read_bytes() == b"new"
    assert write_atomically(tmp_path / "a" / "b" / "c.txt", b"newer", parents=True).read_bytes() == b"newer"
    with pytest.raises(OutputError, match=r"nowhere.*cannot be written"):
        write_atomically(tmp_path / "nowhere" / "c.txt", b"new")
    with pytest.raises(OutputError, match=r"c\.txt"):
        write_atomically(tmp_path / "a" / "b" / "c.txt" / "d.txt", b"new", parents=True)
