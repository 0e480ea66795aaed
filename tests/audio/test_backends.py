"""The registry of extractors: complete, free by default, and plain about what is missing."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import inspect
import json

import pytest

from music_evals.annotations import FEATURES
from music_evals.audio import backends as registry
from music_evals.audio.backends import BACKENDS, DEFAULT_BACKENDS, Backend, choose_backends, get_backend
from music_evals.errors import BackendError, MissingBackendError, UnknownNameError

ALL = [backend for of_feature in BACKENDS.values() for backend in of_feature.values()]
OURS = [backend for backend in ALL if not backend.optional]
OPTIONAL = [backend for backend in ALL if backend.optional]


def name(backend: Backend) -> str:
    return f"{backend.feature}-{backend.name}"


@pytest.mark.parametrize("backend", OURS, ids=name)
def test_every_backend_of_ours_can_be_called(backend):
    function = backend.load()
    parameters = inspect.signature(function).parameters
    first, *others = parameters.values()
    assert first.name == "audio"
    assert all(other.kind is inspect.Parameter.KEYWORD_ONLY for other in others)
    needed = {other.name for other in others if other.default is inspect.Parameter.empty}
    assert needed <= {*backend.inputs, *backend.parameters}
    assert {*backend.inputs, *backend.parameters} <= {other.name for other in others}


@pytest.mark.parametrize("backend", OURS, ids=name)
def test_every_backend_of_ours_says_what_its_numbers_depend_on(backend):
    about = backend.describe()
    assert json.loads(json.dumps(about)) == about
    assert about["packages"] == {package: importlib.metadata.version(package) for package in backend.packages}
    assert all(len(digest) == 64 for digest in about["weights"].values())


@pytest.mark.parametrize("backend", OPTIONAL, ids=name)
def test_an_optional_backend_says_how_it_is_installed(backend, monkeypatch):
    def missing(package: str) -> str:
        raise importlib.metadata.PackageNotFoundError(package)

    monkeypatch.setattr(registry, "_version", missing)
    for act in (backend.load, backend.describe):
        with pytest.raises(MissingBackendError) as caught:
            act()
        assert f"install it with: {backend.install}" in str(caught.value)
        assert f"the {backend.feature} backend {backend.name!r} needs the package" in str(caught.value)
    assert backend.install.startswith("pip install")


def test_a_missing_package_of_ours_names_the_extra(monkeypatch):
    def missing(package: str) -> str:
        raise importlib.metadata.PackageNotFoundError(package)

    monkeypatch.setattr(registry, "_version", missing)
    with pytest.raises(MissingBackendError, match=r"\.\[audio\]"):
        get_backend("chords").load()


def test_missing_weights_are_named(monkeypatch, tmp_path):
    monkeypatch.setattr(registry, "WEIGHTS", tmp_path)
    with pytest.raises(BackendError, match=r"gone\.onnx"):
        dataclasses.replace(get_backend("chords"), weights=("gone.onnx",)).describe()


def test_the_defaults_are_of_every_feature_and_free():
    assert set(DEFAULT_BACKENDS) == set(BACKENDS) == set(FEATURES)
    for feature, chosen in DEFAULT_BACKENDS.items():
        backend = BACKENDS[feature][chosen]
        assert not backend.optional
        assert backend.licence == "Apache-2.0"


def test_the_defaults_do_not_depend_on_what_is_installed(monkeypatch):
    chosen = {feature: backend.name for feature, backend in choose_backends().items()}
    assert chosen == dict(DEFAULT_BACKENDS)

    def missing(package: str) -> str:
        raise importlib.metadata.PackageNotFoundError(package)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    registry._version.cache_clear()
    assert {feature: backend.name for feature, backend in choose_backends().items()} == chosen


@pytest.mark.parametrize("backend", ALL, ids=name)
def test_an_entry_is_of_a_piece(backend):
    assert BACKENDS[backend.feature][backend.name] is backend
    assert set(backend.inputs) <= set(FEATURES) - {backend.feature}
    assert backend.version >= 1
    assert backend.rate in {16000, 22050, 44100}
    assert backend.licence
    module, _, function = backend.function.partition(":")
    assert module.startswith("music_evals.audio.")
    assert function.isidentifier()


def test_inputs_have_no_cycle():
    def depth(feature: str, above: tuple[str, ...] = ()) -> int:
        assert feature not in above
        return 1 + max(
            (depth(given, (*above, feature)) for backend in BACKENDS[feature].values() for given in backend.inputs),
            default=0,
        )

    assert max(map(depth, BACKENDS)) == 2  # segments and melody stand on another feature


def test_one_backend_is_picked_and_the_rest_stay():
    chosen = choose_backends({"f0": "pyin"})
    assert chosen["f0"].name == "pyin"
    assert chosen["chords"].name == DEFAULT_BACKENDS["chords"]


@pytest.mark.parametrize(
    ("backends", "message"),
    [
        ({"f0": "pyinn"}, "unknown f0 backend 'pyinn'; did you mean pyin"),
        ({"beat": "tcn"}, "unknown feature 'beat'; did you mean beats"),
    ],
)
def test_a_wrong_name_is_told_with_the_nearest(backends, message):
    with pytest.raises(UnknownNameError) as caught:
        choose_backends(backends)
    assert message in str(caught.value)


def test_the_tables_cannot_be_written_to():
    for table in (BACKENDS, BACKENDS["key"], DEFAULT_BACKENDS, get_backend("key").parameters):
        with pytest.raises(TypeError):
            table["key"] = None


def test_what_a_function_was_tuned_to_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A default that changes must make another key: a store filled before would answer with the old numbers."""
    from music_evals.audio import f0

    backend = get_backend("f0", "melody_net")
    before = backend.describe()["parameters"]
    tuned = f0.track_melody_net.__kwdefaults__
    assert before == tuned
    monkeypatch.setattr(f0.track_melody_net, "__kwdefaults__", {**tuned, "rest_bias": tuned["rest_bias"] + 1})
    assert backend.describe()["parameters"] != before
