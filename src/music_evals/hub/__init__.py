"""From records to model cards and the Hub."""
