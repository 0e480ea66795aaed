"""What every page is held to, read off a page of Gradio that was built and is not served."""

from __future__ import annotations

import asyncio
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

__all__ = ["WITH_EXAMPLES", "build", "built", "faults", "public_names"]

WITH_EXAMPLES = ("editing", "preservation")
"""Spaces that offer files as examples."""


def build(app: Path) -> Any:
    """Return the page of an app, built here; the import of Gradio is what takes its time."""
    return built(runpy.run_path(str(app))["build_demo"])


def built(make: Callable[[], Any]) -> Any:
    """Return a page that is made without a network, in a loop: where none runs, Gradio opens one and leaves it open."""

    def refuse(*arguments: Any, **options: Any) -> None:
        raise AssertionError(f"a page must not reach for the network: {arguments}")

    async def page() -> Any:
        return make()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("socket.socket.connect", refuse)
        return asyncio.run(page())


def public_names(config: dict[str, Any]) -> list[str]:
    """Return the names by which programs call a page."""
    return [event["api_name"] for event in config["dependencies"] if event["api_visibility"] == "public"]


def faults(page: Any) -> list[str]:
    """Name what a visitor would find wrong with a page at the first look, or on its second day."""
    parts = list(page.blocks.values())
    found = _forgotten(page, parts)
    return [*found, *(fault for look in _LOOKS for fault in look(parts))]


def _forgotten(page: Any, parts: list[Any]) -> list[str]:
    """Name files of ours that go when visitors' files do: examples, and values that fields begin with."""
    kept = {path for part in parts for path in part.keep_in_cache}
    found = [f"{path} goes after an hour" for files in page.temp_file_sets for path in files if path not in kept]
    # a button that is given nothing and fills a field of files brings an example
    filled = [part for event in page.fns.values() if event.fn and not event.inputs for part in event.outputs]
    return found + [
        f"what a button puts into {part.label!r} goes after an hour"
        for part in filled
        if part.get_block_name() == "file" and not part.keep_in_cache
    ]


def _empty_choices(parts: list[Any]) -> list[str]:
    """Name menus with a blank option, and those without any that look as if there were."""
    found = []
    for part in parts:
        if part.get_block_name() in {"dropdown", "radio", "checkboxgroup"}:
            name = f"{part.label!r} ({part.elem_id})"
            labels = [str(label).strip() for label, _ in part.choices]
            found += [f"{name} has a blank option"] * ("" in labels)
            if not labels and part.visible and part.interactive is not False:
                found.append(f"{name} has no options and can be opened")
    return found


def _dead_buttons(parts: list[Any]) -> list[str]:
    return [
        f"{part.label!r} has no file and can be pressed"
        for part in parts
        if part.get_block_name() == "downloadbutton" and part.value is None and part.interactive and part.visible
    ]


def _needless_licences(parts: list[Any]) -> list[str]:
    return [
        f"{part.label!r} is asked for before there are weights"
        for part in parts
        if part.get_block_name() == "checkbox" and "licence" in str(part.label) and part.visible
    ]


def _wrong_texts(parts: list[Any]) -> list[str]:
    """Name players whose text tells visitors to press what is not on their page: its first word is that of a button."""
    buttons = {str(part.value).split()[0] for part in parts if part.get_block_name() == "button"}
    players = [part.value["html"] for part in parts if part.elem_id == "player"]
    texts = [html.partition(">")[2].partition("<")[0] for html in players]
    return [f"{text!r} names no button of {sorted(buttons)}" for text in texts if text.split()[0] not in buttons]


_LOOKS = (_empty_choices, _dead_buttons, _needless_licences, _wrong_texts)
