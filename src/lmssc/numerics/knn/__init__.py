"""Nearest neighbours: exact, and approximate with a measured recall."""
