import csv
import shutil
import sys

import pytest

from benchmarks.lyric_writers import run
from music_evals.benchmark.tasks.songs.text_controls import LYRIC_CONTROLS


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    # short answers: what is tested is that the parts work together
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "LENGTH", 24)
        return run.measure(tmp_path_factory.mktemp("writers"), run.Size(hidden=16, epochs=1, songs=3))


@pytest.mark.slow
def test_every_system_has_a_number_under_every_variant(measured):
    rows, losses = measured
    found = {(row.system, row.variant): row for row in rows}
    systems = [*LYRIC_CONTROLS, *run.WRITERS]
    assert set(found) == {(system, variant) for system in systems for variant in run.VARIANTS}
    for variant in run.VARIANTS:
        true = found["true lyrics", variant].value
        assert all(found[name, variant].value < true for name in run.WRITERS)
    assert found["echo", "corrected"].value == 0
    assert set(losses) == set(run.WRITERS[1:])
    assert all(after < before for before, after in losses.values())


@pytest.mark.slow
def test_the_command_writes_table_and_page(measured, tmp_path, monkeypatch, capsys):
    shutil.copy(run.HERE / "README.md", tmp_path)
    monkeypatch.setattr(run, "HERE", tmp_path)
    monkeypatch.setattr(run, "measure", lambda *_: measured)
    monkeypatch.setattr(sys, "argv", ["run"])
    run.main()
    page = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert capsys.readouterr().out.strip() in page
    with (tmp_path / "results.csv").open(encoding="utf-8", newline="") as file:
        assert len(list(csv.DictReader(file))) == len(measured[0])


def test_the_page_holds_what_was_measured():
    with (run.HERE / "results.csv").open(encoding="utf-8", newline="") as file:
        rows = [
            run.Row(
                row["system"], row["variant"], int(row["n"]), float(row["value"]),
                *(float(row[name]) if row[name] else None for name in ("low", "high", "diversity")),
            )
            for row in csv.DictReader(file)
        ]  # fmt: skip
    assert run.table(rows) in (run.HERE / "README.md").read_text(encoding="utf-8")
