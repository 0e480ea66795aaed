"""Acts whose page is shown again where they are refused, with the message and with all that was written."""

from __future__ import annotations

from collections.abc import Callable

from music_evals.caimap.machine import ForbiddenStepError
from music_evals.caimap.storage.store import StaleError
from music_evals.caimap.web.app import Answer, Asked, status_of
from music_evals.caimap.web.forms import editor_values, sent_texts, tidied
from music_evals.caimap.web.wording import refusal
from music_evals.caimap.work.accounts import SignInError
from music_evals.errors import InvalidInputError, MusicEvalsError

__all__ = ["arranged", "kept"]


def kept(
    page: Callable[[Asked], Answer], act: Callable[[Asked], Answer], *, form: str = "fields"
) -> Callable[[Asked], Answer]:
    """Return an act that shows its page again where it is refused.

    Where the page itself is refused too, as nothing of it is left, that refusal goes on; it shows what was sent.

    Parameters
    ----------
    page, act
        What shows the page, and what is done.
    form
        Under which name the page knows what was written: a page with several forms has one for each.

    """

    def keeping(asked: Asked) -> Answer:
        try:
            return act(asked)
        except (InvalidInputError, StaleError, ForbiddenStepError, SignInError) as error:
            return _again(error, page, asked, form)

    return keeping


def arranged(page: Callable[[Asked], Answer]) -> Callable[[Asked], Answer]:
    """Return the act of an editor of structures that keeps nothing and shows its page again, its rows tidied."""

    def arranging(asked: Asked) -> Answer:
        shown = page(asked)
        return shown._replace(values={**(shown.values or {}), **editor_values(tidied(asked.form))})

    return kept(page, arranging)


def _again(error: MusicEvalsError, page: Callable[[Asked], Answer], asked: Asked, form: str) -> Answer:
    shown, sent = page(asked), sent_texts(asked.form, asked.language)
    added = {"message": refusal(error, asked.language), form: dict(asked.form), "sent": sent}
    return shown._replace(values={**(shown.values or {}), **added}, status=status_of(error))
