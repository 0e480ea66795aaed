"""Pages that lie elsewhere in the repository: cards, benchmarks, examples and the changelog.

Each keeps its path of the repository. Links are written as they hold in the repository, in these pages and in those of
docs/, and are turned into those of the site. In running text a path or name of such a page, as in
`benchmarks/jsb_chorales` or `note_f1`, becomes a link to it.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from mkdocs.utils import get_relative_url
from mkdocs.utils.meta import get_data

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = {
    "metrics.md": "metrics",
    "datasets.md": "datasets_scripts",
    "models.md": "models",
    "spaces.md": "spaces",
    "benchmarks.md": "benchmarks",
}
"""Page with the table of a folder's cards -> the folder."""
OTHERS = ("CHANGELOG.md", "examples/README.md")
PICTURES = {".svg", ".png"}
LINK = re.compile(r"(?<=\])\(([^)\s]+)\)")


def cards(folder: str) -> list[str]:
    """Return the pages of a folder by their paths from the root, such as ``metrics/note_f1/README.md``."""
    return sorted(str(path.relative_to(ROOT)) for path in (ROOT / folder).glob("**/README.md"))


def on_config(config: MkDocsConfig) -> None:
    """List the cards in the navigation behind the page with their table, and pages that it does not name."""

    def fill(entries: list[Any]) -> None:
        for entry in list(entries):
            (inner,) = entry.values() if isinstance(entry, dict) else (entry,)
            if isinstance(inner, list):
                fill(inner)
            elif inner in FOLDERS:
                folder = FOLDERS[inner]
                entries += [{str(Path(card).parent.relative_to(folder)): card} for card in cards(folder)]

    fill(config.nav or [])
    for entry in config.nav or []:
        ((_, inner),) = entry.items()
        named = [page for part in inner for page in part.values()] if isinstance(inner, list) else []
        for index in ("tasks/index.md", "contributing/index.md"):
            if index in named:
                pages = sorted((ROOT / "docs" / index).parent.glob("*.md"))
                paths = (path.relative_to(ROOT / "docs").as_posix() for path in pages)
                inner += [path for path in paths if path not in named]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages, without their YAML for the Hub, with the pictures beside them and the files that they link to."""
    for path in [*OTHERS, *(card for folder in FOLDERS.values() for card in cards(folder))]:
        text = _page(ROOT / path)
        files.append(File.generated(config, path, content=text))
        linked = LINK.findall(text)
        for beside in sorted((ROOT / path).parent.iterdir()) if path.endswith("/README.md") else ():
            if beside.suffix in PICTURES or (beside.name in linked and beside.is_file()):
                files.append(File.generated(config, str(beside.relative_to(ROOT)), abs_src_path=str(beside)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Turn links of the repository into those of the site, where docs/ is the root."""
    place = page.file.src_uri if page.file.generated_by else f"docs/{page.file.src_uri}"

    def turned(found: re.Match[str]) -> str:
        path, hash_, anchor = found[1].partition("#")
        if not path or ":" in path:
            return found[0]
        target = posixpath.normpath(posixpath.join(posixpath.dirname(place), path)) if path[0] != "/" else path[1:]
        on_site = posixpath.relpath(target.removeprefix("docs/"), posixpath.dirname(page.file.src_uri) or ".")
        return f"({on_site}{hash_}{anchor})"

    return LINK.sub(turned, markdown)


def _page(path: Path) -> str:
    text, head = get_data(path.read_text(encoding="utf-8"))
    text = re.sub(r"^<!-- (?!insert: ).* -->$", "", text, flags=re.MULTILINE)  # marks of the programs that fill tables
    description = " ".join(str(head.get("description", "")).split())
    return f"---\ndescription: {description!r}\n---\n\n{text}" if description else text


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Turn paths and names of cards into links, but for those of the page itself."""
    if page.file.src_uri.startswith("api/"):
        return html  # there a name is a name of Python

    def linked(found: re.Match[str]) -> str:
        for place in (found[1], *(f"{folder}/{found[1]}" for folder in FOLDERS.values())):
            target = files.get_file_from_path(f"{place}/README.md")
            if target is not None and target.src_uri != page.file.src_uri:
                return f'<a href="{get_relative_url(target.url, page.url)}">{found[0]}</a>'
        return found[0]

    return re.sub(r'(?<!">)<code>([a-z][\w/]+?)/?</code>', linked, html)
