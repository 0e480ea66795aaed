"""Score inpainting: items, systems, tables against the best baseline, pictures."""
