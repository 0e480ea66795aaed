"""The verb ``listening-test`` with listeners: from a table of sounds to the report."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from tests.listeners import QUALITY, sent, submit

from music_evals.cli import main
from music_evals.pipelines.study_tables import LISTENING, read_table
from music_evals.studies.folders import StudyFolder, read_study_folder
from music_evals.studies.listening.build import read_listening_key
from music_evals.studies.listening.screening import rule_texts
from music_evals.studies.pairs import read_pairs


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three items of two systems and their originals: half a second of noise."""
    folder, rng = tmp_path_factory.mktemp("edits"), np.random.default_rng(5)
    rows = [["item_id", "group", "system", "reference", "estimate"]]
    for item in range(3):
        for name in ("r", "x", "y"):
            soundfile.write(folder / f"{name}{item}.wav", 0.1 * rng.normal(size=11_025), 22_050)
        rows += [[f"i{item}", f"song {item}", system, f"r{item}.wav", f"{system}{item}.wav"] for system in "xy"]
    with (folder / "pairs.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return folder / "pairs.csv"


def build(pairs: Path, out: Path, *others: str) -> int:
    plain = ["--listeners", "4", "--checks", "2", "--contact", "Ada", "--seed", "5"]
    return main(["listening-test", "build", str(pairs), "--out", str(out), *plain, *others])


def held(pairs: Path, out: Path, *others: str, **forged: Any) -> StudyFolder:
    """A study that all planned listeners finished."""
    assert build(pairs, out, *others) == 0
    study = read_study_folder(out)
    key = read_listening_key(study.key)
    for slot in range(len(study.plans)):
        submit(study, sent(study.plans, key, slot, tones=forged.get("tones") if slot == 3 else None), slot)
    return study


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_ratings_from_the_table_of_sounds_to_that_of_an_editing_test(
    pairs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = held(pairs, tmp_path / "study", "--styles", "bach,jazz")
    out, err = capsys.readouterr()
    assert out.strip() == str(tmp_path / "study")
    assert "4 plans of 8 pages over 3 items and 2 systems: x, y" in err
    assert "note: of 6 sounds the table names no licence" in err
    assert [one["name"] for one in study.settings["questions"]] == ["LQ1", "sim_bach", "sim_jazz"]
    assert {"index.html", "study.js", "study.css", "audio"} == {path.name for path in study.page.iterdir()}
    assert main(["listening-test", "report", str(study.folder)]) == 0
    out, err = capsys.readouterr()
    report = study.folder / "report"
    assert out.strip() == (report / "report.md").read_text().strip()
    assert "report.md, tables.json, ratings.csv, listening.csv, checks.csv, listeners.csv, means.csv" in err
    assert "| LQ1 | `x` | kept | 4.000 |" in out
    table = read_table(report / "listening.csv", LISTENING, table_name="listening")
    assert len(table["sample_id"]) == 4 * 6
    assert {"sim_bach", "sim_jazz"} < set(table)


def test_ab_and_its_share(pairs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = held(pairs, tmp_path / "study", "--type", "ab", "--question", "odd=Which one is odder?")
    assert [one["name"] for one in study.settings["questions"]] == ["odd"]
    assert main(["listening-test", "report", str(study.folder), "--json", "--out", str(tmp_path / "here")]) == 0
    content = json.loads(capsys.readouterr().out.partition("\n")[2])
    assert {(row["first"], row["second"], row["share"]) for row in content["preferences"]} == {("x", "y", 1.0)}
    assert len(rows(tmp_path / "here/choices.csv")) == 4 * 3


def test_mushra_leaves_careless_listeners_out(pairs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = held(pairs, tmp_path / "study", "--type", "mushra", tones=1)
    key = read_listening_key(study.key)
    careless = sent(study.plans, key, 0)
    for trial in careless["trials"]:
        for values in trial["answers"].values():
            values.update(dict.fromkeys(values, 3))
    token = submit(study, careless, 0)
    capsys.readouterr()
    assert main(["listening-test", "report", str(study.folder)]) == 0
    out = capsys.readouterr().out
    assert f"| `{token}` |" in out
    assert "rates the hidden reference below 90 in more than 15% of the items (`low_reference`)" in out
    found = {row["listener"]: row["is_kept"] for row in rows(study.folder / "report/listeners.csv")}
    assert found.pop(token) == "False"
    assert set(found.values()) == {"True"}
    means = {row["system"]: row for row in rows(study.folder / "report/means.csv") if row["listeners"] == "kept"}
    assert {system: float(row["mean"]) for system, row in means.items()} == {
        system: 20.0 * quality for system, quality in QUALITY.items()
    }


def test_rules_are_stated_when_the_test_is_built_and_repeated_in_the_report(
    pairs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = held(pairs, tmp_path / "study", "--allow-failures", "0", "--least-agreement", "0.3", tones=1)
    err = capsys.readouterr().err
    key = read_listening_key(study.key)
    assert (key.settings.allowed_failures, key.settings.least_agreement) == (0, 0.3)
    texts = rule_texts(key.settings)
    assert all(f"left out is who {text}" in err for text in texts.values())
    assert main(["listening-test", "report", str(study.folder)]) == 0
    out = capsys.readouterr().out
    assert all(f"- {text} (`{mark}`)" in out for mark, text in texts.items())
    assert "one person may have joined twice" in out
    assert "low_agreement was not applied" in out
    # the number of tones is never 1 in both checks, so that the fourth listener failed one
    found = {row["listener"]: row for row in rows(study.folder / "report/listeners.csv")}
    assert sorted(row["marks"] for row in found.values()) == ["", "", "", "failed_checks"]
    assert set(next(iter(found.values()))) >= {
        "seconds", "server_sec", "n_checks", "n_failed", "spread", "agreement", "agreement LQ1", "marks", "is_kept",
    }  # fmt: skip
    sets = {row["listeners"] for row in rows(study.folder / "report/means.csv")}
    assert sets == {"kept", "all"}
    assert "| LQ1 | `x` | kept |" in out
    assert "| LQ1 | `x` | all |" in out
    with pytest.raises(SystemExit):  # nobody chooses them after seeing results
        main(["listening-test", "report", str(study.folder), "--allow-failures", "3"])


def test_sounds_of_unequal_length_are_refused_or_cut(
    pairs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    soundfile.write(pairs.with_name("long.wav"), 0.1 * np.random.default_rng(1).normal(size=20_000), 22_050)
    table = pairs.with_name("unequal.csv")
    table.write_text(pairs.read_text().replace("y1.wav", "long.wav"))
    assert build(table, tmp_path / "study") == 2
    err = capsys.readouterr().err
    assert "item 'i1'" in err
    assert "row 3 x 0.500 s, row 4 y 0.907 s" in err
    assert "--lengths cut" in err
    assert build(table, tmp_path / "study", "--lengths", "cut") == 0
    assert "note: i1: cut to the shortest: row 4 y by 0.407 s" in capsys.readouterr().err
    assert build(table, tmp_path / "other", "--lengths", "stretch") == 2
    assert "unknown way with unequal lengths 'stretch'" in capsys.readouterr().err


def test_invitations_are_links_and_only_hashes_are_kept(
    pairs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert build(pairs, tmp_path / "study") == 0
    capsys.readouterr()
    folder = str(tmp_path / "study")
    assert main(["listening-test", "invite", folder, "3", "--url", "https://example.org/"]) == 0
    links = capsys.readouterr().out.split()
    codes = [link.removeprefix("https://example.org/#code=") for link in links]
    assert all(len(code) == 32 for code in codes)
    assert len(set(codes)) == 3
    kept = "".join(
        path.read_text() for path in (tmp_path / "study").rglob("*") if path.suffix in {".txt", ".json", ".csv"}
    )
    assert not any(code in kept for code in codes)
    for count in ("0", "-2", "100000"):
        assert main(["editing-test", "invite", folder, count]) == 2
        assert "invite 1 to 10000 people" in capsys.readouterr().err


def test_answers_that_cannot_be_are_listed_and_left_out(
    pairs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = held(pairs, tmp_path / "study")
    key = read_listening_key(study.key)
    forged = sent(study.plans, key, 1)
    forged["trials"][2]["seconds"] = 0.1
    token = submit(study, forged, 1)
    other = submit(study, sent(study.plans, key, 1), 2)
    submit(study, {}, 2, part="something else")
    capsys.readouterr()
    assert main(["listening-test", "report", str(study.folder)]) == 1
    err = capsys.readouterr().err
    assert "2 failed" in err
    assert f"{token}: {token}, row 3: " in err
    assert "s were heard on a page that was open for 0.1 s" in err
    assert f"{other}: {other}: answers to plan 1, and the plan was 2" in err
    assert "1 began and sent no answers" in err
    listeners = [row["listener"] for row in rows(study.folder / "report/listeners.csv")]
    assert len(listeners) == 4
    # who withdraws is left out by number
    withdrawn = ["--leave-out", token, "--leave-out", other, "--leave-out", listeners[0]]
    assert main(["listening-test", "report", str(study.folder), *withdrawn]) == 0
    assert [row["listener"] for row in rows(study.folder / "report/listeners.csv")] == listeners[1:]
    assert main(["listening-test", "report", str(study.folder), "--leave-out", "me"]) == 2
    assert "nobody has the number me" in capsys.readouterr().err


@pytest.mark.slow
def test_metrics_of_a_run_stand_beside(pairs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The run that judged the same table of sounds names items and systems as the study does."""
    found = read_pairs(pairs)
    manifest = tmp_path / "edits.csv"
    with manifest.open("w", newline="") as file:
        csv.writer(file).writerows(
            [["item_id", "group", "system", "reference", "estimate"],
             *([pair.item_id, pair.group, pair.system, str(pairs.parent / pair.reference),
                str(pairs.parent / pair.estimate)] for pair in found)]
        )  # fmt: skip
    run = tmp_path / "run"
    code = main(["preserve", "--manifest", str(manifest), "--metrics", "chroma_dtw_similarity", "--out", str(run),
                 "--no-report", "--resamples", "20", "--engine", "serial"])  # fmt: skip
    assert code in {0, 1}
    study = held(pairs, tmp_path / "study")
    capsys.readouterr()
    assert main(["listening-test", "report", str(study.folder), "--run", str(run)]) == 0
    out = capsys.readouterr().out
    assert "## Metrics of `run`" in out
    assert "LQ1: 24 ratings by 4 listeners of 3 items and 2 systems" in out
    content = json.loads((study.folder / "report/tables.json").read_text())
    assert content["runs"]["run"]["questions"]["LQ1"]["n_judged"] == 6


def test_wrong_use_is_told_in_the_words_of_the_command(
    pairs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for others, said in (
        (["--type", "abx"], "unknown type of listening test 'abx'"),
        (["--blocks", "3"], "plan 6 --listeners"),
        (["--blocks", "4"], "3 items do not fill 4 blocks; add items, or take fewer --blocks"),
        (["--systems", "z"], "unknown system 'z'"),
        (["--type", "ab", "--systems", "x"], "add another, or --hidden-reference"),
        (["--questions", "loudness"], "unknown question 'loudness'"),
        (["--question", "odd"], "unknown question 'odd'"),
        (["--type", "mushra", "--questions", "rhythm"], "it cannot anchor rhythm"),
        (["--least-heard", "0"], "--least-heard must lie above 0"),
        (["--contact", ""], "--contact"),
        (["--loudness", "-1"], "choose a lower --loudness"),
    ):
        assert build(pairs, tmp_path / "study", *others) == 2
        assert said in capsys.readouterr().err
        assert not (tmp_path / "study").exists()
    assert build(pairs, tmp_path / "study") == 0
    assert build(pairs, tmp_path / "study") == 2
    assert "is there already; name a new folder" in capsys.readouterr().err
    assert main(["listening-test", "report", str(tmp_path / "study")]) == 2
    assert "nobody sent anything" in capsys.readouterr().err
    assert main(["listening-test", "report", str(tmp_path)]) == 2
    assert "holds no study.json" in capsys.readouterr().err


def test_sizes(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["listening-test", "plan", "--listeners", "4,8", "--draws", "5", "--items", "4", "--careless", "0.25"]
    assert main(command) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split() == ["listeners", "items", "minutes", "truth", "power", "coverage", "width", "careless", "kept"]
    assert [line.split()[:2] for line in lines] == [["4", "4"], ["8", "4"]]
    assert main([*command, "--type", "mushra", "--json"]) == 0
    assert [size["n_listeners"] for size in json.loads(capsys.readouterr().out)] == [4, 8]
    assert main([*command, "--listeners", "many"]) == 2
    assert "--listeners must be whole numbers with commas" in capsys.readouterr().err
