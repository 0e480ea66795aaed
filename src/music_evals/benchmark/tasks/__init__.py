"""The tasks: each a folder that holds what is special of it, and names it."""
