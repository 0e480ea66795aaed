from __future__ import annotations

import base64
import dataclasses
import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.judging import judge_items

from music_evals.benchmark.results import build_results
from music_evals.benchmark.scores import read_scores
from music_evals.benchmark.tasks.inpainting import plots
from music_evals.benchmark.tasks.inpainting.items import ItemSet, load_items
from music_evals.benchmark.tasks.inpainting.report import render_report
from music_evals.benchmark.tasks.inpainting.systems import baseline_system, stored_system
from music_evals.benchmark.tasks.inpainting.task import INPAINTING, Settings
from music_evals.errors import MissingBackendError
from music_evals.symbolic.midi import read_midi

pytestmark = pytest.mark.slow

NASTY = "<script>alert(\"x\")</script>&amp; 'quoted' $x_{ \\m \\1 \\g<0>"


@pytest.fixture(scope="module")
def page(tiny_dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    out = tmp_path_factory.mktemp("page")
    predictions = out / "model.jsonl"
    rng = np.random.default_rng(3)
    with predictions.open("w") as file:
        for item in load_items(str(tiny_dataset), "musib", "test").item_ids:
            for seed in range(2):
                middle = np.full(96, 128)
                middle[::6] = rng.integers(60, 72, 16)
                row = {"item_id": item, "middle": middle.tolist(), "system": "fake", "seed": seed}
                file.write(json.dumps(row) + "\n")
    INPAINTING.run(Settings(out, dataset=str(tiny_dataset), config="musib", predictions=predictions, n_resamples=50))
    return (out / "report.html").read_text(encoding="utf-8")


def test_the_page_needs_nothing_from_outside(page: str, read_page: Any) -> None:
    parsed = read_page(page)
    assert "http" not in page
    assert not re.search(r"@import|url\((?!#)", page)
    for tag, attrs in parsed.tags:
        for name in ("src", "href", "xlink:href", "action", "data", "srcset"):
            target = attrs.get(name)
            assert target is None or target.startswith(("#", "data:audio/midi;base64,")), (tag, target)
    assert len(page) < 2_000_000


def test_the_page_is_sound_html(page: str, read_page: Any) -> None:
    parsed = read_page(page)
    ids = [attrs["id"] for _, attrs in parsed.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    used = set(re.findall(r"(?:url\(#|href=\"#)([^\")]+)", page))
    assert used <= set(ids)
    assert parsed.all("html")[0]["lang"] == "en"
    assert all(attrs.get("role") == "img" and attrs.get("aria-label") for attrs in parsed.all("svg"))
    assert all(attrs.get("scope") for attrs in parsed.all("th") if "class" in attrs or attrs.get("scope"))
    assert len(parsed.all("h1")) == 1


def test_the_page_tells_the_whole_story(page: str, read_page: Any) -> None:
    text = " ".join(read_page(page).text)
    for word in ("note F1", "Receipt", "content hash", "wall time", "noise floor", "fake", "copy_past"):
        assert word in text, word
    assert "windows whose middle does not occur in the training split" in text
    assert "version of numpy" in text
    assert text.count("70 windows, 18 songs, ranked by note F1") == 1
    # four pictures of songs, four of divergences
    assert page.count('class="plot"') == 8
    assert "melodic interval, semitones" in page
    assert text.count("The noise floor is what a divergence is on average") == 1
    # five contexts: the reference, the model, the best baseline
    assert page.count('class="roll"') == 15


def test_the_best_baselines_are_named_and_bear_no_star(page: str, read_page: Any) -> None:
    text = " ".join(read_page(page).text)
    assert "★" not in page
    named = re.search(r"Best on the validation split, which need not be so here: ([^.]*(?:\w\.[^.]*)*)", text)
    assert named
    assert " for " in named[1]
    assert 'title="the best baseline on validation"' in page


def test_the_axis_is_that_of_the_systems_that_are_ranked() -> None:
    """A control at 1 does not press what is compared into a corner; its median is written at the edge."""
    values = {
        "model": np.array([0.1, 0.2, 0.3]), "copy": np.array([0.12, 0.14]), "low": np.array([0.15]),
        "reference": np.ones(3), "undefined": np.array([np.nan]),
    }  # fmt: skip
    assert plots._span([values[name] for name in ("model", "copy", "low", "undefined")]) == pytest.approx((0.09, 0.31))
    picture = plots.distributions("x", values, "model", label="note F1", outside=["reference"])
    assert "1.00 →" in re.sub(r"<!--\s*|\s*-->", "", picture)
    assert "1.00 →" not in plots.distributions("x", values, "model", label="note F1")
    below = plots.distributions("x", {**values, "reference": np.zeros(3)}, "model", label="F1", outside=["reference"])
    assert "← 0.00" in below
    assert plots._span([]) == plots._span([np.full(2, 0.5)]) == (-0.02, 1.02)


def test_midi_can_be_taken_away(page: str, read_page: Any) -> None:
    links = [attrs for attrs in read_page(page).all("a") if "download" in attrs]
    assert len(links) == 15
    for attrs in links[:3]:
        content = base64.b64decode((attrs["href"] or "").partition("base64,")[2])
        score = read_midi(content)
        assert len(score.notes) > 0
        assert score.end_tick <= 64 * score.ticks_per_quarter
        assert re.fullmatch(r"\w+\.mid", attrs["download"] or "")


def test_colours_are_those_of_the_page(page: str) -> None:
    assert "prefers-color-scheme: dark" in page
    for colour in ("#010101", "#020202", "#030303", "#040404", "#050505"):
        assert colour not in page
    assert "var(--accent)" in page


def test_names_are_escaped(tiny_dataset: Path, tmp_path: Path, read_page: Any) -> None:
    whole = load_items(str(tiny_dataset), "musib", "validation")
    items = ItemSet(
        dataset=NASTY,
        config=NASTY,
        split="test",
        item_ids=tuple(f"{item} {NASTY}" for item in whole.item_ids),
        songs=whole.songs,
        contexts=whole.contexts,
        failures={NASTY: NASTY},
    )
    systems = [stored_system(NASTY, {0: items.middles}), baseline_system("reference", None)]
    scores = read_scores(judge_items(items, systems, tmp_path / "records"), INPAINTING)
    page = render_report(build_results(scores, INPAINTING, n_resamples=10), scores)
    parsed = read_page(page)
    assert "alert" not in "".join(re.findall(r"<script>.*?</script>", page, re.DOTALL))
    assert len(parsed.all("script")) == 1
    text = " ".join(parsed.text)
    assert NASTY in text
    assert "1 results failed" in text


def test_a_run_of_nothing_but_failures_has_a_page(tiny_dataset: Path, tmp_path: Path, read_page: Any) -> None:
    items = load_items(str(tiny_dataset), "musib", "validation").head(2)
    broken = stored_system("broken", {0: items.middles}, dict.fromkeys(items.item_ids, "PolyphonyError: chords"))
    scores = read_scores(
        judge_items(items, [broken, baseline_system("reference", None)], tmp_path / "records"), INPAINTING
    )
    results = build_results(scores, INPAINTING, n_resamples=10)
    assert results["tables"]["all"]["scores"]["broken"]["note_f1"]["value"] is None
    text = " ".join(read_page(render_report(results, scores)).text)
    assert "2 results failed" in text
    assert "0 of 2" in text  # the lead says what its number stands on


@pytest.mark.parametrize("role", ["control", "leaking"])
def test_a_run_without_anything_to_rank_has_a_page(
    tiny_dataset: Path, tmp_path: Path, role: str, read_page: Any
) -> None:
    items = load_items(str(tiny_dataset), "musib", "validation").head(3)
    systems = [baseline_system("reference", None)]
    if role == "leaking":
        systems.append(dataclasses.replace(stored_system("leaky", {0: items.middles}), role="leaking"))
    scores = read_scores(judge_items(items, systems, tmp_path / "records"), INPAINTING)
    results = build_results(scores, INPAINTING, n_resamples=10)
    assert results["tables"]["all"]["ranking"] == []
    assert "Nothing is ranked" in " ".join(read_page(render_report(results, scores)).text)


@pytest.mark.usefixtures("undrawn")
def test_a_piano_roll_is_captioned_with_its_own_score(tiny_dataset: Path, tmp_path: Path, read_page: Any) -> None:
    items = load_items(str(tiny_dataset), "musib", "validation").head(1)
    wrong = np.full((1, 96), 129, dtype=np.uint8)
    system = stored_system("two seeds", {0: items.middles, 1: wrong})
    scores = read_scores(
        judge_items(items, [system, baseline_system("reference", None)], tmp_path / "records"), INPAINTING
    )
    text = " ".join(read_page(render_report(build_results(scores, INPAINTING, n_resamples=10), scores)).text)
    assert "note F1 1.000" in text  # of seed 0, which is drawn; the mean over seeds is 0.5


def test_the_tempo_is_one(page: str, read_page: Any) -> None:
    assert 'data-step-sec="0.104166' in page  # a step of a sixth of a quarter at 96 a minute
    link = next(attrs for attrs in read_page(page).all("a") if "download" in attrs)
    score = read_midi(base64.b64decode((link["href"] or "").partition("base64,")[2]))
    assert score.tempos[0].bpm == pytest.approx(96)


def test_a_piano_roll_shows_every_note() -> None:
    context = np.full(384, 129, dtype=np.uint8)
    context[[0, 150, 250]] = [60, 62, 64]
    middle = np.full(96, 129, dtype=np.uint8)
    middle[[0, 6, 7]] = [70, 128, 71]
    picture = plots.piano_roll(context, middle, label='a "roll"')
    assert picture.count('class="note"') == 2  # the note of the true middle is not drawn
    assert picture.count('class="note filled"') == 2
    assert picture.count('class="bar"') == 17
    assert 'aria-label="a &quot;roll&quot;"' in picture
    empty = plots.piano_roll(np.full(384, 129, dtype=np.uint8), np.full(96, 129, dtype=np.uint8), label="rests")
    assert 'class="note' not in empty


def test_song_means() -> None:
    means = plots.song_means(np.array([1.0, 0.0, np.nan, 0.5, np.nan]), ["b", "b", "a", "a", "c"])
    np.testing.assert_array_equal(means, [0.5, 0.5, np.nan])


def test_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingBackendError, match=r"\.\[report\]"):
        plots.check_backend()
