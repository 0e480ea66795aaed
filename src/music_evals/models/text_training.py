"""How a language model is tuned to write lyrics, or to say what lyrics are about; all weights, or LoRA by peft.

The loss is the mean negative log-likelihood of the answers' tokens. After each epoch the loss of the songs held out for
validation decides whether the weights are the best so far, and when to stop. Every `checkpoint_every` steps one file is
written that holds all it needs to go on: what is tuned, its best state, optimiser and history. Batches and dropout are
drawn from the seed, the epoch and the step. A run that is killed and started again therefore ends with the same
weights, bit for bit, on the same machine with the same number of threads.

The result is a whole model of transformers, LoRA's matrices added to the weights: `lyric_writers.TransformersWriter`
and the verb ``write-lyrics`` read it, without peft.
"""

from __future__ import annotations

import json
import math
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from music_evals.errors import BackendError, InvalidInputError, NoDataError, OtherRunError, UnknownNameError, importing
from music_evals.files import folder_written_whole
from music_evals.lyrics.model_files import choose_device
from music_evals.models._checkpoints import (
    optimizer_tensors,
    read_checkpoint,
    restore_optimizer,
    section,
    seeded,
    write_checkpoint,
    write_rows,
)
from music_evals.models._song_rows import beside
from music_evals.models._writing import LanguageModel, load_language_model, read_weights
from music_evals.models.text_examples import Tokenized, content_hash, load_text_songs, tokenized
from music_evals.models.text_recipe import TextModel, TextRecipe, build_text_recipe

__all__ = ["JUDGED_LOSSES", "TextTrainingResult", "train_text_model"]

CHECKPOINT, LOG = "run/checkpoint.safetensors", "run/log.csv"

JUDGED_LOSSES: Final = "run/judged.csv"
"""Loss of each judged song in nats a token of its answer: columns id, tokens, base, tuned."""

MODEL: Final = "model"
"""Folder below `out` that the tuned model is written to."""

_UNSEEN = -100  # the label of tokens that are not learnt


class TextTrainingResult(NamedTuple):
    """What a run left behind.

    Attributes
    ----------
    folder
        Of the tuned model, which the verb ``write-lyrics`` takes.
    epochs, best_epoch
        Epochs run, and the one whose weights were kept, counted from 1.
    songs
        That were trained on, without those held out for validation.
    left_out
        Why -> songs of the training split that were not: see `text_examples.TextSongs`; ``"too long"``: more tokens
        than the model reads.
    validation_loss
        Nats a token, of the best epoch.
    base_loss
        Nats a token of the same songs, before.
    judged
        `JUDGED_LOSSES`, or None where no judged song has theme and lyrics.
    seconds
        Of training, over all sittings.

    """

    folder: Path
    epochs: int
    best_epoch: int
    songs: int
    left_out: dict[str, int]
    validation_loss: float
    base_loss: float
    judged: Path | None
    seconds: float


def train_text_model(
    values: Mapping[str, Any],
    folder: Path,
    out: Path,
    *,
    resume: bool = True,
    device: str | None = None,
    progress: bool = False,
    trust_remote_code: bool = False,
) -> TextTrainingResult:
    """Tune the language model of a recipe; what ``music-evals train`` does with one.

    It writes `CHECKPOINT` and `LOG` (one row an epoch) while it trains, and at the end, not before, `JUDGED_LOSSES` and
    the folder `MODEL`, which is replaced as a whole.

    Parameters
    ----------
    values
        Sections of the recipe, as `recipe.read_sections` gives them.
    folder
        Of the recipe: paths in it are relative to that, or else to the working folder.
    out
        Folder that is written to.
    resume
        Go on from the checkpoint where there is one. False starts again.
    device
        PyTorch device; by default a GPU if there is one.
    progress
        Show a bar on stderr.
    trust_remote_code
        Whether code in the repository of the model may run here; no recipe can say so.

    Raises
    ------
    UnknownNameError, InvalidInputError
        A setting that does not exist or is outside its range, or the loss is no longer a finite number.
    NoDataError
        No such data, or too few songs to train on.
    ModelUnavailableError, MissingBackendError
        The model cannot be loaded, or peft is not installed.
    CorruptRecordsError
        The checkpoint is damaged, or of another recipe, model or other songs.
    BackendError
        Out of memory.
    OutputError
        The folder cannot be written to.

    """
    recipe = build_text_recipe(values)
    songs = load_text_songs(recipe.data, folder, seed=recipe.training.seed)
    base = str(beside(folder, recipe.model.base))
    loaded = load_language_model(base, recipe.model.revision, trust=trust_remote_code)
    context_length = getattr(loaded.config.get_text_config(), "max_position_embeddings", None)
    most = min((n for n in (context_length, recipe.training.max_tokens) if n is not None), default=None)
    (train, n_long), (held, _), (judged, _) = (tokenized(part, loaded.tokenizer, most) for part in songs[:3])
    if not train or not held:
        raise NoDataError(f"no song is left: all are longer than {most} tokens; raise training.max_tokens")
    left_out = {why: len(ids) for why, ids in songs.left_out.items()} | ({"too long": n_long} if n_long else {})
    content = {"base": loaded.place.identity, "songs": content_hash((train, held))}
    with seeded(recipe.training.seed, recipe.training.threads):
        model = _tunable(
            read_weights(base, loaded, _weights_type(recipe), trust=trust_remote_code),
            recipe,
            str(choose_device(device)),
        )
        run = _TextRun(model, recipe, (train, held), out, content)
        try:
            before = run.losses(judged)
            run.fit(resume=resume, progress=progress)
            after = run.best_losses(judged)
        except torch.OutOfMemoryError as error:
            raise BackendError(
                "out of memory; lower training.at_once or training.max_tokens, set training.gradient_checkpointing, "
                "or tune with LoRA"
            ) from error
    rows = [
        {"id": song.id, "tokens": len(song.ids) - song.n_asked, "base": first, "tuned": last}
        for song, first, last in zip(judged, before, after, strict=True)
    ]
    if rows:
        write_rows(out / JUDGED_LOSSES, rows)
    _publish(model, loaded, recipe.model, out / MODEL)
    return TextTrainingResult(
        folder=out / MODEL,
        epochs=len(run.history),
        best_epoch=run.best_epoch,
        songs=len(train),
        left_out=left_out,
        validation_loss=run.history[run.best_epoch - 1]["validation_loss"],
        base_loss=run.base_loss,
        judged=out / JUDGED_LOSSES if rows else None,
        seconds=round(math.fsum(row["seconds"] for row in run.history), 3),
    )


def _weights_type(recipe: TextRecipe) -> torch.dtype:
    # Adam loses small steps in 16 bits: what is tuned is always float32
    frozen = recipe.model.tuning == "lora" and recipe.training.precision == "bfloat16"
    return torch.bfloat16 if frozen else torch.float32


def _tunable(model: Any, recipe: TextRecipe, device: str) -> Any:
    """Return the model with the weights that are tuned asking for gradients, and no others."""
    settings = recipe.model
    if settings.tuning == "lora":
        with importing("tuning", "tuning with LoRA"):
            import peft
        targets = settings.targets if isinstance(settings.targets, str) else list(settings.targets)
        config = peft.LoraConfig(
            r=settings.rank,
            lora_alpha=settings.alpha,
            lora_dropout=settings.dropout,
            target_modules=targets,
            task_type="CAUSAL_LM",
        )
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FutureWarning)  # between peft and transformers, nothing of ours
                model = peft.get_peft_model(model, config)
        except ValueError as error:  # no layer has such a name
            names = sorted({name.split(".")[-1] for name, _ in model.named_modules() if name})
            raise UnknownNameError("layer for LoRA (setting model.targets)", str(settings.targets), names) from error
    else:
        model.requires_grad_()
    model.config.use_cache = False
    if recipe.training.gradient_checkpointing:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # the new name is not yet in every transformers 5
            model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    return model.to(device)


class _TextRun:
    """A tuning run: everything that changes from step to step, and its checkpoint."""

    def __init__(
        self,
        model: Any,
        recipe: TextRecipe,
        parts: tuple[Sequence[Tokenized], Sequence[Tokenized]],
        out: Path,
        content: Mapping[str, str],
    ) -> None:
        self.model, self.settings = model, recipe.training
        self.train, self.held = parts
        self.checkpoint, self.log = out / CHECKPOINT, out / LOG
        self.key = json.loads(json.dumps({**recipe.key(), **content}))  # as JSON will give it back
        self.tuned = {name: value for name, value in model.named_parameters() if value.requires_grad}
        self.device = next(iter(self.tuned.values())).device
        self.optimizer = torch.optim.AdamW(
            self.tuned.values(), lr=self.settings.learning_rate, weight_decay=self.settings.weight_decay
        )
        self.steps_an_epoch = -(-len(self.train) // self.settings.batch_size)
        self.step = 0  # of the whole run
        self.sums: list[float] = [0.0, 0.0, 0.0]  # of the running epoch: loss, tokens, seconds
        self.history: list[dict[str, Any]] = []
        self.base_loss = math.nan
        self.best_epoch = 0
        self.best: dict[str, Tensor] = {}

    def fit(self, *, resume: bool, progress: bool) -> None:
        from tqdm import tqdm

        if resume and self.checkpoint.exists():
            self._restore()
        else:
            self.base_loss = self._validation_loss()
        total = self.settings.epochs * self.steps_an_epoch
        bar = tqdm(total=total, initial=self.step, desc="tuning", unit="step", disable=not progress)
        with bar:
            while self.step < total and not self._is_over():
                self._take_step(total)
                bar.update()
                if self.step % self.steps_an_epoch == 0:
                    self._end_epoch()
                    bar.set_postfix(validation=f"{self.history[-1]['validation_loss']:.4f}", refresh=False)
                elif self.step % self.settings.checkpoint_every == 0:
                    self._save()

    def losses(self, songs: Sequence[Tokenized]) -> list[float]:
        """Return nats a token of each song's answer, with the weights as they are."""
        self.model.eval()
        nats_per_token: list[float] = []
        with torch.no_grad():
            for song in songs:
                total, n = self._sum([song])
                nats_per_token.append(float(total) / n)
        return nats_per_token

    def best_losses(self, songs: Sequence[Tokenized]) -> list[float]:
        """Return the same with the best weights, which the model then keeps."""
        self._load(self.best)
        return self.losses(songs)

    def _is_over(self) -> bool:
        return len(self.history) - self.best_epoch >= self.settings.patience

    def _take_step(self, total: int) -> None:
        started = time.monotonic()
        epoch, place = divmod(self.step, self.steps_an_epoch)
        order = np.random.default_rng((self.settings.seed, 2, epoch)).permutation(len(self.train))
        size = self.settings.batch_size
        batch = [self.train[index] for index in order[place * size : (place + 1) * size]]
        # dropout is drawn from the step, so that a run that was stopped draws the same
        torch.manual_seed(int(np.random.SeedSequence((self.settings.seed, 3, self.step)).generate_state(1)[0]))
        self.model.train()
        self.optimizer.zero_grad(set_to_none=True)
        n_tokens = sum(len(song.ids) - song.n_asked for song in batch)
        loss = 0.0
        for start in range(0, len(batch), self.settings.at_once):
            part, _ = self._sum(batch[start : start + self.settings.at_once])
            torch.autograd.backward(part / n_tokens)
            loss += float(part.detach())
        if not math.isfinite(loss):
            raise InvalidInputError(
                f"the loss is {loss} in step {self.step + 1}; lower training.learning_rate and start again"
            )
        torch.nn.utils.clip_grad_norm_(list(self.tuned.values()), self.settings.max_gradient_norm)
        for group in self.optimizer.param_groups:
            group["lr"] = self.settings.learning_rate * _share(self.step, total, self.settings.warmup)
        self.optimizer.step()
        self.step += 1
        self.sums = [
            was + more for was, more in zip(self.sums, (loss, n_tokens, time.monotonic() - started), strict=True)
        ]

    def _sum(self, songs: Sequence[Tokenized]) -> tuple[Tensor, int]:
        """Return the summed negative log-likelihood of the songs' answers, and how many tokens they have."""
        longest = max(len(song.ids) for song in songs)
        ids = torch.zeros((len(songs), longest), dtype=torch.long)  # (songs, tokens), padded on the right
        labels = torch.full_like(ids, _UNSEEN)
        for row, song in enumerate(songs):
            ids[row, : len(song.ids)] = torch.tensor(song.ids)
            labels[row, song.n_asked : len(song.ids)] = torch.tensor(song.ids[song.n_asked :])
        mask = (torch.arange(longest) < torch.tensor([[len(song.ids)] for song in songs])).long()
        mixed = torch.autocast(self.device.type, torch.bfloat16, enabled=self.settings.precision == "bfloat16")
        with mixed:
            logits = self.model(input_ids=ids.to(self.device), attention_mask=mask.to(self.device)).logits
        total = functional.cross_entropy(
            logits[:, :-1].float().flatten(0, 1),
            labels[:, 1:].flatten().to(self.device),
            ignore_index=_UNSEEN,
            reduction="sum",
        )
        return total, sum(len(song.ids) - song.n_asked for song in songs)

    def _validation_loss(self) -> float:
        sizes = [len(song.ids) - song.n_asked for song in self.held]
        return math.fsum(loss * n for loss, n in zip(self.losses(self.held), sizes, strict=True)) / sum(sizes)

    def _end_epoch(self) -> None:
        started = time.monotonic()
        loss, seconds = self.sums[0] / self.sums[1], self.sums[2]
        validation_loss = self._validation_loss()
        held = [row["validation_loss"] for row in self.history]
        self.history.append(
            {
                "epoch": len(self.history) + 1,
                "loss": loss,
                "validation_loss": validation_loss,
                "seconds": round(seconds + time.monotonic() - started, 4),
            }
        )
        self.sums = [0.0, 0.0, 0.0]
        if not held or validation_loss < min(held):
            self.best_epoch = len(self.history)
            self.best = {name: value.detach().cpu().clone() for name, value in self.tuned.items()}
        self._save()
        write_rows(self.log, self.history)

    def _load(self, tensors: Mapping[str, Tensor]) -> None:
        with torch.no_grad():
            for name, value in self.tuned.items():
                value.copy_(tensors[name])

    def _save(self) -> None:
        tensors: dict[str, Tensor] = {f"tuned.{name}": value for name, value in self.tuned.items()}
        tensors |= {f"best.{name}": value for name, value in self.best.items()}
        tensors |= optimizer_tensors(self.optimizer)
        state = {name: getattr(self, name) for name in _STATE}
        write_checkpoint(self.checkpoint, tensors, {"key": self.key, **state})

    def _restore(self) -> None:
        advice = f"delete {self.checkpoint}, or start again with `resume=False`"
        state, tensors = read_checkpoint(self.checkpoint, advice)
        if state["key"] != self.key:
            raise OtherRunError(f"the checkpoint is of another recipe, another model or other songs; {advice}")
        for name in _STATE:
            setattr(self, name, state[name])
        self._load(section(tensors, "tuned."))
        self.best = section(tensors, "best.")
        restore_optimizer(self.optimizer, tensors)


_STATE = ("step", "sums", "history", "base_loss", "best_epoch")
"""What a checkpoint holds beside tensors."""


def _share(step: int, total: int, warmup: float) -> float:
    """Return the learning rate of a step as a share of its peak."""
    rise = math.ceil(warmup * total)
    if step < rise:
        return (step + 1) / rise
    return 0.5 * (1 + math.cos(math.pi * (step - rise) / max(1, total - rise)))


def _publish(model: Any, loaded: LanguageModel, settings: TextModel, folder: Path) -> None:
    """Write the whole model and its tokenizer."""
    whole = model.merge_and_unload() if settings.tuning == "lora" else model
    whole.config.use_cache = True
    with folder_written_whole(folder) as part:
        whole.save_pretrained(part)
        loaded.tokenizer.save_pretrained(part)
