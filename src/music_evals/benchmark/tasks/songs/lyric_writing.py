"""Lyrics written by language models and scored: songs in; texts, scores, time and cost out.

The theme of a song is what its professional annotator wrote of its lyrics; the structure is its pattern, without the
numbers of the sections, which is also what the text is scored against. Without a writer the controls of `lyrics` are
scored alone.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

from music_evals.annotations import GROUPS
from music_evals.benchmark.columns import dump_json
from music_evals.benchmark.formats import counted
from music_evals.benchmark.inputs import check_systems, read_text, split_model
from music_evals.benchmark.records import RecordStore, reading_rows
from music_evals.benchmark.run import NO_EXTRA_OUTPUTS, ExtraOutputs, Outcome, remove_results
from music_evals.benchmark.tables import text_report as scores_text
from music_evals.benchmark.task import Task
from music_evals.benchmark.tasks.songs import lyrics, writing_log
from music_evals.benchmark.tasks.songs.generations import (
    Progress,
    WritingSystem,
    ask,
    ask_in_batches,
    key_of,
    latest_rows,
)
from music_evals.benchmark.tasks.songs.songs import SongSet, SongSettings, ThemeSettings
from music_evals.benchmark.tasks.songs.text_controls import LYRIC_CONTROLS
from music_evals.benchmark.tasks.songs.texts import Prediction
from music_evals.benchmark.tasks.songs.writing_log import Budget, Metered, Prices
from music_evals.csv_files import csv_text
from music_evals.errors import InvalidInputError, MusicEvalsError, UnknownNameError
from music_evals.files import parse_json
from music_evals.lyrics.prompts import Example, lyric_prompt, prompt_receipt
from music_evals.numerics import package_versions
from music_evals.options import option
from music_evals.protocols import WRITERS, LyricWriter, load_plugin

__all__ = ["LYRIC_WRITING", "Endpoint", "LyricWriting", "Outcome", "Prices", "Settings", "text_report"]

GENERATIONS, TEXTS, LOG = "writing", "texts.jsonl", "writing_log.csv"
"""Records of what was asked, the texts that are scored, and what each took."""

MOST_SEEDS = 1000

_TRIAL = "(verse)\nccccc", "(verse)\n春眠不觉晓"
"""A pattern and its text: what is missing for scoring is said before anything is asked, or paid for."""


@dataclasses.dataclass(frozen=True)
class Endpoint:
    """A language model behind an OpenAI-compatible endpoint."""

    url: str  # see `models.lyric_writers.EndpointWriter`; the name is the system's in the tables
    model: str
    name: str | None = None
    api_key_env: str | None = None
    prices: Prices = dataclasses.field(default_factory=Prices)  # of its tokens, for the cost


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings(ThemeSettings, SongSettings):
    """Who writes for which songs, and how it is scored; the options of the verb ``write-lyrics`` by their keywords.

    `overwrite` also throws away the texts. What is None is the model's or the writer's own default.

    Parameters
    ----------
    models
        ``ID`` or ``NAME=ID`` of models of transformers; a Hub id may end in ``@`` and a commit, tag or branch.
    endpoints
        See `Endpoint`.
    writers
        Any other `protocols.LyricWriter`, such as `models.lyric_writers.CallableWriter`.
    n_seeds
        Texts a song of each model that draws at random, with the seeds 0, 1, ...
    max_cost
        Ceiling of what all endpoints together may cost in this folder, over all runs, in the currency of the prices;
        see `writing_log`. The run stops before it with `CostCeilingError`, and goes on when the ceiling is raised.
    batch
        Ask endpoints by their batch interface: a first run hands in what is not answered and ends with
        `BatchPendingError`, the same run later collects the answers and scores.
    variant, rhyme, normalise, strict, theme_encoder, theme_encoder_revision
        Of the scores; see `lyrics.Settings`.

    Raises
    ------
    InvalidInputError
        A number out of range.
    """

    models: Sequence[str | os.PathLike[str]] = option(
        (), "folder or Hub id[@revision]; may be given again", flag="--model", group="models", metavar="[NAME=]ID"
    )
    endpoints: Sequence[Endpoint] = option(
        (),
        "http(s) address, up to /v1; may be given again, the next four options too, once for all or once for each",
        flag="--endpoint",
        group="endpoints",
        metavar="[NAME=]URL",
    )
    writers: Sequence[LyricWriter] = ()
    theme_from: str | None = option(
        None,
        "professional or amateur: whose text is the theme (default: the professional's, else the amateur's)",
        group="writing",
        metavar="GROUP",
    )
    language: str = option("zh", "of the prompt: zh or en (default: %(default)s)", group="writing")
    example: str | os.PathLike[str] | None = option(
        None, "JSON with theme, structure and lyrics, for the worked example", group="writing", metavar="FILE"
    )
    n_seeds: int = option(1, "texts a song (default: %(default)s)", flag="--seeds", group="writing")
    temperature: float | None = option(
        None, "0 is deterministic (default: the model's own)", group="writing", metavar="T"
    )
    top_p: float | None = option(None, "(default: the model's own)", group="writing")
    max_tokens: int | None = option(None, "the longest answer (default: 2048)", group="writing")
    batch_size: int | None = option(None, "songs at once (default: 8)", group="models")
    device: str | None = option(None, "cpu, cuda, cuda:1 ... (default: cuda where there is one)", group="models")
    dtype: str | None = option(None, "float32, bfloat16, float16 (default: that of the weights)", group="models")
    trust_remote_code: bool = option(False, "run code that comes with the model", group="models")
    template_options: Mapping[str, Any] = option(
        {},
        "given to the chat template, such as enable_thinking=false; may be given again",
        flag="--template-option",
        group="models",
        metavar="KEY=JSON",
    )
    concurrency: int | None = option(None, "requests at once (default: 4)", group="endpoints")
    timeout_sec: float | None = option(None, "(default: 300)", flag="--timeout", group="endpoints", metavar="SECONDS")
    retries: int | None = option(None, "after 429, a 5xx or a lost connection (default: 5)", group="endpoints")
    allow_http: bool = option(
        False, "send a key over plain http to another machine (default: refuse)", group="endpoints"
    )
    endpoint_options: Mapping[str, Any] = option(
        {},
        "further field of each request; null leaves one of ours out; may be given again",
        flag="--endpoint-option",
        group="endpoints",
        metavar="KEY=JSON",
    )
    requests_per_minute: float | None = option(
        None, "to each endpoint, evenly spaced (default: no limit)", group="endpoints", metavar="N"
    )
    max_cost: float | None = option(
        None,
        "stop before it could cost more, by the prices given; a higher ceiling goes on",
        group="endpoints",
        metavar="COST",
    )
    batch: bool = option(
        False,
        "use the endpoints' batch interface; the same command, given again, collects the answers",
        group="endpoints",
    )
    variant: str = option("official", "official (default) or paper")
    rhyme: str | None = option(None, "how rhymes are found: official (default), line or char, the lightest")
    normalise: bool = option(True, "score texts as they came, fences and remarks included")
    strict: bool = option(False, "texts that are empty or without a section header fail (default: they score 0)")

    GROUPS: ClassVar = {
        "data": "for which songs",
        "models": "who writes: models of transformers",
        "endpoints": "who writes: OpenAI-compatible endpoints",
        "writing": "how it is written",
        "how": "how it is scored",
        "run": "how it is scored",
        "output": "where it goes",
    }
    TEXTS: ClassVar = {
        "predictions": None,
        "controls": "leave out the reference rows",
        "seed": "of intervals, tests and controls (default: %(default)s)",
    }

    BOUNDS: ClassVar = {**SongSettings.BOUNDS, "n_seeds": (1, MOST_SEEDS)}

    def __post_init__(self) -> None:
        if self.dataset is None or self.predictions:
            raise InvalidInputError("give `dataset`, whose songs are written for, and no `predictions`")
        super().__post_init__()
        for endpoint in self.endpoints:
            endpoint.prices.check()
        if self.theme_from not in {None, *GROUPS}:
            raise UnknownNameError("group of annotators", str(self.theme_from), GROUPS)
        prompt_receipt(self.language)  # the language is checked
        _ = self.scoring

    @property
    def scoring(self) -> lyrics.Settings:
        """What the texts are scored by, checked."""
        shared = {field.name for field in dataclasses.fields(lyrics.Settings)} - {"numbered", "explained"}
        own = {field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.name in shared}
        return lyrics.Settings(**own, numbered=False)


class LyricWriting(Task):
    """Language models write lyrics for songs, which are then scored as the task `lyrics` scores them."""

    name = "lyric_writing"
    settings = Settings

    def run(self, settings: Settings, *, progress: Progress | None = None) -> Outcome:
        """Let all writers write for all songs, score the texts, and write everything into a folder."""
        # A run that was killed is taken up where it stood when it is started again with the same settings: what was
        # answered is not asked again, what failed is. Writers may be added later; other texts than those of the last
        # settings stay in the records and count no more.
        out = Path(settings.out)
        lyrics.score_lyrics(*_TRIAL, **settings.scoring.options)
        example = _read_example(settings.example)
        writers = _load_writers(settings)
        songs = settings.read_songs(["structure"])
        if settings.overwrite:
            remove_results(out, TEXTS, LOG)
        made: Sequence[Prediction] = ()
        extra, sections, records = NO_EXTRA_OUTPUTS, [], {}
        if writers:
            made, extra = _write(settings, songs, writers, example, progress)
            sections = [writing_log.html_section(extra.results["writing"]["totals"])]
            records["generations"] = out / GENERATIONS
        scoring = dataclasses.replace(settings.scoring, revision=songs.about["revision"])  # the commit that was read
        outcome = lyrics.LYRICS.run(scoring, made=made, extra=extra, sections=sections, progress=progress)
        return dataclasses.replace(outcome, files={**outcome.files, **records})


LYRIC_WRITING: Final = LyricWriting()
"""The task."""


def _write(
    settings: Settings,
    songs: SongSet,
    writers: Sequence[_LoadedWriter],
    example: Example | None,
    progress: Progress | None,
) -> tuple[list[Prediction], ExtraOutputs]:
    """Return the texts to score, and what the results say of them."""
    systems = [loaded.system for loaded in writers]
    prompts, reasons = _prompts(songs, settings, example)
    receipt = {**prompt_receipt(settings.language, example), "theme_from": settings.theme_from or "any"}
    header = {"task": LYRIC_WRITING.name, "dataset": dict(songs.about), "prompt": receipt}
    with RecordStore(Path(settings.out) / GENERATIONS, header, overwrite=settings.overwrite) as records:
        with reading_rows():  # what earlier runs in this folder spent
            for system in systems:
                if isinstance(system.writer, Metered):
                    content = system.content
                    made = (row for row in records.rows if row["kind"] == "generation")
                    system.writer.count(row for row in made if row["writer"] == content)
        batched, direct = (systems, []) if settings.batch else ([], systems)
        ask_in_batches(batched, prompts, records, Path(settings.out))
        rows = ask(direct, prompts, records, versions=package_versions(), progress=progress)
    with reading_rows():
        # the last generation of all that was asked for in this run, in the order of asking
        latest, runs = latest_rows(rows), [(system, seed) for system in systems for seed in system.seeds]
        current = [latest[system.content, seed, *prompt] for system, seed in runs for prompt in prompts.items()]
        prices = {loaded.system.name: loaded.prices for loaded in writers}
        log = writing_log.log_rows(current, prices)
        keys = set(map(key_of, current))
        attempts = [row for row in rows if row["kind"] == "generation" and key_of(row) in keys]
        wall_time_sec = sum(row["wall_time_sec"] for row in rows if row["kind"] == "sitting")
    totals = writing_log.totals(log, attempts)
    notes = [
        f"{system}: {counted(row['n_cut_off'], 'texts')} cut off at the limit of tokens; raise `max_tokens`"
        for system, row in totals.items()
        if row["n_cut_off"]
    ]
    about = {
        "prompt": receipt,
        "writers": {system.name: system.about for system in systems},
        "prices": {name: loaded._asdict() for name, loaded in prices.items() if loaded != Prices()},
        "totals": totals,
        "wall_time_sec": wall_time_sec,
        "notes": notes,
    }
    predictions, texts = [], ""  # the texts as predictions that the verb ``lyrics`` reads
    for row in current:
        item, name, seed = row["item"], row["system"], row["seed"]
        where = f"{GENERATIONS}, {item}, seed {seed}"
        predictions.append(Prediction(item, name, row.get("text"), seed, where, row.get("error", "")))
        if "text" in row:
            texts += dump_json({"id": item, "system": name, "seed": seed, "text": row["text"]}) + "\n"
    for system, seed in runs:
        predictions += [Prediction(item, system.name, None, seed, item, reason) for item, reason in reasons.items()]
    files = {"texts": (TEXTS, texts), "log": (LOG, csv_text(writing_log.COLUMNS, log))}
    return predictions, ExtraOutputs({"writing": about}, writing_log.markdown_section(totals), notes, files)


def text_report(results: Mapping[str, Any], *, published: bool = False) -> str:
    """Return all tables as text for a terminal, with what it took to write, and on request the published results."""
    scores = scores_text(results, published=published)
    if "writing" not in results:
        return scores
    notes = "".join(f"\n- {note}" for note in results["writing"]["notes"])
    return f"{scores}\n\n{writing_log.text_section(results['writing']['totals'])}{notes}"


class _LoadedWriter(NamedTuple):
    """A system that writes, and what its tokens cost."""

    system: WritingSystem
    prices: Prices


def _load_writers(settings: Settings) -> list[_LoadedWriter]:
    """Build the writers; what is missing is said here, before anything is asked."""
    budget = None if settings.max_cost is None else Budget(settings.max_cost)

    def given(*names: str) -> dict[str, Any]:
        sampling = {"temperature": settings.temperature, "top_p": settings.top_p, "max_new_tokens": settings.max_tokens}
        options = sampling | {name: getattr(settings, name) for name in names}
        return {name: value for name, value in options.items() if value is not None}

    writers: list[tuple[LyricWriter, Prices]] = []
    for text in settings.models:
        name, source, revision = split_model(os.fspath(text))
        writer = load_plugin(WRITERS, "transformers", "writer")(
            source,
            name=name,
            revision=revision,
            trust_remote_code=settings.trust_remote_code,
            template_options=settings.template_options,
            **given("batch_size", "device", "dtype"),
        )
        writers.append((writer, Prices()))
    allow_http = {"allow_http": True} if settings.allow_http else {}
    for endpoint in settings.endpoints:
        writer = load_plugin(WRITERS, "endpoint", "writer")(
            endpoint.url,
            endpoint.model,
            name=endpoint.name,
            api_key_env=endpoint.api_key_env,
            options=settings.endpoint_options,
            **given("concurrency", "timeout_sec", "retries", "requests_per_minute"),
            **allow_http,
        )
        metered = writer if budget is None else Metered(writer, endpoint.prices, budget)
        writers.append((metered, endpoint.prices))
    writers += [(writer, Prices()) for writer in settings.writers]
    check_systems([writer.name for writer, _ in writers], LYRIC_CONTROLS, "models")
    loaded = []
    for writer, prices in writers:
        seeds = tuple(range(1 if writer.deterministic else settings.n_seeds))
        loaded.append(_LoadedWriter(WritingSystem(writer.name, writer, seeds), prices))
    return loaded


def _read_example(path: str | os.PathLike[str] | None) -> Example | None:
    if path is None:
        return None
    fields, text = Example._fields, read_text(Path(path))
    content = parse_json(text, str(path), f"an object with {', '.join(fields)}")
    if not isinstance(content, dict) or not all(isinstance(content.get(field), str) for field in fields):
        raise InvalidInputError(f"{path} is no example: expected an object with the texts {', '.join(fields)}")
    example = Example(*(content[field] for field in fields))
    lyric_prompt(example.theme, example.structure, example=example)  # it is checked once, not with each song
    return example


def _prompts(songs: SongSet, settings: Settings, example: Example | None) -> tuple[dict[str, str], dict[str, str]]:
    """Return song -> prompt, and song -> why it has none."""
    prompts: dict[str, str] = {}
    reasons: dict[str, str] = {}
    for song in songs.songs:
        theme = song.theme if settings.theme_from is None else song.themes.get(settings.theme_from, "")
        try:
            prompts[song.id] = lyric_prompt(theme, song.pattern_text(), language=settings.language, example=example)
        except MusicEvalsError as error:
            reasons[song.id] = f"{type(error).__name__}: {error}"
    return prompts, reasons
