"""The pages of the platform: thin routes over `music_evals.caimap.services`."""
