"""Training from recipes: `recipe` reads them, `settings` says what they hold, `data` what is learnt from.

`run` is the loop; networks of notes (`loop`), taggers (`taggers`) and language models (`writers`) are kinds of it.
"""

from __future__ import annotations

from typing import Any

__all__ = ["TrainingResult", "fit", "learning_rate", "train_from_file"]


def __getattr__(name: str) -> Any:
    if name not in __all__:  # reading a recipe needs no torch
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from music_evals.models.training import loop

    return getattr(loop, name)
