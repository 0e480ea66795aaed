"""Words of the pages on songs, in English and in Chinese."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from music_evals.ui.words import Words

__all__ = ["DESCRIPTION_WORDS", "LYRICS_WORDS", "said_in"]

Pairs = Mapping[str, tuple[str, str]]

_SHARED: Final[Pairs] = {
    "example": ("Example", "示例"),
    "use_example": ("Take this example", "使用该示例"),
    "cancel": ("Cancel", "取消"),
    "code": ("Copy as code", "复制为代码"),
    "receipt": ("Receipt", "评测凭据"),
    "json": ("Results as JSON", "下载 JSON 结果"),
    "csv": ("Results as CSV", "下载 CSV 结果"),
    "values": ("Results as values", "结果数值"),
    "undefined": ("undefined", "无定义"),
    "yes": ("yes", "是"),
    "no": ("no", "否"),
}

_LYRICS: Final[Pairs] = {
    **_SHARED,
    "title": ("Lyric structure", "歌词结构评测"),
    "intro": (
        (
            "How well do lyrics keep the structure that was asked for? Paste Chinese lyrics and a "
            "pattern. The score is that "
            "of MuChin: 0 to 110 points, higher is better."
        ),
        (
            "歌词在多大程度上遵守了要求的结构？粘贴中文歌词和结构模式即可评测。评分方法来自 MuChin：0 到 "
            "110 分，越高越好。"
        ),
    ),
    "lyrics": ("Lyrics: headers such as (verse), one phrase a line", "歌词：段落标题如 (verse)，每行一句"),
    "pattern": (
        "Pattern: c is a character, R the last one of a rhyming line, a space a pause",
        "结构模式：c 为一个字，R 为押韵行的末字，空格为停顿",
    ),
    "variant": ("Variant", "评分版本"),
    "variant_official": ("official: the authors' code", "official：作者代码"),
    "variant_paper": ("paper: the text of appendix G", "paper：论文附录 G"),
    "rhyme": ("How rhymes are found", "押韵判定方法"),
    "rhyme_official": ("official: the last word, cut by jieba", "official：按 jieba 切出的末词读音"),
    "rhyme_line": ("line: as the whole line is read", "line：按整行读音"),
    "rhyme_char": ("char: usual reading of the last character", "char：按末字的常用读音"),
    "normalise": (
        "Read the lyrics as language models write them (remarks, Markdown, brackets)",
        "先规范化大语言模型写出的歌词（说明文字、Markdown、括号等）",
    ),
    "derive": ("Pattern of these lyrics", "由歌词生成模式"),
    "add_section": ("Add this section", "添加段落"),
    "section_tools": ("Build the pattern", "编辑结构模式"),
    "kind": ("Section", "段落类型"),
    "n_lines": ("Lines", "行数"),
    "n_characters": ("Characters a line", "每行字数"),
    "rhymes": ("Rhyming lines", "押韵行"),
    "rhymes_none": ("none", "不押韵"),
    "rhymes_even": ("every second line", "偶数行"),
    "rhymes_all": ("all lines", "每行"),
    "intro_kind": ("intro", "前奏 intro"),
    "verse": ("verse", "主歌 verse"),
    "pre-chorus": ("pre-chorus", "导歌 pre-chorus"),
    "chorus": ("chorus", "副歌 chorus"),
    "interlude": ("interlude", "间奏 interlude"),
    "bridge": ("bridge", "桥段 bridge"),
    "ending": ("ending", "尾声 ending"),
    "score_button": ("Score", "评分"),
    "stage_read": ("Reading the lyrics", "读取歌词"),
    "stage_score": ("Finding rhymes and scoring", "判定押韵并评分"),
    "stage_write": ("Writing results", "写出结果"),
    "tab_score": ("Score by level", "各层得分"),
    "tab_lines": ("Lines and rhymes", "逐行与押韵"),
    "tab_lost": ("Where points were lost", "失分之处"),
    "tab_changes": ("What the normaliser changed", "规范化改动"),
    "total": ("Total", "总分"),
    "points": ("{points} of {most}", "{points} / {most}"),
    "ratio": ("ratio of this level {ratio}", "本层比率 {ratio}"),
    "direction": (
        (
            "0 is worst, the right end of each frame is the most that can be had. Later levels are "
            "multiplied by the ratios "
            "of earlier ones."
        ),
        "0 分最低，每个框的右端为满分。后面各层的得分要乘以前面各层的比率。",
    ),
    "level_song": ("Song", "整曲"),
    "level_section": ("Section", "段落"),
    "level_phrase": ("Phrase", "句数"),
    "level_word": ("Word", "字数"),
    "level_rhyme": ("Rhyming fitting accuracy", "押韵契合度"),
    "level_reward": ("Proportion reasonableness", "押韵比例合理性"),
    "why_song": ("this share of the whole pattern is matched in order", "整个模式中按顺序相符的比例"),
    "why_section": ("sections expected: {expected}; found: {found}", "要求的段落：{expected}；实际：{found}"),
    "why_phrase": (
        "{compared} lines compared, {matched} in the matched sections of both sides",
        "比较了 {compared} 行，两侧相符段落共 {matched} 行",
    ),
    "why_word_official": ("product of the ratios of all compared lines", "所有被比较的行的比率之积"),
    "why_word_paper": ("share of the characters that match", "字数相符的比例"),
    "why_rhyme": (
        "{expected} rhyming lines expected among the compared ones, {found} found",
        "被比较的行中要求 {expected} 行押韵，实际 {found} 行押韵",
    ),
    "why_reward": (
        "{share} of the compared lines rhyme; 0.6 to 0.8 earns all",
        "被比较的行中有 {share} 押韵；0.6 到 0.8 得满分",
    ),
    "mark_kept": ("rhyme expected and found", "应押韵，已押韵"),
    "mark_missed": ("rhyme expected, missed", "应押韵，未押韵"),
    "mark_extra": ("rhyme found, not expected", "不要求押韵，却押韵"),
    "mark_none": ("no rhyme expected, none found", "不要求押韵，未押韵"),
    "legend": ("Rhyme marks", "押韵标记"),
    "not_there": ("(line missing)", "（缺少此行）"),
    "expected_line": ("expected {pattern}", "要求 {pattern}"),
    "found_line": ("found {pattern}", "实际 {pattern}"),
    "characters": ("{found} of {expected} characters", "{found} 字，要求 {expected} 字"),
    "rhyme_class": ("rhyme class {name} ({finals})", "韵部：{name}（{finals}）"),
    "status_matched": ("matched", "相符"),
    "status_missing": ("missing", "缺失"),
    "status_extra": ("not expected", "多余"),
    "section_missing": ("section {place} ({label}) is missing", "缺少第 {place} 段 ({label})"),
    "section_extra": (
        "section ({label}), number {place} of the lyrics, is not expected",
        "歌词第 {place} 段 ({label}) 不在要求之中",
    ),
    "section_lines": (
        "section {place} ({label}): {expected} lines expected, {found} found",
        "第 {place} 段 ({label})：要求 {expected} 行，实际 {found} 行",
    ),
    "line_number": ("line {number}", "第 {number} 行"),
    "line_lost": ("{line}: {faults}", "{line}：{faults}"),
    "fault_missing": ("missing, {expected} characters expected", "缺失，要求 {expected} 字"),
    "fault_extra": ("not expected", "多余的行"),
    "fault_count": (
        "{expected} characters expected, {found} found, ratio {ratio}",
        "要求 {expected} 字，实际 {found} 字，比率 {ratio}",
    ),
    "fault_foreign": (
        "{expected} characters expected, {found} and {foreign} foreign ones found, ratio {ratio}",
        "要求 {expected} 字，实际 {found} 字，另有 {foreign} 个非汉字符号，比率 {ratio}",
    ),
    "fault_rhyme_missed": ("a rhyme is expected", "此处应押韵"),
    "fault_rhyme_extra": ("rhymes where no rhyme is expected", "此处不要求押韵，却押韵"),
    "level_lost": ("{level}: {lost} of {most} points lost", "{level}：失 {lost} 分（满分 {most}）"),
    "nothing_lost": ("No section and no line lost anything.", "没有段落或行失分。"),
    "notes": ("Notes", "说明"),
    "no_chinese": (
        (
            "These lyrics have no Chinese character. Letters c and R count as characters, so that the pattern itself "
            "scores like true lyrics: these points say nothing."
        ),
        (
            "这份歌词中没有任何汉字。字母 c 和 R 会被当作字来计分，"
            "直接交回结构模式也能得到与真实歌词相当的分数，此得分没有意义。"
        ),
    ),
    "changes_off": (
        "The normaliser was off: the lyrics were scored as they stand.",
        "未启用规范化：歌词按原文评分。",
    ),
    "changes_none": ("Nothing had to be changed.", "无需改动。"),
    "changes_became": ("{before} became {after}", "{before} 改为 {after}"),
    "changes_removed": ("{before} removed", "删除 {before}"),
    "changes_blank": ("{n} lines without words removed", "删除 {n} 个空行"),
    "changes_more": (" and {n} more", " 及另外 {n} 处"),
    "normalised_text": ("The lyrics as they were scored", "实际评分的歌词"),
    "step_line breaks": ("line breaks", "换行符"),
    "step_invisible characters": ("invisible characters", "不可见字符"),
    "step_reasoning": ("reasoning", "思考过程"),
    "step_code fences": ("code fences", "代码块标记"),
    "step_list marks": ("list marks", "列表符号"),
    "step_emphasis": ("emphasis", "强调标记"),
    "step_widths": ("widths", "全角半角"),
    "step_simplified characters": ("simplified characters", "繁体转简体"),
    "step_headers": ("headers", "段落标题"),
    "step_remarks": ("remarks", "说明文字"),
    "step_pauses": ("pauses", "停顿"),
    "step_repeat marks": ("repeat marks", "重复记号"),
    "step_blank lines": ("blank lines", "空行"),
    "pattern_good": (
        "Pattern in order. Sections: {sections}, lines: {lines}, characters: {characters}, rhyming lines: {rhymes}.",
        "模式正确：{sections} 段，{lines} 行，{characters} 字，{rhymes} 行押韵。",
    ),
    "pattern_error": ("Line {line}, column {column}: {what}", "第 {line} 行第 {column} 列：{what}"),
    "pattern_remark": (
        "It can be scored as it is, but is not in the grammar of the released data.",
        "可以评分，但不符合发布数据的语法。",
    ),
    "pattern_too_long": (
        "The pattern is too long: {n} characters, at most {most}.",
        "模式过长：{n} 字符，上限 {most}。",
    ),
    "derived_foreign": (
        "Left out of the pattern: {n} symbols that are no Chinese characters.",
        "已从模式中略去 {n} 个非汉字符号。",
    ),
    "derived": ("Pattern of the lyrics, rhymes marked.", "已由歌词生成模式并标出押韵。"),
    "added": ("Section ({label}) added at the end.", "已在末尾添加段落 ({label})。"),
}

_DESCRIPTION: Final[Pairs] = {
    **_SHARED,
    "title": ("Music description", "音乐描述评测"),
    "intro": (
        (
            "How people describe a song by tags, and how near one description is to another. "
            "Professionals and amateurs, "
            "with the dimensions and the score of MuChin: cosines of text embeddings, -1 to 1, higher is better."
        ),
        (
            "人们如何用标签描述一首歌，两份描述有多接近？分专业与业余两组，维度与评分来自 MuChin："
            "文本向量的余弦，-1 到 1，越高越好。"
        ),
    ),
    "tab_song": ("Tags of a song", "歌曲标签"),
    "tab_compare": ("Compare two descriptions", "比较两份描述"),
    "tab_probe": ("Tags of a recording", "录音打标签"),
    "song": ("Demo song (our own, not of CaiMD)", "示例歌曲（自编，非 CaiMD 歌曲）"),
    "show": ("Show its tags", "显示标签"),
    "professional": ("professional", "专业"),
    "amateur": ("amateur", "业余"),
    "dimension": ("Dimension", "维度"),
    "both": ("cosine of both", "两组的余弦"),
    "one_group": ("asked of one group only", "只问了其中一组"),
    "theme": ("Theme", "主题"),
    "encoder": ("Text encoder", "文本编码器"),
    "encoder_spelling": (
        (
            "BGE ({name}), the encoder of MuChin, is not on this machine. What is offered here, "
            "char-ngrams, compares how tags "
            "are spelt and knows no meaning: its figures cannot be compared with those of the paper. To get BGE: "
            "hf download {name}"
        ),
        (
            "本机没有 MuChin 所用的编码器 BGE（{name}）。此处提供的 char-ngrams 只比较标签的字面写法，不懂词义，"
            "其数值不能与论文相比。获取 BGE：hf download {name}"
        ),
    ),
    "encoder_ready": (
        "BGE ({name}), the encoder of MuChin, is on this machine. char-ngrams compares spelling only.",
        "本机已有 MuChin 所用的编码器 BGE（{name}）。char-ngrams 只比较字面写法。",
    ),
    "group": ("Dimensions of", "维度所属"),
    "aggregation": ("From cosines to a score", "由余弦到得分"),
    "aggregation_mean": ("mean of all pairs (official)", "全部配对的均值（官方）"),
    "aggregation_best_match": ("best matches, both directions", "双向最佳匹配的均值"),
    "aggregation_f1": ("best matches, harmonic mean (F1)", "最佳匹配的调和平均（F1）"),
    "set_a": ("A: description to judge", "A：待评描述"),
    "set_b": ("B: reference description", "B：参考描述"),
    "sets_help": (
        (
            "One dimension a line, as `instrumentation: 钢琴、弦乐`; names in English, in Chinese or as "
            "in the data. A text "
            "without any name is one list of tags. At most {tags} tags a side, {length} characters a tag."
        ),
        (
            "每行一个维度，如 `配器与音效：钢琴、弦乐`；维度名可用英文、中文或数据中的名称。"
            "不写维度名则视为一个标签列表。"
            "每侧最多 {tags} 个标签，每个最多 {length} 字符。"
        ),
    ),
    "example_groups": ("professional against amateur: {title}", "专业对业余：{title}"),
    "example_songs": ("another song's tags: {title}", "另一首歌的标签：{title}"),
    "example_list": ("two short lists", "两个短列表"),
    "compare": ("Compare", "比较"),
    "stage_read": ("Reading the tags", "读取标签"),
    "stage_encode": ("Encoding and comparing", "编码并比较"),
    "stage_write": ("Writing results", "写出结果"),
    "average": (
        "Average of the scored dimensions that the reference has tags for",
        "参考一侧有标签的计分维度的平均值",
    ),
    "average_missing": (
        "No average: the reference has tags for these dimensions, and the description to judge has none: {names}",
        "平均值无定义：以下维度参考一侧有标签，待评一侧没有：{names}",
    ),
    "average_none": (
        "No average: the reference has no tags in any of the ten dimensions of table 2.",
        "平均值无定义：参考一侧在论文表 2 的十个维度中都没有标签。",
    ),
    "score": ("Score", "得分"),
    "precision": ("Best matches, A to B", "最佳匹配 A→B"),
    "recall": ("Best matches, B to A", "最佳匹配 B→A"),
    "counts": ("Tags A / B", "标签数 A / B"),
    "unscored": ("not part of the average, as in table 2", "不计入平均值，与论文表 2 一致"),
    "list": ("all tags", "全部标签"),
    "range": (
        (
            "-1 to 1, higher is better. Under the mean of all pairs a list of several tags is below 1 "
            "even against itself."
        ),
        "-1 到 1，越高越好。按全部配对取均值时，多个标签的列表与自身相比也低于 1。",
    ),
    "reason_generated": ("no tags to judge", "待评一侧没有标签"),
    "reason_reference": ("no reference tags", "参考一侧没有标签"),
    "reason_both": ("no tags on either side", "两侧都没有标签"),
    "matrix_of": ("Matrix of cosines for", "余弦矩阵的维度"),
    "matrix": ("{dimension}: rows are A, columns are B", "{dimension}：行为 A，列为 B"),
    "matrix_empty": ("There is nothing to compare in this dimension.", "该维度没有可比较的内容。"),
    "best": ("Best matches", "最佳匹配"),
    "best_of": ("{tag}: {match} ({cosine})", "{tag}：{match}（{cosine}）"),
    "best_a": ("A to B", "A→B"),
    "best_b": ("B to A", "B→A"),
    "matrix_legend": (
        "▸ best match of the row, ▾ best match of the column",
        "▸ 该行的最佳匹配，▾ 该列的最佳匹配",
    ),
    "no_result": ("Compare two descriptions first.", "请先比较两份描述。"),
    "recording": (
        "Recording: at most {minutes} minutes, {megabytes} MiB ({types})",
        "录音：最长 {minutes} 分钟，{megabytes} MiB（{types}）",
    ),
    "tag": ("Describe it", "生成标签"),
    "stage_decode": ("Decoding the recording", "解码录音"),
    "stage_tag": ("Listening", "聆听"),
    "probe_missing": (
        (
            "No tagger with weights is set on this machine, so recordings cannot be described here. Set "
            "the environment "
            "variable {variable} to a folder or a Hub id of one. To train one on your own copy of CaiMD: "
            "`music-evals train models/music_tagger/train.yaml` (see the card of models/music_tagger)."
        ),
        (
            "本机没有配置带权重的标签模型，无法为录音生成标签。请将环境变量 {variable} 设为模型文件夹或 Hub 名称。"
            "用你自己的 CaiMD 训练一个：`music-evals train models/music_tagger/train.yaml`（参见 "
            "models/music_tagger 的说明）。"
        ),
    ),
    "probe_ready": ("Tagger: {name}", "标签模型：{name}"),
    "error_line": ("line {line}: {what}", "第 {line} 行：{what}"),
    "error_dimension": (
        "{name} is no dimension of the {group} group; they are: {known}",
        "“{name}”不是{group}组的维度；可用的维度：{known}",
    ),
    "error_mixed": (
        "a line without the name of a dimension; name all lines or none",
        "此行没有维度名；请每行都写维度名，或都不写",
    ),
    "error_twice": (
        "{name} stands here a second time; put its tags into one line",
        "维度“{name}”重复出现；请写在同一行",
    ),
    "error_tags": ("{n} tags, at most {most}", "{n} 个标签，上限 {most}"),
    "error_tag": ("a tag of {n} characters, at most {most}: {tag}", "标签有 {n} 个字符，上限 {most}：{tag}"),
    "error_text": ("{n} characters in a description, at most {most}", "描述共 {n} 字符，上限 {most}"),
    "error_kinds": (
        "one side names dimensions and the other does not; write both in the same way",
        "一侧写了维度名，另一侧没有；请用同样的写法",
    ),
    "error_empty": ("no tags on either side; write some, or take an example", "两侧都没有标签；请填写，或使用示例"),
    "probe_nothing": ("No tag is above the threshold.", "没有标签高于阈值。"),
}


def _words(pairs: Pairs) -> Words:
    return Words({language: {key: pair[at] for key, pair in pairs.items()} for at, language in enumerate(("en", "zh"))})


LYRICS_WORDS: Final = _words(_LYRICS)
"""Of the page that scores the structure of lyrics."""

DESCRIPTION_WORDS: Final = _words(_DESCRIPTION)
"""Of the page that compares tags."""

# what the library says of a pattern or of typed texts -> the same in Chinese; fields are taken over
_SAYINGS: Final = tuple(
    (re.compile(said, re.DOTALL), chinese)
    for said, chinese in (
        (
            r"'R' is the last character of a rhyming line; nothing may follow it",
            "R 是押韵行的最后一个字，后面不能再有内容",
        ),
        (
            r"expected 'c' for a character, 'R' for the last one of a rhyming line, or a space, got (.+)",
            r"应为 c（一个字）、R（押韵行的末字）或空格，却是 \1",
        ),
        (r"expected lines that end with .*", "应使用普通换行符，请替换 Windows 换行符"),
        (
            r"expected a header in round brackets, as \(verse1\), got an empty text",
            "应以圆括号段落标题开头，如 (verse1)，但模式为空",
        ),
        (
            r"expected a header in round brackets, as \(verse1\), got (.+)",
            r"应以圆括号段落标题开头，如 (verse1)，却是 \1",
        ),
        (r"the header (\(.+\)) must stand on a line of its own", r"段落标题 \1 应单独占一行"),
        (r"expected the end of the line after (\(.+\)), got (.+)", r"段落标题 \1 之后应换行，却是 \2"),
        (r"expected a line of 'c' and 'R', got a blank one; leave it out", "应为由 c 和 R 组成的行，却是空行，请删去"),
        (r"the lyrics are empty;.*", "歌词为空"),
        (r"the lyrics have no section header.*", "歌词没有段落标题（圆括号中的词，如 (verse)）；可开启规范化再试"),
        (r"the lyrics are headers only.*", "歌词只有段落标题，标题下没有任何一行"),
        (r"the (lyrics|pattern) are too long: (\d+) (characters|lines), at most (\d+)", r"文本过长：\2，上限 \4"),
        (r"pattern, line (\d+), column (\d+): (.+)", r"模式第 \1 行第 \2 列：\3"),
    )
)


def said_in(language: str, message: str) -> str:
    """Return a message of the library in a language; one that has no translation stays as it is, in English.

    Examples
    --------
    >>> said_in("zh", "pattern, line 2, column 3: 'R' is the last character of a rhyming line; nothing may follow it")
    '模式第 2 行第 3 列：R 是押韵行的最后一个字，后面不能再有内容'

    """
    if language != "zh":
        return message
    placed = re.fullmatch(r"(pattern, line \d+, column \d+: )(.+)", message, re.DOTALL)
    if placed:
        inner = said_in(language, placed[2])
        return _SAYINGS[-1][0].sub(_SAYINGS[-1][1], placed[1] + inner)
    for said, chinese in _SAYINGS:
        if found := said.fullmatch(message):
            return found.expand(chinese)
    return message
