"""Anybody's scores become a data set that trains and is judged."""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.datasets.making import chords, melody, score, write_abc, write_midis

from music_evals.annotations import Score, TimeSignature
from music_evals.datasets import pieces
from music_evals.datasets.corpus import CorpusSettings, build_corpus, score_sources
from music_evals.datasets.manifest import load_split
from music_evals.datasets.pieces import own_names
from music_evals.errors import InvalidInputError, NoDataError, UnknownNameError
from music_evals.symbolic.midi import save_midi
from music_evals.symbolic.notes import make_notes


@pytest.fixture(scope="module", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One for all: what was read once is read no more."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MUSIC_EVALS_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Twelve tunes, three of which come back in other keys, and files that are no tunes."""
    root = tmp_path / "mine"
    write_midis(root, list(range(12)), n_measures=18)
    for seed in range(3):
        save_midi(score([pitch - 3 for pitch in melody(seed, 18)]), root / f"again{seed}.mid")
    save_midi(score(melody(40), meter=(3, 4)), root / "waltz.mid")
    save_midi(chords(melody(41)), root / "chords.mid")
    (root / "broken.mid").write_bytes(b"no MIDI")
    return root


def songs_of(out: Path) -> dict[str, list[str]]:
    """Return song -> its splits."""
    found = defaultdict(set)
    for split in ("train", "validation", "test"):
        for song in load_split(out, "default", split)["song"]:
            found[song].add(split)
    return {song: sorted(splits) for song, splits in found.items()}


@pytest.mark.slow
def test_a_folder_of_midi(folder: Path, tmp_path: Path) -> None:
    steps: list[tuple[int, int, str]] = []
    corpus = build_corpus(
        CorpusSettings(folder, tmp_path / "out", workers=1), progress=lambda *step: steps.append(step)
    )
    songs = songs_of(corpus.folder)
    assert set(songs) == {f"tune{seed:02d}.mid" for seed in range(12)} | {f"again{seed}.mid" for seed in range(3)}
    assert all(len(splits) == 1 for splits in songs.values())
    for seed in range(3):  # settings of one tune stay together
        assert songs[f"tune{seed:02d}.mid"] == songs[f"again{seed}.mid"]
    assert list(corpus.failures) == ["broken.mid"]
    assert {name: reason.partition(":")[0] for name, reason in corpus.left_out.items()} == {
        "chords.mid": "PolyphonyError",
        "waltz.mid": "ContextLengthError",
    }
    manifest = json.loads((corpus.folder / "manifest.json").read_text())
    assert corpus.left_out["waltz.mid"] == (
        "ContextLengthError: 0 measures of four quarters in a row; a window has 16; take measures of four quarters "
        "from the start, `measures='fixed'`"
    )
    assert corpus.left_out["chords.mid"].endswith(
        "while another note sounds; take the highest notes, `voices='skyline'`"
    )
    assert corpus.remarks == ()
    assert manifest["failures"] == corpus.failures
    assert manifest["settings"]["split"] == "8:1:1"
    assert sum(counts["songs"] for counts in corpus.counts.values()) == 15
    assert (18, 18, "reading pieces") in steps


def test_it_is_the_same_again_and_goes_on_where_it_was(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = build_corpus(CorpusSettings(folder, tmp_path / "out", workers=1))
    manifest = (first.folder / "manifest.json").read_text()
    shutil.rmtree(first.folder)
    started: list[str] = []
    original = pieces.ReaderProcess.read
    monkeypatch.setattr(
        pieces.ReaderProcess,
        "read",
        lambda self, item, *, name: started.append(name) or original(self, item, name=name),
    )
    build_corpus(CorpusSettings(folder, tmp_path / "out", workers=1))
    assert (first.folder / "manifest.json").read_text() == manifest
    assert not started  # nothing was read twice


def test_voices_filters_and_shares(folder: Path, tmp_path: Path) -> None:
    settings = CorpusSettings(
        folder, tmp_path / "out", filters="contexts", voices="skyline", split="1:0:1", seed=1, workers=1
    )
    corpus = build_corpus(settings)
    assert corpus.counts["validation"]["songs"] == 0
    assert corpus.counts["test"]["songs"] >= 6
    removed = {step.name: [removal.filename for removal in step.removed] for step in corpus.filters.steps}
    assert removed["only_4_4"] == ["chords.mid", "waltz.mid"]
    skyline = build_corpus(CorpusSettings(folder, tmp_path / "line", voices="skyline", measures="fixed", workers=1))
    assert {"chords.mid", "waltz.mid"} <= set(songs_of(skyline.folder))


def test_abc_books_and_names(tmp_path: Path) -> None:
    write_abc(tmp_path / "in/sub/book.abc", [(1, "One", melody(1, 16)), (1, "Two", melody(2, 16))])
    save_midi(score(melody(3)), tmp_path / "in/tune.MID")
    found = [(source.name, source.collection, source.suffix) for source in score_sources(tmp_path / "in")]
    assert found == [("sub/book.abc/1", "sub", ".abc"), ("sub/book.abc/1.2", "sub", ".abc"), ("tune.MID", "in", ".mid")]


@pytest.mark.slow
def test_all_voices_of_a_piece_stand_in_one_split(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number in range(8):
        pitches = melody(number, 16) + melody(number + 20, 16)
        onsets = [480 * place for place in range(64)] * 2
        notes = make_notes(onsets, [480] * 128, pitches, voice=[0] * 64 + [1] * 64)
        duet = Score(notes, 480, (TimeSignature(0, 4, 4),), voices=("upper", "lower"))
        save_midi(duet, tmp_path / f"in/duet{number}.mid")
    corpus = build_corpus(CorpusSettings(tmp_path / "in", tmp_path / "out", voices="each", split="2:1:1", workers=1))
    songs = songs_of(corpus.folder)
    assert len(songs) == 8
    assert all(len(splits) == 1 for splits in songs.values())
    rows = load_split(corpus.folder, "default", "train")
    assert set(rows["voice"]) == {"upper", "lower"}
    assert len(set(rows["item_id"])) == len(rows)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Piano", "melody"])
def test_voices_of_one_name_are_told_apart(name: str, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    lines = [melody(number, 18) for number in range(3)]
    notes = make_notes(
        [480 * place for _ in lines for place in range(72)],
        [480] * 216,
        [pitch for line in lines for pitch in line],
        voice=[index for index in range(3) for _ in range(72)],
    )
    save_midi(Score(notes, 480, (TimeSignature(0, 4, 4),), voices=(name,) * 3), tmp_path / "in/p0.mid")
    corpus = build_corpus(CorpusSettings(tmp_path / "in", tmp_path / "out", voices="each", workers=1))
    rows = load_split(corpus.folder, "default", "train").with_format("numpy")[:]
    assert list(dict.fromkeys(rows["voice"].tolist())) == [name, f"{name}.2", f"{name}.3"]
    assert rows["item_id"].tolist() == [f"p0.mid/{voice}/{start:03d}" for voice in range(3) for start in range(3)]
    for voice, line in zip(dict.fromkeys(rows["voice"].tolist()), lines, strict=True):
        [first] = rows["tokens"][(rows["voice"] == voice) & (rows["start"] == 0)]
        assert first[::6].tolist() == line[:64]


def test_names_that_come_again_are_numbered() -> None:
    assert own_names(["a", "b", "a", "a.2", "a"]) == ["a", "b", "a.2", "a.2.2", "a.3"]


def test_what_cannot_be_built_is_named(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(NoDataError):
        build_corpus(CorpusSettings(tmp_path / "nowhere", tmp_path / "out"))
    with pytest.raises(UnknownNameError, match="only_4_4"):
        CorpusSettings(folder, tmp_path / "out", filters="only_44")
    with pytest.raises(UnknownNameError, match="skyline"):
        CorpusSettings(folder, tmp_path / "out", voices="top")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="workers"):
        CorpusSettings(folder, tmp_path / "out", workers=0)
    with pytest.raises(NoDataError, match=r"tune00\.mid is a file; give the folder that it lies in"):
        build_corpus(CorpusSettings(folder / "tune00.mid", tmp_path / "out"))
    with pytest.raises(InvalidInputError, match="holds other files"):
        build_corpus(CorpusSettings(folder, folder))
    (folder / "sub").mkdir()
    for inside in (folder / "out", folder / "sub", folder / "sub" / ".." / "out"):
        with pytest.raises(InvalidInputError, match="which is searched with its sub-folders; name a folder outside"):
            build_corpus(CorpusSettings(folder, inside))
        assert not (inside / "manifest.json").exists()
    chorales = Path(__file__).resolve().parents[2] / "datasets_scripts" / "jsb_chorales"
    with pytest.raises(InvalidInputError, match="holds other files"):  # another data set is not written over
        build_corpus(CorpusSettings(folder, chorales))
    shutil.rmtree(folder)
    write_midis(folder, [1], n_measures=8)
    with pytest.raises(NoDataError, match="1 pieces were read, 1 passed the filters, and none gives a window"):
        build_corpus(CorpusSettings(folder, tmp_path / "out", workers=1))


@pytest.mark.slow
def test_the_library_of_data_sets_hands_out_no_earlier_corpus(tmp_path: Path) -> None:
    """It keeps a copy of a folder by its card; a corpus that is built anew is another."""
    from datasets import load_dataset

    for seeds in ([1, 2, 3], [4, 5, 6]):
        shutil.rmtree(tmp_path / "mine", ignore_errors=True)
        write_midis(tmp_path / "mine", seeds, n_measures=17)
        build_corpus(CorpusSettings(tmp_path / "mine", tmp_path / "out", split="1:0:0", workers=1))
        songs = set(load_dataset(str(tmp_path / "out"), "default", split="train")["song"])
        assert songs == {f"tune{seed:02d}.mid" for seed in seeds}


@pytest.mark.slow
def test_copies_are_named_with_what_they_are_copies_of(tmp_path: Path) -> None:
    root = tmp_path / "mine"
    write_midis(root, [1, 2, 3], n_measures=17)
    shutil.copy(root / "tune02.mid", root / "zwei.mid")
    corpus = build_corpus(CorpusSettings(root, tmp_path / "out", workers=1))
    manifest = json.loads((corpus.folder / "manifest.json").read_text())
    assert manifest["removed"] == {"unique": {"zwei.mid": "same bytes as tune02.mid"}}


@pytest.mark.slow
def test_what_gives_no_window_says_what_would(tmp_path: Path) -> None:
    """In 3/4 alone nothing is built, and every way out is named that one of the pieces has."""
    root = tmp_path / "mine"
    root.mkdir()
    save_midi(score(melody(1, 4)), root / "short.mid")  # nothing makes sixteen measures of four
    with pytest.raises(NoDataError, match=r"a window has 16$"):
        build_corpus(CorpusSettings(root, tmp_path / "out", workers=1))
    save_midi(score(melody(2), meter=(3, 4)), root / "waltz.mid")
    told = "take measures of four quarters from the start, `measures='fixed'`$"
    with pytest.raises(NoDataError, match=told):
        build_corpus(CorpusSettings(root, tmp_path / "out", workers=1))
    assert build_corpus(CorpusSettings(root, tmp_path / "out", measures="fixed", workers=1)).counts["train"]["songs"]


@pytest.mark.slow
def test_chords_within_a_voice_need_the_skyline(tmp_path: Path) -> None:
    root = tmp_path / "mine"
    root.mkdir()
    save_midi(chords(melody(1)), root / "chords.mid")
    for voices in ("one", "each"):
        with pytest.raises(NoDataError) as caught:
            build_corpus(CorpusSettings(root, tmp_path / "out", voices=voices, workers=1))
        assert str(caught.value).endswith("while another note sounds; take the highest notes, `voices='skyline'`")
    onsets, pitches = [480 * place for place in range(64)] * 2, melody(1, 16) + melody(2, 16)
    notes = make_notes(onsets, [480] * 128, pitches, voice=[0] * 64 + [1] * 64)
    save_midi(Score(notes, 480, (TimeSignature(0, 4, 4),), voices=("a", "b")), root / "chords.mid")
    with pytest.raises(NoDataError) as caught:
        build_corpus(CorpusSettings(root, tmp_path / "out", workers=1))
    assert str(caught.value).endswith("; take each voice, `voices='each'`, or the highest notes, `voices='skyline'`")


def test_a_split_that_was_asked_for_and_is_empty_is_named(tmp_path: Path) -> None:
    write_midis(tmp_path / "mine", [1, 2], n_measures=17)
    corpus = build_corpus(CorpusSettings(tmp_path / "mine", tmp_path / "out", split="1:1:1000", workers=1))
    assert [remark.partition(":")[0] for remark in corpus.remarks] == [
        f"the split {split} is empty" for split, counts in corpus.counts.items() if not counts["songs"]
    ]
    assert corpus.remarks
    assert "than 1:1:1000 with `split`" in corpus.remarks[0]
    corpus = build_corpus(CorpusSettings(tmp_path / "mine", tmp_path / "out", split="1:0:0", workers=1))
    assert corpus.remarks == ()
