"""Editing tests: made of samples, held in the browser, checked event by event, and their report."""
