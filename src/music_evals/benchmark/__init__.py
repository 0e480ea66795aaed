"""Tasks, runner, records and reports."""
