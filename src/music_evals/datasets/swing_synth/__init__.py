"""Swing for piano and bass, made by rules."""
