"""What the package `musecpeval` gives, run by the interpreter of its own environment: JSON in, JSON out.

Usage: ENVIRONMENT/bin/python theirs.py < asked.json > scores.json

`asked.json` holds ``pairs``, a list of [reference, estimate], files, of whose first ``with_sections`` the sections are
compared too, and ``sections``, a list of [boundaries, labels, boundaries, labels]. This script needs nothing of
music_evals, and imports nothing of it.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import math
import platform
import sys
import warnings
from typing import Any

__all__ = ["main"]

PLACES = {
    "circle_of_fifths_distance": ("harmony", "key_relatedness", "distance_norm_0to1"),
    "chroma_dtw_similarity": ("harmony", "chroma_similarity", "chroma_dtw_cosine"),
    "mean_chroma_cosine": ("harmony", "chroma_similarity", "mean_chroma_cosine"),
    "delta_bpm": ("rhythm", "delta_bpm_folded"),
    "beat_f_measure": ("rhythm", "beat_mir_eval", "F-measure"),
    "information_gain": ("rhythm", "beat_mir_eval", "Information gain"),
    "segment_pairwise_f": ("structural", "pairwise_f"),
    "segment_ari": ("structural", "ari"),
    "contour_dtw_similarity": ("melody", "contour_dtw_similarity"),
    "motif_recall": ("melody", "motif_3gram_recall"),
    "mfcc_skl_similarity": ("timbre", "mfcc_skl_similarity"),
    "mean_mfcc_cosine": ("timbre", "mean_mfcc_cosine"),
}
"""Our name of a score -> the facet of the package and where its result holds it."""


def main() -> None:
    """Read what is asked and print the scores."""
    asked = json.load(sys.stdin)
    packages = ("musecpeval", "librosa", "numpy", "scipy", "mir_eval", "msaf")
    answer = {
        "versions": {"python": platform.python_version(), **{name: version(name) for name in packages}},
        "pairs": [scores(a, b, number < asked["with_sections"]) for number, (a, b) in enumerate(asked["pairs"])],
        "sections": [of_sections(*case) for case in asked.get("sections", ())],
    }
    json.dump(answer, sys.stdout)


def version(package: str) -> str:
    """Return the version of a package, empty where it is not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def scores(reference: str, estimate: str, with_sections: bool) -> dict[str, float | None]:  # noqa: FBT001
    """Return every score of one pair; None where the package has none."""
    package = importlib.import_module("musecpeval")
    found: dict[str, Any] = {}
    for facet in ("harmony", "rhythm", *["structural"] * with_sections, "melody", "timbre"):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                found[facet] = getattr(package, f"{facet}_score")(reference, estimate)
            except Exception as error:  # noqa: BLE001 - whatever it raises is its answer
                found[facet] = {}
                sys.stderr.write(f"{estimate}: {facet}: {type(error).__name__}: {error}\n")
        if any("uniform 10s grid" in str(one.message) for one in caught):
            found[facet] = {}  # a stand-in for a segmenter that failed, which the package calls not comparable
    return {name: _taken(found, place) for name, place in PLACES.items()}


def _taken(found: dict[str, Any], place: tuple[str, ...]) -> float | None:
    value: Any = found
    for key in place:
        value = (value or {}).get(key)
    return None if value is None or not math.isfinite(value) else float(value)


def of_sections(
    reference: list[float], labels: list[str], estimate: list[float], others: list[str]
) -> dict[str, float | None]:
    """Return the scores of two rows of sections, by the functions that `structural_score` calls one after the other."""
    form = importlib.import_module("musecpeval.metrics.structural_form")
    shift = form.best_boundary_shift(reference, estimate)["delta"]
    moved = [time + shift for time in estimate]
    found = form.clustering_metrics(reference, moved, labels, others)
    return {"segment_pairwise_f": _taken(found, ("pairwise_f",)), "segment_ari": _taken(found, ("ari",))}


if __name__ == "__main__":
    main()
