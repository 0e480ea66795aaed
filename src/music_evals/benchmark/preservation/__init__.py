"""What an edit preserved: pairs, controls, extractors, pictures."""
