"""Songs sorted by what annotators said of them: by genre, emotion, purpose, culture and audience.

MuChin's discrepancy study (Wang et al., IJCAI 2024, section 3.1) sorts songs by clusters of tags that were never
released. The groups and keywords here are a selection of our own, made from the most frequent tags of the released
songs; numbers by group are comparable with each other and not with the paper's.

A song belongs to a group where any of its tags holds any of the group's keywords, the test of the released code. Three
things differ. A song counts once for a group, however many of its tags match. A keyword right after 不, 没, 无, 非 or
不适合 does not count: 不开心 is not happy. Keywords in Latin letters match whole words: ``rap`` is not in
``therapy``. Songs may belong to several groups or to none. Tags are compared after `fold_tag`.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

__all__ = ["GROUPINGS", "Grouping", "TagGroup", "fold_tag"]

_NEGATIONS: Final = ("不", "没", "无", "非", "不适合")


def fold_tag(tag: str) -> str:
    """Return a tag as it is counted: NFKC, without outer spaces, case-folded. Scores take tags as they are written.

    Examples
    --------
    >>> fold_tag(" KTV ")
    'ktv'

    """
    return unicodedata.normalize("NFKC", tag).strip().casefold()


class TagGroup(NamedTuple):
    """Songs that share something, told by their tags.

    Attributes
    ----------
    name
        In rows and results.
    english, chinese
        For pages.
    keywords
        Folded (`fold_tag`), in Chinese or in Latin letters.

    """

    name: str
    english: str
    chinese: str
    keywords: tuple[str, ...]

    def matches(self, tags: Iterable[str]) -> bool:
        """Tell whether any of the tags holds any keyword."""
        pattern = _pattern(self.keywords)
        return any(pattern.search(fold_tag(tag)) for tag in tags)


class Grouping(NamedTuple):
    """A way to sort songs.

    Attributes
    ----------
    name
        In rows and results.
    english, chinese
        For pages.
    dimensions
        Group of annotators -> the dimension whose tags are looked at; amateurs are not asked for genres.
    groups
        In the order of tables and pictures.

    """

    name: str
    english: str
    chinese: str
    dimensions: Mapping[str, str]
    groups: tuple[TagGroup, ...]

    def assign(self, tags: Iterable[str]) -> tuple[str, ...]:
        """Return the names of the groups that a song with these tags belongs to, each once."""
        listed = list(tags)
        return tuple(group.name for group in self.groups if group.matches(listed))


@functools.cache
def _pattern(keywords: tuple[str, ...]) -> re.Pattern[str]:
    chinese = [re.escape(word) for word in keywords if not word.isascii()]
    latin = [re.escape(word) for word in keywords if word.isascii()]
    affirmed = "".join(f"(?<!{negation})" for negation in _NEGATIONS)
    parts = [f"{affirmed}(?:{'|'.join(chinese)})"] if chinese else []
    parts += [f"(?<![a-z0-9])(?:{'|'.join(latin)})(?![a-z0-9])"] if latin else []
    return re.compile("|".join(parts))


def _group(name: str, english: str, chinese: str, keywords: str) -> TagGroup:
    return TagGroup(name, english, chinese, tuple(word.strip() for word in keywords.split(",")))


_GENRE = Grouping(
    "genre",
    "Genre",
    "风格流派",
    MappingProxyType({"professional": "musical_genres"}),
    (
        _group("pop", "Pop", "流行", "流行, 通俗, pop, cpop, c-pop"),
        _group("ballad", "Ballad", "抒情", "抒情, 情歌, ballad"),
        _group("internet", "Internet song", "网络歌曲", "网络, 网红, 土嗨, internet"),
        _group("chinese_style", "Chinese style", "古风国风", "古风, 国风, 民乐, 戏曲, 民族, chinese style"),
        _group("rock", "Rock", "摇滚", "摇滚, 金属, 朋克, rock, metal, punk"),
        _group("folk", "Folk and country", "民谣乡村", "民谣, 乡村, 乡土, 山歌, folk, country"),
        _group(
            "electronic",
            "Electronic and dance",
            "电子舞曲",
            "电子, 电音, 舞曲, 迪斯科, dj, edm, disco, future bass, electronic, dance",
        ),
        _group("hip_hop", "Hip hop", "说唱嘻哈", "说唱, 嘻哈, hip hop, hip-hop, hiphop, rap, trap"),
        _group("rnb", "R&B and soul", "节奏布鲁斯", "节奏布鲁斯, 灵魂, r&b, rnb, soul"),
        _group("jazz", "Jazz and blues", "爵士蓝调", "爵士, 蓝调, jazz, blues"),
    ),
)

_EMOTION = Grouping(
    "emotion",
    "Emotion",
    "情绪",
    MappingProxyType({"professional": "emotional_impact_lyrics_melody", "amateur": "emotional_impact_lyrics"}),
    (
        _group(
            "happy",
            "Happy",
            "快乐",
            "快乐, 欢快, 愉悦, 愉快, 开心, 欢乐, 欢欣, 喜悦, 喜气, 幸福, 甜蜜, 兴奋, 心花怒放, 高兴, happy, joyful",
        ),
        _group(
            "calm",
            "Calm",
            "平静",
            "平静, 宁静, 安静, 平和, 放松, 轻松, 舒缓, 舒适, 淡然, 释然, 坦然, 治愈, calm, relaxed, peaceful",
        ),
        _group("tender", "Tender", "温柔", "温柔, 温情, 温馨, 温暖, 柔情, 浪漫, 深情, tender, romantic"),
        _group(
            "hopeful",
            "Hopeful",
            "希望",
            "希望, 憧憬, 向往, 乐观, 积极, 励志, 坚定, 坚强, 勇敢, 热血, 无畏, hopeful, optimistic",
        ),
        _group("longing", "Longing", "思念", "思念, 想念, 怀念, 怀旧, 回忆, 眷恋, 不舍, 渴望, longing, nostalgic"),
        _group(
            "sad",
            "Sad",
            "悲伤",
            "悲伤, 悲痛, 伤感, 感伤, 忧伤, 伤心, 哀伤, 难过, 痛苦, 痛彻, 痛心, 心碎, 忧郁, 忧愁, 失落, "
            "郁郁寡欢, 催人泪下, sad",
        ),
        _group("lonely", "Lonely", "孤独", "孤独, 孤单, 寂寞, lonely"),
        _group("torn", "Torn", "挣扎", "挣扎, 纠结, 矛盾, 迷茫, 迷惘, 无奈, 无助, 遗憾, 不甘, torn, helpless"),
        _group("angry", "Angry", "愤怒", "愤怒, 愤慨, 气愤, 生气, 怒吼, 暴躁, 怨恨, 愤恨, angry"),
    ),
)

_PURPOSE = Grouping(
    "purpose",
    "Purpose",
    "用途",
    MappingProxyType({"professional": "song_purpose", "amateur": "song_purpose"}),
    (
        _group("karaoke", "Karaoke", "唱歌", "唱k, k歌, 卡拉, ktv, karaoke"),
        _group("rest", "Rest and sleep", "休息睡眠", "助眠, 睡, 午休, 失眠, 发呆, 放松, 独处, sleep, relax"),
        _group(
            "outdoors",
            "Walking and travel",
            "散步出行",
            "散步, 开车, 车载, 兜风, 骑车, 骑行, 旅行, 旅游, 踏青, 郊游, 风景, walk, drive, travel",
        ),
        _group("sport", "Sport", "运动", "运动, 跑步, 夜跑, 晨跑, 健身, 锻炼, 篮球, sport, running"),
        _group("study", "Study and work", "学习工作", "学习, 作业, 工作, 思考, 看书, 阅读, study, work"),
        _group("stage", "Stage", "演出", "演唱会, 音乐会, 表演, 演出, 舞台, 现场, 晚会, 商演, 比赛, concert, stage"),
        _group(
            "party",
            "Bars and dancing",
            "酒吧跳舞",
            "酒吧, 清吧, 蹦迪, 跳舞, 舞厅, 广场舞, 派对, 聚会, party, dancing",
        ),
        _group(
            "love",
            "Love and weddings",
            "表白婚礼",
            "表白, 告白, 求婚, 婚礼, 情人节, 恋爱, 约会, wedding, confession",
        ),
        _group("heartbreak", "Heartbreak", "失恋", "失恋, 分手, 买醉, 借酒, 郁闷, 伤心, 挽回, emo, heartbreak"),
        _group("festivity", "Festivity", "节庆", "庆典, 节日, 生日, 喜事, 年会, 毕业, 校庆, birthday, festival"),
        _group("media", "Films and videos", "影视配乐", "配乐, 背景乐, 影视, 电影, 视频, 主题曲, 古装剧, film, video"),
    ),
)

_CULTURE = Grouping(
    "culture",
    "Culture and region",
    "文化地域",
    MappingProxyType({"professional": "culture_region", "amateur": "culture_region"}),
    (
        _group("unmarked", "None named", "无特点", "无, 没, none"),
        _group("chinese", "Chinese", "中国", "中国, 华语, 中文, 国语, 大陆, chinese, mandarin"),
        _group(
            "traditional",
            "Traditional",
            "传统",
            "传统, 古风, 国风, 中国风, 古代, 民族, 民乐, 戏曲, 戏剧, 二胡, traditional",
        ),
        _group("hong_kong_taiwan", "Hong Kong and Taiwan", "港台", "港台, 香港, 台湾, 粤语, 闽南, cantonese"),
        _group("abroad", "Abroad", "国外", "国外, 欧美, 西方, 美国, 英国, 日本, 韩国, 拉丁, 阿拉斯加, western"),
    ),
)

_AUDIENCE = Grouping(
    "audience",
    "Audience",
    "适用人群",
    MappingProxyType({"professional": "target_audience", "amateur": "target_audience"}),
    (
        _group("children", "Children", "儿童", "儿童, 小孩, 孩子, 宝宝, children"),
        _group("teenagers", "Teenagers", "少年", "少年, 少女, 青春期, 中学生, 00后, 05后, teenagers"),
        _group("young_adults", "Young adults", "青年", "青年, 年轻, 大学生, 90后, young adults"),
        _group("middle_aged", "Middle-aged", "中年", "中年, 中青年, 80后, 70后, middle-aged"),
        _group("elderly", "Elderly", "老年", "老年, 老人, 60后, 50后, elderly"),
        _group("lovers", "Lovers", "情侣", "情侣, 夫妻, 爱人, 热恋, 早恋, 恋爱, lovers"),
        _group("heartbroken", "Heartbroken", "失恋的人", "失恋, 单身, 分手, 失望, 难过, heartbroken"),
    ),
)

GROUPINGS: Final[Mapping[str, Grouping]] = MappingProxyType(
    {grouping.name: grouping for grouping in (_GENRE, _EMOTION, _PURPOSE, _CULTURE, _AUDIENCE)}
)
"""Name -> grouping."""
