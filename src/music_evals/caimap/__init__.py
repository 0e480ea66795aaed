"""The annotation platform for descriptions and structures of songs: its rules, its storage, its pages."""
