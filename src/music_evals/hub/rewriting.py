"""What changes in the files of a window on their way to the Hub: requirements are pinned, addresses hold there too."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from music_evals.hub.heads import read_head, replace_block, split_card
from music_evals.hub.model_index import INDEX
from music_evals.hub.source import Source
from music_evals.hub.windows import HOUSES, Window

__all__ = ["PACKAGE_LINE", "Addresses", "dead_links", "pin_requirements", "rewrite_card"]

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
"""Folder of windows that are loaded by Python code -> extras, where no requirements.txt names them."""
_LOADED = re.compile(rf"""(?P<quote>["'])\./(?P<house>{"|".join(HOUSES)})/(?P<name>[\w.-]+)/?(?P=quote)""")


@dataclasses.dataclass(frozen=True)
class Addresses:
    """Where windows and source will be found."""

    org: str  # user or organisation of the published windows
    endpoint: str  # address of the Hub
    source: Source  # the source repository


def pin_requirements(text: str, source: Source) -> str:
    """Return a requirements.txt that installs the package from one commit of its source."""
    return PACKAGE_LINE.sub(lambda line: f"music_evals{line['extras'] or ''} @ {_pin(source)}", text)


def _pin(source: Source) -> str:
    return f"git+{source.url}@{source.revision}"


def rewrite_card(text: str, window: Window, addresses: Addresses, *, path: str = "README.md") -> str:
    """Return a card whose addresses hold on the Hub; `path` is where it lies in the window."""
    # Links to another window lead to its repository, other relative links to the source; links within the window stay.
    # ``"./metrics/x"`` in examples becomes ``"org/x"``, and so do names of windows in the fields of the head that the
    # Hub reads as ids. What a reader loads in Python begins with how the package is installed.
    named = _rewrite_head(text, window, addresses)
    card = split_card(named)
    base = (window.folder / path).parent
    body = _outside_fences(card.body, lambda part: _LINK.sub(lambda link: _moved(link, base, window, addresses), part))

    def loaded(found: re.Match[str]) -> str:
        there = (window.root / found["house"] / found["name"]).is_dir()
        return f"{found['quote']}{addresses.org}/{found['name']}{found['quote']}" if there else found[0]

    body = _LOADED.sub(loaded, body)
    if path == "README.md" and window.house in _EXTRAS:
        body = _TITLE.sub(lambda title: f"{title[0]}\n{_install_line(window, addresses)}\n", body, count=1)
    return str(card._replace(body=body))


def _install_line(window: Window, addresses: Addresses) -> str:
    """Return how the package is installed that a window is loaded with; no index has it."""
    requirements = window.folder / "requirements.txt"
    line = PACKAGE_LINE.search(requirements.read_text(encoding="utf-8")) if requirements.is_file() else None
    named = re.findall(r"\w+", (line and line["extras"]) or "") or _EXTRAS[window.house]
    extras = ",".join(name for name in named if name != "spaces")
    package = f"music_evals[{extras}]" if extras else "music_evals"
    return f'```bash\npip install "{package} @ git+{addresses.source.url}"\n```'


def _outside_fences(text: str, change: Callable[[str], str]) -> str:
    parts, last = [], 0
    for fence in _FENCE.finditer(text):
        parts += [change(text[last : fence.start()]), fence[0]]
        last = fence.end()
    return "".join([*parts, change(text[last:])])


def _moved(link: re.Match[str], base: Path, window: Window, addresses: Addresses) -> str:
    path, hash_, fragment = link["target"].partition("#")
    place = Path(os.path.normpath(base / path))
    if _ABSOLUTE.match(link["target"]) or place.is_relative_to(window.folder):
        return link[0]
    return f"{link['before']}{_address(place, window, addresses, image=bool(link['image']))}{hash_}{fragment}"


def _address(place: Path, window: Window, addresses: Addresses, *, image: bool) -> str:
    """Return where something outside of the window is found by somebody who reads the card on the Hub."""
    parts = place.relative_to(window.root).parts
    if len(parts) > 1 and parts[0] in HOUSES and (window.root / parts[0] / parts[1]).is_dir():
        other = Window(window.root / parts[0] / parts[1])
        url = other.repository(addresses.org).url(addresses.endpoint)
        inner = "/".join(parts[2:])
        kind = "resolve" if image else "tree" if place.is_dir() else "blob"
        return url if inner in {"", "README.md"} else f"{url}/{kind}/main/{quote(inner)}"
    kind = "raw" if image else "tree" if place.is_dir() else "blob"
    return f"{addresses.source.url}/{kind}/HEAD/{quote('/'.join(parts))}"


def dead_links(text: str, window: Window, *, path: str = "README.md") -> list[str]:
    """Return the relative links of a card that lead nowhere, or out of the repository."""
    base = (window.folder / path).parent
    body = split_card(text).body
    targets = [link["target"] for link in _LINK.finditer(_FENCE.sub("", body))]
    places = {
        target: Path(os.path.normpath(base / target.partition("#")[0]))
        for target in targets
        if not _ABSOLUTE.match(target)
    }
    return [target for target, place in places.items() if not (place.exists() and place.is_relative_to(window.root))]


def _rewrite_head(text: str, window: Window, addresses: Addresses) -> str:
    head = read_head(text)
    for key, house in (("datasets", "datasets_scripts"), ("models", "models")):
        names = head.get(key)
        if isinstance(names, list):
            text = _replaced(text, key, names, [_published(name, house, window, addresses) for name in names])
    if INDEX in head:
        index = head[INDEX]
        text = _replaced(text, INDEX, index, _rewrite_index(index, window, addresses))
    return text


def _replaced(text: str, key: str, old: Any, new: Any) -> str:
    return text if old == new else replace_block(text, key, new)


def _published(name: Any, house: str, window: Window, addresses: Addresses) -> Any:
    known = isinstance(name, str) and "/" not in name and (window.root / house / name).is_dir()
    return f"{addresses.org}/{name}" if known else name


def _rewrite_index(index: Any, window: Window, addresses: Addresses) -> Any:
    """Name the datasets of results by their ids on the Hub."""

    def published(result: Any) -> Any:
        dataset = result["dataset"]
        kind = _published(dataset["type"], "datasets_scripts", window, addresses)
        return result | {"dataset": dataset | {"type": kind}}

    return [model | {"results": [published(result) for result in model["results"]]} for model in index]
