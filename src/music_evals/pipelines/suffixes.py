"""What kind of file bytes are that come with a name or without one, as the rows of data sets do."""

from __future__ import annotations

from pathlib import Path

_SIGNS = {
    b"RIFF": ".wav",
    b"fLaC": ".flac",
    b"OggS": ".ogg",
    b"ID3": ".mp3",
    b"\xff": ".mp3",
    b"FORM": ".aiff",
    b"MThd": ".mid",
}
"""How a file begins -> its suffix."""


def suffix_of(content: bytes, name: str | None = None) -> str:
    """Return the suffix that a file of these bytes should have, from which `preservation.modality` takes its kind."""
    named = Path(name or "").suffix.lower()
    return named or next((suffix for sign, suffix in _SIGNS.items() if content.startswith(sign)), "")
