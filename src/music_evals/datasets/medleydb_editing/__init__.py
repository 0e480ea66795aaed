"""The data set medleydb_editing: a manifest, attached to the user's own copy."""
