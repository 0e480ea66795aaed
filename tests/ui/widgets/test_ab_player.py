"""The player's value, its levels, and its script as far as it can be judged without a browser."""

from __future__ import annotations

import io

import numpy as np
import pytest

from music_evals.audio.loudness import integrated_loudness
from music_evals.ui.widgets.ab_player import Track, empty_player, encode, levels_text, player

soundfile = pytest.importorskip("soundfile")
RATE = 22050


def track(title: str, level: float, seconds: float = 2.0) -> Track:
    times = np.arange(int(seconds * RATE)) / RATE
    return Track(title, (level * np.sin(2 * np.pi * 440 * times)).astype(np.float32), RATE)


def test_a_track_is_encoded_without_loss_of_place():
    found, rate = soundfile.read(io.BytesIO(encode(track("a", 0.5))))
    assert (rate, len(found)) == (RATE, 2 * RATE)
    assert np.abs(found - track("a", 0.5).samples).max() < 2**-15


def test_levels_in_words():
    assert levels_text(-14.0, -14.05) == "Equal loudness: both play as they are."
    assert levels_text(-20.0, -14.0).startswith("Equal loudness: the edit plays 6.0 dB softer than its file")
    rendered = levels_text(-20.0, -14.0, sources=("its file", "its rendering"))
    assert rendered.endswith("softer than its rendering, to match the original.")
    assert levels_text(float("nan"), -14.0).startswith("Loudness could not be matched")


@pytest.mark.gradio
def test_both_are_heard_equally_loud_and_names_are_escaped():
    first, second = track("<i>Original</i>", 0.8), track("Edit", 0.1, 3.0)
    value = player(first, second, "<svg></svg>")
    gains = [part["gain"] for part in value["tracks"]]
    heard = [integrated_loudness(gain * side.samples, RATE) for gain, side in zip(gains, (first, second), strict=True)]
    assert heard[0] == pytest.approx(heard[1], abs=0.1)
    assert max(gains) == 1.0
    assert value["seconds"] == 3.0
    assert "<i>" not in value["html"]
    assert value["html"].rstrip().endswith("<svg></svg>")
    assert all(part["file"]["path"].endswith(".flac") for part in value["tracks"])


def test_an_empty_player_says_what_to_do():
    assert empty_player("Press <it>.") == {
        "html": '<p class="ab-note">Press &lt;it&gt;.</p>',
        "tracks": [],
        "seconds": 0.0,
    }
