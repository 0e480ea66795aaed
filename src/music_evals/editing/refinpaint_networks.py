"""The two networks of RefinPaint, in plain PyTorch, and their weights: one fills in tokens, one predicts which fit.

Written from a description of shapes and masks, and equal to the authors' networks (`benchmarks/parity`); their code
(CC BY-NC-SA 4.0) was not used.
"""

# Annotations stay real objects here: the Hub mixin reads the types of a class that inherits from it.
from pathlib import Path
from typing import Final

import torch
from huggingface_hub import PyTorchModelHubMixin
from torch import Tensor, nn
from torch.nn import functional

from music_evals.editing.conversion import first_lines, hub_options, load_tensors, loading
from music_evals.editing.refinpaint_tokens import BOS, LICENCE, PAD, PUBLISHED_AT, VOCABULARY, allowed
from music_evals.errors import InvalidInputError, ModelUnavailableError, UnreadableFileError
from music_evals.files import parse_json

__all__ = ["Cache", "Feedback", "Inpainter", "RefinPaintNetworks", "draw", "load", "published_names", "resample"]

KeysAndValues = tuple[Tensor, Tensor]
"""Keys and values of rows, (heads, rows, width of a head) each."""


class Attention(nn.Module):
    """Multi-head attention over one sequence; its names are those of `torch.nn.MultiheadAttention`."""

    def __init__(self, width: int, n_heads: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.in_proj_weight = nn.Parameter(torch.empty(3 * width, width))
        self.in_proj_bias = nn.Parameter(torch.zeros(3 * width))
        self.out_proj = nn.Linear(width, width)
        nn.init.xavier_uniform_(self.in_proj_weight)

    def _heads(self, rows: Tensor) -> Tensor:
        return rows.view(len(rows), self.n_heads, -1).transpose(0, 1)  # (heads, rows, width of a head)

    def forward(
        self, rows: Tensor, mask: Tensor | None, kv_cache: KeysAndValues | None = None, first: int = 0
    ) -> Tensor:
        """Return (rows, width); `mask` (rows, all rows) is True where a row attends.

        With `kv_cache`, these are the rows from `first` on: their keys and values are written behind those before them.
        """
        projected = functional.linear(rows, self.in_proj_weight, self.in_proj_bias)
        query, key, value = map(self._heads, projected.chunk(3, -1))
        if kv_cache is not None:
            last = first + len(rows)
            kv_cache[0][:, first:last], kv_cache[1][:, first:last] = key, value
            key, value = kv_cache[0][:, :last], kv_cache[1][:, :last]
        attended = functional.scaled_dot_product_attention(query[None], key[None], value[None], attn_mask=mask)[0]
        out: Tensor = self.out_proj(attended.transpose(0, 1).flatten(-2))
        return out

    def of_one(self, rows: Tensor) -> Tensor:
        """Return the attention of row k to row k of the other side alone: its value, whatever the query."""
        width = rows.shape[-1]
        value = functional.linear(rows, self.in_proj_weight[2 * width :], self.in_proj_bias[2 * width :])
        attended: Tensor = self.out_proj(value)
        return attended


class Layer(nn.Module):
    """One layer that normalises after each part: attention, then two linear maps with a ReLU between."""

    def __init__(self, width: int, n_heads: int, hidden: int) -> None:
        super().__init__()
        self.self_attn = Attention(width, n_heads)
        self.linear1, self.linear2 = nn.Linear(width, hidden), nn.Linear(hidden, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, rows: Tensor, mask: Tensor | None) -> Tensor:
        """Return (rows, width)."""
        rows = self.norm1(rows + self.self_attn(rows, mask))
        out: Tensor = self.norm2(rows + self.linear2(functional.relu(self.linear1(rows))))
        return out


class DecoderLayer(nn.Module):
    """One layer that normalises before each part: attention to earlier rows, to the encoder's row, linear maps."""

    def __init__(self, width: int, n_heads: int, hidden: int) -> None:
        super().__init__()
        self.self_attn, self.multihead_attn = Attention(width, n_heads), Attention(width, n_heads)
        self.linear1, self.linear2 = nn.Linear(width, hidden), nn.Linear(hidden, width)
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(width, eps=1e-6) for _ in range(3))

    def forward(
        self,
        rows: Tensor,
        cross_attention: Tensor,
        mask: Tensor | None,
        kv_cache: KeysAndValues | None = None,
        first: int = 0,
    ) -> Tensor:
        """Return (rows, width); `cross_attention` to the encoder's rows comes from `multihead_attn.of_one`."""
        attended = self.self_attn(self.norm1(rows), mask, kv_cache, first)
        # attention to a single row is its value: `norm2` and the query have no effect
        rows = rows + attended + cross_attention
        out: Tensor = rows + self.linear2(functional.relu(self.linear1(self.norm3(rows))))
        return out


class Cache:
    """Keys and values of the rows that the decoder has read, and the cross-attention of each row."""

    def __init__(self, cross_attention: list[Tensor], n_heads: int) -> None:
        self.cross_attention = cross_attention  # (rows, width), one a layer
        n, width = cross_attention[0].shape
        # allocated for all rows: a list that grows would be copied for each token
        self.kv_cache = [
            tuple(rows.new_empty(n_heads, n, width // n_heads) for _ in range(2)) for rows in cross_attention
        ]
        self.n_rows = 0


class Inpainter(nn.Module):
    """Predicts each token from those before it and, by the encoder, from the visible ones after it."""

    def __init__(
        self, width: int, n_heads: int, hidden: int, *, n_encoder: int, n_decoder: int, max_tokens: int
    ) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.token = nn.Embedding(VOCABULARY, width)
        self.position = nn.Embedding(max_tokens, width)
        self.encoder = nn.ModuleList(Layer(width, n_heads, hidden) for _ in range(n_encoder))
        self.decoder = nn.ModuleList(DecoderLayer(width, n_heads, hidden) for _ in range(n_decoder))
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.head = nn.Linear(width, VOCABULARY)

    def embed(self, tokens: Tensor, first: int = 0) -> Tensor:
        """Return (rows, width) of tokens that stand at row `first` and after it."""
        rows: Tensor = self.token(tokens) + self.position.weight[first : first + len(tokens)]
        return rows

    def encode(self, tokens: Tensor, hidden: Tensor) -> Tensor:
        """Return (rows, width): row i attends to the tokens j >= i that are not hidden."""
        n = len(tokens)
        rows = self.embed(tokens.masked_fill(hidden, PAD))
        mask = torch.ones(n, n, dtype=torch.bool, device=tokens.device).triu()
        for layer in self.encoder:
            rows = layer(rows, mask)
        return rows

    def cache(self, rows: Tensor) -> Cache:
        """Return an empty cache over the rows of the encoder."""
        layers = (layer for layer in self.decoder if isinstance(layer, DecoderLayer))
        return Cache([layer.multihead_attn.of_one(rows) for layer in layers], self.n_heads)

    def extend(self, before: Tensor, cache: Cache) -> Tensor:
        """Return the next rows, (n, width), from the tokens that precede them; they join the cache.

        Row k sees the token before place k, so that the first call begins with `BOS`; `head` of row k are the logits of
        the token at place k.
        """
        first, n = cache.n_rows, len(before)
        rows = self.embed(before, first)
        mask = None
        if n > 1:
            mask = torch.ones(n, first + n, dtype=torch.bool, device=before.device).tril(first)
        for place, layer in enumerate(self.decoder):
            rows = layer(rows, cache.cross_attention[place][first : first + n], mask, cache.kv_cache[place], first)
        cache.n_rows += n
        normalised: Tensor = self.norm(rows)
        return normalised


class Feedback(nn.Module):
    """Predicts how likely each token is real, from all of them and from which ones are context."""

    def __init__(self, width: int, n_heads: int, hidden: int, *, n_layers: int, max_tokens: int) -> None:
        super().__init__()
        self.token = nn.Embedding(VOCABULARY, width)
        self.position = nn.Embedding(max_tokens, width)
        self.context = nn.Embedding(2, width)  # 1 is context, 0 may change
        self.layers = nn.ModuleList(Layer(width, n_heads, hidden) for _ in range(n_layers))
        self.head1, self.head2 = nn.Linear(width, VOCABULARY), nn.Linear(VOCABULARY, 1)

    def forward(self, tokens: Tensor, editable: Tensor) -> Tensor:
        """Return the log odds that each token is real, (rows,)."""
        shifted = functional.pad(tokens[:-1], (1, 0), value=BOS)
        rows = self.token(shifted) + self.position.weight[: len(tokens)] + self.context((~editable).long())
        for layer in self.layers:
            rows = layer(rows, None)
        odds: Tensor = self.head2(functional.relu(self.head1(rows)))[:, 0]
        return odds


class RefinPaintNetworks(nn.Module, PyTorchModelHubMixin, library_name="music_evals", license="apache-2.0"):
    """Both networks, as one set of weights; the defaults are the published sizes (46.7 and 19.4 million parameters)."""

    def __init__(
        self,
        *,
        width: int = 512,
        n_heads: int = 8,
        hidden: int = 2048,
        n_encoder: int = 4,
        n_decoder: int = 8,
        n_feedback: int = 6,
        max_tokens: int = 512,
    ) -> None:
        super().__init__()
        if min(width, n_heads, hidden, n_encoder, n_decoder, n_feedback, max_tokens) < 1 or width % n_heads:
            raise InvalidInputError(f"sizes must be at least 1 and the width ({width}) a multiple of {n_heads} heads")
        self.max_tokens = max_tokens
        self.inpainter = Inpainter(
            width, n_heads, hidden, n_encoder=n_encoder, n_decoder=n_decoder, max_tokens=max_tokens
        )
        self.feedback = Feedback(width, n_heads, hidden, n_layers=n_feedback, max_tokens=max_tokens)
        self.eval().requires_grad_(requires_grad=False)


def resample(
    inpainter: Inpainter,
    tokens: Tensor,
    resample_mask: Tensor,
    *,
    top_p: float,
    generator: torch.Generator,
    grammar: bool,
    skip_last_two: bool = False,
) -> Tensor:
    """Return the tokens (rows,), those under `resample_mask` sampled anew from left to right by nucleus sampling.

    Each row of the decoder is computed once: a run of kept tokens in one call, sampled tokens one by one. The generator
    is on the CPU, whatever the device. With `grammar`, a token can follow the one before and precede the next, where
    that is kept (`refinpaint_tokens.allowed`). With `skip_last_two` the last two places keep their tokens, though the
    encoder does not see them.
    """
    cache = inpainter.cache(inpainter.encode(tokens, resample_mask))
    resampled = tokens.cpu().tolist()
    is_resampled = resample_mask.cpu().tolist()
    places = [index for index, chosen in enumerate(is_resampled) if chosen]
    for place in (index for index in places if not skip_last_two or index < places[-1] - 1):
        before = [BOS, *resampled][cache.n_rows : place + 1]
        rows = inpainter.extend(torch.tensor(before, device=tokens.device), cache)
        logits = inpainter.head(rows[-1]).float().cpu()
        if grammar:
            next_is_kept = place + 1 < len(resampled) and not is_resampled[place + 1] and resampled[place + 1] != PAD
            fits = allowed(resampled[place - 1] if place else BOS, resampled[place + 1] if next_is_kept else None)
            logits = logits.masked_fill(~torch.from_numpy(fits), -torch.inf)
        resampled[place] = draw(logits, top_p, generator)
    return torch.tensor(resampled, device=tokens.device)


def draw(logits: Tensor, top_p: float, generator: torch.Generator) -> int:
    """Return a token from the smallest set that has the probability `top_p` (nucleus sampling)."""
    chances, order = logits.softmax(0).sort(descending=True, stable=True)
    before = functional.pad(chances.cumsum(0)[:-1], (1, 0))
    nucleus = logits.index_fill(0, order[before > top_p], -torch.inf)
    return int(torch.multinomial(nucleus.softmax(0), 1, generator=generator))


# Weights from files: our own folder, or the ten parts that the authors publish, once converted. The published names are
# those of the authors' classes at commit 1f3e6b2.

_PLACES: Final = {
    "inpainter.token": "transformer.enc_token_emb",
    "inpainter.position": "transformer.position_emb",
    "inpainter.encoder": "transformer.encoder.layers",
    "inpainter.decoder": "transformer.decoder.decoder.layers",
    "inpainter.norm": "transformer.decoder.decoder.norm",
    "inpainter.head": "transformer.decoder.decoder.generator.proj",
    "feedback.token": "enc_token_emb",
    "feedback.position": "position_emb",
    "feedback.context": "ctx_emb",
    "feedback.layers": "encoder.layers",
    "feedback.head1": "clf.0",
    "feedback.head2": "clf.2",
}
_DECODER_PARTS: Final = {
    "self_attn.in_proj_": "self_attn.head_projs.{}.",
    "self_attn.out_proj.": "self_attn.fc.",
    "multihead_attn.in_proj_": "src_attn.head_projs.{}.",
    "multihead_attn.out_proj.": "src_attn.fc.",
    "linear1.": "pw_ffn.mlp.0.",
    "linear2.": "pw_ffn.mlp.3.",
    "norm1.": "sublayer.0.layer_norm.",
    "norm2.": "sublayer.1.layer_norm.",
    "norm3.": "sublayer.2.layer_norm.",
}
"""Of a layer of the decoder; queries, keys and values, which are one tensor here, are three there."""
_COPIES: Final = {
    "transformer.dec_token_emb.weight": "transformer.enc_token_emb.weight",
    "transformer.decoder.dec_token_emb.weight": "transformer.enc_token_emb.weight",
    "transformer.decoder.position_emb.weight": "transformer.position_emb.weight",
}
"""What is published under two names -> the one that is read; both must be equal."""
_NOT_READ: Final = {"pos_weight"}  # of the loss, used in training only


def published_names(name: str) -> list[str]:
    """Return what a tensor of ours is called in the published files: one name, or three that are stacked."""
    network, part, rest = name.split(".", 2)
    place = _PLACES[f"{network}.{part}"]
    if part != "decoder":
        return [f"{place}.{rest}"]
    layer, rest = rest.split(".", 1)
    start = next(start for start in _DECODER_PARTS if rest.startswith(start))
    there = f"{place}.{layer}.{_DECODER_PARTS[start]}{rest.removeprefix(start)}"
    return [there.format(third) for third in range(3)] if "{}" in there else [there]


def load(source: Path | str, revision: str | None) -> RefinPaintNetworks:
    """Return the networks of a folder, or of a repository of the Hub at a commit.

    A folder holds what `save_pretrained` writes, or ``model.safetensors`` as `conversion.convert` makes it of the ten
    published parts; the sizes are then the published ones, unless config.json gives others.
    """
    options = hub_options(source, revision)
    if isinstance(source, Path):
        weights, config = source / "model.safetensors", source / "config.json"
        tensors = load_tensors(weights) if weights.exists() else {}
        if _PLACES["inpainter.token"] + ".weight" in tensors:
            sizes = parse_json(config.read_bytes(), str(config)) if config.exists() else {}
            return _published(tensors, sizes, weights)
        if not tensors or not config.exists():
            raise ModelUnavailableError(
                f"{source} holds neither the ten parts of RefinPaint's weights ({PUBLISHED_AT}, licence {LICENCE}) nor "
                "config.json and model.safetensors"
            )
    from safetensors import SafetensorError

    try:
        with loading("RefinPaint", source, "config.json and model.safetensors", LICENCE):
            return RefinPaintNetworks.from_pretrained(str(source), **options, strict=True)
    except (SafetensorError, RuntimeError, TypeError) as error:
        message = f"the weights in {source} do not fit its config.json ({first_lines(error)})"
        raise UnreadableFileError(message) from error


def _published(tensors: dict[str, torch.Tensor], sizes: dict[str, int], file: Path) -> RefinPaintNetworks:
    """Return networks with the tensors of the authors: all of them, and no other."""
    networks = RefinPaintNetworks(**sizes)
    names = {ours: published_names(ours) for ours in networks.state_dict()}
    known = {name for there in names.values() for name in there}
    if missing := sorted((known | _COPIES.keys()) - tensors.keys()):
        raise UnreadableFileError(f"{file} holds no {missing[0]}; remove it, and convert all ten published parts")
    if left := sorted(tensors.keys() - known - _COPIES.keys() - _NOT_READ):
        raise UnreadableFileError(f"{file} holds tensors that RefinPaint does not have: {', '.join(left[:5])}")
    for copy, name in _COPIES.items():
        if not torch.equal(tensors[copy], tensors[name]):
            raise UnreadableFileError(f"{file}: {copy} is not equal to {name}, as it should be")
    stacked = {ours: torch.cat([tensors[name] for name in there]).float() for ours, there in names.items()}
    try:
        networks.load_state_dict(stacked, strict=True)
    except RuntimeError as error:
        raise UnreadableFileError(f"{file} does not fit ({first_lines(error)})") from error
    return networks
