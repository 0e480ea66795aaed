"""In which floating type a network computes: a narrower one only on a device that has it."""

from __future__ import annotations

from typing import Any, Final

from music_evals.errors import InvalidInputError, UnknownNameError

__all__ = ["PRECISIONS", "dtype_of"]

PRECISIONS: Final = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
"""Name -> type of torch."""


def dtype_of(precision: str, device: str) -> Any:
    """Return the `torch.dtype` of one of `PRECISIONS` on a device, as torch names it: ``"cpu"``, ``"cuda:1"``.

    A device that does not compute in it raises `InvalidInputError`; on a CPU only fp32 is taken.
    """
    import torch

    if precision not in PRECISIONS:
        raise UnknownNameError("precision", precision, PRECISIONS)
    on_gpu = device.startswith("cuda")
    if precision != "fp32" and not on_gpu:
        raise InvalidInputError(f"precision {precision} needs a GPU, and the device is {device}; take fp32")
    if precision == "bf16" and not torch.cuda.is_bf16_supported(including_emulation=False):
        raise InvalidInputError(f"{device} does not compute in bf16; take fp16 or fp32")
    return getattr(torch, PRECISIONS[precision])
