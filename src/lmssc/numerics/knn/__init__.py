"""Nearest neighbours: exact, updated after small moves, and approximate."""
