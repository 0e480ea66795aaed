"""What people say of a song in CaiMD: two groups of annotators, and the dimensions that each was asked for.

Names, ids and row labels are those of MuChin (Wang et al., IJCAI 2024, table 2) and of its released data.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

GROUPS: Final = ("professional", "amateur")
"""Who describes: trained musicians, and music lovers."""

AUDIO_EFFECTS: Final = "audio_effects"
"""The one dimension that is asked by closed questions; its tags are derived from the answers."""


class Dimension(NamedTuple):
    """One side of a song that annotators describe by tags.

    Attributes
    ----------
    name
        In rows and results.
    english, chinese
        For pages; `chinese` is the wording of the released data.
    question_ids
        Beginnings, 8 hexadecimal digits, of the sub-question ids in the released data.
    table_row
        Label in table 2 of the paper; empty for the one dimension that it leaves out.
    """

    name: str
    english: str
    chinese: str
    question_ids: tuple[str, ...]
    table_row: str


def _table(*rows: Dimension) -> Mapping[str, Dimension]:
    return MappingProxyType({row.name: row for row in rows})


# in the order of the released code's tag groups
PROFESSIONAL: Final = _table(
    Dimension(
        "expressive_impact_singer_accompaniment",
        "Expressive impact (singer & accompaniment)",
        "表现力感受（歌手和伴奏）",
        ("32000c03",),
        "Exp. Impact (S & A)",
    ),
    Dimension(
        "emotional_impact_lyrics_melody",
        "Emotional impact (lyrics & melody)",
        "情绪感受（歌词和旋律）",
        ("a8c92855",),
        "Emo. Impact (L & M)",
    ),
    Dimension("lyric_themes", "Lyric style and themes", "歌词和主题内容", ("225d4142",), ""),
    Dimension("instrumentation", "Instrumentation & sound effects", "配器与音效", ("cbcfd26d",), "Instrum."),
    Dimension("musical_genres", "Style or genre", "风格或流派", ("3fe27716",), "Mus. Genres"),
    Dimension("tempo_rhythm", "Tempo & rhythm", "速度与节奏", ("5a18a186",), "Tempo & Rhythm"),
    Dimension("vocal_components", "Singing & voice", "歌唱和人声", ("49a1ad90",), "Vocal Components"),
    Dimension(AUDIO_EFFECTS, "Audio effects", "音质效果", ("1dad6bfc", "21e1034f", "49609a7b"), "Audio Eff."),
    Dimension("song_purpose", "Song purpose", "歌曲用途", ("a3fc80f7",), "Song Purp."),
    Dimension("culture_region", "Culture & region", "文化与地域", ("4b16df93",), "Cult. & Reg."),
    Dimension("target_audience", "Target audience", "适用人群", ("817b97f3",), "Tgt. Aud."),
)
"""Name -> dimension of the professional group."""

AMATEUR: Final = _table(
    Dimension("perception_of_uniqueness", "What feels special", "特色感受", ("95b5fb62",), "Perc. of Uniq."),
    Dimension("perception_of_tempo", "Fast or slow feeling", "快慢感受", ("c956cb74",), "Perc. of Tempo"),
    Dimension(
        "expressive_impact_singer", "Expressive impact (singer)", "表现力感受（歌手）", ("f219eec6",), "Exp. Impact (S)"
    ),
    Dimension(
        "emotional_impact_lyrics", "Emotional impact (lyrics)", "情绪感受（歌词）", ("f9570894",), "Emo. Impact (L)"
    ),
    Dimension("lyric_themes", "Lyric themes", "歌词和主题内容", ("35fd5742",), ""),
    Dimension("instrumentation", "Instrumentation & effects", "配器与音效", ("da352a77",), "Instrum."),
    Dimension("vocal_components", "Singing & voice", "歌唱和人声", ("b4024d9c",), "Vocal Components"),
    Dimension(AUDIO_EFFECTS, "Audio effects", "音质效果", ("93194c63", "04981ac6", "792366b2"), "Audio Eff."),
    Dimension("song_purpose", "Song purpose", "歌曲用途", ("ca35596b",), "Song Purp."),
    Dimension("culture_region", "Culture & region", "文化与地域", ("a478b338",), "Cult. & Reg."),
    Dimension("target_audience", "Target audience", "适用人群", ("2dc9fe9a",), "Tgt. Aud."),
)
"""Name -> dimension of the amateur group."""

DIMENSIONS: Final[Mapping[str, Mapping[str, Dimension]]] = MappingProxyType(
    {"professional": PROFESSIONAL, "amateur": AMATEUR}
)
"""Group -> name -> dimension."""

SCORED: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {group: tuple(name for name, row in table.items() if row.table_row) for group, table in DIMENSIONS.items()}
)
"""Group -> its ten dimensions of table 2: all but the themes of the lyrics."""


def theme_of_row(row: Mapping[str, Any]) -> str | None:
    """Return what a song of CaiMD is about, without spaces around it.

    The professional's text on the themes of the lyrics, else the amateur's, else None; a blank one counts as none, and
    groups and dimensions may be missing from the row.
    """
    dimensions = ((row.get(group) or {}).get("dimensions") or {} for group in GROUPS)
    texts = (((reported.get("lyric_themes") or {}).get("text") or "").strip() for reported in dimensions)
    return next(filter(None, texts), None)
