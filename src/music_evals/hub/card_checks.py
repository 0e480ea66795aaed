"""Whether a repository folder can be published: its files, its card, what the Hub and we require of each kind.

The Hub checks the YAML of a card again, by its own schema, on request (`publishing` does so before it sends).
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from music_evals.errors import MusicEvalsError
from music_evals.hub.eval_files import read_eval_yaml
from music_evals.hub.heads import read_head, split_card
from music_evals.hub.model_index import read_index
from music_evals.hub.repository_folders import METRICS, RepositoryFolder
from music_evals.hub.rewriting import PACKAGE_LINE, dead_links

_COLOURS = {"red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray"}
_SDKS = {"gradio", "docker", "static"}
_NAME = re.compile(r"[A-Za-z0-9](?:[\w.-]{0,94}[A-Za-z0-9])?")
_PACKAGE = re.compile(r"^\s*music[-_]evals\b", re.IGNORECASE)
_PINNED_TORCH = re.compile(r"^\s*torch(?:vision|audio|codec)?\s*(?:\[[^\]]*\]\s*)?[=<>!~@]", re.IGNORECASE)
_WITHOUT_WEIGHTS = ("untrained", "external-weights")
_TRAINING_STATE = {".pt", ".pth", ".ckpt", ".bin", ".pkl", ".pickle", ".npy"}
ZERO_GPU = "zero-a10g"
SHORT_DESCRIPTION = 60  # characters, the Hub's bound

Head = Mapping[str, Any]


def problems(folder: RepositoryFolder) -> list[str]:
    """Return what keeps a repository folder from being published; an empty list if nothing does."""
    files = folder.files()
    if not _NAME.fullmatch(folder.name):
        return [f"the Hub takes no repository called {folder.name!r}"]
    if "README.md" not in files:
        return ["README.md, the card, is missing, or git ignores it"]
    complaints = list(_unreadable(files))
    if complaints:
        return complaints
    card = files["README.md"].read_text(encoding="utf-8")
    try:
        head = read_head(card)
    except MusicEvalsError as error:
        return [f"README.md: {error}"]
    complaints += _card_problems(folder, card, head, files)
    check = _CHECKS["metrics" if folder.kind == METRICS else folder.repository("org").type]
    complaints += check(folder, head, files)
    if "requirements.txt" in files:
        for line in files["requirements.txt"].read_text(encoding="utf-8").splitlines():
            if _PINNED_TORCH.match(line):
                complaints.append(
                    f"requirements.txt pins torch ({line.strip()}); ZeroGPU brings its own, leave the version out"
                )
            if _PACKAGE.match(line) and not PACKAGE_LINE.fullmatch(line):
                complaints.append(
                    f"requirements.txt: expected music_evals with its extras and no version, got {line.strip()!r}"
                )
    return complaints


def _unreadable(files: Mapping[str, Path]) -> Iterator[str]:
    for name, path in files.items():
        if path.is_symlink():
            yield f"{name} is a link; put the file itself there"
        elif name.endswith((".md", ".yaml", ".txt", ".json")):
            try:
                path.read_text(encoding="utf-8")
            except UnicodeDecodeError as error:
                yield f"{name} is no text in UTF-8: {error}"


def _card_problems(folder: RepositoryFolder, card: str, head: Head, files: Mapping[str, Path]) -> Iterator[str]:
    if not head:
        yield "README.md has no YAML between two lines of --- at its start"
    if not split_card(card).body.strip():
        yield "README.md has no text below its YAML"
    if head and not isinstance(head.get("license"), str):
        yield "README.md: license is missing; take an id of the Hub's list, such as apache-2.0"
    if head.get("license") == "other" and not head.get("license_name"):
        yield "README.md: license other needs license_name and license_link"
    for path in files:
        if path.endswith(".md"):
            text = files[path].read_text(encoding="utf-8")
            yield from (
                f"{path} links to {target}, which is not there" for target in dead_links(text, folder, path=path)
            )


def _space_problems(_: RepositoryFolder, head: Head, files: Mapping[str, Path]) -> Iterator[str]:
    for key in ("title", "emoji"):
        if not isinstance(head.get(key), str):
            yield f"README.md: {key} is missing"
    for key in ("colorFrom", "colorTo"):
        if head.get(key) not in _COLOURS:
            yield f"README.md: {key} must be one of {', '.join(sorted(_COLOURS))}; got {head.get(key)!r}"
    if head.get("sdk") not in _SDKS:
        yield f"README.md: sdk must be one of {', '.join(sorted(_SDKS))}; got {head.get('sdk')!r}"
    if head.get("sdk") == "gradio":
        yield from _gradio_problems(head, files)
    if head.get("suggested_hardware") == ZERO_GPU and head.get("sdk") != "gradio":
        yield f"README.md: suggested_hardware is {ZERO_GPU}, on which Gradio alone runs"
    short = head.get("short_description", "")
    if len(str(short)) > SHORT_DESCRIPTION:
        yield f"README.md: short_description has {len(str(short))} characters, the Hub takes {SHORT_DESCRIPTION}"


def _gradio_problems(head: Head, files: Mapping[str, Path]) -> Iterator[str]:
    from packaging.specifiers import SpecifierSet

    if not re.fullmatch(r"\d+\.\d+(\.\d+)?", str(head.get("sdk_version", ""))):
        yield f"README.md: sdk_version must name one release of Gradio, such as 6.31.0; got {head.get('sdk_version')!r}"
    version = head.get("python_version")
    supported = importlib.metadata.metadata("music_evals")["Requires-Python"]
    is_release = isinstance(version, str) and re.fullmatch(r"3\.\d+(\.\d+)?", version) is not None
    if not is_release or str(version) not in SpecifierSet(supported):
        yield (
            f"README.md: python_version must be a Python that music_evals supports ({supported}), in quotes; got "
            f"{version!r}, and without one the Hub takes 3.10"
        )
    if head.get("app_file", "app.py") not in files:
        yield f"README.md: app_file names {head.get('app_file', 'app.py')}, which is not there"
    if "requirements.txt" not in files:
        yield "requirements.txt is missing: the Space could not import music_evals"


def _metric_problems(folder: RepositoryFolder, head: Head, files: Mapping[str, Path]) -> Iterator[str]:
    yield from _space_problems(folder, head, files)
    if f"{folder.name}.py" not in files:
        yield f"{folder.name}.py is missing: evaluate.load looks for the name of the repository"
    tags = head.get("tags")
    if not isinstance(tags, list) or not all(tag in tags for tag in ("evaluate", "metric")):
        yield "README.md: tags must hold evaluate and metric, by which the Hub lists it"
    if not isinstance(head.get("description"), str):
        yield "README.md: description is missing"


def _dataset_problems(folder: RepositoryFolder, head: Head, files: Mapping[str, Path]) -> Iterator[str]:
    if f"{folder.name}.py" in files:
        yield f"{folder.name}.py stops load_dataset: no file may have the name of the repository"
    splits = list(_splits(head))
    if not splits:
        yield "README.md: configs must list config_name and data_files with split and path"
    for config, split, pattern in splits:
        if not any(Path(path).match(pattern) for path in files):
            yield f"README.md: config {config}, split {split}: no file is like {pattern}"
    if "manifest.json" in files:
        yield from _manifest_problems(files)
    if "eval.yaml" in files:
        known = [(config, split) for config, split, _ in splits]
        try:
            read_eval_yaml(files["eval.yaml"].read_text(encoding="utf-8"), "eval.yaml", known)
        except MusicEvalsError as error:
            yield str(error)


def _splits(head: Head) -> Iterator[tuple[str, str, str]]:
    for config in head.get("configs") or []:
        for entry in config.get("data_files") or [] if isinstance(config, dict) else []:
            if isinstance(entry, dict) and {"split", "path"} <= set(entry):
                paths = entry["path"] if isinstance(entry["path"], list) else [entry["path"]]
                yield from ((config.get("config_name", "default"), entry["split"], str(path)) for path in paths)


def _manifest_problems(files: Mapping[str, Path]) -> Iterator[str]:
    try:
        listed = {
            path: facts["sha256"]
            for path, facts in json.loads(files["manifest.json"].read_text(encoding="utf-8"))["files"].items()
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        yield f"manifest.json is not of our form ({type(error).__name__}: {error}); rebuild it"
        return
    there = {path for path in files if path.endswith(".parquet")}
    yield from (f"manifest.json lists {path}, which is not there" for path in sorted(set(listed) - there))
    yield from (f"{path} is not in manifest.json; rebuild, or delete it" for path in sorted(there - set(listed)))
    for path in sorted(there & set(listed)):
        if hashlib.sha256(files[path].read_bytes()).hexdigest() != listed[path]:
            yield f"{path} is not the file of manifest.json; rebuild it"


def _model_problems(_: RepositoryFolder, head: Head, files: Mapping[str, Path]) -> Iterator[str]:
    if not isinstance(head.get("library_name"), str):
        yield "README.md: library_name is missing; for our models it is music_evals"
    for path in files:
        if Path(path).suffix in _TRAINING_STATE:
            yield f"{path} looks like training state or a pickle; a model folder holds safetensors only, move it away"
    folders = {path.rpartition("/")[0] for path in files if path.rpartition("/")[2] == "config.json"}
    if not folders:
        yield "config.json is missing, without which from_pretrained finds nothing"
    weights = {path.rpartition("/")[0] for path in files if path.endswith(".safetensors")}
    bare = sorted(folders - weights)
    if bare and not weights and head.get("status") not in _WITHOUT_WEIGHTS:
        yield (
            "there are no weights (model.safetensors); train it, or say `status: untrained` in the head of the card, "
            "or `status: external-weights` where others have them"
        )
    if weights and head.get("status") == "external-weights":
        yield "the card says `status: external-weights`, and there are some (model.safetensors), not ours to send"
    try:
        read_index(files["README.md"].read_text(encoding="utf-8"))
    except MusicEvalsError as error:
        yield f"README.md: {error}"


_CHECKS: dict[str, Callable[[RepositoryFolder, Head, Mapping[str, Path]], Iterator[str]]] = {
    "metrics": _metric_problems,
    "space": _space_problems,
    "dataset": _dataset_problems,
    "model": _model_problems,
}
