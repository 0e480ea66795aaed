"""Style transfer: what is special of the task."""
