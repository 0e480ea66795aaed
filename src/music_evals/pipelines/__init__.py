"""The only place where files and extractors meet metrics."""

from music_evals.deprecation import moved_modules

moved_modules(
    __name__,
    {
        "cell_prediction": "style_transfer.cell_prediction",
        **{f"gap_{name}": f"gaps.{name}" for name in ("diff", "filling", "steering", "stretches")},
        "rearrangement": "style_transfer.rearrangement",
        "style_fidelity": "style_transfer.fidelity",
        "tag_extraction": "tags",
        "tag_lists": "tags",
    },
)
