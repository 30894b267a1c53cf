"""The method: one file for each formula."""
