"""Two recordings that play at the same time at equal loudness; one is heard, and a key changes which.

The player is a `gr.HTML` with a script of its own over Web Audio: both sources start at one moment of one clock, so a
switch is a change of volume and nothing else. Keys: space plays and stops, X switches, L turns the loop on and off.
Elements inside it that carry ``data-sec``, and the timelines of `timeline_view`, move it.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.audio.io import encode_flac
from music_evals.audio.loudness import integrated_loudness, level_gains
from music_evals.benchmark.tasks.preservation.players import clock, levels_text
from music_evals.ui.assets import html, script, style
from music_evals.ui.widgets.timeline_view import TIMELINE_STYLE

if TYPE_CHECKING:
    import gradio as gr


class Track(NamedTuple):
    """What is played of one side."""

    title: str
    samples: npt.NDArray[np.float32]  # mono, shape (n,), at the level of the source; what lies beyond -1..1 is clipped
    sample_rate: int
    source: str = "its file"  # what its level is given against

    @property
    def seconds(self) -> float:
        """Length in seconds."""
        return len(self.samples) / self.sample_rate


def add_player(empty: str, **options: Any) -> gr.HTML:
    """Add a player to the page, which says what to do as long as it is empty; a callback returns `player` for it."""
    import gradio as gr

    settings: dict[str, Any] = {
        "html_template": "${value.html}",
        "css_template": style("ab_player") + TIMELINE_STYLE,
        "js_on_load": script("ab_player", start="abPlayer"),
        "apply_default_css": False,
        "elem_id": "player",
    }
    return gr.HTML(empty_player(empty), **settings | options)


def empty_player(text: str) -> dict[str, Any]:
    """Return the value of a player without music, which says how it gets some."""
    return {"html": f'<p class="ab-note">{escape(text)}</p>', "tracks": [], "seconds": 0.0}


def player(first: Track, second: Track, picture: str = "") -> dict[str, Any]:
    """Return the value of a player with two tracks."""
    from gradio import processing_utils, utils
    from gradio.data_classes import FileData
    from markupsafe import Markup

    loudness = [integrated_loudness(track.samples, track.sample_rate) for track in (first, second)]
    gains = level_gains(loudness[0], loudness[1])
    seconds = max(first.seconds, second.seconds)
    tracks: list[dict[str, Any]] = []
    for track, name, gain in zip((first, second), ("original.flac", "edit.flac"), gains, strict=True):
        # in Gradio's own folder, which Gradio serves, and removes with the others
        path = processing_utils.save_bytes_to_cache(encode(track), name, utils.get_upload_folder())
        file = FileData(path=path, orig_name=name, mime_type="audio/flac").model_dump()
        tracks.append({"file": file, "gain": gain})
    shown = html(
        "ab_player.html",
        titles=(first.title, second.title),
        seconds=seconds,
        end=clock(seconds),
        levels=levels_text(*loudness, sources=(first.source, second.source)),
        picture=Markup(picture),  # noqa: S704  (escaped where it is drawn)
    )
    return {"html": shown, "tracks": tracks, "seconds": round(seconds, 3)}


def encode(track: Track) -> bytes:
    """Return a track as FLAC with 16 bits, which every browser decodes."""
    return encode_flac(track.samples, track.sample_rate)
