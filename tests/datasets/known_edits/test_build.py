"""`known_edits`: every label is true of its row, files and code agree, recordings are what the truth says."""

from __future__ import annotations

import itertools
import json
import os
import pickle
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from music_evals import repositories
from music_evals.annotations import DRUMS
from music_evals.datasets.known_edits import build as known_edits
from music_evals.datasets.known_edits.chorales import CHORALES
from music_evals.datasets.known_edits.harmony import chord_pitch_classes
from music_evals.datasets.known_edits.labels import declared, holds, kinds, pieces
from music_evals.datasets.known_edits.tables import fill_card, kind_table, label_table, piece_table
from music_evals.datasets.known_edits.truth import features_of, velocity_chroma
from music_evals.datasets.manifest import rows_sha256
from music_evals.datasets.programs import BENCHMARK_PROGRAMS
from music_evals.errors import InvalidInputError, UnknownNameError

FOLDER = Path(__file__).resolve().parents[3] / "datasets_scripts" / "known_edits"


@pytest.fixture(scope="module")
def rows():
    from datasets import load_dataset

    loaded = load_dataset(str(FOLDER), "default")
    return [row for half in loaded.values() for row in half]


@pytest.fixture(scope="module", params=[7, pytest.param(1, marks=pytest.mark.slow)])
def some(request, rows):
    """Every seventh row, with each kind among them, where all are for the slow tests."""
    thinned = rows[:: request.param]
    assert {row["kind"] for row in thinned} == set(kinds())
    assert {row["piece"] for row in thinned} == set(pieces())
    return thinned


@pytest.fixture(scope="module")
def small():
    return list(known_edits.load_rows("small", "test", dataset=FOLDER))


@pytest.fixture(scope="module")
def manifest():
    return json.loads((FOLDER / "manifest.json").read_text())


@pytest.fixture(scope="module")
def card():
    return (FOLDER / "README.md").read_text()


@pytest.mark.slow
def test_every_label_of_every_row_is_true(some):
    """The claim of the data set, checked on what is in the files."""
    wrong = []
    for row in some:
        before, after = (known_edits.annotations(row, which) for which in known_edits.SIDES)
        wrong += [(row["item_id"], f) for f, label in row["labels"].items() if not holds(f, label, before, after)]
    assert wrong == []


def test_labels_are_those_of_edits_yaml(rows):
    for row in rows:
        entry = declared()["kinds"][row["kind"]]
        place = entry["strengths"].index(row["strength"])
        for field in declared()["fields"]:
            label = entry.get("labels", {}).get(field, "same")
            assert row["labels"][field] == (label if isinstance(label, str) else label[place])


def test_all_pieces_kinds_and_strengths_are_there(rows):
    assert {row["piece"] for row in rows} == set(pieces())
    assert len(pieces()) == 28
    wanted = {(kind.name, strength) for kind in kinds().values() for strength in kind.strengths}
    assert {(row["kind"], row["strength"]) for row in rows} == wanted
    ids = [row["item_id"] for row in rows]
    assert len(set(ids)) == len(ids)
    assert ids == [f"{row['piece']}/{row['kind']}/{row['strength']:g}" for row in rows]
    assert all(row["piece"] in declared()["pieces"][row["half"]] for row in rows)


def test_what_is_left_out_and_what_is_there_make_the_whole(rows, manifest):
    n_left_out = sum(n for counts in manifest["left_out"].values() for n in counts.values())
    assert len(rows) + n_left_out == 28 * sum(len(kind.strengths) for kind in kinds().values())
    assert manifest["left_out"]["untrue"].keys() == {"meter", "rubato"}


@pytest.mark.slow
def test_pieces_are_varied(rows, some):
    """What was asked for: length, tempo, meters, modes; none but the benchmark's programs."""
    sources = {row["piece"]: row for row in rows}
    scores = {name: known_edits.score(row, "reference") for name, row in sources.items()}
    for name, row in sources.items():
        assert 30 <= row["reference"]["duration_sec"] <= 46, name
        assert 60 <= round(row["reference"]["bpm"], 2) <= 160, name
    programs = {p for row in some for p in known_edits.score(row, "estimate").programs}
    assert programs - {DRUMS} <= set(BENCHMARK_PROGRAMS)
    meters = {(s.time_signatures[0].numerator, s.time_signatures[0].denominator) for s in scores.values()}
    assert meters == {(4, 4), (3, 4), (6, 8), (2, 4)}
    assert {row["reference"]["key"]["mode"] for row in sources.values()} == {"major", "minor"}
    assert sum(DRUMS in score.programs for score in scores.values()) == 13


def test_scores_hold_the_truth(some):
    """Melody of the MIDI file, in seconds by its tempo map, is the melody of the annotation before audio edits."""
    for row in some:
        if row["operations"] != "[]" or row["piece"].startswith("chorale"):
            continue
        score, truth = known_edits.score(row, "estimate"), known_edits.annotations(row, "estimate")
        onsets = score.notes["onset_tick"]
        seconds = score.seconds(np.stack([onsets, onsets + score.notes["duration_tick"]], axis=1))
        if "melody" in score.voices:
            mine = score.notes["voice"] == score.voices.index("melody")
            assert np.abs(seconds[mine] - truth.melody.intervals_sec).max() < 1e-5
            assert score.notes["pitch"][mine].tolist() == truth.melody.pitches.tolist()
        else:
            assert len(truth.melody.pitches) == 0
        assert truth.duration_sec == pytest.approx(seconds.max() + 1, abs=1e-5)
        assert score.tempos[-1].tick < score.end_tick


@pytest.mark.parametrize("name", [name for name in pieces() if not name.startswith("chorale")])
def test_the_accompaniment_plays_the_chords(name):
    """The chord that is named is the one whose tones sound: every note of chords and pad is one of them."""
    piece = known_edits.compose_piece(name)
    for part in piece.parts:
        if part.name in {"chords", "pad", "bass"}:
            assert all(note.pitch % 12 in chord_pitch_classes(piece.chord_at(note.onset)) for note in part.notes)


def test_small_is_part_of_the_held_out_half(rows, small):
    held_out = {row["item_id"]: row for row in rows if row["half"] == "held_out"}
    assert len(small) == 10
    assert {row["kind"] for row in small} == {kind for kind, _ in known_edits.SMALL_EDITS}
    assert all(row == held_out[row["item_id"]] for row in small)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["song_jig", "folk_londonderry_air"])
def test_a_rebuild_gives_the_rows_of_the_files(rows, name):
    built = [known_edits.row_of(edit) for edit in known_edits.iter_edits([name])]
    assert built == [row for row in rows if row["piece"] == name]


def test_a_rebuilt_chorale(rows):
    pytest.importorskip("music21", reason="the corpus comes with music21 (extra: symbolic)")
    built = [known_edits.row_of(edit) for edit in known_edits.iter_edits(["chorale_bwv281"])]
    assert built == [row for row in rows if row["piece"] == "chorale_bwv281"]


@pytest.mark.slow
def test_the_full_rebuild(tmp_path, manifest):
    pytest.importorskip("music21", reason="the corpus comes with music21 (extra: symbolic)")
    subprocess.run([sys.executable, FOLDER / "build.py", "--out", tmp_path], check=True)
    assert json.loads((tmp_path / "manifest.json").read_text()) == manifest
    for name in [*manifest["files"], "README.md"]:
        assert (tmp_path / name).read_bytes() == (FOLDER / name).read_bytes()


def test_the_files_are_small():
    assert sum(path.stat().st_size for path in FOLDER.rglob("*.parquet")) < 2 * 2**20


def test_the_tables_of_the_card(card, rows, manifest):
    assert label_table() in card
    assert kind_table(rows, manifest["left_out"]) in card
    parts = [known_edits.compose_piece(name) for name in pieces() if name not in CHORALES]
    assert all(line in card for line in piece_table(parts).splitlines())


def test_a_table_is_put_between_its_markers():
    card = "# Card\n<!-- table: a -->\nold\n<!-- end of table -->\nend <!-- table: b --> of it\n"
    filled = "# Card\n<!-- table: a -->\n\n| new |\n\n<!-- end of table -->\nend <!-- table: b --> of it\n"
    assert fill_card(card, {"a": "| new |\n"}) == filled
    assert fill_card(filled, {"a": "| new |\n"}) == filled
    with pytest.raises(InvalidInputError, match="no place for the table 'b'"):
        fill_card(card, {"b": ""})


def test_what_the_card_says_of_motifs_after_edits_of_the_form(rows, card):
    """Jaccard index and recall of the multisets of three intervals on the exact melody, from their definition."""
    found = {}
    for row in rows:
        if row["kind"] in {"sections_reordered", "section_repeated"}:
            before, after = (Counter(three_intervals(row[which]["melody"])) for which in known_edits.SIDES)
            shared = (before & after).total()
            entry = (shared / (before | after).total(), shared / before.total())
            found.setdefault((row["kind"], row["strength"]), []).append(entry)
    rotated, reversed_, repeated = (np.mean(found[key], axis=0) for key in sorted(found)[1:] + sorted(found)[:1])
    assert f"{rotated[0]:.2f} and {reversed_[0]:.2f} on average for the two reorderings" in " ".join(card.split())
    assert f"and {repeated[0]:.2f} for `section_repeated`, whose recall is {repeated[1]:g}" in " ".join(card.split())


def three_intervals(notes):
    steps = [b["pitch"] - a["pitch"] for a, b in itertools.pairwise(notes)]
    return zip(steps, steps[1:], steps[2:], strict=False)


def test_rows_sha256_reads_bytes_as_hexadecimal_digits():
    assert rows_sha256([{"midi": b"MT\x00"}]) == rows_sha256([{"midi": "4d5400"}])


def test_load_rows_finds_the_rows_of_the_clone(small, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert list(known_edits.load_rows("small", "test")) == small
    monkeypatch.setattr(repositories, "_home", lambda: None)
    with pytest.raises(UnknownNameError, match="unknown dataset 'known_edits'"):
        known_edits.load_rows("small", "test")


def test_load_rows_gives_what_load_dataset_gives(small):
    from datasets import load_dataset

    assert small == list(load_dataset(str(FOLDER), "small", split="test"))


def test_unknown_names(small, tmp_path):
    with pytest.raises(UnknownNameError, match="did you mean held_out"):
        known_edits.load_rows("default", "heldout", dataset=FOLDER)
    with pytest.raises(UnknownNameError, match="did you mean song_rock"):
        known_edits.compose_piece("song_rok")
    with pytest.raises(UnknownNameError, match="did you mean estimate"):
        known_edits.annotations(small[0], "estimated")
    with pytest.raises(UnknownNameError, match="unknown renderer 'piano'"):
        known_edits.render(small[0], renderer="piano", cache=tmp_path)


def of_kind(rows, kind):
    return next(row for row in rows if row["kind"] == kind)


@pytest.mark.slow
def test_recordings_last_as_long_as_the_truth_says(small, tmp_path):
    import soundfile

    for row in small:
        for which, path in zip(known_edits.SIDES, known_edits.render_pair(row, cache=tmp_path), strict=True):
            info = soundfile.info(path)
            assert (info.channels, info.samplerate, info.subtype) == (1, 22050, "FLOAT")
            assert info.duration == pytest.approx(row[which]["duration_sec"], abs=2e-4)


def test_one_recording_of_a_source_serves_all_its_edits(small, tmp_path):
    pop = [row for row in small if row["piece"] == "song_pop"]
    sources = {known_edits.render(row, which="reference", cache=tmp_path) for row in pop}
    assert len(sources) == 1
    (source,) = sources
    os.utime(source, ns=(0, 0))  # written again it would bear another time, however coarse the clock of the disk
    assert known_edits.render(pop[0], which="reference", cache=tmp_path) == source
    assert source.stat().st_mtime_ns == 0
    assert list(tmp_path.iterdir()) == [source]


def test_a_level_stays_what_it_is(small, tmp_path):
    import soundfile

    row = of_kind(small, "gain")
    (reference, _), (estimate, _) = (soundfile.read(path) for path in known_edits.render_pair(row, cache=tmp_path))
    assert 20 * np.log10(np.abs(estimate).max() / np.abs(reference).max()) == pytest.approx(-18, abs=0.01)


def test_the_cache_folder_of_the_environment(small, tmp_path, monkeypatch):
    monkeypatch.setenv("MUSIC_EVALS_CACHE", str(tmp_path))
    assert known_edits.render(small[0]).parent == tmp_path / "known_edits"


def test_a_cache_that_cannot_be_written_to_is_done_without(small, tmp_path, caplog):
    import soundfile

    (tmp_path / "file").write_text("in the way")
    pair = known_edits.render_pair(small[0], cache=tmp_path / "file" / "cache")
    expected = known_edits.render_pair(small[0], cache=tmp_path / "cache")
    for made, kept in zip(pair, expected, strict=True):
        assert (soundfile.read(made)[0] == soundfile.read(kept)[0]).all()
    assert len(caplog.records) == 1


def test_another_soundfont_of_the_same_name_and_size_is_another_recording(small, tmp_path, monkeypatch):
    from music_evals.audio import fluidsynth, rendering

    font = tmp_path / "font.sf2"
    monkeypatch.setenv("MUSIC_EVALS_SOUNDFONT", str(font))
    monkeypatch.setattr(rendering, "render_fluidsynth", lambda *_, **__: np.zeros(9, dtype=np.float32))

    def rendered(content, version):
        font.write_bytes(content)
        os.utime(font, ns=(0, content[0]))  # two files that are written at once may bear one time
        monkeypatch.setattr(fluidsynth, "version", lambda: version)
        return known_edits.render(small[0], renderer="fluidsynth", which="reference", cache=tmp_path / "cache")

    first = rendered(b"one", "2.3.1")
    assert rendered(b"two", "2.3.1") != first
    assert rendered(b"one", "2.3.2") != first
    assert rendered(b"one", "2.3.1") == first
    (tmp_path / "elsewhere").mkdir()
    font.rename(tmp_path / "elsewhere" / "other.sf2")
    font = tmp_path / "elsewhere" / "other.sf2"
    monkeypatch.setenv("MUSIC_EVALS_SOUNDFONT", str(font))
    assert rendered(b"one", "2.3.1") == first  # what it is called does not matter


@pytest.mark.slow
def test_processes_that_render_the_same_at_once(small, tmp_path, tmp_path_factory):
    code = (
        "import pickle, sys; from music_evals.datasets.known_edits import build as known_edits;"
        "print(known_edits.render(pickle.load(open(sys.argv[1], 'rb')), cache=sys.argv[2]))"
    )
    row = tmp_path_factory.mktemp("row") / "row.pickle"  # to read the rows takes longer than to render one
    row.write_bytes(pickle.dumps(small[0]))
    command = [sys.executable, "-c", code, str(row), str(tmp_path)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, env=os.environ, text=True) for _ in range(2)]
    paths = {process.communicate()[0].strip() for process in running}
    assert [process.returncode for process in running] == [0, 0]
    assert len(paths) == 1
    assert all(path.suffix == ".wav" for path in tmp_path.iterdir())  # no half-written file is left


@pytest.mark.slow
@pytest.mark.usefixtures("fluidsynth")
def test_fluidsynth_plays_as_long(small, tmp_path):
    import soundfile

    row = of_kind(small, "tempo")
    additive = known_edits.render(row, cache=tmp_path)
    path = known_edits.render(row, renderer="fluidsynth", cache=tmp_path)
    assert path != additive
    assert soundfile.info(path).duration == pytest.approx(row["estimate"]["duration_sec"], abs=0.02)


def test_velocity_chroma_of_two_notes():
    """C4 for 1 s, then with E4; at 120 a minute a quarter lasts 0.5 s. Drums do not count."""
    from music_evals.annotations import Score, Tempo
    from music_evals.symbolic.notes import make_notes

    notes = make_notes([0, 960, 0], [1920, 960, 1920], [60, 64, 38], [127, 127, 127], [0, 0, 1])
    score = Score(notes, 480, tempos=(Tempo(0, 120.0),), voices=("", "kit"), programs=(0, DRUMS))
    frames = velocity_chroma(score, 2.0).frames
    at = np.arange(frames.shape[1]) * 512 / 22050
    assert frames[0].tolist() == [1.0] * len(at)
    assert frames[4].tolist() == (at >= 1).astype(float).tolist()
    assert not frames[[1, 2, 3, 5, 6, 7, 8, 9, 10, 11]].any()


def test_chroma_follows_the_operations(rows):
    """Where chords are held, the pitch classes of the row's chroma are those of the chord that is written there."""
    for kind in ("varispeed", "offset", "stretch", "cut", "tempo"):
        row = next(row for row in rows if row["piece"] == "song_ballad" and row["kind"] == kind)
        frames = known_edits.chroma(row, "estimate").frames
        for chord in row["estimate"]["chords"]:
            middle = round((chord["start_sec"] + chord["end_sec"]) / 2 * 22050 / 512)
            tones = list(chord_pitch_classes(chord["label"]))
            assert frames[tones, middle].sum() >= 0.5 * frames[:, middle].sum() > 0, (kind, chord)


def test_beats_after_a_pickup():
    """Amazing Grace begins on the third beat of 3/4: the first downbeat is one beat in."""
    piece = known_edits.compose_piece("folk_amazing_grace")
    beats = features_of(piece).beats
    assert beats.times_sec[0] == 0
    assert np.allclose(np.diff(beats.times_sec), 60 / 84, atol=2e-6)
    assert float(piece.seconds(piece.bars[1])) == pytest.approx(beats.times_sec[1], abs=2e-6)


def test_sections_of_one_label_are_the_same_music():
    piece = known_edits.compose_piece("song_disco")  # A B A C
    first, _, third, _ = piece.sections
    assert first.label == third.label
    for part in piece.parts:
        bars = [[n for n in part.notes if s.start <= n.onset < s.end] for s in (first, third)]
        moved = [n._replace(onset=n.onset + third.start) for n in bars[0]]
        # where the melody repeats a pitch across the seam, its last note is detached: all but that are equal
        pairs = itertools.zip_longest(moved, bars[1])
        assert all(a[:1] == b[:1] and a.pitch == b.pitch for a, b in pairs)
