"""How far a sketch is obeyed, and where the command writes that."""

import csv
import shutil
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from benchmarks.inpainting_models.sketches import END, START, WEIGHTS, obedience  # noqa: E402
from tests.models.tiny_networks import build, melodies  # noqa: E402

from benchmarks.inpainting_models import sketches  # noqa: E402 - after the check for torch
from music_evals.models.sketchnet import SketchNet  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_thread")


def test_obedience_by_hand() -> None:
    """Four measures: the same; other pitches; another rhythm; neither, where the truth has no onset."""
    true = np.full(96, 128, dtype=np.uint8)
    true[[0, 6, 24, 48]] = 60, 62, 64, 65
    found = true.copy()
    found[24] = 63
    found[54] = 129
    found[80] = 70
    assert obedience(found[None], true[None]) == {"rhythm_obeyed": 0.5, "pitches_obeyed": pytest.approx(2 / 3)}
    assert obedience(true[None], true[None]) == {"rhythm_obeyed": 1.0, "pitches_obeyed": 1.0}
    more = true.copy()
    more[12] = 60  # one more than was sketched
    assert obedience(more[None], true[None])["pitches_obeyed"] == pytest.approx(2 / 3)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::music_evals.errors.UndefinedMetricWarning")  # the network has learnt nothing
def test_the_command_measures_and_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    (here / "README.md").write_text(f"before\n{START}\nold\n{END}\nafter\n")
    for weights in WEIGHTS:
        build(SketchNet).save_pretrained(tmp_path / weights.folder)
        shutil.copy(here / "README.md", tmp_path / weights.folder)
    monkeypatch.setattr(sketches, "ROOT", tmp_path)
    monkeypatch.setattr(sketches, "HERE", here)
    monkeypatch.setattr(sketches, "tokens_of", lambda *_: melodies(3))
    with pytest.raises(SystemExit):
        sketches.main(["--split", "test", "--write"])
    sketches.main(["--write"])
    assert "jsb_chorales validation" in capsys.readouterr().out
    rows = list(csv.DictReader((here / "sketches.csv").read_text().splitlines()))
    assert len(rows) == 2 * (13 + 7)
    for row in rows:
        obeyed = {"rhythm": ["rhythm_obeyed"], "pitches": ["pitches_obeyed"], "none": []}.get(
            row["sketch"], ["rhythm_obeyed", "pitches_obeyed"]
        )
        if row["treated"].startswith("obeyed"):
            assert all(float(row[name]) == 1 for name in obeyed)
        elif obeyed:
            assert all(float(row[name]) < 1 for name in obeyed)  # as published, a network that has learnt nothing
    for page in (here, *(tmp_path / weights.folder for weights in WEIGHTS)):
        text = (page / "README.md").read_text()
        assert text.startswith(f"before\n{START}\n")
        assert text.endswith(f"{END}\nafter\n")
        assert "obeyed, connected (default)" in text
        assert "old" not in text
    (here / "README.md").write_text("no markers\n")
    with pytest.raises(SystemExit, match="expected the markers"):
        sketches.fill(here / "README.md", "")
