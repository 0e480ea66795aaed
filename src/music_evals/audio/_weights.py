"""Weights of the networks of our own, which are package data in ``audio/weights``."""

from __future__ import annotations

import functools
import json
from importlib import resources

import numpy as np
import numpy.typing as npt

__all__ = ["load_weights"]

_TYPES = {"F16": np.float16, "F32": np.float32}


@functools.cache
def load_weights(name: str) -> dict[str, npt.NDArray[np.float32]]:
    """Return the tensors of ``weights/<name>.safetensors``, as float32."""
    # The format: the length of the header in eight bytes, the header in JSON, then the numbers, little endian.
    content = resources.files("music_evals.audio").joinpath("weights", f"{name}.safetensors").read_bytes()
    size = int.from_bytes(content[:8], "little")
    data = memoryview(content)[8 + size :]
    tensors = {}
    for tensor, entry in json.loads(content[8 : 8 + size]).items():
        if tensor == "__metadata__":
            continue
        start, end = entry["data_offsets"]
        numbers = np.frombuffer(data[start:end], dtype=np.dtype(_TYPES[entry["dtype"]]).newbyteorder("<"))
        tensors[tensor] = numbers.reshape(entry["shape"]).astype(np.float32)
        tensors[tensor].flags.writeable = False
    return tensors
