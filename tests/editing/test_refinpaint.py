"""RefinPaint: tokens hold the notes, the loop touches nothing else, and what is cached changes nothing."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.editing.house import audio_request, score_request, triads

from music_evals.annotations import DRUMS, EditInstruction, Score, Tempo, TimeSignature
from music_evals.benchmark.tasks.edits.work import make_editor
from music_evals.cli import main
from music_evals.editing import refinpaint_tokens as codec
from music_evals.errors import (
    InvalidInputError,
    ModelUnavailableError,
    UnknownNameError,
    UnreadableFileError,
    UnsupportedEditError,
)
from music_evals.protocols import EDITORS, EditingSystem
from music_evals.symbolic.files import write_midi
from music_evals.symbolic.notes import make_notes

torch = pytest.importorskip("torch")

from safetensors.numpy import load_file  # noqa: E402
from safetensors.torch import save_file  # noqa: E402

from music_evals.editing import refinpaint_networks  # noqa: E402
from music_evals.editing.conversion import convert  # noqa: E402
from music_evals.editing.refinpaint import RefinPaint, Window, _window, kept_count, written_by_tokens  # noqa: E402
from music_evals.editing.refinpaint_networks import RefinPaintNetworks, draw, published_names, resample  # noqa: E402

GOLDEN = Path(__file__).parents[1] / "golden" / "parity" / "refinpaint.safetensors"
RECORDED = load_file(GOLDEN)
"""What the authors' code gave, and its weights, from `python -m benchmarks.parity.run refinpaint=... --write`."""
THEIR_SIZES = {"width": 8, "n_heads": 2, "hidden": 32, "n_encoder": 2, "n_decoder": 2, "n_feedback": 2}
SIZES = {"width": 16, "n_heads": 2, "hidden": 24, "n_encoder": 2, "n_decoder": 2, "n_feedback": 1, "max_tokens": 64}
MIDDLE = EditInstruction(text="Refine bars 1 and 2.", bars=(1, 3), confidence=5)


def networks(seed: int = 0, **others: int) -> Any:
    torch.manual_seed(seed)
    made = RefinPaintNetworks(**{**SIZES, **others})
    # as wide as trained weights: with torch's own the logits are all but equal, and nothing depends on anything
    for parameter in made.inpainter.head.parameters():
        parameter.mul_(8)
    return made


@pytest.fixture(scope="module")
def model() -> Any:
    return networks()


def notes_of(score: Score) -> list[tuple[int, ...]]:
    unit = score.ticks_per_quarter
    return [
        (*(8 * int(note[name]) // unit for name in ("onset_tick", "duration_tick")), int(note["pitch"]))
        for note in score.notes
    ]


def asked(**changes: Any) -> EditInstruction:
    return dataclasses.replace(MIDDLE, **changes)


GRID = st.lists(
    st.tuples(st.integers(0, 200), st.sampled_from(codec.DURATIONS.tolist()), st.integers(21, 108)),
    min_size=1, max_size=40, unique_by=lambda note: (note[0], note[2]),
)  # fmt: skip


@given(GRID)
def test_notes_on_the_grid_survive_their_tokens(notes: list[tuple[int, int, int]]) -> None:
    onset, duration, pitch = np.array(notes).T
    score = Score(make_notes(onset, duration, pitch), 8, tempos=(Tempo(0, 90.0),))
    encoded = codec.encode(score)
    back, dropped = codec.decode(encoded.tokens, score)
    assert sorted(notes_of(back)) == sorted(notes)
    assert (dropped, back.tempos) == (0, score.tempos)
    # the grammar: bars, positions that rise within one, pairs of pitch and duration
    text = "".join("sbpdo"[kind] for kind in codec.kinds(encoded.tokens))
    assert text.count("b") == len(encoded.bars) == text.replace("pd", "").replace("o", "").count("b")
    assert set(text.replace("pd", "").replace("o", "")) == {"b"}
    assert (encoded.tokens[encoded.bars] == codec.BAR).all()


def test_the_vocabulary_is_that_of_the_paper() -> None:
    score = Score(make_notes([0, 33], [1, 96], [21, 108]), 8)
    #                           bar position 0, pitch 0, 1/8 quarter; bar, position 1, the last pitch, 12 quarters
    assert codec.encode(score).tokens[:8].tolist() == [4, 149, 5, 93, 4, 150, 92, 148]
    assert len(codec.DURATIONS) == 56
    assert [int(codec.DURATIONS[np.abs(codec.DURATIONS - steps).argmin()]) for steps in (24, 28, 33, 300)] == [
        23,
        32,
        32,
        96,
    ]


def test_what_is_off_the_grid_is_rounded_and_what_has_no_token_is_counted() -> None:
    # 480 ticks a quarter, 60 a step: 30 is half a step and goes down; a note of 10 ticks keeps one step
    notes = make_notes([30, 31, 480, 960, 960], [10, 480, 30, 60, 60], [60, 62, 64, 20, 36], 80, [0, 0, 0, 0, 1])
    score = Score(notes, 480, voices=("", "drums"), programs=(0, DRUMS))
    encoded = codec.encode(score)
    assert (encoded.n_left_out, encoded.n_outside, encoded.n_notes) == (1, 1, 5)
    assert sorted(notes_of(written_by_tokens(score))) == [(0, 1, 60), (1, 8, 62), (8, 1, 64)]
    written_first = written_by_tokens(score, variant="official")
    assert codec.encode(score, official=True).n_left_out == 1
    assert notes_of(written_first) == notes_of(written_by_tokens(score)), "the piano's note ends first"
    assert written_by_tokens(score).ticks_per_quarter == 480


def test_tokens_without_a_meaning_are_dropped_and_counted() -> None:
    pitch, length, position = codec.FIRST_PITCH, codec.FIRST_DURATION, codec.FIRST_POSITION
    #                 nothing before the first bar; a length alone; a position, a pitch with nothing after them
    tokens = np.array(
        [pitch, length, codec.BAR, length, position, position, pitch, length, pitch, codec.BAR, position, 0]
    )
    score, dropped = codec.decode(tokens, triads())
    assert notes_of(score) == [(0, 1, 21)]
    assert dropped == len(tokens) - 2 - 3  # two bars and a note of three


def test_kept_counts_are_those_of_the_authors() -> None:
    """All of them are one too many where a rate times its number rounds down, and where it would be 1."""
    assert kept_count(100, 10) == math.ceil(100 * math.cos(10 * math.pi / 22)) == 15
    theirs = RECORDED["kept counts"]
    assert theirs.shape == (512, 10)
    ours = [[kept_count(n, round_) for round_ in range(10, 0, -1)] for n in range(1, 513)]
    assert np.array_equal(ours, theirs)
    assert kept_count(50, 1) == 49, "the last round redraws one of them"
    assert kept_count(0, 1) == 0


def test_the_loop_keeps_as_many_as_it_should(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []

    def counted(*given: Any, **options: Any) -> Any:
        drawn.append(int(given[2].sum()))
        return resample(*given, **options)

    monkeypatch.setattr("music_evals.editing.refinpaint_networks.resample", counted)
    RefinPaint(model).edit([score_request(asked(confidence=4))])
    n = 2 * 7  # two bars of a position and three notes
    assert drawn == [n - kept_count(n, round_) for round_ in (6, 5, 4, 3, 2, 1)]
    assert drawn[-1] == 1


def test_full_confidence_is_the_identity(model: Any) -> None:
    (result,) = RefinPaint(model).edit([score_request(asked(confidence=10))])
    assert result.score is not None
    assert np.array_equal(result.score.notes, written_by_tokens(triads()).notes)
    assert result.warnings == ()


@pytest.mark.parametrize("variant", ["corrected", "official"])
def test_nothing_outside_of_the_bars_changes(model: Any, variant: str) -> None:
    system = RefinPaint(model, variant=variant)
    before = codec.encode(triads())
    window = np.zeros(len(before.tokens), dtype=bool)
    window[before.bars[1] : before.bars[3]] = True
    changed = np.zeros_like(window)
    for seed in range(6):
        generator = torch.Generator().manual_seed(seed)
        after = system._refined(_window(before, (1, 3), 64), 0, generator)
        assert np.array_equal(after[~window], before.tokens[~window])
        assert (after[before.bars] == codec.BAR).all(), "bars survive"
        if variant == "corrected":
            assert (after[window] >= codec.FIRST_PITCH).sum() == window.sum() - 2, "and no bar is added"
        changed |= after != before.tokens
    if variant == "corrected":
        assert changed[np.flatnonzero(window)[-2:]].any(), "the last tokens are drawn as well"
    assert changed.sum() > 7


def test_drawn_tokens_obey_the_grammar(model: Any) -> None:
    """A whole bar drawn at once: every pair of neighbours can stand side by side, and no token is lost."""
    before = codec.encode(triads()).tokens
    tokens = torch.from_numpy(np.pad(before, (0, 64 - len(before))))
    drawn = torch.zeros(64, dtype=torch.bool)
    drawn[9:16] = True
    for seed in range(5):
        generator = torch.Generator().manual_seed(seed)
        after = resample(model.inpainter, tokens, drawn, top_p=0.95, generator=generator, grammar=True).numpy()
        kinds = codec.kinds(after[8:16])
        assert all(second in codec._FOLLOWS[first] for first, second in itertools.pairwise(kinds))
    assert set(np.flatnonzero(codec.allowed(codec.BAR, None))) == set(range(149, 181))
    assert set(np.flatnonzero(codec.allowed(149, 93))) == set(range(5, 93))
    assert set(np.flatnonzero(codec.allowed(93, 93))) == set(range(5, 93))


def anew(inpainter: Any, tokens: Any, drawn: Any, generator: Any) -> list[int]:
    """Draw as `resample` does, and work all rows out again for each token."""
    found = tokens.tolist()
    for place in torch.nonzero(drawn)[:, 0].tolist():
        rows = inpainter.extend(
            torch.tensor([codec.BOS, *found[:-1]]), inpainter.cache(inpainter.encode(tokens, drawn))
        )
        found[place] = draw(inpainter.head(rows[place]), 0.95, generator)
    return found


def test_the_cache_changes_nothing(model: Any) -> None:
    tokens = torch.randint(4, 181, (64,), generator=torch.Generator().manual_seed(3))
    drawn = torch.rand(64, generator=torch.Generator().manual_seed(4)) < 0.6
    ours = resample(
        model.inpainter, tokens, drawn, top_p=0.95, generator=torch.Generator().manual_seed(5), grammar=False
    )
    assert ours.tolist() == anew(model.inpainter, tokens, drawn, torch.Generator().manual_seed(5))
    assert (ours[drawn] != tokens[drawn]).any()
    assert torch.equal(ours[~drawn], tokens[~drawn])


def test_the_encoder_sees_what_follows_and_the_decoder_what_precedes(model: Any) -> None:
    inpainter = model.inpainter
    tokens = torch.randint(4, 181, (20,), generator=torch.Generator().manual_seed(3))
    other = tokens.clone()
    other[8] = 4 + (tokens[8] - 3) % 170
    hidden = torch.zeros(20, dtype=torch.bool)
    rows, moved = (inpainter.encode(which, hidden) for which in (tokens, other))
    assert torch.equal(rows[9:], moved[9:])
    assert float((rows[:9] - moved[:9]).abs().amin(0).max()) > 0
    assert torch.equal(inpainter.encode(tokens, hidden)[0], rows[0])
    hidden[8] = True
    assert torch.equal(inpainter.encode(tokens, hidden), inpainter.encode(other, hidden)), "what is hidden is not seen"
    first, second = (
        inpainter.extend(which, inpainter.cache(inpainter.encode(tokens, hidden))) for which in (tokens, other)
    )
    assert torch.allclose(first[:8], second[:8], atol=1e-6)
    assert float((first[8:] - second[8:]).abs().max()) > 1e-4


def test_layers_are_those_of_torch() -> None:
    """The oracle: PyTorch's encoder layer with our weights, after the sum and before it."""
    from music_evals.editing.refinpaint_networks import DecoderLayer, Layer

    torch.manual_seed(0)
    rows, memory = torch.randn(7, 16), torch.randn(7, 16)
    causal = torch.ones(7, 7, dtype=torch.bool).tril()
    ours = Layer(16, 2, 24)
    theirs = torch.nn.TransformerEncoderLayer(16, 2, 24, dropout=0.0)
    theirs.load_state_dict(ours.state_dict())
    assert torch.allclose(ours(rows, causal), theirs(rows, src_mask=~causal), atol=1e-6)
    decoder = DecoderLayer(16, 2, 24)
    parts = torch.nn.TransformerDecoderLayer(16, 2, 24, dropout=0.0, norm_first=True, layer_norm_eps=1e-6)
    parts.load_state_dict(decoder.state_dict())
    told = decoder.multihead_attn.of_one(memory)
    seen = parts(rows, memory, tgt_mask=~causal, memory_mask=~torch.eye(7, dtype=torch.bool))
    assert torch.allclose(decoder(rows, told, causal), seen, atol=1e-6)


def test_the_window_has_the_tiny_network() -> None:
    window = Path(__file__).parents[2] / "models" / "refinpaint" / "config.json"
    assert json.loads(window.read_text(encoding="utf-8")) == {"model_type": "refinpaint", **SIZES}


def test_the_published_sizes() -> None:
    with torch.device("meta"):
        full = RefinPaintNetworks()
    millions = [sum(p.numel() for p in part.parameters()) / 1e6 for part in (full.inpainter, full.feedback)]
    assert millions[0] == pytest.approx(46.7, abs=0.05)
    assert millions[1] == pytest.approx(19.4, abs=0.05)


def test_the_nucleus_is_the_smallest_set() -> None:
    logits = torch.tensor([0.5, 0.3, 0.15, 0.05]).log()
    drawn = {draw(logits, 0.9, torch.Generator().manual_seed(seed)) for seed in range(200)}
    assert drawn == {0, 1, 2}
    assert {draw(logits, 0.4, torch.Generator().manual_seed(seed)) for seed in range(20)} == {0}


def test_an_item_alone_is_the_item_in_a_batch(model: Any) -> None:
    system = RefinPaint(model)
    assert isinstance(system, EditingSystem)
    requests = [score_request(MIDDLE), score_request(asked(confidence=0)), score_request(MIDDLE, seed=1)]
    batch = system.edit(requests)
    for request, result in zip(requests, batch, strict=True):
        (alone,) = RefinPaint(model).edit([request])
        assert alone.score is not None
        assert result.score is not None
        assert np.array_equal(alone.score.notes, result.score.notes)
        assert result.score.tempos == triads().tempos
    assert notes_of(batch[0].score) != notes_of(batch[2].score), "another seed"
    assert "tokens say nothing" in " ".join(RefinPaint(model, variant="official").edit(requests)[1].warnings)


def test_a_long_piece_is_seen_through_a_window() -> None:
    (result,) = RefinPaint(networks(max_tokens=24)).edit([score_request(MIDDLE)])
    assert result.warnings[0] == "the networks saw tokens 0:24 of 32"


def test_what_it_cannot_edit_is_refused(model: Any) -> None:
    system = RefinPaint(model)
    for request, why in (
        (audio_request(MIDDLE, seconds=1), "a score"),
        (score_request(asked(bars=None)), "`bars`"),
        (score_request(asked(confidence=None)), "`confidence`"),
        (score_request(asked(bars=(2, 9))), "source has 4"),
    ):
        with pytest.raises(UnsupportedEditError, match=why):
            system.edit([request])
    waltz = dataclasses.replace(triads(), time_signatures=(TimeSignature(0, 3, 4),))
    with pytest.raises(UnsupportedEditError, match="3/4"):
        system.edit([score_request(MIDDLE, score=waltz)])
    assert RefinPaint(model, variant="official").supports(score_request(MIDDLE, score=waltz)) == ""
    assert "name fewer bars" in RefinPaint(networks(max_tokens=15)).supports(score_request(MIDDLE))
    with pytest.raises(ModelUnavailableError, match=r"ta603/RefinPaint.*CC-BY-NC-SA"):
        make_editor("refinpaint", {}, {})
    with pytest.raises(InvalidInputError, match="`top_p`"):
        RefinPaint(model, top_p=0)
    with pytest.raises(UnknownNameError, match="'theirs'"):
        RefinPaint(model, variant="theirs")
    assert "refinpaint" in EDITORS


def publish(folder: Path, tensors: dict[str, Any], sizes: dict[str, int]) -> Path:
    """Write tensors as the authors publish theirs: each network in five files; and the sizes, which are not theirs."""
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(sizes))
    sets = {"inpainting": {}, "feedback": {}}
    for name, tensor in tensors.items():
        sets["inpainting" if name.startswith("transformer.") else "feedback"][name] = tensor
    for stem, some in sets.items():
        names, length = list(some), math.ceil(len(some) / 5)
        for part in range(5):
            inside = {name: some[name] for name in names[part * length : (part + 1) * length]}
            torch.save(inside, folder / f"{stem}_part{part + 1}.pth")
    return folder


def as_published(made: Any) -> dict[str, Any]:
    """Return the tensors of networks of ours under the names of theirs."""
    tensors = {"pos_weight": torch.tensor([1.39])}
    for name, tensor in made.state_dict().items():
        names = published_names(name)
        tensors |= dict(zip(names, tensor.chunk(len(names)), strict=True))
    token, position = (tensors[f"transformer.{name}_emb.weight"] for name in ("enc_token", "position"))
    tensors["transformer.dec_token_emb.weight"] = tensors["transformer.decoder.dec_token_emb.weight"] = token
    return tensors | {"transformer.decoder.position_emb.weight": position}


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Networks with the weights of a recorded run of the authors' code, from ten parts as they write them."""
    tensors = {
        name.removeprefix("weights/"): torch.from_numpy(tensor)
        for name, tensor in RECORDED.items()
        if name.startswith("weights/")
    }
    folder = publish(tmp_path_factory.mktemp("theirs"), tensors, {**THEIR_SIZES, "max_tokens": 512})
    with pytest.raises(ModelUnavailableError, match=f"music-evals convert {folder}"):
        RefinPaint.from_pretrained(folder)
    assert main(["convert", str(folder)]) == 0
    return RefinPaint.from_pretrained(folder, variant="official")


def close(ours: Any, name: str) -> bool:
    """Tell whether values are those of theirs, up to 1e-5 of the largest."""
    recorded = RECORDED[name]
    return bool(np.abs(ours.numpy()[: len(recorded)] - recorded).max() < 1e-5 * np.abs(recorded).max())


def outputs(made: Any) -> dict[str, bool]:
    """Return which outputs of both networks are those of theirs."""
    tokens = torch.from_numpy(RECORDED["piece/tokens"]).long()
    editable = torch.from_numpy(RECORDED["piece/editable"])
    inpainter = made.inpainter
    rows = inpainter.encode(tokens, editable)
    shifted = torch.nn.functional.pad(tokens[:-1], (1, 0), value=codec.BOS)
    logits = inpainter.head(inpainter.extend(shifted, inpainter.cache(rows)))
    odds = made.feedback(tokens, editable)
    found = {"inpainter/encoder": rows, "inpainter/logits": logits, "feedback": odds}
    return {name: close(values, name) for name, values in found.items()}


@pytest.mark.slow
def test_the_networks_give_what_the_authors_give(theirs: Any) -> None:
    made = theirs._model
    assert outputs(made) == {"inpainter/encoder": True, "inpainter/logits": True, "feedback": True}


@pytest.mark.parametrize(
    ("part", "stage"),
    [
        ("inpainter.norm", "inpainter/logits"),
        ("inpainter.decoder.1.norm1", "inpainter/logits"),
        ("inpainter.decoder.0.norm3", "inpainter/logits"),
        ("inpainter.encoder.1.norm2", "inpainter/encoder"),
        ("feedback.layers.0.norm1", "feedback"),
    ],
)
def test_a_norm_that_goes_missing_is_noticed(theirs: Any, part: str, stage: str) -> None:
    made = copy.deepcopy(theirs._model)
    parent, _, name = part.rpartition(".")
    setattr(made.get_submodule(parent), name, torch.nn.Identity())
    assert not outputs(made)[stage]


@pytest.mark.slow
def test_the_loop_is_that_of_the_authors(theirs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of ten rounds keeps the tokens that theirs keeps; what they drew could be drawn, and comes out."""
    tokens, editable = RECORDED["piece/tokens"].astype(np.int64), RECORDED["piece/editable"]
    redrawn, after = RECORDED["loop/redrawn"], RECORDED["loop/tokens"].astype(np.int64)
    seen: list[Any] = []

    def watched(inpainter: Any, before: Any, drawn: Any, **options: Any) -> Any:
        seen.append(drawn.numpy())
        answers = iter(after[len(seen) - 1][np.flatnonzero(drawn.numpy())].tolist())

        def recorded(logits: Any, top_p: float, _: Any) -> int:
            chances, order = logits.softmax(0).sort(descending=True)
            token = next(answers)
            place = order.tolist().index(token)
            assert float(chances[:place].sum()) <= top_p + 1e-5, "theirs is in our nucleus"
            return token

        monkeypatch.setattr(refinpaint_networks, "draw", recorded)
        result = resample(inpainter, before, drawn, **options)
        assert np.array_equal(result.numpy(), after[len(seen) - 1])
        places = np.flatnonzero(drawn.numpy())
        assert len(list(answers)) == int((places >= places[-1] - 1).sum()), "the last two places are not drawn"
        return result

    monkeypatch.setattr(refinpaint_networks, "resample", watched)
    n = int((tokens != codec.PAD).sum())
    theirs._refined(Window(tokens[:n], editable[:n], 0), 0, torch.Generator())
    assert np.array_equal(seen, redrawn)
    assert redrawn.sum(axis=1).tolist()[-1] == 1


def test_tokens_of_pieces_are_those_of_the_authors() -> None:
    notes = np.split(RECORDED["pieces/notes"], np.cumsum(RECORDED["pieces/n_notes"])[:-1])
    tokens = np.split(RECORDED["pieces/tokens"], np.cumsum(RECORDED["pieces/n_tokens"])[:-1])
    for (onset, duration, pitch), expected in zip((piece.T for piece in notes), tokens, strict=True):
        score = Score(make_notes(onset, duration, pitch), 480)
        assert np.array_equal(codec.encode(score, official=True).tokens, expected)


def test_notes_of_any_tokens_are_those_of_the_authors() -> None:
    decoded, _ = codec.decode(RECORDED["any/tokens"].astype(np.int64), Score(triads().notes, 8), official=True)
    assert sorted(notes_of(decoded)) == [tuple(note) for note in RECORDED["any/notes"].tolist()]


def test_official_reads_one_instrument_up_to_its_last_onset() -> None:
    score = Score(
        make_notes([0, 0, 0, 480], [960, 480, 4800, 480], [60, 40, 43, 36], 80, [0, 1, 2, 3]),
        480, voices=("piano", "bass", "bass", "drums"), programs=(0, 33, 33, DRUMS),
    )  # fmt: skip
    encoded = codec.encode(score, official=True)
    assert (encoded.n_left_out, len(encoded.bars)) == (2, 1)
    assert encoded.tokens[2::2].tolist() == [codec.FIRST_PITCH + 40 - 21, codec.FIRST_PITCH + 43 - 21]
    assert len(codec.encode(score).bars) == 3
    assert codec.encode(score).n_left_out == 1


@pytest.fixture(scope="module")
def parts(model: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Networks of ours as theirs are published, and converted."""
    folder = publish(tmp_path_factory.mktemp("parts"), as_published(model), SIZES)
    assert convert(folder) == [folder / "model.safetensors"]
    return folder


@pytest.mark.slow
def test_the_verb_edits_with_published_parts(parts: Path, tmp_path: Path) -> None:
    """Scores go in and out as MIDI; rendered, they are recordings that can be judged."""
    (tmp_path / "song.mid").write_bytes(write_midi(triads()))
    how = ["--system", "refinpaint", "--weights", str(parts), "--bars", "1:3", "--keep", "4"]
    command = ["edit", str(tmp_path / "song.mid"), *how, "--instruction", "Refine it.", "--out", str(tmp_path / "out")]
    assert main(command) == 0
    assert (tmp_path / "out" / "edits" / "song.mid").exists()
    assert main([*command[:-1], str(tmp_path / "heard"), "--render", "additive"]) == 0
    assert (tmp_path / "heard" / "edits" / "song.flac").exists()


def test_parts_and_a_saved_folder_are_the_same_networks(model: Any, parts: Path, tmp_path: Path) -> None:
    model.save_pretrained(tmp_path / "saved")
    loaded = (
        make_editor("refinpaint", {}, {"source": str(tmp_path / "saved")}),
        RefinPaint.from_pretrained(parts),
        RefinPaint.from_pretrained(tmp_path / "saved", device="cpu", top_p=0.9),
    )
    for system in loaded:
        assert isinstance(system, RefinPaint)
        theirs = system._model.state_dict()
        assert all(torch.equal(tensor, theirs[name]) for name, tensor in model.state_dict().items())
        assert not system._model.training
    assert loaded[2].info.parameters == {"top_p": 0.9, "variant": "corrected"}
    assert loaded[1].info.weights[0].id == str(parts)


def test_the_published_sizes_need_no_config() -> None:
    """The map of names covers the whole of the published networks, which have as many tensors as their classes."""
    with torch.device("meta"):
        full = RefinPaintNetworks()
    names = [name for ours in full.state_dict() for name in published_names(ours)]
    assert len(names) == len(set(names)) == 265 - 3 + 80 - 1  # without three copies and the weight of the loss


def test_files_that_do_not_fit_are_refused(model: Any, tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailableError, match="CC-BY-NC-SA"):
        RefinPaint.from_pretrained(tmp_path)
    with pytest.raises(InvalidInputError, match="`revision`"):
        RefinPaint.from_pretrained("someone/refinpaint")
    tensors = {name: tensor.clone() for name, tensor in as_published(model).items()}
    incomplete = {name: tensor for name, tensor in tensors.items() if name != "clf.2.weight"}
    copied = "transformer.decoder.position_emb.weight"
    for held, sizes, why in (
        ({**tensors, copied: tensors[copied] + 1e-3}, {}, f"{copied} is not equal"),
        ({**tensors, "clf.3.weight": torch.zeros(3)}, {}, "does not have: clf.3.weight"),
        (incomplete, {}, r"holds no clf.2.weight.*convert all ten"),
        (tensors, {"hidden": 32}, "does not fit"),
    ):
        save_file(held, tmp_path / "model.safetensors")
        (tmp_path / "config.json").write_text(json.dumps({**SIZES, **sizes}))
        with pytest.raises(UnreadableFileError, match=why):
            RefinPaint.from_pretrained(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"torn")
    with pytest.raises(UnreadableFileError, match="no whole safetensors"):
        RefinPaint.from_pretrained(tmp_path)
    model.save_pretrained(tmp_path / "saved")
    config = json.loads((tmp_path / "saved" / "config.json").read_text())
    (tmp_path / "saved" / "config.json").write_text(json.dumps({**config, "hidden": 32}))
    with pytest.raises(UnreadableFileError, match="do not fit"):
        RefinPaint.from_pretrained(tmp_path / "saved")


@pytest.mark.skipif(
    not (os.environ.get("RUN_HUB_TESTS") and os.environ.get("REFINPAINT_WEIGHTS")),
    reason="RUN_HUB_TESTS=1 and REFINPAINT_WEIGHTS=FOLDER with the published parts: they are not on the Hub",
)
def test_the_real_weights() -> None:
    system = RefinPaint.from_pretrained(os.environ["REFINPAINT_WEIGHTS"])
    (result,) = system.edit([score_request(asked(confidence=8))])
    assert result.score is not None
    assert len(result.score.notes) > 0
