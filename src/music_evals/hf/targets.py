"""Modules that measure whether edits did what was asked, by targets or by text, and how near they stayed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from music_evals.annotations import Score, targets_of, targets_to_dict
from music_evals.audio.io import Audio
from music_evals.errors import MusicEvalsError, UnsupportedTypeError, located
from music_evals.hf.audio import OFFERED, AudioMetric, read_sources
from music_evals.hf.module import GROUPS, INTERVALS

TARGET_INPUTS = f"""
Args:
    references: what was asked, one dict an item: "source", the original, {OFFERED}; and "targets", a dict of kind to
        amount or text: "tempo=1.2x; key=A minor".
    predictions: the edited music in the same order; a recording is compared with a recording, a score with a score.
    store: folder where features are kept from one call to the next.
{GROUPS}{INTERVALS}, <name>_chance, and "by_kind": kind of target -> its scores and the number of each verdict.
"""


CLAP_CITATION = """\
@inproceedings{wu2023clap,
  title     = {Large-Scale Contrastive Language-Audio Pretraining with Feature Fusion and Keyword-to-Caption
               Augmentation},
  author    = {Wu, Yusong and Chen, Ke and Zhang, Tianyu and Hui, Yuchen and Berg-Kirkpatrick, Taylor and
               Dubnov, Shlomo},
  booktitle = {IEEE International Conference on Acoustics, Speech and Signal Processing},
  year      = {2023}
}
"""
LPAPS_CITATION = """\
@inproceedings{manor2024zeroshot,
  title     = {Zero-Shot Unsupervised and Text-Based Audio Editing Using {DDPM} Inversion},
  author    = {Manor, Hila and Michaeli, Tomer},
  booktitle = {Proceedings of the 41st International Conference on Machine Learning},
  year      = {2024}
}
"""
HEARD_INPUTS = f"""
Args:
    references: the originals, recordings: {OFFERED}. By text, one dict an item: "source", the original; "text", what
        the edit is to sound like; and, if known, "source_text", what the original sounds like.
    predictions: the edited recordings in the same order.
    encoder: Hub id or folder of a CLAP, default "laion/larger_clap_music"; or an object with its methods.
{GROUPS}{INTERVALS}, <name>_chance, and the encoder.
"""


class TargetsMetric(AudioMetric):
    """Base of the modules that compare music before and after an edit with what was asked of the edit."""

    kind = "targets"
    variants: ClassVar[tuple[str, ...]] = ()
    authors_code, arguments = "", TARGET_INPUTS

    def _encode(self, name: str, index: int, item: Any) -> str:
        if name != "references":
            return super()._encode(name, index, item)
        if not isinstance(item, Mapping) or not {"source", "targets"} <= item.keys():
            raise UnsupportedTypeError(f"{name}[{index}]: expected a dict with source and targets")
        try:
            targets = targets_to_dict(targets_of(item["targets"]))
        except MusicEvalsError as error:
            raise located(error, f"{name}[{index}]") from error
        return json.dumps({"source": super()._encode(name, index, item["source"]), "targets": targets})


class CaptionsMetric(AudioMetric):
    """Base of the modules that compare an edit with a text that says what it is to sound like."""

    kind = "captions"
    variants: ClassVar[tuple[str, ...]] = ()
    paper, authors_code, arguments = CLAP_CITATION, "", HEARD_INPUTS

    def _encode(self, name: str, index: int, item: Any) -> str:
        if name != "references":
            return super()._encode(name, index, item)
        given = item if isinstance(item, Mapping) else {}
        text, before = given.get("text"), given.get("source_text")
        if "source" not in given or not isinstance(text, str) or not isinstance(before, str | None):
            raise UnsupportedTypeError(f"{name}[{index}]: expected a dict with source, text and perhaps source_text")
        source = super()._encode(name, index, item["source"])
        return json.dumps({"source": source, "text": text, "source_text": before})


class NearnessMetric(AudioMetric):
    """Base of the modules that compare recordings before and after an edit by an encoder."""

    kind = "nearness"
    variants: ClassVar[tuple[str, ...]] = ()
    paper, arguments, authors_code = LPAPS_CITATION, HEARD_INPUTS, "https://github.com/HilaManor/AudioEditingCode"


def read_requests(texts: Sequence[str]) -> tuple[list[str | Audio | Score], list[dict[str, str]]]:
    """Return the originals and the targets behind the strings that a `TargetsMetric` keeps of its references."""
    rows = [json.loads(text) for text in texts]
    return read_sources([row["source"] for row in rows]), [row["targets"] for row in rows]


def read_captions(texts: Sequence[str]) -> tuple[list[Any], list[str], list[str | None]]:
    """Return the originals, the texts and those of the originals behind what a `CaptionsMetric` keeps."""
    rows = [json.loads(text) for text in texts]
    sources: list[Any] = read_sources([row["source"] for row in rows])
    return sources, [row["text"] for row in rows], [row["source_text"] for row in rows]
