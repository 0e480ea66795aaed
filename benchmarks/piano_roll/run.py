"""How smoothly the piano roll of the editing test edits many notes, in headless Chromium.

Usage: python -m benchmarks.piano_roll.run [--notes N ...] [--write]

For each number of notes a study is built and opened, and notes are dragged, selected with a box and drawn with a mouse.
Of each move of the pointer the time is taken that the page is busy with it: from the event until the frame that shows
it is painted (script, style, layout and paint on the page's thread; not the waiting for the screen, and not the drawing
of the painted frame, which other threads do).
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.machines import processor
from benchmarks.musib.tables import fill, write_csv

from music_evals.annotations import Score
from music_evals.files import write_atomically
from music_evals.pipelines.study_tables import table_text
from music_evals.studies.editing.study import EditingSettings, build_editing_study
from music_evals.studies.folders import default_introduction
from music_evals.symbolic.midi import save_midi
from music_evals.symbolic.notes import make_notes
from music_evals.ui.studies.page import study_page

HERE = Path(__file__).parent
COLUMNS = ("notes", "what", "moves", "p50_ms", "p95_ms", "max_ms", "machine")
MEASURE = """
() => {
  window.busy = [];
  const channel = new MessageChannel();
  const begun = [];
  channel.port1.onmessage = () => { for (const at of begun.splice(0)) busy.push(performance.now() - at); };
  document.addEventListener("pointermove", (event) => {
    if (!event.buttons) return;
    begun.push(performance.now());
    // the message is dealt with after the frame of this event
    requestAnimationFrame(() => channel.port2.postMessage(0));
  }, true);
}
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, and write where it is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--notes", type=int, nargs="+", default=[200, 2000, 5000], help="default: %(default)s")
    parser.add_argument("--moves", type=int, default=300, help="of the pointer for each kind (default: %(default)s)")
    parser.add_argument("--write", action="store_true", help="write results.csv and the table of README.md")
    options = parser.parse_args(arguments)
    rows = []
    with chromium() as browser, tempfile.TemporaryDirectory() as folder:
        about = f"{processor()}, Chromium {browser.version}"
        for n_notes in options.notes:
            for what, taken in measured(browser, Path(folder) / str(n_notes), n_notes, options.moves):
                p50, p95 = np.percentile(taken, [50, 95])
                rows.append(
                    {"notes": n_notes, "what": what, "moves": len(taken), "p50_ms": round(float(p50), 1),
                     "p95_ms": round(float(p95), 1), "max_ms": round(max(taken), 1), "machine": about}
                )  # fmt: skip
                print(rows[-1])
    if options.write:
        write_csv(HERE / "results.csv", COLUMNS, rows)
        lines = ["| notes | what | moves | median, ms | 95 %, ms | most, ms |", "| --- | --- | --- | --- | --- | --- |"]
        lines += ["| " + " | ".join(str(row[name]) for name in COLUMNS[:-1]) + " |" for row in rows]
        readme = HERE / "README.md"
        page = fill(readme.read_text(encoding="utf-8"), {"moves": "\n".join(lines), "machine": about})
        write_atomically(readme, page.encode())


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    """Start the Chromium of this machine."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        yield browser
        browser.close()


def measured(browser: Any, folder: Path, n_notes: int, moves: int) -> Iterator[tuple[str, list[float]]]:
    """Yield what was done and how long the page was busy with each move."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(build(folder, n_notes).as_uri() + "?slot=1")
    for button in ("#agree", "#go", "#start", "#open"):
        page.click(button)
    page.wait_for_selector(".roll .note")
    page.click("#done")
    page.click("#open")
    page.wait_for_selector(".roll .note")
    page.evaluate(MEASURE)
    note = page.locator(".note.voice1").nth(3)
    yield "drag one note", moved(page, note.bounding_box(), moves)
    page.keyboard.press("Control+a")
    yield f"drag all {n_notes // 2} notes that are not locked", moved(page, note.bounding_box(), moves)
    page.keyboard.press("Escape")
    roll = page.locator(".roll").bounding_box()
    yield (
        "select with a box",
        moved(page, {"x": roll["x"] + 60, "y": roll["y"] + 60, "width": 4, "height": 4}, moves, far=8),
    )
    page.close()


def moved(page: Any, box: dict[str, float], moves: int, *, far: float = 1.0) -> list[float]:
    """Press at a box, move the pointer back and forth, and let go."""
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.evaluate("() => { busy.length = 0; }")
    page.mouse.move(x, y)
    page.mouse.down()
    for move in range(moves):
        turn = move % 60
        step = turn if turn < 30 else 60 - turn
        page.mouse.move(x + 4 + far * 2 * step, y + far * step)
    page.mouse.up()
    page.wait_for_timeout(200)
    return list(page.evaluate("() => busy"))


def build(folder: Path, n_notes: int) -> Path:
    """Make a study whose samples have so many notes, and return its page."""
    folder.mkdir()
    each = n_notes // 2
    onsets = np.arange(each) // 4 * 120
    notes = make_notes(
        np.tile(onsets, 2), np.full(2 * each, 120),
        np.concatenate([72 + np.arange(each) % 4 * 3, 48 + np.arange(each) % 4 * 4 + np.arange(each) // 4 % 3]), 80,
        np.repeat([0, 1], each),
    )  # fmt: skip
    save_midi(Score(notes, 480, voices=("Melody", "Piano")), folder / "sample.mid")
    rows = [{"sample_id": role, "piece_id": "p", "style": "s", "model": role, "role": role, "midi": "sample.mid"}
            for role in ("proposed", "baseline")]  # fmt: skip
    write_atomically(folder / "samples.csv", table_text(rows).encode())
    texts = default_introduction("editing", "A measurement", "nobody")
    study = build_editing_study(
        folder / "study", folder / "samples.csv", study="measurement", introduction=texts,
        page=study_page("editing", texts.title), settings=EditingSettings(n_editors=2),
    )  # fmt: skip
    return study.page / "index.html"


if __name__ == "__main__":
    main()
