"""What the people of a study do: transactions over the rules and the tables."""
