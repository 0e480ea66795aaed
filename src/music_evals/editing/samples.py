"""Samples of AudioLDM 2 by a recipe: what systems that edit the model's own music start from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from music_evals.audio.io import encode_flac
from music_evals.editing.audioldm2 import SAMPLE_RATE, AudioLDM2
from music_evals.files import write_atomically

__all__ = ["make_samples"]


def make_samples(model: AudioLDM2, rows: Iterable[Mapping[str, Any]], folder: str | Path) -> list[Path]:
    """Write the sample of each row as FLAC, and return the files; those that are there are left alone.

    Rows have ``audio_file``, ``source_prompt``, ``seed``, ``steps``, ``guidance``, ``seconds`` and ``negative_prompt``.
    """
    import torch

    paths = []
    for row in rows:
        path = Path(folder, row["audio_file"]).with_suffix(".flac")
        if not path.exists():
            generator = torch.Generator().manual_seed(row["seed"])
            sound = model.pipeline(
                row["source_prompt"],
                negative_prompt=row["negative_prompt"],
                num_inference_steps=row["steps"],
                guidance_scale=row["guidance"],
                audio_length_in_s=row["seconds"],
                generator=generator,
            ).audios[0]
            write_atomically(path, encode_flac(sound, SAMPLE_RATE), parents=True)
        paths.append(path)
    return paths
