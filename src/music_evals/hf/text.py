"""Modules that score texts: lyrics against the pattern of a song, and tags against tags."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from music_evals.annotations import LyricSection, sections_of_rows, sections_text
from music_evals.errors import InvalidPatternError, MusicEvalsError, UnsupportedTypeError, located
from music_evals.hf.module import GROUPS, INTERVALS, PairModule
from music_evals.metrics.lyric_structure import VARIANTS
from music_evals.pipelines.tags import TagItem, check_item
from music_evals.symbolic.encodings.items import describe

CODEBASE = "https://github.com/CarlWangChina/MuChin"
CITATION = """\
@inproceedings{wang2024muchin,
  title     = {{MuChin}: A {C}hinese Colloquial Description Benchmark for Evaluating Language Models in the Field of
               Music},
  author    = {Wang, Zihao and Li, Shuyu and Zhang, Tao and Wang, Qi and Yu, Pengfei and Luo, Jinyang and Liu, Yan and
               Xi, Ming and Zhang, Kejun},
  booktitle = {Proceedings of the Thirty-Third International Joint Conference on Artificial Intelligence},
  pages     = {7771--7779},
  year      = {2024}
}
"""
PATTERNS_OFFERED = (
    "the pattern of a song as a text, '(verse)\\nccccR\\nccc ccR'; or its sections, LyricSection values or rows of "
    "label and rhyme as in the column `structure` of CaiMD"
)
LYRICS_INPUTS = f"""
Args:
    predictions: lyrics, one text a song: headers such as (verse), then one phrase a line.
    references: in the same order, {PATTERNS_OFFERED}.
{GROUPS}\
    variant, also the config name: "official" (default, the authors' code), "corrected" or "paper" (their text).
    rhyme: how rhymes are found: "official", "line", "char", or a function; default: "official".
    normalise: True brings generated texts into the form of the released songs first. Default False.
    strict: True (default) raises where the authors' code cannot score a text; False scores it as far as it goes.
    autojunk, accumulate_song, section_match: see the card.
{INTERVALS}, for each of the nine scores.
"""
TAGS_OFFERED = (
    "tags in a list, tuple or array of strings; a dict, dimension -> tags; or a dict, group of annotators -> dimension "
    "-> tags"
)
TAGS_INPUTS = f"""
Args:
    predictions: {TAGS_OFFERED}.
    references: in the same order and form.
{GROUPS}\
    encoder: "BAAI/bge-large-zh-v1.5" (default), another sentence-transformers model, "char-ngrams", or a function.
    aggregation: "mean" (default) over all pairs, "best_match" or "f1".
    normalize_by_self: True divides the mean by what the lists score against themselves. Default False.
    empty: a list without tags is "nan" (default), "zero" or an error ("raise").
    annotators: whose dimensions they are, "professional" or "amateur", where both groups have them.
    dimensions: a dict, group -> dimensions to score; default: those of the ten that any song names.
{INTERVALS}; with dimensions, also of each dimension and average.
"""


DIVERSITY_CITATION = """\
@inproceedings{li2016diversity,
  title     = {A Diversity-Promoting Objective Function for Neural Conversation Models},
  author    = {Li, Jiwei and Galley, Michel and Brockett, Chris and Gao, Jianfeng and Dolan, Bill},
  booktitle = {Proceedings of the 2016 Conference of the North American Chapter of the Association for Computational
               Linguistics: Human Language Technologies},
  pages     = {110--119},
  year      = {2016},
  doi       = {10.18653/v1/N16-1014}
}
"""
THEMES_CITATION = """\
@inproceedings{reimers2019sentence,
  title     = {Sentence-{BERT}: Sentence Embeddings using {S}iamese {BERT}-Networks},
  author    = {Reimers, Nils and Gurevych, Iryna},
  booktitle = {Proceedings of the 2019 Conference on Empirical Methods in Natural Language Processing},
  pages     = {3982--3992},
  year      = {2019},
  doi       = {10.18653/v1/D19-1410}
}
"""
WORDS_INPUTS = f"""
Args:
    predictions: lyrics, one text a song: headers such as (verse), then one phrase a line.
    references: as many lyrics of people, as texts, or as sections: LyricSection values or rows of label and lines.
{GROUPS}\
    n: of the diversity, tokens of an n-gram, default 2.
{INTERVALS}, and of the references.
"""
THEMES_INPUTS = f"""
Args:
    predictions: lyrics, one text a song.
    references: in the same order, the theme or the prompt that each was written for.
{GROUPS}\
    encoder: "BAAI/bge-large-zh-v1.5" (default), another sentence-transformers model, "char-ngrams", or a function.
{INTERVALS}, and the similarity to the themes of other songs.
"""


class LyricsMetric(PairModule):
    """Base of the modules that score lyrics by the pattern of a song.

    Predictions are texts, references patterns. Their types are checked when they are added, what they say when they are
    scored: whether a text can be scored depends on the options.
    """

    kind, variants = "lyrics", VARIANTS
    paper, authors_code, arguments = CITATION, CODEBASE, LYRICS_INPUTS

    def _encode(self, name: str, index: int, item: Any) -> str:
        """Return one text as JSON."""
        if name == "predictions":
            if not isinstance(item, str):
                raise UnsupportedTypeError(f"predictions[{index}]: expected lyrics as one text, got {describe(item)}")
            return json.dumps(str(item))
        try:
            return json.dumps(_pattern(item))
        except MusicEvalsError as error:
            raise located(error, f"references[{index}]") from error


class TagsMetric(PairModule):
    """Base of the modules that compare tags: lists of them, alone, by dimension, or by group and dimension."""

    kind = "tags"
    paper, authors_code, arguments = CITATION, CODEBASE, TAGS_INPUTS

    def _encode(self, name: str, index: int, item: Any) -> str:
        """Return the tags of one song as JSON."""
        place = f"{name}[{index}]"
        if not isinstance(item, list | tuple | np.ndarray | Mapping):
            advice = "; cut the text at its commas" if isinstance(item, str) else ""
            raise UnsupportedTypeError(f"{place}: expected {TAGS_OFFERED}; got {describe(item)}{advice}")
        return json.dumps(check_item(item, place))


class TextsMetric(PairModule):
    """Base of the modules that compare texts with texts: lyrics with lyrics, or with what they were written for."""

    authors_code = ""

    def _encode(self, name: str, index: int, item: Any) -> str:
        """Return one text as JSON; references may be the sections of a song."""
        if name == "references" and not isinstance(item, str) and self.kind == "words":
            return json.dumps(_words(item, f"references[{index}]"))
        if not isinstance(item, str):
            raise UnsupportedTypeError(f"{name}[{index}]: expected one text, got {describe(item)}")
        return json.dumps(str(item))


class WordsMetric(TextsMetric):
    """Base of the modules that compare the words of lyrics with those that people wrote."""

    kind = "words"
    paper, arguments = DIVERSITY_CITATION, WORDS_INPUTS


class ThemesMetric(TextsMetric):
    """Base of the modules that compare lyrics with a theme."""

    kind = "themes"
    paper, arguments = THEMES_CITATION, THEMES_INPUTS


def read_lyrics(texts: Sequence[str]) -> list[str]:
    """Return the lyrics, or the patterns, behind the strings that a `LyricsMetric` keeps."""
    return [json.loads(text) for text in texts]


def read_tags(texts: Sequence[str]) -> list[TagItem]:
    """Return the tags behind the strings that a `TagsMetric` keeps: lists, or dicts of lists."""
    return [json.loads(text) for text in texts]


def _pattern(item: Any) -> str:
    if isinstance(item, str):
        return str(item)
    if not isinstance(item, list | tuple) or not item:
        raise UnsupportedTypeError(f"expected {PATTERNS_OFFERED}; got {describe(item)}")
    if all(isinstance(section, LyricSection) for section in item):
        return sections_text(item)
    for number, row in enumerate(item):
        if not isinstance(row, Mapping):
            raise UnsupportedTypeError(f"expected {PATTERNS_OFFERED}; got {describe(row)} for section {number}")
        lines = row.get("rhyme")
        if not isinstance(row.get("label"), str) or not isinstance(lines, list | tuple | np.ndarray):
            raise UnsupportedTypeError(
                f"section {number}: a row has a label and its rhyme, a list of lines; got {', '.join(map(str, row))}"
            )
        for line in lines:
            if not isinstance(line, str):
                raise InvalidPatternError(
                    f"section {number}: a line of a pattern must be a text such as 'ccccR', got {describe(line)}"
                )
    return sections_text(sections_of_rows(item, "rhyme"))


def _words(item: Any, place: str) -> str:
    """Return the sections of a song as a text of lyrics."""
    if isinstance(item, list | tuple) and item and all(isinstance(section, LyricSection) for section in item):
        return sections_text(item)
    is_rows = isinstance(item, list | tuple) and item and all(isinstance(row, Mapping) for row in item)
    if not is_rows or not all(isinstance(row.get("label"), str) and "lines" in row for row in item):
        raise UnsupportedTypeError(
            f"{place}: expected lyrics as one text, or sections, LyricSection values or rows of label and lines; got "
            f"{describe(item)}"
        )
    return sections_text(sections_of_rows(item, "lines"))
