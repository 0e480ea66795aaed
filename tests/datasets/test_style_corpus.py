"""Anybody's scores become a style that networks of style transfer learn from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.datasets.making import band, melody

from music_evals.annotations import DRUMS
from music_evals.datasets.manifest import load_split
from music_evals.datasets.style_corpus import StyleCorpusSettings, build_style_corpus
from music_evals.datasets.style_pieces import features
from music_evals.errors import InvalidInputError, NoDataError, UnknownNameError
from music_evals.symbolic.midi import save_midi
from music_evals.symbolic.piece_rows import score_of_row

SPLITS = ("train", "validation", "test")


@pytest.fixture(scope="module", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One for all: what was read once is read no more."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MUSIC_EVALS_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Twenty pieces, one of them in another key too, and files that give none."""
    root = tmp_path / "mine"
    root.mkdir()
    for seed in range(20):
        save_midi(band(seed), root / f"piece{seed:02d}.mid")
    save_midi(band(3, up=2), root / "again.mid")
    save_midi(band(30, programs=(65, 0, 58, DRUMS), names=("Sax", "Keys", "Tuba", "Kit")), root / "no_bass.mid")
    save_midi(band(31, up=40), root / "too_high.mid")
    (root / "broken.mid").write_bytes(b"no MIDI")
    return root


def test_piano_and_bass_by_name_and_program(folder: Path, tmp_path: Path) -> None:
    steps: list[tuple[int, int, str]] = []
    corpus = build_style_corpus(
        StyleCorpusSettings(folder, tmp_path / "out", "mine", workers=1), progress=lambda *step: steps.append(step)
    )
    rows = {row["name"]: (split, row) for split in SPLITS for row in load_split(corpus.folder, "default", split)}
    assert set(rows) == {f"piece{seed:02d}.mid" for seed in range(20)} | {"again.mid"}
    assert {split for split, _ in rows.values()} == set(SPLITS)
    assert rows["again.mid"][0] == rows["piece03.mid"][0]
    assert rows["again.mid"][1]["family"] == rows["piece03.mid"][1]["family"]
    assert load_split(corpus.folder, "default", "train").features == features()
    score = score_of_row(rows["piece05.mid"][1])
    assert score.voices == ("piano", "bass")
    assert score.voice(0)["pitch"].tolist() == [pitch - 12 for pitch in melody(5, 8)]
    assert set(score.voice(1)["pitch"].tolist()) == {36}
    assert score.ticks_per_quarter == 8
    assert {rows["piece05.mid"][1][key] for key in ("style", "melody", "mode")} == {"mine", "", "major"}
    assert list(corpus.failures) == ["broken.mid"]
    assert "no voice is a bass; the voices are 'Sax', 'Keys', 'Tuba'" in corpus.left_out["no_bass.mid"]
    assert "transpose the piece" in corpus.left_out["too_high.mid"]
    assert sum(count["pieces"] for count in corpus.counts.values()) == 21
    manifest = json.loads((corpus.folder / "manifest.json").read_text())
    assert manifest["settings"]["roles"] == {"piano": [], "bass": []}
    assert manifest["left_out"] == corpus.left_out
    assert (24, 24, "reading pieces") in steps


@pytest.mark.slow
def test_roles_by_the_names_that_are_given(folder: Path, tmp_path: Path) -> None:
    roles = {"bass": ["tuba"], "piano": ()}
    corpus = build_style_corpus(
        StyleCorpusSettings(folder, tmp_path / "out", "brass", roles=roles, split="1:0:0", workers=1)
    )
    (row,) = load_split(corpus.folder, "default", "train")
    assert (row["name"], row["voices"]) == ("no_bass.mid", ["bass", "piano"])
    assert set(corpus.left_out) >= {"piece00.mid", "again.mid"}


@pytest.mark.slow
def test_a_melody_is_named_in_its_row(folder: Path, tmp_path: Path) -> None:
    roles = {"melody": (), "piano": ()}
    settings = StyleCorpusSettings(folder, tmp_path / "out", "songs", roles=roles, ticks_per_quarter=12, workers=1)
    corpus = build_style_corpus(settings)
    row = load_split(corpus.folder, "default", "train")[0]
    assert row["melody"] == row["voices"][0] == "melody"
    assert row["ticks_per_quarter"] == 12


@pytest.mark.slow
def test_a_second_run_reads_nothing_and_leaves_nothing_of_the_first(folder: Path, tmp_path: Path) -> None:
    first = build_style_corpus(StyleCorpusSettings(folder, tmp_path / "out", "mine", workers=1))
    before = (first.folder / "manifest.json").read_text()
    assert (first.folder / "data/default/test-00000-of-00001.parquet").is_file()
    again = build_style_corpus(StyleCorpusSettings(folder, tmp_path / "out", "mine", workers=1))
    assert (again.folder / "manifest.json").read_text() == before
    build_style_corpus(StyleCorpusSettings(folder, tmp_path / "out", "mine", split="1:0:0", workers=1))
    assert [path.name for path in (first.folder / "data/default").iterdir()] == ["train-00000-of-00001.parquet"]


@pytest.mark.slow
def test_what_cannot_be_done_is_named(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="which is searched with its sub-folders"):
        build_style_corpus(StyleCorpusSettings(folder, folder / "out", style="mine", workers=1))
    out = tmp_path / "out"
    with pytest.raises(InvalidInputError, match="give the style a name"):
        StyleCorpusSettings(folder, out, " ")
    with pytest.raises(UnknownNameError, match="banjo"):
        StyleCorpusSettings(folder, out, "mine", roles={"banjo": ()})
    with pytest.raises(InvalidInputError, match="one role or more"):
        StyleCorpusSettings(folder, out, "mine", roles={})
    with pytest.raises(InvalidInputError, match="`ticks_per_quarter` must be at least 1"):
        StyleCorpusSettings(folder, out, "mine", ticks_per_quarter=0)
    with pytest.raises(NoDataError):
        build_style_corpus(StyleCorpusSettings(folder, out, "mine", roles={"organ": ()}))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("mine")
    with pytest.raises(InvalidInputError, match="holds other files"):
        build_style_corpus(StyleCorpusSettings(folder, tmp_path / "other", "mine"))


@pytest.mark.slow
def test_the_library_of_data_sets_hands_out_no_earlier_corpus(folder: Path, tmp_path: Path) -> None:
    """It keeps a copy of a folder by its card; a corpus that is built anew is another, wherever it lies."""
    from datasets import load_dataset

    for name, roles in (("one", ["piano"]), ("two", ["bass"])):
        build_style_corpus(
            StyleCorpusSettings(folder, tmp_path / name / "out", "mine", roles=dict.fromkeys(roles, ()), workers=1)
        )
        rows = load_dataset(str(tmp_path / name / "out"), "default", split="train")
        assert rows[0]["voices"] == roles
