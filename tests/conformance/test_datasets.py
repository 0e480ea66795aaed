"""Every folder under `datasets_scripts/` obeys the contract of a dataset."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from music_evals.datasets.manifest import rows_sha256
from music_evals.metrics.catalogue import CATALOGUE

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = sorted(path for path in (ROOT / "datasets_scripts").iterdir() if path.is_dir() and path.name != "__pycache__")
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


@pytest.fixture(params=FOLDERS, ids=[path.name for path in FOLDERS])
def folder(request: pytest.FixtureRequest) -> Path:
    return request.param


@pytest.fixture
def manifest(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "manifest.json").read_text(encoding="utf-8"))


def splits_of(head: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return (config, split, pattern) of every split that a card declares."""
    return [
        (config["config_name"], entry["split"], entry["path"])
        for config in head["configs"]
        for entry in config["data_files"]
    ]


def test_files(folder: Path) -> None:
    found = {path.name for path in folder.iterdir()} - {"__pycache__"}
    assert found >= FILES, f"missing: {FILES - found}"
    assert not (folder / f"{folder.name}.py").exists(), "a script of the folder's name stops load_dataset"


def test_declared_configs_are_the_data_files(
    folder: Path, card: tuple[dict[str, Any], str], manifest: dict[str, Any]
) -> None:
    files = {str(path.relative_to(folder)) for path in (folder / "data").rglob("*") if path.is_file()}
    declared: set[str] = set()
    for config, split, pattern in splits_of(card[0]):
        assert pattern.startswith(f"data/{config}/{split}-"), pattern
        matched = {str(path.relative_to(folder)) for path in folder.glob(pattern)}
        assert matched, f"{pattern} matches no file"
        declared |= matched
    assert declared == files == set(manifest["files"])
    assert all(re.fullmatch(r"data/\w+/\w+-\d{5}-of-\d{5}\.parquet", name) for name in files)
    assert sum(bool(config.get("default")) for config in card[0]["configs"]) == 1


def test_the_manifest_vouches_for_the_bytes(folder: Path, manifest: dict[str, Any]) -> None:
    for name, facts in manifest["files"].items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == facts["sha256"], (
            f"{name} is not the file of the manifest: rebuild"
        )


def test_every_split_loads_as_the_manifest_says(
    folder: Path, card: tuple[dict[str, Any], str], manifest: dict[str, Any], in_root: Path
) -> None:
    from datasets import load_dataset

    for config, split, pattern in splits_of(card[0]):
        rows = load_dataset(f"./datasets_scripts/{folder.name}", config, split=split)
        facts = [manifest["files"][name] for name in manifest["files"] if Path(name).match(pattern)]
        assert len(rows) == sum(entry["rows"] for entry in facts)
        if len(facts) == 1:
            assert rows_sha256(rows) == facts[0]["rows_sha256"]


def test_the_default_config_loads_without_a_name(folder: Path, card: tuple[dict[str, Any], str], in_root: Path) -> None:
    from datasets import load_dataset

    default = next(config for config in card[0]["configs"] if config.get("default"))
    loaded = load_dataset(f"./datasets_scripts/{folder.name}")
    assert set(loaded) == {entry["split"] for entry in default["data_files"]}


def test_card_yaml(card: tuple[dict[str, Any], str]) -> None:
    head, _ = card
    assert head["license"] in HUB_CARD_LICENSES, "the licence of the data, as the Hub names it; not that of the code"
    if head["license"] == "other":
        assert head.get("license_name"), "a licence that the Hub has no name for needs license_name"
    assert len(head["pretty_name"]) > 3


@pytest.mark.parametrize("topic", TOPICS)
def test_card_speaks_of(topic: str, card: tuple[dict[str, Any], str]) -> None:
    found = re.search(TOPICS[topic], card[1], re.MULTILINE | re.IGNORECASE)
    assert found, f"the card must tell {topic}: nothing matches {TOPICS[topic]!r}"


def test_card_tells_every_number_of_rows(card: tuple[dict[str, Any], str], manifest: dict[str, Any]) -> None:
    told = {int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", card[1]) if number.strip(",")}
    missing = {name: facts["rows"] for name, facts in manifest["files"].items() if facts["rows"] not in told}
    assert not missing, f"row counts that the card does not tell: {missing}"


def test_eval_yaml_declares_one_task_a_number(folder: Path, card: tuple[dict[str, Any], str]) -> None:
    declared = yaml.safe_load((folder / "eval.yaml").read_text(encoding="utf-8"))
    assert declared["name"]
    assert declared["description"]
    assert declared["evaluation_framework"]
    splits = {(config, split) for config, split, _ in splits_of(card[0])}
    known = set(CATALOGUE) | {path.name for path in (ROOT / "metrics").iterdir() if path.is_dir()}
    ids = [task["id"] for task in declared["tasks"]]
    assert len(set(ids)) == len(ids)
    for task in declared["tasks"]:
        assert (task["config"], task["split"]) in splits
        metric = task["id"].removeprefix(f"{task['config']}_{task['split']}_")
        assert metric in known, f"task {task['id']} must be called <config>_<split>_<metric>"
