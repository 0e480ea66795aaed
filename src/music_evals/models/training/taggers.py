"""How a music tagger is trained: features of a frozen encoder, then one network a group of annotators.

The recipe is MuChin's (`und_eval/train` of the released code): binary cross-entropy on logits, each tag weighted by how
rare it is, Adam at a constant rate, no validation; the last weights count. Each group is a run of the loop
(`training.loop.Run`), and batches are drawn from a seed that the epoch is part of: a run that is killed and started
again ends with the same weights, bit for bit, on the same machine with the same number of threads. What was encoded is
not encoded again.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from music_evals.annotations import GROUPS
from music_evals.audio.io import AUDIO_SUFFIXES, recordings
from music_evals.errors import InvalidInputError, NoDataError, UnknownNameError
from music_evals.files import write_atomically
from music_evals.lyrics.model_files import choose_device
from music_evals.models.encoders.audio import Extraction, Source
from music_evals.models.encoders.music import ENCODERS, load_music_encoder
from music_evals.models.encoders.precomputed import FEATURES_SUFFIX
from music_evals.models.music_tagger import MusicTagger, MusicTaggerConfig, probe_network
from music_evals.models.tag_vocabulary import THRESHOLDS, TagVocabulary, read_clusters, row_tags
from music_evals.models.training.data import beside, check_ids, song_rows
from music_evals.models.training.recipe import Recipe, build_recipe
from music_evals.models.training.run import Run, seeded
from music_evals.models.training.settings import TaggerData, TaggerTraining, from_mapping

__all__ = [
    "SCORES",
    "Song",
    "TagScores",
    "TaggerTrainingResult",
    "load_songs",
    "positive_weights",
    "tag_scores",
    "train_tagger",
]

SCORES: Final = "run/scores.json"
"""Accuracy, recall and F1 of the test songs: threshold -> group -> dimension -> score."""

LOG_LOGIT: Final = 0.51
"""Logit above which an output counts as on in the log's F1, as in the released code."""

Features = npt.NDArray[np.float32]


class TaggerTrainingResult(NamedTuple):
    """What a run left behind.

    Attributes
    ----------
    folder
        With config.json, vocabulary.json and model.safetensors.
    songs
        That were trained on.
    outputs
        Tags a group.
    epochs
        Of each group.
    losses
        Mean training loss of the last epoch, a group.
    seconds
        Of training, without the features.
    scores
        `SCORES`, or None where the recipe names no test split.
    """

    folder: Path
    songs: int
    outputs: dict[str, int]
    epochs: int
    losses: dict[str, float]
    seconds: float
    scores: Path | None


def train_tagger(
    values: Mapping[str, Any],
    folder: Path,
    out: Path,
    *,
    resume: bool = True,
    device: str | None = None,
    progress: bool = False,
    trust_remote_code: bool = False,
    encoder: Extraction | None = None,
) -> TaggerTrainingResult:
    """Train the tagger of a recipe; what ``music-evals train`` does with one.

    It writes ``run/<group>.safetensors`` (checkpoint) and ``run/<group>.csv`` (log, one row an epoch) while it trains,
    and at the end, not before, config.json, vocabulary.json and model.safetensors.

    Parameters
    ----------
    values, folder
        Sections of the recipe, as `recipe.read_sections` gives them, and the folder that paths in it are relative to.
    out, resume, device, progress, trust_remote_code
        As in `loop.train_from_file`; stored features are kept in any case.
    encoder
        In place of that of the recipe, which it must be.

    Raises
    ------
    MusicEvalsError
        As in `loop.train_from_file`. Besides: `NoDataError` for a song without recording or no tag often enough,
        `InvalidTagsError` for a row without descriptions, `ModelUnavailableError` and `MissingBackendError` where the
        encoder cannot be loaded.
    """
    recipe = build_recipe(values)
    data: TaggerData = recipe.data
    place = choose_device(device)
    base = _config(recipe, input_size=1)
    clusters = read_clusters(beside(folder, data.clusters)) if data.clusters else None
    songs = load_songs(data, data.train, folder)[: data.max_songs]
    # before anything is encoded: bad rows are found at once, also those that are needed at the end only
    tags = {group: [row_tags(song.row, group, clusters) for song in songs] for group in base.groups}
    vocabulary = TagVocabulary.build(tags, min_count=data.min_count)
    test = load_songs(data, data.test, folder) if data.test else []
    true = {group: [row_tags(song.row, group, clusters) for song in test] for group in vocabulary.groups}
    encoder = encoder or load_music_encoder(
        base.encoder_settings, device=str(place), trust_remote_code=trust_remote_code, cache=data.features_cache or True
    )
    features, test_features = (_features(encoder, part, progress=progress) for part in (songs, test))
    config = _config(recipe, input_size=encoder.size)
    losses: dict[str, float] = {}
    state: dict[str, Tensor] = {}
    seconds = 0.0
    with seeded(recipe.training.seed, recipe.training.threads):
        for group in vocabulary.groups:
            learnt = features, vocabulary.encode(group, tags[group])
            run = _ProbeRun(group, learnt, config.hidden_size, recipe, folder=out / "run", device=place)
            run.fit(resume=resume, progress=progress)
            state |= {f"probes.{group}.{name}": value.detach().cpu() for name, value in run.weights().items()}
            losses[group], seconds = run.history[-1]["loss"], seconds + run.seconds
    with torch.device("meta"):  # its weights are there already
        tagger = MusicTagger(config, vocabulary)
    tagger.load_state_dict(state, assign=True)
    tagger.eval()
    tagger.save_pretrained(out)
    return TaggerTrainingResult(
        folder=out,
        songs=len(songs),
        outputs={group: vocabulary.size(group) for group in vocabulary.groups},
        epochs=recipe.training.epochs,
        losses=losses,
        seconds=round(seconds, 3),
        scores=_write_scores(tagger, test_features, true, out / SCORES) if test else None,
    )


def positive_weights(targets: npt.NDArray[np.bool_]) -> Features:
    """Return the weight of each tag's positive cases: the largest count over its own, counts starting at 1.

    Of targets, bool, shape (songs, outputs); the result is float32, shape (outputs,), at least 1.
    """
    counts = 1 + targets.sum(0, dtype=np.float32)
    weights: Features = counts.max() / counts
    return weights


def _config(recipe: Recipe, *, input_size: int) -> MusicTaggerConfig:
    for name in ("input_size", "groups", "encoder", "model_type"):
        if name in recipe.model:
            raise InvalidInputError(
                f"model.{name} follows from the section data; leave it away, and set data.encoder or data.groups"
            )
    settings = {"model_type": recipe.model_type, "groups": recipe.data.groups, "encoder": recipe.data.encoder}
    return from_mapping(MusicTaggerConfig, {**settings, "input_size": input_size, **recipe.model}, "model setting")


def _features(encoder: Extraction, songs: Sequence[Song], *, progress: bool) -> Features:
    """Return the features of songs, shape (songs, size)."""
    songs_read = ((song.id, song.read()) for song in songs)  # one after the other: none is held
    features = [
        feature for _, feature in encoder.extract(songs_read, progress=progress and bool(songs), total=len(songs))
    ]
    return np.stack(features) if features else np.empty((0, encoder.size), dtype=np.float32)


class _ProbeRun(Run):
    """The training of one group's network on features (songs, input_size) and targets (songs, outputs)."""

    section = "probe."

    def __init__(
        self,
        group: str,
        learnt: tuple[Features, npt.NDArray[np.bool_]],
        hidden_size: int,
        recipe: Recipe,
        *,
        folder: Path,
        device: torch.device,
    ) -> None:
        features, targets = learnt
        training: TaggerTraining = recipe.training
        content = hashlib.sha256(features.tobytes() + np.packbits(targets).tobytes()).hexdigest()
        # as JSON will give it back
        key = json.loads(json.dumps({**recipe.key(), "group": group, "shape": targets.shape, "content": content}))
        self.seed = (training.seed, GROUPS.index(group))
        torch.manual_seed(int(np.random.SeedSequence(self.seed).generate_state(1)[0]))
        probe = probe_network(features.shape[1], hidden_size, targets.shape[1]).to(device)
        files = folder / f"{group}.safetensors", folder / f"{group}.csv"
        super().__init__(probe, training, len(features), files, key)
        self.title, self.n_epochs, self.save_epochs = group, training.epochs, training.checkpoint_every
        self.features, self.targets = (torch.from_numpy(array).to(device) for array in learnt)
        self.pos_weight = torch.from_numpy(positive_weights(targets)).to(device)
        self.counts = torch.zeros(2, dtype=torch.int64, device=device)  # of an epoch: right outputs, and positive ones

    def order(self) -> npt.NDArray[np.int64]:
        """Return all songs in the order of the epoch."""
        self.counts.zero_()
        return np.random.default_rng((*self.seed, len(self.history))).permutation(len(self.features))

    def losses(self, rows: npt.NDArray[np.int64]) -> Iterator[Tensor]:
        batch = torch.from_numpy(rows).to(self.device)
        true = self.targets[batch]  # (batch, outputs)
        mixed = self.settings.precision == "bfloat16"
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=mixed):
            logits = self.model(self.features[batch])
        on = logits.detach() > LOG_LOGIT
        self.counts += torch.stack([(on & true).sum(), on.sum() + true.sum()])
        yield functional.binary_cross_entropy_with_logits(logits.float(), true.float(), pos_weight=self.pos_weight)

    def row(self, loss: float) -> dict[str, Any]:
        """Return the mean loss, and the F1 of all outputs above `LOG_LOGIT`."""
        hits, n_positive = self.counts.tolist()
        return {"loss": loss, "f1": 2 * hits / n_positive if n_positive else 0.0}


def _write_scores(
    tagger: MusicTagger, features: Features, tags: Mapping[str, Sequence[Mapping[str, Sequence[str]]]], path: Path
) -> Path:
    """Compare what is above each threshold with the true tags; see `SCORES`."""
    probabilities = tagger.probabilities(features)
    targets = {group: tagger.vocabulary.encode(group, tags[group]) for group in tagger.groups}
    result: dict[str, Any] = {"songs": len(features)}
    for threshold in THRESHOLDS:
        result[f"{threshold:g}"] = {
            group: {
                name: tag_scores(probabilities[group][:, columns] > threshold, true[:, columns])._asdict()
                for name, columns in tagger.vocabulary.columns(group).items()
                if columns.start < columns.stop
            }
            for group, true in targets.items()
        }
    return write_atomically(path, (json.dumps(result, indent=1) + "\n").encode())


_EPSILON = 1e-5  # of the released code, in every denominator


class TagScores(NamedTuple):
    """Means over songs, each 0..1, higher is better.

    Attributes
    ----------
    accuracy
        Share of outputs that are right, those that are rightly off included: near 1 for any tagger that says little.
    recall
        Share of the true tags that were found.
    f1
        Harmonic mean of precision and recall.
    """

    accuracy: float
    recall: float
    f1: float


def tag_scores(predicted: npt.NDArray[np.bool_], true: npt.NDArray[np.bool_]) -> TagScores:
    """Compare chosen outputs with targets, song by song, and take the mean over songs.

    Follows `F1_score` of the released code (`und_eval/models/mlp.py`): 1e-5 is added to each denominator, so that a
    song without true or without chosen tags scores 0, and a song whose outputs are all right scores 1 throughout. The
    choice is by threshold alone: the rule that gives every dimension a tag is not part of it. Both are bool, shape
    (songs, outputs), the outputs of one dimension; without songs or outputs the scores are NaN.
    """
    if not true.size:
        return TagScores(np.nan, np.nan, np.nan)
    accuracy = (predicted == true).mean(1)
    hits = (predicted & true).sum(1)
    precision = hits / (predicted.sum(1) + _EPSILON)
    recall = hits / (true.sum(1) + _EPSILON)
    f1 = 2 * precision * recall / (precision + recall + _EPSILON)
    whole = accuracy == 1
    means = [np.where(whole, 1.0, values).mean() for values in (accuracy, recall, f1)]
    return TagScores(*(float(mean) for mean in means))


# --- songs: rows of caimd, each with its recording


class Song(NamedTuple):
    """A row and how its recording is had: a column of audio is read when it is needed, not before."""

    id: str
    row: Mapping[str, Any]
    read: Callable[[], Source]


def load_songs(data: TaggerData, split: str, folder: Path) -> list[Song]:
    """Return the usable songs of a split, in its order."""
    rows = song_rows(data.dataset, data.config, split, folder)
    words, readers = _apart(rows, data.audio_column) if data.audio_column else (list(rows), _files(rows, data, folder))
    check_ids([str(row.get("id")) for row in words], f"{data.dataset}, {split}")
    pairs = list(zip(words, readers, strict=True))
    songs = [Song(str(row["id"]), row, read) for row, read in pairs if read is not None]
    missing = [str(row["id"]) for row, read in pairs if read is None]
    if missing and data.missing == "error":
        raise NoDataError(
            f"{len(missing)} of {len(pairs)} songs have no recording in {data.audio or data.audio_column}, the first "
            f"is {missing[0]!r}; add it, or let data.missing be 'skip'"
        )
    if not songs:
        raise NoDataError(
            f"split {split!r} of {data.dataset} has no song with a recording in {data.audio or data.audio_column}"
        )
    return songs


def _apart(rows: Any, column: str) -> tuple[list[Mapping[str, Any]], list[Callable[[], Source] | None]]:
    """Return rows without their recordings, and how each recording is read."""
    readers: list[Callable[[], Source] | None]
    if isinstance(rows, list):
        recordings_of_rows = [row.get(column) for row in rows]
        readers = [
            None if recordings_of_rows[i] is None else functools.partial(recordings_of_rows.__getitem__, i)
            for i in range(len(recordings_of_rows))
        ]
        return rows, readers
    if column not in rows.features:
        raise UnknownNameError("column", column, rows.features)
    sounds = rows.select_columns([column])
    lacking = sounds.data.column(column).is_null().to_pylist()
    readers = [None if lacks else functools.partial(lambda i: sounds[i][column], i) for i, lacks in enumerate(lacking)]
    return list(rows.remove_columns([column])), readers


def _files(rows: Any, data: TaggerData, folder: Path) -> list[Callable[[], Source] | None]:
    place = beside(folder, str(data.audio))
    if not place.is_dir():
        raise NoDataError(f"there is no folder {data.audio}; let data.audio say where the recordings are")
    encoder = ENCODERS.get(str(data.encoder.get("name")))
    precomputed = encoder is not None and encoder.kind == "precomputed"
    suffixes = (FEATURES_SUFFIX,) if precomputed else AUDIO_SUFFIXES
    path_of_song = recordings(place, [str(row.get("id")) for row in rows], suffixes)
    paths = [path_of_song.get(str(row.get("id"))) for row in rows]
    return [None if path is None else functools.partial(Path, path) for path in paths]
