"""What a language model says around a song: "Here is ...", "Hope you like it", its reasoning, its fences, its tokens.

And what it writes into the song for those who perform it: stage tags as ``[soft piano]``, who sings as ``男：``.
"""

from __future__ import annotations

import re
from typing import Final

from music_evals.lyrics.headers import bare, is_header, is_released_header

# of chat templates: ChatML (Qwen), Llama, Gemma, GLM, DeepSeek, the harmony format
_TOKEN = re.compile(r"<[|\uff5c][^<>|\uff5c\n]{1,40}[|\uff5c]>|<(?:bos|eos|pad|(?:start|end)_of_turn)>", re.IGNORECASE)
_ANSWER = re.compile(
    r"(?:<\|(?:im_start|start_header_id)\|>|<start_of_turn>)(?:assistant|model)\b(?:<\|end_header_id\|>)?"
    r"|<[|\uff5c]assistant[|\uff5c]>|<\|channel\|>final\b",
    re.IGNORECASE,
)
_REASONING = re.compile("<(/?)(think|thinking|thought|reasoning)>", re.IGNORECASE)
_FENCE = re.compile(r"^\s*(?:```|~~~)")
_TAG = re.compile(r"\[[^\[\]\n]{1,300}\]|【[^【】\n]{1,300}】|<[^<>\n]{1,300}>|\{[^{}\n]{1,300}\}")
_LATIN_TAG = re.compile(r"\[[^\[\]\u4e00-\u9fff\n]{1,300}\]")
_HAN = re.compile("[\u4e00-\u9fff]")
_WHO = (
    "(?:[男女合齐众][男女合齐众独对伴领唱声生音高中低部一二三1-3]{0,5}|全体?|和声|[独对领伴轮]唱|童声|[旁独念]白"
    "|(?:(?:fe)?male|man|woman|men|women|boys?|girls?|both|all|together|duet|choir|singer)"
    r"(?: (?:vocals?|voices?|singers?|[a-d1-9]))?|zh(?:-[a-z]{2,4})?|cn|yue|en|ja|ko|chinese|mandarin|cantonese"
    "|中文|国语|普通话|粤语|start|stop|end|silence)"
)
_WHO_ALL = rf"{_WHO}(?: ?[/&+,、与和及] ?{_WHO}){{0,3}}"
_WHO_TAG = re.compile(rf"[(\[【<] ?(?:{_WHO_ALL}) ?[)\]】>] ?:?", re.IGNORECASE)
_WHO_SINGS = re.compile(rf"^[\s#]*+(?:{_WHO_ALL} ?: ?|[a-dmf] ?: ?(?=\S))+", re.IGNORECASE)
_PROSE = re.compile(r"[,.!?;:。]")  # the text is in NFKC by then
_OPENING = re.compile(
    r"(?:好的|好,|好!|当然|没问题|以下|下面|这是|根据|按照|歌名|歌词|标题|title|lyrics|sure|certainly|of course|okay"
    r"|here(?:'s|\u2019s| is| are)|below)",
    re.IGNORECASE,
)
_INTRODUCES = re.compile(r"歌名|标题|歌词|歌曲|这首|首歌|创作|lyric|song|title|:\s*$", re.IGNORECASE)

_TEXT = "(?:歌词|这首|这段|首歌|歌曲|作品|要求|需求|创作)"
_WELL = "(?:喜欢|满意|符合|帮助|帮到|有用)"
_IF = "(?:如果?|若|倘若|要是|有(?:任何|什么|其他)|需要|欢迎|可以|随时|请)"
_CHANGE = "(?:修改|调整|改动|改写|改进|润色|优化|补充|续写|完善|其他版本|其他风格)"
_REPLY = "(?:告诉|告知|随时|请|欢迎|提出|联系|吩咐|说明|帮|乐意|愿意)"
_SONG_EN = r"(?:this|the|these|my|your|above)(?: \w+)? (?:song|lyrics?)\b"
_CHANGE_EN = "(?:chang|adjust|edit|revis|tweak|modif|rewrit|another version|different)"
_REMARKS: Final = {
    "wish": rf"希望.{{0,15}}{_WELL}.{{0,12}}{_TEXT}|希望.{{0,12}}{_TEXT}.{{0,12}}{_WELL}",
    "wish alone": r"希望(?:你们?|您|大家)(?:能|会)?(?:喜欢|满意)(?:这[首段个份]?)?\W*$",
    "reference": "^以上(?:就?是|为|便是|即为|歌词|内容|作品|创作)",
    "description": "^(?:这首|这段|本|该|整首|全)[歌曲词文诗].{0,20}"
    "(?:结构|韵|采用|要求|表达|描绘|展现|讲述|围绕|遵循|字数|主题|风格|完成).{0,200}[,.。:;!]",
    "title": r"^歌词(?:采用|严格|围绕|已|符合|完)|^(?:创作|押韵|结构|韵脚|歌词)(?:说明|思路|情况|解析|分析|解释)(?!\w)",
    "note": "^(?:注|注意|备注|附注|说明|解释|解析|提示|notes?|explanation|ps) *:"
    "(?: *$|.{0,80}(?:歌|词|韵|字|句|行|结构|模式|lyric|song|rhym|line|verse))",
    "offer": rf"{_IF}.{{0,20}}{_CHANGE}.{{0,40}}{_REPLY}|(?:修改|调整)(?:意见|建议)"
    "|^如(?:需|有(?:任何|其他)?(?:需[要求]|要求|问题|疑问|意见|建议|想法))",
    "English wish": r"^(?:i )?hope (?:that )?"
    r"(?:you(?:'ll| will)?(?: all)? (?:enjoy|like|love) (?:it|them|these|this|the|my)\b"
    rf"|(?:this|it|these|{_SONG_EN}).{{0,30}}(?:meet|fit|match|help|work|suit|captur|enjoy|like|satisf))",
    "English offer": rf"let me know (?:if|whether|how|which|what).{{0,60}}"
    rf"(?:{_CHANGE_EN}|lyrics?\b|song\b|version|style|what you think)"
    rf"|feel free to.{{0,20}}(?:{_CHANGE_EN}|ask|let me know|reach out)"
    rf"|would you like me to.{{0,20}}(?:{_CHANGE_EN}|add|write|make)",
    "English description": rf"^{_SONG_EN}.{{0,40}}"
    "(?:follow|structure|pattern|rhym|theme|captur|reflect|convey|express)",
}
"""What speaks about the text, in words that a song rarely has; such a line is a remark where it stands apart."""

_ABOUT_TEXT = re.compile("|".join(_REMARKS.values()), re.IGNORECASE)
_END = re.compile(
    r"[(\[【\u2014-]+ *(?:全?[文曲剧歌]?[完终]|(?:the )?end|fin)[ )\]】。.\u2014-]*"
    "|(?:全?[文曲剧歌]?完|(?:the )?end)[。.]?",
    re.IGNORECASE,
)
# More of a remark: a point of a list of properties, or more on the text.
_GOES_ON = re.compile(
    "^[^:]{1,12}:.|歌词|歌曲|首歌|押韵|韵脚|结构|段落|主歌|副歌|每[句段行]|字数|意象|意境|主题|情感|风格|表达|描绘|创作|修改|调整"
    "|lyric|song|rhym|verse|chorus|stanza|structure|syllable",
    re.IGNORECASE,
)


def drop_chat_tokens(text: str) -> str:
    """Remove the special tokens of chat templates, and the turns that they set apart from the answer."""
    answers = list(_ANSWER.finditer(text))
    if answers and _TOKEN.match(text.lstrip()):  # it begins with what was asked
        text = text[answers[-1].end() :]
    pieces = _TOKEN.split(text)
    return next(filter(bare, pieces), pieces[0])


def drop_reasoning(text: str) -> str:
    """Remove ``<think>`` blocks; of one that is never closed all, of one that is never opened all before its end."""
    parts: list[str] = []
    start, opened = 0, False
    for mark in _REASONING.finditer(text):
        if not mark[1] and not opened:
            parts.append(text[start : mark.start()])
        elif mark[1]:
            parts.append("\n") if opened else parts.clear()
            start = mark.end()
        opened = not mark[1]
    return "".join(parts) + ("" if opened else text[start:])


def drop_stage_tags(text: str) -> str:
    """Remove tags that name no section: lines of them, and those without a Chinese character within a line."""
    # A line of its own leaves a blank one, so that what follows stands apart. Where nothing else is sung, Chinese words
    # in such brackets are the lyrics.
    lines = text.split("\n")
    tags = list(map(is_stage_tag, lines))
    sung = any(bare(line) and not tag and not is_header(line) for line, tag in zip(lines, tags, strict=True))
    return "\n".join(
        ""
        if tag and (sung or not _HAN.search(line))
        else _cleared(line, _LATIN_TAG.sub(lambda match: match[0] if is_header(match[0]) else " ", line))
        for line, tag in zip(lines, tags, strict=True)
    )


def is_stage_tag(line: str) -> bool:
    """Tell whether a line is nothing but tags in square or pointed brackets, none of them a section."""
    return bare(line) != "" and bare(_TAG.sub("", line)) == "" and not is_header(line)


def drop_singers(text: str) -> str:
    """Remove who sings, before a colon or in brackets: a man, a woman, all; and languages, as ``[zh]``."""
    return "\n".join(map(without_singer, text.split("\n")))


def without_singer(line: str) -> str:
    """Return a line without who sings it."""
    return _cleared(line, _WHO_TAG.sub(" ", _WHO_SINGS.sub("", line)))


def _cleared(line: str, left: str) -> str:
    """Return what is left of a line; one that lost nothing keeps the pauses at its ends."""
    return line if left == line else left.strip()


def is_fence(line: str) -> bool:
    """Tell whether a line begins or ends a block of code."""
    return _FENCE.match(line) is not None


def drop_fences(text: str) -> str:
    """Remove code fences, and what stands outside of them unless a section header stands there."""
    # Where something stands outside, a fence leaves a blank line: what comes after it stands apart.
    inside: list[str] = []
    outside: list[str] = []
    fenced = False
    for line in text.split("\n"):
        if is_fence(line):
            fenced = not fenced
        else:
            (inside if fenced else outside).append(line)
    if not any(map(bare, inside)) or any(map(is_header, outside)):
        return "\n".join("" if is_fence(line) else line for line in text.split("\n"))
    return "\n".join(inside)


def drop_remarks(text: str) -> str:
    """Remove what stands before the first header, and closing remarks after the last one."""
    # Without a header, an introduction of one line is known by how it begins and by its words. A closing remark stands
    # apart, below a blank line, a rule or a code fence; it speaks about the text; and no line of the song follows, only
    # more of it. Anything less may be sung, and stays.
    lines = text.split("\n")
    headers = [i for i, line in enumerate(lines) if is_released_header(line)]
    if headers:
        head, tail = lines[headers[0] : headers[-1] + 1], lines[headers[-1] + 1 :]
    else:
        first = next((i for i, line in enumerate(lines) if bare(line)), 0)
        words = lines[first].strip()
        is_opening = _OPENING.match(words) and _PROSE.search(words) and _INTRODUCES.search(words)
        head, tail = [], (lines[first + 1 :] if is_opening else lines)
    # the first line of the closing remarks, or the number of lines
    first = len(tail)
    for i in range(len(tail) - 1, 0, -1):
        words = re.sub(r"^[\W_]+", "", tail[i])
        if not words:
            continue
        is_remark = _ABOUT_TEXT.search(words) is not None or _END.fullmatch(tail[i].strip()) is not None
        if is_remark and not bare(tail[i - 1]):
            first = i
        elif not is_remark and not _GOES_ON.search(words):
            break
    return "\n".join(head + tail[:first])
