"""The only place where files and extractors meet metrics."""
