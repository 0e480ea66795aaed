"""What lies in `datasets_scripts/irish_folk` is what the installed music21 gives."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import pytest

from music_evals.datasets.irish_folk.build import CLEARED, corpus_folder, read_tunes, tune_sources
from music_evals.datasets.manifest import load_split, rows_sha256
from music_evals.datasets.tune_files import SPLITS

FOLDER = Path(__file__).resolve().parents[3] / "datasets_scripts" / "irish_folk"


def test_only_the_cleared_book_is_passed_on() -> None:
    for split in SPLITS:
        assert set(load_split(FOLDER, CLEARED, split)["collection"]) == {"ryansMammoth"}


def test_no_family_and_no_middle_crosses_the_splits() -> None:
    where = defaultdict(set)
    for split in SPLITS:
        for family in load_split(FOLDER, CLEARED, split)["family"]:
            where[family].add(split)
    assert all(len(splits) == 1 for splits in where.values())
    test = load_split(FOLDER, CLEARED, "test")
    assert not any(test["seen_in_train"])
    assert max(test["near_train"]) < 14 / 16


@pytest.mark.slow
def test_a_few_tunes_read_anew_have_the_rows_of_the_folder() -> None:
    pytest.importorskip("music21")
    rows = [row for split in SPLITS for row in load_split(FOLDER, CLEARED, split)]
    wanted = sorted({row["song"] for row in rows})[::100]
    sources = [source for source in tune_sources(corpus_folder()) if source.name in wanted]
    tunes, _ = read_tunes(sources)
    assert [tune.name for tune in tunes] == wanted
    for tune in tunes:
        windows = [row for row in rows if row["song"] == tune.name]
        assert tune.n_windows == len(windows)
        assert windows[0]["tokens"] == tune.tokens[:384].tolist()
        assert windows[-1]["tokens"] == tune.tokens[-384:].tolist()
        assert (tune.title, tune.mode, tune.key_fifths) == tuple(
            windows[0][name] for name in ("title", "mode", "key_fifths")
        )


@pytest.mark.slow
def test_the_counts_of_the_manifest_are_those_of_the_rows() -> None:
    manifest = json.loads((FOLDER / "manifest.json").read_text())
    for split in SPLITS:
        rows = load_split(FOLDER, CLEARED, split)
        counts = manifest["counts"][CLEARED][split]
        assert counts["windows"] == len(rows)
        assert counts["songs"] == len(set(rows["song"]))
        assert counts["families"] == len(set(rows["family"]))
        [facts] = [facts for name, facts in manifest["files"].items() if f"/{split}-" in name]
        assert rows_sha256(rows.to_list()) == facts["rows_sha256"]
