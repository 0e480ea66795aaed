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
from tests.editing.house import ASK, RATE, audio_request, recording

from music_evals.annotations import Beats, Chords, EditConditions, EditInstruction
from music_evals.benchmark.tasks.edits.task import EDITS, Settings
from music_evals.benchmark.tasks.edits.work import make_editor
from music_evals.errors import InvalidInputError, ModelUnavailableError, UnreadableFileError, UnsupportedEditError

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
from safetensors.torch import save_file  # noqa: E402
from tests.editing.tiny_musicgen import GREEDY, TEXT, furthest, recorded, save, song, steps_of, tiny_musicgen, without  # noqa: E402

from music_evals.editing import musicongen  # noqa: E402
from music_evals.editing.musicgen import CHECKPOINT, PICKLED, MusicGenModel  # noqa: E402
from music_evals.editing.musicongen import (  # noqa: E402
    BELOW,
    EVERY,
    N_FRAMES,
    MusiConGen,
    _beat_frames,
    _chord_frames,
    _MusiConGenModel,
    _repeated,
    chord_classes,
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
    """Return a folder with the base model and a checkpoint in the authors' form, converted."""
    place = tmp_path_factory.mktemp("musicongen")
    base = tiny_musicgen("musicongen")
    save(base, place)
    save_file({name: tensor.half() for name, tensor in published(base).items()}, place / CHECKPOINT)
    (place / PICKLED).touch()
    return place


@pytest.fixture(scope="module")
def system(folder: Path) -> MusiConGen:
    made = make_editor("musicongen", {"base": str(folder)}, {"source": str(folder)})
    assert isinstance(made, MusiConGen)
    return made


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    """Return what the authors' code computed for a tiny model, and the folder of that."""
    return recorded("musicongen", "musicongen", tmp_path_factory.mktemp("recorded"))


@pytest.fixture(scope="module")
def model(theirs: tuple[dict[str, Any], Path]) -> _MusiConGenModel:
    found = MusiConGen.from_pretrained(theirs[1], base=theirs[1] / "base")
    assert found.info.weights[0].files == (PICKLED,)
    return found._model


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
            ("C:9", {0, 4, 7, 10, 2}),
            ("C:maj9", {0, 4, 7, 11, 2}),
            ("C:11", {0, 4, 7, 10, 2, 5}),
            ("C:13", {0, 4, 7, 10, 9}),
            ("C:maj6", {0, 4, 7, 9}),
            ("C:6", {0, 9}),
            ("C:min6/5", {0, 3, 7, 9}),
            ("B:hdim7", {11, 2, 5, 9}),
            ("C:7sus4", {0, 5, 7, 10}),
            ("C:sus2(b7)", {0, 2, 7, 10}),
            ("C:maj(*5)", {0, 4}),
            ("C:(1,b3,9)/b7", {0, 3, 2, 10}),
            ("C/2", {0, 4, 7, 2}),
            ("Amin7/b3", {9, 0, 4, 7}),
            ("N", set()),
        ],
    )
    def test_chords_are_their_pitch_classes(self, label: str, classes: set[int]) -> None:
        frames = _chord_frames(Chords(np.array([[0.0, 1.0], [1.0, 2.0]]), (label, "N")), 100)
        assert set(np.flatnonzero(frames[:, 0])) == classes
        assert (frames[:, :50] == frames[:, :1]).all()
        assert not frames[:, 50:].any()
        assert frames.min() >= 0

    def test_a_chord_that_is_not_known_is_minus_one(self) -> None:
        assert (chord_classes("X") == -1).all()

    @pytest.mark.parametrize("label", ["", "H", "c", "C:", "C:foo", "C:maj()", "C:maj(0)", "C/14", "C:maj(b)", "C6"])
    def test_other_names_are_refused(self, label: str) -> None:
        with pytest.raises(InvalidInputError, match=r"Harte|degree"):
            chord_classes(label)

    def test_mir_eval_reads_the_same(self) -> None:
        """Where both know a quality, but for a 13, in which the authors hear no 9 and 11."""
        from mir_eval.chord import EXTENDED_QUALITY_REDUX, QUALITIES, encode

        shared = musicongen.QUALITIES.keys() & (QUALITIES.keys() | EXTENDED_QUALITY_REDUX.keys())
        shared -= {"13", "b13", "maj13", "min13", "b9", "#9", "#11"}  # the last three are none of its grammar
        assert len(shared) == 21
        for quality in shared:
            for bass in ("", "/b3", "/2"):
                root, classes, _ = encode(f"Eb:{quality}{bass}", reduce_extended_chords=True)
                assert np.array_equal(chord_classes(f"Eb:{quality}{bass}"), np.roll(classes, root)), quality

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
        assert list(range(0, min(BELOW, layers), EVERY)) == [0, 4, 8, 12, 16, 20, 24, 28, 32]
        model = tiny_musicgen("musicongen").model  # of 8 layers
        with fused(model, torch.zeros(1, 16), 5):
            told = [bool(layer._forward_pre_hooks) for layer in model.decoder.model.decoder.layers]
        assert told == [True, False, False, False, True, False, False, False]
        assert not any(layer._forward_pre_hooks for layer in model.decoder.model.decoder.layers)

    @pytest.mark.slow
    def test_told_nothing_it_is_the_plain_model_with_that_prefix(self, system: MusiConGen) -> None:
        model = system._model
        chords, beats = _repeated(conditions("C:maj", "G:maj"), 2.0)
        for part in (model.beat_proj, model.chord_proj):
            assert part.weight.abs().max() > 0
        states = model.condition_states
        model.condition_states = lambda *_: (states(chords, beats)[0], torch.zeros(N_FRAMES, 16))
        try:
            found = model.generate("a song", 0.2, 0, CHOSEN, chords=chords, beats=beats)
        finally:
            del model.condition_states
        with torch.no_grad():
            prefix = torch.cat([states(chords, beats)[0], model.text_states("a song")])[None]
        states_of_both = torch.cat([prefix, 0 * prefix])
        plain = MusicGenModel.generate(model, "a song", 0.2, 0, CHOSEN, encoder_hidden_states=states_of_both)
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


class TestAuthorsCode:
    """What the authors' code computed for a tiny model (benchmarks/parity): its files load, ours computes the same."""

    def steps(self, model: _MusiConGenModel) -> dict[str, Any]:
        chords, beats = _repeated(song(30), 30.0)
        made = steps_of(model, lambda: model.generate(TEXT, 1.2, 0, GREEDY, chords=chords, beats=beats))
        return made.golden()

    def test_chord_names_and_frames(self, theirs: tuple[dict[str, Any], Path]) -> None:
        names = theirs[0]["chord_names"].tobytes().decode().split("\n")
        assert len(names) == len(theirs[0]["chord_classes"]) > 500
        for name, classes in zip(names, theirs[0]["chord_classes"], strict=True):
            assert np.array_equal(chord_classes(name), classes), name
        chords, beats = _repeated(song(30), 30.0)
        assert np.array_equal(chords, theirs[0]["chords"])
        assert furthest(beats, theirs[0]["beats"]) < 1e-6

    @pytest.mark.slow
    def test_what_it_is_told_logits_and_tokens(
        self, model: _MusiConGenModel, theirs: tuple[dict[str, Any], Path]
    ) -> None:
        made = self.steps(model)
        assert np.array_equal(made["tokens"], theirs[0]["tokens"])
        for name in ("given", "logits"):
            assert furthest(made[name], theirs[0][name]) < 1e-4

    @pytest.mark.slow
    def test_a_missing_norm_is_seen(self, model: _MusiConGenModel, theirs: tuple[dict[str, Any], Path]) -> None:
        decoder = model.model.decoder.model.decoder
        for place, name in ((decoder, "layer_norm"), (decoder.layers[20], "self_attn_layer_norm")):
            with without(place, name):
                assert furthest(self.steps(model)["logits"], theirs[0]["logits"]) > 1e-2

    @pytest.mark.slow
    def test_a_layer_that_is_not_told_is_seen(
        self, model: _MusiConGenModel, theirs: tuple[dict[str, Any], Path], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for below in (32, 40):  # the last one is left out; the first one after them is told
            monkeypatch.setattr(musicongen, "BELOW", below)
            assert furthest(self.steps(model)["logits"], theirs[0]["logits"]) > 1e-2


class TestCheckpoint:
    """The published file: every tensor has its place, and no other is taken."""

    def test_round_trip(self, system: MusiConGen) -> None:
        base = tiny_musicgen("musicongen")
        theirs = published(base)
        state = system._model.model.state_dict()
        stacked = theirs["transformer.layers.3.self_attn.in_proj_weight"].half().float()
        names = [f"decoder.model.decoder.layers.3.self_attn.{kind}_proj.weight" for kind in "qkv"]
        assert torch.equal(torch.cat([state[name] for name in names]), stacked)
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
            (lambda held: held.update({"other.weight": torch.zeros(1)}), "too many"),
            (lambda held: held.update({"transformer.layers.0.self_attn.in_proj_weight": torch.zeros(1)}), "missing"),
            (lambda held: held.update({"transformer.layers.0.self_attn.in_proj_weight": torch.ones(())}), "missing"),
        ],
    )
    def test_other_tensors_are_refused(self, change: Any, words: str, tmp_path: Path) -> None:
        base = tiny_musicgen("musicongen")
        held = published(base)
        change(held)
        save_file(held, tmp_path / CHECKPOINT)
        with pytest.raises(ModelUnavailableError, match=words):
            MusiConGen._laid_over(base, tmp_path / CHECKPOINT)

    def test_other_files_are_refused(self, tmp_path: Path) -> None:
        (tmp_path / CHECKPOINT).write_bytes(b"\x80\x04cos\nsystem\n(S'true'\ntR.")
        with pytest.raises(UnreadableFileError, match="safetensors"):
            MusiConGen._laid_over(tiny_musicgen("musicongen"), tmp_path / CHECKPOINT)

    @pytest.mark.slow
    def test_a_pickled_file_is_refused_and_converted_where_it_was_fetched(
        self, folder: Path, tmp_path: Path, monkeypatch: Any
    ) -> None:
        held = {"best_state": published(tiny_musicgen("musicongen")), "xp.cfg": "x: 1"}
        torch.save(held, tmp_path / PICKLED)
        with pytest.raises(ModelUnavailableError, match="music-evals convert"):
            MusiConGen.from_pretrained(tmp_path, base=folder)
        asked: list[Any] = []

        def fetch(*what: str, **options: Any) -> str:
            asked.append((*what, options))
            return str(tmp_path / PICKLED)

        monkeypatch.setattr("huggingface_hub.hf_hub_download", fetch)
        made = MusiConGen.from_pretrained("some/one", revision="a" * 40, base=folder)
        assert asked == [("some/one", PICKLED, {"revision": "a" * 40})]
        assert (tmp_path / CHECKPOINT).is_file()
        assert [(weights.id, weights.revision) for weights in made.info.weights] == [
            ("some/one", "a" * 40), (str(folder), ""),
        ]  # fmt: skip

    def test_missing_weights_are_named(self, tmp_path: Path, folder: Path) -> None:
        with pytest.raises(ModelUnavailableError, match=r"Cyan0731/MusiConGen.*CC-BY-NC"):
            make_editor("musicongen", {}, {})
        with pytest.raises(ModelUnavailableError, match=PICKLED):
            make_editor("musicongen", {"base": str(folder)}, {"source": str(tmp_path)})
        with pytest.raises(InvalidInputError, match="`revision`"):
            make_editor("musicongen", {}, {"source": "Cyan0731/MusiConGen"})
        with pytest.raises(InvalidInputError, match=r"musicgen-melody.*`revision`"):
            make_editor("musicongen", {}, {"source": str(folder)})


class TestEdits:
    """Edits along chords and beats."""

    @pytest.mark.slow
    def test_an_item_alone_is_the_item_in_a_batch(self, system: MusiConGen) -> None:
        held = conditions("C:maj", "G:maj")
        requests = [
            audio_request(ROCK, seconds=0.5, conditions=held),
            audio_request(ROCK, seconds=0.5, seed=1, conditions=held),
        ]
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
        first = system._model.generate("a song", 0.3, 0, CHOSEN, chords=chords, beats=beats)
        for told in ({"chords": other, "beats": beats}, {"chords": chords, "beats": np.roll(beats, 7)}):
            assert not np.array_equal(first, system._model.generate("a song", 0.3, 0, CHOSEN, **told))

    @pytest.mark.slow
    def test_other_conditions_are_another_edit(self, system: MusiConGen) -> None:
        keys = [
            system.edit([audio_request(ROCK, seconds=0.5, conditions=held)])[0].key
            for held in (conditions("C:maj"), conditions("G:maj"), conditions("C:maj"))
        ]
        assert keys[0] == keys[2] != keys[1]

    def test_what_it_cannot_edit_is_refused(self, system: MusiConGen) -> None:
        with pytest.raises(UnsupportedEditError, match="`conditions`"):
            system.edit([audio_request(ROCK, seconds=0.5)])
        with pytest.raises(UnsupportedEditError, match="`target_prompt`"):
            system.edit([audio_request(ASK, seconds=0.5, conditions=conditions("C:maj"))])


@given(
    st.lists(st.sampled_from(["C:maj", "D:min", "N", "X", "Ab:7", "F#:sus4/5"]), min_size=1, max_size=6),
    st.floats(0.5, 30.0),
)
def test_all_frames_are_told(labels: list[str], seconds: float) -> None:
    chords, beats = _repeated(conditions(*labels, seconds=seconds), seconds)
    assert set(np.unique(chords)) <= {0.0, 1.0, -1.0}
    assert (-1.0 in chords) == ("X" in labels)
    assert np.isfinite(beats).all()
    assert beats.max() <= 1.9 + 1e-6 or seconds < 0.5


@pytest.mark.skipif(not os.environ.get("RUN_HUB_TESTS"), reason="RUN_HUB_TESTS=1 loads the real weights (gigabytes)")
def test_the_real_weights_fit() -> None:
    from huggingface_hub import HfApi

    ours, base = (HfApi().model_info(name).sha for name in ("Cyan0731/MusiConGen", "facebook/musicgen-melody"))
    system = MusiConGen.from_pretrained("Cyan0731/MusiConGen", revision=ours, base_revision=base)
    (result,) = system.edit([audio_request(ROCK, seconds=1, conditions=conditions("C:maj", seconds=1))])
    assert float(np.abs(result.audio).max()) > 1e-3


@pytest.mark.slow
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
    edits = EDITS.run(settings)
    assert edits.failures == []
    soundfile.write(tmp_path / "song.wav", recording(seconds=1).T, RATE)
    ((_, why),) = EDITS.run(settings).failures
    assert "no beats" in why
