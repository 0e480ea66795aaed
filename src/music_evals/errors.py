"""Named errors and warnings of `music_evals`.

Every error that the library raises on purpose derives from `MusicEvalsError` and from the builtin that it refines.
Its message says what was expected, what came, and what to do::

    MusicEvalsError
    ├── InvalidInputError (ValueError)       a value breaks the contract of the function that it was given to
    │   ├── InvalidTokensError               tokens outside the vocabulary, or of the wrong shape
    │   ├── InvalidNotesError                notes with impossible onsets, durations, pitches or velocities
    │   ├── PolyphonyError                   two notes at once where one voice is needed
    │   ├── ContextLengthError               a context that is not past + middle + future
    │   ├── InvalidAnnotationError           beats, chords, segments ... that break their own rules
    │   ├── InvalidAudioError                samples that are no audio: NaN, no samples, an impossible rate
    │   ├── InvalidLyricsError               lyrics that cannot be scored: no section header, an empty song
    │   ├── InvalidPatternError              a structure pattern that is not in the grammar
    │   ├── InvalidTagsError                 tags that are not lists of strings
    │   ├── UnsupportedEditError             an instruction or a source that an editing system cannot follow
    │   ├── OtherResultsError                a card on the Hub holds other values, or those of another system
    │   ├── NotComparableError               a pair that the official code cannot compare
    │   └── PairCountError                   references and predictions do not pair up
    ├── UnsupportedTypeError (TypeError)     an item of a type that is not offered
    ├── UnknownNameError (LookupError)       a model, dataset, config or metric that does not exist; names the nearest
    ├── UnreadableFileError (ValueError)     a file that cannot be read as what it claims to be
    │   ├── FileTooLargeError                over the bounds on bytes, ticks or notes
    │   └── ParserCrashError                 the native parser died on the file, in a process of its own
    ├── NoDataError (ValueError)             an empty folder, split or selection where items are needed
    ├── CorruptRecordsError (ValueError)     records that were damaged, or belong to another run
    │   ├── ChangedResultsError              results that are not what their records give
    │   └── OtherRunError                    a folder that holds another run: nothing is damaged
    ├── OutputError (OSError)                results cannot be written
    │   └── OccupiedError                    they may not be written there: something else is in the way
    ├── HubError (OSError)                   the Hub refused, or cannot be reached
    │   ├── HubTokenError                    no token, or one that the Hub refuses
    │   ├── HubNotFoundError                 a repository or revision that does not exist, or is hidden from the token
    │   ├── HubRightsError                   the token may not do this
    │   ├── HubConflictError                 another commit was made in between
    │   ├── HubForeignError                  a repository of that name is not ours
    │   └── HubOfflineError                  no connection, or one that broke off
    ├── ModelUnavailableError (OSError)      a model that does not exist, or that cannot be fetched now
    │   ├── CostCeilingError                 the next answer could cost more than the user allows
    │   └── BatchPendingError                a batch of requests is not done yet
    ├── BackendError (RuntimeError)          an optional backend failed on its input
    └── MissingBackendError (ImportError)    an optional package is needed; says how to install it

Warnings: `UndefinedMetricWarning` (a score is 0/0 and NaN is returned), `ContextMismatchWarning` (a prediction came
with a context that differs from the reference's; the reference's is used), `NoChineseWarning` (lyrics without a Chinese
character were scored), `PaddedRecordingWarning` (mostly padding was encoded), `RoundedNotesWarning` (notes lie off
the grid of a model and were moved to it).
"""

from __future__ import annotations

import contextlib
import difflib
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from music_evals.deprecation import renamed_options, warn_renamed

__all__ = [
    "BackendError",
    "BatchPendingError",
    "ChangedResultsError",
    "ContextLengthError",
    "ContextMismatchWarning",
    "CorruptRecordsError",
    "CostCeilingError",
    "FileTooLargeError",
    "HubConflictError",
    "HubError",
    "HubForeignError",
    "HubNotFoundError",
    "HubOfflineError",
    "HubRightsError",
    "HubTokenError",
    "InvalidAnnotationError",
    "InvalidAudioError",
    "InvalidInputError",
    "InvalidLyricsError",
    "InvalidNotesError",
    "InvalidPatternError",
    "InvalidTagsError",
    "InvalidTokensError",
    "MissingBackendError",
    "ModelUnavailableError",
    "MusicEvalsError",
    "NoChineseWarning",
    "NoDataError",
    "NotComparableError",
    "OccupiedError",
    "OtherResultsError",
    "OtherRunError",
    "OutputError",
    "PaddedRecordingWarning",
    "PairCountError",
    "ParserCrashError",
    "PolyphonyError",
    "RoundedNotesWarning",
    "TamperedLogError",
    "UndefinedMetricWarning",
    "UnknownNameError",
    "UnreadableFileError",
    "UnsupportedEditError",
    "UnsupportedTypeError",
    "check_extras",
    "hub_errors",
    "importing",
    "located",
    "worded",
]


class MusicEvalsError(Exception):
    """Root of every error that `music_evals` raises on purpose; it takes the message, which says what to do.

    `kind` is the name of what is wrong, by which a program chooses words for its users; empty if unnamed. `facts` are
    what such words say: a limit, the size.
    """

    kind: str = ""
    facts: Mapping[str, object] = MappingProxyType({})

    def __init__(self, *message: object, kind: str = "", **facts: object) -> None:
        super().__init__(*message)
        self.kind, self.facts = kind, facts

    def __reduce__(self) -> tuple[Any, ...]:
        """Let processes hand it on as it is: constructors of subclasses take other things than the message."""
        return worded, (type(self), str(self), vars(self))


class InvalidInputError(MusicEvalsError, ValueError):
    """A value breaks the contract of the function that it was given to."""


class InvalidTokensError(InvalidInputError):
    """Tokens outside the vocabulary, or of the wrong shape or dtype."""


class InvalidNotesError(InvalidInputError):
    """Notes with an impossible onset, duration, pitch or velocity."""


class PolyphonyError(InvalidInputError):
    """Two notes sound at once where one voice is needed."""


class ContextLengthError(InvalidInputError):
    """A context that is not past + middle + future."""


class InvalidAnnotationError(InvalidInputError):
    """Beats, chords, segments or another annotation that breaks its own rules."""


class InvalidAudioError(InvalidInputError):
    """Invalid samples: not finite, empty, or at an impossible rate."""


class InvalidLyricsError(InvalidInputError):
    """Lyrics that cannot be scored: no section header, an empty song, or a line that crashes the official code."""


class InvalidPatternError(InvalidInputError):
    """A structure pattern that is not in the grammar: headers in brackets, lines of ``c``, ``R`` and spaces."""


class InvalidTagsError(InvalidInputError):
    """Tags that are not lists of strings."""


class UnsupportedEditError(InvalidInputError):
    """An instruction or a source that an editing system cannot follow; the message says why and what it needs."""


class NotComparableError(InvalidInputError):
    """A pair that the official code cannot compare, whatever the settings."""


class PairCountError(InvalidInputError):
    """References and predictions do not pair up."""


class OtherResultsError(InvalidInputError):
    """A card on the Hub holds other values, perhaps those of other systems: `owners` names these. Nothing was sent."""

    def __init__(self, message: str, owners: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.owners = owners


class UnsupportedTypeError(MusicEvalsError, TypeError):
    """An item of a type that is not offered."""


class UnknownNameError(MusicEvalsError, LookupError):
    """A name that is not registered among the `known` ones of its `kind`; the message offers the nearest ones.

    `kind` says what was looked up, such as ``"model"``; `advice`, what else may be done, ends the message.
    """

    def __init__(self, kind: str, name: str, known: Iterable[str], advice: str = "") -> None:
        names = sorted(known)
        near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(names) or 'none'}"
        message = "; ".join(filter(None, [f"unknown {kind} {name!r}", hint, advice]))
        super().__init__(message, kind="unknown_name", name=name)


class UnreadableFileError(MusicEvalsError, ValueError):
    """A file that cannot be read as what it claims to be."""


class FileTooLargeError(UnreadableFileError):
    """A file, or what it holds, over a bound on bytes, seconds, notes ...

    `name` is that of the file, `unit` what is counted: ``"bytes"``, ``"seconds"``, ``"notes"`` ... `limit` is the
    bound, `size` how many there are; None if counting stopped at the bound.
    """

    name: str = ""
    unit: str = ""
    limit: float | None = None
    size: float | None = None

    @renamed_options(found="size")
    def __init__(
        self, message: str, *, name: str = "", unit: str = "", limit: float | None = None, size: float | None = None
    ) -> None:
        super().__init__(message)
        self.name, self.unit, self.limit, self.size = name, unit, limit, size

    @property
    def found(self) -> float | None:
        """Former name of `size`."""
        warn_renamed("FileTooLargeError.found", "size")
        return self.size


class ParserCrashError(UnreadableFileError):
    """The native parser died or depended on a file; it ran in a process of its own."""


class NoDataError(MusicEvalsError, ValueError):
    """An empty folder, split or selection where items are needed."""


class CorruptRecordsError(MusicEvalsError, ValueError):
    """Records that were damaged, or that belong to another run."""


class OtherRunError(CorruptRecordsError):
    """A folder holds what was made with other settings or data; the message says which. Nothing is damaged."""


class ChangedResultsError(CorruptRecordsError):
    """Results that are not what their records give; the message names the value."""


class TamperedLogError(CorruptRecordsError):
    """A log of an editor that cannot have happened as it says; the message names the event."""


class ModelUnavailableError(MusicEvalsError, OSError):
    """A model that does not exist, or that cannot be fetched now; the message says how to get it."""


class CostCeilingError(ModelUnavailableError):
    """The next answer could cost more than the user allows; what was answered is kept."""


class BatchPendingError(ModelUnavailableError):
    """A batch of requests is not done yet; the same command collects it later."""


class NotEnoughMemoryError(MusicEvalsError, MemoryError):
    """A device has less memory than a run needs; nothing was computed."""


class OutputError(MusicEvalsError, OSError):
    """Results cannot be written."""


class OccupiedError(OutputError):
    """Results may not be written where something else is; nothing was."""


class HubError(MusicEvalsError, OSError):
    """The Hub refused a request, or cannot be reached."""


class HubTokenError(HubError):
    """No token is given, or the Hub refuses it."""


class HubNotFoundError(HubError):
    """A repository or revision that does not exist, or that this token may not see."""


class HubRightsError(HubError):
    """The token is good, but may not do this."""


class HubConflictError(HubError):
    """Somebody else committed to the repository in between; nothing was written."""


class HubForeignError(HubError):
    """A repository of that name is there that we did not publish; nothing was sent."""


class HubOfflineError(HubError):
    """The Hub cannot be reached, or the connection broke off."""


class BackendError(MusicEvalsError, RuntimeError):
    """An optional backend failed on its input; the message says which and how."""


class MissingBackendError(MusicEvalsError, ImportError):
    """An optional package is needed for a feature.

    `extra` is the extra of `music_evals` that installs the package, or several with commas; empty if none does.
    `install` is the command that installs the package where no extra does.
    """

    extra: str = ""
    """The extra of `music_evals` that installs it; empty if none does."""
    package: str = ""
    feature: str = ""

    @renamed_options(what="feature")
    def __init__(self, package: str, extra: str, feature: str, *, install: str = "") -> None:
        # an extra is installed by its packages, since no index holds `music_evals`; in a clone by its name
        wanted = " ".join(f'"{requirement}"' for name in extra.split(",") for requirement in _requirements(name))
        clone = f'pip install -e ".[{extra}]"'
        line = install or (f"pip install {wanted} (in a clone of music_evals: {clone})" if wanted else clone)
        super().__init__(f"{feature} needs the package {package!r}; install it with: {line}")
        self.extra = "" if install else extra
        self.package, self.feature = package, feature

    @property
    def what(self) -> str:
        """Former name of `feature`."""
        warn_renamed("MissingBackendError.what", "feature")
        return self.feature


def _requirements(extra: str) -> list[str]:
    """Return the requirements of an extra, such as ``librosa>=0.11``, and of the extras that it includes."""
    import importlib.metadata

    try:
        declared = importlib.metadata.requires("music_evals") or []
    except importlib.metadata.PackageNotFoundError:  # the source tree alone is on the path
        return []
    of_extra = re.compile(rf"""([^;]+);\s*extra\s*==\s*["']{re.escape(extra)}["']""")
    named = [match[1].strip() for match in map(of_extra.fullmatch, declared) if match]
    ours = [re.fullmatch(r"music[_-]evals\[([\w,-]+)\]", requirement) for requirement in named]
    parts = [
        [requirement] if of_ours is None else [inner for name in of_ours[1].split(",") for inner in _requirements(name)]
        for requirement, of_ours in zip(named, ours, strict=True)
    ]
    return list(dict.fromkeys(itertools.chain.from_iterable(parts)))


def check_extras(extras: Iterable[str], feature: str) -> None:
    """Raise `MissingBackendError` where a package of these extras is not installed; nothing is imported."""
    import importlib.metadata

    incomplete, missing = [], ""
    for extra in extras:
        packages = [re.split(r"[^\w.-]", requirement)[0] for requirement in _requirements(extra)]
        absent = [name for name in packages if not [*importlib.metadata.distributions(name=name)]]
        incomplete += [extra] if absent else []
        missing = missing or "".join(absent[:1])
    if missing:
        raise MissingBackendError(missing, ",".join(incomplete), feature)


@contextlib.contextmanager
def importing(extra: str, feature: str) -> Iterator[None]:
    """Turn a package that is missing into a `MissingBackendError`; for the ``with`` around an import."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in {"", "music_evals"}:
            raise  # a module of ours: a bug
        raise MissingBackendError(package, extra, feature) from error


def hub_errors() -> tuple[type[Exception], ...]:
    """Return what the client of the Hub raises: no answer, or not the one that is wanted; an invalid name."""
    # The root of its HTTP library, httpx or httpx2, is no OSError; all versions of the client have it by this name.
    from huggingface_hub.errors import HTTPError  # type: ignore[attr-defined]

    return OSError, ValueError, HTTPError


def located(error: MusicEvalsError, place: str) -> MusicEvalsError:
    """Return an error of the same kind whose message starts with the place that it is about."""
    return worded(type(error), f"{place}: {error}", vars(error))


def worded(kind: type[MusicEvalsError], message: str, facts: Mapping[str, object]) -> MusicEvalsError:
    """Return an error of this kind, message and attributes, also where `__init__` builds a message of its own."""
    base: Any = kind
    while base.__module__ != "builtins":  # the one that its memory is laid out by: no other may make it
        base = base.__base__
    error: MusicEvalsError = base.__new__(kind, message)
    error.args = (message,)  # which those of the operating system leave to their __init__
    error.__dict__.update(facts)
    return error


class UndefinedMetricWarning(UserWarning):
    """A score is undefined (0/0); NaN was returned."""


class ContextMismatchWarning(UserWarning):
    """A prediction came with a context that differs from its reference's; the reference's was used."""


class RoundedNotesWarning(UserWarning):
    """Notes lie off the grid of a model and were moved to it."""


class PaddedRecordingWarning(UserWarning):
    """A recording is so short that an encoder of fixed windows hears more padding than music."""


class NoChineseWarning(UserWarning):
    """Lyrics without a Chinese character were scored, and may be the pattern itself."""
