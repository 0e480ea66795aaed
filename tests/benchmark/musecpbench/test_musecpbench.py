"""The study of editing systems: who edits what, what is resumed, and which printed cells may be compared."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from music_evals import protocols
from music_evals.annotations import BACKBONES, EditRequest
from music_evals.benchmark.musecpbench import tables
from music_evals.benchmark.musecpbench.folders import RESULTS, judged_in
from music_evals.benchmark.musecpbench.task import PAPER_DATA, Settings, Study, run_musecpbench
from music_evals.benchmark.published import published_preservation
from music_evals.cli import main
from music_evals.datasets.edit_study import write_study_sources
from music_evals.editing.system import Edited, Editor, Seeds
from music_evals.editing.weightless import Effects
from music_evals.errors import BackendError, InvalidInputError, NoDataError, UnknownNameError
from music_evals.metrics.catalogue import PRESERVATION_METRICS

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
    return run_musecpbench(Settings(**{"out": out, "n_pieces": 2, "seconds": 10.0, "report": False, **settings}))


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
    assert counts == {"identity": (2, 0), "transposition": (2, 0), "reorchestration": (2, 0), "follower": (6, 2)}
    assert found.results["systems"]["identity"]["control"]
    assert set(found.results["left_out"]) == {"zeta"}
    assert "needs the weights of AudioLDM 2" in found.results["left_out"]["zeta"]
    assert {item for item, _ in found.failures} == {"stand_in_0000 (follower)", "stand_in_0003 (follower)"}
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
    assert "- `zeta`: zeta needs the weights" in text


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
        printed = published_preservation(PRESERVATION_METRICS)["table"]
        other = {label: {**cells, "boundary_f_measure": 0.5} for label, cells in printed.items()}
        assert list(tables._other_scores("segment_ari", other, "official")) == []

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
        run_musecpbench(Settings(**given))
    with pytest.raises(NoDataError, match="zeta: zeta needs the weights"):
        run_musecpbench(Settings(**given, paper_sources={"zeta": table}))


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
        assert main([*command, "--systems", "effects, musicmagus", "--out", str(tmp_path)]) == 0
        shown = capsys.readouterr()
        assert "# MuseCPBench, protocol ours" in shown.out
        assert "note: musicmagus was left out" in shown.err

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (["--weights", "zeta"], "SYSTEM=PLACE"),
            (["--weights", "zeta=a", "--weights", "zeta=b"], "twice"),
            (["--device", "cuda"], "goes with --weights"),
            (["--systems", "zetta"], "did you mean zeta"),
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
    assert [judged_in(place) for place in places] == [out / "preserved"] * 4
    assert judged_in(out / "edits") is None
    assert judged_in(out.parent) is None
    monkeypatch.chdir(out / "preserved")
    assert judged_in(".") is not None
