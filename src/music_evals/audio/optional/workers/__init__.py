"""Scripts that run in a process of their own; nothing here may be called like the package that it runs."""
