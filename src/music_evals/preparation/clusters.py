"""The step `clusters`: songs that sound alike, and a sample that is spread evenly over them.

Source: Wang et al., "MuChin", IJCAI 2024: recordings are embedded and clustered into 1,000 groups, and songs are drawn
evenly from these. The paper names neither algorithm nor scaling: mini-batch k-means of scikit-learn on vectors whose
dimensions have mean 0 and variance 1 over the songs is our choice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.errors import InvalidInputError, MissingBackendError, NoDataError, importing
from music_evals.numerics import one_thread
from music_evals.preparation import embeddings
from music_evals.preparation.contract import Corpus

OPTIONS: Final = ("n_clusters", "sample", "seed", "encoder")
N_CLUSTERS: Final = 1000  # of the paper

_BATCH: Final = 1024  # scikit-learn's own
_STARTS: Final = 3  # scikit-learn's own: first centres that are tried


class Clustering(NamedTuple):
    """Which song is in which cluster."""

    labels: npt.NDArray[np.int64]
    """Number of each song's cluster, shape (n,): 0 is the largest; of equal ones that of the first song."""
    distances: npt.NDArray[np.float64]
    """From the mean of the cluster's songs, in standard deviations of a dimension, shape (n,)."""


def left_out(options: Mapping[str, Any]) -> str:
    """Return why nothing is clustered: no embeddings, or scikit-learn is missing and the step was not named."""
    reason = embeddings.left_out(options)
    if not reason and options["n_clusters"] is None and options["sample"] is None:
        try:
            about(options)
        except MissingBackendError as error:
            reason = str(error)
    return reason


def about(options: Any) -> dict[str, Any]:  # noqa: ARG001 (as all)
    """Return what clusters; raises `MissingBackendError` where it is not installed."""
    with importing("clusters", "the step clusters"):
        import sklearn
    return {"scikit-learn": str(sklearn.__version__)}


def cluster(vectors: npt.NDArray[np.float32], n_clusters: int, *, seed: int) -> Clustering:
    """Cluster songs by mini-batch k-means."""
    if not 1 <= n_clusters <= len(vectors):
        raise InvalidInputError(
            f"`n_clusters` must lie in 1..{len(vectors)}, the songs that have an embedding, got {n_clusters}"
        )
    with importing("clusters", "the step clusters"):
        from sklearn.cluster import MiniBatchKMeans
    exact = vectors.astype(np.float64)
    spread = exact.std(axis=0)
    scaled = (exact - exact.mean(axis=0)) / np.where(spread > 0, spread, 1)
    draws = np.random.RandomState(np.random.MT19937(np.random.SeedSequence(seed)))  # scikit-learn takes no Generator
    model = MiniBatchKMeans(
        n_clusters, random_state=draws, n_init=_STARTS, batch_size=_BATCH, init_size=3 * max(_BATCH, n_clusters)
    )
    with one_thread():
        assigned = model.fit_predict(scaled)
    # clusters are numbered by their size, and equal ones by their first song
    _, first, ranks, counts = np.unique(assigned, return_index=True, return_inverse=True, return_counts=True)
    order = np.lexsort((first, -counts))
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    labels: npt.NDArray[np.int64] = number[ranks]
    # the model's own centres are running means over random batches; those of the songs are exact
    sums = np.zeros((labels.max() + 1, scaled.shape[1]))
    np.add.at(sums, labels, scaled)
    centres = sums / np.bincount(labels)[:, np.newaxis]
    return Clustering(labels, np.linalg.norm(scaled - centres[labels], axis=1))


def sample_evenly(labels: npt.NDArray[np.int64], n: int, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Draw songs as evenly from clusters as these allow."""
    if not 1 <= n <= len(labels):
        raise InvalidInputError(f"`sample` must lie in 1..{len(labels)}, the songs that have an embedding, got {n}")
    shuffled = rng.permutation(len(labels))
    clusters = rng.permutation(np.unique(labels))
    queues = [shuffled[labels[shuffled] == label] for label in clusters]
    # round by round each cluster gives one; clusters are shuffled, and so the last round is drawn too
    rounds = [(turn, place, song) for place, queue in enumerate(queues) for turn, song in enumerate(queue)]
    is_sampled = np.zeros(len(labels), bool)
    is_sampled[[song for _, _, song in sorted(rounds)[:n]]] = True
    return is_sampled


def cluster_songs(corpus: Corpus) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """Cluster the songs of a run, and draw the sample."""
    songs = list(corpus.answers)
    if not songs:
        raise NoDataError("no song has an embedding, so that there is nothing to cluster")
    requested, sample, seed = (corpus.options[name] for name in ("n_clusters", "sample", "seed"))
    n_clusters = min(N_CLUSTERS, len(songs)) if requested is None else requested
    vectors = np.stack(
        [embeddings.read_vector(corpus.out / corpus.answers[song]["embeddings"]["vector"]) for song in songs]
    )
    labels, distances = cluster(vectors, n_clusters, seed=seed)
    is_sampled = None if sample is None else sample_evenly(labels, sample, np.random.default_rng(seed))
    answers = {
        song: {
            "cluster": int(labels[number]),
            "cluster_distance": float(distances[number]),
            "sampled": None if is_sampled is None else bool(is_sampled[number]),
        }
        for number, song in enumerate(songs)
    }
    sizes = np.bincount(labels)
    summary = {
        "n_songs": len(songs), "n_clusters": n_clusters, "n_held": len(sizes), "largest": int(sizes.max()),
        "smallest": int(sizes.min()), "seed": seed, "sample": sample, "encoder": corpus.options["encoder"],
    }  # fmt: skip
    return answers, summary
