"""How the default decoding of a network is chosen."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from benchmarks.inpainting_models.choose_decoding import BOUNDED, Setting, choose, settings_of, table_name  # noqa: E402
from tests.models.tiny_networks import TINY, build, melodies  # noqa: E402

from benchmarks.inpainting_models import choose_decoding  # noqa: E402 - after the check for torch

pytestmark = pytest.mark.usefixtures("one_thread")
NETWORKS = pytest.mark.parametrize("kind", list(TINY), ids=[kind.__name__ for kind in TINY])


def row(note_f1: float, *divergences: float, rests: float = 0.01) -> dict[str, float]:
    return {"note_f1": note_f1, "rest_share": rests, **dict(zip(BOUNDED, divergences, strict=True))}


def test_the_best_within_the_bound_wins_and_none_where_all_are_beyond() -> None:
    monotone, fair, poor = row(0.3, 0.0, 0.4, 0.1), row(0.2, 0.1, 0.05, 0.1), row(0.1, 0.0, 0.0, 0.0)
    silent = row(0.25, 0.11, 0.0, 0.0)
    restless = row(0.25, 0.0, 0.0, 0.0, rests=0.001)
    assert choose([monotone, silent, poor, fair, restless], 0.1, 0.002) is fair
    assert choose([monotone, silent, poor, fair, restless], 0.1, 0.001) is restless
    assert choose([monotone, silent, poor, fair], 0.5, 0.002) is monotone
    assert choose([monotone, silent], 0.05, 0.0) is None


@NETWORKS
def test_every_setting_is_honest_may_be_a_default_and_differs_from_the_others(kind: type) -> None:
    model = build(kind)
    settings = settings_of(model)
    assert len(set(settings)) == len(settings)
    assert {setting.decoding for setting in settings} == set(model.decodings) - model.leaking
    for setting in settings:
        names = [name for name in vars(setting) if hasattr(model.config, name)]
        model.config_class(**{name: getattr(setting, name) for name in names})  # refuses what no default may be
        setting.give(model)
        assert not model.sees_reference
        assert (model.decoding, model.temperature, model.top_p) == (
            setting.decoding,
            setting.temperature,
            setting.top_p,
        )
        assert getattr(model, "kind_temperature", None) == setting.kind_temperature


def test_tables_are_named_after_the_folder() -> None:
    models = Path(choose_decoding.ROOT) / "models"
    assert [table_name(models / "vli"), table_name(models / "vli" / "folk"), table_name(Path("/x/mine"))] == [
        "vli",
        "vli_folk",
        "mine",
    ]


# networks that have learnt nothing may write no note where there is one: no pair to score pitch and rhythm on
@pytest.mark.filterwarnings("ignore::music_evals.errors.UndefinedMetricWarning")
@NETWORKS
def test_the_command_writes_a_table_and_the_winner(
    kind: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Four windows of validation, one seed, two settings; the test split is never asked for."""
    build(kind).save_pretrained(tmp_path / "model")
    asked = []

    def tokens(_dataset: str, _config: str, split: str) -> np.ndarray:
        asked.append(split)
        return melodies(6)

    monkeypatch.setattr(choose_decoding, "tokens_of", tokens)
    monkeypatch.setattr(
        choose_decoding, "settings_of", lambda _: [Setting("argmax"), Setting("sample", 0.5, top_p=0.9)]
    )
    monkeypatch.setattr(choose_decoding, "LEAST_RESTS", 0.0)  # networks that have learnt nothing may write none
    folder, table = str(tmp_path / "model"), tmp_path / "table.csv"
    options = [folder, "--items", "4", "--seeds", "1", "--out", str(table)]
    if kind is next(iter(TINY)):
        with pytest.raises(SystemExit, match=r"no setting keeps silence_divergence, .* within -1"):
            choose_decoding.main([*options, "--bound", "-1"])
    choose_decoding.main([*options, "--bound", "1", "--write"])
    with table.open() as file:
        rows = list(csv.DictReader(file))
    best = max(rows, key=lambda row: float(row["note_f1"]))
    assert [entry["chosen"] for entry in rows] == ["yes" if entry is best else "" for entry in rows]
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    assert (config["decoding"], config["temperature"]) == (best["decoding"], float(best["temperature"]))
    assert kind.from_pretrained(folder).decoding == best["decoding"]
    assert set(asked) == {"train", "validation"}
    assert "bits a note" in capsys.readouterr().out
