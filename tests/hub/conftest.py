"""What the tests of the hub room share."""

from __future__ import annotations

from .hub_house import house, hub_client, local_hub, tree

__all__ = ["house", "hub_client", "local_hub", "tree"]
