"""Every folder under `datasets_scripts/` obeys the contract of a dataset."""

from __future__ import annotations

import functools
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.rules import card_of, missing_topics, over, place, subfolders, text_of

from music_evals.datasets.manifest import rows_sha256
from music_evals.metrics.catalogue import CATALOGUE
from music_evals.yaml_files import load_yaml

FOLDERS = subfolders("datasets_scripts")
of_each_dataset = over(FOLDERS, place)
FILES = {"README.md", "build.py", "eval.yaml", "manifest.json", "data"}
# What a card must speak of, in whatever words its headings have.
TOPICS = {
    "where the data comes from": r"^#+ .*(source|provenance|origin|comes from)",
    "the licence of the data": r"^#+ .*licen[cs]e",
    "the splits": r"^#+ .*(config|split)",
    "the columns": r"^#+ .*(column|row|field|feature)",
    "what to beware of": r"^#+ .*(limit|beware|caution|known|caveat)",
    "how to rebuild": r"build\.py",
    "whom to cite": r"^#+ .*cit",
}
HUB_CARD_LICENSES = {"other", "cc0-1.0", "cc-by-4.0", "cc-by-sa-4.0", "cc-by-nc-4.0", "mit", "apache-2.0", "unknown"}


@functools.cache
def manifest_of(folder: Path) -> dict[str, Any]:
    return json.loads(text_of(folder / "manifest.json"))


def splits_of(head: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return (config, split, pattern) of every split that a card declares."""
    return [
        (config["config_name"], entry["split"], entry["path"])
        for config in head["configs"]
        for entry in config["data_files"]
    ]


@of_each_dataset
def test_files(folder: Path) -> None:
    found = {path.name for path in folder.iterdir()} - {"__pycache__"}
    assert found >= FILES, f"missing: {FILES - found}"
    assert not (folder / f"{folder.name}.py").exists(), "a script of the folder's name stops load_dataset"


@of_each_dataset
def test_declared_configs_are_the_data_files(folder: Path) -> None:
    files = {str(path.relative_to(folder)) for path in (folder / "data").rglob("*") if path.is_file()}
    declared: set[str] = set()
    for config, split, pattern in splits_of(card_of(folder)[0]):
        assert pattern.startswith(f"data/{config}/{split}-"), pattern
        matched = {str(path.relative_to(folder)) for path in folder.glob(pattern)}
        assert matched, f"{pattern} matches no file"
        declared |= matched
    assert declared == files == set(manifest_of(folder)["files"])
    assert all(re.fullmatch(r"data/\w+/\w+-\d{5}-of-\d{5}\.parquet", name) for name in files)
    assert sum(bool(config.get("default")) for config in card_of(folder)[0]["configs"]) == 1


@of_each_dataset
def test_the_manifest_vouches_for_the_bytes(folder: Path) -> None:
    for name, facts in manifest_of(folder)["files"].items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == facts["sha256"], (
            f"{name} is not the file of the manifest: rebuild"
        )


@pytest.mark.slow
@of_each_dataset
def test_every_split_loads_as_the_manifest_says(folder: Path, in_root: Path) -> None:
    from datasets import load_dataset

    files = manifest_of(folder)["files"]
    for config, split, pattern in splits_of(card_of(folder)[0]):
        rows = load_dataset(f"./datasets_scripts/{folder.name}", config, split=split)
        facts = [files[name] for name in files if Path(name).match(pattern)]
        assert len(rows) == sum(entry["rows"] for entry in facts)
        if len(facts) == 1:
            assert rows_sha256(rows.to_list()) == facts[0]["rows_sha256"]


@of_each_dataset
def test_the_default_config_loads_without_a_name(folder: Path, in_root: Path) -> None:
    from datasets import load_dataset

    default = next(config for config in card_of(folder)[0]["configs"] if config.get("default"))
    loaded = load_dataset(f"./datasets_scripts/{folder.name}")
    assert set(loaded) == {entry["split"] for entry in default["data_files"]}


@of_each_dataset
def test_card_yaml(folder: Path) -> None:
    head, _ = card_of(folder)
    assert head["license"] in HUB_CARD_LICENSES, "the licence of the data, as the Hub names it; not that of the code"
    if head["license"] == "other":
        assert head.get("license_name"), "a licence that the Hub has no name for needs license_name"
    assert len(head["pretty_name"]) > 3


@of_each_dataset
def test_card_speaks_of_all_topics(folder: Path) -> None:
    missing = missing_topics(card_of(folder)[1], TOPICS)
    assert not missing, f"the card must tell {missing}"


@of_each_dataset
def test_card_tells_every_number_of_rows(folder: Path) -> None:
    told = {int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", card_of(folder)[1]) if number.strip(",")}
    missing = {name: facts["rows"] for name, facts in manifest_of(folder)["files"].items() if facts["rows"] not in told}
    assert not missing, f"row counts that the card does not tell: {missing}"


@of_each_dataset
def test_eval_yaml_declares_one_task_a_number(folder: Path) -> None:
    declared = load_yaml(text_of(folder / "eval.yaml"), folder)
    assert declared["name"]
    assert declared["description"]
    assert declared["evaluation_framework"]
    splits = {(config, split) for config, split, _ in splits_of(card_of(folder)[0])}
    known = set(CATALOGUE) | {path.name for path in subfolders("metrics")}
    ids = [task["id"] for task in declared["tasks"]]
    assert len(set(ids)) == len(ids)
    for task in declared["tasks"]:
        assert (task["config"], task["split"]) in splits
        metric = task["id"].removeprefix(f"{task['config']}_{task['split']}_")
        assert metric in known, f"task {task['id']} must be called <config>_<split>_<metric>"
