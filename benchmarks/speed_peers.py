"""Peers of LMSSC in the benchmarks: propagation by other libraries, and neighbour graphs of the same size.

Imports are not timed. Each function returns the seconds, the predicted labels (None for a graph only), and details.
"""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
from speed_data import make_data
from stopwatch import Stopwatch

# The other libraries that classify make graphs of 10 neighbours.
K = 10


def scaled(data):
    """Concatenated views, standardised by column."""
    from sklearn.preprocessing import StandardScaler

    return StandardScaler().fit_transform(np.hstack(data.views))


def leading_components(data, n_components=80):
    """Leading principal components of the concatenated views."""
    X = scaled(data)
    vectors = np.linalg.eigh(X.T @ X)[1][:, ::-1]
    return np.ascontiguousarray(X @ vectors[:, :n_components])


def usual_k(data):
    """Number of neighbours in the graph of LMSSC."""
    from lmssc.core.graph import usual_neighbors

    return usual_neighbors(len(data.y), int((data.y >= 0).sum()), len(set(data.target)))


def timed(find_labels, data):
    """A whole fit to the scaled concatenation, including its own neighbour graph."""
    X = scaled(data)
    watch = Stopwatch(len(data.y))
    answer = find_labels(X)
    return watch.read(), answer, {}


def label_spreading(args, data):
    """LabelSpreading of scikit-learn on its kNN graph."""
    from sklearn.semi_supervised import LabelSpreading

    return timed(lambda X: LabelSpreading(kernel="knn").fit(X, data.y).transduction_, data)


def label_propagation(args, data):
    """LabelPropagation of scikit-learn on its kNN graph."""
    from sklearn.semi_supervised import LabelPropagation

    return timed(lambda X: LabelPropagation(kernel="knn").fit(X, data.y).transduction_, data)


def scikit_network(args, data):
    """Propagation of scikit-network, on a graph of scikit-learn, whose time is included."""
    from sklearn.neighbors import kneighbors_graph
    from sknetwork.classification import Propagation

    def find_labels(X):
        graph = kneighbors_graph(X, K, mode="connectivity")
        labels = {int(i): int(data.y[i]) for i in np.flatnonzero(data.y >= 0)}
        return Propagation().fit_predict(graph.maximum(graph.T).tocsr(), labels)

    return timed(find_labels, data)


def graphlearning(args, data):
    """Laplace learning of graphlearning on its approximate graph."""
    import graphlearning

    def find_labels(X):
        known = np.flatnonzero(data.y >= 0)
        return graphlearning.ssl.laplace(graphlearning.weightmatrix.knn(X, K)).fit_predict(known, data.y[known])

    return timed(find_labels, data)


def exact_graph(args, data):
    """Exact neighbours in 80 components: k + 1, as LMSSC needs, and the point itself."""
    from sklearn.neighbors import NearestNeighbors

    X, needed = leading_components(data), usual_k(data) + 1
    watch = Stopwatch(len(X))
    NearestNeighbors(n_neighbors=needed + 1, algorithm="brute").fit(X).kneighbors(X)
    return watch.read(), None, {"dimensions": X.shape[1], "neighbours": needed}


def approximate_graph(args, data):
    """95 % of the neighbours that LMSSC needs, in 80 components."""
    return search_index(leading_components(data), usual_k(data) + 1, 0.95)


def graph_of_latent(args, data):
    """The neighbours that LMSSC needs in its latent positions H, at the same recall."""
    # Another process fits, so that the memory of this one is that of the graph.
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        latent, recall = pool.submit(fit_latent, args).result()
    return search_index(latent, usual_k(data) + 1, min(recall, 0.99))


def fit_latent(args):
    """H, and the recall of its graph."""
    from lmssc import LMSSC

    data = make_data(args)
    clf = LMSSC().fit(data.views, data.y)
    return clf.latent_, clf.neighbor_recall_


def search_index(X, needed, target):
    """An inverted-file index of faiss with this recall; the time to choose `nprobe` is not included."""
    import faiss

    from lmssc.numerics.knn.exact import BruteForceL2

    X = X.astype(np.float32)
    rows = np.linspace(0, len(X) - 1, 300, dtype=int)
    truth = BruteForceL2.of(X).nearest(X[rows], needed + 1)[0]
    watch = Stopwatch(len(X))
    n_clusters = int(min(4 * np.sqrt(len(X)), len(X) / 40))
    index = faiss.IndexIVFFlat(faiss.IndexFlatL2(X.shape[1]), X.shape[1], n_clusters)
    index.cp.niter = 8
    index.train(np.ascontiguousarray(X[:: max(1, len(X) // (40 * n_clusters))]))
    index.add(X)
    building = watch.read()
    while True:
        found = index.search(X[rows], needed + 1)[1]
        # The point itself is among both.
        recall = np.mean([(len(np.intersect1d(a, b)) - 1) / needed for a, b in zip(truth, found, strict=True)])
        if recall >= target or index.nprobe >= n_clusters:
            break
        index.nprobe = min(n_clusters, max(index.nprobe + 1, int(1.1 * index.nprobe)))
    watch = Stopwatch(len(X))
    index.search(X, needed + 1)
    seconds = tuple(map(sum, zip(building, watch.read(), strict=True)))
    detail = {"dimensions": X.shape[1], "neighbours": needed, "recall": round(float(recall), 3), "nprobe": index.nprobe}
    return seconds, None, detail


OF_LATENT = "approximate kNN of H"
PEERS = {
    "LabelSpreading": label_spreading,
    "LabelPropagation": label_propagation,
    "scikit-network": scikit_network,
    "graphlearning": graphlearning,
    "exact kNN, 80 components": exact_graph,
    "approximate kNN, 80 components": approximate_graph,
    OF_LATENT: graph_of_latent,
}
