import json
import re
import zipfile

import numpy as np
import pytest

from music_evals.annotations import KeySignature, Score, TimeSignature
from music_evals.datasets.bach_corpus import Chorale, Measure, chorale_list, chorale_paths, read_chorale, read_listed
from music_evals.datasets.jsb_chorales.build import (
    CONFIGS,
    build_config,
    corpus_counts,
    count_notated_measures,
    is_strict,
    musib_piece,
    musib_songs,
    near_counts,
    pieces_of,
    song_rows,
    strict_piece,
    training_content,
    window_counts,
)
from music_evals.datasets.jsb_chorales.style import style_configs, style_counts
from music_evals.datasets.manifest import rows_sha256
from music_evals.errors import InvalidInputError, UnknownNameError
from music_evals.symbolic.measures import count_musib_measures
from music_evals.symbolic.notes import make_notes

NOTHING = training_content([])
"""No training windows."""


@pytest.fixture(scope="module")
def folder(root):
    return root / "datasets_scripts" / "jsb_chorales"


def parquet_rows(folder, config, split):
    import pyarrow.parquet as pq

    return pq.read_table(folder / f"data/{config}/{split}-00000-of-00001.parquet").to_pylist()


def chorale(*, name="bwv999", n_bars=17, pickup=1.0, signatures=frozenset({"4/4"}), voices=4, bar_lines=None):
    """Quarter notes in every voice: a pickup, full bars, and a last bar that lacks the pickup."""
    n_quarters = int(4 * n_bars)
    onsets = np.tile(np.arange(n_quarters) * 6, voices)
    voice = np.repeat(np.arange(voices), n_quarters)
    notes = make_notes(onsets, np.full(len(onsets), 6), 60 + onsets // 6 % 5, voice=voice)
    score = Score(notes, 6, (TimeSignature(0, 4, 4),), (), (KeySignature(0, 1),), tuple("SATB"[:voices]))
    lines = bar_lines or [pickup + 4 * bar for bar in range(n_bars - (pickup > 0))]
    bars = [Measure(line, 4.0, 4.0) for line in lines]
    last = pickup + 4 * (n_bars - 1)
    if pickup:
        bars = [Measure(0.0, pickup, 4.0), *bars, Measure(last, 4 - pickup, 4.0)]
    return Chorale(name, score, tuple(bars), signatures, "major")


# The table of facts.


def test_the_fact_table_has_the_published_numbers():
    counts = window_counts(fact.n_measures for fact in musib_songs().values())
    assert counts == {"songs": 171, "measures": 13_304, "published_contexts": 2_360, "windows": 3_044}
    splits = [fact.split for fact in musib_songs().values()]
    assert [splits.count(split) for split in ("train", "validation", "test")] == [136, 17, 18]


def test_windows_of_the_fact_table_by_split():
    for split, expected in {"train": 2_504, "validation": 232, "test": 308}.items():
        songs = [fact for fact in musib_songs().values() if fact.split == split]
        assert window_counts(fact.n_measures for fact in songs)["windows"] == expected


# Pieces and rows.


def test_the_pickup_is_left_out_of_strict_pieces():
    piece = strict_piece(chorale(n_bars=17))
    assert (piece.cut_quarters, piece.n_measures, piece.split) == (1.0, 17, "train")
    windows = piece.windows(0)
    assert windows.shape == (2, 384)
    # Quarter k has pitch 60 + k mod 5; measure 0 starts with quarter 1.
    assert windows[0, :24:6].tolist() == [61, 62, 63, 64]
    # The last note is quarter 67, pitch 60 + 2; what would be quarter 68 is the beat that the pickup has: a rest.
    assert windows[1, -12:].tolist() == [62, 128, 128, 128, 128, 128] + [129] * 6


def test_notated_measures_include_the_one_that_completes_the_pickup():
    assert count_notated_measures(chorale(n_bars=17, pickup=1.0)) == 17
    assert count_notated_measures(chorale(n_bars=17, pickup=0.0)) == 17


@pytest.mark.parametrize(
    ("options", "strict"),
    [
        ({}, True),
        ({"pickup": 0.0}, True),
        ({"signatures": frozenset({"3/4"})}, False),
        ({"signatures": frozenset({"3/4", "4/4"})}, False),
        ({"voices": 3}, False),
        ({"bar_lines": [1.0, 5.0, 8.0]}, False),  # a repeat that goes back to the wrong place
    ],
)
def test_strict_pieces_are_four_parts_in_aligned_4_4(options, strict):
    assert is_strict(chorale(**options)) is strict


def test_short_pieces_have_no_place_in_strict():
    assert pieces_of("strict_4_4", [chorale(n_bars=15)]) == []


def test_an_unknown_config_names_the_nearest():
    with pytest.raises(UnknownNameError, match="musib_official"):
        build_config("musib_oficial", [])


def test_a_song_that_musib_does_not_have_is_refused():
    with pytest.raises(UnknownNameError, match="bwv999"):
        musib_piece(chorale())


def test_another_version_of_the_corpus_is_noticed():
    with pytest.raises(InvalidInputError, match="MUSIB's table says 18"):
        musib_piece(chorale(name="bwv10.7", n_bars=20))


def test_rows_of_train_are_seen_and_others_by_their_middle():
    piece = strict_piece(chorale(n_bars=16))
    assert all(row["seen_in_train"] for row in song_rows(piece, NOTHING))
    held_out = strict_piece(chorale(name="bwv187.7", n_bars=16))
    assert held_out.split == "test"
    assert not any(row["seen_in_train"] for row in song_rows(held_out, NOTHING))
    assert all(row["seen_in_train"] for row in song_rows(held_out, training_content([piece.windows(0)])))


def test_rows_tell_how_near_training_and_context_come():
    """Pitch 60 + quarter mod 5: five measures later everything is the same, a measure later it is a transposition."""
    held_out = strict_piece(chorale(name="bwv187.7", n_bars=16))
    assert {row["near_train"] for row in song_rows(held_out, NOTHING)} == {0.0}
    assert {row["near_train"] for row in song_rows(held_out, training_content([held_out.windows(0)]))} == {1.0}
    assert {row["near_train"] for row in song_rows(strict_piece(chorale(n_bars=16)), NOTHING)} == {1.0}
    # the middle is measures 6..9, and measures 1..4 of the past are the same
    assert {row["repeats_in_context"] for row in song_rows(held_out, NOTHING)} == {1.0}


def test_rows_go_by_voice_and_then_by_start():
    rows = list(song_rows(strict_piece(chorale(n_bars=17)), NOTHING))
    assert [row["item_id"] for row in rows][:3] == ["bwv999/soprano/000", "bwv999/soprano/001", "bwv999/alto/000"]
    assert rows[-1]["item_id"] == "bwv999/bass/001"
    assert rows[0]["notes"][0] == {"onset_step": 0, "duration_step": 6, "pitch": 61}


# The shipped files.


def test_a_strict_song_is_rebuilt_row_by_row(folder):
    pytest.importorskip("music21", reason="the corpus comes with music21 (extra: symbolic)")
    piece = strict_piece(read_chorale("bwv121.6"))
    expected = [row for row in parquet_rows(folder, "strict_4_4", "train") if row["song"] == "bwv121.6"]
    assert list(song_rows(piece, NOTHING)) == expected


@pytest.mark.slow
def test_the_whole_corpus_is_rebuilt_exactly(folder):
    pytest.importorskip("music21", reason="the corpus comes with music21 (extra: symbolic)")
    manifest = json.loads((folder / "manifest.json").read_text())
    chorales = [read_chorale(name) for name in chorale_paths()]
    configs = {config: build_config(config, chorales) for config in CONFIGS}
    listed = chorale_list()
    pieces = {name: read_listed(name) for name in sorted(set(listed))}
    whole = style_configs(pieces, listed)
    counts = {**corpus_counts(chorales), "near_copies": near_counts(configs), **style_counts(pieces, whole)}
    counts = json.loads(json.dumps(counts))  # tuples become lists, as they did in the manifest
    assert counts == manifest["counts"]
    assert counts["musib"] == {"songs": 171, "measures": 13_304, "published_contexts": 2_360, "windows": 3_044}
    found = {
        f"data/{config}/{split}-00000-of-00001.parquet": (len(rows), rows_sha256(rows))
        for config, splits in {**configs, **whole}.items()
        for split, rows in splits.items()
    }
    assert found == {name: (facts["rows"], facts["rows_sha256"]) for name, facts in manifest["files"].items()}


def first_part(path):
    """The number of parts of a compressed file, and its page with the first part alone: a fourth to read."""
    with zipfile.ZipFile(path) as archive:
        [page] = [name for name in archive.namelist() if name != "mimetype" and not name.startswith("META-INF/")]
        text = archive.read(page).decode()
    groups = "(?s)<part-group[^>]*/>|<part-group.*?</part-group>"  # which name the others
    first = re.sub(groups, "", text.partition("</part>")[0])
    return text.count("</part>"), f"{first}</part></score-partwise>"


def measures_of(page):
    return count_musib_measures([round(float(note.offset) * 10_080) for note in page.flatten().notes], 10_080)


@pytest.mark.slow
def test_other_readings_of_the_counting_rule_give_other_sets():
    """The rule on the page instead of the MIDI export: only merging ties after the repeats leads to MUSIB's songs."""
    music21 = pytest.importorskip("music21", reason="the corpus comes with music21 (extra: symbolic)")
    readings = {"naive": {}, "merged first": {}, "merged": {}}
    for name, path in chorale_paths().items():
        n_parts, text = first_part(path)
        if n_parts != 4:
            continue
        stream = music21.converter.parseData(text, format="musicxml").parts[0]
        page = stream.expandRepeats()
        readings["naive"][name] = measures_of(page)
        page.stripTies(inPlace=True)
        readings["merged"][name] = measures_of(page)
        stream.stripTies(inPlace=True)
        readings["merged first"][name] = measures_of(stream.expandRepeats())
    kept = {reading: {name: n for name, n in counts.items() if n >= 16} for reading, counts in readings.items()}
    assert window_counts(kept["naive"].values())["songs"] == 172
    assert window_counts(kept["naive"].values())["measures"] == 13_396
    assert window_counts(kept["merged first"].values())["measures"] == 13_312
    assert kept["merged"] == {name: fact.n_measures for name, fact in musib_songs().items()}
