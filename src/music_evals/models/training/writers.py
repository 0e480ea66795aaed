"""How a language model is tuned to write lyrics, or to say what lyrics are about; all weights, or LoRA by peft.

The prompt is that of ``write-lyrics``, to the letter, and so is the way in which the model reads it: as the message of
a user where the tokenizer has a chat template, else as it stands. The answer is the song's own words under the headers
of the prompt, without numbers; songs that the model will be evaluated on are left out, and so are their near copies.

The loss is the mean negative log-likelihood of the answers' tokens. After each epoch the loss of the songs held out for
validation decides whether the weights are the best so far, and when to stop. It is a run of the loop
(`training.loop.Run`), with a checkpoint every `checkpoint_every` steps. Batches and dropout are drawn from the seed,
the epoch and the step: a run that is killed and started again ends with the same weights, bit for bit, on the same
machine with the same number of threads.

The result is a whole model of transformers, LoRA's matrices added to the weights: `lyric_writers.TransformersWriter`
and the verb ``write-lyrics`` read it, without peft.
"""

from __future__ import annotations

import hashlib
import json
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from music_evals.annotations import sections_of_rows, sections_text, theme_of_row
from music_evals.errors import (
    BackendError,
    CorruptRecordsError,
    InvalidLyricsError,
    InvalidPatternError,
    NoDataError,
    UnknownNameError,
    importing,
)
from music_evals.files import folder_written_whole
from music_evals.lyrics.model_files import choose_device
from music_evals.lyrics.near_copies import NearCopies
from music_evals.lyrics.prompts import lyric_prompt, theme_prompt
from music_evals.models.language_models import load_language_model, prompt_text, read_weights
from music_evals.models.training.data import beside, check_ids, song_rows
from music_evals.models.training.recipe import Recipe, build_recipe
from music_evals.models.training.run import CHECKPOINT, LOG, Run, section, seeded, write_rows
from music_evals.models.training.settings import TextData, TextTraining

__all__ = [
    "JUDGED_LOSSES",
    "TextExample",
    "TextSongs",
    "TextTrainingResult",
    "Tokenized",
    "load_text_songs",
    "tokenized",
    "train_text_model",
]

JUDGED_LOSSES: Final = "run/judged.csv"
"""Loss of each judged song in nats a token of its answer: columns id, tokens, base, tuned."""

MODEL: Final = "model"
"""Folder below `out` that the tuned model is written to."""

_UNSEEN = -100  # the label of tokens that are not learnt

INCOMPLETE, JUDGED, REPEATED = "without theme or lyrics", "judged or a near copy", "repeated"
"""Why a song of the training split is not trained on."""


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
        Why -> songs of the training split that were not: ``"without theme or lyrics"``; ``"judged or a near copy"``
        of a judged song; ``"repeated"``, a near copy of an earlier training song; ``"too long"``: more tokens than the
        model reads.
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
    values, folder
        Sections of the recipe, as `recipe.read_sections` gives them, and the folder that paths in it are relative to.
    out, resume, device, progress, trust_remote_code
        As in `loop.train_from_file`.

    Raises
    ------
    MusicEvalsError
        As in `loop.train_from_file`. Besides: `NoDataError` for too few songs to train on, `ModelUnavailableError` and
        `MissingBackendError` where the model cannot be loaded or peft is not installed, `BackendError` out of memory.
    """
    recipe = build_recipe(values)
    songs = load_text_songs(recipe.data, folder, seed=recipe.training.seed)
    base = str(beside(folder, recipe.model.base))
    loaded = load_language_model(base, recipe.model.revision, trust=trust_remote_code)
    context_length = getattr(loaded.config.get_text_config(), "max_position_embeddings", None)
    most = min((n for n in (context_length, recipe.training.max_tokens) if n is not None), default=None)
    (train, n_long), (held, _), (judged, _) = (tokenized(part, loaded.tokenizer, most) for part in songs[:3])
    if not train or not held:
        raise NoDataError(f"no song is left: all are longer than {most} tokens; raise training.max_tokens")
    left_out = {why: len(ids) for why, ids in songs.left_out.items()} | ({"too long": n_long} if n_long else {})
    # what is learnt, and what decides when to stop
    learnt = repr([[example.ids for example in part] for part in (train, held)])
    content = {"base": loaded.place.identity, "songs": hashlib.sha256(learnt.encode()).hexdigest()[:16]}
    with seeded(recipe.training.seed, recipe.training.threads):
        # Adam loses small steps in 16 bits: what is tuned is always float32
        frozen = recipe.model.tuning == "lora" and recipe.training.precision == "bfloat16"
        weights = read_weights(base, loaded, torch.bfloat16 if frozen else torch.float32, trust=trust_remote_code)
        model = _tunable(weights, recipe, str(choose_device(device)))
        run = _TextRun(model, recipe, (train, held), out, content)
        try:
            before = run.losses_of(judged)
            run.fit(resume=resume, progress=progress)
            after = run.losses_of(judged)
        except torch.OutOfMemoryError as error:
            raise BackendError(
                "out of memory; lower training.at_once or training.max_tokens, set training.gradient_checkpointing, "
                "or tune with LoRA"
            ) from error
    rows = [
        {"id": song.id, "tokens": song.n_learnt, "base": first, "tuned": last}
        for song, first, last in zip(judged, before, after, strict=True)
    ]
    if rows:
        write_rows(out / JUDGED_LOSSES, rows)
    whole = model.merge_and_unload() if recipe.model.tuning == "lora" else model
    whole.config.use_cache = True
    with folder_written_whole(out / MODEL) as part:
        whole.save_pretrained(part)
        loaded.tokenizer.save_pretrained(part)
    return TextTrainingResult(
        folder=out / MODEL,
        epochs=len(run.history),
        best_epoch=run.best_epoch,
        songs=len(train),
        left_out=left_out,
        validation_loss=run.best_loss,
        base_loss=run.base_loss,
        judged=out / JUDGED_LOSSES if rows else None,
        seconds=round(run.seconds, 3),
    )


def _tunable(model: Any, recipe: Recipe, device: str) -> Any:
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


class _TextRun(Run):
    """A tuning run: what a step learns, and what a song costs."""

    title = "tuning"
    section = "tuned."

    def __init__(
        self,
        model: Any,
        recipe: Recipe,
        parts: tuple[Sequence[Tokenized], Sequence[Tokenized]],
        out: Path,
        content: Mapping[str, str],
    ) -> None:
        self.training: TextTraining = recipe.training
        self.train, self.held = parts
        key = json.loads(json.dumps({**recipe.key(), **content}))  # as JSON will give it back
        super().__init__(model, self.training, len(self.train), (out / CHECKPOINT, out / LOG), key)
        self.n_epochs, self.patience = self.training.epochs, self.training.patience
        self.save_steps = self.training.checkpoint_every
        self.base_loss = math.nan

    def fit(self, *, resume: bool, **how: Any) -> None:
        """Run to the end; what the model costs before is worked out first."""
        if not (resume and self.checkpoint.exists()):
            self.base_loss = self._validation_loss()
        super().fit(resume=resume, **how)

    def losses_of(self, songs: Sequence[Tokenized]) -> list[float]:
        """Return nats a token of each song's answer, with the weights as they are."""
        self.model.eval()
        with torch.no_grad():
            return [float(self._sum([song])) / song.n_learnt for song in songs]

    def _validation_loss(self) -> float:
        sizes = [song.n_learnt for song in self.held]
        return math.fsum(loss * n for loss, n in zip(self.losses_of(self.held), sizes, strict=True)) / sum(sizes)

    def order(self) -> npt.NDArray[np.int64]:
        return np.random.default_rng((self.training.seed, 2, len(self.history))).permutation(len(self.train))

    def rate(self) -> float:
        total = self.n_epochs * self.epoch_steps
        return self.training.learning_rate * _share(self.step, total, self.training.warmup)

    def weigh(self, rows: npt.NDArray[np.int64]) -> int:
        return sum(self.train[row].n_learnt for row in rows)

    def losses(self, rows: npt.NDArray[np.int64]) -> Iterator[Tensor]:
        """Yield what some of the songs add to the mean loss of a batch's tokens."""
        # dropout is drawn from the step, so that a run that was stopped draws the same
        torch.manual_seed(int(np.random.SeedSequence((self.training.seed, 3, self.step)).generate_state(1)[0]))
        n_tokens = self.weigh(rows)
        for start in range(0, len(rows), self.training.at_once):
            yield self._sum([self.train[row] for row in rows[start : start + self.training.at_once]]) / n_tokens

    def _sum(self, songs: Sequence[Tokenized]) -> Tensor:
        """Return the summed negative log-likelihood of the songs' answers."""
        longest = max(len(song.ids) for song in songs)
        ids = torch.zeros((len(songs), longest), dtype=torch.long)  # (songs, tokens), padded on the right
        labels = torch.full_like(ids, _UNSEEN)
        for row, song in enumerate(songs):
            ids[row, : len(song.ids)] = torch.tensor(song.ids)
            labels[row, song.n_asked : len(song.ids)] = torch.tensor(song.ids[song.n_asked :])
        mask = (torch.arange(longest) < torch.tensor([[len(song.ids)] for song in songs])).long()
        mixed = self.training.precision == "bfloat16"
        with torch.autocast(self.device.type, torch.bfloat16, enabled=mixed):
            logits = self.model(input_ids=ids.to(self.device), attention_mask=mask.to(self.device)).logits
        return functional.cross_entropy(
            logits[:, :-1].float().flatten(0, 1),
            labels[:, 1:].flatten().to(self.device),
            ignore_index=_UNSEEN,
            reduction="sum",
        )

    def row(self, loss: float) -> dict[str, Any]:
        """Return the loss of the epoch's songs and of those held out, nats a token."""
        return {"loss": loss, "validation_loss": self._validation_loss()}

    def weights(self) -> Mapping[str, Tensor]:
        return self.trained

    def state(self) -> dict[str, Any]:
        return {"key": self.key, "step": self.step, "sums": self.sums, "base_loss": self.base_loss}

    def load(self, state: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        self.step, self.sums, self.base_loss = state["step"], state["sums"], state["base_loss"]
        tuned = section(tensors, self.section)
        if other := tuned.keys() ^ self.trained.keys():
            raise CorruptRecordsError(
                f"the checkpoint does not hold the weights that are tuned ({min(other)}), as of another version of "
                f"transformers or peft; delete {self.checkpoint}, or start again without resuming (`resume=False`)"
            )
        self.model.load_state_dict(tuned, strict=False)


def _share(step: int, total: int, warmup: float) -> float:
    """Return the learning rate of a step as a share of its peak."""
    rise = math.ceil(warmup * total)
    if step < rise:
        return (step + 1) / rise
    return 0.5 * (1 + math.cos(math.pi * (step - rise) / max(1, total - rise)))


# --- songs as prompts and answers


class TextExample(NamedTuple):
    """One song: what is asked, and what is answered."""

    id: str
    prompt: str
    answer: str


class TextSongs(NamedTuple):
    """Songs of a recipe, in three parts that share no song and no near copy."""

    train: tuple[TextExample, ...]
    validation: tuple[TextExample, ...]
    judged: tuple[TextExample, ...]
    left_out: dict[str, tuple[str, ...]]


class Tokenized(NamedTuple):
    """One song as token ids; those from `n_asked` on are the answer."""

    id: str
    ids: tuple[int, ...]
    n_asked: int

    @property
    def n_learnt(self) -> int:
        """Tokens of the answer."""
        return len(self.ids) - self.n_asked


def load_text_songs(data: TextData, folder: Path, *, seed: int) -> TextSongs:
    """Return the songs of a recipe."""
    rows = [row for row in song_rows(data.dataset, data.config, data.train, folder)]  # noqa: C416 - a Dataset too
    check_ids([str(row.get("id")) for row in rows], f"{data.dataset}, {data.train}")
    other = data.judged or data.dataset
    config = data.judged_config or (data.config if other == data.dataset else None)
    judged = list(song_rows(other, config, data.judged_split, folder))
    # the songs that may be trained on, and the ids of the others by the reason
    theirs, known = _Known(judged), _Known(())
    examples: list[TextExample] = []
    left_out: dict[str, list[str]] = {}
    for row in rows:
        example = _example(row, data)
        if theirs.holds(row):
            left_out.setdefault(JUDGED, []).append(str(row["id"]))
        elif example is None:
            left_out.setdefault(INCOMPLETE, []).append(str(row["id"]))
        elif known.holds(row):
            left_out.setdefault(REPEATED, []).append(str(row["id"]))
        else:
            known.add(row)
            examples.append(example)
    if len(examples) < 2:
        raise NoDataError(
            f"{len(examples)} songs of {data.dataset}, {data.train}, are left to train on and at least 2 are needed; "
            f"left out: {', '.join(f'{len(ids)} {why}' for why, ids in left_out.items()) or 'none'}"
        )
    order = np.random.default_rng((seed, 1)).permutation(len(examples))
    n_held = min(max(1, round(data.validation * len(examples))), len(examples) - 1)
    held = set(order[:n_held].tolist())
    return TextSongs(
        tuple(example for place, example in enumerate(examples) if place not in held),
        tuple(example for place, example in enumerate(examples) if place in held),
        tuple(example for row in judged if (example := _example(row, data)) is not None),
        {why: tuple(ids) for why, ids in left_out.items()},
    )


class _Known:
    """Songs to keep apart from others: by id, words, title and performers, and near copies."""

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self._keys: set[tuple[str, ...]] = set()
        self._texts = NearCopies()
        for row in rows:
            self.add(row)

    def add(self, row: Mapping[str, Any]) -> None:
        self._keys.update(_keys(row))
        self._texts.add(_lines(row))

    def holds(self, row: Mapping[str, Any]) -> bool:
        return not self._keys.isdisjoint(_keys(row)) or self._texts.find(_lines(row)) is not None


def _keys(row: Mapping[str, Any]) -> list[tuple[str, ...]]:
    keys: list[tuple[str, ...]] = [("id", str(row["id"]))]
    if lines := _lines(row):
        keys.append(("words", *lines))
    if title := (row.get("title") or "").strip().casefold():
        keys.append(("title", title, *sorted(map(str.casefold, row.get("artist") or ()))))
    return keys


def _lines(row: Mapping[str, Any]) -> list[str]:
    return [line.strip() for section in row.get("structure") or () for line in section.get("lines") or ()]


def _example(row: Mapping[str, Any], data: TextData) -> TextExample | None:
    """Return a song as prompt and answer; None where theme, words or pattern are missing."""
    theme = theme_of_row({data.theme_from: row.get(data.theme_from)} if data.theme_from else row)
    if theme is None or not any(_lines(row)):
        return None
    words = sections_text(sections_of_rows(row["structure"], "lines"), numbered=False)
    if data.task == "themes":
        return TextExample(str(row["id"]), theme_prompt(words, language=data.language), theme)
    pattern = sections_text(sections_of_rows(row["structure"], "rhyme"), numbered=False)
    try:
        prompt = lyric_prompt(theme, pattern, language=data.language)
    except (InvalidPatternError, InvalidLyricsError):
        return None
    return TextExample(str(row["id"]), prompt, words)


def tokenized(examples: Sequence[TextExample], tokenizer: Any, most: int | None) -> tuple[list[Tokenized], int]:
    """Return the examples as a model reads them, and how many are longer than `most` tokens and left out."""
    ends = [] if tokenizer.eos_token_id is None else [tokenizer.eos_token_id]
    tokenized_examples: list[Tokenized] = []
    for example in examples:
        text, is_chat = prompt_text(tokenizer, example.prompt)
        # apart, as when it writes: the boundary of prompt and answer is a boundary of tokens
        prompt = tokenizer(text, add_special_tokens=not is_chat)["input_ids"]
        prompt = prompt[:-1] if ends and prompt[-1:] == ends else prompt  # some tokenizers end every text
        break_ = "" if is_chat else "\n"
        answer = tokenizer(f"{break_}{example.answer}", add_special_tokens=False)["input_ids"]
        tokenized_examples.append(Tokenized(example.id, (*prompt, *answer, *ends), len(prompt)))
    fitting = [song for song in tokenized_examples if most is None or len(song.ids) <= most]
    return fitting, len(tokenized_examples) - len(fitting)
