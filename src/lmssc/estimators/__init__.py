"""The classifiers."""
