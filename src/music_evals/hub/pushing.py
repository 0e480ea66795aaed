"""Results to a model card on the Hub: one commit, or pull request, with both of the Hub's formats.

``model-index`` in the head of README.md gets every score of the system; ``.eval_results/<dataset>.yaml`` one entry for
each metric that the dataset's eval.yaml declares a task for, in the variant that ranks. What the card holds of other
results is not touched.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime as dt
import difflib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from music_evals.benchmark.load import load_results
from music_evals.benchmark.tasks.musecpbench import scores_folder
from music_evals.errors import (
    HubError,
    HubNotFoundError,
    HubRightsError,
    InvalidInputError,
    MusicEvalsError,
    OtherResultsError,
)
from music_evals.hub import eval_files
from music_evals.hub.client import Held, Hub, Repository, Sent, Waiting
from music_evals.hub.heads import quoted
from music_evals.hub.model_index import Changed, Index, find_key, held_values, merge_index, read_index, write_index
from music_evals.hub.scores import DatasetPlace, SystemScores, index_entry, system_scores

__all__ = ["Pushed", "push_results"]

CARD = "README.md"
RESULTS = ".eval_results/"

_MAKE = "`hf upload {} FOLDER . --repo-type dataset`"
"""How a dataset of one's own gets a repository; a folder with a card alone will do where recordings are not shared."""

NEW_CARD = """---
library_name: music_evals
---

# {name}
"""


@dataclasses.dataclass(frozen=True)
class Pushed:
    """What became of a push."""

    model: str  # ``owner/name``
    # Path -> what changes in it, as a unified diff; empty where the model holds it all already.
    files: Mapping[str, str]
    changed: tuple[Changed, ...]  # values that are on the card and become others
    tasks: Mapping[str, str]  # metric -> task id of the entries below ``.eval_results``
    # The commit or pull request that was made or is open already; empty for a dry run or where nothing changes.
    url: str
    notes: tuple[str, ...]  # what a reader should know
    owners: tuple[str, ...] = ()  # other systems whose values are among those that change

    @property
    def diff(self) -> str:
        """All that changes, as one unified diff."""
        return "".join(self.files.values())


class _Update(NamedTuple):
    """What is to be said of a system."""

    scores: SystemScores
    tasks: dict[str, str]
    result: dict[str, Any]
    entries: list[eval_files.Entry]
    notes: tuple[str, ...]


class _Plan(NamedTuple):
    held: Held
    texts: dict[str, tuple[str, str]]
    """Path -> old and new text, where they differ."""
    changed: tuple[Changed, ...]
    owners: tuple[str, ...]


def push_results(
    results: str | os.PathLike[str] | Mapping[str, Any],
    model: str,
    *,
    system: str | None = None,
    dataset: str | None = None,
    config: str | None = None,
    split: str | None = None,
    source: str | None = None,
    date: str | None = None,
    pull_request: bool = False,
    dry_run: bool = False,
    overwrite: bool = False,
    adopt: bool = False,
    token: str | None = None,
    waiting: Waiting | None = None,
) -> Pushed:
    """Write the scores of a system into the card of a model on the Hub.

    Parameters
    ----------
    results
        results.json of a run, its folder, or its content. Of a study of editing systems, whose weights are others',
        also the folder of the study; a study is always proposed.
    model
        ``owner/name`` of the model on the Hub.
    system
        Name of the system in the results; None takes the one that is called like the model, or the only one.
    dataset
        ``owner/name`` of the dataset on the Hub; needed where the results were made on a folder.
    config, split
        Of the dataset; needed where the results were made on files.
    source
        Address of what stands behind the scores, such as the records or a paper: ``https://...``.
    date
        Day of the entries, ``YYYY-MM-DD``; None is today, in UTC.
    pull_request
        Propose the change instead of making it; a study of editing systems is never committed.
    dry_run
        Read only; the result lists what would change.
    overwrite
        Let values that are on the card become others.
    adopt
        Let values that are on the card for another system become those of this one, with `overwrite`.
    token
        Token of the Hub; None takes that of the environment.
    waiting
        Called every few seconds in which the Hub does not answer, with what is waited for and the seconds so far.

    Returns
    -------
    Pushed
        Nothing is sent if the card, or an open pull request of ours, has these results already.

    Raises
    ------
    InvalidInputError
        Scores that belong on no card; no dataset id.
    OtherResultsError
        A value would change and `overwrite` is not set, or it is of another system and `adopt` is not set.
    UnknownNameError
        No such system in the results.
    UnreadableFileError
        Results, card or files on the Hub that cannot be read.
    HubError
        Of its kinds: no token, no such model or dataset, no right to write, no connection, another commit in
        between.
    """
    day = date or dt.datetime.now(dt.UTC).date().isoformat()
    studied = None if isinstance(results, Mapping) else scores_folder(results)
    pull_request = pull_request or studied is not None
    content = results if isinstance(results, Mapping) else load_results(studied or results).results
    _raise_all(_no_id(model, "model"))
    owner, _, name = model.partition("/")
    scores = system_scores(content, system, model=name)
    lacking = [*_wrong_options(scores.dataset, dataset, config, split, source=source, day=day)]
    place = dataclasses.replace(
        scores.dataset,
        id=dataset or scores.dataset.id,
        config=scores.dataset.config or config,
        split=scores.dataset.split or split,
    )
    hub = Hub(token, waiting)
    repository, dataset_repository = Repository("model", model), Repository("dataset", place.id)
    named = dataset is not None or place.revision is not None
    there: dict[Repository, Held] = {}
    with _noting(lacking, HubError):
        if not dry_run:
            with _noting(lacking, HubRightsError):
                hub.check_rights(owner, writes=not pull_request)
        for wanted, revision in ((repository, None), *([(dataset_repository, place.revision)] if named else [])):
            with _noting(lacking, HubNotFoundError):
                there[wanted] = _look(hub, wanted, revision)
    _raise_all(lacking)
    held = there[repository]
    update = _update(
        hub, there[dataset_repository], dataclasses.replace(scores, dataset=place), name, source=source, date=day
    )
    plan = _plan(hub, repository, held, update)
    sent = None
    if plan.texts and not dry_run:
        _refuse_changes(repository, plan, scores.system, overwrite=overwrite, adopt=adopt)
        sent = _send(hub, repository, plan, update, proposal=pull_request)
    files = {}  # path -> what changes, as a unified diff
    for path, (old, new) in plan.texts.items():
        start = f"a/{path}" if old else "/dev/null"
        lines = difflib.unified_diff(old.splitlines(keepends=True), new.splitlines(keepends=True), start, f"b/{path}")
        files[path] = "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)
    return Pushed(repository.id, files, plan.changed, update.tasks, sent.url if sent else "", update.notes, plan.owners)


@contextlib.contextmanager
def _noting(lacking: list[MusicEvalsError], kind: type[MusicEvalsError] = MusicEvalsError) -> Iterator[None]:
    """Add an error of this kind to those that are said together."""
    try:
        yield
    except kind as error:
        lacking.append(error)


def _raise_all(lacking: Sequence[MusicEvalsError]) -> None:
    """Raise what is lacking, if anything; several as one, as wrong input where any is."""
    if len(lacking) == 1:
        raise lacking[0]
    if lacking:
        kind = InvalidInputError if any(isinstance(error, InvalidInputError) for error in lacking) else HubError
        lines = "\n".join(f"  {error}" for error in lacking)
        raise kind(f"nothing was sent, for {len(lacking)} things are lacking:\n{lines}") from lacking[0]


def _wrong_options(
    held: DatasetPlace, dataset: str | None, config: str | None, split: str | None, *, source: str | None, day: str
) -> Iterator[MusicEvalsError]:
    """Yield what no entry may hold, what is missing of the dataset, and where the results contradict it."""
    if source is not None and not source.startswith(("https://", "http://")):
        yield InvalidInputError(f"source must be an address that starts with https://, got {source!r}")
    try:
        dt.date.fromisoformat(day)
    except ValueError:
        yield InvalidInputError(f"date must be a day, YYYY-MM-DD, got {day!r}")
    on_hub = held.revision is not None
    if dataset is None and not on_hub:
        yield InvalidInputError(
            f"the results were made on {held.id}, which has no revision on the Hub; name its id there with `dataset`"
            f", and where there is none make it: {_MAKE.format('OWNER/NAME')}"
        )
    if dataset is not None and on_hub and dataset != held.id:
        yield InvalidInputError(f"the results were made on {held.id}, and not on {dataset}; leave `dataset` out")
    yield from _no_id(dataset or held.id, "dataset") if dataset or on_hub else ()
    for name, (ours, option) in {"config": (held.config, config), "split": (held.split, split)}.items():
        if ours is None and option is None:
            yield InvalidInputError(
                f"the results do not say which {name} of the dataset they were made on; name it with `{name}`"
            )
        if None not in {ours, option} and ours != option:
            yield InvalidInputError(
                f"the results were made on the {name} {ours}, and not on {option}; leave `{name}` out"
            )


def _no_id(name: str, kind: str) -> list[MusicEvalsError]:
    """Return the error where a name is no id of a repository."""
    if re.fullmatch(r"[^/]+/[^/]+", name):
        return []
    return [InvalidInputError(f"the {kind} must be the id of a repository on the Hub, owner/name; got {name!r}")]


def _look(hub: Hub, wanted: Repository, revision: str | None) -> Held:
    held = hub.look(wanted, revision)
    if held is None:
        make = f", or make it: {_MAKE.format(wanted.id)}" if wanted.type == "dataset" else ""
        raise HubNotFoundError(
            f"there is no {wanted} on the Hub, or it is hidden from this token; check its name{make}"
        )
    return held


def _update(hub: Hub, held: Held, scores: SystemScores, model: str, *, source: str | None, date: str) -> _Update:
    place = scores.dataset
    repository = Repository("dataset", place.id)
    _check_whole(scores, hub.read_text(repository, "manifest.json", held))
    declared = hub.read_text(repository, "eval.yaml", held)
    tasks = {}
    if declared is not None and not scores.departures:
        content = eval_files.read_eval_yaml(declared, f"eval.yaml of {place.id}")
        known = eval_files.ranked_metrics(content, str(place.config), str(place.split))
        tasks = {name: known[name] for name in scores.scores if name in known}
    notes = tuple(_notes(scores, tasks, declared))
    entries = [_entry(scores, name, task, source, date) for name, task in tasks.items()]
    return _Update(scores, tasks, index_entry(scores, model, source), entries, notes)


def _check_whole(scores: SystemScores, manifest: str | None) -> None:
    """Refuse scores of a part of the split, if the dataset states how many rows it has."""
    if manifest is None:
        return
    place = scores.dataset
    try:
        files = json.loads(manifest)["files"]
        rows = [
            facts["rows"] for path, facts in files.items() if path.startswith(f"data/{place.config}/{place.split}-")
        ]
    except (ValueError, KeyError, TypeError, AttributeError):
        return  # a manifest of another form
    if rows and scores.n_items < sum(rows):
        raise InvalidInputError(
            f"{scores.n_items} of the {sum(rows)} rows of {place.id}, config {place.config}, split {place.split}, were "
            "judged; the card shows scores of whole splits, evaluate all of it"
        )


def _notes(scores: SystemScores, tasks: Mapping[str, str], declared: str | None) -> list[str]:
    place = scores.dataset
    reported = []
    if declared is None:
        reported.append(f"{place.id} has no eval.yaml: the scores go into the model-index only")
    elif scores.departures:
        departures = ", ".join(scores.departures)
        reported.append(f"tasks rank the default settings: scores made with {departures} go into the model-index only")
    elif missing := [name for name in scores.scores if name not in tasks]:
        reported.append(f"no task in eval.yaml, so in the model-index only: {', '.join(missing)}")
    if scores.undefined:
        reported.append(f"undefined, so left out: {', '.join(scores.undefined)}")
    if place.revision is None:
        reported.append("the results were made on a folder: the entries name no revision of the dataset")
    return reported


def _entry(scores: SystemScores, name: str, task: str, source: str | None, date: str) -> eval_files.Entry:
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

    place, score = scores.dataset, scores.scores[name]
    # what the value was made with
    parts = [f"config {place.config}, split {place.split}", f"variant {scores.variant}"]
    if score.low is None:
        parts.append("no interval")
    if score.low is not None and score.high is not None:
        percent = f"{100 * scores.confidence:g} %"
        effective = f" ({score.n_clusters:.1f} effective)" if score.n_clusters else ""
        parts.append(f"{percent} interval {score.low:g} to {score.high:g}, clustered by {scores.clusters}{effective}")
        if not score.low <= score.value <= score.high:
            parts.append("the value lies outside: noise makes it too large, and the interval corrects for that")
    if score.null is not None:
        parts.append(f"noise floor {score.null:g}")
    if score.n_groups is not None:
        parts.append(f"{score.n_groups} independent groups ({scores.clusters})")
    parts.append(f"{score.n} {scores.items}, {score.n_defined} define it")
    if place.fingerprint is not None:
        parts.append(f"content of the data {place.fingerprint}")
    entry = EvalResultEntry(
        dataset_id=place.id,
        task_id=task,
        value=score.value,
        dataset_revision=place.revision,
        date=date,
        source_url=source,
        source_name=f"{scores.system}, results" if source else None,
        notes="; ".join([*parts, *scores.settings]),
    )
    fields: eval_files.Entry = quoted(eval_result_entries_to_yaml([entry])[0])
    return fields


def _plan(hub: Hub, repository: Repository, held: Held, update: _Update) -> _Plan:
    """Return what changes in the files of the model."""
    name = repository.id.partition("/")[2]
    card = hub.read_text(repository, CARD, held)
    base = NEW_CARD.format(name=name) if card is None else card
    known = read_index(base)
    index, changed = merge_index(known, update.result, name)
    texts = {CARD: (card or "", write_index(base, index))}
    files = {
        path: hub.read_text(repository, path, held) or ""
        for path in held.hashes
        if path.startswith(RESULTS) and path.endswith((".yaml", ".yml"))
    }
    read = {path: eval_files.read_results_file(text, path) for path, text in files.items()}
    default = f"{RESULTS}{update.scores.dataset.id.partition('/')[2]}.yaml"
    merged, others = eval_files.merge_results(read, update.entries, default)
    texts |= {
        path: (files.get(path, ""), eval_files.write_results_file(entries, files.get(path, ""), path))
        for path, entries in merged.items()
    }
    differing = {path: texts for path, texts in texts.items() if texts[0] != texts[1]}
    changes = (*changed, *others)
    return _Plan(held, differing, changes, _owners(known, update, name, changes=bool(changes)))


def _refuse_changes(repository: Repository, plan: _Plan, system: str, *, overwrite: bool, adopt: bool) -> None:
    lines = "\n".join(f"  {change.entry}: {change.old} would become {change.new}" for change in plan.changed)
    if plan.owners and not adopt:
        others = ", ".join(plan.owners)
        raise OtherResultsError(
            f"nothing was sent, for on {repository.id} values of {others} would become those of {system}:\n{lines}",
            plan.owners,
        )
    if plan.changed and not overwrite:
        raise OtherResultsError(f"nothing was sent, for {repository.id} has other values:\n{lines}")


def _owners(index: Index, update: _Update, name: str, *, changes: bool) -> tuple[str, ...]:
    """Return the other systems whose values on a card would change; a value that says no system is the model's own."""
    system = update.scores.system
    own = system if system in {name, *(model["name"] for model in index)} else name
    new = {find_key(update.result, metric): metric["value"] for metric in update.result["metrics"]}
    held = [metric.get("args") for key, metric in held_values(index) if key in new and metric["value"] != new[key]]
    owners = {str(args.get("system", own)) if isinstance(args, dict) else own for args in held}
    return tuple(sorted((owners or ({own} if changes else set())) - {system}))


def _send(hub: Hub, repository: Repository, plan: _Plan, update: _Update, *, proposal: bool) -> Sent:
    place = update.scores.dataset
    title = f"Add results on {place.id}, {place.config} {place.split}"
    requests = hub.open_proposals(repository, title)[:1] if proposal else []
    for request in requests:
        proposed = hub.look(repository, request.revision)
        if proposed is None:
            continue
        plan = _plan(hub, repository, proposed, update)
        if not plan.texts:
            return Sent(proposed.commit, request.url)
    return hub.commit(
        repository,
        {path: new.encode() for path, (_, new) in plan.texts.items()},
        title=title,
        parent=plan.held.commit,
        proposal=proposal,
        onto=requests[0] if requests else None,
    )
