"""Edits from files to a manifest: what is written, what is resumed, and what is refused."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from tests.editing.house import RATE, recording, triads

from music_evals import protocols
from music_evals.annotations import EditInstruction, EditRequest
from music_evals.benchmark.tasks.edits.sources import bars_of, sources_in_files
from music_evals.benchmark.tasks.edits.task import EDITS, Edits, Settings
from music_evals.benchmark.tasks.edits.work import make_editor
from music_evals.benchmark.tasks.preservation.pairs import pairs_in_manifest
from music_evals.editing.controls import Identity
from music_evals.editing.system import Edited, Seeds
from music_evals.errors import (
    BackendError,
    CorruptRecordsError,
    InvalidInputError,
    NoDataError,
    PairCountError,
    UnknownNameError,
)
from music_evals.models.lyric_writers import CallableWriter
from music_evals.symbolic.files import save_midi


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "songs"
    (made / "b").mkdir(parents=True)
    soundfile.write(made / "a.wav", recording(2).T, RATE)
    soundfile.write(made / "b" / "c.wav", recording(seconds=2).T * 0.5, RATE)
    return made


def edit(folder: Path, out: Path, **settings: Any) -> Edits:
    return EDITS.run(Settings(out, **{"sources": [str(folder)], "system": "effects", **settings}))


def bytes_below(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.flac")}


class Moody(Identity):
    """Fails for one source, until a file says that it may go on; counts its calls in a folder."""

    folder = Path()

    def _edited(self, request: EditRequest, seeds: Seeds) -> Edited:
        with (self.folder / "calls").open("a") as file:
            file.write(f"{request.source_id}\n")
        if request.source_id == "b/c" and not (self.folder / "well").exists():
            raise BackendError("out of sorts")
        return super()._edited(request, seeds)


@pytest.fixture
def moody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(Moody, "folder", tmp_path)
    monkeypatch.setitem(protocols.EDITORS, "moody", f"{__name__}:Moody")
    return tmp_path


def test_a_folder_is_edited_into_files_and_a_manifest(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    edits = edit(folder, out)
    assert not edits.failures
    assert sorted(bytes_below(out)) == ["edits/a.flac", "edits/b/c.flac"]
    found = pairs_in_manifest(edits.files["manifest"])
    assert not found.failures
    assert [(pair.item, pair.system) for pair in found.pairs] == [("a", "effects"), ("b/c", "effects")]
    for pair, row in zip(found.pairs, edits.rows, strict=True):
        source, rate = soundfile.read(pair.reference.path, always_2d=True)
        edited, edited_rate = soundfile.read(pair.estimate.path, always_2d=True)
        assert rate == edited_rate
        assert source.shape == edited.shape
        assert np.abs(source - edited).max() > 0.01
        assert row["log"]["seconds"][1] == pytest.approx(len(source) / rate)
        assert row["provenance"]["parameters"]["wet"] == 0.4


@pytest.mark.slow
def test_engines_and_order_change_no_byte(folder: Path, tmp_path: Path) -> None:
    edit(folder, tmp_path / "serial")
    edit(folder, tmp_path / "local", workers=2)
    edit(folder / "b" / "c.wav", tmp_path / "alone")
    serial, local, alone = (bytes_below(tmp_path / name) for name in ("serial", "local", "alone"))
    assert serial == local
    assert alone["edits/c.flac"] == serial["edits/b/c.flac"], "the item alone is the item in a batch"


def test_a_run_goes_on_where_it_stood(folder: Path, moody: Path) -> None:
    out = moody / "out"
    first = edit(folder, out, system="moody")
    assert first.failures == [("b/c", "BackendError: out of sorts")]
    assert [json.loads(line)["id"] for line in first.files["manifest"].read_text().splitlines()] == ["a"]
    (moody / "well").touch()
    assert not edit(folder, out, system="moody").failures
    assert (moody / "calls").read_text().split() == ["a", "b/c", "b/c"], "what is done is not done again"
    (out / "edits" / "a.flac").write_bytes(b"damaged")
    edit(folder, out, system="moody")
    soundfile.write(folder / "b" / "c.wav", recording(seconds=1).T, RATE)
    edit(folder, out, system="moody")
    assert (moody / "calls").read_text().split() == ["a", "b/c", "b/c", "a", "b/c"], "damaged, or of another source"
    edit(folder, out, system="moody", instruction=EditInstruction(text="other"))
    assert len((moody / "calls").read_text().split()) == 7
    with pytest.raises(CorruptRecordsError, match="seed"):
        edit(folder, out, system="moody", seed=1)


def test_what_was_cut_is_what_is_compared(folder: Path, tmp_path: Path) -> None:
    edits = edit(folder, tmp_path / "out", seconds=1.0, mono=True, system="identity")
    for row in edits.rows:
        source, _ = soundfile.read(tmp_path / "out" / row["files"]["reference"], always_2d=True)
        edited, _ = soundfile.read(tmp_path / "out" / row["files"]["estimate"], always_2d=True)
        assert source.shape == (RATE, 1)
        assert np.array_equal(source, edited)


def test_scores_stay_scores_unless_they_are_rendered(tmp_path: Path) -> None:
    save_midi(triads(), tmp_path / "song.mid")
    written = edit(tmp_path / "song.mid", tmp_path / "a", system="transposition")
    (pair,) = pairs_in_manifest(written.files["manifest"]).pairs
    assert pair.modality == "symbolic"
    heard = edit(tmp_path / "song.mid", tmp_path / "b", system="reorchestration", render="additive")
    (pair,) = pairs_in_manifest(heard.files["manifest"]).pairs
    assert pair.modality == "audio"
    sides = [soundfile.read(side.path)[0] for side in (pair.reference, pair.estimate)]
    assert np.corrcoef(*(side[: min(map(len, sides))] for side in sides))[0, 1] < 0.9
    assert max(heard.rows[0]["log"]["gains"]) == 1.0


def test_a_manifest_gives_each_source_its_instruction(folder: Path, tmp_path: Path) -> None:
    with (folder / "list.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["source", "id", "instruction", "before", "after", "bars", "confidence", "intended", "group"])
        rows.writerow(["a.wav", "one", "Make it jazz.", "rock", "jazz", "2:4", "3", "harmony, rhythm", "g"])
        rows.writerow(["b/c.wav", "two", "", "", "", "", "", "", "g"])
    base = EditInstruction(text="Change.", source_prompt="a rock song", intended_facets=("melody",))
    edits = edit(folder / "list.csv", tmp_path / "out", system="identity", instruction=base)
    one, two = (EditInstruction.from_dict(row["instruction"]) for row in edits.rows)
    assert (one.text, one.bars, one.confidence) == ("Make it jazz.", (2, 4), 3)
    assert one.intended_facets == ("harmony", "rhythm")
    assert one.target_caption() == "a jazz song"
    assert two == base
    manifest = [json.loads(line) for line in edits.files["manifest"].read_text().splitlines()]
    assert [row["intended"] for row in manifest] == ["harmony,rhythm", "melody"]
    assert [row["group"] for row in manifest] == ["g", "g"]


def test_templates_make_an_item_of_each_instruction(folder: Path, tmp_path: Path) -> None:
    base = EditInstruction(text="x", source_prompt="a happy rock song")
    edits = edit(folder / "a.wav", tmp_path / "out", system="identity", instruction=base, generate=["genre", "mood"])
    assert [row["item"] for row in edits.rows] == ["a-genre", "a-mood"]
    assert {row["instruction"]["author"] for row in edits.rows} == {"template"}
    assert {row["group"] for row in edits.rows} == {"a"}
    with pytest.raises(NoDataError):
        edit(folder / "a.wav", tmp_path / "other", system="identity", instruction=base, generate=["style"])


class TestLanguageModel:
    """Instructions that a language model writes: asked once, kept, and refused by name."""

    DESCRIPTION = EditInstruction(text="x", source_prompt="a happy rock song")

    @staticmethod
    def writer(after: str = "jazz", asked: list[str] | None = None) -> CallableWriter:
        def answer(prompt: str) -> str:
            if asked is not None:
                asked.append(prompt)
            before = "rock" if "its genre," in prompt else None
            return json.dumps({"before": before, "after": after, "instruction": "Turn it into jazz."})

        return CallableWriter(answer, "poet")

    def run(self, folder: Path, out: Path, **settings: Any) -> Edits:
        given = {"system": "identity", "instruction": self.DESCRIPTION, "generate": ["genre", "mood"], **settings}
        return edit(folder / "a.wav", out, **given)

    def test_what_it_wrote_is_kept_and_not_asked_again(self, folder: Path, tmp_path: Path) -> None:
        asked: list[str] = []
        first = self.run(folder, tmp_path / "out", writer=self.writer(asked=asked))
        assert [row["item"] for row in first.rows] == ["a-genre"]
        assert first.rows[0]["instruction"]["author"].startswith("poet, 20")
        assert len(asked) == 2
        again = self.run(folder, tmp_path / "out", writer=self.writer("ska", asked))
        assert again.rows == first.rows
        assert len(asked) == 2
        self.run(folder, tmp_path / "out", writer=self.writer(asked=asked), overwrite=True)
        assert len(asked) == 4

    def test_an_answer_that_is_none_is_named(self, folder: Path, tmp_path: Path) -> None:
        with pytest.raises(BackendError, match=r"1 of 1 answers.*does not say 'ska'"):
            self.run(folder, tmp_path / "out", writer=self.writer("ska"))
        with pytest.raises(NoDataError, match="poet found no mood in the description of a"):
            self.run(folder, tmp_path / "out", writer=self.writer(), generate=["mood"])
        with pytest.raises(InvalidInputError, match="name some"):
            self.run(folder, tmp_path / "out", writer=self.writer(), generate=[])
        with pytest.raises(InvalidInputError, match="goes with an endpoint"):
            self.run(folder, tmp_path / "out", writer={"model": "poet", "api_key_env": "KEY"})

    def test_a_damaged_file_is_named(self, folder: Path, tmp_path: Path) -> None:
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "instructions.jsonl").write_text('{"asked": 1')
        with pytest.raises(CorruptRecordsError, match=r"instructions.jsonl, line 1.*move the file away"):
            self.run(folder, tmp_path / "out", writer=self.writer())


def test_a_dataset_gives_its_originals_once(tmp_path: Path, root: Path) -> None:
    dataset = str(root / "datasets_scripts" / "known_edits")
    settings = Settings(tmp_path, dataset, config="small", limit=1, seconds=2.0, system="identity")
    edits = EDITS.run(settings)
    assert [row["item"] for row in edits.rows] == ["folk_auld_lang_syne"]
    assert not edits.failures


def test_a_dataset_of_recordings(folder: Path, tmp_path: Path) -> None:
    import datasets

    audio = [{"path": "a.wav", "bytes": (folder / "a.wav").read_bytes()}]
    rows = datasets.Dataset.from_dict({"audio": audio, "id": ["x"], "before": ["rock"]})
    (tmp_path / "set").mkdir()
    rows.cast_column("audio", datasets.Audio(decode=False)).to_parquet(tmp_path / "set" / "test.parquet")
    instruction = EditInstruction(text="x", before="a", after="jazz")
    edits = EDITS.run(Settings(tmp_path / "out", str(tmp_path / "set"), system="identity", instruction=instruction))
    assert not edits.failures
    assert edits.rows[0]["item"] == "x"
    assert edits.rows[0]["instruction"]["before"] == "rock"
    with pytest.raises(InvalidInputError, match="no column music"):
        EDITS.run(Settings(tmp_path / "b", str(tmp_path / "set"), system="identity", column="music"))


@pytest.mark.parametrize("item", ["../x", "/x", "a/../../x", "a\nb"])
def test_ids_that_lead_out_of_the_folder_are_refused(item: str, folder: Path, tmp_path: Path) -> None:
    (folder / "list.jsonl").write_text(json.dumps({"source": "a.wav", "id": item}) + "\n")
    with pytest.raises(InvalidInputError, match="cannot be the name of a file"):
        edit(folder / "list.jsonl", tmp_path / "out", system="identity")


def test_bad_input_is_named_before_anything_is_edited(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(UnknownNameError, match="did you mean effects"):
        edit(folder, out, system="effect")
    with pytest.raises(UnknownNameError, match="wet"):
        edit(folder, out, parameters={"wett": 1})
    with pytest.raises(InvalidInputError, match="wet must be a number"):
        edit(folder, out, parameters={"wet": "much"})
    with pytest.raises(InvalidInputError, match="neither a recording"):
        sources_in_files([__file__])
    with pytest.raises(PairCountError, match="unique"):
        EDITS.run(Settings(out, sources=[str(folder / "a.wav")] * 2, system="identity"))
    with pytest.raises(UnknownNameError, match="additive"):
        Settings(out, sources=["x"], system="identity", render="additiv")
    for seconds in (0, float("nan"), float("inf")):
        with pytest.raises(InvalidInputError, match="`seconds`"):
            Settings(out, sources=["x"], system="identity", seconds=seconds)
    with pytest.raises(InvalidInputError, match="FIRST:END"):
        bars_of("4-8")
    assert bars_of("4:8") == (4, 8)
    assert not out.exists()
    with pytest.raises(UnknownNameError):
        make_editor("identity", {"x": 1}, {})


def test_what_a_system_cannot_do_is_a_failure_of_the_item(folder: Path, tmp_path: Path) -> None:
    soundfile.write(folder / "silent.wav", np.zeros(RATE), RATE)
    edits = edit(folder, tmp_path / "out", system="reorchestration")
    assert len(edits.failures) == 3
    assert "edits a score" in edits.failures[0][1]
    quiet = edit(folder, tmp_path / "other", system="identity")
    assert [(item, error.partition(":")[0]) for item, error in quiet.failures] == [("silent", "InvalidAudioError")]
