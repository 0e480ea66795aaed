"""RefinPaint: tokens hold the notes, the loop touches nothing else, and what is cached changes nothing."""

from __future__ import annotations

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
from tests.editing.house import heard, triads, written

from music_evals.annotations import DRUMS, EditInstruction, Score, Tempo, TimeSignature
from music_evals.benchmark.edits.work import make_editor
from music_evals.cli import main
from music_evals.editing import _refinpaint_tokens as codec
from music_evals.errors import (
    FileTooLargeError,
    InvalidInputError,
    ModelUnavailableError,
    UnreadableFileError,
    UnsupportedEditError,
)
from music_evals.protocols import EDITORS, EditingSystem
from music_evals.symbolic.files import write_midi
from music_evals.symbolic.notes import make_notes

torch = pytest.importorskip("torch")

from music_evals.editing import _refinpaint_weights as weights  # noqa: E402
from music_evals.editing._refinpaint_networks import RefinPaintNetworks, draw, resample  # noqa: E402
from music_evals.editing.refinpaint import RefinPaint, kept_count, written_by_tokens  # noqa: E402

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
    assert (encoded.n_drums, encoded.n_outside, encoded.n_notes) == (1, 1, 5)
    assert sorted(notes_of(written_by_tokens(score))) == [(0, 1, 60), (1, 8, 62), (8, 1, 64)]
    assert codec.encode(score, merge_drums=True).n_drums == 0
    assert len(written_by_tokens(score, merge_drums=True).notes) == 4
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


def test_kept_counts_follow_the_formula() -> None:
    assert kept_count(100, 10) == math.ceil(100 * math.cos(10 * math.pi / 22)) == 15
    counts = [kept_count(50, round_) for round_ in range(10, 0, -1)]
    assert counts == sorted(counts)
    assert counts[-1] == math.ceil(50 * 0.98982)


def test_the_loop_keeps_as_many_as_it_should(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []

    def counted(*given: Any, **options: Any) -> Any:
        drawn.append(int(given[2].sum()))
        return resample(*given, **options)

    monkeypatch.setattr("music_evals.editing._refinpaint_networks.resample", counted)
    RefinPaint(model).edit([written(asked(confidence=4))])
    n = 2 * 7  # two bars of a position and three notes
    assert drawn == [n - math.ceil(n * math.cos(round_ * math.pi / 22)) for round_ in (6, 5, 4, 3, 2, 1)]


def test_full_confidence_is_the_identity(model: Any) -> None:
    (result,) = RefinPaint(model).edit([written(asked(confidence=10))])
    assert result.score is not None
    assert np.array_equal(result.score.notes, written_by_tokens(triads()).notes)
    assert result.warnings == ()


@pytest.mark.parametrize("free_tokens", [False, True])
def test_nothing_outside_of_the_bars_changes(model: Any, free_tokens: bool) -> None:
    system = RefinPaint(model, free_tokens=free_tokens)
    before = codec.encode(triads())
    window = np.zeros(len(before.tokens), dtype=bool)
    window[before.bars[1] : before.bars[3]] = True
    changed = np.zeros_like(window)
    for seed in range(6):
        generator = torch.Generator().manual_seed(seed)
        from music_evals.editing.refinpaint import _window

        after = system._refined(_window(before, (1, 3), 64), 0, generator)
        assert np.array_equal(after[~window], before.tokens[~window])
        assert (after[before.bars] == codec.BAR).all(), "bars survive"
        if not free_tokens:
            assert (after[window] >= codec.FIRST_PITCH).sum() == window.sum() - 2, "and no bar is added"
        changed |= after != before.tokens
    assert changed[np.flatnonzero(window)[-2:]].any(), "the last tokens are drawn as well"
    assert changed.sum() > 7


def test_the_last_two_tokens_of_the_authors_stay(model: Any) -> None:
    from music_evals.editing.refinpaint import _window

    before = codec.encode(triads())
    system = RefinPaint(model, skip_last_two=True)
    for seed in range(6):
        after = system._refined(_window(before, (1, 3), 64), 0, torch.Generator().manual_seed(seed))
        assert np.array_equal(after[before.bars[3] - 2 :], before.tokens[before.bars[3] - 2 :])


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
        rows = inpainter.extend(torch.tensor([codec.BOS, *found[:-1]]), inpainter.start(tokens, drawn))
        found[place] = draw(inpainter.head(rows[place]).double(), 0.95, generator)
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
    first, second = (inpainter.extend(which, inpainter.start(tokens, hidden)) for which in (tokens, other))
    assert torch.allclose(first[:8], second[:8], atol=1e-6)
    assert float((first[8:] - second[8:]).abs().max()) > 1e-4


def test_layers_are_those_of_torch() -> None:
    """The oracle: PyTorch's encoder layer with our weights, after the sum and before it."""
    from music_evals.editing._refinpaint_networks import DecoderLayer, Layer

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
    requests = [written(MIDDLE), written(asked(confidence=0)), written(MIDDLE, seed=1)]
    batch = system.edit(requests)
    for request, result in zip(requests, batch, strict=True):
        (alone,) = RefinPaint(model).edit([request])
        assert alone.score is not None
        assert result.score is not None
        assert np.array_equal(alone.score.notes, result.score.notes)
        assert result.score.tempos == triads().tempos
    assert notes_of(batch[0].score) != notes_of(batch[2].score), "another seed"
    assert "tokens say nothing" in " ".join(RefinPaint(model, free_tokens=True).edit(requests)[1].warnings)


def test_a_long_piece_is_seen_through_a_window() -> None:
    (result,) = RefinPaint(networks(max_tokens=24)).edit([written(MIDDLE)])
    assert result.warnings[0] == "the networks saw tokens 0:24 of 32"


def test_what_it_cannot_edit_is_refused(model: Any) -> None:
    system = RefinPaint(model)
    for request, why in (
        (heard(MIDDLE, seconds=1), "a score"),
        (written(asked(bars=None)), "`bars`"),
        (written(asked(confidence=None)), "`confidence`"),
        (written(asked(bars=(2, 9))), "source has 4"),
    ):
        with pytest.raises(UnsupportedEditError, match=why):
            system.edit([request])
    waltz = dataclasses.replace(triads(), time_signatures=(TimeSignature(0, 3, 4),))
    with pytest.raises(UnsupportedEditError, match="3/4"):
        system.edit([written(MIDDLE, score=waltz)])
    assert RefinPaint(model, any_meter=True).supports(written(MIDDLE, score=waltz)) == ""
    assert "name fewer bars" in RefinPaint(networks(max_tokens=15)).supports(written(MIDDLE))
    with pytest.raises(ModelUnavailableError, match=r"ta603/RefinPaint.*CC-BY-NC-SA"):
        make_editor("refinpaint", {}, {})
    with pytest.raises(InvalidInputError, match="`top_p`"):
        RefinPaint(model, top_p=0)
    assert "refinpaint" in EDITORS


def publish(folder: Path, made: Any, *, prefix: str = "transformer.", fill: Any = None) -> Path:
    """Write networks as the authors publish theirs: one set of tensors in five files, and sizes in config.json."""
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(SIZES))
    sets = {
        "inpainting": {prefix + name: tensor for name, tensor in made.inpainter.state_dict().items()},
        "feedback": {**made.feedback.state_dict(), "pos_weight": torch.tensor(1.39), **(fill or {})},
    }
    for stem, tensors in sets.items():
        names = list(tensors)
        for part in range(weights.N_PARTS):
            some = {name: tensors[name] for name in names[part :: weights.N_PARTS]}
            torch.save(some, folder / f"{stem}_part{part + 1}.pth")
    return folder


def test_the_verb_edits_with_published_parts(model: Any, tmp_path: Path) -> None:
    """Scores go in and out as MIDI; rendered, they are recordings that can be judged."""
    publish(tmp_path / "parts", model)
    (tmp_path / "song.mid").write_bytes(write_midi(triads()))
    how = ["--system", "refinpaint", "--weights", str(tmp_path / "parts"), "--bars", "1:3", "--keep", "4"]
    command = ["edit", str(tmp_path / "song.mid"), *how, "--instruction", "Refine it.", "--out", str(tmp_path / "out")]
    assert main(command) == 0
    assert (tmp_path / "out" / "edits" / "song.mid").exists()
    assert main([*command[:-1], str(tmp_path / "heard"), "--render", "additive"]) == 0
    assert (tmp_path / "heard" / "edits" / "song.flac").exists()


def test_parts_and_a_saved_folder_are_the_same_networks(model: Any, tmp_path: Path) -> None:
    model.save_pretrained(tmp_path / "saved")
    parts = publish(tmp_path / "parts", model)
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
    assert loaded[2].info.parameters["top_p"] == 0.9
    assert loaded[1].info.weights[0].id == str(parts)


def test_other_names_are_given_in_a_file(model: Any, tmp_path: Path) -> None:
    renamed = networks()
    weight = renamed.feedback.state_dict()
    query, rest = weight["layers.0.self_attn.in_proj_weight"].split([16, 32])
    folder = publish(tmp_path, renamed, fill={"q": query, "kv": rest})
    with pytest.raises(UnreadableFileError, match="without a place: kv, q"):
        RefinPaint.from_pretrained(folder)
    names = {"feedback": {"layers.0.self_attn.in_proj_weight": ["q", "kv"]}}
    (folder / "names.json").write_text(json.dumps(names))
    with pytest.raises(UnreadableFileError, match=r"without a place: layers.0.self_attn.in_proj_weight"):
        RefinPaint.from_pretrained(folder)
    for part in folder.glob("feedback_part*.pth"):
        tensors = torch.load(part, weights_only=True)
        torch.save({name: one for name, one in tensors.items() if not name.endswith("in_proj_weight")}, part)
    loaded = RefinPaint.from_pretrained(folder)._model
    assert torch.equal(loaded.feedback.state_dict()["layers.0.self_attn.in_proj_weight"], torch.cat([query, rest]))


class Evil:
    def __reduce__(self) -> Any:
        return print, ("owned",)


def test_files_that_do_not_fit_are_refused(model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelUnavailableError, match="CC-BY-NC-SA"):
        RefinPaint.from_pretrained(tmp_path)
    with pytest.raises(InvalidInputError, match="`revision`"):
        RefinPaint.from_pretrained("someone/refinpaint")
    folder = publish(tmp_path / "parts", model)
    (folder / "feedback_part3.pth").unlink()
    with pytest.raises(ModelUnavailableError, match="feedback_part3"):
        RefinPaint.from_pretrained(folder)
    torch.save({"a": Evil()}, folder / "feedback_part3.pth")
    with pytest.raises(UnreadableFileError, match="something else than tensors"):
        RefinPaint.from_pretrained(folder)
    (publish(folder, model) / "config.json").write_text(json.dumps({**SIZES, "hidden": 32}))
    with pytest.raises(UnreadableFileError, match="do not fit"):
        RefinPaint.from_pretrained(folder)
    monkeypatch.setattr(weights, "MOST_BYTES", 100)
    with pytest.raises(FileTooLargeError):
        RefinPaint.from_pretrained(folder)
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
    (result,) = system.edit([written(asked(confidence=8))])
    assert result.score is not None
    assert len(result.score.notes) > 0
