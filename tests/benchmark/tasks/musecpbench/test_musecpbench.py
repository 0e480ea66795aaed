"""The study of editing systems: who edits what, what is resumed, and which printed cells may be compared."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
import soundfile
from tests.editing.house import triads

from music_evals import protocols
from music_evals.annotations import BACKBONES, EditRequest
from music_evals.benchmark.published import published_preservation
from music_evals.benchmark.records import read_records
from music_evals.benchmark.tasks.musecpbench import RESULTS, scores_folder, tables, task
from music_evals.benchmark.tasks.musecpbench.task import MUSECPBENCH, PAPER_DATA, Settings, Study
from music_evals.cli import main
from music_evals.datasets.edit_study import write_study_sources
from music_evals.editing.system import Edited, Editor, Seeds
from music_evals.editing.weightless import Effects
from music_evals.errors import BackendError, InvalidInputError, NoDataError, UnknownNameError
from music_evals.metrics.catalogue import PRESERVATION_METRICS
from music_evals.symbolic.files import save_midi

SYSTEMS = ("identity", "transposition", "reorchestration", "zeta")


class Follower(Effects):
    """Follows a word pair, so that it edits a piece once an instruction; fails for one of them."""

    @property
    def info(self) -> Any:
        return dataclasses.replace(super().info, name="follower", needs=("word_pair",), backbone="diffusion")

    def _edited(self, request: EditRequest, seeds: Seeds) -> Edited:
        if request.instruction.after == "jazz":
            raise BackendError("it does not swing")
        return super()._edited(request, seeds)


@pytest.fixture(autouse=True)
def follower(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(protocols.EDITORS, "follower", f"{__name__}:Follower")


def study(out: Path, **settings: Any) -> Study:
    return MUSECPBENCH.run(Settings(**{"out": out, "n_pieces": 2, "seconds": 10.0, "report": False, **settings}))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Study, Path]:
    out = tmp_path_factory.mktemp("study")
    patch = pytest.MonkeyPatch()
    patch.setitem(protocols.EDITORS, "follower", f"{__name__}:Follower")
    try:
        return study(out, systems=(*SYSTEMS, "follower")), out
    finally:
        patch.undo()


@pytest.mark.slow
def test_each_system_edits_what_it_can(made: tuple[Study, Path]) -> None:
    found, out = made
    counts = {name: (cell["n"], cell["n_failed"]) for name, cell in found.results["systems"].items()}
    # one edit a piece for those that ask for nothing, one an instruction for the others
    assert counts == {
        "identity": (2, 0), "unrelated": (2, 0), "simple_edit": (2, 0), "transposition": (2, 0),
        "reorchestration": (2, 0), "follower": (6, 2),
    }  # fmt: skip
    assert found.results["systems"]["identity"]["control"]
    assert set(found.results["left_out"]) == {"zeta"} == set(found.results["refused"])
    assert "needs the weights of AudioLDM 2" in found.results["left_out"]["zeta"]
    assert {item for item, _ in found.failures} == {"zeta", "stand_in_0000 (follower)", "stand_in_0003 (follower)"}
    rows = [json.loads(line) for line in (out / "manifest.jsonl").read_text().splitlines()]
    heard = {row["system"]: row["reference"] for row in rows}
    assert heard["reorchestration"].startswith("edits/reorchestration/sources/")
    assert all((out / row[side]).is_file() for row in rows for side in ("reference", "estimate"))


@pytest.mark.slow
def test_tables_are_by_facet_task_and_backbone(made: tuple[Study, Path]) -> None:
    found, out = made
    results = found.results
    assert results == json.loads((out / "musecpbench.json").read_text())
    assert set(results["tasks"]) == {"genre", "other"}
    assert set(results["tasks"]["genre"]) == {"follower"}
    assert set(results["backbones"]) == {"no weights", "diffusion"} <= set(BACKBONES)
    assert results["backbones"]["no weights"]["motif_recall"]["n_all"] == 4  # transposition, reorchestration
    assert results["overall"]["transposition"]["major_minor_score"]["value"] == 0.0
    assert results["overall"]["identity"]["chroma_dtw_similarity"]["value"] > 0.99
    for cell in results["overall"]["reorchestration"].values():
        bounds = [value for value in (cell["low"], cell["value"], cell["high"]) if value is not None]
        assert bounds == sorted(bounds)
    # what was meant to change is no damage
    assert results["unchanged"]["transposition"]["facets"] == ["rhythm", "structure"]
    assert "harmony" not in results["unchanged"]["follower"]["facets"]
    text = (out / "musecpbench.md").read_text()
    assert "| `identity` | control |" in text
    assert "## Instructions of the task genre" in text
    assert "| `unrelated` (control) |" in text
    assert "| **0.009** / n/a |" in text
    assert {row["verdict"] for row in results["findings"]} == {"not testable"}
    assert "- `zeta`: zeta needs the weights" in text


@pytest.mark.slow
def test_what_was_asked_is_measured_of_everybody(made: tuple[Study, Path]) -> None:
    """A tone up and faster: the transposition does half of it, and the simple edit all, as far as it is heard."""
    found, out = made
    points = found.results["plane"]["systems"]
    assert points["transposition"]["success"]["value"] == pytest.approx(0.5, abs=0.05)
    assert points["simple_edit"]["success"]["value"] > 0.9
    assert points["identity"]["success"]["value"] == pytest.approx(0, abs=1e-6)
    assert "reorchestration" not in points  # of scores nothing was asked
    assert not any(point["front"] for point in points.values() if point["role"] == "control")
    assert "## Success and preservation" in (out / "musecpbench.md").read_text()


@pytest.mark.slow
def test_only_systems_with_the_same_sources_are_compared(made: tuple[Study, Path]) -> None:
    pairs = {(test["a"], test["b"]) for test in made[0].results["comparisons"]}
    assert not any("identity" in pair for pair in pairs)
    # neither a score with a recording, nor one edit a piece with one an instruction
    assert pairs == set()


@pytest.mark.slow
def test_comparisons_are_corrected_together(tmp_path: Path) -> None:
    found = study(tmp_path, systems=["transposition", "effects"]).results
    tests = [test for test in found["comparisons"] if "p_holm" in test]
    assert {(test["a"], test["b"]) for test in tests} == {("transposition", "effects")}
    compared = [test for test in tests if test["n"]]  # on one of so short pieces no boundary is heard
    assert len(compared) >= len(tests) - 1
    assert all(test["p_holm"] >= test["p_value"] for test in compared)
    assert all(test["p_value"] is None and test["p_holm"] is None for test in tests if not test["n"])
    assert all(test["n"] == 2 for test in tests if test["metric"] == "major_minor_score")


@pytest.mark.slow
def test_a_study_goes_on_where_it_stood(made: tuple[Study, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    found, out = made

    def never(*_: object) -> None:
        raise AssertionError("edited again")

    for kind in ("controls:Identity", "weightless:Transposition", "weightless:Reorchestration"):
        module, name = kind.split(":")
        monkeypatch.setattr(f"music_evals.editing.{module}.{name}._edited", never)
    again = study(out, systems=(*SYSTEMS, "follower"))
    assert again.results == found.results


class Counted(Effects):
    """Counts how often it is loaded, and how many live at once."""

    loads: ClassVar[list[str]] = []
    alive: ClassVar[list[int]] = [0, 0]

    def __init__(self, *, source: str = "", **parameters: Any) -> None:
        super().__init__(**parameters)
        object.__setattr__(self, "_lives", self._count(1))
        self.loads.append(source)

    def _count(self, n: int) -> None:
        self.alive[0] += n
        self.alive[1] = max(self.alive)

    def __del__(self) -> None:
        self._count(-1)

    @classmethod
    def from_pretrained(cls, source: str, *, wet: float = 0.3) -> Counted:
        return cls(source=source, wet=wet)


class Broken(Effects):
    """Cannot be loaded, in a way of its own."""

    def __init__(self, *, message: str = "out of memory") -> None:
        raise RuntimeError(message)


class TestEdits:
    """Who edits what; nothing is judged."""

    @pytest.fixture
    def edits(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
        """Run a study of a sine over a second; return who edited how many, what is left out, failures and manifest."""
        kinds = {"counted": "Counted", "broken": "Broken"}
        for name, kind in kinds.items():
            monkeypatch.setitem(protocols.EDITORS, name, f"{__name__}:{kind}")
        judged = SimpleNamespace(results={"variant": "corrected"}, scores=None, files={"results": tmp_path})
        monkeypatch.setattr(task, "run", lambda *_, **__: judged)
        monkeypatch.setattr(task, "markdown", lambda _: "")
        monkeypatch.setattr(
            task, "study", lambda _, __, infos, rows, about: about | {
                "n": dict(Counter(row["system"] for row in rows if "error" not in row)), "order": list(infos)}
        )  # fmt: skip
        table = table_of(tmp_path / "songs", ["one", "two"])

        def run(**settings: Any) -> tuple[Any, list[dict[str, Any]]]:
            given = {"sources": table} if settings.get("protocol") != "paper" else {}
            found = MUSECPBENCH.run(Settings(out=tmp_path / "out", report=False, **given | settings))
            return found, [json.loads(line) for line in (tmp_path / "out" / "manifest.jsonl").read_text().splitlines()]

        return run

    def test_a_system_is_loaded_once_and_let_go(self, edits: Any) -> None:
        Counted.loads.clear()
        Counted.alive[:] = [0, 0]
        found, _ = edits(systems=["counted", "effects"], weights={"counted": {"source": "here"}},
                         parameters={"counted": {"wet": 0.1}})  # fmt: skip
        assert Counted.loads == ["here"]
        assert Counted.alive == [0, 1]
        assert found.results["n"] == {"counted": 2, "effects": 2, "identity": 2, "unrelated": 2}
        assert found.results["order"][:2] == ["identity", "unrelated"]
        records = read_records(found.files["study"].parent / "edits" / "counted" / "edit_records")
        assert records[0]["system"]["parameters"]["wet"] == 0.1

    def test_who_fails_costs_its_own_row_alone(self, edits: Any) -> None:
        absent = "no_such_package:System"
        found, rows = edits(systems=["broken", absent, "effects", "zeta"], parameters={absent: {"a": 1}})
        assert set(found.results["n"]) == {"effects", "identity", "unrelated"} == {row["system"] for row in rows}
        assert found.results["refused"] == ["broken", absent, "zeta"]
        failures = dict(found.failures)
        assert failures["broken"] == "RuntimeError: out of memory"
        assert "No module named" in failures[absent]
        assert "needs the weights" in failures["zeta"]

    def test_those_that_nobody_named_are_no_failures(self, edits: Any) -> None:
        found, _ = edits(limit=1)
        assert "broken" in found.results["left_out"]
        assert found.results["refused"] == []
        assert all(name.endswith("(follower)") for name, _ in found.failures)  # which lacks the words that it needs

    def test_a_system_of_another_package_has_its_folder(self, edits: Any) -> None:
        found, rows = edits(systems=[f"{__name__}:Counted"])
        assert f"{__name__}:Counted" in found.results["n"]
        assert any(row["estimate"].startswith(f"edits/{__name__}.Counted/") for row in rows)

    def test_finished_files_are_a_system_and_what_is_missing_counts(self, edits: Any, tmp_path: Path) -> None:
        theirs = tmp_path / "theirs"
        theirs.mkdir()
        write_sine(theirs / "a.wav", 330)
        (theirs / "manifest.csv").write_text("id,estimate\none,a.wav\n")
        given = {"systems": ["effects"], "outputs": {"closed": theirs}, "parameters": {"closed": {"backbone": "codec"}}}
        found, rows = edits(**given)
        assert found.results["n"]["closed"] == 1
        ((item, why),) = found.failures
        assert (item, why.partition(":")[0]) == ("two (closed)", "NoDataError")
        (row,) = [row for row in rows if row["system"] == "closed"]
        assert row["role"] == "system"
        write_sine(theirs / "b.wav", 440)
        (theirs / "manifest.csv").write_text("id,estimate\none,b.wav\ntwo,b.wav\n")
        again, rows = edits(**given)
        assert again.results["n"]["closed"] == 2
        assert not again.failures
        assert row["sha256"] not in {row["sha256"] for row in rows}

    def test_files_of_a_system_of_ours_stand_for_it(self, edits: Any, tmp_path: Path) -> None:
        theirs = tmp_path / "theirs"
        theirs.mkdir()
        write_sine(theirs / "a.wav", 330)
        (theirs / "manifest.csv").write_text("id,estimate\none,a.wav\ntwo,a.wav\n")
        assert edits(systems=["zeta"], outputs={"zeta": theirs})[0].results["n"]["zeta"] == 2

    def test_the_paper_has_controls_over_what_was_edited(self, edits: Any, tmp_path: Path) -> None:
        other = table_of(tmp_path / "others", ["one", "three"])
        score = tmp_path / "others" / "tune.mid"
        save_midi(triads(), score)
        other.write_text(other.read_text() + json.dumps({"id": "four", "source": "tune.mid"}) + "\n")
        found, rows = edits(
            protocol="paper", systems=["effects", "follower", "zeta"],
            paper_sources={"effects": tmp_path / "songs" / "table.jsonl", "follower": other, "zeta": other},
        )  # fmt: skip
        assert found.results["n"] == {"effects": 2, "identity": 5, "unrelated": 5}  # one of a name is another source
        controls = [row for row in rows if row["system"] == "identity"]
        assert {row["role"] for row in controls} == {"control"}
        assert all(row["estimate"].endswith(".flac") for row in controls)


def write_sine(path: Path, hz: float) -> None:
    soundfile.write(path, 0.1 * np.sin(2 * np.pi * hz * np.arange(8000) / 8000), 8000)


def table_of(folder: Path, pieces: list[str]) -> Path:
    """Write a sine a piece, and the table of them."""
    folder.mkdir()
    for number, name in enumerate(pieces):
        write_sine(folder / f"{name}.wav", 220 + number)
    rows = [{"id": name, "source": f"{name}.wav"} for name in pieces]
    (folder / "table.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return folder / "table.jsonl"


class TestPublished:
    """Which printed cells are compared: each reason is looked up."""

    def rows(self, n: int, **about: Any) -> dict[str, Any]:
        ours = {"protocol": "paper", "variant": "official", "left_out": {}, "paper_data": {}}
        cell = {"value": 0.5, "low": 0.4, "high": 0.6, "n": n, "n_all": n}
        names = list(PRESERVATION_METRICS)
        overall = {system: dict.fromkeys(names, cell) for system in PAPER_DATA}
        return tables._published(overall, ours | about, names)["rows"]

    def test_the_same_number_of_edits_by_the_same_scores_is_compared(self) -> None:
        rows = self.rows(60)
        assert rows["MusicMagus"]["beat_f_measure"]["why_not"] == []
        assert rows["MusicGen"]["beat_f_measure"]["why_not"] == ["60 edits here, 100 in the paper"]

    def test_structure_by_the_clock_is_never_compared(self) -> None:
        for row in self.rows(60).values():
            for metric in ("segment_ari", "boundary_f_measure"):
                assert any("cut by the clock" in why for why in row[metric]["why_not"])

    def test_other_definitions_are_not_compared(self) -> None:
        ours = self.rows(60, variant="corrected")["MusicMagus"]
        assert "pYIN" in ours["voicing_recall"]["why_not"][0]
        assert "mean chroma" in ours["chroma_dtw_similarity"]["why_not"][0]
        assert ours["major_minor_score"]["why_not"] == []

    def test_counts_that_do_not_add_up_are_told(self) -> None:
        (why,) = self.rows(697)["ZETA"]["major_minor_score"]["why_not"]
        assert "697 edits do not add up" in why

    def test_other_sources_are_not_those_of_the_paper(self) -> None:
        assert self.rows(60, protocol="ours")["MusicMagus"]["beat_f_measure"]["why_not"] == [
            "other sources than the paper's"
        ]


def test_every_system_of_the_paper_has_its_row_and_sources() -> None:
    printed = published_preservation(PRESERVATION_METRICS)["table"]
    assert set(printed) == set(tables.PUBLISHED_AS)
    assert {system for system, _ in tables.PUBLISHED_AS.values()} == set(PAPER_DATA)


def test_the_paper_gives_each_its_own_sources(tmp_path: Path) -> None:
    table = write_study_sources(tmp_path / "own", n_pieces=1).recordings
    given: dict[str, Any] = {"protocol": "paper", "systems": ["follower", "zeta", "effects"], "out": tmp_path / "out"}
    with pytest.raises(NoDataError, match=r"no system edited anything: follower: not a system of the paper; zeta: no"):
        MUSECPBENCH.run(Settings(**given))
    with pytest.raises(NoDataError, match="zeta: zeta needs the weights"):
        MUSECPBENCH.run(Settings(**given, paper_sources={"zeta": table}))


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"systems": ["zetta"]}, UnknownNameError, "did you mean zeta"),
        ({"protocol": "theirs"}, UnknownNameError, "unknown protocol"),
        ({"systems": ["effects"], "weights": {"zeta": {}}}, InvalidInputError, "not among the systems"),
        ({"scores": "x.jsonl"}, InvalidInputError, "give that table"),
        ({"paper_sources": {"zeta": "x"}}, InvalidInputError, "protocol paper"),
        ({"n_pieces": 13, "systems": ["effects"]}, InvalidInputError, "1 to 12 pieces"),
    ],
)
def test_wrong_settings_are_named(settings: dict[str, Any], error: type, words: str, tmp_path: Path) -> None:
    with pytest.raises(error, match=words):
        study(tmp_path, **settings)


@pytest.mark.slow
def test_sources_of_the_users_own(tmp_path: Path) -> None:
    own = write_study_sources(tmp_path / "own", n_pieces=2)
    found = study(tmp_path / "out", sources=own.recordings, systems=["effects", "reorchestration"])
    assert set(found.results["left_out"]) == {"reorchestration"}
    assert "`scores` names none" in found.results["left_out"]["reorchestration"]


class TestVerb:
    """``music-evals benchmark musecpbench``."""

    @pytest.mark.slow
    def test_prints_the_tables(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        command = ["benchmark", "musecpbench", "--pieces", "1", "--seconds", "8", "--no-report"]
        assert main([*command, "--systems", "effects, musicmagus", "--out", str(tmp_path)]) == 1
        shown = capsys.readouterr()
        assert "# MuseCPBench, protocol ours" in shown.out
        assert "1 failed:\n  musicmagus: musicmagus needs the weights" in shown.err

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (["--weights", "zeta"], "SYSTEM=PLACE"),
            (["--weights", "zeta=a", "--weights", "zeta=b"], "twice"),
            (["--device", "cuda"], "goes with --weights"),
            (["--systems", "zetta"], "did you mean zeta"),
            (["--set", "effects.wett=1"], "did you mean wet"),
            (["--set", "wet=1"], "SYSTEM.OPTION=VALUE"),
            (["--set", "effects.wet=much"], "wet must be a number"),
            (["--set", "effects.weights=x"], "needs no weights"),
            (["--set", "zeta.weights_revision=x"], "go with --weights"),
            (["--set", "zeta.weights=x", "--weights", "zeta=y"], "given twice"),
            (["--systems", "effects", "--set", "zeta.start=1"], "of zeta, which is not among the systems"),
            (["--outputs", "unrelated=x"], "none of identity"),
            (["--outputs", "a/b=x"], "simple names"),
        ],
    )
    def test_wrong_use_ends_with_2(
        self, options: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["benchmark", "musecpbench", "--out", str(tmp_path), *options]) == 2
        assert words in capsys.readouterr().err


def test_the_backbones_of_systems_without_weights_are_known() -> None:
    infos = {name: make().info for name, make in _makers().items() if not hasattr(make, "from_pretrained")}
    assert {info.backbone for info in infos.values()} <= set(BACKBONES)


def _makers() -> dict[str, type[Editor]]:
    return {name: protocols.load_plugin(protocols.EDITORS, name, "editing system") for name in protocols.EDITORS}


@pytest.mark.slow
def test_a_study_is_found_from_its_folder_and_from_what_was_judged(
    made: tuple[Study, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = made[1]
    places = (out, out / RESULTS, out / "preserved", out / "preserved" / "results.json")
    assert [scores_folder(place) for place in places] == [out / "preserved"] * 4
    assert scores_folder(out / "edits") is None
    assert scores_folder(out.parent) is None
    monkeypatch.chdir(out / "preserved")
    assert scores_folder(".") is not None
