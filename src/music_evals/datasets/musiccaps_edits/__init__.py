"""The data set musiccaps_edits: edits of a hundred clips, attached to the user's own copies."""
