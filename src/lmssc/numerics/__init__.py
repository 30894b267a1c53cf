"""Numerical building blocks: arrays in, arrays out. Nothing here knows of views or labels."""
