"""The fit in parts: samples are divided by position in space, and each part keeps its rows of X, H, S and F.

`executor` says where parts live and how they talk; all other files are the algorithm, written against it once.
"""
