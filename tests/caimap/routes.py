"""The pages of the platform, read from its routers, each with the right that it needs."""

from __future__ import annotations

from typing import NamedTuple

from music_evals.caimap.web import app  # noqa: F401  (which registers the numbers in addresses)
from music_evals.caimap.web.routes import account, annotate, hugging_face, inspect, manage, public


class Page(NamedTuple):
    """A page: its method, its path with ``{names}``, and its right."""

    method: str
    path: str
    right: str


def right_of(route) -> list[str]:
    """The one right that its router names."""
    rights = [scope for needed in route.dependencies for scope in getattr(needed, "scopes", None) or ()]
    assert len(rights) == 1, route.path
    return rights


def pages_of(*modules) -> list[Page]:
    routes = [route for module in modules for router in module.ROUTERS for route in router.routes]
    return [
        Page(method, route.path, right)
        for route in routes
        for method in sorted(route.methods - {"HEAD"})
        for right in right_of(route)
    ]


PAGES = pages_of(public, account, annotate, inspect, manage)
PROVIDER_PAGES = pages_of(hugging_face)
