"""The folder `datasets_scripts/jsb_chorales` as its users meet it."""

import hashlib
import itertools
import json
import runpy
import sys
from collections import Counter

import numpy as np
import pytest

from music_evals.annotations import HOLD
from music_evals.datasets import bach_corpus, style_pieces
from music_evals.datasets.bach_corpus import VOICES
from music_evals.datasets.jsb_chorales.build import CONFIGS, features, musib_songs, near_counts
from music_evals.datasets.jsb_chorales.style import STYLE_CONFIGS, content_key
from music_evals.datasets.manifest import rows_sha256
from music_evals.symbolic.measures import meter_map
from music_evals.symbolic.noteseq import check_contexts, decode
from music_evals.symbolic.piece_rows import score_of_row
from music_evals.yaml_files import load_yaml, read_yaml_file

COUNTS = {
    "musib": {"train": 2_504, "validation": 232, "test": 308},
    "musib_official": {"validation": 17, "test": 18},
    "strict_4_4": {"train": 1_916, "validation": 128, "test": 148},
}
STYLE_COUNTS = {
    "style": {"train": 279, "validation": 35, "test": 35},
    "style_official": {"train": 295, "validation": 37, "test": 38},
}


@pytest.fixture(scope="module")
def folder(root):
    return root / "datasets_scripts" / "jsb_chorales"


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return str(tmp_path_factory.mktemp("datasets"))


@pytest.fixture(scope="module")
def loaded(folder, cache):
    from datasets import load_dataset

    return {config: load_dataset(str(folder), config, cache_dir=cache) for config in CONFIGS}


@pytest.fixture(scope="module")
def lists(loaded):
    """The same as lists of plain rows."""
    return {config: {split: rows.to_list() for split, rows in splits.items()} for config, splits in loaded.items()}


@pytest.fixture(scope="module")
def card(folder):
    _, header, text = (folder / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    return load_yaml(header, "the card"), text


@pytest.mark.parametrize("config", CONFIGS)
def test_every_config_loads_with_its_counts_and_columns(loaded, config):
    assert {split: len(rows) for split, rows in loaded[config].items()} == COUNTS[config]
    for rows in loaded[config].values():
        assert rows.features == features()


def test_the_default_config_is_musib(folder, cache, loaded):
    from datasets import load_dataset

    test = load_dataset(str(folder), split="test", cache_dir=cache)
    assert test["item_id"][:] == loaded["musib"]["test"]["item_id"][:]


@pytest.mark.parametrize("config", CONFIGS)
def test_item_ids_are_unique_and_songs_keep_to_one_split(loaded, config):
    songs = {split: set(rows["song"]) for split, rows in loaded[config].items()}
    ids = [item for rows in loaded[config].values() for item in rows["item_id"]]
    assert len(set(ids)) == len(ids)
    assert sum(map(len, songs.values())) == len(set().union(*songs.values()))
    for split, names in songs.items():
        assert all(musib_songs()[name].split == split for name in names if name in musib_songs())
        assert split == "train" or names <= musib_songs().keys()


@pytest.mark.parametrize("config", CONFIGS)
def test_tokens_are_contexts_and_decode_to_the_notes(loaded, config):
    for rows in loaded[config].values():
        tokens = check_contexts(np.array(rows["tokens"][:]))
        for window, notes in zip(tokens, rows["notes"][:], strict=True):
            decoded = decode(window)
            assert decoded["onset_tick"].tolist() == [note["onset_step"] for note in notes]
            assert decoded["duration_tick"].tolist() == [note["duration_step"] for note in notes]
            assert decoded["pitch"].tolist() == [note["pitch"] for note in notes]


def test_windows_of_one_voice_overlap_by_fifteen_measures(lists):
    test = lists["musib"]["test"]
    pairs = [(a, b) for a, b in itertools.pairwise(test) if b["start"] == a["start"] + 1]
    assert len(pairs) == 308 - 18 * 4
    for first, second in pairs:
        assert first["tokens"][24:] == second["tokens"][:-24]


def test_facts_of_rows_agree(lists):
    for splits in lists.values():
        for row in (row for rows in splits.values() for row in rows):
            assert row["item_id"] == f"{row['song']}/{row['voice']}/{row['start']:03d}"
            assert VOICES[row["voice_index"]] == row["voice"]
            assert 0 <= row["start"] < row["n_measures"] - 15
            assert row["mode"] in {"major", "minor"}
            assert row["pickup_quarters"] in {0.0, 1.0, 2.0}
            assert any(token < HOLD for token in row["tokens"][144:240])  # no middle is empty


def test_official_rows_are_the_first_soprano_windows_of_musib(lists):
    for split, rows in lists["musib_official"].items():
        songs = {name for name, fact in musib_songs().items() if fact.split == split}
        assert {row["song"] for row in rows} == songs
        assert rows == [row for row in lists["musib"][split] if row["voice_index"] == 0 and row["start"] == 0]


def transposed(tokens):
    first = next(token for token in tokens if token < HOLD)
    return tuple((token - first, "onset") if token < HOLD else (token, "held or silent") for token in tokens)


@pytest.mark.slow
@pytest.mark.parametrize("config", ["musib", "strict_4_4"])
def test_seen_in_train_by_plain_search(lists, config):
    # Written from the definition, in another form than the builder's.
    train = {
        transposed(row["tokens"][24 * bar : 24 * bar + 96])
        for row in lists[config]["train"]
        for bar in range(13)
        if min(row["tokens"][24 * bar : 24 * bar + 96]) < HOLD
    }
    assert all(row["seen_in_train"] for row in lists[config]["train"])
    for split in ("validation", "test"):
        for row in lists[config][split]:
            assert row["seen_in_train"] == (transposed(row["tokens"][144:240]) in train)


def skeleton(tokens):
    """What sounds at each quarter, step by step: a pitch, "rest", or "held" from before."""
    sounding, found = "held", []
    for step, token in enumerate(tokens):
        if token < HOLD:
            sounding = token
        elif token > HOLD:
            sounding = "rest"
        if step % 6 == 0:
            found.append(sounding)
    return found


def nearness(first, second):
    """The share of equal quarters after the best transposition, one transposition after the other."""
    pairs = list(zip(first, second, strict=True))
    others = sum(a == b for a, b in pairs if isinstance(a, str))
    distances = [b - a for a, b in pairs if not isinstance(a, str) and not isinstance(b, str)]
    return (others + max((distances.count(distance) for distance in distances), default=0)) / len(pairs)


@pytest.mark.slow
@pytest.mark.parametrize("config", ["musib", "strict_4_4"])
def test_nearness_by_plain_search(lists, config):
    # Written from the definition, in another form than the builder's; for a few windows, since it is slow.
    train = {
        tuple(skeleton(row["tokens"][24 * bar : 24 * bar + 96]))
        for row in lists[config]["train"]
        for bar in range(0, 13, 4)
    }
    assert {row["near_train"] for row in lists[config]["train"]} == {1.0}
    for row in lists[config]["test"][::40]:
        middle = skeleton(row["tokens"][144:240])
        near = max(nearness(middle, passage) for passage in train)
        assert near <= row["near_train"]  # a fourth of the passages cannot be nearer than all
        own = [row["tokens"][24 * bar : 24 * bar + 96] for bar in (0, 1, 2, 10, 11, 12)]
        assert row["repeats_in_context"] == max(nearness(middle, skeleton(passage)) for passage in own)


def test_what_is_seen_is_as_near_as_can_be(loaded):
    for splits in loaded.values():
        for rows in splits.values():
            near = np.array(rows["near_train"])
            assert (near[np.array(rows["seen_in_train"])] == 1).all()
            assert ((near >= 0) & (near <= 1)).all()
            np.testing.assert_array_equal(near * 16, np.round(near * 16))


def test_near_copies_on_the_card(card, folder, lists):
    stored = json.loads((folder / "manifest.json").read_text())["counts"]["near_copies"]
    assert near_counts(lists) == stored
    for config, splits in stored.items():
        near = [f"{c['near_train']} of {c['windows']} ({c['near_train_not_seen']})" for c in splits.values()]
        repeats = [f"{c['repeats_in_context']} of {c['windows']}" for c in splits.values()]
        assert f"| `{config}` | {' | '.join([*near, *repeats])} |" in card[1]
    validation, test = (
        [row for row in lists["musib"][split] if row["near_train"] >= 14 / 16] for split in ("validation", "test")
    )
    sopranos = [sum(row["voice"] == "soprano" for row in rows) for rows in (validation, test)]
    assert sopranos == [32, 21]
    assert sum(row["song"] in {"bwv362", "bwv340"} for row in validation) == 26
    assert Counter(row["song"] for row in test).most_common(3) == [("bwv111.6", 9), ("bwv36.4-2", 8), ("bwv280", 6)]
    assert len({row["song"] for row in test}) == 10
    near = [row["near_train"] for row in lists["musib"]["test"]]
    assert (min(near), np.median(near)) == (0.375, 0.625)


@pytest.mark.slow
def test_the_manifest_vouches_for_every_file(folder):
    import pyarrow.parquet as pq

    manifest = json.loads((folder / "manifest.json").read_text())
    files = {str(path.relative_to(folder)) for path in folder.rglob("*.parquet")}
    assert files == manifest["files"].keys()
    for name, facts in manifest["files"].items():
        rows = pq.read_table(folder / name).to_pylist()
        assert facts["rows"] == len(rows)
        assert facts["sha256"] == hashlib.sha256((folder / name).read_bytes()).hexdigest()
        assert facts["rows_sha256"] == rows_sha256(rows)


def test_the_files_are_small(folder):
    assert sum(path.stat().st_size for path in folder.rglob("*.parquet")) < 2**20


def test_no_script_has_the_name_of_the_folder(folder):
    assert not (folder / "jsb_chorales.py").exists()


def test_the_card_declares_each_config_and_split(card, folder):
    header, _ = card
    declared = {
        config["config_name"]: {entry["split"]: entry["path"] for entry in config["data_files"]}
        for config in header["configs"]
    }
    assert {name: set(splits) for name, splits in declared.items()} == {
        name: set(splits) for name, splits in {**COUNTS, **STYLE_COUNTS}.items()
    }
    assert [config["config_name"] for config in header["configs"] if config.get("default")] == ["musib"]
    # without one a cache filled before near_train came would go on answering, for it is known by this header alone
    versions = {config["config_name"]: config["version"] for config in header["configs"]}
    assert versions == {**dict.fromkeys(COUNTS, "1.1.0"), **dict.fromkeys(STYLE_COUNTS, "1.0.0")}
    assert all(len(list(folder.glob(path))) == 1 for splits in declared.values() for path in splits.values())


def test_the_licence_of_the_data_is_its_own(card):
    header, text = card
    assert header["license"] == "other"
    assert header["license_name"]
    assert header["license_link"]
    assert "Apache-2.0" in text


def test_the_numbers_on_the_card_are_those_of_the_manifest(card, folder, loaded):
    text = card[1]
    counts = json.loads((folder / "manifest.json").read_text())["counts"]
    numbers = [
        *counts["musib"].values(),
        counts["musib_songs_by_last_note_end"]["windows"],
        counts["musib_songs_by_full_bars"]["windows"],
        counts["musib_pickup_quarters"]["1.0"],
        counts["musib_single_4_4"],
        counts["musib_notes"],
        counts["musib_notes_off_grid"],
        counts["musib_files_with_credit"],
        *counts["strict_4_4"].values(),
    ]
    missing = [number for number in numbers if f"{number:,}" not in text]
    assert missing == []
    for name in (*counts["strict_4_4_new_songs"], *counts["strict_4_4_misaligned"]):
        assert name in text
    for config, splits in loaded.items():
        unseen = {split: len(rows) - sum(rows["seen_in_train"]) for split, rows in splits.items() if split != "train"}
        assert f"| `{config}` | {unseen['validation']} of {len(splits['validation'])} | {unseen['test']} of " in text


# --- whole chorales


@pytest.fixture(scope="module")
def whole(folder, tmp_path_factory):
    from datasets import load_dataset

    cache = tmp_path_factory.mktemp("whole")
    return {config: load_dataset(str(folder), config, cache_dir=str(cache)) for config in STYLE_CONFIGS}


@pytest.mark.parametrize("config", STYLE_CONFIGS)
def test_whole_chorales_load_with_their_counts_and_columns(whole, config):
    assert {split: len(rows) for split, rows in whole[config].items()} == STYLE_COUNTS[config]
    for rows in whole[config].values():
        assert rows.features == style_pieces.features()


@pytest.mark.parametrize("config", STYLE_CONFIGS)
def test_rows_of_whole_chorales_are_scores(whole, config):
    for rows in whole[config].values():
        for row in rows.to_list():
            score = score_of_row(row)
            assert score.voices == tuple(row["voices"]) == VOICES
            assert meter_map(score).starts.tolist() == row["measure_starts"]
            assert set(score.notes["voice"].tolist()) == {0, 1, 2, 3}
            lengths = np.diff(row["measure_starts"])
            assert lengths.max() <= 8 * 6  # a bar of 3/2
            assert row["melody"] == "soprano"


def test_no_content_and_no_tune_of_style_is_in_two_places(whole):
    rows = {split: some.to_list() for split, some in whole["style"].items()}
    contents = [content_key(row) for some in rows.values() for row in some]
    assert len(set(contents)) == len(contents) == 349
    families = [{row["family"] for row in some} for some in rows.values()]
    assert sum(map(len, families)) == len(set().union(*families))


def test_the_official_entries_are_those_of_style_by_place(whole):
    by_name = {row["name"]: row for some in whole["style"].values() for row in some.to_list()}
    found = {}
    for rows in whole["style_official"].values():
        for row in rows.to_list():
            place, _, name = row["name"].partition("-")
            found[int(place)] = name
            assert {**by_name[name], "name": row["name"]} == row
    assert len(found) == 370
    assert len(set(found.values())) == 349
    assert found[0] == found[min(found)] == "bwv269"


def test_whole_chorales_on_the_card(card, folder):
    counts = json.loads((folder / "manifest.json").read_text())["counts"]
    for config in STYLE_CONFIGS:
        for split, sizes in counts[config].items():
            assert f"| `{config}` | {split} | {' | '.join(f'{number:,}' for number in sizes.values())} |" in card[1]
    assert counts["style_files"] == 350
    assert counts["style_left_out"] == ["bwv27.6"]
    assert "bwv27.6" in card[1]
    lowest, highest = counts["style_pitches"]
    assert f"between MIDI {lowest} and {highest}" in card[1]
    four, three, others = counts["style_meters"].values()
    assert f"{four} chorales of `style` are in 4/4, {three} in 3/4, {others} change" in card[1]


def test_how_often_a_middle_stands_in_its_own_context(card, loaded):
    """The card warns of it; counted here on plain lists."""
    found = {}
    for config in ("musib", "musib_official"):
        for split in ("validation", "test"):
            windows = loaded[config][split]["tokens"][:]
            passages = [[w[24 * bar : 24 * bar + 96] for bar in (0, 1, 2, 10, 11, 12)] for w in windows]
            found[config, split] = sum(w[144:240] in near for w, near in zip(windows, passages, strict=True))
    assert list(found.values()) == [32, 25, 4, 4]
    assert "32 of 232 (validation) and 25 of 308 (test)" in card[1]
    assert "4 of 17 and 4 of 18" in card[1]


def test_eval_yaml_names_one_task_a_number(folder):
    declared = read_yaml_file(folder / "eval.yaml")
    assert {"name", "description", "evaluation_framework", "tasks"} == declared.keys()
    ids = [task["id"] for task in declared["tasks"]]
    assert len(set(ids)) == len(ids)
    for task in declared["tasks"]:
        assert task["split"] in COUNTS[task["config"]]
        assert task["id"].startswith(f"{task['config']}_{task['split']}_")


@pytest.mark.slow
def test_build_writes_files_and_manifest_where_it_is_told(folder, tmp_path, monkeypatch, capsys):
    pytest.importorskip("music21", reason="the corpus comes with music21 (extra: symbolic)")
    songs = {name: path for name, path in bach_corpus.chorale_paths().items() if name in {"bwv10.7", "bwv111.6"}}
    monkeypatch.setattr(bach_corpus, "chorale_paths", lambda: songs)
    monkeypatch.setattr(bach_corpus, "chorale_list", lambda: ("bwv10.7", "bwv111.6", "bwv27.6", *["bwv10.7"] * 368))
    monkeypatch.setattr(sys, "argv", ["build.py", "--out", str(tmp_path)])
    runpy.run_path(str(folder / "build.py"), run_name="__main__")
    # bwv10.7 is in train with 18 measures, bwv111.6 in test with 20: 4 (18 - 15) and 4 (20 - 15) windows.
    rows = {
        name: facts["rows"] for name, facts in json.loads((tmp_path / "manifest.json").read_text())["files"].items()
    }
    assert rows["data/musib/train-00000-of-00001.parquet"] == 12
    assert rows["data/musib/test-00000-of-00001.parquet"] == 20
    assert rows["data/musib/validation-00000-of-00001.parquet"] == 0
    assert sum(rows[f"data/style/{split}-00000-of-00001.parquet"] for split in ("train", "validation", "test")) == 2
    official = [
        rows[f"data/style_official/{split}-00000-of-00001.parquet"] for split in ("train", "validation", "test")
    ]
    assert sum(official) == 371 - 1  # bwv27.6 has five voices
    assert rows.keys() == {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.parquet")}
    streams = capsys.readouterr()
    assert "data/musib/train" in streams.out
    assert "reading chorales" in streams.err
