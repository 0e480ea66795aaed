"""What stands in MIDI, MusicXML and ABC files, as their standards have it."""
