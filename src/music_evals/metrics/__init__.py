"""Pure maths on values: nothing here knows a file, a model or a Hub."""
