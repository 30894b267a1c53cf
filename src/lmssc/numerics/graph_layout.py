"""Positions in the plane for the nodes of a sparse graph: linked nodes close together, all others apart.

This is t-SNE (van der Maaten and Hinton, 2008) with a given graph in the place of the nearest neighbours. Node i has
p_j|i of its weight on node j; the layout Y minimises the Kullback-Leibler divergence from P to
q_ij ∝ 1 / (1 + ‖y_i − y_j‖²). The attraction is a sum over edges. The repulsion is a convolution of the density of the
nodes with a fixed kernel, done on a grid by FFT (as in Linderman et al., 2019), so a step is linear in nodes and edges.
Nothing is sampled: the same graph always gives the same picture.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import fft, sparse


@dataclass(frozen=True)
class LayoutSettings:
    """Constants of the layout; the defaults are those of openTSNE where it has the same."""

    max_nodes: int = 10_000
    """A larger graph is contracted until it has no more nodes, laid out, expanded again and refined."""
    n_early: int = 60
    exaggeration: float = 12.0
    early_momentum: float = 0.5
    """The first gradient steps, in which clusters find their place: how many, the factor of the attraction, and the
    share of the last step that is added to the next."""
    n_late: int = 140
    late_momentum: float = 0.8
    """The same for the other steps, without a factor."""
    n_refine: int = 15
    max_refined: int = 200_000
    """Steps on the expanded graph. One with more nodes is not refined: its nodes lie between their neighbours."""
    max_step: float = 2.0
    """Largest move of a node in one step along an axis."""
    gravity: float = 1e-4
    small_gravity: float = 0.1
    """Pull towards the centre, so that nodes without edges stay in the picture: gravity + small_gravity / n."""
    n_projections: int = 32
    n_diffusion_steps: int = 30
    """Random vectors that are smoothed along the edges for the initial positions, and how often."""
    jitter: float = 0.02
    """Spread of the noise on the initial positions, in which each cluster has a standard deviation of 1: nodes that
    coincide would stay together."""
    cell: float = 0.5
    max_cells: int = 512
    """Width of a grid cell (the kernel has a width of 1) and the most cells along an axis."""


def graph_layout(graph: sparse.sparray, settings: LayoutSettings | None = None) -> NDArray[np.float64]:
    """Lay out a graph in the plane.

    Parameters
    ----------
    graph : sparse array of shape (n, n)
        Weights of the edges, at least 0. Both directions count; each node's weights are scaled to a sum of 1, and
        those on the diagonal are ignored.
    settings : LayoutSettings, optional
        Constants of the layout.

    Returns
    -------
    ndarray of shape (n, 2)
        Positions around the origin, the widest direction along the first axis. They are the same for the same graph;
        a permuted graph gives another rounding and another start, so put the nodes into a canonical order first.

    Examples
    --------
    Two triangles, joined by one weak edge:

    >>> links = sparse.block_diag([np.ones((3, 3)), np.ones((3, 3))], format="lil")
    >>> links[2, 3] = 0.1
    >>> positions = graph_layout(sparse.csr_array(links))
    >>> left = positions[:, 0] < 0
    >>> left.tolist() in ([True] * 3 + [False] * 3, [False] * 3 + [True] * 3)
    True
    """
    settings = LayoutSettings() if settings is None else settings
    affinities = _affinities(graph)
    masses = np.ones(affinities.shape[0], dtype=np.float32)
    return _upright(_lay_out(affinities, masses, settings).astype(np.float64))


def _affinities(graph: sparse.sparray) -> sparse.csr_array:
    """P of t-SNE: transition probabilities in both directions, symmetric, without the diagonal."""
    weights = _without_diagonal(graph)
    totals = weights.sum(axis=1)
    weights.data /= np.repeat(np.where(totals > 0, totals, 1), np.diff(weights.indptr))
    return sparse.csr_array(weights + weights.T)


def _without_diagonal(graph: sparse.sparray) -> sparse.csr_array:
    edges = sparse.coo_array(graph)
    off = edges.row != edges.col
    ends = edges.row[off], edges.col[off]
    weights = sparse.csr_array((edges.data[off].astype(np.float32), ends), shape=edges.shape)
    weights.sum_duplicates()  # sorts too: one graph, one order of summation
    return weights


def _lay_out(affinities: sparse.csr_array, masses: NDArray, settings: LayoutSettings) -> NDArray:
    """Positions of the nodes of a symmetric graph, where node i stands for masses[i] nodes."""
    if len(masses) > settings.max_nodes and affinities.nnz:
        groups = _contract(affinities)
        n_groups = int(groups.max()) + 1
        member = sparse.csr_array((np.ones(len(groups), np.float32), (np.arange(len(groups)), groups)))
        if n_groups < 0.9 * len(masses):
            between = _without_diagonal(member.T @ affinities @ member)
            coarse = _lay_out(between, member.T @ masses, settings)
            return _refine(affinities, masses, coarse[groups], settings)
    positions = _initial_positions(affinities, settings)
    if not affinities.nnz:
        return positions
    descent = _Descent(affinities, masses, settings)
    positions = descent.run(positions, settings.n_early, settings.exaggeration, settings.early_momentum)
    return descent.run(positions, settings.n_late, 1.0, settings.late_momentum)


def _contract(affinities: sparse.csr_array) -> NDArray:
    """Group of each node: nodes that are linked by some node's heaviest edge are one group (a Borůvka step)."""
    counts = np.diff(affinities.indptr)
    nodes = np.flatnonzero(counts)
    maxima = np.maximum.reduceat(affinities.data, affinities.indptr[nodes])
    candidates = np.flatnonzero(affinities.data == np.repeat(maxima, counts[nodes]))
    # Of equally heavy edges the first.
    heaviest = affinities.indices[candidates[np.searchsorted(candidates, affinities.indptr[nodes])]]
    links = sparse.csr_array((np.ones(len(nodes), np.int8), (nodes, heaviest)), shape=affinities.shape)
    return sparse.csgraph.connected_components(links, directed=False)[1]


def _refine(affinities: sparse.csr_array, masses: NDArray, coarse: NDArray, settings: LayoutSettings) -> NDArray:
    """Positions of all nodes from those of their groups: the mean of their neighbours', then some gradient steps."""
    degrees = affinities.sum(axis=1)[:, None]
    around = np.where(degrees > 0, affinities @ coarse / np.where(degrees > 0, degrees, 1), coarse)
    spread = settings.jitter * np.random.default_rng(0).standard_normal(coarse.shape, dtype=np.float32)
    positions = (coarse + around) / 2 + spread
    if len(masses) > settings.max_refined:
        return positions
    descent = _Descent(affinities, masses, settings)
    return descent.run(positions, settings.n_refine, 1.0, settings.early_momentum)


def _initial_positions(affinities: sparse.csr_array, settings: LayoutSettings) -> NDArray:
    """Random vectors smoothed along the edges, projected to their two principal directions.

    Nodes of one cluster get almost the same values, those of other clusters get others.
    """
    n_nodes = affinities.shape[0]
    rng = np.random.default_rng(0)
    degrees = affinities.sum(axis=1)
    scale = 1 / np.sqrt(np.where(degrees > 0, degrees, 1))
    walk = sparse.csr_array(affinities * scale[:, None] * scale)
    vectors = rng.standard_normal((n_nodes, settings.n_projections), dtype=np.float32)
    for _ in range(settings.n_diffusion_steps):
        vectors = (vectors + walk @ vectors) / 2
    vectors *= scale[:, None]
    vectors -= vectors.mean(axis=0)
    directions = np.linalg.eigh(vectors.T @ vectors)[1][:, :-3:-1]
    positions = vectors @ directions
    positions /= np.maximum(positions.std(axis=0), np.finfo(np.float32).tiny)
    noise = rng.standard_normal(positions.shape, dtype=np.float32)
    return (positions + settings.jitter * noise).astype(np.float32)


class _Descent:
    """Gradient descent with momentum and a gain for each coordinate, as in t-SNE."""

    def __init__(self, affinities: sparse.csr_array, masses: NDArray, settings: LayoutSettings) -> None:
        upper = sparse.csr_array(sparse.triu(affinities, 1))
        self.affinities = upper.data / max(2 * upper.data.sum(dtype=np.float64), np.finfo(np.float32).tiny)
        self.columns, self.indptr, self.shape = upper.indices, upper.indptr, upper.shape
        self.counts = np.diff(upper.indptr)
        self.shares = masses / masses.sum()
        self.repulsion = _Repulsion(self.shares, settings)
        self.settings = settings

    def run(self, positions: NDArray, n_iter: int, exaggeration: float, momentum: float) -> NDArray:
        """The positions after so many steps."""
        # Learning rate n / exaggeration (Belkina et al., 2019), here for nodes of different masses.
        rate = (4 / exaggeration / self.shares)[:, None]
        gravity = self.settings.gravity + self.settings.small_gravity / len(positions)
        pull = exaggeration * gravity * self.shares[:, None]
        step, gains = np.zeros_like(positions), np.ones_like(positions)
        for _ in range(n_iter):
            gradient = exaggeration * self._attraction(positions) + pull * positions - self.repulsion(positions)
            turned = np.signbit(gradient) == np.signbit(step)
            gains = np.maximum(np.where(turned, 0.8 * gains, gains + 0.2), 0.05, dtype=np.float32)
            step = momentum * step - rate * gains * gradient
            np.clip(step, -self.settings.max_step, self.settings.max_step, out=step)
            positions = positions + step
        return positions

    def _attraction(self, positions: NDArray) -> NDArray:
        """Σ_j p_ij (y_i − y_j) / (1 + ‖y_i − y_j‖²)."""
        squared = np.ones(len(self.columns), dtype=np.float32)
        for axis in positions.T:
            difference = np.repeat(axis, self.counts) - axis[self.columns]
            squared += difference * difference
        upper = sparse.csr_array((self.affinities / squared, self.columns, self.indptr), shape=self.shape)
        extended = np.column_stack([positions, np.ones(len(positions), dtype=np.float32)])
        sums = upper @ extended + upper.T @ extended
        return sums[:, 2:] * positions - sums[:, :2]


class _Repulsion:
    """Σ_j q_ij (y_i − y_j) / (1 + ‖y_i − y_j‖²) of all nodes at once.

    Each node's mass goes to the four corners of its cell; the kernels act on the grid; each node then reads the field
    at the same corners with the same weights, so no node repels itself.
    """

    def __init__(self, shares: NDArray, settings: LayoutSettings) -> None:
        self.shares, self.settings = shares, settings
        self.grid: tuple[int, float] = (0, 0.0)

    def __call__(self, positions: NDArray) -> NDArray:
        low = positions.min(axis=0)
        n_cells, cell = self._fit_grid(float(np.max(positions.max(axis=0) - low)))
        scaled = (positions - low) / np.float32(cell)
        corner = scaled.astype(np.int32)
        inside = scaled - corner
        weights = [(1 - inside[:, 0], inside[:, 0]), (1 - inside[:, 1], inside[:, 1])]
        first = corner[:, 0] * n_cells + corner[:, 1]
        corners = [(first + i * n_cells + j, weights[0][i] * weights[1][j]) for i in (0, 1) for j in (0, 1)]
        masses = np.zeros(n_cells * n_cells)
        for cells, weight in corners:
            masses += np.bincount(cells, weight * self.shares, minlength=len(masses))
        field = self._convolve(masses.reshape(n_cells, n_cells).astype(np.float32))
        read = sum(field[cells] * weight[:, None] for cells, weight in corners)
        total = float(self.shares @ read[:, 2] - self.shares @ self.shares)
        return read[:, :2] * (self.shares[:, None] / max(total, np.finfo(np.float32).tiny))

    def _fit_grid(self, span: float) -> tuple[int, float]:
        """Number and width of cells for positions of that span; kernels for them."""
        # Both grow in steps, so that the kernels can be used again while the layout grows.
        cell = self.settings.cell
        while span / cell > self.settings.max_cells - 2:
            cell *= 2
        n_cells = min(self.settings.max_cells, -(-(int(span / cell) + 2) // 32) * 32)
        if (n_cells, cell) != self.grid:
            self.grid = n_cells, cell
            steps = np.arange(2 * n_cells)
            offsets = np.where(steps < n_cells, steps, steps - 2 * n_cells) * cell
            x, y = (axis.astype(np.float32) for axis in (offsets[:, None], offsets[None]))
            kernel = 1 / (1 + x * x + y * y)
            # The two ends of the period have no sign; no two nodes are so far apart.
            kernel[n_cells] = kernel[:, n_cells] = 0
            self.kernels = fft.rfft2(np.stack([x * kernel**2, y * kernel**2, kernel]))
        return self.grid

    def _convolve(self, masses: NDArray) -> NDArray:
        """The two components of the force and the potential at each cell, as columns."""
        n_cells = len(masses)
        period = (2 * n_cells, 2 * n_cells)
        field = fft.irfft2(self.kernels * fft.rfft2(masses, s=period), s=period)
        return field[:, :n_cells, :n_cells].reshape(3, -1).T.copy()


def _upright(positions: NDArray) -> NDArray:
    """The layout around the origin, its widest direction along the first axis, its longer tails to the right and up."""
    centred = positions - positions.mean(axis=0)
    turned = centred @ np.linalg.eigh(centred.T @ centred)[1][:, ::-1]
    return turned * np.where((turned**3).sum(axis=0) < 0, -1, 1)
