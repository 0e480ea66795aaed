from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from music_evals.benchmark.inputs import named_path
from music_evals.benchmark.tasks.preservation.controls import (
    MOST_PAIRS,
    Traits,
    make_controls,
    shares_key,
    shares_tempo,
    traits_of,
)
from music_evals.benchmark.tasks.preservation.pairs import (
    CEILING,
    REENCODED,
    UNRELATED,
    Columns,
    MusicFile,
    Pair,
    pairs_in_folders,
    pairs_in_manifest,
)
from music_evals.cli import main
from music_evals.errors import InvalidInputError, NoDataError, PairCountError, UnreadableFileError

Write = Callable[[str, dict[str, str]], Path]


def test_folders_are_paired_by_relative_path_whatever_the_suffix(write_files: Write) -> None:
    reference = write_files("originals", {"a.wav": "1", "deep/b.flac": "2", "notes.txt": "-", ".hidden.wav": "-"})
    estimate = write_files("edits", {"a.mp3": "3", "deep/b.wav": "4"})
    found = pairs_in_folders(reference, [str(estimate)])
    assert found.systems == ("edits",)
    assert found.failures == ()
    assert [(pair.item, pair.reference.name, pair.estimate.name) for pair in found.pairs] == [
        ("a", "a.wav", "a.mp3"),
        ("deep/b", "deep/b.flac", "deep/b.wav"),
    ]
    assert [pair.group for pair in found.pairs] == [pair.reference.content for pair in found.pairs]
    assert {pair.modality for pair in found.pairs} == {"audio"}


def test_a_missing_partner_is_a_failure_of_its_item_on_either_side(write_files: Write) -> None:
    reference = write_files("originals", {"a.wav": "1", "b.wav": "2"})
    estimate = write_files("edits", {"a.wav": "1", "c.wav": "3"})
    found = pairs_in_folders(reference, [f"mine={estimate}"])
    assert [pair.item for pair in found.pairs] == ["a"]
    assert [(failure.item, failure.system) for failure in found.failures] == [("b", "mine"), ("c", "mine")]
    assert "no estimate for 'b'" in found.failures[0].error
    assert "no reference for 'c'" in found.failures[1].error


def test_two_files_that_differ_in_their_suffix_alone_are_named(write_files: Write) -> None:
    reference = write_files("originals", {"a.wav": "1", "a.flac": "1"})
    with pytest.raises(PairCountError, match=r"a\.flac and a\.wav differ in their suffix alone and are both 'a'"):
        pairs_in_folders(reference, [str(reference)])


COMPOSED, SEPARATE = "Dvo\u0159\u00e1k", "Dvor\u030ca\u0301k"  # one name in the Unicode forms NFC and NFD


def test_names_in_two_unicode_forms_are_one(write_files: Write) -> None:
    reference = write_files("originals", {f"{COMPOSED}/a.wav": "1", f"{SEPARATE}.wav": "2"})
    estimate = write_files("edits", {f"{SEPARATE}/a.wav": "3", f"{COMPOSED}.wav": "4"})
    found = pairs_in_folders(reference, [str(estimate)])
    assert found.failures == ()
    assert sorted(pair.item for pair in found.pairs) == [COMPOSED, f"{COMPOSED}/a"]
    both = write_files("both", {f"{COMPOSED}.wav": "1", f"{SEPARATE}.wav": "2"})
    with pytest.raises(PairCountError, match=r"differ in Unicode normalisation \(NFC, NFD\) alone .*keep one"):
        pairs_in_folders(both, [str(estimate)])


def test_several_systems_share_their_items(write_files: Write) -> None:
    reference = write_files("originals", {"a.wav": "1", "b.wav": "2"})
    one, two = write_files("one", {"a.wav": "1", "b.wav": "2"}), write_files("two", {"b.wav": "2"})
    found = pairs_in_folders(reference, [f"x={one}", f"y={two}"])
    assert found.systems == ("x", "y")
    assert [(pair.item, pair.system) for pair in found.pairs] == [("a", "x"), ("b", "x"), ("b", "y")]
    assert [(failure.item, failure.system) for failure in found.failures] == [("a", "y")]
    first = pairs_in_folders(reference, [f"x={one}", f"y={two}"], limit=1)
    assert [(pair.item, pair.system) for pair in first.pairs] == [("a", "x")]
    for names in (["x", "x"], ["x", CEILING]):
        with pytest.raises(InvalidInputError, match="systems need different names"):
            pairs_in_folders(reference, [f"{name}={one}" for name in names])


def test_the_limit_counts_items_as_the_help_says(
    write_files: Write, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An item of a manifest has the edits of all systems."""
    rows = "id,system,reference,estimate\na,x,o.wav,1.wav\nb,x,o.wav,2.wav\na,y,o.wav,3.wav\nb,y,o.wav,4.wav\n"
    folder = write_files("m", {"list.csv": rows, **{f"{name}.wav": name for name in "o1234"}})
    found = pairs_in_manifest(folder / "list.csv", limit=1)
    assert [(pair.item, pair.system) for pair in found.pairs] == [("a", "x"), ("a", "y")]
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit):
        main(["preserve", "--help"])
    assert "the first N items only: originals of a folder, ids of a manifest" in " ".join(
        capsys.readouterr().out.split()
    )


def test_one_pair_of_files(write_files: Write) -> None:
    folder = write_files("music", {"song.mid": "1", "song_edited.mid": "2"})
    found = pairs_in_folders(folder / "song.mid", [str(folder / "song_edited.mid")])
    assert [(pair.item, pair.system, pair.modality) for pair in found.pairs] == [("song", "song_edited", "symbolic")]
    with pytest.raises(PairCountError):
        pairs_in_folders(folder, [str(folder / "song.mid")])


def test_a_recording_beside_a_score_is_a_failure(write_files: Write) -> None:
    reference, estimate = write_files("r", {"a.wav": "1"}), write_files("e", {"a.mid": "1"})
    (failure,) = pairs_in_folders(reference, [str(estimate)]).failures
    assert failure.error.startswith("InvalidInputError: a.wav is audio and a.mid symbolic")


@pytest.mark.parametrize("missing", ["originals", "edits"])
def test_what_is_not_there(write_files: Write, tmp_path: Path, missing: str) -> None:
    there = write_files("there", {"a.wav": "1"})
    sides = [tmp_path / "none" if side == missing else there for side in ("originals", "edits")]
    with pytest.raises(NoDataError):
        pairs_in_folders(sides[0], [f"x={sides[1]}"])
    empty = write_files("empty", {"readme.txt": "-"})
    sides = [empty if side == missing else there for side in ("originals", "edits")]
    with pytest.raises(NoDataError):
        pairs_in_folders(sides[0], [f"x={sides[1]}"])


def test_groups_of_folders(write_files: Write) -> None:
    reference = write_files("r", {"a/1.wav": "1", "a/2.wav": "2", "b/1.wav": "3", "top.wav": "4"})
    groups = [pair.group for pair in pairs_in_folders(reference, [str(reference)], group_by="folder").pairs]
    assert groups == ["a", "a", "b", "."]
    again = write_files("again", {"shift/a.wav": "1", "slower/a.wav": "1", "slower/b.wav": "2"})
    groups = [pair.group for pair in pairs_in_folders(again, [str(again)]).pairs]
    assert groups[0] == groups[1] != groups[2]  # the original repeated for each edit
    with pytest.raises(InvalidInputError, match="folders are grouped by file or folder"):
        pairs_in_folders(reference, [str(reference)], group_by="song")


def test_names_of_systems(write_files: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files("a=b.v2", {"x.wav": "1"})
    monkeypatch.chdir(tmp_path)
    assert named_path("a=b.v2", "estimates") == ("a=b.v2", Path("a=b.v2"))  # it exists: never cut
    assert named_path("a=b.v2/x.wav", "estimates") == ("x", Path("a=b.v2/x.wav"))
    assert named_path("zeta=out/zeta", "estimates") == ("zeta", Path("out/zeta"))
    for wrong in ("", "=out", "zeta="):
        with pytest.raises(InvalidInputError, match="`estimates` takes"):
            named_path(wrong, "estimates")


def test_the_content_is_that_of_the_bytes(write_files: Write) -> None:
    folder = write_files("music", {"a.wav": "same", "b.wav": "same", "c.wav": "other"})
    contents = [pair.reference.content for pair in pairs_in_folders(folder, [str(folder)]).pairs]
    assert contents[0] == contents[1] != contents[2]
    assert contents[0] == "0967115f2813a3541eaef77de9d9d577"  # sha256sum of "same", the first half


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_a_manifest(write_files: Write, suffix: str) -> None:
    rows = [
        {"reference": "a.wav", "estimate": "x/a.wav", "id": "one", "group": "g", "system": "s"},
        {"reference": "b.wav", "estimate": "x/b.wav", "id": "", "group": "", "system": ""},
    ]
    head = ",".join(rows[0])
    text = {
        "csv": "\n".join([head, *(",".join(row.values()) for row in rows)]),
        "jsonl": "\n".join(map(json.dumps, rows)),
    }
    folder = write_files("m", {f"list.{suffix}": text[suffix], "a.wav": "1", "b.wav": "2", "x/a.wav": "3"})
    found = pairs_in_manifest(folder / f"list.{suffix}")
    assert [(pair.item, pair.group, pair.system) for pair in found.pairs] == [("one", "g", "s")]
    assert [(failure.item, failure.system) for failure in found.failures] == [("b", "list")]
    assert "no such file" in found.failures[0].error


def test_columns_of_a_manifest(write_files: Write) -> None:
    text = "before,after,who,song\na.wav,b.wav,zeta,First\n"
    folder = write_files("m", {"list.csv": text, "a.wav": "1", "b.wav": "2"})
    columns = Columns("before", "after", "who", "song")
    (pair,) = pairs_in_manifest(folder / "list.csv", columns).pairs
    assert (pair.item, pair.system, pair.group) == ("a", "zeta", "First")
    with pytest.raises(InvalidInputError, match="row 1: nothing in the column 'album'"):
        pairs_in_manifest(folder / "list.csv", columns._replace(group_by="album"))
    with pytest.raises(InvalidInputError, match="no column reference, estimate; it has before, after, who, song"):
        pairs_in_manifest(folder / "list.csv")


EMPTY_CELLS = {
    "list.csv": "reference,estimate\na.wav,b.wav\nc.wav,\n,b.wav\nb.wav\n",
    "list.jsonl": """\
{"reference": "a.wav", "estimate": "b.wav"}
{"reference": "c.wav", "estimate": null, "id": null}
{"reference": 3, "estimate": "b.wav"}
{"reference": "b.wav"}
""",
}


@pytest.mark.parametrize("name", EMPTY_CELLS)
def test_empty_cells_are_failures_of_their_items(write_files: Write, name: str) -> None:
    folder = write_files("m", {name: EMPTY_CELLS[name], "a.wav": "1", "b.wav": "2", "c.wav": "3"})
    found = pairs_in_manifest(folder / name)
    assert [pair.item for pair in found.pairs] == ["a"]
    assert [failure.error.partition(";")[0] for failure in found.failures] == [
        "PairCountError: no estimate for 'c'",
        "PairCountError: no reference for 'row 3'",
        "PairCountError: no estimate for 'b'",
    ]


def test_ids_that_occur_twice_are_named(write_files: Write) -> None:
    folder = write_files("m", {"list.csv": "reference,estimate\na.wav,b.wav\na.wav,c.wav\n", "a.wav": "1"})
    with pytest.raises(PairCountError, match=r"twice or more: a \(list\)"):
        pairs_in_manifest(folder / "list.csv")


def test_manifests_that_are_none(write_files: Write) -> None:
    folder = write_files("m", {"empty.csv": "reference,estimate\n", "broken.jsonl": "{", "list.jsonl": "[1]"})
    with pytest.raises(NoDataError):
        pairs_in_manifest(folder / "empty.csv")
    with pytest.raises(NoDataError):
        pairs_in_manifest(folder / "none.csv")
    for name, message in (("broken", "line 1 is not JSON"), ("list", "holds a list")):
        with pytest.raises(UnreadableFileError, match=message):
            pairs_in_manifest(folder / f"{name}.jsonl")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_a_failure(write_files: Write) -> None:
    folder = write_files("music", {"a.wav": "1", "b.wav": "2"})
    (folder / "a.wav").chmod(0)
    found = pairs_in_folders(folder, [str(folder)])
    assert [pair.item for pair in found.pairs] == ["b"]
    assert "check its permissions" in found.failures[0].error


def pair(item: str, group: str, content: str, system: str = "s") -> Pair:
    return Pair(item, system, group, "audio", MusicFile(item, item, content), MusicFile("e", "e", "e"))


def test_controls_use_each_original_once() -> None:
    pairs = [pair("a", "a", "1"), pair("a", "a", "1", "t"), pair("b", "b", "2"), pair("c", "c", "3")]
    controls = make_controls(pairs)
    same = [control for control in controls if control.system == CEILING]
    assert [control.item for control in same] == ["a", "b", "c"]
    assert all(control.estimate == control.reference and control.treatment == REENCODED for control in same)
    unrelated = [control for control in controls if control.system == UNRELATED]
    assert sorted(control.reference.content for control in unrelated) == ["1", "2", "3"]
    assert sorted(control.estimate.content for control in unrelated) == ["1", "2", "3"]
    assert all(control.reference != control.estimate and not control.treatment for control in unrelated)


def test_unrelated_originals_are_of_different_groups() -> None:
    groups = {"1": "x", "2": "x", "3": "x", "4": "y", "5": "z", "6": "z"}
    pairs = [pair(content, group, content) for content, group in groups.items()]
    for seed in range(20):
        met = [control for control in make_controls(pairs, seed=seed) if control.system == UNRELATED]
        assert len(met) == 6  # the largest group holds half: everybody meets somebody
        assert all(groups[control.reference.content] != groups[control.estimate.content] for control in met)
    crowd = [pair(str(number), "x" if number < 5 else "y", str(number)) for number in range(6)]
    met = [control for control in make_controls(crowd) if control.system == UNRELATED]
    assert len(met) == 2  # one stranger: it meets one of the crowd, and is met by one
    assert [control for control in make_controls(crowd[:5]) if control.system == UNRELATED] == []


def test_controls_depend_on_content_and_seed_alone() -> None:
    pairs = [pair(f"item {number}", f"g{number}", str(number)) for number in range(80)]
    controls = make_controls(pairs, seed=3)
    assert controls == make_controls(pairs[::-1], seed=3)
    assert controls != make_controls(pairs, seed=4)
    assert len(controls) == 2 * MOST_PAIRS
    assert make_controls([]) == []


def unrelated(pairs: list[Pair], known: dict[str, Traits], seed: int = 0) -> list[tuple[Traits, Traits]]:
    met = [one for one in make_controls(pairs, known.__getitem__, seed=seed) if one.system == UNRELATED]
    return [(known[one.reference.content], known[one.estimate.content]) for one in met]


def test_unrelated_originals_differ_in_key_and_tempo_where_they_can() -> None:
    pairs = [pair(str(number), str(number), str(number)) for number in range(12)]
    keys = {str(number): Traits(None, (number % 2 * 7, "major"), 100.0 + 20 * (number % 3)) for number in range(12)}
    for seed in range(10):
        met = unrelated(pairs, keys, seed)
        assert len(met) == 12
        assert not any(shares_key(*both) or shares_tempo(*both) for both in met)
    # eight of twelve in one key: the other four can be met by four of them, and meet four
    crowd = {str(number): Traits(None, (0 if number < 8 else number, "major")) for number in range(12)}
    assert sum(shares_key(*both) is True for both in unrelated(pairs, crowd)) == 4
    known = crowd.__getitem__
    assert make_controls(pairs, known, seed=1) == make_controls(pairs[::-1], known, seed=1)
    assert make_controls(pairs, known, seed=1) != make_controls(pairs, known, seed=2)


def test_one_music_in_two_files_is_not_unrelated() -> None:
    pairs = [pair(str(number), str(number), str(number)) for number in range(4)]
    known = {str(number): Traits("tune" if number < 2 else str(number)) for number in range(4)}
    assert all(first.music != second.music for first, second in unrelated(pairs, known))
    assert unrelated(pairs[:2], known) == []


def test_unrelated_pairs_are_rarely_turned_round() -> None:
    pairs = [pair(str(number), str(number), str(number)) for number in range(9)]
    met = {
        (one.reference.content, one.estimate.content) for one in make_controls(pairs, seed=4) if one.system == UNRELATED
    }
    assert len(met) == 9
    assert not met & {(second, first) for first, second in met}


def test_what_is_heard_of_an_original() -> None:
    assert traits_of(None) == traits_of({"duration_sec": 3.0}) == Traits()
    found = traits_of({"music": "m", "key": [9, "minor"], "beats": [0.0, 0.5, 1.0, 1.5, 2.5]})
    assert found == Traits("m", (9, "minor"), 120.0)
    assert shares_key(found, Traits(None, (0, "major"))) is True  # relative
    assert shares_key(found, Traits(None, (9, "major"))) is False
    assert shares_key(found, Traits()) is shares_tempo(found, Traits()) is None
    tempi = {bpm: shares_tempo(found, Traits(None, None, bpm)) for bpm in (116.0, 124.0, 126.0, 60.0, 240.0, 90.0)}
    assert tempi == {116.0: True, 124.0: True, 126.0: False, 60.0: True, 240.0: True, 90.0: False}
