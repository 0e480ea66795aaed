"""How results are written: numbers as text, pictures as SVG, and pages by templates.

Pictures are made by matplotlib (extra ``report``), stand in a page and take its colours. Templates are jinja2's:
everything is escaped, and a name that a template misses is an error.
"""

from __future__ import annotations

import functools
import html
import io
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any, NamedTuple

from music_evals.errors import importing
from music_evals.metrics.catalogue import CATALOGUE
from music_evals.stats.intervals import (
    SIMULATED_COVERAGE,
    UNEQUAL_COVERAGE,
    UNEQUAL_SHARE,
    rare_differences,
    simulated_coverage,
)

if TYPE_CHECKING:
    from jinja2 import Environment
    from matplotlib.figure import Figure

SIGNIFICANCE = 0.05
"""Corrected p-values below it are marked."""

OUTSIDE_INTERVAL = "†"
"""Mark of a score that lies outside of its own interval."""

WHY_OUTSIDE_INTERVAL = (
    "The score lies outside of its interval, which says where the true value is: with few items noise makes a "
    "divergence larger than it truly is, and the interval corrects for that."
)

LAST_BITS = 1e-12

ARROWS = {"higher": "↑", "lower": "↓", "zero": "→0", "none": "≈"}
"""Direction -> its arrow where the page is Unicode."""


def plain(value: Any) -> Any:
    """Replace what JSON cannot hold: NaN by None, the infinities by "inf" and "-inf"."""
    if isinstance(value, Mapping):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(float(value))
    return value


def format_value(value: float | str | None) -> str:
    """Return a score with three decimals; ``n/a`` for an undefined one."""
    if value is None or value != value:  # noqa: PLR0124 (NaN is not itself)
        return "n/a"
    return value if isinstance(value, str) else f"{round(value, 3) + 0.0:.3f}"  # never -0.000


def format_interval(cell: Mapping[str, Any]) -> str:
    """Return ``low..high``, empty if missing; with `OUTSIDE_INTERVAL` if the score is not in it."""
    if cell["low"] is None or cell["high"] is None:
        return ""
    sign = OUTSIDE_INTERVAL if is_outside_interval(cell) else ""
    return f"{format_value(cell['low'])}..{format_value(cell['high'])}{sign}"


def format_difference(test: Mapping[str, Any]) -> str:
    """Return the difference of two systems with its interval, as ``+0.157 (0.080..0.250)``."""
    if test["difference"] is None:
        return "n/a"
    interval = format_interval({**test, "value": test["difference"]})
    return f"{test['difference']:+.3f} ({interval})" if interval else f"{test['difference']:+.3f}"


def is_outside_interval(cell: Mapping[str, Any]) -> bool:
    """Tell whether a score lies outside of its own interval."""
    value, low, high = (cell[key] for key in ("value", "low", "high"))
    if not all(isinstance(number, int | float) for number in (value, low, high)):
        return False
    return bool(value < low - LAST_BITS or value > high + LAST_BITS)


def coverage_note(
    cluster_counts: Iterable[tuple[float, int]], groups: str, *, divergences: bool, compared: Iterable[str] = ()
) -> str:
    """Return what was simulated for intervals from groups that are few, or very unequal, and for differences.

    `cluster_counts` holds the effective number of groups and their number, for each interval; `compared` the scores
    of which differences are shown. Empty where nothing needs to be said.
    """
    numbers, notes = list(cluster_counts), []
    if few := sorted(effective for effective, _ in numbers if simulated_coverage(effective)):
        first, last = (SIMULATED_COVERAGE.index(row) for row in map(simulated_coverage, (few[0], few[-1])) if row)
        spanned = SIMULATED_COVERAGE[first : last + 1]
        means, of_sets = (
            f"{100 * min(low for low, _ in shares):.0f} to {100 * max(high for _, high in shares):.0f} %"
            for shares in ([row.means for row in spanned], [row.divergences for row in spanned])
        )
        least, most = f"{few[0]:.1f}", f"{few[-1]:.1f}"
        notes.append(
            f"effective number of {groups} {least if least == most else f'{least} to {most}'}: in simulations with so "
            f"few, nominal 95 % intervals held the truth {means} of the time for means and their differences"
            + (f", {of_sets} for divergences and theirs" if divergences else "")
        )
    if unequal := [(effective, n) for effective, n in numbers if 0 < effective < UNEQUAL_SHARE * n]:
        effective, n = min(unequal, key=lambda pair: pair[0] / pair[1])
        notes.append(
            f"the {groups} are of very unequal size, {n} weigh as much as {effective:.1f} of one size: where a larger "
            f"one may exist that is not among them, intervals of means held the truth {100 * UNEQUAL_COVERAGE:.0f} % "
            "of the time at worst, however many they were"
        )
    fails_rarely = any(CATALOGUE[name].unseen for name in compared if name in CATALOGUE)
    if fails_rarely and (counts := [effective for effective, _ in numbers if effective >= 1]):
        notes.append(
            f"intervals of differences do not reckon with {groups} that are not among them: where one side alone "
            f"fails wholly on 2 in a hundred or more, they held the truth {100 * rare_differences(min(counts)):.0f} "
            "% of the time at worst"
        )
    return "; ".join(notes)


def counted(n: int, plural: str) -> str:
    """Return a number and what it counts: ``1 text``, ``2 texts``."""
    return f"{n} {plural.removesuffix('s') if n == 1 else plural}"


def align(lines: Sequence[Sequence[str]], *, n_left: int = 1, gap: str = "  ") -> str:
    """Lay rows of cells out in columns, the first ones to the left and the others to the right."""
    widths = [max(len(row[column]) for row in lines) for column in range(len(lines[0]))]
    return "\n".join(
        gap.join(
            cell.ljust(width) if column < n_left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in lines
    )


def markdown_name(name: str) -> str:
    """Return a name as code in a cell: nothing in it may end the cell, the line or the code."""
    return "`" + " ".join(name.split()).replace("|", r"\|").replace("`", "'") + "`"


def markdown_rows(lines: Iterable[Sequence[str]]) -> str:
    """Return rows of cells as the rows of a Markdown table, the head and its rule among them."""
    return "\n".join("| " + " | ".join(row) + " |" for row in lines)


# Stand-ins for the page's colours: matplotlib wants numbers, the page has variables.
COLOURS = {
    "ink": "#010101", "muted": "#020202", "line": "#030303",
    "accent": "#040404", "second": "#050505", "surface": "#060606",
}  # fmt: skip
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


_HOUSE = "music_evals.benchmark"


class Section(NamedTuple):
    """A part of a report under a heading of its own, which is open at first where the page has room for it."""

    title: str
    height_px: int
    """About, on a wide screen."""
    html: str


@functools.cache
def _environment(package: str) -> Environment:
    """Templates of one package, those in its folder ``templates``, and the ones that all benchmarks share."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=ChoiceLoader([PackageLoader(name) for name in dict.fromkeys((package, _HOUSE))]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def render(package: str, template: str, **values: Any) -> str:
    """Fill in a template of a package, e.g. ``render("music_evals.ui", "bars.html", rows=rows)``.

    What is HTML already is handed over as `markupsafe.Markup`; all else is escaped.
    """
    return _environment(package).get_template(template).render(**values)


@functools.cache
def static(name: str) -> str:
    """Return a file of style or script that reports hold, e.g. ``player.js``."""
    return resources.files(_HOUSE).joinpath("static", name).read_text(encoding="utf-8")
