from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.benchmark.record_files import cut

from music_evals.annotations import LyricSection
from music_evals.benchmark.contents import caveats
from music_evals.benchmark.records import read_records
from music_evals.benchmark.results import build_results
from music_evals.benchmark.scores import read_scores
from music_evals.benchmark.tables import markdown_report, text_report
from music_evals.benchmark.tasks.songs import lyrics
from music_evals.benchmark.tasks.songs.lyrics import LYRICS, Settings, worst_texts
from music_evals.benchmark.tasks.songs.songs import load_songs
from music_evals.benchmark.tasks.songs.text_controls import (
    ANOTHER_SONG,
    CLIMBED,
    ECHO,
    LYRIC_CONTROLS,
    ONE_CHARACTER,
    RANDOM_CHARACTERS,
    RANDOM_WORDS,
    SHUFFLED,
    SHUFFLED_WORDS,
    TRUE_LYRICS,
    on_one_character,
    shuffled_sections,
)
from music_evals.errors import (
    CorruptRecordsError,
    InvalidInputError,
    InvalidLyricsError,
    NoChineseWarning,
    NoDataError,
    PairCountError,
    UnknownNameError,
)
from music_evals.metrics.catalogue import LYRIC_SCORES
from music_evals.pipelines.lyrics import NO_CHINESE_FORM, evaluate_lyrics

Write = Callable[[str, dict[str, str]], Path]
QUICK: dict[str, Any] = {"rhyme": "char", "n_resamples": 20, "report": False}
REAL_SONGS = Path(__file__).resolve().parents[5] / "shared" / "data" / "muchin" / "dev.jsonl"
OF_PATTERNS = (ECHO, ONE_CHARACTER, RANDOM_CHARACTERS, RANDOM_WORDS, CLIMBED)
NASTY = "<script>alert(1)<&'\""


def predictions(path: Path, texts: dict[str, str], **fields: Any) -> str:
    rows = [{"id": item, "text": text, **fields} for item, text in texts.items()]
    with path.open("a", encoding="utf-8") as file:
        file.write("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return str(path)


@pytest.fixture
def words(songs_file: Path) -> dict[str, str]:
    """Song -> its words, which score nearly everything."""
    return {song.id: song.words_text() for song in load_songs(str(songs_file))}


@pytest.fixture
def settings(songs_file: Path, tmp_path: Path) -> dict[str, Any]:
    return {"out": tmp_path / "out", "dataset": str(songs_file), **QUICK}


@pytest.mark.filterwarnings("ignore::music_evals.errors.NoChineseWarning")
@pytest.mark.filterwarnings("ignore::music_evals.errors.UndefinedMetricWarning")
def test_the_controls_alone(settings: dict[str, Any], songs_file: Path) -> None:
    outcome = LYRICS.run(Settings(**settings | {"report": True}))
    results = json.loads(outcome.files["results"].read_text())
    assert results == outcome.results
    assert tuple(results["systems"]) == LYRIC_CONTROLS
    assert {about["n_groups"] for about in results["systems"].values()} == {3}
    songs = load_songs(str(songs_file))
    groups = [song.group for song in songs]
    patterns, words = [song.pattern_text() for song in songs], [song.words_text() for song in songs]
    made = {TRUE_LYRICS: words, ANOTHER_SONG: [words[1], words[2], words[0], words[0]], ECHO: patterns}
    made[ONE_CHARACTER] = ["\n".join(map(sung, pattern.splitlines())) for pattern in patterns]
    for control, texts in made.items():
        with contextlib.nullcontext() if control != ECHO else pytest.warns(NoChineseWarning):
            expected = evaluate_lyrics(patterns, texts, groups=groups, rhyme="char", normalise=True)
        for name in LYRIC_SCORES:
            cell = results["scores"][control][name]
            assert cell["value"] == pytest.approx(expected[name])
            ends = [math.nan if cell[end] is None else cell[end] for end in ("low", "high")]
            assert ends == pytest.approx(expected[f"{name}_ci"], nan_ok=True)
    true, shuffled = (results["scores"][name]["lyric_structure"]["value"] for name in (TRUE_LYRICS, SHUFFLED))
    assert shuffled < true
    assert "Where points were lost" not in outcome.files["report"].read_text()  # of controls there is nothing to learn


def sung(line: str) -> str:
    return line if line.startswith("(") else line.replace("c", "啦").replace("R", "啦")


def test_systems_beside_the_published_table(
    settings: dict[str, Any], words: dict[str, str], tmp_path: Path, read_page: Any
) -> None:
    good = predictions(tmp_path / "good.jsonl", words)
    poor = predictions(tmp_path / "poor.jsonl", dict.fromkeys(words, "(verse)\n床前明月光"))
    named = [f"{NASTY}={good}", poor]
    outcome = LYRICS.run(Settings(**settings | {"predictions": named, "report": True}))
    results = outcome.results
    assert [name for name, about in results["systems"].items() if about["role"] == "system"] == [NASTY, "poor"]
    assert results["best"]["lyric_structure"] == [NASTY]
    assert {test["n"] for test in results["comparisons"]} == {4}
    page = outcome.files["report"].read_text()
    parsed = read_page(page)
    text = " ".join(parsed.text)
    assert "http" not in page
    assert "script" not in {tag for tag, _ in parsed.tags}
    for shown in (
        "Qwen 14B fine-tuned (published)",
        "misprint",
        "50.06",
        "Where points were lost",
        NASTY,
        "is missing",
    ):
        assert shown in text, shown
    assert "lines expected" in text
    for shown in (text_report(results, published=True), markdown_report(results)):
        assert "Lyrics, published" in shown
        assert "sd 6.230" in shown
    worst = worst_texts(outcome.scores)
    assert [(pairs.text("system")[0], len(pairs)) for pairs, _ in worst] == [(NASTY, 4), ("poor", 4)]
    assert all(totals.tolist() == sorted(totals.tolist()) for _, totals in worst)


def test_several_seeds_are_runs_of_the_same_songs(
    settings: dict[str, Any], words: dict[str, str], tmp_path: Path
) -> None:
    path = tmp_path / "drawn.jsonl"
    for seed in (3, 7):
        predictions(path, words, seed=seed)
    once = predictions(tmp_path / "once.jsonl", words)
    results = LYRICS.run(Settings(**settings, predictions=[str(path), once], controls=False)).results
    assert (results["systems"]["drawn"]["n_pairs"], results["systems"]["drawn"]["n_groups"]) == (8, 3)
    assert {test["n"] for test in results["comparisons"]} == {4}  # the first run of each
    assert results["n_shared"] == 4


def test_what_models_write_around_lyrics_is_taken_off(
    settings: dict[str, Any], words: dict[str, str], tmp_path: Path
) -> None:
    wrapped = {item: f"```\n{text}\n```" for item, text in words.items()}
    settings["predictions"] = [predictions(tmp_path / "wrapped.jsonl", wrapped)]
    clean = LYRICS.run(Settings(**settings)).results
    assert clean["scores"]["wrapped"] == clean["scores"][TRUE_LYRICS]
    assert [row["item"] for row in clean["notes"]] == ["s1", "s2", "s3", "s4"]
    with pytest.raises(CorruptRecordsError, match=r"options.normalise was True and is now False"):
        LYRICS.run(Settings(**settings, normalise=False))
    raw = LYRICS.run(Settings(**settings, normalise=False, overwrite=True)).results
    assert raw["scores"]["wrapped"]["lyric_structure"]["value"] < clean["scores"]["wrapped"]["lyric_structure"]["value"]


@pytest.mark.slow
def test_a_text_without_a_header_scores_nothing_and_strictly_fails(
    settings: dict[str, Any], words: dict[str, str], tmp_path: Path
) -> None:
    texts = words | {"s2": "床前明月光", "s3": ""}
    settings["predictions"] = [predictions(tmp_path / "mine.jsonl", texts)]
    results = LYRICS.run(Settings(**settings)).results
    assert results["failures"] == []
    cell = results["scores"]["mine"]["lyric_structure"]
    assert (cell["n"], cell["n_defined"]) == (4, 4)
    assert ["no section header" in row["notes"][-1] for row in results["notes"]] == [True, False]
    assert "the lyrics are empty" in results["notes"][1]["notes"][-1]
    told = caveats(results)
    assert "mine: 1 text scored 0: no section header was found; with `strict` such texts are failures" in told
    assert "mine: 1 empty text scored 0; with `strict` such texts are failures" in told
    strict = LYRICS.run(Settings(**settings, strict=True, overwrite=True)).results
    assert [(row["item"], row["metric"]) for row in strict["failures"]] == [("s2", None), ("s3", None)]
    assert strict["failures"][0]["error"].startswith(f"{InvalidLyricsError.__name__}: ")
    assert strict["scores"]["mine"]["lyric_structure"]["n_failed"] == 2
    assert strict["failures"][0]["error"].endswith("give lyrics with headers, or score them with `strict=False`")
    settings |= {"out": tmp_path / "raw", "normalise": False}
    [raw, _] = LYRICS.run(Settings(**settings, strict=True)).results["failures"]
    assert raw["error"].endswith("read them with `normalise=True`, or score them with `strict=False`")


def test_lines_that_are_removed_are_counted(settings: dict[str, Any], words: dict[str, str], tmp_path: Path) -> None:
    made = {
        "s1": f"<think>\n要写春天\n押韵\n</think>\n{words['s1']}",
        "s2": f"好的，以下是歌词：\n{words['s2']}\n\n希望您喜欢这首歌词！",
        "s3": f"\n\n{words['s3']}\n\n",
        "s4": words["s4"],
    }
    settings["predictions"] = [predictions(tmp_path / "mine.jsonl", made)]
    outcome = LYRICS.run(Settings(**settings))
    [note] = [note for note in outcome.notes if "before scoring" in note]
    changes = [change for row in outcome.results["notes"] for change in row["notes"]]
    assert note.startswith("mine: removed before scoring: 6 lines with words, in 2 texts"), changes


def test_songs_without_a_prediction_fail_and_unknown_ids_are_refused(
    settings: dict[str, Any], words: dict[str, str], tmp_path: Path
) -> None:
    some = predictions(tmp_path / "some.jsonl", {"s1": words["s1"]})
    results = LYRICS.run(Settings(**settings, predictions=[some])).results
    assert [row["item"] for row in results["failures"]] == ["s2", "s3", "s4"]
    assert "no prediction for 's2' with seed 0" in results["failures"][0]["error"]
    limited = LYRICS.run(Settings(**settings, predictions=[some], limit=1)).results
    assert limited["failures"] == []
    other = predictions(tmp_path / "other.jsonl", {"s9": "", "s8": ""})
    with pytest.raises(PairCountError, match=r"system 'other': 2 ids are not songs of songs.jsonl: s9, s8"):
        LYRICS.run(Settings(**settings, predictions=[other]))
    predictions(tmp_path / "some.jsonl", {"s1": "again"})
    with pytest.raises(PairCountError, match="line 2: a second prediction for 's1' of system 'some'"):
        LYRICS.run(Settings(**settings, predictions=[some]))


@pytest.mark.slow
def test_a_run_goes_on_where_it_stood(
    settings: dict[str, Any], words: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings["predictions"] = [predictions(tmp_path / "mine.jsonl", words)]
    whole = LYRICS.run(Settings(**settings)).results
    asked: list[str] = []
    real = lyrics.score_lyrics

    def counted(*pair: Any, **options: Any) -> Any:
        asked.append(pair[0])
        return real(*pair, **options)

    monkeypatch.setattr(lyrics, "score_lyrics", counted)
    assert LYRICS.run(Settings(**settings)).results == whole
    assert len(asked) == 1  # a trial
    records = tmp_path / "out" / "records"
    cut(records, len(read_records(records)) - 25)
    assert LYRICS.run(Settings(**settings)).results == whole
    assert 1 < len(asked) - 2 < 40


def test_blocks_and_processes_change_nothing(
    settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = LYRICS.run(Settings(**settings)).results
    monkeypatch.setattr(lyrics, "AT_ONCE", 3)
    seen: list[tuple[int, int]] = []
    settings["out"] = tmp_path / "again"
    again = LYRICS.run(Settings(**settings), progress=lambda done, total, _: seen.append((done, total)))
    assert again.results == whole
    assert seen == [(done, 36) for done in range(3, 37, 3)]


@pytest.mark.slow
def test_processes_change_nothing(settings: dict[str, Any], tmp_path: Path) -> None:
    whole = LYRICS.run(Settings(**settings)).results
    assert LYRICS.run(Settings(**settings | {"out": tmp_path / "two"}, workers=2)).results == whole


PATTERN = "(verse1)\nccccR\nccccR\nccccc\nccccR"
POEM = "(verse1)\n床前明月光\n疑是地上霜\n举头望明月\n低头思故乡"


def test_folders_and_files(write_files: Write, tmp_path: Path) -> None:
    reference = write_files("r", {"a.txt": PATTERN, "x/b": PATTERN, "c.txt": "(verse1)\nccx", ".hidden": ""})
    one = write_files("one", {"a.md": POEM, "x/b.txt": POEM, "c.txt": POEM, "extra.txt": POEM})
    outcome = LYRICS.run(Settings(tmp_path / "out", reference=reference, generated=[f"mine={one}"], **QUICK))
    results = outcome.results
    assert list(results["systems"]) == ["mine", *OF_PATTERNS]
    assert {about["n_pairs"] for name, about in results["systems"].items() if name != "mine"} == {2}
    assert results["scores"][ECHO]["lyric_structure"]["value"] == pytest.approx(53.73, abs=0.01)
    assert results["scores"][ECHO]["lyric_structure_corrected"]["value"] == 0.0
    assert results["systems"]["mine"]["n_groups"] == 2  # equal patterns are one song
    assert results["scores"]["mine"]["lyric_structure"]["value"] == pytest.approx(109.91, abs=0.01)
    assert [(row["item"], row["error"].partition(":")[0]) for row in results["failures"]] == [
        ("c", "InvalidPatternError"),
        ("extra", "PairCountError"),
    ]
    files = Settings(tmp_path / "files", reference=reference / "a.txt", generated=[str(one / "x" / "b.txt")], **QUICK)
    assert LYRICS.run(files).results["scores"]["b"]["lyric_structure"]["n_defined"] == 1
    ended = write_files("ended", {"r.txt": PATTERN + "\n", "g.txt": POEM + "\n"})
    lines = Settings(tmp_path / "ends", reference=ended / "r.txt", generated=[f"b={ended / 'g.txt'}"], **QUICK)
    assert LYRICS.run(lines).results["scores"] == LYRICS.run(files).results["scores"]
    with pytest.raises(PairCountError):
        LYRICS.run(Settings(tmp_path / "o", reference=reference, generated=[str(one / "a.md")], **QUICK))
    with pytest.raises(NoDataError):
        LYRICS.run(Settings(tmp_path / "o", reference=tmp_path / "empty", generated=[str(one)], **QUICK))


@pytest.fixture(autouse=True)
def _an_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()


def test_a_manifest_of_texts_and_paths(write_files: Write, tmp_path: Path) -> None:
    rows = [
        {"id": "a", "generated": POEM, "reference": PATTERN, "system": "x", "group": "g"},
        {"id": "b", "generated_file": "b.txt", "reference_file": "p/b", "system": "x", "group": "g"},
        {"id": "a", "generated": "", "reference": PATTERN, "system": "y"},
        {"id": "b", "generated_file": "missing.txt", "reference": PATTERN, "system": "y"},
        {"id": "c", "generated": 3, "reference": PATTERN, "system": "y"},
        {"id": "d", "generated_file": "/etc/hostname", "reference": PATTERN, "system": "y"},
        {"id": "e", "generated_file": "p/../../secret.txt", "reference": PATTERN, "system": "y"},
        {"id": "f", "generated": "b.txt", "reference": PATTERN, "system": "y"},
        {"id": "g", "generated": POEM, "generated_file": "b.txt", "reference": PATTERN, "system": "y"},
        {"id": "h", "generated_file": ["b.txt"], "reference": PATTERN, "system": "y"},
        {"id": "i", "generated_file": "b\0.txt", "reference": PATTERN, "system": "y"},
        {"id": "j", "generated_file": "link.txt", "reference": PATTERN, "system": "y"},
    ]
    (tmp_path / "secret.txt").write_text(POEM)
    files = {"list.jsonl": "\n".join(map(json.dumps, rows)), "b.txt": POEM, "p/b": PATTERN}
    folder = write_files("m", files)
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    results = LYRICS.run(Settings(tmp_path / "out", manifest=folder / "list.jsonl", **QUICK)).results
    assert results["systems"]["x"]["n_groups"] == 1
    assert results["scores"]["x"]["lyric_structure"]["value"] == pytest.approx(109.91, abs=0.01)
    assert results["scores"]["y"]["lyric_structure"]["value"] == 0
    assert [(row["item"], row["error"].partition(":")[0]) for row in results["failures"]] == [
        ("b", "NoDataError"),
        *((item, "InvalidInputError") for item in "cdeghij"),
    ]
    errors = {row["item"]: row["error"] for row in results["failures"]}
    assert "'/etc/hostname' does not lie below the manifest's folder" in errors["d"]
    assert "give generated or generated_file in a row, not both" in errors["g"]
    assert "section headers as in the files" in results["wording"]["how"]
    content = f'generated,generated_file,reference\n"{POEM}",,"{PATTERN}"\n,a.txt,"{PATTERN}"\n'
    table = write_files("n", {"list.csv": content, "a.txt": POEM})
    results = LYRICS.run(Settings(tmp_path / "csv", manifest=table / "list.csv", **QUICK)).results
    assert results["scores"]["list"]["lyric_structure"]["n_defined"] == 2


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        ("", NoDataError, "holds no pairs"),
        ("id,generated\na,b\n", InvalidInputError, "no column reference or reference_file; it has id, generated"),
        (f'id,generated,reference\na,"{POEM}",x\na,"{POEM}",x\n', PairCountError, r"twice or more: a \(list\)"),
        ("id,generated,reference,system\na,x,y,true lyrics\n", InvalidInputError, "none of them true lyrics"),
    ],
)
def test_manifests_that_are_none(
    write_files: Write, tmp_path: Path, content: str, error: type[Exception], message: str
) -> None:
    folder = write_files("m", {"list.csv": content})
    with pytest.raises(error, match=message):
        LYRICS.run(Settings(tmp_path / "out", manifest=folder / "list.csv", **QUICK))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"manifest": "list.csv"}, InvalidInputError, "give one of `dataset`"),
        ({"dataset": None}, InvalidInputError, "give one of `dataset`"),
        ({"generated": ["x"]}, InvalidInputError, "`reference` and `generated` go together"),
        ({"dataset": None, "manifest": "l.csv", "config": "demo"}, InvalidInputError, "`config` goes with `dataset`"),
        ({"dataset": None, "manifest": "l.csv", "predictions": ["p"]}, InvalidInputError, "`predictions` goes with"),
        ({"workers": 0}, InvalidInputError, "`workers` must be at least 1"),
        ({"explained": -1}, InvalidInputError, "`explained` must be at least 0"),
        ({"seed": -1}, InvalidInputError, "`seed` must be at least 0"),
        ({"confidence": 95}, InvalidInputError, "`confidence` must lie above 0"),
        ({"variant": "paperr"}, UnknownNameError, "did you mean paper"),
        ({"rhyme": "chars"}, UnknownNameError, "did you mean char"),
        ({"section_match": "labels"}, UnknownNameError, "did you mean label"),
        ({"controls": False}, NoDataError, "nothing to score"),
    ],
)
def test_settings_that_make_no_sense(
    settings: dict[str, Any], change: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        LYRICS.run(Settings(**settings | change))
    assert not settings["out"].exists()


def test_other_variants_are_other_scores(settings: dict[str, Any], tmp_path: Path) -> None:
    official = LYRICS.run(Settings(**settings)).results
    paper = LYRICS.run(Settings(**settings | {"out": tmp_path / "paper"}, variant="paper")).results
    assert paper["wording"]["how"] == (
        "variant paper, rhymes by char, texts normalised, section headers numbered, themes not compared, as no encoder "
        "was named (`theme_encoder`)"
    )
    assert official["scores"][SHUFFLED]["lyric_structure"] != paper["scores"][SHUFFLED]["lyric_structure"]


def test_patterns_without_numbers_are_other_references(settings: dict[str, Any], tmp_path: Path) -> None:
    numbered = LYRICS.run(Settings(**settings)).results["scores"][TRUE_LYRICS]
    outcome = LYRICS.run(Settings(**settings | {"out": tmp_path / "n", "report": True}, numbered=False))
    assert "section headers without numbers" in text_report(outcome.results)
    assert "<td>section headers</td><td>without numbers</td>" in outcome.files["report"].read_text()
    unnumbered = outcome.results["scores"][TRUE_LYRICS]
    assert unnumbered["lyric_section"] == numbered["lyric_section"]  # sections are told by their first letters
    assert unnumbered["lyric_song"]["value"] == numbered["lyric_song"]["value"] == pytest.approx(10)


def test_a_shuffled_structure_is_another_order() -> None:
    sections = [LyricSection(label, (label * 2,)) for label in "abc"]
    for seed in range(50):
        shuffled = shuffled_sections(sections, "s", seed)
        assert sorted(section.label for section in shuffled) == ["a", "b", "c"]
        assert shuffled != sections
        assert shuffled == shuffled_sections(sections, "s", seed)
    assert shuffled_sections(sections[:1], "s", 0) == []
    assert shuffled_sections([sections[0]] * 3, "s", 0) == []
    assert shuffled_sections([], "s", 0) == []


def test_one_group_has_no_other_song(settings: dict[str, Any], song_rows: Any, tmp_path: Path) -> None:
    path = tmp_path / "one.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in song_rows[2:]))
    outcome = LYRICS.run(Settings(**settings | {"dataset": str(path)}))
    assert list(outcome.results["systems"]) == [name for name in LYRIC_CONTROLS if name != ANOTHER_SONG]
    assert any("all songs are of one group" in note for note in outcome.notes)


def test_patterns_without_words_have_the_controls_of_patterns(
    settings: dict[str, Any], song_rows: Any, tmp_path: Path
) -> None:
    for row in song_rows:
        for section in row["structure"]:
            section["lines"] = []
    path = tmp_path / "patterns.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in song_rows))
    settings["dataset"] = str(path)
    assert tuple(LYRICS.run(Settings(**settings)).results["systems"]) == OF_PATTERNS
    mine = predictions(tmp_path / "mine.jsonl", {row["id"]: POEM for row in song_rows})
    results = LYRICS.run(Settings(**settings, predictions=[mine], controls=False, overwrite=True)).results
    assert list(results["systems"]) == ["mine"]


def test_records_alone_make_the_results(settings: dict[str, Any]) -> None:
    outcome = LYRICS.run(Settings(**settings))
    found = read_scores(read_records(outcome.files["records"]), LYRICS)
    assert found.header["task"] == "lyrics"
    assert found.value("s1", TRUE_LYRICS, "lyric_section") == 32.5


@pytest.mark.skipif(not REAL_SONGS.exists(), reason="the development songs are not here")
@pytest.mark.slow
def test_the_development_songs(tmp_path: Path) -> None:
    results = LYRICS.run(Settings(tmp_path / "out", dataset=str(REAL_SONGS), report=False, n_resamples=20)).results
    totals = {name: cells["lyric_structure"]["value"] for name, cells in results["scores"].items()}
    assert totals[TRUE_LYRICS] == pytest.approx(107.5, abs=0.3)
    assert totals[ANOTHER_SONG] == pytest.approx(43.7, abs=1.5)
    assert totals[ECHO] == pytest.approx(52, abs=0.5)  # what sections and lines earn without a character
    assert totals[ONE_CHARACTER] == pytest.approx(98, abs=1.5)


def test_a_prompt_that_is_echoed_does_not_score_in_silence(
    settings: dict[str, Any], words: dict[str, str], songs_file: Path, tmp_path: Path
) -> None:
    patterns = {song.id: song.pattern_text() for song in load_songs(str(songs_file))}
    lazy = predictions(tmp_path / "lazy.jsonl", patterns | {"s4": words["s4"]})
    results = LYRICS.run(Settings(**settings, predictions=[lazy, predictions(tmp_path / "good.jsonl", words)])).results
    [told] = [note for note in caveats(results) if "Chinese" in note]
    assert told.startswith("lazy: 3 texts without a Chinese character")
    assert [(row["item"], row["system"]) for row in results["notes"]] == [
        ("s1", "lazy"),
        ("s2", "lazy"),
        ("s3", "lazy"),
    ]
    assert all(row["notes"] == [NO_CHINESE_FORM] for row in results["notes"])
    lazy_alone = [results["scores"][ECHO][name]["value"] for name in ("lyric_structure_corrected", "lyric_word")]
    assert lazy_alone == [0.0, 0.0]
    for shown in (f"({ECHO})", f"({ONE_CHARACTER})", f"{ONE_CHARACTER}: the same character in all places"):
        assert shown in " ".join(text_report(results).split()), shown


def test_one_character_keeps_headers_lines_and_pauses() -> None:
    assert on_one_character("(Reprise)\ncc cR\n\n(chorus) ccR") == "(Reprise)\n啦啦 啦啦\n\n(chorus) 啦啦啦"


def test_controls_of_files_are_one_a_pattern(tmp_path: Path) -> None:
    rows = [
        {"id": "a", "generated": POEM, "reference": PATTERN, "system": "x"},
        {"id": "a", "generated": POEM, "reference": PATTERN, "system": "y"},
        {"id": "b", "generated": "(intro)", "reference": "(intro)", "system": "x"},  # asks for no character
        {"id": "c", "generated": POEM, "reference": "(verse)\nccx", "system": "x"},  # fails by itself
    ]
    manifest = tmp_path / "list.jsonl"
    manifest.write_text("\n".join(map(json.dumps, rows)))
    found = LYRICS.run(Settings(tmp_path / "out", manifest=manifest, **QUICK)).results
    assert list(found["systems"]) == ["x", "y", *OF_PATTERNS]
    assert {found["systems"][name]["n_pairs"] for name in OF_PATTERNS} == {1}
    assert [(row["item"], row["system"]) for row in found["failures"]] == [("c", "x")]
    alone = Settings(tmp_path / "alone", manifest=manifest, controls=False, **QUICK)
    assert list(LYRICS.run(alone).results["systems"]) == ["x", "y"]


def test_records_of_before_these_controls_are_read(
    settings: dict[str, Any], words: dict[str, str], tmp_path: Path
) -> None:
    """A run without the rows of the new controls, in which a system was called like one of them."""
    settings["predictions"] = [predictions(tmp_path / "mine.jsonl", words)]
    rows = read_records(LYRICS.run(Settings(**settings)).files["records"])
    old = [row for row in rows if row.get("system") not in {*OF_PATTERNS, SHUFFLED_WORDS}]
    text = "\n".join(json.dumps(row).replace('"mine"', f'"{ECHO}"') for row in old)
    found = read_scores([json.loads(line) for line in text.splitlines()], LYRICS)
    assert found.systems == (ECHO, TRUE_LYRICS, ANOTHER_SONG, SHUFFLED)
    results = build_results(found, LYRICS, n_resamples=20)
    assert results["systems"][ECHO]["role"] == "system"
    assert results["scores"][ECHO] == results["scores"][TRUE_LYRICS]


def test_no_system_may_be_called_like_a_control(
    settings: dict[str, Any], words: dict[str, str], tmp_path: Path
) -> None:
    settings["predictions"] = [f"{ECHO}={predictions(tmp_path / 'mine.jsonl', words)}"]
    with pytest.raises(InvalidInputError, match=ECHO):
        LYRICS.run(Settings(**settings))


def test_themes_are_compared_where_an_encoder_is_named(tmp_path: Path) -> None:
    from tests.writing import POEMS, poem_text, write_songs

    from music_evals.pipelines.lyric_content import evaluate_themes

    songs = write_songs(tmp_path / "songs.jsonl", heron=" ")
    content = songs.read_text(encoding="utf-8").replace("登楼远望！", "")  # the heron has no theme at all
    songs.write_text(content, encoding="utf-8")
    texts = {"spring": f"```\n{poem_text('spring')}\n```", "moon": "", "heron": poem_text("heron")}
    rows = [json.dumps({"id": item, "text": text}, ensure_ascii=False) for item, text in texts.items()]
    (tmp_path / "one.jsonl").write_text("\n".join(rows), encoding="utf-8")
    given = {"dataset": str(songs), "predictions": [f"mine={tmp_path / 'one.jsonl'}"], "rhyme": "char", "report": False}
    outcome = LYRICS.run(Settings(out=tmp_path / "out", **given, theme_encoder="char-ngrams"))
    assert outcome.results["wording"]["how"].split(", themes ")[1].startswith("by the encoder char-ngrams")
    records = read_records(tmp_path / "out" / "records")
    found = {(row["item"], row["system"]): row for row in records if row.get("metric") == "lyric_theme_similarity"}
    expected = evaluate_themes([POEMS["spring"][0]], [poem_text("spring")], encoder="char-ngrams")
    assert found["spring", "mine"]["value"] == pytest.approx(expected["lyric_theme_similarity"])
    assert found["moon", "mine"]["value"] is None
    assert found["heron", "mine"]["value"] is None
    assert found["moon", "true lyrics"]["value"] is not None
    plain = LYRICS.run(Settings(out=tmp_path / "plain", **given))
    assert "lyric_theme_similarity" in outcome.results["scores"]["mine"]
    assert "lyric_theme_similarity" not in plain.results["scores"]["mine"]
    with pytest.raises(InvalidInputError, match="themes of a dataset"):
        Settings(out=tmp_path, reference="here", generated=["there"], theme_encoder="char-ngrams")


def test_an_encoder_without_weights_stops_the_run_before_it_begins(tmp_path: Path) -> None:
    from tests.writing import write_songs

    from music_evals.errors import ModelUnavailableError

    songs = write_songs(tmp_path / "songs.jsonl")
    with pytest.raises(ModelUnavailableError):
        LYRICS.run(Settings(out=tmp_path / "out", dataset=str(songs), theme_encoder=str(tmp_path / "none")))
    assert not (tmp_path / "out" / "records").exists()
