"""What fills a gap of the inpainting page: the models that are offered, what each can do, a request and its candidates.

A model is offered where its weights are. The page is built before any model is loaded: what a visitor may set is read
from config.json, and what a type of model can do stands in `ABILITIES`, which a test compares with the models.
"""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from music_evals.annotations import HOLD, MUSIB_LAYOUT, Tokens
from music_evals.benchmark.tasks.inpainting.systems import baseline_system, load_model
from music_evals.errors import InvalidInputError, UnknownNameError, UnreadableFileError, hub_errors
from music_evals.files import parse_json
from music_evals.numerics import package_versions
from music_evals.pipelines.gaps.filling import Candidate, draw_candidates
from music_evals.pipelines.gaps.steering import SKETCHES, Sketched, drawn_sketch, followed, hide_gap
from music_evals.protocols import BASELINES, CONTROLS, GapLimits, load_plugin
from music_evals.ui.gpu import moved_to_card, on_gpu
from music_evals.ui.places import hub_owner
from music_evals.ui.widgets.roll_editor import Melody
from music_evals.ui.widgets.roll_view import pitch_name, place_text

if TYPE_CHECKING:
    from music_evals.benchmark.tasks.inpainting.systems import System

DATASET: Final = "jsb_chorales"
DATASET_CONFIG: Final = "musib"
FITTED: Final = ("markov", "corpus_prior")  # baselines that are fitted on the train split of the data set

ORDER: Final = ("infill_transformer", "vli", "sketchnet", "anticipation_rnn", "inpaintnet")
"""Models as the menu has them; the first one that is there is the default. That of any gap stands first, then the
highest note F1 on the test set of the chorales, as their cards have it."""

OWN: Final = "own"  # the decoding that a model's config.json names

RANDOM_DECODINGS: Final = ("sample", "two_stage")
"""Decodings that draw; all others write the same every time, and have no temperature."""


MIDDLE: Final = (
    f"measures {MUSIB_LAYOUT.past_measures + 1} to {MUSIB_LAYOUT.past_measures + MUSIB_LAYOUT.middle_measures} of the "
    "sixteen"
)


class Ability(NamedTuple):
    """What a type of model can do besides filling measures 7 to 10 of the sixteen."""

    gap: GapLimits | None = None
    """What gaps it can take, of any place, and with locked notes; None where it fills the middle and nothing else."""
    sketch: str = ""  # ``module:class`` of the sketch that it can be given


ABILITIES: Final = {
    "infill_transformer": Ability(gap=GapLimits(steps=504, hidden_steps=192, quantum=6)),
    "sketchnet": Ability(sketch="music_evals.models.sketchnet:Sketch"),
}
"""Type of model -> what it can do; others fill the middle of sixteen measures."""


@dataclasses.dataclass(frozen=True)
class Model:
    """A model with weights."""

    name: str  # in the menu: its folder below `models`, such as vli/folk
    place: str  # a folder or a Hub id
    type: str  # of `protocols.INPAINTERS`
    decoding: str  # of its config.json
    temperature: float

    def draws(self, decoding: str = OWN) -> bool:
        """Tell whether a decoding draws: whether there is a temperature, and more than one candidate."""
        return (self.decoding if decoding == OWN else decoding) in RANDOM_DECODINGS


@dataclasses.dataclass(frozen=True)
class Places:
    """Where models and training data are."""

    models: tuple[Model, ...]  # those in folders here
    dataset: str | None  # a folder or a Hub id; None where it is not
    owner: str = ""  # whose models on the Hub are offered; empty where they are taken from folders


def find_places(root: str | os.PathLike[str]) -> Places:
    """Find models and data.

    They are those of the Hub where the environment variable ``MUSIC_EVALS_ORG`` names an organisation; else folders of
    the repository at `root`; else, on the Hub, repositories of the Space's owner.
    """
    data, local_models = Path(root) / "datasets_scripts" / DATASET, _in_folders(Path(root) / "models")
    if named := hub_owner(here=True):
        return Places((), f"{named}/{DATASET}", named)
    owner = hub_owner(here=False)
    place = str(data) if (data / "data").is_dir() else f"{owner}/{DATASET}" if owner else None
    return Places(local_models, place, "" if local_models else owner)


def _in_folders(folder: Path) -> tuple[Model, ...]:
    """Return the models whose weights lie in folders, each followed by its variants."""
    described = []
    for name in ORDER:
        for weights in (folder / name / "model.safetensors", *sorted((folder / name).glob("*/model.safetensors"))):
            if weights.is_file():
                place = weights.parent
                described.append(_described(place.relative_to(folder).as_posix(), str(place), place / "config.json"))
    return tuple(described)


def _described(name: str, place: str, config: Path) -> Model:
    try:
        settings = parse_json(config.read_bytes(), str(config))
        return Model(name, place, settings["model_type"], settings["decoding"], float(settings["temperature"]))
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UnreadableFileError(f"the config.json of {name} is no configuration of a model: {error!r:.80}") from error


def models(places: Places) -> tuple[Model, ...]:
    """Return the models that are offered, the default first; those of the Hub are looked up here."""
    if not places.owner:
        return places.models
    offered = []
    for name in ORDER:
        try:
            model = _on_hub(places.owner, name)
        except hub_errors():  # what cannot be reached now cannot be offered now; the next visit asks again
            continue
        offered += [model] if model else []
    return tuple(offered)


@functools.cache
def _on_hub(owner: str, name: str) -> Model | None:
    """Return a model of the Hub, or None if missing or without weights."""
    import huggingface_hub

    place = f"{owner}/{name}"
    if not huggingface_hub.file_exists(place, "model.safetensors"):
        return None
    return _described(name, place, Path(huggingface_hub.hf_hub_download(place, "config.json")))


def systems(places: Places, known: Sequence[Model]) -> tuple[str, ...]:
    """Return all that can fill a gap here, models first."""
    # a control needs the true middle, and a gap has none
    plain = [name for name in BASELINES if name not in {*FITTED, *CONTROLS}]
    return (*(model.name for model in known), *plain, *(FITTED if places.dataset else ()))


def model_of(known: Sequence[Model], name: str) -> Model | None:
    """Return a model by its name; None for a baseline."""
    return next((model for model in known if model.name == name), None)


def abilities(model: Model | None) -> Ability:
    """Return what a model can do, or a baseline."""
    return ABILITIES.get(model.type, Ability()) if model else Ability()


def longest_gap(model: Model | None) -> int:
    """Return how many measures a model can fill at most."""
    limits = abilities(model).gap
    if limits is None:
        return MUSIB_LAYOUT.middle_measures
    return min(limits.hidden_steps // MUSIB_LAYOUT.steps_per_measure, MUSIB_LAYOUT.n_measures - 1)


_CANNOT: Final = {
    "gap": (f"fills {MIDDLE}, no more and no fewer", "fills other measures too"),
    "locks": ("writes the whole gap anew and cannot keep notes in it", "can"),
    "sketch": ("follows no sketch", "does"),
}
"""Wish of a visitor -> what a system does that cannot fulfil it, and what is said of one that can."""


def why_not(wish: str, model: Model | None, name: str, known: Sequence[Model]) -> str:
    """Return why a system cannot fulfil a wish, a key of `_CANNOT`; empty where it can."""
    needed = "sketch" if wish == "sketch" else "gap"
    if getattr(abilities(model), needed):
        return ""
    can = [other.name for other in known if getattr(abilities(other), needed)]
    words, others = _CANNOT[wish]
    return f"{name} {words}{f'; {can[0]} {others}' if can else ''}."


MAX_CANDIDATES: Final = 8
MAX_SEED: Final = 2**31 - 1
MAX_TEMPERATURE: Final = 2.0
NO_SKETCH: Final = "none"

FIRST: Final = MUSIB_LAYOUT.past_measures + 1
MEASURES: Final = MUSIB_LAYOUT.middle_measures


def gap_of(first: int, n_measures: int) -> slice:
    """Return the steps of a gap that begins with a measure of the sixteen, counted from 1."""
    size = MUSIB_LAYOUT.steps_per_measure
    return slice((first - 1) * size, (first - 1 + n_measures) * size)


@dataclasses.dataclass(frozen=True)
class Request:
    """The request of a visitor."""

    system: str  # a model of the menu or a baseline
    decoding: str = OWN  # of a model: `OWN` or ``"sample"``
    # Of a model that draws, 0..2; 0 takes the most likely note and gives one candidate. None is that of the model.
    temperature: float | None = None
    # 0 or more. Draw i is made with ``numpy.random.default_rng([seed, i])``: asking for more candidates does not
    # change the first ones.
    seed: int = 0
    n_candidates: int = 4  # 1..8; a system that draws nothing gives one
    evaluate: bool = True  # true takes what stands in the gap of the melody for the true middle
    first: int = FIRST  # measure of the sixteen with which the gap begins, from 1
    n_measures: int = MEASURES
    sketch: str = NO_SKETCH  # or one of `SKETCHES`: what stands in the gap is one
    keep: tuple[tuple[int, int, int], ...] = ()  # locked notes: onset, duration, pitch, in steps of the sixteen

    def __post_init__(self) -> None:
        bounds = {
            "temperature": (0.0, MAX_TEMPERATURE),
            "seed": (0, MAX_SEED),
            "n_candidates": (1, MAX_CANDIDATES),
            "first": (1, MUSIB_LAYOUT.n_measures),
            "n_measures": (1, MUSIB_LAYOUT.n_measures),
        }
        for name, (low, high) in bounds.items():
            value = getattr(self, name)
            if name == "temperature" and value is None:
                continue
            whole = name == "temperature" or (isinstance(value, int) and not isinstance(value, bool))
            if not whole or not isinstance(value, int | float) or not low <= value <= high:
                raise InvalidInputError(f"{name} must lie in {low}..{high}, got {value!r:.40}")
        if self.first + self.n_measures - 1 > MUSIB_LAYOUT.n_measures:
            last = self.first + self.n_measures - 1
            raise InvalidInputError(f"the gap, measures {self.first} to {last}, does not lie within the sixteen")
        for name, allowed in {"decoding": (OWN, "sample"), "sketch": (NO_SKETCH, *SKETCHES)}.items():
            if getattr(self, name) not in allowed:
                raise UnknownNameError(name, getattr(self, name), allowed)

    @property
    def gap(self) -> slice:
        """Steps of the gap."""
        return gap_of(self.first, self.n_measures)

    @property
    def is_middle(self) -> bool:
        """Whether it is the gap of the benchmark."""
        return self.gap == MUSIB_LAYOUT.middle


@dataclasses.dataclass(frozen=True, eq=False)
class Filling:
    """The candidates so far, and what made them."""

    melody: Melody
    request: Request
    candidates: tuple[Candidate, ...]
    n_candidates: int  # that are wanted
    notes: tuple[str, ...]  # what a reader should know
    receipt: Mapping[str, Any]
    lockable: bool = False  # whether notes of the candidates can stay in the next ones
    complete: bool = False  # whether no candidate will follow

    @property
    def sketch(self) -> tuple[tuple[int, ...] | None, ...]:
        """What was sketched, one entry a measure; empty where nothing was."""
        request = self.request
        return () if request.sketch == NO_SKETCH else drawn_sketch(self.melody.tokens[request.gap], request.sketch)

    def followed(self, candidate: Candidate) -> str:
        """Return how much of the sketch is in a candidate, in words; empty without a sketch."""
        if not self.sketch:
            return ""
        counts = followed(self.sketch, self.request.sketch, candidate.middle)
        unit = "onsets" if self.request.sketch == "rhythm" else "pitches"
        matched = f"{counts.matched} of {counts.sketched} drawn {unit} are there"
        return f"{matched}, and {counts.others} others in their measures"

    def rows(self) -> list[dict[str, Any]]:
        """Return one flat row a candidate."""
        about = {"system": self.request.system, "seed": self.request.seed}
        return [{"candidate": candidate.number, **about, **candidate.row} for candidate in self.candidates]

    def results(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "melody": {"first_measure": self.melody.first_measure, "tokens": self.melody.tokens},
            "gap": {"first": self.request.first, "n_measures": self.request.n_measures},
            "kept": [list(note) for note in self.request.keep],
            "sketch": {"kind": self.request.sketch, "measures": list(self.sketch)},
            "candidates": [
                {
                    "candidate": candidate.number,
                    "middle": candidate.middle,
                    "scores": dict(candidate.scores),
                    "changes": None
                    if candidate.diff is None
                    else [change._asdict() for change in candidate.diff.changes],
                }
                for candidate in self.candidates
            ],
            "notes": list(self.notes),
            "receipt": dict(self.receipt),
        }


def fill(places: Places, melody: Melody, request: Request) -> Iterator[Filling]:
    """Fill the gap: the first value has no candidate yet, each following one has one more, the last is complete."""
    known = models(places)
    model = model_of(known, request.system)
    if request.system not in systems(places, known):
        raise UnknownNameError("system", request.system, systems(places, known))
    _check(request, model, known, melody)
    system = load_system(places, model or request.system, request.decoding, request.temperature)
    n = 1 if system.inpainter is None or system.inpainter.deterministic else request.n_candidates
    lockable = abilities(model).gap is not None
    begun = Filling(melody, request, (), n, _notes(melody, request, n), _receipt(system, request, n), lockable)
    taken = None
    if begun.sketch:  # as the model takes it
        kind = request.sketch
        sketch = load_plugin({kind: abilities(model).sketch}, kind, "sketch")
        taken = sketch(**{"rhythms" if kind == "rhythm" else "pitches": begun.sketch})
    yield begun
    candidates: list[Candidate] = []
    generated = _fill(system.inpainter, melody.tokens, request, taken)
    if model:
        generated = _fill_on_gpu(model, melody.tokens, request, taken)  # which was loaded above, before a card is taken
    for candidate in generated:
        candidates.append(candidate)
        yield dataclasses.replace(begun, candidates=tuple(candidates), complete=len(candidates) == n)
    if len(candidates) < n:
        words = f"{len(candidates)} of {n} candidates differ: the system wrote no more that are new."
        yield dataclasses.replace(begun, candidates=tuple(candidates), notes=(*begun.notes, words), complete=True)


def _check(request: Request, model: Model | None, known: tuple[Model, ...], melody: Melody) -> None:
    """Raise if the system cannot fulfil the request."""
    name = request.system
    if not request.is_middle and (reason := why_not("gap", model, name, known)):
        raise InvalidInputError(reason)
    if request.n_measures > longest_gap(model):
        raise InvalidInputError(f"{name} fills at most {longest_gap(model)} measures at once; choose fewer.")
    if request.keep and (reason := why_not("locks", model, name, known)):
        raise InvalidInputError(f"{reason} Take the locks away, or choose another system.")
    if request.sketch != NO_SKETCH and (reason := why_not("sketch", model, name, known)):
        raise InvalidInputError(f"{reason} Choose no sketch, or another system.")
    for onset, duration, pitch in request.keep:
        if not request.gap.start <= onset < onset + duration <= request.gap.stop:
            where = place_text(onset, melody.first_measure)
            raise InvalidInputError(
                f"{pitch_name(pitch)} at {where} is to stay, and does not lie in the gap: take its lock away."
            )


def _fill(inpainter: Any, tokens: Tokens, request: Request, sketch: Any) -> Iterator[Candidate]:
    shown, hidden = hide_gap(tokens, request.gap, request.keep)
    yield from draw_candidates(
        shown,
        hidden,
        inpainter if sketch is None else Sketched(inpainter, sketch),
        gap=request.gap,
        seed=request.seed,
        n_candidates=request.n_candidates,
        evaluate=request.evaluate,
        truth=tokens[request.gap],
        likelihood=False,  # it would take as long again, and candidates stand in the order in which they come
    )


@on_gpu(
    # a network call for each token; some candidates are drawn twice, to differ
    lambda _model, _tokens, request, _sketch: (
        2 * request.n_candidates * request.n_measures * MUSIB_LAYOUT.steps_per_measure
    ),
    call_sec=0.02,
)
def _fill_on_gpu(model: Model, tokens: Tokens, request: Request, sketch: Any) -> Iterator[Candidate]:
    """Yield what `_fill` yields, drawn by a network on the card where there is one."""
    inpainter = _load(model.place, **options_of(model, request.decoding, request.temperature)).inpainter
    with moved_to_card(inpainter):
        yield from _fill(inpainter, tokens, request, sketch)


def options_of(model: Model, decoding: str, temperature: float | None) -> dict[str, Any]:
    """Return what is set differently from the model's own config.json."""
    options: dict[str, Any] = {} if decoding in {OWN, model.decoding} else {"decoding": decoding}
    if model.draws(decoding) and temperature not in {None, model.temperature}:
        options["temperature"] = temperature
    return options


_load = functools.lru_cache(maxsize=12)(load_model)


def load_system(places: Places, system: Model | str, decoding: str = OWN, temperature: float | None = None) -> System:
    """Load a model or a baseline; those of the last requests are kept."""
    if isinstance(system, Model):
        return _load(system.place, **options_of(system, decoding, temperature))
    return _baseline(system, str(places.dataset) if system in FITTED else None)


@functools.lru_cache(maxsize=12)
def _baseline(name: str, dataset: str | None) -> System:
    return baseline_system(name, None if dataset is None else _train(dataset))


@functools.lru_cache(maxsize=1)
def _train(dataset: str) -> Tokens:
    from music_evals.benchmark.tasks.inpainting.items import load_items

    return load_items(dataset, DATASET_CONFIG, "train").contexts


def _notes(melody: Melody, request: Request, n: int) -> tuple[str, ...]:
    """Return what a reader should know of this filling."""
    notes = []
    if n < request.n_candidates:
        notes.append(f"{request.system} uses no randomness here: there is one candidate, whatever the seed.")
    if request.keep:
        count = len(request.keep)
        notes.append(
            f"{count} {'note stays' if count == 1 else 'notes stay'} as you locked {'it' if count == 1 else 'them'}."
        )
    if request.evaluate and not (melody.tokens[request.gap] < HOLD).any():
        notes.append("The gap of your melody has no note of its own: silence is taken for the true middle.")
    if request.evaluate and request.sketch != NO_SKETCH:
        known = "rhythm" if request.sketch == "rhythm" else "pitches"
        notes.append(f"The scores compare with what stands in the gap, whose {known} the model was given.")
    return tuple(notes)


def _receipt(system: System, request: Request, n: int) -> dict[str, Any]:
    details = {key: value for key, value in system.details.items() if value is not None}
    if details.get("decoding", RANDOM_DECODINGS[0]) not in RANDOM_DECODINGS:
        details.pop("temperature", None)
    if Path(str(details.get("source", ""))).is_absolute():  # a folder here: its path is private
        details["source"] = request.system
    return {
        "system": system.name,
        **details,
        "hash of weights, configuration and training data": system.content_hash,
        "seed": request.seed,
        "candidates": n,
        "gap": f"measures {request.first} to {request.first + request.n_measures - 1} of the sixteen",
        "locked notes": len(request.keep),
        "sketch": request.sketch,
        "metric variant": "corrected",
        "versions": package_versions(),
    }
