from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from music_evals.errors import BackendError, InvalidInputError, MissingBackendError, ModelUnavailableError
from music_evals.lyrics.embeddings import CharNgrams, Embeddings, StoredEncoder, as_encoder, embed, load_encoder
from music_evals.protocols import TextEncoder

TAGS = ["快歌", "慢歌", "忧伤的男声", "钢琴, 吉他", "快歌"]
COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Counting:
    """An encoder that notes what it is asked."""

    name, revision = "counting", "1"

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        self.asked.append(list(texts))
        return CharNgrams().encode(texts)


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real sentence-transformers model: characters, two layers of BERT, first token, length 1."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("sentence_transformers")
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules
    from transformers import BertConfig, BertModel, BertTokenizer

    folder = tmp_path_factory.mktemp("tiny")
    letters = [*"abcdefghijklmnopqrstuvwxyz, ", *dict.fromkeys("快慢歌忧伤的男声钢琴吉他")]
    vocabulary = folder / "vocab.txt"
    vocabulary.write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters]), encoding="utf-8")
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    config = BertConfig(vocab_size=5 + len(letters), max_position_embeddings=64, initializer_range=0.5, **sizes)
    BertModel(config).save_pretrained(folder / "bert")
    BertTokenizer(str(vocabulary)).save_pretrained(folder / "bert")
    reader = modules.Transformer(str(folder / "bert"), max_seq_length=64)
    pooling = modules.Pooling(reader.get_embedding_dimension(), pooling_mode="cls")
    model = SentenceTransformer(modules=[reader, pooling, modules.Normalize()], device="cpu")
    # an instruction that must not be used
    model.prompts, model.default_prompt_name = {"query": "hello "}, "query"
    model.save(str(folder / "model"))
    return folder / "model"


@pytest.mark.slow
def test_a_model_that_does_not_normalise_gives_unit_vectors(tiny_model: Path, tmp_path: Path) -> None:
    """The same network without its last module: the vectors are the same, divided by their lengths."""
    from sentence_transformers import SentenceTransformer

    whole = SentenceTransformer(str(tiny_model), device="cpu")
    SentenceTransformer(modules=[whole[0], whole[1]], device="cpu").save(str(tmp_path / "raw"))
    texts = ["快歌", "慢歌", "忧伤的男声"]
    raw = load_encoder(str(tmp_path / "raw"), device="cpu").encode(texts)
    assert (
        np.linalg.norm(whole[1](whole[0](whole[0].preprocess(texts)))["sentence_embedding"].detach(), axis=1).min()
        > 1.1
    )
    np.testing.assert_allclose(np.linalg.norm(raw, axis=1), 1.0, atol=1e-6)
    np.testing.assert_allclose(raw, load_encoder(str(tiny_model), device="cpu").encode(texts), atol=1e-6)
    assert len(embed(load_encoder(str(tmp_path / "raw"), device="cpu"), texts)) == 3


# char-ngrams


def test_char_ngrams_by_hand() -> None:
    encoder = load_encoder("char-ngrams")
    assert (encoder.name, encoder.revision) == ("char-ngrams", "1")
    assert isinstance(encoder, TextEncoder)
    vectors = encoder.encode(["悲伤", "悲伤", "伤", "快乐"])
    assert vectors.shape == (4, 2048)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    # 悲伤: 悲 伤 ^悲 悲伤 伤$ ^悲伤 悲伤$ = 7 n-grams; 伤: 伤 ^伤 伤$ ^伤$ = 4; common: 伤 伤$
    cosines = vectors @ vectors.T
    np.testing.assert_allclose(cosines[0, 1:], [1, 2 / np.sqrt(7 * 4), 0], atol=1e-6)


def test_char_ngrams_fold_width_case_and_outer_spaces() -> None:
    first, second, third = CharNgrams().encode(["KTV", " \uff4b\uff54\uff56 ", "ktv唱"])
    assert (first == second).all()
    assert (first != third).any()


@given(st.lists(st.text(max_size=12), min_size=1, max_size=5))
def test_char_ngrams_take_any_text(texts: list[str]) -> None:
    vectors = CharNgrams().encode(texts)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert (vectors == np.stack([CharNgrams().encode([text])[0] for text in texts])).all()


def test_char_ngrams_are_the_same_in_every_process() -> None:
    code = (
        "import hashlib, sys; from music_evals.lyrics.embeddings import CharNgrams; "
        "v = CharNgrams().encode(['忧伤的男声', 'R&B', '']); "
        "print(hashlib.sha256(v.astype('<f4').tobytes()).hexdigest())"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("0", "1")
    }
    here = CharNgrams().encode(["忧伤的男声", "R&B", ""]).astype("<f4").tobytes()
    assert found == {hashlib.sha256(here).hexdigest()}


@pytest.mark.parametrize("options", [{"revision": "main"}, {"device": "cpu"}])
def test_char_ngrams_have_no_revision_and_no_device(options: dict[str, str]) -> None:
    with pytest.raises(InvalidInputError, match="leave both out"):
        load_encoder("char-ngrams", **options)  # type: ignore[arg-type]


# functions


def test_a_function_becomes_an_encoder() -> None:
    encoder = as_encoder(lambda texts: [[3.0, 4.0 * len(text)] for text in texts], "lengths", revision="2")
    assert (encoder.name, encoder.revision) == ("lengths", "2")
    np.testing.assert_allclose(encoder.encode(["a"]), [[0.6, 0.8]], atol=1e-7)
    assert encoder.encode([]).shape == (0, 0)


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        ([[1.0, 0.0]], r"shape \(2, dimensions\), got \(1, 2\)"),
        ([1.0, 0.0], "one vector a text"),
        ([[1.0, 0.0], [np.inf, 0.0]], "not finite for 'b'"),
        ([[1.0, 0.0], [0.0, 0.0]], "zeros for 'b'"),
    ],
)
def test_a_function_that_gives_something_else(vectors: list[object], message: str) -> None:
    with pytest.raises(BackendError, match=message):
        as_encoder(lambda _: vectors, "broken").encode(["a", "b"])  # type: ignore[arg-type, return-value]


def test_what_is_no_function_or_has_no_name() -> None:
    with pytest.raises(InvalidInputError, match="a name for it"):
        as_encoder(np.ones(3), "array")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="a name for it"):
        as_encoder(len, "")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="no revision"):
        as_encoder(np.ones, "ones", cache="somewhere")  # type: ignore[arg-type]


def test_each_text_is_encoded_once() -> None:
    encoder = Counting()
    embeddings = embed(encoder, iter(TAGS))
    assert encoder.asked == [list(dict.fromkeys(TAGS))]
    assert len(embeddings) == 4
    found = embeddings.of(["慢歌", "快歌", "慢歌"])
    assert (found == CharNgrams().encode(["慢歌", "快歌", "慢歌"])).all()
    assert embeddings.of([]).shape == (0, 2048)
    assert len(Embeddings(encoder, [])) == 0


def test_an_encoder_of_longer_vectors_is_told() -> None:
    class Long(Counting):
        def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
            return 2 * super().encode(texts)

    with pytest.raises(BackendError, match="as_encoder"):
        embed(Long(), ["a"])


# sentence-transformers


def test_a_folder(tiny_model: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from sentence_transformers import SentenceTransformer

    encoder = load_encoder(str(tiny_model), device="cpu")
    assert capfd.readouterr() == ("", "")
    assert isinstance(encoder, TextEncoder)
    assert encoder.revision.startswith("sha256-")
    vectors = encoder.encode(TAGS)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    # by its first token, and without the instruction that the model has by default
    model = SentenceTransformer(str(tiny_model), device="cpu")
    tokens = model.encode(TAGS, prompt="", output_value="token_embeddings", show_progress_bar=False)
    first = np.stack([np.asarray(row[0]) for row in tokens])
    np.testing.assert_allclose(vectors, first / np.linalg.norm(first, axis=1, keepdims=True), atol=1e-5)
    assert not np.allclose(vectors, model.encode(TAGS, show_progress_bar=False), atol=1e-2)
    assert encoder.encode([]).shape == (0, 0)


def test_the_revision_of_a_folder_is_its_content(tiny_model: Path, tmp_path: Path) -> None:
    same, other = tmp_path / "same", tmp_path / "other"
    for folder in (same, other):
        shutil.copytree(tiny_model, folder)
    (other / "1_Pooling" / "config.json").write_text(
        (other / "1_Pooling" / "config.json").read_text(encoding="utf-8") + "\n", encoding="utf-8"
    )
    first, second, third = (load_encoder(str(folder)).revision for folder in (tiny_model, same, other))
    assert first == second != third


def test_weights_in_half_precision_run_in_single(tiny_model: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    half = tmp_path / "half"
    shutil.copytree(tiny_model, half)
    weights = load_file(half / "model.safetensors")
    halved = {name: value.half() for name, value in weights.items()}
    save_file(halved, half / "model.safetensors", metadata={"format": "pt"})
    config = (half / "config.json").read_text(encoding="utf-8")
    (half / "config.json").write_text(config.replace('"float32"', '"float16"'), encoding="utf-8")
    encoder = load_encoder(str(half), device="cpu")
    assert {parameter.dtype.itemsize for parameter in encoder._model.parameters()} == {4}  # type: ignore[attr-defined]
    np.testing.assert_allclose(encoder.encode(TAGS), load_encoder(str(tiny_model)).encode(TAGS), atol=5e-2)


def test_a_hub_id_without_a_connection(tiny_model: Path) -> None:
    from huggingface_hub import constants

    stored = Path(constants.HF_HUB_CACHE) / "models--music-evals-tests--tiny"
    shutil.copytree(tiny_model, stored / "snapshots" / COMMIT)
    (stored / "refs").mkdir()
    (stored / "refs" / "main").write_text(COMMIT, encoding="utf-8")
    for revision in (None, "main", COMMIT):
        encoder = load_encoder("music-evals-tests/tiny", revision=revision, device="cpu")
        assert (encoder.name, encoder.revision) == ("music-evals-tests/tiny", COMMIT)
        assert (encoder.encode(TAGS) == load_encoder(str(tiny_model), device="cpu").encode(TAGS)).all()
    with pytest.raises(ModelUnavailableError, match="hf download music-evals-tests/tiny"):
        load_encoder("music-evals-tests/tiny", revision="v2")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("BAAI/bge-large-zh-v1.5", "hf download BAAI/bge-large-zh-v1.5"),
        ("no/such-model", "Hub cannot be reached"),
        ("char-ngram", "'char-ngrams' needs no weights"),
        ("./no/such/folder", "no such folder"),
        ("", "no such folder"),
    ],
)
def test_a_model_that_is_not_there(name: str, message: str) -> None:
    pytest.importorskip("sentence_transformers")
    with pytest.raises(ModelUnavailableError, match=message):
        load_encoder(name)


def test_damaged_and_strange_folders(tiny_model: Path, tmp_path: Path) -> None:
    cut, bare = tmp_path / "cut", tmp_path / "bare"
    for folder in (cut, bare):
        shutil.copytree(tiny_model, folder)
    weights = (cut / "model.safetensors").read_bytes()
    (cut / "model.safetensors").write_bytes(weights[: len(weights) // 2])
    with pytest.raises(ModelUnavailableError, match="get the folder anew"):
        load_encoder(str(cut))
    (cut / "model.safetensors").unlink()
    with pytest.raises(ModelUnavailableError, match="no file named"):
        load_encoder(str(cut))
    (bare / "modules.json").unlink()
    with pytest.raises(ModelUnavailableError, match=r"modules\.json"):
        load_encoder(str(bare))
    with pytest.raises(InvalidInputError, match="no revisions"):
        load_encoder(str(tiny_model), revision="main")


def test_devices_that_are_not_there(tiny_model: Path) -> None:
    import torch

    with pytest.raises(InvalidInputError, match="'cpu'"):
        load_encoder(str(tiny_model), device="gpu")
    if not torch.cuda.is_available():
        with pytest.raises(InvalidInputError, match="sees none"):
            load_encoder(str(tiny_model), device="cuda:0")


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingBackendError, match=r"\.\[text\]"):
        load_encoder("BAAI/bge-large-zh-v1.5")


# the store


def test_what_is_stored_is_not_encoded_again(tmp_path: Path) -> None:
    first, second = Counting(), Counting()
    vectors = StoredEncoder(first, tmp_path).encode(TAGS)
    assert (vectors == CharNgrams().encode(TAGS)).all()
    again = StoredEncoder(second, tmp_path).encode([*TAGS, "新"])
    assert (again[:-1] == vectors).all()
    assert first.asked == [list(dict.fromkeys(TAGS))]
    assert second.asked == [["新"]]
    assert StoredEncoder(second, tmp_path).encode([]).shape[0] == 0


def test_models_and_revisions_share_a_folder_and_no_vector(tmp_path: Path) -> None:
    for name, revision in (("a", "1"), ("a", "2"), ("b", "1"), ("a/1", "x")):
        counting = Counting()
        counting.name, counting.revision = name, revision
        StoredEncoder(counting, tmp_path).encode(TAGS)
        assert counting.asked == [list(dict.fromkeys(TAGS))]
    counting = Counting()
    counting.revision = ""
    with pytest.raises(InvalidInputError, match="no revision"):
        StoredEncoder(counting, tmp_path)


def test_a_tiny_model_with_a_cache(tiny_model: Path, tmp_path: Path) -> None:
    plain = load_encoder(str(tiny_model), device="cpu")
    stored = load_encoder(str(tiny_model), device="cpu", cache=tmp_path)
    vectors = plain.encode(list(dict.fromkeys(TAGS)))
    assert (stored.encode(list(dict.fromkeys(TAGS))) == vectors).all()
    assert (stored.encode(list(dict.fromkeys(TAGS))) == vectors).all()
    assert (stored.name, stored.revision) == (plain.name, plain.revision)


@pytest.mark.parametrize("damage", [lambda c: c[:-4], lambda c: c[:20], lambda _: b"", lambda c: c[:-1] + b"x"])
def test_a_damaged_vector_is_encoded_again(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    vectors = StoredEncoder(Counting(), tmp_path).encode(["甲", "乙"])
    path = min(tmp_path.rglob("*.entry"))
    path.write_bytes(damage(path.read_bytes()))
    counting = Counting()
    assert (StoredEncoder(counting, tmp_path).encode(["甲", "乙"]) == vectors).all()
    assert len(counting.asked[0]) == 1


def test_a_folder_that_cannot_be_made_is_done_without(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    texts = ["a", "b", "c"]
    found = StoredEncoder(CharNgrams(), tmp_path / "file" / "inner").encode(texts)
    assert (found == CharNgrams().encode(texts)).all()
    assert len(caplog.records) == 1


FILL = """
import sys
from pathlib import Path
from music_evals.lyrics.embeddings import CharNgrams, StoredEncoder

encoder, first = StoredEncoder(CharNgrams(), Path(sys.argv[1])), int(sys.argv[2])
for start in range(first, first + 40, 10):
    encoder.encode([str(number) for number in range(start, start + 20)])
"""


@pytest.mark.slow
def test_many_processes_share_a_store(tmp_path: Path) -> None:
    # processes of their own, not forks: threads of torch may hold locks here
    commands = [[sys.executable, "-c", FILL, str(tmp_path), str(first)] for first in (0, 10, 20, 30)]
    workers = [subprocess.Popen(command) for command in commands]
    assert [worker.wait(120) for worker in workers] == [0] * 4
    counting = Counting()
    stored = StoredEncoder(CharNgrams(), tmp_path)
    texts = [str(number) for number in range(80)]
    assert (stored.encode(texts) == counting.encode(texts)).all()
    assert len(list(tmp_path.rglob("*.entry"))) == 80
