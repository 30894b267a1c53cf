"""Experiments: splits, scores, and fair comparisons of methods."""
