"""How a music tagger is trained: features of a frozen encoder, then one network a group of annotators.

The recipe is MuChin's (`und_eval/train` of the released code): binary cross-entropy on logits, each tag weighted by how
rare it is, Adam at a constant rate, no validation; the last weights count. Every `checkpoint_every` epochs one file a
group is written that holds all it needs to go on: weights, optimiser, history. Batches are drawn from a seed that the
epoch is part of. A run that is killed and started again therefore ends with the same weights, bit for bit, on the same
machine with the same number of threads; and what was encoded is not encoded again.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from music_evals.annotations import GROUPS
from music_evals.errors import InvalidInputError, OtherRunError
from music_evals.files import write_atomically
from music_evals.lyrics.model_files import choose_device
from music_evals.models._checkpoints import (
    on_threads,
    optimizer_tensors,
    read_checkpoint,
    restore_optimizer,
    section,
    write_checkpoint,
    write_rows,
)
from music_evals.models._encoder_audio import Extraction
from music_evals.models._song_rows import beside
from music_evals.models.music_encoders import load_music_encoder
from music_evals.models.music_tagger import MusicTagger, MusicTaggerConfig, probe_network
from music_evals.models.recipe import from_mapping
from music_evals.models.tag_recipe import TaggerRecipe, TaggerTraining, build_tagger_recipe
from music_evals.models.tag_scores import tag_scores
from music_evals.models.tag_songs import Song, Sources, load_songs
from music_evals.models.tag_vocabulary import THRESHOLDS, Clusters, TagVocabulary, read_clusters, row_tags

__all__ = ["SCORES", "TaggerTrainingResult", "positive_weights", "train_tagger"]

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
    values
        Sections of the recipe, as `recipe.read_sections` gives them.
    folder
        Of the recipe: paths in it are relative to that, or else to the working folder.
    out
        Folder that is written to.
    resume
        Go on from checkpoints where there are any. False starts again; stored features are kept.
    device
        PyTorch device; by default a GPU if there is one.
    progress
        Show bars on stderr.
    trust_remote_code
        Whether code in the repository of the encoder may run here; no recipe can say so.
    encoder
        In place of that of the recipe, which it must be.

    Raises
    ------
    UnknownNameError, InvalidInputError
        A setting that does not exist or is outside its range, or the loss is no longer a finite number.
    NoDataError
        No such data, a song without recording, or no tag often enough.
    InvalidTagsError
        A row without descriptions.
    ModelUnavailableError, MissingBackendError
        The encoder cannot be loaded.
    CorruptRecordsError
        A checkpoint is damaged, or of another recipe or other data.
    OutputError
        The folder cannot be written to.

    """
    recipe = build_tagger_recipe(values)
    device = str(choose_device(device))
    base = _config(recipe, input_size=1)
    clusters = read_clusters(beside(folder, recipe.data.clusters)) if recipe.data.clusters else None
    songs = load_songs(recipe.data, recipe.data.train, folder)[: recipe.data.max_songs]
    tags = _tags(songs, base.groups, clusters)  # before anything is encoded: bad rows are found at once
    vocabulary = TagVocabulary.build(tags, min_count=recipe.data.min_count)
    # also those that are needed at the end only
    test = load_songs(recipe.data, recipe.data.test, folder) if recipe.data.test else []
    true = _tags(test, vocabulary.groups, clusters)
    encoder = encoder or _encoder(recipe, base, device, trust=trust_remote_code)
    features = _features(encoder, songs, progress=progress)
    test_features = _features(encoder, test, progress=progress)
    config = _config(recipe, input_size=encoder.size)
    probes, losses, started = {}, {}, time.monotonic()
    with on_threads(recipe.training.threads):
        for group in vocabulary.groups:
            task = _Task(group, features, vocabulary.encode(group, tags[group]))
            run = _ProbeRun(task, config, recipe, out / "run", device)
            run.fit(resume=resume, progress=progress)
            probes[group], losses[group] = run.weights(), run.history[-1]["loss"]
    seconds = round(time.monotonic() - started, 3)
    tagger = _publish(config, vocabulary, probes, out)
    scores = _write_scores(tagger, test_features, true, out / SCORES) if test else None
    outputs = {group: vocabulary.size(group) for group in vocabulary.groups}
    return TaggerTrainingResult(out, len(songs), outputs, recipe.training.epochs, losses, seconds, scores)


def positive_weights(targets: npt.NDArray[np.bool_]) -> Features:
    """Return the weight of each tag's positive cases: the largest count over its own, counts starting at 1.

    Parameters
    ----------
    targets
        Bool, shape (songs, outputs).

    Returns
    -------
    numpy.ndarray
        float32, shape (outputs,), at least 1.

    """
    counts = 1 + targets.sum(0, dtype=np.float32)
    weights: Features = counts.max() / counts
    return weights


def _config(recipe: TaggerRecipe, *, input_size: int) -> MusicTaggerConfig:
    for name in ("input_size", "groups", "encoder", "model_type"):
        if name in recipe.model:
            raise InvalidInputError(
                f"model.{name} follows from the section data; leave it away, and set data.encoder or data.groups"
            )
    settings = {"model_type": recipe.model_type, "groups": recipe.data.groups, "encoder": recipe.data.encoder}
    config: MusicTaggerConfig = from_mapping(
        MusicTaggerConfig, {**settings, "input_size": input_size, **recipe.model}, "model setting"
    )
    return config


def _encoder(recipe: TaggerRecipe, config: MusicTaggerConfig, device: str | None, *, trust: bool) -> Extraction:
    return load_music_encoder(
        config.encoder_settings, device=device, trust_remote_code=trust, cache=recipe.data.features_cache or True
    )


def _tags(
    songs: Sequence[Song], groups: Sequence[str], clusters: Clusters | None
) -> dict[str, list[dict[str, list[str]]]]:
    return {group: [row_tags(song.row, group, clusters) for song in songs] for group in groups}


def _features(encoder: Extraction, songs: Sequence[Song], *, progress: bool) -> Features:
    """Return the features of songs, shape (songs, size)."""
    features = [feature for _, feature in encoder.extract(Sources(songs), progress=progress and bool(songs))]
    return np.stack(features) if features else np.empty((0, encoder.size), dtype=np.float32)


class _Task(NamedTuple):
    """What one group's network learns."""

    group: str
    features: Features  # (songs, input_size)
    targets: npt.NDArray[np.bool_]  # (songs, outputs)


class _ProbeRun:
    """The training of one group's network: everything that changes from epoch to epoch, and its checkpoint."""

    def __init__(self, task: _Task, config: MusicTaggerConfig, recipe: TaggerRecipe, folder: Path, device: str) -> None:
        group, features, targets = task
        self.settings: TaggerTraining = recipe.training
        self.group = group
        self.checkpoint, self.log = folder / f"{group}.safetensors", folder / f"{group}.csv"
        content = hashlib.sha256(features.tobytes() + np.packbits(targets).tobytes()).hexdigest()
        # as JSON will give it back
        self.key = json.loads(json.dumps({**recipe.key(), "group": group, "shape": targets.shape, "content": content}))
        self.seed = (self.settings.seed, GROUPS.index(group))
        with torch.random.fork_rng():
            torch.manual_seed(int(np.random.SeedSequence(self.seed).generate_state(1)[0]))
            self.probe = probe_network(config.input_size, config.hidden_size, targets.shape[1]).to(device)
        self.optimizer = torch.optim.Adam(self.probe.parameters(), lr=self.settings.learning_rate)
        self.features = torch.from_numpy(features).to(device)
        self.targets = torch.from_numpy(targets).to(device)
        self.pos_weight = torch.from_numpy(positive_weights(targets)).to(device)
        self.history: list[dict[str, float]] = []

    def fit(self, *, resume: bool, progress: bool) -> None:
        from tqdm import tqdm

        epochs = self.settings.epochs
        if resume and self.checkpoint.exists():
            self._restore()
        bar = tqdm(total=epochs, initial=len(self.history), desc=self.group, unit="epoch", disable=not progress)
        with bar:
            while len(self.history) < epochs:
                self._epoch()
                bar.set_postfix(loss=f"{self.history[-1]['loss']:.4f}", refresh=False)
                bar.update()
                if len(self.history) % self.settings.checkpoint_every == 0 or len(self.history) == epochs:
                    self._save()

    def weights(self) -> dict[str, Tensor]:
        return {name: value.detach().cpu() for name, value in self.probe.state_dict().items()}

    def _epoch(self) -> None:
        started, epoch = time.monotonic(), len(self.history)
        order = np.random.default_rng((*self.seed, epoch)).permutation(len(self.features))
        loss, f1 = self._pass(torch.from_numpy(order).to(self.features.device))
        if not np.isfinite(loss):
            raise InvalidInputError(
                f"the loss of {self.group} is {loss} in epoch {epoch + 1}; lower learning_rate and start again"
            )
        seconds = round(time.monotonic() - started, 4)
        self.history.append({"epoch": epoch + 1, "loss": loss, "f1": f1, "seconds": seconds})

    def _pass(self, order: Tensor) -> tuple[float, float]:
        """Learn from all songs once; return the mean loss and the F1 of all outputs above `LOG_LOGIT`."""
        total, hits, n_positive = torch.zeros(3, dtype=torch.float64, device=order.device)
        for start in range(0, len(order), self.settings.batch_size):
            batch = order[start : start + self.settings.batch_size]
            true = self.targets[batch]  # (batch, outputs)
            logits = self.probe(self.features[batch])
            loss = functional.binary_cross_entropy_with_logits(logits, true.float(), pos_weight=self.pos_weight)
            self.optimizer.zero_grad(set_to_none=True)
            torch.autograd.backward(loss)
            self.optimizer.step()
            on = logits.detach() > LOG_LOGIT
            total += loss.detach() * len(batch)
            hits += (on & true).sum()
            n_positive += on.sum() + true.sum()
        return float(total) / len(order), float(2 * hits / n_positive) if n_positive else 0.0

    def _save(self) -> None:
        tensors = {f"probe.{name}": value for name, value in self.probe.state_dict().items()}
        tensors |= optimizer_tensors(self.optimizer)
        write_checkpoint(self.checkpoint, tensors, {"key": self.key, "history": self.history})
        write_rows(self.log, self.history)

    def _restore(self) -> None:
        advice = f"delete {self.checkpoint}, or start again with `resume=False`"
        state, tensors = read_checkpoint(self.checkpoint, advice)
        if state["key"] != self.key or len(state["history"]) > self.settings.epochs:
            raise OtherRunError(f"the checkpoint is of another recipe, of other songs or of a later epoch; {advice}")
        self.history = state["history"]
        self.probe.load_state_dict(section(tensors, "probe."))
        restore_optimizer(self.optimizer, tensors)


def _publish(
    config: MusicTaggerConfig, vocabulary: TagVocabulary, probes: Mapping[str, Mapping[str, Tensor]], out: Path
) -> MusicTagger:
    with torch.device("meta"):  # its weights are there already
        tagger = MusicTagger(config, vocabulary)
    state = {f"probes.{group}.{name}": value for group, probe in probes.items() for name, value in probe.items()}
    tagger.load_state_dict(state, assign=True)
    tagger.eval()
    tagger.save_pretrained(out)
    return tagger


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
