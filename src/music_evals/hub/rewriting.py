"""What changes in the files of a folder on their way to the Hub: requirements are pinned, addresses hold there too."""

from __future__ import annotations

import dataclasses
import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

from music_evals.benchmark.formats import markdown_rows
from music_evals.hub.heads import read_head, replace_block, split_card
from music_evals.hub.model_index import INDEX
from music_evals.hub.repository_folders import REPOSITORY_TYPES, RepositoryFolder, Source
from music_evals.metrics import catalogue

PACKAGE_LINE = re.compile(r"^music[-_]evals(?P<extras>\[[^\]]*\])?[ \t]*$", re.MULTILINE)
"""A line of requirements.txt that names the package, and nothing but it and its extras."""

# by CommonMark one that is never closed goes on to the end
_FENCE = re.compile(r"^(?P<fence>`{3,}+|~{3,}+).*?(?:^(?P=fence)[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
# [text](target "title"), ![text](target), [name]: target, src="target", href="target"
_LINK = re.compile(
    r"""(?P<before>(?P<image>!?)\[[^\]\[]*(?:\[[^\]\[]*\][^\]\[]*)*\]\(\s*|^[ ]{0,3}\[[^\]\n]+\]:[ \t]+"""
    r"""|\b(?:src|href)=["'])"""
    r"""(?P<target>[^)\s"'>]+)""",
    re.MULTILINE,
)
_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//|#|/")
_TITLE = re.compile(r"^# .+\n", re.MULTILINE)
_EXTRAS: dict[str, list[str]] = {"metrics": [], "models": ["models"]}
"""Kind of repository folders that Python code loads -> extras, where no requirements.txt names them."""
_LOADED = re.compile(rf"""(?P<quote>["'])\./(?P<kind>{"|".join(REPOSITORY_TYPES)})/(?P<name>[\w.-]+)/?(?P=quote)""")


_INSERT = re.compile(r"^<!-- insert: metrics (?P<block>[A-Z_]+)(?P<facets>(?: [a-z]+)*) -->$", re.MULTILINE)
"""Where the site makes a table of a block of the catalogue."""


@dataclasses.dataclass(frozen=True)
class Addresses:
    """Where the published repositories and the source will be."""

    org: str  # user or organisation of the published repositories
    endpoint: str  # address of the Hub
    source: Source  # the source repository


def pin_requirements(text: str, source: Source) -> str:
    """Return a requirements.txt that installs the package from one commit of its source."""
    return PACKAGE_LINE.sub(
        lambda line: f"music_evals{line['extras'] or ''} @ git+{source.url}@{source.revision}", text
    )


def rewrite_card(text: str, folder: RepositoryFolder, addresses: Addresses, *, path: str = "README.md") -> str:
    """Return a card whose addresses hold on the Hub; `path` is where it lies in the folder."""
    # Links to another repository folder lead to its repository, other relative links to the source; those within the
    # folder stay. ``"./metrics/x"`` in examples becomes ``"org/x"``, and so do names in the fields of the head that the
    # Hub reads as ids. What a reader loads in Python begins with how the package is installed.
    named = _rewrite_head(text, folder, addresses)
    card = split_card(named)
    base = (folder.path / path).parent
    parts, last = list[str](), 0  # fenced code stays, addresses between move
    for start, end in [*(fence.span() for fence in _FENCE.finditer(card.body)), (len(card.body), len(card.body))]:
        moved = _LINK.sub(lambda link: _moved(link, base, folder, addresses), card.body[last:start])
        parts += [moved, card.body[start:end]]
        last = end
    body = "".join(parts)

    def loaded(path: re.Match[str]) -> str:
        exists = (folder.root / path["kind"] / path["name"]).is_dir()
        return f"{path['quote']}{addresses.org}/{path['name']}{path['quote']}" if exists else path[0]

    body = _INSERT.sub(lambda insert: _score_table(insert, folder.root), _LOADED.sub(loaded, body))
    if path == "README.md" and folder.kind in _EXTRAS:
        body = _TITLE.sub(lambda title: f"{title[0]}\n{_install_line(folder, addresses)}\n", body, count=1)
    return str(card._replace(body=body))


def _score_table(insert: re.Match[str], root: Path) -> str:
    """Return a block of the catalogue, or its rows of some facets, as a table."""
    facets, rows = insert["facets"].split(), []
    for name, metric in getattr(catalogue, insert["block"]).items():
        if facets and metric.facet not in facets:
            continue
        card = root / "metrics" / name / "README.md"
        described = read_head(card.read_text(encoding="utf-8"))["description"] if card.is_file() else metric.description
        meaning = " ".join((described or metric.title).split())
        rows.append([f"`{name}`", f"{metric.low:g} to {metric.high:g}", metric.direction, meaning])
    return markdown_rows([["score", "range", "direction", "meaning"], ["---"] * 4, *rows])


def _install_line(folder: RepositoryFolder, addresses: Addresses) -> str:
    """Return how to install the package that loads the folder; no index has it."""
    requirements = folder.path / "requirements.txt"
    line = PACKAGE_LINE.search(requirements.read_text(encoding="utf-8")) if requirements.is_file() else None
    named = re.findall(r"\w+", (line and line["extras"]) or "") or _EXTRAS[folder.kind]
    extras = ",".join(name for name in named if name != "spaces")
    package = f"music_evals[{extras}]" if extras else "music_evals"
    return f'```bash\npip install "{package} @ git+{addresses.source.url}"\n```'


def _moved(link: re.Match[str], base: Path, folder: RepositoryFolder, addresses: Addresses) -> str:
    """Return a link with its address for readers of the card on the Hub."""
    path, hash_, fragment = link["target"].partition("#")
    place = Path(os.path.normpath(base / path))
    if _ABSOLUTE.match(link["target"]) or place.is_relative_to(folder.path):
        return link[0]
    parts, image = place.relative_to(folder.root).parts, bool(link["image"])
    if len(parts) > 1 and parts[0] in REPOSITORY_TYPES and (folder.root / parts[0] / parts[1]).is_dir():
        other = RepositoryFolder(folder.root / parts[0] / parts[1])
        url = other.repository(addresses.org).url(addresses.endpoint)
        inner = "/".join(parts[2:])
        kind = "resolve" if image else "tree" if place.is_dir() else "blob"
        address = url if inner in {"", "README.md"} else f"{url}/{kind}/main/{quote(inner)}"
    else:
        kind = "raw" if image else "tree" if place.is_dir() else "blob"
        address = f"{addresses.source.url}/{kind}/HEAD/{quote('/'.join(parts))}"
    return f"{link['before']}{address}{hash_}{fragment}"


def dead_links(text: str, folder: RepositoryFolder, *, path: str = "README.md") -> list[str]:
    """Return the relative links of a card that lead nowhere, or out of the repository."""
    base = (folder.path / path).parent
    body = split_card(text).body
    targets = [link["target"] for link in _LINK.finditer(_FENCE.sub("", body))]
    places = {
        target: Path(os.path.normpath(base / target.partition("#")[0]))
        for target in targets
        if not _ABSOLUTE.match(target)
    }
    return [target for target, place in places.items() if not (place.exists() and place.is_relative_to(folder.root))]


def _rewrite_head(text: str, folder: RepositoryFolder, addresses: Addresses) -> str:
    """Return a card whose head names data sets and models by their ids on the Hub."""

    def published(name: Any, kind: str = "datasets_scripts") -> Any:
        known = isinstance(name, str) and "/" not in name and (folder.root / kind / name).is_dir()
        return f"{addresses.org}/{name}" if known else name

    head = read_head(text)
    new = {}
    for key, kind in (("datasets", "datasets_scripts"), ("models", "models")):
        names = head.get(key)
        if isinstance(names, list):
            new[key] = [published(name, kind) for name in names]
    if INDEX in head:
        new[INDEX] = [
            model
            | {
                "results": [
                    result | {"dataset": result["dataset"] | {"type": published(result["dataset"]["type"])}}
                    for result in model["results"]
                ]
            }
            for model in head[INDEX]
        ]
    for key, value in new.items():
        if value != head[key]:
            text = replace_block(text, key, value)
    return text
