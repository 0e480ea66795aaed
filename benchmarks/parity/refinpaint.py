"""RefinPaint beside the code of its authors: tiny networks, the loop of ten rounds, tokens, and what their merge does.

Their command-line program is run as it is, with the networks of tiny sizes in place of the published ones, on the
CPU in place of a GPU, and without scores on the screen. Both sides draw from the same random numbers.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import tempfile
import types
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import numpy.typing as npt
import torch
from benchmarks.parity.side_by_side import Authors, Recorder, importable

from music_evals.annotations import DRUMS, Score, Tempo
from music_evals.editing import refinpaint_networks as networks
from music_evals.editing import refinpaint_tokens as codec
from music_evals.editing.refinpaint import RefinPaint, _window, kept_count
from music_evals.editing.refinpaint_networks import _published
from music_evals.symbolic.midi import read_midi, write_midi
from music_evals.symbolic.notes import make_notes

__all__ = ["AUTHORS", "measure"]

AUTHORS = Authors("ta603/RefinPaint", "1f3e6b2")
SIZES = {"width": 8, "n_heads": 2, "hidden": 32, "n_encoder": 2, "n_decoder": 2, "n_feedback": 2}
ROWS = 512  # their program knows no other number
KEPT_ROWS = 32  # of each network's, for the tests
KEPT_PIECES = 5
ROUNDS = range(10, 0, -1)
BARS = (2, 6)
SEED = 39

Numbers = npt.NDArray[Any]


class Rounds(NamedTuple):
    """What a loop of ten rounds did."""

    redrawn: Numbers
    """(rounds, rows): which tokens were not kept."""
    tokens: Numbers
    """(rounds, rows): the tokens after each round."""


def measure(checkout: Path, recorder: Recorder) -> None:
    """Compare networks, loop and tokens."""
    with _their_program(checkout) as theirs, tempfile.TemporaryDirectory() as folder, torch.no_grad():
        generator, feedback = _tiny(theirs)
        tensors = {**generator.state_dict(), **feedback.state_dict()}
        ours = _published(tensors, SIZES, Path("theirs"))
        for name, tensor in tensors.items():
            recorder.keep(**{f"weights/{name}": tensor.numpy()})
        piece = _piece(np.random.default_rng(SEED))
        file = Path(folder, "piece.mid")
        shifted, labels, context = _loaded(theirs, piece, file, BARS)
        recorder.keep(**{"piece/tokens": labels.astype(np.int16), "piece/editable": ~context})

        _networks(recorder, generator, feedback, ours, (shifted, labels, context))
        _kept_counts(recorder, theirs)
        _loop(recorder, theirs, (generator, feedback), ours, read_midi(file))
        _tokens(recorder, theirs, checkout, Path(folder))


def _networks(recorder: Recorder, generator: Any, feedback: Any, ours: Any, piece: tuple[Numbers, ...]) -> None:
    """Compare each network, given the tokens that there are."""
    shifted, labels, context = (torch.from_numpy(values) for values in piece)
    encoded = generator.transformer.inference_enc(tgt=labels[None], conditioning_mask=context[None])
    logits = generator.transformer.decoder(shifted[None], encoded)[0].numpy()
    rows = ours.inpainter.encode(labels, ~context)
    recorder.stage("inpainter/encoder", rows, encoded[0].numpy())
    cache = ours.inpainter.cache(rows)
    found = ours.inpainter.head(ours.inpainter.extend(shifted, cache)).numpy()
    recorder.stage("inpainter/logits", found, logits)
    recorder.keep(**{"inpainter/encoder": encoded[0, :KEPT_ROWS].numpy(), "inpainter/logits": logits[:KEPT_ROWS]})
    odds = feedback(shifted[None], context[None])[0].numpy()
    recorder.stage("feedback", ours.feedback(labels, ~context).numpy(), odds, kept=True)


def _kept_counts(recorder: Recorder, theirs: Any) -> None:
    """Compare how many tokens are kept, of each number of them, in each round."""
    counts, piece = [], (np.zeros(ROWS, dtype=np.int64),) * 2
    for n in range(1, ROWS + 1):
        context = np.arange(ROWS) >= n
        run = _their_rounds(theirs, _Returned(), lambda *_: torch.arange(float(ROWS))[None], piece, context)
        counts.append(n - run.redrawn.sum(axis=1))
    mine = [[kept_count(n, round_) for round_ in ROUNDS] for n in range(1, ROWS + 1)]
    recorder.stage("kept counts", mine, np.array(counts))
    recorder.keep(**{"kept counts": np.array(counts, dtype=np.int16)})


def _loop(recorder: Recorder, theirs: Any, pair: tuple[Any, Any], ours: Any, score: Score) -> None:
    """Compare each round, and say what differs where ours does not follow theirs."""
    with tempfile.TemporaryDirectory() as folder:
        shifted, labels, context = _loaded(theirs, score, Path(folder, "piece.mid"), BARS)
    torch.manual_seed(SEED)
    reference = _their_rounds(theirs, *pair, (shifted, labels), context)
    official, corrected = (_our_rounds(ours, score, variant) for variant in ("official", "corrected"))
    for index, round_ in enumerate(ROUNDS):
        recorder.stage(f"kept tokens, round {round_}", ~official.redrawn[index], ~reference.redrawn[index])
    recorder.stage("tokens after each round", official.tokens, reference.tokens)
    recorder.keep(**{"loop/redrawn": reference.redrawn, "loop/tokens": reference.tokens.astype(np.int16)})
    note = "`corrected` draws the last two of those that are not kept, too"
    recorder.stage("tokens drawn in each round", *_n_drawn(corrected, reference), note=note)
    note = "`corrected` draws by a grammar; theirs draws tokens that say nothing where they stand"
    dropped = [codec.decode(run.tokens[-1][run.tokens[-1] != codec.PAD], score)[1] for run in (corrected, reference)]
    recorder.stage("tokens that say nothing, in the end", [dropped[0]], [dropped[1]], note=note)


def _n_drawn(corrected: Rounds, reference: Rounds) -> tuple[Numbers, Numbers]:
    """Return how many tokens each side draws in each round; theirs leave two of those that are not kept."""
    places = [np.flatnonzero(redrawn) for redrawn in reference.redrawn]
    return corrected.redrawn.sum(axis=1), np.array([int((at < at[-1] - 1).sum()) for at in places])


def _tokens(recorder: Recorder, theirs: Any, checkout: Path, folder: Path) -> None:
    """Compare the tokens of files, and the notes of tokens."""
    example = read_midi(checkout / "example.mid")
    merged = _their_tokens(theirs, checkout / "example.mid", folder)
    recorder.stage("tokens of their example", codec.encode(example, official=True).tokens, merged)
    rng = np.random.default_rng(SEED)
    file = folder / "any.mid"
    scores = [_piece(rng, off_grid=True) for _ in range(20)]
    found: list[Numbers] = []
    for score in scores:
        file.write_bytes(write_midi(score))
        found.append(_their_tokens(theirs, file, folder))
    mine = [codec.encode(score, official=True).tokens for score in scores]
    recorder.stage("tokens of 20 pieces off the grid", np.concatenate(mine), np.concatenate(found))
    recorder.keep(
        **{
            "pieces/notes": np.concatenate([_columns(score) for score in scores[:KEPT_PIECES]]).astype(np.int32),
            "pieces/n_notes": [len(score.notes) for score in scores[:KEPT_PIECES]],
            "pieces/tokens": np.concatenate(found[:KEPT_PIECES]).astype(np.int16),
            "pieces/n_tokens": [len(tokens) for tokens in found[:KEPT_PIECES]],
        }
    )
    any_tokens = _any_tokens(rng)
    track, _ = theirs.tokenizer.tokens_to_track(theirs.TokSequence(ids=any_tokens.tolist()))
    notes = np.array(sorted((note.start / 48, (note.end - note.start) / 48, note.pitch) for note in track.notes))
    decoded = codec.decode(any_tokens, Score(make_notes([0], [1], [60]), 8), official=True)[0]
    recorder.stage("notes of any tokens", _columns(decoded), notes)
    recorder.keep(**{"any/tokens": any_tokens.astype(np.int16), "any/notes": notes.astype(np.int16)})

    # what differs by design
    note = "`corrected` has bars up to the end of the last note, theirs up to that of the last onset"
    long = Score(make_notes([0], [4800], [60]), 480)
    file.write_bytes(write_midi(long))
    both = codec.encode(long).tokens, _their_tokens(theirs, file, folder)
    n_bars = [[int((tokens == codec.BAR).sum())] for tokens in both]
    recorder.stage("bars of a note of ten quarters", *n_bars, note=note)
    slow = Score(make_notes([0, 960, 1920], [960] * 3, [60, 62, 64]), 960, tempos=(Tempo(0, 90.0),))
    file.write_bytes(write_midi(slow))
    onsets = _their_onsets(theirs, _their_tokens(theirs, file, folder))
    note = "theirs takes the ticks of every file for 480 a quarter; ours keeps those of the file, in both variants"
    kept = codec.decode(codec.encode(slow, official=True).tokens, slow)[0]
    recorder.stage("onsets of a file of 960 ticks, quarters", _columns(kept)[:, 0] / 960, onsets, note=note)
    note = "theirs writes no tempo, which is 120; ours keeps the tempi and signatures of the source, in both variants"
    recorder.stage("tempo", [kept.tempos[0].bpm], [120.0], note=note)
    band = Score(
        make_notes([0, 0, 480, 960], [480, 960, 480, 480], [60, 40, 62, 36], 80, [0, 1, 0, 2]),
        480, voices=("piano", "bass", "drums"), programs=(0, 33, DRUMS),
    )  # fmt: skip
    file.write_bytes(write_midi(band))
    first = _their_tokens(theirs, file, folder)
    recorder.stage("tokens of three instruments", codec.encode(band, official=True).tokens, first)
    counts = [[len(_columns(codec.decode(tokens, band)[0]))] for tokens in (codec.encode(band).tokens, first)]
    note = "`corrected` merges all voices but drums; theirs reads the first instrument (channel and program) alone"
    recorder.stage("notes of three instruments", *counts, note=note)


# Their program.


@contextlib.contextmanager
def _their_program(checkout: Path) -> Iterator[Any]:
    """Yield their main module, which needs neither Lightning nor MuseScore, and computes on the CPU."""
    lightning, screen = types.ModuleType("pytorch_lightning"), types.ModuleType("visual")
    lightning.LightningModule = _Module  # type: ignore[attr-defined]
    for name in ("plot_original", "create_MIDI", "plot_tokenization", "save_midi_piano", "wait_for_file_modification"):
        setattr(screen, name, lambda *_, **__: None)
    screen.get_mask_saved_file = None  # type: ignore[attr-defined]
    stand_ins = {"pytorch_lightning": lightning, "visual": screen}
    with mock.patch.dict(sys.modules, stand_ins), importable(checkout), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with contextlib.redirect_stdout(io.StringIO()):
            import EfficcientTransformer  # type: ignore[import-not-found]
            import RefinePaint as theirs  # type: ignore[import-not-found]  # noqa: N813
            from MidiTok_modified.miditok import TokSequence  # type: ignore[import-not-found]

            EfficcientTransformer.tqdm = lambda steps: steps
            theirs.TokSequence = TokSequence
            code = theirs.RefinPaint.__code__
            on_cpu = tuple("cpu" if value == "cuda:0" else value for value in code.co_consts)
            theirs.RefinPaint.__code__ = code.replace(co_consts=on_cpu)
            vocabulary = json.loads((checkout / "tokenizer_piano.json").read_text())
            theirs.load_json = lambda _: vocabulary
            theirs.save_json = theirs.save_piece_data = lambda *_: ""
            theirs.ZipFile = lambda *_: contextlib.nullcontext()
            yield theirs


class _Module(torch.nn.Module):
    """What their networks need of Lightning."""

    def save_hyperparameters(self, *_: Any) -> None:
        """Save nothing."""


class _Returned:
    """An inpainter that draws nothing."""

    def generate(self, tokens: Any, **_: Any) -> Any:
        """Return the tokens."""
        return tokens


def _tiny(theirs: Any) -> tuple[Any, Any]:
    """Return their two networks, small, with weights of which each counts."""
    inpainting = sys.modules["InpaintingModel"]
    width, heads = SIZES["width"], SIZES["n_heads"]

    class Tiny(theirs.TransformerInpainting):  # type: ignore[misc]
        """Theirs, with the sizes as they are here."""

        def _get_transformer(self, config: Any, _: Any) -> Any:
            return inpainting.InpaintingBase(
                dim=width, enc_num_tokens=config.num_tokens, enc_depth=SIZES["n_encoder"], enc_heads=heads,
                dec_num_tokens=config.num_tokens, dec_depth=SIZES["n_decoder"], dec_heads=heads,
                max_seq_len=config.max_seq_len, tie_token_emb=True,
            )  # fmt: skip

    torch.manual_seed(SEED)
    config = theirs.Config(
        max_seq_len=ROWS, pad_token_id=0, batch_size=1, max_epochs=1, num_tokens=181, exclude_ctx=True
    )
    generator = Tiny(config, 1, {}, 0, 1)
    feedback = theirs.TransformerClassifier(
        embedding_dim=width, layers=SIZES["n_feedback"], dropout=0.1, num_heads=heads, ctx_tokens=True, weighted=True,
        max_seq_len=ROWS, clf_size=181, num_tokens=181,
    )  # fmt: skip
    for network in (generator, feedback):
        for name, parameter in network.named_parameters():
            parameter.normal_(0, 0.5 if "emb" in name else 0.25)
            if "norm" in name and name.endswith("weight"):
                parameter.add_(1)
    generator.transformer.decoder.decoder.generator.proj.weight.mul_(4)  # so that some tokens are likelier than others
    return generator.eval(), feedback.eval()


def _loaded(theirs: Any, score: Score, file: Path, bars: tuple[int, int]) -> tuple[Numbers, Numbers, Numbers]:
    """Return the tokens of a score behind a beginning, as they are, and which are context."""
    file.write_bytes(write_midi(score))
    theirs.merge_midi_tracks_to_single_track(str(file), str(file) + "_merged.mid")
    return theirs.load_midi(str(file) + "_merged.mid", *bars)  # type: ignore[no-any-return]


def _their_rounds(theirs: Any, generator: Any, feedback: Any, piece: tuple[Numbers, ...], context: Numbers) -> Rounds:
    """Run their program over ten rounds."""
    masks, tokens = [], []

    def seen(_: Any, __: Any, ___: Any, after: list[int], kept: Any, *____: Any) -> None:
        masks.append(~kept.numpy())
        tokens.append(after)

    theirs.get_experiment = lambda _: (generator, feedback)
    theirs.create_MIDI = seen
    shifted, labels = (torch.from_numpy(values) for values in piece)
    mask = torch.from_numpy(context)
    how = {"show": False, "light": True, "verbose": False, "decoding": "average_topk", "iterations_to_run": 0}
    theirs.RefinPaint(shifted, labels, mask, context, avg_pooling=1, **how)
    return Rounds(np.array(masks), np.array(tokens))


def _our_rounds(ours: Any, score: Score, variant: str) -> Rounds:
    """Run our loop over ten rounds."""
    masks, tokens = [], []
    resample = networks.resample

    def seen(inpainter: Any, before: Any, redrawn: Any, **options: Any) -> Any:
        after = resample(inpainter, before, redrawn, **options)
        masks.append(redrawn.numpy())
        tokens.append(after.numpy())
        return after

    encoded = codec.encode(score, official=variant == "official")
    generator = torch.Generator().manual_seed(SEED)
    with mock.patch.object(networks, "resample", seen):
        RefinPaint(ours, variant=variant)._refined(_window(encoded, BARS, ROWS), 0, generator)
    return Rounds(np.array(masks), np.array(tokens))


def _their_tokens(theirs: Any, file: Path, folder: Path) -> Numbers:
    """Return what their program makes of a file: the first track of what it merged."""
    merged = folder / "merged.mid"
    theirs.merge_midi_tracks_to_single_track(str(file), str(merged))
    return np.array(theirs.tokenizer(str(merged))[0].ids)


def _their_onsets(theirs: Any, tokens: Numbers) -> Numbers:
    """Return the onsets of tokens in quarters."""
    track, _ = theirs.tokenizer.tokens_to_track(theirs.TokSequence(ids=tokens.tolist()))
    return np.array([note.start / 384 for note in track.notes])


# Music of our own.


def _piece(rng: np.random.Generator, *, off_grid: bool = False) -> Score:
    """Return eight bars of four voices, of which no pitch overlaps itself; off the grid, some below the lowest key."""
    columns = []
    for low in (19, 45, 60, 72):
        step = 7 if off_grid else 60
        tick = int(rng.integers(0, 4)) * step
        while tick < 8 * 1920:
            length = int(rng.integers(1, 40 if off_grid else 10)) * step
            columns.append((tick, length, low + int(rng.integers(0, 12))))
            tick += length + int(rng.integers(0, 30 if off_grid else 8)) * step
    onset, duration, pitch = np.array(sorted(columns)).T
    return Score(make_notes(onset, duration, pitch), 480)


def _any_tokens(rng: np.random.Generator) -> Numbers:
    """Return 400 tokens in any order, of which every kind is there often enough to say something."""
    kinds = [(0, 4), (4, 5), (5, 93), (93, 149), (149, 181)]
    chosen = rng.choice(5, size=400, p=[0.05, 0.1, 0.35, 0.35, 0.15])
    return np.array([rng.integers(*kinds[kind]) for kind in chosen])


def _columns(score: Score) -> Numbers:
    """Return (notes, 3): onset and duration in ticks, pitch; sorted."""
    names = ("onset_tick", "duration_tick", "pitch")
    return np.array(sorted(zip(*(score.notes[name].tolist() for name in names), strict=True)), dtype=np.int64)
