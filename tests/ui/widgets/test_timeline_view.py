"""Timelines that a player follows, and the list of what differs, on features made by hand."""

from __future__ import annotations

import re

import numpy as np

from music_evals.annotations import Beats, Chords, Features, Melody, Segments
from music_evals.benchmark.tasks.preservation.worker import outline
from music_evals.ui.widgets.timeline_view import clock, disagreements, timeline_html


def features(beats, chords, boundaries, pitches, duration_sec=8.0) -> Features:
    edges = np.array([0.0, *boundaries, duration_sec])
    return Features(
        duration_sec,
        beats=Beats(np.array(beats, dtype=float)),
        chords=Chords(np.array([[0.0, 4.0], [4.0, 8.0]]), chords),
        segments=Segments(np.column_stack([edges[:-1], edges[1:]]), tuple("ABCDE"[: len(edges) - 1])),
        melody=Melody(np.array([[i, i + 1.0] for i in range(len(pitches))]), np.array(pitches, dtype=float)),
    )


ORIGINAL = features([0.5, 1.5, 2.5], ("C:maj", "G:maj"), [4.0], [60, 62, 64])
EDIT = features([0.55, 1.5, 2.7], ("C:maj", "E:min"), [5.0], [60, 62, 63])


def test_each_place_that_differs_is_told():
    found = disagreements(outline(ORIGINAL), outline(EDIT))
    assert [(place.time_sec, place.kind, place.text) for place in found] == [
        (4.0, "chord", "G major became E minor"),
        (2.5, "beat", "beat in the original only"),
        (2.7, "beat", "beat in the edit only"),
        (4.0, "section", "section boundary in the original only"),
        (5.0, "section", "section boundary in the edit only"),
        (2.0, "note", "E4 in the original only"),
        (2.0, "note", "Eb4 in the edit only"),
    ]


def test_what_one_side_lacks_is_not_compared():
    assert disagreements(outline(ORIGINAL), {"duration_sec": 8.0}) == []


def test_every_place_of_the_list_seeks():
    shown = timeline_html(ORIGINAL, EDIT)
    assert re.findall(r'data-sec="([\d.]+)"', shown) == ["4.000", "2.500", "2.700", "4.000", "5.000", "2.000", "2.000"]
    assert "Melody: 2 places differ" in shown
    per_sec = float(re.search(r'data-per-sec="([\d.]+)"', shown)[1])
    chord = re.search(r'<rect class="differs" x="([\d.]+)"', shown)
    assert abs(float(chord[1]) / per_sec - 4.0) < 0.01  # a click on it goes to second 4


def test_a_legend_says_the_colours_and_each_side_has_a_melody_of_its_own():
    shown = timeline_html(ORIGINAL, EDIT)
    legend = re.findall(r'<i(?: class="(\w+)")?></i>([^<:]+)', shown)
    assert legend == [("", "original"), ("edit", "edit"), ("differs", "not so on the other side")]
    assert re.findall(r">(melody, \w+)</text>", shown) == ["melody, original", "melody, edit"]
    assert re.findall(r'<text class="inside"[^>]*>([^<]+)', shown)[:4] == ["C", "G", "C", "Em"]


def test_equal_sides_have_no_list_and_empty_ones_no_picture():
    assert "Nothing that is drawn differs." in timeline_html(ORIGINAL, ORIGINAL)
    nothing = timeline_html(Features(1.0), Features(1.0))
    assert "<svg" not in nothing


def test_long_lists_are_cut_and_say_so():
    many = features(np.arange(0.0, 8.0, 0.05) + 0.01, ("N", "N"), [], [60])
    none = features([100.0], ("N", "N"), [], [60])
    assert "and 101 more, in the picture" in timeline_html(many, none)


def test_labels_are_escaped():
    strange = Features(4.0, segments=Segments(np.array([[0.0, 4.0]]), ("<script>",)))
    assert "<script>" not in timeline_html(strange, strange)


def test_clock():
    assert [clock(time) for time in (0.0, 59.96, 83.46)] == ["0:00.0", "1:00.0", "1:23.5"]
