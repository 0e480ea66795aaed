"""Pages and tables of text as HTML: self-contained, light or dark with the reader's system."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from music_evals.benchmark.templates import render, static

__all__ = ["facts_table", "page", "plain_table"]


def page(title: str, sections: Iterable[str], *, style: str = "", script: str = "") -> str:
    """Return a whole HTML page; sections are HTML, the title is escaped, `style` stands after that of all pages."""
    files = {"style": static("report.css") + style, "script": script}
    return render("music_evals.benchmark", "page.html", title=title, sections=list(sections), **files)


def plain_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of text whose cells are HTML already; without a head where there is none."""
    names = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    top = f"<thead><tr>{names}</tr></thead>" if head else ""
    body = "\n".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="scroll"><table class="plain">{top}<tbody>\n{body}\n</tbody></table></div>'


def facts_table(facts: Mapping[str, object]) -> str:
    """Return names and values as a table of two columns, escaped."""
    return plain_table((), ([escape(name), escape(str(value))] for name, value in facts.items()))
