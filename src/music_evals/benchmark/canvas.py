"""Pictures made by matplotlib (extra ``report``) as SVG text that can stand in a page and takes its colours."""

from __future__ import annotations

import html
import io
import re
from typing import TYPE_CHECKING, Any

from music_evals.errors import importing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["COLOURS", "STYLE", "check_backend", "figure_of", "literal", "svg"]

# Stand-ins for the page's colours: matplotlib wants numbers, the page has variables.
COLOURS = {
    "ink": "#010101",
    "muted": "#020202",
    "line": "#030303",
    "accent": "#040404",
    "second": "#050505",
    "surface": "#060606",
}
STYLE = {
    "svg.fonttype": "none",  # text stays text: selectable, and in the page's own font
    "font.size": 10,
    "axes.edgecolor": COLOURS["line"],
    "axes.labelcolor": COLOURS["muted"],
    "axes.titlecolor": COLOURS["ink"],
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": COLOURS["muted"],
    "ytick.color": COLOURS["ink"],
    "grid.color": COLOURS["line"],
    "text.color": COLOURS["ink"],
}


def check_backend() -> None:
    """Raise where matplotlib is not installed, before a long run and not after it."""
    with importing("report", "a picture"):
        import matplotlib as mpl
    mpl.use("Agg")


def literal(name: str) -> str:
    """Keep matplotlib from reading a dollar sign as the start of a formula."""
    return name.replace("$", r"\$")


def figure_of(width: float, height: float, columns: int = 1, **options: Any) -> tuple[Figure, Any]:
    """Return a figure of some inches and its axes, an array where there are several; `options` go to its subplots."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        made = Figure(figsize=(width, height), layout="constrained")
        return made, made.subplots(1, columns, **options)


def svg(figure: Figure, name: str, description: str) -> str:
    """Return the figure as an element that can stand in a page beside others."""
    import matplotlib as mpl

    buffer = io.StringIO()
    with mpl.rc_context({**STYLE, "svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    # within HTML the names of the namespaces are known; ids are shared by all pictures of a page
    text = re.sub(r' xmlns(:xlink)?="[^"]*"', "", text)
    text = re.sub(r'(\bid="|url\(#|href="#)', lambda match: f"{match[1]}{name}-", text)
    text = re.sub(r"font: [^;\"]*;", "font-size: 10px;", text)
    for variable, colour in COLOURS.items():
        text = text.replace(colour, f"var(--{variable})")
    head = f'<svg class="plot" role="img" aria-label="{html.escape(description, quote=True)}" viewBox='
    # a function, since the names in a description may hold what a template reads as a reference
    return re.sub(r'<svg [^<>]*?viewBox=("[^"<>]+")[^<>]*>', lambda match: f"{head}{match[1]}>", text, count=1)
