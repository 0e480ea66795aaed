"""The page of one metric: card, inputs, results."""
