"""Medium swing for piano and bass, made by rules."""
