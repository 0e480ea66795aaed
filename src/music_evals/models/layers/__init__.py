"""What networks of this room are made of: base classes, layers that two or more use, samplers, and their files."""
