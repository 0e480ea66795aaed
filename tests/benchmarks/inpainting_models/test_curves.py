"""The curves of the trainings show what the logs hold."""

import csv
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from benchmarks.inpainting_models import curves

PAGE = f"head\n{curves.START}\nold\n{curves.END}\nfoot\n"


def write_log(path: Path, stages: dict[str, list[float]]) -> None:
    """A log with these validation losses; without a name of a stage, without the column."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        named = set(stages) != {""}
        writer.writerow([*(["stage"] if named else []), "epoch", "train_loss", "validation_loss"])
        for stage, losses in stages.items():
            for epoch, loss in enumerate(losses, 1):
                writer.writerow([*([stage] if named else []), epoch, loss + 0.5, loss])


def words(picture: Path) -> list[str]:
    """The text of a picture."""
    texts = ET.parse(picture).iter("{http://www.w3.org/2000/svg}text")  # noqa: S314 - drawn by us
    return [element.text for element in texts if element.text]


@pytest.mark.slow
def test_every_log_has_a_picture_on_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_log(tmp_path / "vli_log.csv", {"": [2.0, 1.0, 1.5]})
    write_log(tmp_path / "inpaintnet_folk_log.csv", {"vae": [1.0, 0.5], "latent_rnn": [0.75]})
    (tmp_path / "README.md").write_text(PAGE)
    curves.main(["--folder", str(tmp_path)])
    page = (tmp_path / "README.md").read_text()
    assert page.startswith("head\n")
    assert page.endswith("foot\n")
    assert "old" not in page
    for name in ("vli", "inpaintnet_folk"):
        assert f"![Losses of {name}]({name}_curves.svg)" in page
    assert {"vae", "latent_rnn", "train", "validation"} <= set(words(tmp_path / "inpaintnet_folk_curves.svg"))
    assert "vae" not in words(tmp_path / "vli_curves.svg")
    assert capsys.readouterr().out.count("_curves.svg") == 2

    # the same again gives the same bytes
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    curves.main(["--folder", str(tmp_path)])
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_the_dot_is_at_the_best_epoch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_log(tmp_path / "vli_log.csv", {"": [2.0, 1.0, 1.5]})
    lines = []
    monkeypatch.setattr(curves, "save", lambda figure, _: lines.extend(figure.axes[0].lines))
    curves.draw(curves.read_stages(tmp_path / "vli_log.csv"), tmp_path / "unused.svg")
    drawn = {line.get_label(): (list(line.get_xdata()), list(line.get_ydata())) for line in lines}
    assert drawn == {
        "train": ([1, 2, 3], [2.5, 1.5, 2.0]), "validation": ([1, 2, 3], [2.0, 1.0, 1.5]), "kept": ([2], [1.0]),
    }  # fmt: skip


def test_what_cannot_be_drawn_is_named(tmp_path: Path) -> None:
    (tmp_path / "vli_log.csv").write_text("epoch,train_loss,validation_loss\n")
    with pytest.raises(ValueError, match="has no epochs"):
        curves.draw_all(tmp_path)
    (tmp_path / "README.md").write_text("no markers")
    with pytest.raises(SystemExit, match="expected the markers"):
        curves.main(["--folder", str(tmp_path)])


def test_the_page_shows_every_log_that_lies_beside_it() -> None:
    """A log that was added since has neither picture nor place on the page: run the command again."""
    page = (curves.HERE / "README.md").read_text(encoding="utf-8")
    logs = sorted(curves.HERE.glob(f"*{curves.LOG}"))
    assert len(logs) >= 4
    for log in logs:
        picture = log.with_name(log.name.removesuffix(curves.LOG) + curves.PICTURE)
        assert f"({picture.name})" in page
        stages = set(curves.read_stages(log)) - {""}
        assert stages <= set(words(picture)), picture


def test_the_dot_is_at_a_start_that_stays_the_best(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "vli_log.csv").write_text("epoch,train_loss,validation_loss\n0,,1.0\n1,2.5,2.0\n")
    lines = []
    monkeypatch.setattr(curves, "save", lambda figure, _: lines.extend(figure.axes[0].lines))
    curves.draw(curves.read_stages(tmp_path / "vli_log.csv"), tmp_path / "unused.svg")
    train, validation, kept = ([*map(list, line.get_data())] for line in lines)
    assert np.isnan(train[1][0])
    assert (validation, kept) == ([[0, 1], [1.0, 2.0]], [[0], [1.0]])
