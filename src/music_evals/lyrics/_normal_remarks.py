"""What a language model says around a song: "Here is ...", "Hope you like it", its reasoning, its fences."""

from __future__ import annotations

import re

from music_evals.lyrics._normal_headers import bare, is_header, is_released_header

__all__ = ["drop_fences", "drop_reasoning", "drop_remarks"]

_TAGS = "think|thinking|thought|reasoning"
_FENCE = re.compile(r"^\s*(?:```|~~~)")
_PROSE = re.compile(r"[,.!?;:。]")  # the text is in NFKC by then
_OPENING = re.compile(
    r"(?:好的|好,|好!|当然|没问题|以下|下面|这是|根据|按照|歌名|歌词|标题|title|lyrics|sure|certainly|of course|okay"
    r"|here(?:'s|\u2019s| is| are)|below)",
    re.IGNORECASE,
)
# how a remark begins: words about the text, not of it
_CLOSING = re.compile(
    r"(?:希望(?=.{0,20}(?:喜欢|满意|符合|帮助|帮到|有用))(?=.{0,20}(?:歌词|作品|要求|需求|您|首歌))|以上(?:就是|是|歌词|内容)"
    r"|(?:这首|这段|本|该|整首|全)[歌曲词文].{0,20}(?:结构|韵|采用|要求|表达|描绘|展现|讲述|围绕|遵循|完)"
    r"|歌词(?:说明|解析|解释|采用|严格|围绕|完)|创作(?:说明|思路)|押韵(?:说明|情况)|请随时"
    r"|(?:注|注意|备注|说明|解释|解析|提示|note|notes|explanation)\s*:"
    r"|如果?(?:您|你)?.{0,20}(?:修改|调整|不满意|要求|意见|建议|需求)"
    r"|(?:i )?hope (?:you|this|it|these).{0,30}(?:lyric|song|enjoy|meet|require)|feel free to|would you like me"
    r"|let me know if.{0,40}(?:chang|adjust|edit|revis)"
    r"|(?:this|the|these) (?:song|lyrics?)\b.{0,40}(?:follow|structure|pattern|rhym|theme|captur|reflect|convey))",
    re.IGNORECASE,
)
_CLOSING_PARAGRAPH = re.compile(r"希望.{0,8}(?:喜欢|帮助|帮到)|感谢|谢谢您|全?[文曲剧]?完$|(?:the )?end$|fin$")


def drop_reasoning(text: str) -> str:
    """Remove ``<think>`` blocks; of one that is never closed all, of one that is never opened all before its end."""
    text = re.sub(rf"<({_TAGS})>.*?</\1>", "\n", text, flags=re.DOTALL | re.IGNORECASE)
    text = re.sub(rf"\A.*</(?:{_TAGS})>", "", text, flags=re.DOTALL | re.IGNORECASE)
    return re.sub(rf"<(?:{_TAGS})>.*\Z", "", text, flags=re.DOTALL | re.IGNORECASE)


def drop_fences(text: str) -> str:
    """Remove code fences, and what stands outside of them unless a section header stands there."""
    inside: list[str] = []
    outside: list[str] = []
    fenced = False
    for line in text.split("\n"):
        if _FENCE.match(line):
            fenced = not fenced
        else:
            (inside if fenced else outside).append(line)
    if not any(map(bare, inside)) or any(map(is_header, outside)):
        return "\n".join(line for line in text.split("\n") if not _FENCE.match(line))
    return "\n".join(inside)


def drop_remarks(text: str) -> str:
    """Remove what stands before the first header, and closing remarks after the last one.

    Without a header, an introduction of one line is known by how it begins and by its punctuation. A closing remark is
    known by its words; it has punctuation, or a blank line or rule above it. All after it goes too.
    """
    lines = text.split("\n")
    headers = [i for i, line in enumerate(lines) if is_released_header(line)]
    if headers:
        head, tail = lines[headers[0] : headers[-1] + 1], lines[headers[-1] + 1 :]
    else:
        head, tail = [], _without_opening(lines)
    return "\n".join(head + tail[: _closing(tail)])


def _without_opening(lines: list[str]) -> list[str]:
    first = next((i for i, line in enumerate(lines) if bare(line)), 0)
    is_opening = lines and _OPENING.match(lines[first].strip()) and _PROSE.search(lines[first])
    return lines[first + 1 :] if is_opening else lines


def _closing(lines: list[str]) -> int:
    """Return the index of the first line of the closing remarks, or the number of lines."""
    for i, line in enumerate(lines):
        words = re.sub(r"^[\W_]+", "", line)
        apart = i > 0 and not bare(lines[i - 1])
        if _CLOSING.match(words) and (apart or _PROSE.search(words)):
            return i
        last = apart and not any(bare(later) for later in lines[i + 1 :])
        if last and _CLOSING_PARAGRAPH.match(bare(words)):
            return i
    return len(lines)
