"""MusiConGen on a tiny model: what it is told, where that is added, its checkpoint, and an edit."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st
from tests.editing.house import ASK, RATE, heard, recording

from music_evals.annotations import Beats, Chords, EditConditions, EditInstruction
from music_evals.benchmark.edits.task import Settings, run_edits
from music_evals.benchmark.edits.work import make_editor
from music_evals.errors import (
    InvalidInputError,
    ModelUnavailableError,
    UnreadableFileError,
    UnsupportedEditError,
)

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
from tests.editing.tiny_musicgen import save, tiny_musicgen  # noqa: E402

from music_evals.editing.musicongen import (  # noqa: E402
    CHECKPOINT,
    N_FRAMES,
    MusiConGen,
    _beat_frames,
    _chord_frames,
    _mapped_tensors,
    _MusiConGenModel,
    _repeated,
    from_checkpoint,
    fused,
)

pytestmark = pytest.mark.usefixtures("one_thread")
ROCK = EditInstruction(text="Rock to jazz.", source_prompt="a rock song", before="rock", after="jazz")
CHOSEN = {"guidance": 3.0, "top_k": 250, "temperature": 1.0}


def conditions(*labels: str, seconds: float = 2.0) -> EditConditions:
    edges = np.linspace(0, seconds, len(labels) + 1)
    beats = np.arange(0, seconds, 0.5)
    return EditConditions(Chords(np.array([edges[:-1], edges[1:]]).T, labels), Beats(beats, 120.0), beats[::4])


def published(base: Any, seed: int = 1) -> dict[str, Any]:
    """Return random tensors by the names and shapes of audiocraft, for a model of this size."""
    config, text = base.model.decoder.config, base.model.text_encoder.config
    width, ffn = config.hidden_size, config.ffn_dim
    shapes = {
        **{f"emb.{k}.weight": (config.vocab_size + 1, width) for k in range(config.num_codebooks)},
        **{f"linears.{k}.weight": (config.vocab_size, width) for k in range(config.num_codebooks)},
        "out_norm.weight": (width,),
        "out_norm.bias": (width,),
        "condition_provider.conditioners.description.output_proj.weight": (width, text.hidden_size),
        "condition_provider.conditioners.description.output_proj.bias": (width,),
        "condition_provider.conditioners.chord.output_proj.weight": (width, 12),
        "condition_provider.conditioners.chord.output_proj.bias": (width,),
        "condition_provider.conditioners.beat.output_proj.weight": (width, 1),
        "condition_provider.conditioners.beat.output_proj.bias": (width,),
    }
    for layer in range(config.num_hidden_layers):
        place = f"transformer.layers.{layer}."
        shapes |= {
            f"{place}self_attn.in_proj_weight": (3 * width, width),
            f"{place}self_attn.out_proj.weight": (width, width),
            f"{place}linear1.weight": (ffn, width),
            f"{place}linear2.weight": (width, ffn),
        }
        shapes |= {f"{place}norm{n}.{part}": (width,) for n in (1, 2) for part in ("weight", "bias")}
    generator = torch.Generator().manual_seed(seed)
    return {name: torch.randn(shape, generator=generator) * 0.3 for name, shape in shapes.items()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the base model and a checkpoint in the authors' form."""
    place = tmp_path_factory.mktemp("musicongen")
    base = tiny_musicgen("musicongen")
    save(base, place)
    torch.save({"best_state": {k: v.half() for k, v in published(base).items()}, "xp.cfg": "x: 1"}, place / CHECKPOINT)
    return place


@pytest.fixture(scope="module")
def system(folder: Path) -> MusiConGen:
    made = make_editor("musicongen", {"base": str(folder)}, {"source": str(folder)})
    assert isinstance(made, MusiConGen)
    return made


class TestFrames:
    """What the model is told, at 50 frames a second."""

    @pytest.mark.parametrize(
        ("label", "classes"),
        [
            ("C:maj", {0, 4, 7}),
            ("C", {0, 4, 7}),
            ("A:min", {9, 0, 4}),
            ("G:7", {7, 11, 2, 5}),
            ("Eb:maj/3", {3, 7, 10}),
            ("N", set()),
            ("X", set()),
        ],
    )
    def test_chords_are_their_pitch_classes(self, label: str, classes: set[int]) -> None:
        frames = _chord_frames(Chords(np.array([[0.0, 1.0], [1.0, 2.0]]), (label, "N")), 100)
        assert set(np.flatnonzero(frames[:, 0])) == classes
        assert (frames[:, :50] == frames[:, :1]).all()
        assert not frames[:, 50:].any()
        assert frames.min() >= 0

    def test_beats_are_pulses_and_downbeats_stand_out(self) -> None:
        frames = _beat_frames([1.0, 2.0], [2.0], 200)
        assert frames[50] == pytest.approx(0.9)
        assert frames[100] == pytest.approx(1.9)
        assert frames[47:54] == pytest.approx([0.05, 0.1, 0.3, 0.9, 0.3, 0.1, 0.05])
        assert not frames[:47].any()

    def test_a_short_source_is_repeated(self) -> None:
        chords, beats = _repeated(conditions("C:maj", "G:maj"), 2.0)
        assert chords.shape == (12, N_FRAMES)
        assert beats.shape == (N_FRAMES,)
        assert (chords[:, :100] == chords[:, 100:200]).all()
        assert (beats[:100] == beats[1400:]).all()

    def test_a_downbeat_is_a_beat(self) -> None:
        held = conditions("C:maj")
        with pytest.raises(InvalidInputError, match="one of the beats"):
            dataclasses.replace(held, downbeats_sec=np.array([0.3]))


class TestFusion:
    """Where chords and beats are added."""

    def seen(self, model: Any, steps: Any, n_steps: int) -> dict[int, list[Any]]:
        """Return what each layer is given besides what it is given without `steps`, by pass."""
        given: dict[int, list[Any]] = {}

        def spy(index: int) -> Any:
            return lambda _, args: given.setdefault(index, []).append(args[0].clone())

        layers = model.decoder.model.decoder.layers
        with torch.no_grad():
            whole = torch.zeros(2, 5, model.decoder.config.hidden_size)
            with fused(model, steps, 5):
                hooks = [layer.register_forward_pre_hook(spy(index)) for index, layer in enumerate(layers)]
                told = torch.ones(1, 3, dtype=torch.long)
                model.generate(
                    inputs=told, encoder_hidden_states=whole, guidance_scale=3.0, do_sample=False,
                    max_new_tokens=n_steps,
                )  # fmt: skip
                for hook in hooks:
                    hook.remove()
        return given

    def test_exactly_what_a_step_is_told_is_added_to_the_first_row(self) -> None:
        model = tiny_musicgen("musicongen").model
        steps = torch.randn(4, model.decoder.config.hidden_size, generator=torch.Generator().manual_seed(0))
        layers = model.decoder.model.decoder.layers
        before: list[Any] = []
        hook = layers[4].register_forward_pre_hook(lambda _, args: before.append(args[0].clone()))
        after = self.seen(model, steps, 6)
        hook.remove()
        assert len(before) == len(after[4]) == 6
        for number, (was, now) in enumerate(zip(before, after[4], strict=True)):
            added = now - was
            assert not added[1].any(), "the half without conditions is told nothing"
            assert not added[0, :-1].any(), "nor is the prefix"
            told = steps[number] if number < len(steps) else torch.zeros_like(steps[0])
            assert torch.allclose(added[0, -1], told, atol=1e-6)

    def test_every_fourth_layer_of_the_first_three_quarters(self) -> None:
        layers = 48
        assert list(range(0, 3 * layers // 4, 4)) == [0, 4, 8, 12, 16, 20, 24, 28, 32]
        model = tiny_musicgen("musicongen").model  # of 8 layers
        with fused(model, torch.zeros(1, 16), 5):
            told = [bool(layer._forward_pre_hooks) for layer in model.decoder.model.decoder.layers]
        assert told == [True, False, False, False, True, False, False, False]
        assert not any(layer._forward_pre_hooks for layer in model.decoder.model.decoder.layers)

    def test_told_nothing_it_is_the_plain_model_with_that_prefix(self, system: MusiConGen) -> None:
        model = system._model
        chords, beats = _repeated(conditions("C:maj", "G:maj"), 2.0)
        for part in (model.beat_proj, model.chord_proj):
            assert part.weight.abs().max() > 0
        told, model.told = model.told, lambda *_: (told(chords, beats)[0], torch.zeros(N_FRAMES, 16))
        try:
            found = model.generate_told("a song", 0.2, 0, CHOSEN, chords=chords, beats=beats)
        finally:
            del model.told
        with torch.no_grad():
            prefix = torch.cat([told(chords, beats)[0], model.text_states("a song")])[None]
        plain = model.generate("a song", 0.2, 0, CHOSEN, encoder_hidden_states=torch.cat([prefix, 0 * prefix]))
        assert np.array_equal(found, plain)

    def test_the_text_is_told_as_the_melody_model_tells_it(self) -> None:
        """Chords aside, the prefix of ours is the one that transformers makes of the words."""
        made = tiny_musicgen("musicongen")
        ours = _MusiConGenModel(
            made.model, made.tokenizer, chord_proj=torch.nn.Linear(12, 16), beat_proj=torch.nn.Linear(1, 16)
        )
        asked = made.tokenizer(["a rock song"], return_tensors="pt", return_token_type_ids=False)
        with torch.no_grad():
            whole = made.model(**asked, decoder_input_ids=torch.full((4, 1), 64)).encoder_hidden_states
            words = ours.text_states("a rock song")
        assert torch.allclose(whole[0, -len(words) :], words, atol=1e-6)
        assert whole.shape[1] == 235 + len(words)


class TestCheckpoint:
    """The published file: every tensor has its place, and no other is taken."""

    def test_round_trip(self, system: MusiConGen) -> None:
        base = tiny_musicgen("musicongen")
        theirs = published(base)
        places = _mapped_tensors(theirs)
        state = system._model.model.state_dict()
        decoder = {name for name in state if name.startswith(("decoder.", "enc_to_dec_proj."))}
        assert decoder == {name for name in places if not name.startswith(("chord_proj", "beat_proj"))}
        for name in decoder:
            assert torch.equal(state[name], places[name].half().float())
        stacked = theirs["transformer.layers.3.self_attn.in_proj_weight"]
        names = [f"decoder.model.decoder.layers.3.self_attn.{kind}_proj.weight" for kind in "qkv"]
        assert torch.equal(torch.cat([places[name] for name in names]), stacked)
        chord = theirs["condition_provider.conditioners.chord.output_proj.weight"]
        assert torch.equal(system._model.chord_proj.weight, chord.half().float())
        # what is not in the checkpoint stays that of the base
        kept = next(name for name in state if name.startswith("text_encoder.") and name.endswith("weight"))
        assert torch.equal(state[kept], base.model.state_dict()[kept])

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            (lambda held: held.pop("out_norm.bias"), "missing"),
            (lambda held: held.update({"out_norm.bias": torch.zeros(3)}), "another shape"),
            (lambda held: held.update({"emb.9.weight": torch.zeros(3)}), "too many"),
        ],
    )
    def test_other_tensors_are_refused(self, change: Any, words: str, tmp_path: Path) -> None:
        base = tiny_musicgen("musicongen")
        held = published(base)
        change(held)
        torch.save({"best_state": held}, tmp_path / CHECKPOINT)
        with pytest.raises(ModelUnavailableError, match=words):
            from_checkpoint(base, tmp_path / CHECKPOINT)

    def test_other_files_are_refused(self, tmp_path: Path) -> None:
        base = tiny_musicgen("musicongen")
        for content in ({"best_state": {"other.weight": torch.zeros(1)}}, {"state": {}}, {"best_state": {"x": "text"}}):
            torch.save(content, tmp_path / CHECKPOINT)
            with pytest.raises(UnreadableFileError, match=r"no place|no tensors|something else"):
                from_checkpoint(base, tmp_path / CHECKPOINT)
        (tmp_path / CHECKPOINT).write_bytes(b"\x80\x04cos\nsystem\n(S'true'\ntR.")
        with pytest.raises(UnreadableFileError, match="no tensors"):
            from_checkpoint(base, tmp_path / CHECKPOINT)

    def test_missing_weights_are_named(self, tmp_path: Path, folder: Path) -> None:
        with pytest.raises(ModelUnavailableError, match=r"Cyan0731/MusiConGen.*CC-BY-NC"):
            make_editor("musicongen", {}, {})
        with pytest.raises(ModelUnavailableError, match=CHECKPOINT):
            make_editor("musicongen", {"base": str(folder)}, {"source": str(tmp_path)})
        with pytest.raises(InvalidInputError, match="`revision`"):
            make_editor("musicongen", {}, {"source": "Cyan0731/MusiConGen"})
        with pytest.raises(InvalidInputError, match=r"musicgen-melody.*`revision`"):
            make_editor("musicongen", {}, {"source": str(folder)})


class TestEdits:
    """Edits along chords and beats."""

    def test_an_item_alone_is_the_item_in_a_batch(self, system: MusiConGen) -> None:
        held = conditions("C:maj", "G:maj")
        requests = [heard(ROCK, seconds=0.5, conditions=held), heard(ROCK, seconds=0.5, seed=1, conditions=held)]
        batch = system.edit(requests)
        for request, result in zip(requests, batch, strict=True):
            (alone,) = system.edit([request])
            assert np.array_equal(alone.audio, result.audio)
        assert not np.array_equal(batch[0].audio, batch[1].audio)
        assert batch[0].audio.shape == requests[0].audio.shape
        assert batch[0].provenance["weights"][0]["licence"] == "CC-BY-NC-4.0"

    def test_chords_and_beats_are_heard(self, system: MusiConGen) -> None:
        chords, beats = _repeated(conditions("C:maj", "G:maj"), 2.0)
        other, _ = _repeated(conditions("F#:min", "B:min"), 2.0)
        first = system._model.generate_told("a song", 0.3, 0, CHOSEN, chords=chords, beats=beats)
        for told in ({"chords": other, "beats": beats}, {"chords": chords, "beats": np.roll(beats, 7)}):
            assert not np.array_equal(first, system._model.generate_told("a song", 0.3, 0, CHOSEN, **told))

    def test_other_conditions_are_another_edit(self, system: MusiConGen) -> None:
        keys = [
            system.edit([heard(ROCK, seconds=0.5, conditions=held)])[0].key
            for held in (conditions("C:maj"), conditions("G:maj"), conditions("C:maj"))
        ]
        assert keys[0] == keys[2] != keys[1]

    def test_what_it_cannot_edit_is_refused(self, system: MusiConGen) -> None:
        with pytest.raises(UnsupportedEditError, match="`conditions`"):
            system.edit([heard(ROCK, seconds=0.5)])
        with pytest.raises(UnsupportedEditError, match="`target_prompt`"):
            system.edit([heard(ASK, seconds=0.5, conditions=conditions("C:maj"))])


@given(
    st.lists(st.sampled_from(["C:maj", "D:min", "N", "X", "Ab:7", "F#:sus4/5"]), min_size=1, max_size=6),
    st.floats(0.5, 30.0),
)
def test_all_frames_are_told(labels: list[str], seconds: float) -> None:
    chords, beats = _repeated(conditions(*labels, seconds=seconds), seconds)
    assert set(np.unique(chords)) <= {0.0, 1.0}
    assert np.isfinite(beats).all()
    assert beats.max() <= 1.9 + 1e-6 or seconds < 0.5


@pytest.mark.skipif(not os.environ.get("RUN_HUB_TESTS"), reason="RUN_HUB_TESTS=1 loads the real weights (gigabytes)")
def test_the_real_weights_fit() -> None:
    from huggingface_hub import HfApi

    ours, base = (HfApi().model_info(name).sha for name in ("Cyan0731/MusiConGen", "facebook/musicgen-melody"))
    system = MusiConGen.from_pretrained("Cyan0731/MusiConGen", revision=ours, base_revision=base)
    (result,) = system.edit([heard(ROCK, seconds=1, conditions=conditions("C:maj", seconds=1))])
    assert float(np.abs(result.audio).max()) > 1e-3


def test_the_run_hears_what_the_system_is_told(folder: Path, tmp_path: Path) -> None:
    soundfile.write(tmp_path / "song.wav", recording(seconds=3).T, RATE)
    settings = Settings(
        tmp_path / "out",
        sources=[str(tmp_path / "song.wav")],
        system="musicongen",
        parameters={"base": str(folder)},
        weights={"source": str(folder)},
        instruction=ROCK,
    )
    edits = run_edits(settings)
    assert edits.failures == []
    soundfile.write(tmp_path / "song.wav", recording(seconds=1).T, RATE)
    ((_, why),) = run_edits(settings).failures
    assert "no beats" in why
