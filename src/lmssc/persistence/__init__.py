"""Models and checkpoints on disk, and files that are never half-written."""
