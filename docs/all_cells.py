"""All development cells in one count: LMSSC beside the best of all other methods, cell by cell, on the same splits."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from accuracy_page import FRESH, FRESH_SETS, LEVEL, NOT_PEERS, PEERS, Values, comparisons, joined, read_csv, read_runs

from lmssc.paper.markdown import markdown_table

# Sets that have no table of their own.
FILES = ("cora", "3sources", "movies")
STAND_INS = ("digits", "handwritten_pca", "msrc_pca", "mnist_pca", "thin_signal", "weak_views")
WITHOUT_TABLE = (*FILES, *STAND_INS)
# Points that a cell may be behind, beyond two standard errors.
FAR = 1.5
# Cells that a method needs for a line of its own.
MIN_CELLS = 20


class Cell(NamedTuple):
    """LMSSC and its closest rival in one cell, in percent.

    Attributes
    ----------
    data : str
        Data set.
    rate : float
        Share of labels.
    ours : float
        Mean of LMSSC over all of its splits.
    peer : str
        The method with the largest mean lead, or the smallest lag, on the splits that both ran on.
    gain : float
        Mean of LMSSC minus that of the peer on these splits.
    error : float
        Standard error of the paired differences; NaN with one split.
    """

    data: str
    rate: float
    ours: float
    peer: str
    gain: float
    error: float

    @property
    def is_level(self) -> bool:
        """At or within `LEVEL` of the best."""
        return self.gain >= -LEVEL - 1e-9

    @property
    def is_far_behind(self) -> bool:
        """More than `FAR` behind by more than two standard errors."""
        return self.gain < -FAR and self.gain + 2 * self.error < 0


def read_all(root: Path) -> Values:
    """Accuracies of all methods on all development sets."""
    peers = read_csv(root / PEERS, "accuracy")
    tables = {
        **read_csv(root / FRESH_SETS, "accuracy"),
        **read_runs(root, "accuracy"),
        **comparisons(root, FRESH, "accuracy"),
        **{name: peers[name] for name in WITHOUT_TABLE},
    }
    return joined(tables, peers)


def closest(data: str, rate: float, methods: Mapping[str, Mapping[int, float]]) -> Cell:
    """LMSSC and the method that is furthest ahead of it, or least behind.

    Examples
    --------
    >>> cell = closest("a", 0.1, {"LMSSC": {0: 0.9, 1: 0.8}, "1-NN": {0: 0.7, 1: 0.7}, "SVC": {1: 0.9}})
    >>> cell.peer, round(cell.gain, 1)
    ('SVC', -10.0)
    """
    ours, best = methods["LMSSC"], ("", np.array([np.inf]))
    for peer, runs in methods.items():
        if peer not in NOT_PEERS:
            gains = 100 * np.array([ours[split] - runs[split] for split in sorted(ours.keys() & runs.keys())])
            if len(gains) and gains.mean() < best[1].mean():
                best = peer, gains
    peer, gains = best
    error = float(gains.std(ddof=1) / np.sqrt(len(gains))) if len(gains) > 1 else float("nan")
    return Cell(data, rate, 100 * float(np.mean(list(ours.values()))), peer, float(gains.mean()), error)


def closest_of_all(values: Values) -> list[Cell]:
    """`closest` of every cell."""
    return [closest(name, rate, cell) for name, rates in values.items() for rate, cell in sorted(rates.items())]


def count_markdown(values: Values, groups: Mapping[str, set[str]]) -> str:
    """The count by group of data sets, and for all.

    Parameters
    ----------
    values : dict
        Accuracies of all methods.
    groups : dict of str to set
        Data sets of each group.

    Returns
    -------
    str

    Examples
    --------
    >>> values = {"a": {0.1: {"LMSSC": {0: 0.9, 1: 0.8}, "1-NN": {0: 0.7, 1: 0.7}}}}
    >>> print(count_markdown(values, {"first": {"a"}}).splitlines()[2])
    | first | 1 | 1 | 1 (100.0 %) | 0 | 0 | +15.0 |
    """
    cells, lines = closest_of_all(values), []
    for group, names in {**groups, "all": set(values)}.items():
        own = [cell for cell in cells if cell.data in names]
        level = sum(cell.is_level for cell in own)
        lines.append(
            (
                group,
                str(len({cell.data for cell in own})),
                str(len(own)),
                f"{level} ({100 * level / len(own):.1f} %)",
                str(sum(cell.gain <= -1 for cell in own)),
                str(sum(cell.is_far_behind for cell in own)),
                f"{np.mean([cell.gain for cell in own]):+.1f}",
            )
        )
    head = ("data", "sets", "cells", "best or within 0.25", "behind by a point or more")
    return markdown_table((*head, "behind by 1.5 beyond two standard errors", "mean difference to the best"), lines)


def behind_markdown(values: Values) -> str:
    r"""Cells in which a method is ahead by more than `LEVEL`, the furthest first, ± standard error.

    Examples
    --------
    >>> ahead = {"LMSSC": {0: 1.0}, "1-NN": {0: 0.5}}
    >>> values = {"a": {0.1: {"LMSSC": {0: 0.7, 1: 0.8}, "1-NN": {0: 0.8, 1: 0.8}}, 0.3: ahead}}
    >>> print(behind_markdown(values).splitlines()[2].replace("\xa0", " "))
    | a | 10 % | 75.0 | 1-NN | -5.0 ± 5.0 |
    """
    behind = sorted((cell for cell in closest_of_all(values) if not cell.is_level), key=lambda cell: cell.gain)
    lines = [
        (
            cell.data,
            f"{cell.rate:.0%}".replace("%", " %"),
            f"{cell.ours:.1f}",
            cell.peer,
            f"{cell.gain:+.1f} ± {cell.error:.1f}",
        )
        for cell in behind
    ]
    return markdown_table(("data", "labels", "LMSSC", "ahead", "difference"), lines)


class Peer(NamedTuple):
    """Another method beside LMSSC.

    Attributes
    ----------
    cells : int
        Cells in which it ran.
    lead : float
        Mean difference of LMSSC to it in these cells, in points.
    ahead : int
        Cells in which it is ahead of LMSSC.
    """

    cells: int
    lead: float
    ahead: int


def single_peers(values: Values) -> dict[str, Peer]:
    """Each other method, the best first.

    Examples
    --------
    >>> single_peers({"a": {0.1: {"LMSSC": {0: 0.75}, "1-NN": {0: 0.5}}}})
    {'1-NN': Peer(cells=1, lead=25.0, ahead=0)}
    """
    gains: dict[str, list[float]] = {}
    for rates in values.values():
        for methods in rates.values():
            for peer in methods.keys() - {*NOT_PEERS}:
                one = closest("", 0.0, {"LMSSC": methods["LMSSC"], peer: methods[peer]})
                gains.setdefault("GFHF (a single view)" if peer.startswith("GFHF (view") else peer, []).append(one.gain)
    peers = {
        name: Peer(len(found), float(np.mean(found)), sum(gain < -1e-9 for gain in found))
        for name, found in gains.items()
    }
    return dict(sorted(peers.items(), key=lambda item: item[1].lead))


def single_peers_markdown(values: Values) -> str:
    """`single_peers` as a table, of those that ran in at least `MIN_CELLS` cells."""
    lines = [
        (name, str(peer.cells), f"{peer.lead:+.1f}", str(peer.ahead))
        for name, peer in single_peers(values).items()
        if peer.cells >= MIN_CELLS
    ]
    return markdown_table(("method", "cells", "LMSSC is ahead by, on average", "it is ahead of LMSSC in"), lines)


def all_cells_blocks(root: Path) -> dict[str, str]:
    """Blocks of docs/accuracy.md by name."""
    values = read_all(root)
    four = set(read_csv(root / "results/reproduction/runs.csv", "accuracy"))
    seven = set(read_runs(root, "accuracy"))
    groups = {
        "the paper's four": four,
        "MSRC-v5, BBCSport, 100Leaves": seven - four,
        "cancer, wine": set(FRESH),
        "22 sets from wheels": set(read_csv(root / FRESH_SETS, "accuracy")),
        "Cora, 3Sources, Movies": set(FILES),
        "digits, principal components, simulated": set(STAND_INS),
    }
    return {
        "all cells": count_markdown(values, groups),
        "all cells behind": behind_markdown(values),
        "all cells peers": single_peers_markdown(values),
    }
