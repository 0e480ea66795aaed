"""Shared pieces of the Gradio pages."""
