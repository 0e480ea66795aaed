"""The report of a preservation run: what is heard, sorted and compared on it."""

from __future__ import annotations

import base64
import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.benchmark.tasks.preservation.test_results import records
from tests.benchmark.tasks.preservation.test_task import TUNE, save_tune

from music_evals.audio.loudness import integrated_loudness
from music_evals.benchmark.results import build_results
from music_evals.benchmark.scores import read_scores
from music_evals.benchmark.tasks.preservation import players, report
from music_evals.benchmark.tasks.preservation.pairs import CEILING, UNRELATED
from music_evals.benchmark.tasks.preservation.players import AUDIO_FOLDER, Players
from music_evals.benchmark.tasks.preservation.plots import note_name, timeline
from music_evals.benchmark.tasks.preservation.report import render_report
from music_evals.benchmark.tasks.preservation.task import PRESERVATION
from music_evals.stats import paired_mean_test

soundfile = pytest.importorskip("soundfile")
RATE = 16000


def tone(path: Path, level: float = 0.5, *, seconds: float = 1.0, channels: int = 2) -> str:
    times = np.arange(int(seconds * RATE)) / RATE
    samples = np.tile((level * np.sin(2 * np.pi * 440 * times))[:, None], channels)
    soundfile.write(path, samples, RATE)
    return str(path)


def pair(first: str, second: str) -> dict[str, Any]:
    return {"reference": {"name": f"{first}.wav", "content": first}, "estimate": {"name": second, "content": second}}


@pytest.fixture
def paths(tmp_path: Path) -> dict[str, str]:
    """What files hold, and where they are."""
    quiet = tone(tmp_path / "quiet.wav", 0.1, seconds=1.5)
    (tmp_path / "broken.wav").write_bytes(b"RIFF who knows")
    return {"../loud": tone(tmp_path / "loud.wav"), "quiet": quiet, "broken": str(tmp_path / "broken.wav")}


@pytest.fixture
def out(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


# --- players


def test_files_lie_beside_the_page_and_are_named_by_us(paths: dict[str, str], out: Path) -> None:
    made = Players("beside", out, paths)
    found = made.player(pair("../loud", "quiet"))
    assert found is not None
    assert found.seconds == 1.5
    assert all(re.fullmatch(rf"{AUDIO_FOLDER}/[0-9a-f]{{16}}\.flac", url) for url in found.urls)
    assert sorted(path.name for path in (out / AUDIO_FOLDER).iterdir()) == sorted(Path(url).name for url in found.urls)
    heard = [soundfile.read(out / url) for url in found.urls]
    assert [(samples.shape, rate) for samples, rate in heard] == [((RATE, 2), RATE), ((RATE * 3 // 2, 2), RATE)]
    loudness = [
        integrated_loudness(gain * samples.mean(axis=1), rate)
        for gain, (samples, rate) in zip(found.gains, heard, strict=True)
    ]
    assert loudness[0] == pytest.approx(loudness[1], abs=0.1)
    assert "the original plays 14.0 dB softer than its file" in found.levels
    assert made.folder == out / AUDIO_FOLDER
    again = Players("beside", out, paths).player(pair("../loud", "quiet"))
    assert again == found  # equal names and numbers at every run


def test_the_page_itself_holds_mono(paths: dict[str, str], out: Path) -> None:
    found = Players("embedded", out, paths).player(pair("../loud", "quiet"))
    assert found is not None
    head, _, text = found.urls[0].partition(",")
    assert head == "data:audio/flac;base64"
    samples, rate = soundfile.read(io.BytesIO(base64.b64decode(text)))
    assert (samples.shape, rate) == ((22050,), 22050)
    assert np.abs(samples).max() == pytest.approx(0.5, abs=0.02)  # as loud as the file
    assert not list(out.iterdir())


def test_no_players_are_made_unless_they_are_wanted(paths: dict[str, str], out: Path) -> None:
    made = Players("none", out, paths)
    assert made.player(pair("../loud", "quiet")) is None
    assert (made.missing, made.folder, list(out.iterdir())) == ({}, None, [])


def test_what_cannot_be_heard_is_named_without_its_place(paths: dict[str, str], out: Path) -> None:
    made = Players("beside", out, paths)
    assert made.player(pair("broken", "quiet")) is None
    assert made.player(pair("quiet", "of another run")) is None
    assert made.player(pair("quiet", "../loud")) is not None
    assert made.missing == {"broken.wav": "UnreadableFileError", "of another run": "not among the files of this run"}


def test_sizes_are_bounded(paths: dict[str, str], out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(players, "MOST_SEC", 0.5)
    short = Players("beside", out, paths).player(pair("../loud", "quiet"))
    assert short is not None
    assert short.seconds == 0.5
    size = (out / short.urls[0]).stat().st_size
    monkeypatch.setattr(players, "MOST_BYTES", {"beside": size, "embedded": 0})
    bounded = Players("beside", out, paths)
    assert bounded.player(pair("../loud", "quiet")) is None
    assert list(bounded.missing) == ["quiet"]
    assert "together may take" in bounded.missing["quiet"]


def test_files_of_an_earlier_report_are_removed_and_no_others(paths: dict[str, str], out: Path) -> None:
    Players("beside", out, paths).player(pair("../loud", "quiet"))
    (out / AUDIO_FOLDER / "notes.flac").write_text("mine")
    later = Players("beside", out, paths)
    found = later.player(pair("quiet", "quiet"))
    assert found is not None
    later.tidy()
    assert {path.name for path in (out / AUDIO_FOLDER).iterdir()} == {"notes.flac", Path(found.urls[0]).name}
    (out / AUDIO_FOLDER / "notes.flac").unlink()
    Players("none", out, paths).tidy()
    assert not (out / AUDIO_FOLDER).exists()


def test_scores_are_rendered(tmp_path: Path, out: Path) -> None:
    save_tune(tmp_path / "tune.mid", TUNE[:4])
    found = Players("beside", out, {"tune": str(tmp_path / "tune.mid")}).player(pair("tune", "tune"))
    assert found is not None
    assert found.seconds == pytest.approx(3.0, abs=0.01)  # four notes of half a second, and a second after them


# --- the page


def made(scores: dict[tuple[str, str], list[Any]]) -> tuple[dict[str, Any], Any]:
    rows = records(scores)
    contents = {row[side]["content"] for row in rows if row["kind"] == "pair" for side in ("reference", "estimate")}
    melody = [[0.0, 1.0, 60.0], [1.0, 2.0, 67.0]]
    outline = {"kind": "outline", "duration_sec": 4.0, "beats": [1.0, 2.0], "melody": melody}
    found = read_scores([*rows, *({**outline, "content": content} for content in sorted(contents))], PRESERVATION)
    return build_results(found, PRESERVATION, n_resamples=20), found


SCORES: dict[tuple[str, str], list[Any]] = {
    ("s", "a"): [0.0, 0.9], ("s", "b"): [0.5, 0.2], ("s", "c"): [0.0, None],
    ("t", "a"): [1.0, 0.4], ("t", "b"): [0.5, 0.1],
    (CEILING, "a"): [0.0, 1.0], (UNRELATED, "a"): [0.5, 0.125],
}  # fmt: skip


def test_a_pair_is_heard_where_it_is_drawn(paths: dict[str, str], out: Path, read_page: Any) -> None:
    results, found = made(SCORES)
    paths = {f"{side} {item}": paths["quiet"] for side in ("reference", "estimate") for item in "abc"}
    page = render_report(results, found, players=Players("beside", out, paths))
    parsed = read_page(page)
    links = [attributes for attributes in parsed.all("a") if "data-side" in attributes]
    assert len(links) == 2 * 5  # five pairs are drawn
    assert all((out / str(link["href"])).is_file() for link in links)
    assert {link["download"] for link in links} == {
        f"{item}_{side}.flac" for item in "abc" for side in ("original", "s", "t")
    } - {"c_t.flac"}
    ids = {attributes["id"] for _, attributes in parsed.tags if "id" in attributes}
    targets = {str(link["href"])[1:] for link in parsed.all("a") if str(link["href"]).startswith("#")}
    assert targets == {f"pair-{n}" for n in range(1, 6)} <= ids
    assert page.count('data-per-sec="') == 5
    assert "This page was made without players." in render_report(results, found)
    told = "Without a player, since a file cannot be heard: b.wav: not among the files of this run"
    assert told in render_report(results, found, players=Players("beside", out, {}))


def cells_of(page: str) -> list[list[str]]:
    (table,) = re.findall(r'<table class="pairs">.*?</table>', page, flags=re.DOTALL)
    rows = re.findall(r"<tr><th scope=\"row\".*?</tr>", table, flags=re.DOTALL)
    return [[re.sub(r"<.*?>", "", cell).strip() for cell in re.findall(r"<t[hd].*?</t[hd]>", row)] for row in rows]


def test_every_pair_stands_in_the_list_the_worst_first() -> None:
    results, found = made(SCORES)
    page = render_report(results, found)
    assert cells_of(page) == [
        ["b", "s", "0.500", "0.200"], ["a", "s", "0.000", "0.900"], ["c", "s", "0.000", "n/a"],
        ["a", "t", "1.000", "0.400"], ["b", "t", "0.500", "0.100"],
        ["a", CEILING, "0.000", "1.000"], ["a", UNRELATED, "0.500", "0.125"],
    ]  # fmt: skip
    assert "7 of 7 pairs that were judged." in page
    data = re.search(r'<script type="application/json">(.*?)</script>', page, flags=re.DOTALL)
    assert data is not None
    held = json.loads(data[1])  # of which the page makes the rows that it shows
    told = [[item, held["systems"][system], *(text for text, _ in cells)] for system, item, _, cells in held["rows"]]
    assert told == cells_of(page)
    assert [value for *_, cells in held["rows"] for _, value in cells][3:6] == [0.9, 0.0, None]
    assert "<td>n/a</td>" in page  # without a value to sort by


def test_a_long_list_has_equal_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "MOST_PAIRS", 4)
    page = render_report(*made(SCORES))
    assert [row[:2] for row in cells_of(page)] == [["b", "s"], ["a", "t"], ["a", CEILING], ["a", UNRELATED]]
    assert "4 of 7 pairs that were judged, the worst of each system" in " ".join(page.split())


def test_a_run_of_failures_has_no_list() -> None:
    rows = [row for row in records({("s", "a"): [0.0, 0.0]}) if row["kind"] in {"run", "selection"}]
    rows.append({"kind": "pair", "item": "a", "system": "s", "error": "E: x"})
    found = read_scores(rows, PRESERVATION)
    assert "<h2>Pairs by metric</h2>" not in render_report(build_results(found, PRESERVATION), found)


def test_systems_are_compared_on_the_pairs_that_they_share() -> None:
    values = {"a": (0.9, 0.4), "b": (0.2, 0.1), "c": (0.6, None), "d": (0.8, 0.7), "e": (0.5, 0.3)}
    scores: dict[tuple[str, str], list[Any]] = {("s", item): [0.0, first] for item, (first, _) in values.items()}
    scores |= {("t", item): [0.0, second] for item, (_, second) in values.items() if item != "e"}
    results, found = made(scores)
    page = " ".join(render_report(results, found).split())
    assert "4 pairs (of 5 and 4) shared" in page
    first, second = np.array([0.9, 0.2, 0.8]), np.array([0.4, 0.1, 0.7])
    test = paired_mean_test(first, second, ["a", "b", "d"], n_resamples=200, span=(0, 1))
    row = re.search(r'rowheader">Beat F-measure ↑</th>(.*?)</tr>', page)
    assert row
    cells = re.findall(r">([^<]+)</td>", row[1])
    interval = f"{first.mean() - second.mean():+.3f} ({test.low:.3f}..{test.high:.3f})"
    assert cells[:3] == [f"{first.mean():.3f}", f"{second.mean():.3f}", interval]
    assert cells[-2:] == ["none", "3"]


def test_the_better_system_is_named_where_a_difference_is_significant() -> None:
    scores = {("s", f"{n}"): [0.0, 0.9] for n in range(9)} | {("t", f"{n}"): [0.5, 0.9] for n in range(9)}
    page = " ".join(render_report(*made(scores)).split())
    row = re.search(r"rowheader\">Circle-of-fifths distance ↓</th>(.*?)</tr>", page)
    assert row
    assert re.findall(r"<td.*?>([^<]+)</td>", row[1])[-2:] == ["s", "9"]  # less is better
    assert "9 pairs shared, 1 of 2 differences significant" in page


def test_what_chance_gives_is_that_of_the_run() -> None:
    results, found = made(SCORES)
    page = render_report(results, found)
    assert "In this run unrelated music reaches 0.500 in Circle-of-fifths distance and 0.125 in Beat F-measure" in page
    assert not re.search(r"Unrelated music reaches \d", page)  # nothing of other runs
    alone = {key: values for key, values in SCORES.items() if key[0] != UNRELATED}
    assert "<b>chance</b>" not in render_report(*made(alone))


# --- timelines


def test_the_melody_has_an_axis_of_notes() -> None:
    side = {"duration_sec": 4.0, "melody": [[0.0, 1.0, 55.0], [1.0, 2.0, 79.0]]}
    picture = timeline(side, {**side, "melody": []}, label="x")
    names = [(name, float(y)) for y, name in re.findall(r'class="pitch" x="\d+" y="([\d.]+)">([^<]+)', picture)]
    own, other = names[: len(names) // 2], names[len(names) // 2 :]
    assert " ".join(name for name, _ in own) == "A3 C4 Eb4 F#4 A4 C5 Eb5 F#5"
    assert [name for name, _ in other] == [name for name, _ in own]  # one scale for both sides
    gaps = np.diff([y for _, y in own])
    assert np.allclose(gaps, -3 * 96 / 26, atol=0.11)  # three semitones up, in a lane of 96 px for 26 of them
    assert picture.count('<line class="pitch"') == len(names)
    assert re.search(r'<rect class="note[^"]*" x="0.0"[^>]*><title>G3</title>', picture)
    flat = {"duration_sec": 1.0, "melody": [[0.0, 1.0, 60.0]]}
    assert ">C4</text>" in timeline(flat, flat, label="x")


def test_long_music_gets_a_wider_picture() -> None:
    def width(seconds: float) -> float:
        picture = timeline({"duration_sec": seconds}, {"duration_sec": 1}, label="x")
        found = re.search(r'class="lanes"[^>]*viewBox="0 0 (\d+)', picture)
        assert found
        return float(found[1])

    assert width(10) == width(60) == 880
    assert width(180) == 3 * 880
    assert width(36_000) == 10 * 880


@pytest.mark.parametrize(
    ("pitch", "name"), [(60, "C4"), (69, "A4"), (21, "A0"), (60.4, "C4"), (127, "G9"), (-1, "B-2")]
)
def test_names_of_notes(pitch: float, name: str) -> None:
    assert note_name(pitch) == name
