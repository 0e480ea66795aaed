"""MusicGen by text and with a melody, and the codec alone, on tiny models with random weights."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.editing.house import ASK, audio_request

from music_evals.annotations import EditInstruction
from music_evals.benchmark.tasks.edits.work import make_editor
from music_evals.editing.musicgen import MusicGen
from music_evals.editing.musicgen_melody import MusicGenMelody, strongest_pitch_class
from music_evals.editing.resynth import Resynth
from music_evals.errors import (
    FileTooLargeError,
    InvalidAudioError,
    InvalidInputError,
    ModelUnavailableError,
    UnknownNameError,
    UnsupportedEditError,
)
from music_evals.protocols import EditingSystem

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
from tests.editing.tiny_musicgen import (  # noqa: E402
    GREEDY,
    MODELS,
    PARITY,
    RATE,
    TEXT,
    furthest,
    recorded,
    save,
    steps_of,
    tiny_codec,
    tiny_musicgen,
    tune,
    without,
)

pytestmark = pytest.mark.usefixtures("one_thread")
ROCK = EditInstruction(text="Rock to jazz.", source_prompt="a rock song", before="rock", after="jazz")
KINDS = {"musicgen": MusicGen, "musicgen_melody": MusicGenMelody}


@pytest.fixture(scope="module", params=sorted(KINDS))
def system(request: pytest.FixtureRequest) -> MusicGen:
    return KINDS[request.param](tiny_musicgen(request.param))


@pytest.mark.slow
def test_an_item_alone_is_the_item_in_a_batch(system: MusicGen) -> None:
    assert isinstance(system, EditingSystem)
    requests = [
        audio_request(ROCK, seconds=0.5),
        audio_request(dataclasses.replace(ROCK, after="calm"), seconds=0.7),
        audio_request(ROCK, seconds=0.5, seed=1),
    ]
    before = torch.random.get_rng_state()
    batch = system.edit(requests)
    assert torch.equal(before, torch.random.get_rng_state()), "the numbers of the caller are left alone"
    for request, result in zip(requests, batch, strict=True):
        assert result.audio.shape == request.audio.shape
        (alone,) = system.edit([request])
        assert np.array_equal(alone.audio, result.audio)
    assert not np.array_equal(batch[0].audio, batch[2].audio), "another seed"
    assert batch[0].log["sample_rate"] == [32000, 22050]
    assert batch[0].log["seconds"][0] == 0.5, "50 frames a second of 640 samples each"


def test_the_text_is_heard(system: MusicGen) -> None:
    chosen = {"guidance": 3.0, "top_k": 250, "temperature": 1.0}
    conditions = system._conditions(audio_request(ROCK, seconds=1))
    first, second = (
        system._model.generate(text, 0.2, 0, chosen, **conditions) for text in ("a rock song", "calm piano")
    )
    assert first.shape == (1, 6400)
    assert not np.array_equal(first, second)


@pytest.mark.slow
def test_a_text_is_encoded_once(system: MusicGen) -> None:
    encoder = system._model.model.text_encoder
    calls: list[int] = []
    hook = encoder.encoder.register_forward_hook(lambda *_: calls.append(1))
    texts = [dataclasses.replace(ROCK, target_prompt=text) for text in ("a calm piano", "a piano", "a calm piano")]
    requests = [audio_request(instruction, seconds=0.5, seed=seed) for seed in (0, 1) for instruction in texts]
    batch = system.edit(requests)
    hook.remove()
    assert len(calls) == 2, "two texts in six requests"
    fresh = type(system)(tiny_musicgen(system.info.name))
    for request, result in list(zip(requests, batch, strict=True))[2:4]:
        (alone,) = fresh.edit([request])
        assert np.array_equal(alone.audio, result.audio), "what was kept is what would be encoded again"


def test_the_melody_is_heard_by_the_one_that_takes_it() -> None:
    model = tiny_musicgen("musicgen_melody")
    low, high = (
        model.generate("a song", 0.2, 0, {"guidance": 3.0, "top_k": 250, "temperature": 1.0}, input_features=features)
        for features in (torch.eye(12)[None, [0] * 235], torch.eye(12)[None, [7] * 235])
    )
    assert not np.array_equal(low, high)


def test_the_strongest_pitch_class_of_a_tone() -> None:
    """440 Hz is A, nine semitones above C; 261.63 Hz is C."""
    time = np.arange(64000) / 32000
    for hertz, place in ((440.0, 9), (261.63, 0)):
        heard_classes = strongest_pitch_class(np.sin(2 * np.pi * hertz * time).astype(np.float32), 32000)
        assert heard_classes.shape == (1 + 64000 // 4096, 12)
        assert (heard_classes.argmax(axis=1) == place).all()
        assert (heard_classes.sum(axis=1) == 1).all()
    assert strongest_pitch_class(np.ones(100, np.float32), 32000).shape == (5, 12), "a window, 16384 = 4 hops"


@pytest.mark.slow
def test_weights_are_loaded_from_a_folder_and_strictly(system: MusicGen, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    name = system.info.name
    folder = save(system._model, tmp_path / "tiny")
    loaded = make_editor(name, {"top_k": 20}, {"source": str(folder)})
    request = audio_request(ROCK, seconds=0.5)
    (result,) = loaded.edit([request])
    assert result.provenance["weights"][0]["licence"] == "CC-BY-NC-4.0"
    theirs, ours = (
        one._model.generate("a song", 0.2, 0, loaded.info.parameters, **one._conditions(request))
        for one in (loaded, system)
    )
    assert np.abs(theirs - ours).max() < 1e-5
    tensors = load_file(folder / "model.safetensors")
    some = next(key for key in tensors if key.endswith("fc1.weight"))
    for wrong in ({key: value for key, value in tensors.items() if key != some}, {**tensors, "other": torch.ones(1)}):
        save_file(wrong, folder / "model.safetensors", metadata={"format": "pt"})
        with pytest.raises(ModelUnavailableError, match=r"other|fc1.weight"):
            make_editor(name, {}, {"source": str(folder)})


def test_missing_weights_are_named(system: MusicGen, tmp_path: Path) -> None:
    name = system.info.name
    with pytest.raises(ModelUnavailableError, match=r"facebook/musicgen-.*CC-BY-NC"):
        make_editor(name, {}, {})
    with pytest.raises(InvalidInputError, match="`revision`"):
        make_editor(name, {}, {"source": "facebook/musicgen-small"})
    with pytest.raises(ModelUnavailableError, match="CC-BY-NC"):
        make_editor(name, {}, {"source": str(tmp_path)})
    with pytest.raises(InvalidInputError, match="`base`"):
        make_editor(name, {"base_revision": "a" * 40}, {"source": str(tmp_path)})
    with pytest.raises(InvalidInputError, match="needs a GPU"):
        KINDS[name].from_pretrained(tmp_path, precision="fp16")
    with pytest.raises(InvalidInputError, match="needs a GPU"):
        make_editor(name, {"precision": "bf16"}, {"source": str(tmp_path)})
    with pytest.raises(UnknownNameError, match="fp32"):
        KINDS[name].from_pretrained(tmp_path, precision="fp8")


def test_what_it_cannot_edit_is_refused(system: MusicGen) -> None:
    with pytest.raises(UnsupportedEditError, match="`target_prompt`"):
        system.edit([audio_request(ASK, seconds=1)])
    verbatim = type(system)(system._model, text="instruction")
    assert verbatim.supports(audio_request(ASK, seconds=1)) == ""
    assert "`source_prompt`" in type(system)(system._model, text="source_prompt").supports(
        audio_request(ASK, seconds=1)
    )
    with pytest.raises(InvalidAudioError, match="one channel"):
        system.edit([audio_request(ROCK, seconds=1, channels=2)])
    with pytest.raises(FileTooLargeError, match="30 s"):
        system.edit([audio_request(ROCK, audio=np.full((1, 31 * 1000), 0.1, np.float32), sample_rate=1000)])
    with pytest.raises(InvalidInputError, match="`top_k`"):
        type(system)(system._model, top_k=0)
    with pytest.raises(UnknownNameError, match="text"):
        type(system)(system._model, text="caption")


def test_the_codec_alone_is_that_of_transformers(tmp_path: Path) -> None:
    codec = tiny_codec(json.loads((MODELS / "musicgen/config.json").read_text())["audio_encoder"])
    codec.save_pretrained(tmp_path)
    loaded = make_editor("resynth", {"codec": "encodec"}, {"source": str(tmp_path)})
    rate = np.random.default_rng(0).standard_normal((1, 16000)).astype(np.float32) * 0.1
    request = audio_request(ASK, audio=rate, sample_rate=32000)
    with torch.no_grad():
        whole = codec(torch.from_numpy(rate)[None], bandwidth=1.2).audio_values[0].numpy()
    found = loaded._edited(request, None)
    assert found.sample_rate == 32000
    assert np.abs(found.audio[:, :16000] - whole[:, :16000]).max() < 1e-5
    assert loaded.info.control
    (first,), (second,) = loaded.edit([request]), Resynth(codec).edit([request])
    assert np.abs(first.audio - second.audio).max() < 1e-5
    with pytest.raises(ModelUnavailableError, match=r"encodec_32khz.*licence"):
        Resynth()
    with pytest.raises(UnknownNameError, match="codec"):
        make_editor("resynth", {"codec": "mp3"}, {"source": str(tmp_path)})
    with pytest.raises(InvalidInputError, match="`revision`"):
        make_editor("resynth", {}, {"source": "facebook/encodec_32khz"})


@pytest.fixture(scope="module", params=sorted(KINDS))
def theirs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return a system, what the authors' code computed for a tiny model of it, and the folder of that."""
    return request.param, *recorded("musicgen_melody", request.param, tmp_path_factory.mktemp("recorded"))


@pytest.fixture(scope="module")
def loaded(theirs: Any) -> MusicGen:
    name, _, folder = theirs
    return make_editor(name, {"base": str(folder / "base")}, {"source": str(folder)})


class TestAuthorsCode:
    """What audiocraft computed for tiny models (benchmarks/parity): its files load, and ours computes the same."""

    def steps(self, system: MusicGen) -> dict[str, Any]:
        request = audio_request(ROCK, audio=tune(10)[None], sample_rate=RATE)
        conditions = system._conditions(request)
        return steps_of(system._model, lambda: system._model.generate(TEXT, 1.2, 0, GREEDY, **conditions)).golden()

    @pytest.mark.slow
    def test_what_it_is_told_logits_and_tokens(self, theirs: Any, loaded: MusicGen) -> None:
        name, arrays, _ = theirs
        assert [weights.files for weights in loaded.info.weights] == [("state_dict.bin",), ()]
        made = self.steps(loaded)
        assert np.array_equal(made["tokens"], arrays["tokens"])
        for what in ("given", "logits"):
            assert furthest(made[what], arrays[what]) < 1e-4
        assert len(np.unique(arrays["given"][:, :-1], axis=0)) > 1 or name == "musicgen"

    @pytest.mark.slow
    def test_a_missing_norm_is_seen(self, theirs: Any, loaded: MusicGen) -> None:
        decoder = loaded._model.model.decoder.model.decoder
        norms = [name for name, _ in decoder.layers[1].named_children() if name.endswith("norm")]
        assert len(norms) == (3 if theirs[0] == "musicgen" else 2)
        for place, name in [(decoder, "layer_norm"), *((decoder.layers[1], name) for name in norms)]:
            with without(place, name):
                assert furthest(self.steps(loaded)["logits"], theirs[1]["logits"]) > 1e-2, name

    @pytest.mark.slow
    def test_strongest_pitch_classes(self) -> None:
        from safetensors.numpy import load_file

        found = load_file(PARITY / "musicgen_melody.safetensors")["pitch_classes"]
        assert len(found) == 852
        assert np.array_equal(strongest_pitch_class(tune(109), RATE).argmax(axis=1), found)


@pytest.mark.skipif(not os.environ.get("RUN_HUB_TESTS"), reason="RUN_HUB_TESTS=1 loads the real weights (gigabytes)")
@pytest.mark.parametrize("name", sorted(KINDS))
def test_the_real_weights_fit(name: str) -> None:
    from huggingface_hub import HfApi

    revision = HfApi().model_info(KINDS[name]._where).sha
    system = KINDS[name].from_pretrained(KINDS[name]._where, revision=revision)
    (result,) = system.edit([audio_request(ROCK, seconds=1)])
    assert float(np.abs(result.audio).max()) > 1e-3
