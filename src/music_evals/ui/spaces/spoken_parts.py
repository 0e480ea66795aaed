"""Components of a page that speaks several languages: each is added with its word, and a switch rewrites them all."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from music_evals.ui.frame import code_panel, downloads_panel, edits_of, language_switch, privacy
from music_evals.ui.words import Words

PRIVATE: Final[Mapping[str, Any]] = {"api_visibility": "private", "show_progress": "hidden"}
"""Options of events that are no calls of the API."""


class Parts(dict[str, Any]):
    """Components of a page by name, and what each says in the language that is chosen."""

    def __init__(self, words: Words) -> None:
        super().__init__()
        self.words = words
        self._fixed: list[tuple[Any, Mapping[str, str]]] = []
        self._localized: list[tuple[Any, Callable[[str], Mapping[str, Any]]]] = []

    def add(self, make: Callable[..., Any], key: str, *, name: str = "", **options: Any) -> Any:
        """Add a component whose text is the word of `key`; functions of a language among its options are followed."""
        import gradio as gr

        shown = "value" if make in {gr.Button, gr.Markdown} else "label"
        follow = {option: tell for option, tell in options.items() if callable(tell)}
        plain = options | {option: tell("en") for option, tell in follow.items()}
        component = make(**{shown: self.words("en")(key), "elem_id": name or key} | plain)
        if shown not in follow:
            self._fixed.append((component, {shown: key}))
        if follow:
            self._localized.append(
                (component, lambda language: {name: tell(language) for name, tell in follow.items()})
            )
        self[name or key] = component
        return component

    def add_intro(self) -> None:
        """Add what the page is for, and where goes what is entered."""
        import gradio as gr

        self.add(
            gr.Markdown,
            "intro",
            value=lambda language: f"{self.words(language)('intro')}\n\n{privacy(language)}",
            elem_id="about",
        )

    def add_results(self) -> None:
        """Add the buttons of files and the panels of code, values and receipt."""
        import gradio as gr

        for kind, button in zip(("json", "csv"), downloads_panel(), strict=True):
            self[kind] = button
            self._fixed.append((button, {"label": kind}))
        code = " · ".join(self.words(language)("code") for language in self.words.languages)
        self["python"], self["shell"] = code_panel(code)
        with self.add(gr.Accordion, "values", name="values_panel", open=False, elem_id="values"):
            self["values"] = gr.JSON(show_label=False)
        with self.add(gr.Accordion, "receipt", name="receipt_panel", open=False, elem_id="receipt"):
            self["receipt"] = gr.HTML("")

    def add_switch(self) -> None:
        """Add the switch of languages, when all else is there."""
        import gradio as gr

        switch = language_switch(self.words, self._fixed, scale=0, min_width=220)
        switch.change(
            lambda language: [gr.update(**reported(language)) for _, reported in self._localized],
            switch, [component for component, _ in self._localized], queue=False, **PRIVATE,
        )  # fmt: skip
        self["language"] = switch

    def pick(self, *names: str) -> list[Any]:
        """Return components by their names."""
        return [self[name] for name in names]

    def empty_when(
        self,
        inputs: Sequence[Any],
        empty: Callable[[str], Sequence[Any]],
        outputs: Sequence[Any],
        *,
        filled: Sequence[Any] = (),
    ) -> None:
        """Put into outputs what `empty` gives for the language when visitors change inputs, or events filled them."""
        # No result stays beside inputs that it is not of. In the browser alone: an answer of the server could come
        # after the next result, and wipe it.
        import gradio as gr

        blanks = {language: list(empty(language)) for language in self.words.languages}
        js = f"(language) => ({json.dumps(blanks)})[language]"
        wiped: dict[str, Any] = {"inputs": self["language"], "outputs": list(outputs), "js": js, **PRIVATE}
        gr.on(edits_of(inputs), None, **wiped)
        for event in filled:
            event.then(None, **wiped)
