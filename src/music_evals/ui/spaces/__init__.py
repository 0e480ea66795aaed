"""One module a Space, and what serves one Space alone."""
