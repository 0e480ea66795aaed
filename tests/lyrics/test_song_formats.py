from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from music_evals.annotations import LyricSection, sections_text
from music_evals.errors import InvalidLyricsError, UnknownNameError
from music_evals.lyrics.normalise import FORMAT_FOUND, normalise_lyrics
from music_evals.lyrics.song_formats import FORMATS, check_format, find_format, read_as, write_lyrics

SONG = [
    LyricSection("intro", ()),
    LyricSection("verse1", ("春眠不觉晓", "处处闻啼鸟")),
    LyricSection("interlude", ()),
    LyricSection("chorus1", ("夜来风雨声", "花落知多少")),
]


def kept_text(song: list[LyricSection], name: str) -> str:
    """Return what a format keeps of a song: SongGeneration knows no numbers of sections."""
    text = sections_text(song)
    return re.sub(r"[0-9]+\)", ")", text) if name == "songgeneration" else text


@pytest.mark.parametrize("name", FORMATS)
def test_what_is_written_is_found_and_read_back(name: str) -> None:
    text = write_lyrics(SONG, name)
    assert find_format(text) == name
    read = normalise_lyrics(text)
    if name == "diffrhythm":
        assert read.text == "春眠不觉晓\n处处闻啼鸟\n夜来风雨声\n花落知多少"  # it has no sections
    else:
        assert read.text == kept_text(SONG, name)
    assert (f"{FORMAT_FOUND}{name}" in read.changes) == (name != "plain")
    assert normalise_lyrics(text, song_format=name).text == read.text


sections = st.lists(
    st.builds(
        LyricSection,
        st.sampled_from(["intro", "verse", "verse1", "pre-chorus", "chorus2", "bridge", "interlude", "ending"]),
        st.lists(st.sampled_from(["春眠不觉晓", "花落知多少", "夜来 风雨声"]), max_size=3).map(tuple),
    ),
    min_size=1,
    max_size=6,
).filter(lambda song: any(section.lines for section in song))


@given(sections, st.sampled_from([name for name in FORMATS if name != "diffrhythm"]))
def test_any_song_survives_every_format_with_sections(song: list[LyricSection], name: str) -> None:
    assert normalise_lyrics(write_lyrics(song, name), song_format=name).text == kept_text(song, name)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("", "plain"),
        ("床前明月光", "plain"),
        ("(verse)\n床前明月光", "plain"),
        ("[a song]\n床前明月光", "plain"),
        ("[verse]\n床前明月光", "yue"),
        ("[verse]\n床前明月光\n[instrumental]", "ace-step"),
        ("[Verse]\n床前明月光", "suno"),
        ("[verse - whispered]\n床前明月光", "suno"),
        ("[intro-short] ; [verse] 床前明月光", "songgeneration"),
        ("[ti:静夜思]\n[00:01.00]床前明月光", "lrc"),
        ("[00:01.00][verse]\n[00:02.00]床前明月光", "lrc"),
        ("[00:01.00]床前明月光\n\n", "diffrhythm"),
        ('```json\n{"lyrics": "(verse)\\n床前明月光"}\n```', "json"),
    ],
)
def test_formats_are_named(text: str, name: str) -> None:
    assert find_format(text) == name


def test_a_format_that_the_text_is_not_in_is_refused() -> None:
    with pytest.raises(InvalidLyricsError, match="'lrc'"):
        normalise_lyrics("[verse]\n床前明月光", song_format="lrc")
    with pytest.raises(InvalidLyricsError, match="'suno'"):
        read_as("(verse)\n床前明月光", "suno")
    assert read_as("[verse]\n床前明月光", "suno") == "[verse]\n床前明月光"  # capitals are a habit, not a rule
    stamped = "[00:01.00]床前明月光"
    assert read_as(stamped, "plain") == stamped
    for call in (check_format, lambda name: write_lyrics(SONG, name), lambda name: read_as("", name)):
        with pytest.raises(UnknownNameError):
            call("sunno")
