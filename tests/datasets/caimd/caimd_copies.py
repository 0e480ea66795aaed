"""Rows of CaiMD written out in the layout of the release, V1 and the published sample of V2."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from music_evals.annotations import AUDIO_EFFECTS, DIMENSIONS
from music_evals.datasets.caimd.release import DESCRIPTION_FILES, MAPS
from music_evals.datasets.caimd.schema import song_texts

DEV = Path(__file__).resolve().parents[3] / "../shared/data/muchin/dev.jsonl"
"""The development half of the songs, beside the repository on some machines; third-party, never in it."""

# dimensions that share one free text, as in the release
SHARED = {"professional": 2, "amateur": 4}
OPTIONS = {
    "amateur": {"sound_quality": (1, 2), "live": (5, 6), "lo_fi": (9, 10)},
    "professional": {"sound_quality": (3, 4), "live": (7, 8), "lo_fi": (11, 12)},
}
OPTION_WORDS = {
    str(number): word
    for keys in OPTIONS.values()
    for key, numbers in keys.items()
    for number, word in zip(numbers, ("清晰", "不清晰") if key == "sound_quality" else ("是", "否"), strict=True)
}
UNUSED = "9c4e346d" + "0" * 24
EFFECT_WORDS = ("音质", "现场版", "Lo-Fi")


def full(digits: str) -> str:
    return digits + "0" * 24


def question_id(group: str, number: int) -> str:
    return f"{group[0]}{number}" + "0" * 30


def wording(number: int) -> str:
    return f"第{number}问是什么？"


def write_maps(folder: Path) -> None:
    parts = {UNUSED: "演唱语言"}
    for table in DIMENSIONS.values():
        for name, row in table.items():
            words = EFFECT_WORDS if name == AUDIO_EFFECTS else (row.chinese,)
            parts |= dict(zip(map(full, row.question_ids), words, strict=True))
    questions = {question_id(group, number): wording(number) for group in DIMENSIONS for number in range(12)}
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in zip(MAPS, (questions, parts, OPTION_WORDS), strict=True):
        (folder / name).write_text(json.dumps(table, ensure_ascii=False), encoding="utf-8")


def write_release(folder: Path, rows: Iterable[Mapping[str, Any]], *, v2: bool = False) -> Path:
    """Write songs and maps as the repository of the release has them."""
    songs = folder / ("MuChin-5790/songs" if v2 else "dataset/bm-data")
    write_maps(folder if v2 else folder / "dataset")
    for row in rows:
        write_song(songs / row["id"], row, v2=v2)
    return folder


def write_song(folder: Path, row: Mapping[str, Any], *, v2: bool = False) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    answers = {group: description(row, group, v2=v2) for group in DIMENSIONS}
    for group, other in zip(DIMENSIONS, reversed(DIMENSIONS), strict=True):
        text = json.dumps(answers[group], ensure_ascii=False, indent=4)
        (folder / DESCRIPTION_FILES[other if v2 else group]).write_text(text, encoding="utf-8")
    words, patterns = song_texts(row)
    raw = "\n".join(f"{stamp(line['start'])}{line['text']}" for line in row["timed_lyrics"])
    tokens = [(stamp(line["start"]), f"<|ss_{line['section']}|>{line['text']}") for line in row["timed_sections"]]
    texts = {
        "str_lyric": words,
        "str_rhyme": patterns,
        "raw_lyric": (folder / "prof_desc_json").read_text(encoding="utf-8") if v2 else raw,
        "tknz_json": pairs_json(tokens),
        "meta_info": meta(row, v2=v2),
    }
    for name, text in texts.items():
        (folder / name).write_bytes(text.encode())


def meta(row: Mapping[str, Any], *, v2: bool) -> str:
    if v2:
        return f"name\t:\t{row['title']}\r\nsinger\t:\t{'/'.join(row['artist'])}"
    told = {"name  ": row["title"], "singer": ",".join(row["artist"]), "genre ": row["genre"], "album ": row["album"]}
    return "".join(f"{key}: {value or ''}\n" for key, value in told.items())


def pairs_json(pairs: Iterable[tuple[str, str]]) -> str:
    """Write an object whose keys may come twice."""
    return "{" + ", ".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in pairs) + "}"


def stamp(seconds: float) -> str:
    hundredths = round(seconds * 100)
    return f"[{hundredths // 6000:02d}:{hundredths % 6000 / 100:05.2f}]"


def description(row: Mapping[str, Any], group: str, *, v2: bool) -> dict[str, Any]:
    told, table = row[group]["dimensions"], DIMENSIONS[group]
    names = [name for name in table if name != AUDIO_EFFECTS]
    blocks = [names[: SHARED[group]], *([name] for name in names[SHARED[group] :])]
    answers: list[dict[str, Any]] = []
    for number, block in enumerate(blocks):
        tags = [tag_answer(table[name], told[name], v2=v2) for name in block]
        shared = row[group]["overall_text"] if number == 0 else None
        answers.append({"id": question_id(group, number), "tags": tags} | ({"desc": shared} if shared else {}))
    effects = told[AUDIO_EFFECTS]
    remarks = effects["option_texts"]
    options = []
    for key, digits in zip(OPTIONS[group], table[AUDIO_EFFECTS].question_ids, strict=True):
        yes = effects[key] == "clear" if key == "sound_quality" else effects[key]
        answer: dict[str, Any] = {"oid": full(digits), "opid": OPTIONS[group][key][0 if yes else 1]}
        options.append(answer | ({"desc": remarks[key]} if remarks.get(key) else {}))
    answers.append({"id": question_id(group, len(blocks)), "options": options})
    if v2:
        for number, answer in enumerate(answers):
            answer["desc"] = wording(number)
    return {"mid": "f" * 32 if v2 else row["id"], "ans": answers}


def tag_answer(dimension: Any, told: Mapping[str, Any], *, v2: bool) -> dict[str, Any]:
    tags = [dimension.chinese, *told["tags"]] if v2 else list(told["tags"])
    answer: dict[str, Any] = {"tid": full(dimension.question_ids[0]), "value": tags}
    return answer | ({"desc": told["text"]} if told["text"] else {})


def with_all_remarks(row: dict[str, Any]) -> dict[str, Any]:
    """Give the remarks on closed questions that a line of dev.jsonl leaves out as null, as a row has them."""
    for group in DIMENSIONS:
        effects = row[group]["dimensions"][AUDIO_EFFECTS]
        effects["option_texts"] = {key: effects["option_texts"].get(key) for key in ("live", "lo_fi")}
    return row


def dev_rows() -> list[dict[str, Any]]:
    with DEV.open(encoding="utf-8") as lines:
        return [with_all_remarks(json.loads(line)) for line in lines]
