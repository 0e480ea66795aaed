"""The key of a request and the seeds of its item: an item alone draws the numbers that it draws in a batch."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from music_evals.annotations import EditorInfo, EditRequest

__all__ = ["item_seed", "request_key", "source_seed"]


def request_key(info: EditorInfo, request: EditRequest, *, content: str | None = None) -> str:
    """Return the SHA-256 of all that decides an edit, 64 hexadecimal digits.

    Of the system these are its name, its parameters and the revisions of its weights; of the request its source,
    instruction, conditions and seed, but not what the source is called. `content` is the hash of the source
    (`EditRequest.content`), where the caller has it.
    """
    decides: dict[str, Any] = {
        "system": info.name,
        "parameters": dict(info.parameters),
        "weights": [[weights.id, weights.revision] for weights in info.weights],
        "source": content or request.content(),
        "instruction": request.instruction.to_dict(),
        "seed": request.seed,
    }
    if request.conditions is not None:
        decides["conditions"] = request.conditions.content()
    return hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()


def item_seed(request: EditRequest, key: str) -> int:
    """Return the seed of an item, 0..2**63 - 1, from the seed of the run and the key of the request."""
    return _seed(f"{request.seed} {key}")


def source_seed(request: EditRequest, content: str) -> int:
    """Return a seed that all edits of one source share, for what they share, such as an inversion; 0..2**63 - 1."""
    return _seed(f"{request.seed} source {content}")


def _seed(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1
