"""The leaderboard's Space: its callbacks as plain functions, its layout as Gradio builds it."""

from __future__ import annotations

import dataclasses
import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from tests import pages

from music_evals.errors import HubError, NoDataError, UnknownNameError
from music_evals.leaderboard import build_leaderboard, keep_tables
from music_evals.leaderboard.board import add_part
from music_evals.leaderboard.details import Detail
from music_evals.leaderboard.records import ResultRecord, id_of
from music_evals.ui.spaces import leaderboard as leaderboard_space
from music_evals.ui.spaces.leaderboard import (
    Board,
    board_folder,
    load_board,
    show_item,
    show_items,
    show_table,
    table_code,
)
from music_evals.ui.spaces.leaderboard_views import find_cell, item_scores, safe, score_html, table_html

ROOT = Path(__file__).resolve().parents[3]
SPACE = ROOT / "spaces" / "leaderboard"
NASTY = "<img src=x onerror=alert(1)>{{constructor}}${alert(1)}\"'"


class Page(HTMLParser):
    """Tags, attributes and text of a piece of HTML, whose elements must close in order."""

    VOID = frozenset({"img", "br", "input", "wbr"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def is_harmless(text: str) -> bool:
    """Whether a name of ours has become no element, no attribute and no template."""
    page = Page(text)
    return (
        "img" not in page.tags
        and "script" not in page.tags
        and not any(name.startswith("on") for name, _ in page.attributes)
        and "${" not in text
        and "{{" not in text
    )


def load(board: Path) -> Board:
    *_, last = load_board(str(board))
    assert last is not None
    return last


@pytest.fixture(scope="module")
def shipped() -> Board:
    return load(SPACE / "board")


def record(system: str, task: str, values: list[float | None], **fields: Any) -> ResultRecord:
    settings = {"dataset": "toy", "config": None, "split": "test", "variant": "official"}
    n = len(values)
    made = ResultRecord(
        **{
            "id": "", "task": task, "dataset": "toy", "config": None, "split": "test", "revision": None,
            "fingerprint": None, "system": system, "role": "system", "content": None, "metric": "m", "title": "Total",
            "direction": "higher", "kind": "mean", "variant": "official", "value": 0.5, "low": 0.4, "high": 0.6,
            "confidence": 0.95, "floor": None, "n": n, "n_defined": n, "n_failed": 0,
            "items": tuple(f"i{row}" for row in range(n)), "groups": tuple(f"g{row}" for row in range(n)),
            "references": ("r",) * n, "values": tuple((value,) for value in values), "reference_values": (),
            "unranked": "", "settings": settings, "extractors": {}, "receipt": {}, "run": "run", "date": "2026-11-20",
        }
        | fields
    )  # fmt: skip
    return dataclasses.replace(made, id=id_of(made))


OUTLINE = {
    "duration_sec": 4.0,
    "beats": [0.5, 1.0],
    "chords": [[0.0, 2.0, NASTY]],
    "segments": [[0.0, 4.0, NASTY]],
    "melody": [[0.0, 1.0, 60]],
}


@pytest.fixture
def hostile(tmp_path: Path) -> Board:
    """A board whose names and details are as nasty as they can be."""
    items = tuple(NASTY + str(row) for row in range(3))
    lyrics = record(NASTY, "lyrics", [0.5, None, 0.25], items=items, submitter=NASTY, title=NASTY)
    edits = record(NASTY, "preservation", [0.5, 0.5, 0.5], items=items)
    gaps = record(NASTY, "inpainting", [0.5, 0.5, 0.5], items=items, metric="note_f1")
    sides = {side: {"name": NASTY + ".wav", "content": side} for side in ("reference", "estimate")}
    told = [
        (items[0], NASTY, "explanation", {"lines": [NASTY]}),
        (items[1], NASTY, "explanation", ["no mapping"]),
        (items[2], NASTY, "tags", {"tags": {NASTY: {NASTY: [NASTY]}}}),
        (items[2], NASTY, "pair", {**sides, "remarks": [NASTY]}),
        (items[1], NASTY, "pair", {"reference": 7}),
        ("reference", "", "outline", OUTLINE),
        ("estimate", "", "outline", OUTLINE),
        (items[0], "", "context", {"tokens": [60] * 384}),
        (items[0], NASTY, "middle", {"tokens": [62] * 96}),
        (items[1], "", "context", {"tokens": ["x"] * 384}),
        (items[2], "", "context", {"tokens": [60] * 384}),
        (items[2], NASTY, "middle", {"tokens": [999] * 96}),
    ]
    details = [Detail("run", item, system, kind, json.dumps(said)) for item, system, kind, said in told]
    media = [
        Detail("run", side, "", "audio", json.dumps({"name": f"../../{side}{suffix}"}), b"RIFF")
        for side, suffix in (("reference", ".wav"), ("estimate", ".html"))
    ]
    add_part(tmp_path, [lyrics, edits, gaps], [*details, *media])
    return load(tmp_path)


def record_of(board: Board, **wanted: str) -> ResultRecord:
    return next(
        row for row in board.records.values() if all(getattr(row, key) == value for key, value in wanted.items())
    )


@pytest.mark.slow
def test_presets_come_first_and_the_shipped_board_shows_every_task(shipped: Board) -> None:
    titles = [title for title, _ in shipped.choices]
    assert titles[0] == "Score inpainting: JSB Chorales"
    tables = shipped.leaderboard["tables"]
    kinds = [(bool(table["published"]), not table["preset"]) for table in tables]
    assert kinds == sorted(kinds)  # our own first, presets before others
    assert {table["task"] for table in shipped.leaderboard["tables"]} == {
        "inpainting", "preservation", "lyrics", "descriptions",
    }  # fmt: skip


def test_a_table_with_ranks_and_its_filters(shipped: Board) -> None:
    name = shipped.choices[0][1]
    shown, _, receipt = show_table(shipped, name)
    page = Page(shown)
    assert "ranks 1-" in page.text
    assert receipt["config"] == "musib"
    assert ("aria-sort", "none") in page.attributes
    assert "reference" in page.text
    hidden = show_table(shipped, name, "", outside=False)[0]
    assert 'aria-label="reference, ' in shown
    assert 'aria-label="reference, ' not in hidden
    only = Page(show_table(shipped, name, "COPY past")[0])
    assert "copy_past" in only.text
    assert "markov" not in only.text
    assert "No system of this name" in show_table(shipped, name, "nobody")[0]


def test_rows_of_papers_are_grey_in_a_table_of_their_own(shipped: Board) -> None:
    name = next(table["id"] for table in shipped.leaderboard["tables"] if table["task"] == "lyrics")
    shown, about, _ = show_table(shipped, name)
    assert ("class", "published") in Page(shown).attributes
    assert "data-record" not in shown  # nothing stands behind them
    assert "published, not re-run" in shown
    assert "Wang et al." in about
    assert "the authors&#39; code" in shown  # the conditions are in the heading


def test_the_items_behind_a_score_and_their_music(shipped: Board) -> None:
    one = record_of(shipped, system="anticipation_rnn", metric="note_f1")
    told, items, receipt = show_items(shipped, one.id)
    assert "comparisons" in told
    assert len(items) == 308
    assert receipt["system"]["seeds"] == [0, 1, 2, 3, 4]
    values = [row.value for row in item_scores(one)]
    assert values == sorted(values)
    rolls, words, sounds = show_item(shipped, one.id, items[0][1])
    assert Page(rolls).tags.count("figure") == 2
    assert (words, sounds) == ("", {})


def test_a_divergence_shows_features(shipped: Board) -> None:
    one = record_of(shipped, system="markov", metric="groove_divergence")
    told, _, _ = show_items(shipped, one.id)
    assert "noise floor" in told
    assert "<th>reference</th>" in told
    gaps = [abs(row.value - row.reference) for row in item_scores(one)]
    assert gaps == sorted(gaps, reverse=True)


def test_timelines_are_behind_the_scores_of_edits(shipped: Board) -> None:
    one = record_of(shipped, system="tempo", metric="beat_f_measure")
    told, items, _ = show_items(shipped, one.id)
    assert "a kind of edit" in told
    rolls, words, sounds = show_item(shipped, one.id, items[0][1])
    assert (rolls, sounds) == ("", {})
    assert "timeline" in words


def test_hostile_names_and_details_stay_text(hostile: Board) -> None:
    for table in hostile.leaderboard["tables"]:
        shown, about, _ = show_table(hostile, table["id"])
        assert is_harmless(shown)
        assert is_harmless(about)
    for one in hostile.records.values():
        told, items, _ = show_items(hostile, one.id)
        assert is_harmless(told)
        for _, item in items:
            rolls, words, _ = show_item(hostile, one.id, item)
            assert is_harmless(rolls)
            assert is_harmless(words)


def test_details_that_cannot_be_drawn_are_told_so(hostile: Board) -> None:
    lyrics, gaps = (record_of(hostile, task=task) for task in ("lyrics", "inpainting"))
    assert "cannot be drawn" in show_item(hostile, lyrics.id, lyrics.items[1])[1]
    assert "Where points were lost" in show_item(hostile, lyrics.id, lyrics.items[0])[1]
    assert "Tags that the system gave" in show_item(hostile, lyrics.id, lyrics.items[2])[1]
    drawn = [Page(show_item(hostile, gaps.id, item)[0]).tags.count("figure") for item in gaps.items]
    assert drawn == [2, 0, 1]  # tokens that are none are left out


def test_recordings_keep_to_their_folder_and_their_kind(hostile: Board) -> None:
    one = record_of(hostile, task="preservation")
    sounds = show_item(hostile, one.id, one.items[2])[2]
    assert list(sounds) == ["reference"]  # what calls itself HTML is no recording
    path = sounds["reference"]
    assert path.name == "reference.wav"
    assert path.read_bytes() == b"RIFF"
    assert path.parent == Path(leaderboard_space._media_folder().name)


def test_undefined_items_come_last(hostile: Board) -> None:
    one = record_of(hostile, task="lyrics")
    told, items, _ = show_items(hostile, one.id)
    assert [label.rpartition(" ")[2] for label, _ in items] == ["(0.250)", "(0.500)", "(undefined)"]
    assert "undefined" in told


def test_names_that_the_board_does_not_have(shipped: Board) -> None:
    one = record_of(shipped, system="markov", metric="note_f1")
    for call in (
        lambda: show_table(shipped, "no table"),
        lambda: show_items(shipped, "no record"),
        lambda: show_item(shipped, one.id, "no item"),
    ):
        with pytest.raises(UnknownNameError):
            call()
    with pytest.raises(LookupError):
        find_cell(shipped.leaderboard["tables"][0], "none")


def test_escaping() -> None:
    assert safe("<a> & ${x} {{y}} \"'") == ("&lt;a&gt; &amp; &#36;&#123;x&#125; &#123;&#123;y&#125;&#125; &quot;&#x27;")


def test_where_a_board_may_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert board_folder(str(tmp_path)) == tmp_path
    for wrong in ("../nowhere/at/all", "https://example.org/board", ""):
        with pytest.raises(NoDataError):
            board_folder(wrong)
    with pytest.raises(HubError):  # the tests are offline
        board_folder("owner/board")
    asked: dict[str, Any] = {}

    def fetch(name: str, **options: Any) -> str:
        asked.update(options, name=name)
        return str(tmp_path)

    monkeypatch.setattr("huggingface_hub.snapshot_download", fetch)
    assert board_folder("owner/board") == tmp_path
    assert asked["repo_type"] == "dataset"
    assert all(pattern.endswith(".parquet") for pattern in asked["allow_patterns"])


def test_tables_of_a_board_on_the_hub_are_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_part(tmp_path, [record(name, "lyrics", [value] * 3) for name, value in (("a", 1.0), ("b", 0.5))])
    made = json.loads(json.dumps(build_leaderboard(tmp_path)))
    (test,) = (test for table in made["tables"] for test in table["tests"])
    test["p_value"] = 0.5
    keep_tables(made, tmp_path)
    assert load(tmp_path).leaderboard != build_leaderboard(tmp_path)
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda *_, **__: str(tmp_path))
    (*_, foreign) = load_board("owner/board")
    assert foreign is not None
    assert foreign.leaderboard == build_leaderboard(tmp_path)


def test_scores_are_escaped_whatever_they_hold(shipped: Board) -> None:
    table = json.loads(json.dumps(shipped.leaderboard["tables"][0]))
    row = next(row for row in table["rows"] if row["kind"] == "ranked")
    for cell in row["cells"].values():
        cell["value"] = '">' + NASTY
    for test in table["tests"]:
        test["n"] = NASTY
    assert is_harmless(table_html(table))
    one = record_of(shipped, id=next(iter(row["cells"].values()))["record"])
    assert is_harmless(score_html(table, one, item_scores(one)))


def test_a_board_is_loaded_in_stages(tmp_path: Path) -> None:
    pair = [record(name, "lyrics", [value] * 3) for name, value in (("a", 1.0), ("b", 0.5))]
    add_part(tmp_path, pair)
    said: list[tuple[float, str]] = []
    stages = list(load_board(str(tmp_path), progress=lambda share, stage: said.append((share, stage))))
    assert stages[:2] == [None, None]
    assert [stage for _, stage in said] == ["Finding the board", "Reading the records", "Comparing systems: m"]
    assert [share for share, _ in said] == sorted(share for share, _ in said)


def test_code_makes_the_same_table(shipped: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    name = shipped.choices[0][1]
    python, shell = table_code(shipped, name)
    compile(python, "code", "exec")
    assert "music-evals leaderboard build --board board" in shell
    monkeypatch.chdir(SPACE)
    monkeypatch.setattr("music_evals.leaderboard.build_leaderboard", lambda _: shipped.leaderboard)
    scope: dict[str, Any] = {}
    exec(python, scope)  # noqa: S102  (it is ours)
    assert scope["table"]["id"] == name
    python, shell = table_code(dataclasses.replace(shipped, name="owner/board"), name)
    assert 'snapshot_download("owner/board", repo_type="dataset")' in python
    assert shell.startswith("hf download owner/board --repo-type dataset")


@pytest.mark.slow
@pytest.mark.gradio
def test_the_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the board that is shipped, and with one that is not there, which is told on the page."""
    status = []
    for board in ("", "/nowhere/<b>"):
        monkeypatch.setenv("MUSIC_EVALS_BOARD", board)
        config = pages.build(SPACE / "app.py").get_config_file()
        parts = {part["props"].get("elem_id"): part["props"].get("value") for part in config["components"]}
        assert {"table_choice", "table", "search", "item", "rolls", "words", "reload", "cancel", "latex"} <= set(parts)
        assert {"show_table", "tables", "items", "reload"} <= set(pages.public_names(config))
        status.append(parts["status"])
    assert ["&lt;b&gt;" in text for text in status] == [False, True]


def test_app_is_short() -> None:
    lines = [line for line in (SPACE / "app.py").read_text().splitlines() if line.strip()]
    assert len(lines) <= 40
