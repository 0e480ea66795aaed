"""What the tests of the hub room share."""

from __future__ import annotations

from .hub_house import copy_of_ours, house, hub_client, local_hub, patience, tree

__all__ = ["copy_of_ours", "house", "hub_client", "local_hub", "patience", "tree"]
