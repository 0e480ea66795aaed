"""Style and script of the report: one self-contained page, light or dark with the reader's system."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from music_evals.annotations import MUSIB_LAYOUT
from music_evals.benchmark.cells import format_value

__all__ = ["SCRIPT", "STYLE", "TEMPO_BPM", "facts_table", "page", "plain_table", "published_table"]

TEMPO_BPM = 96.0
"""What is played and what can be downloaded have this tempo."""

_STEP_SECONDS = 60 / TEMPO_BPM / (MUSIB_LAYOUT.steps_per_measure // 4)

STYLE = """
:root { color-scheme: light dark; --surface: #fcfcfb; --raised: #f3f2ef; --ink: #1b1a18; --muted: #6b6964;
  --line: #d9d7d1; --accent: #1f6fb4; --second: #b4541a; --good: #1d7a4b; --bad: #b3372f; }
@media (prefers-color-scheme: dark) { :root { --surface: #171614; --raised: #23211e; --ink: #edebe6; --muted: #a09c94;
  --line: #3b3833; --accent: #6fb3ea; --second: #e8945a; --good: #62c192; --bad: #ef8078; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 76rem; padding: 2.5rem 1.5rem 5rem; background: var(--surface); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .4rem; } h2 { font-size: 1.2rem; margin: 3rem 0 .6rem; }
h3 { font-size: 1rem; margin: 1.8rem 0 .4rem; } p, li { max-width: 46rem; } .muted { color: var(--muted); }
.lead { font-size: 1.08rem; } .scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .88rem; font-variant-numeric: tabular-nums; margin: .6rem 0 1rem; }
caption { text-align: left; color: var(--muted); padding-bottom: .4rem; }
th, td { padding: .42rem .75rem; border-bottom: 1px solid var(--line); text-align: right; vertical-align: top; }
th:first-child, td:first-child, table.plain td, table.plain th { text-align: left; }
thead th { border-bottom: 2px solid var(--line); font-weight: 600; }
tr.highlight th, tr.highlight td { background: var(--raised); } tr.outside { color: var(--muted); }
tbody th { font-weight: 600; white-space: nowrap; }
td small { display: block; color: var(--muted); white-space: nowrap; }
.good { color: var(--good); font-weight: 600; } .bad { color: var(--bad); font-weight: 600; }
code { font: .88em ui-monospace, "SF Mono", Menlo, monospace; overflow-wrap: anywhere; }
svg { display: block; max-width: 100%; height: auto; margin: .4rem 0 1.4rem; }
svg.plot { max-width: 60rem; } svg.plot text { font-family: inherit !important; }
.roll { width: 100%; background: var(--raised); border-radius: 4px; margin: .2rem 0 .5rem; }
.roll .span { fill: var(--accent); opacity: .1; } .roll .bar { stroke: var(--line); stroke-width: 1; }
.roll .note { fill: var(--muted); } .roll .filled { fill: var(--accent); }
.reference .roll .filled { fill: var(--ink); }
figure { margin: 0 0 .8rem; } figcaption { display: flex; flex-wrap: wrap; gap: .3rem 1rem; font-size: .88rem; }
a { color: var(--accent); }
button { font: inherit; font-size: .82rem; padding: .1rem .7rem; border: 1px solid var(--line); border-radius: 4px;
  background: var(--surface); color: var(--ink); cursor: pointer; } button:hover { border-color: var(--accent); }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
details { margin: .6rem 0; } summary { cursor: pointer; }
"""

SCRIPT = """
(() => {
  let audio = null, playing = null;
  const stop = () => {
    if (!playing) return;
    playing.sounds.forEach(sound => sound.stop());
    clearTimeout(playing.timer);
    playing.button.textContent = "Play";
    playing = null;
  };
  document.querySelectorAll("button[data-notes]").forEach(button => button.addEventListener("click", () => {
    const again = playing && playing.button === button;
    stop();
    if (again) return;
    audio = audio || new AudioContext();
    const step = STEP_SECONDS, start = audio.currentTime + 0.05;
    const notes = JSON.parse(button.dataset.notes);
    const sounds = notes.map(([onset, duration, pitch]) => {
      const sound = audio.createOscillator(), volume = audio.createGain();
      const from = start + onset * step, to = from + duration * step;
      sound.type = "triangle";
      sound.frequency.value = 440 * 2 ** ((pitch - 69) / 12);
      volume.gain.setValueAtTime(0, from);
      volume.gain.linearRampToValueAtTime(0.2, from + 0.01);
      volume.gain.exponentialRampToValueAtTime(0.02, to);
      sound.connect(volume).connect(audio.destination);
      sound.start(from);
      sound.stop(to);
      return sound;
    });
    const end = Math.max(0, ...notes.map(([onset, duration]) => onset + duration)) * step;
    playing = {button, sounds, timer: setTimeout(stop, 1000 * end + 200)};
    button.textContent = "Stop";
  }));
})();
""".replace("STEP_SECONDS", str(_STEP_SECONDS))


def page(title: str, sections: Iterable[str], *, style: str = STYLE, script: str = "") -> str:
    """Return a whole HTML page; sections that are empty are left out, and the title is escaped."""
    end = f"<script>{script}</script>\n" if script else ""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(section for section in sections if section)
        + f"\n</main>\n{end}</body>\n</html>\n"
    )


def plain_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of text whose cells are HTML already; without a head where there is none."""
    names = "".join(f"<th>{escape(name)}</th>" for name in head)
    top = f"<thead><tr>{names}</tr></thead>" if head else ""
    body = "\n".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="scroll"><table class="plain">{top}<tbody>\n{body}\n</tbody></table></div>'


def facts_table(facts: Mapping[str, object]) -> str:
    """Return names and values as a table of two columns, escaped."""
    return plain_table((), ([escape(name), escape(str(value))] for name, value in facts.items()))


def published_table(published: Mapping[str, Any], headings: Mapping[str, str], note: str) -> str:
    """Return a published table, metric -> heading for those columns that any row has, and why ours differ from it."""
    names = [name for name in headings if any(name in row for row in published["table"].values())]
    spread = published.get("spread", {})
    head = "".join(f'<th scope="col">{escape(headings[name])}</th>' for name in names)
    rows = "\n".join(
        f'<tr class="outside"><th scope="row">{escape(system)} (published)</th>'
        + "".join(_printed(row.get(name), spread.get(system, {}).get(name)) for name in names)
        + "</tr>"
        for system, row in published["table"].items()
    )
    reasons = "".join(
        f"<li><b>{escape(name)}</b>: {escape(reason)}</li>" for name, reason in published["differences"].items()
    )
    return (
        f'<h2>The published table</h2>\n<div class="scroll"><table><caption>{escape(published["source"])}</caption>'
        f'<thead><tr><th scope="col">system</th>{head}</tr></thead><tbody>\n{rows}\n</tbody></table></div>\n'
        f"<p>{escape(note)}</p>\n<ul>{reasons}</ul>"
    )


def _printed(value: float | None, spread: float | None) -> str:
    """Return a cell: what is printed, with its standard deviation where that is."""
    small = "" if spread is None else f"<small>sd {format_value(spread)}</small>"
    return f"<td>{format_value(value)}{small}</td>"
