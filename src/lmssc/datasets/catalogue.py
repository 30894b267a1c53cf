"""Facts about each data set, available without loading it: views, classes, origin, licence."""

import textwrap
from dataclasses import dataclass

from lmssc.datasets.registry import FILES


@dataclass(frozen=True)
class Facts:
    """Facts about a data set.

    Attributes
    ----------
    title : str
        Full name.
    views : dict of str to int
        Number of features of each view, by name, in order.
    classes : dict of str to int
        Number of samples of each class, by name, in order.
    sparse : bool
        Whether the views are CSR arrays.
    about : str
        Description and origin of the views and classes.
    licence : str
        Licence, as far as known.
    graphs : tuple of str
        Views that are links between the samples.
    cells : tuple of int
        Place of each view in the file; by default the views are all that it has, in order.
    by_class : bool
        Whether the rows are sorted by class.
    """

    title: str
    views: dict[str, int]
    classes: dict[str, int]
    sparse: bool = False
    about: str = ""
    licence: str = ""
    graphs: tuple[str, ...] = ()
    cells: tuple[int, ...] = ()
    by_class: bool = True

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return sum(self.classes.values())


_ZHANG_COPY = "The copy that is downloaded is in a public collection of multi-view data that states no licence."
_UCI = "CC BY 4.0 on the page of the UCI repository, as far as known."
_SEGMENTS = (
    "Not stated for this copy. The segments come from D. Greene (http://mlg.ucd.ie/datasets/segment.html), "
    '"for non-commercial and research purposes only"; the rights in the articles are with their authors (BBC).'
)

MOVIE_GENRES = (21, 37, 45, 7, 36, 46, 41, 35, 44, 39, 36, 35, 39, 42, 40, 33, 41)

FACTS: dict[str, Facts] = {
    "bbc": Facts(
        "BBC: news articles in four segments",
        {"segment1": 4659, "segment2": 4633, "segment3": 4665, "segment4": 4684},
        {"1": 134, "2": 11},
        sparse=True,
        about="""\
Word counts of four segments of each article, one view per segment. The file is the one that comes with the published
program of the LMSSC paper (Bo et al., 2019), which calls them sports news. The views are as wide as those of the set of
685 BBC articles in five classes that D. Greene made by splitting articles into segments; how the 145 articles here were
chosen, and what the two classes are, is not stated. The classes have the names that they have in the file.""",
        licence=_SEGMENTS,
    ),
    "sonar": Facts(
        "Sonar: rocks and mines",
        {"low_bands": 20, "middle_bands": 20, "high_bands": 20},
        {"rock": 97, "mine": 111},
        about="""\
Sonar signals bounced off rocks and off a metal cylinder (a "mine") at many angles: the energy in 60 frequency bands,
from 0 to 1, rising in frequency. As in the LMSSC paper the views are columns 0-19, 20-39 and 40-59. Data of
R. P. Gorman and T. J. Sejnowski (1988), "Connectionist Bench (Sonar, Mines vs. Rocks)" of the UCI repository.""",
        licence=f"{_UCI} Not stated for this copy, which is one of tutorial data by J. Brownlee.",
    ),
    "handwritten": Facts(
        "HW: handwritten digits in six sets of features",
        {"profiles": 216, "fourier": 76, "karhunen_loeve": 64, "morphology": 6, "pixels": 240, "zernike": 47},
        dict.fromkeys("0123456789", 200),
        about="""\
2000 handwritten digits from Dutch utility maps, "Multiple Features" of the UCI repository (R. Duin). The views, in the
order of the LMSSC paper and of the file, are UCI's FAC (profile correlations), FOU (Fourier coefficients of the shape),
KAR (Karhunen-Loeve coefficients), MOR (morphological features), PIX (pixel averages in windows of 2 x 3; a row is an
image of 16 x 15) and ZER (Zernike moments). The labels 1 to 10 of the file are the digits 0 to 9.""",
        licence=f"{_UCI} {_ZHANG_COPY}",
    ),
    "reuters": Facts(
        "Reuters: news in five languages",
        {"english": 2000, "french": 2000, "german": 2000, "spanish": 2000, "italian": 2000},
        dict.fromkeys("123456", 200),
        sparse=True,
        about="""\
1200 documents of the Reuters RCV1/RCV2 multilingual collection (M.-R. Amini and C. Goutte, 2009), each in one language
and machine-translated into the four others: tf-idf weights of 2000 words, one view per language. The weights already
include idf, and rows are not of unit length. The languages are named in the order in which the source of the file
lists them; it may have Spanish and Italian the wrong way round, as its word counts for these two in the whole
collection are those that the authors of the collection give for Italian and Spanish. The classes have the names that
they have in the file (the collection's are C15, CCAT, E21, ECAT, GCAT and M11; which is which is not stated).
One document has no words in the view "spanish".""",
        licence=f'The collection is "publicly available for research purposes only". {_ZHANG_COPY}',
    ),
    "msrc": Facts(
        "MSRC-v5: images in five sets of features",
        {"colour_moments": 24, "hog": 576, "gist": 512, "lbp": 256, "centrist": 254},
        dict.fromkeys("1234567", 30),
        about="""\
210 images of the Microsoft Research Cambridge object recognition set: colour moments, histograms of oriented gradients,
GIST, local binary patterns and CENTRIST. Not in the LMSSC paper; for development. The classes have the names that they
have in the file.""",
        licence=f"Not stated. {_ZHANG_COPY}",
    ),
    "bbcsport": Facts(
        "BBCSport: sports articles in two segments",
        {"segment1": 3183, "segment2": 3203},
        {"1": 62, "2": 104, "3": 193, "4": 124, "5": 61},
        sparse=True,
        about="""\
Term weights (which is not stated; rows are not of unit length) of two segments of each of 544 articles from the BBC
Sport website, 2004-2005, one view per segment. Not in the LMSSC paper; for development. The classes have the names that
they have in the file.""",
        licence=f"{_SEGMENTS} {_ZHANG_COPY}",
    ),
    "leaves": Facts(
        "100Leaves: leaves of one hundred species",
        {"margin": 64, "shape": 64, "texture": 64},
        {str(species): 16 for species in range(1, 101)},
        about="""\
Sixteen leaves of each of one hundred plant species, "One-hundred plant species leaves" of the UCI repository (J. Cope,
C. Mallah, J. Orwell et al.): histograms of the fine-scale margin, shape descriptors (the contour) and histograms of the
texture. Not in the LMSSC paper; for development. The classes have the names that they have in the file. The texture of
one leaf is missing at UCI: in this file it (row 0) is the mean of the other fifteen leaves of its class.""",
        licence=f"{_UCI} {_ZHANG_COPY}",
    ),
    "cora": Facts(
        "Cora: papers and their citations",
        {"words": 1433, "citations": 2708},
        {"1": 818, "2": 180, "3": 217, "4": 426, "5": 351, "6": 418, "7": 298},
        sparse=True,
        about="""\
2708 papers on machine learning in seven topics (A. McCallum et al., 2000; P. Sen et al., 2008): which of 1433 words
each has, and which papers cite each other, in either direction. The file has two more views, the same citations by
direction with two papers missing among the columns; they are left out. Not in the LMSSC paper; for development. The
classes have the names that they have in the file.""",
        licence=f"Not stated. {_ZHANG_COPY}",
        graphs=("citations",),
        cells=(1, 0),
        by_class=False,
    ),
    "acm": Facts(
        "ACM: papers and four kinds of links",
        {"words": 1870, "graph1": 3025, "graph2": 3025, "graph3": 3025, "graph4": 3025},
        {"1": 1061, "2": 965, "3": 999},
        sparse=True,
        about="""\
3025 papers of three fields, with 1870 words and four graphs; what their links are (shared authors, subjects, and the
like) is not stated. graph1 joins 0.3 % of the pairs, graph2 and graph3 a quarter, graph4 all. Every paper is linked to
itself. Not in the LMSSC paper; for development. The classes have the names that they have in the file.""",
        licence=f"Not stated. {_ZHANG_COPY}",
        graphs=("graph1", "graph2", "graph3", "graph4"),
    ),
    "3sources": Facts(
        "3Sources: news stories by three sources",
        {"bbc": 3560, "reuters": 3631, "guardian": 3068},
        {"1": 56, "2": 21, "3": 11, "4": 18, "5": 51, "6": 12},
        sparse=True,
        about="""\
Word counts of 169 news stories that the BBC, Reuters and the Guardian all reported in 2009 (D. Greene), one view per
source; the sources are named in the order of the original collection. Not in the LMSSC paper; for development. The
classes have the names that they have in the file.""",
        licence=f"{_SEGMENTS} {_ZHANG_COPY}",
        by_class=False,
    ),
    "movies": Facts(
        "Movies: films by keywords and actors",
        {"keywords": 1878, "actors": 1398},
        dict(zip(map(str, range(1, 18)), MOVIE_GENRES, strict=True)),
        sparse=True,
        about="""\
617 films in 17 genres, with counts of keywords and of actors. Not in the LMSSC paper; for development. The classes have
the names that they have in the file.""",
        licence=f"Not stated. {_ZHANG_COPY}",
        by_class=False,
    ),
    "digits": Facts(
        "Handwritten digits of scikit-learn",
        {"pixels": 61, "fourier": 34, "profiles": 46, "gradients": 128, "zernike": 24, "morphology": 13},
        dict(zip("0123456789", (178, 182, 177, 183, 181, 182, 181, 179, 174, 180), strict=True)),
    ),
}
DATASET_NAMES: tuple[str, ...] = tuple(FACTS)


def describe(name: str) -> str:
    """Describe a data set that has a file: content, sizes, origin and licence.

    Parameters
    ----------
    name : str
        Name in the registry.

    Returns
    -------
    str
        The ``DESCR`` of its loader.

    Examples
    --------
    >>> print(describe("sonar").splitlines()[0])
    Sonar: rocks and mines
    """
    facts, file = FACTS[name], FILES[name]
    kind = "CSR arrays" if facts.sparse else "dense arrays"
    largest = max(facts.classes.values())
    share = largest / facts.n_samples
    return f"""{facts.title}
{"=" * len(facts.title)}

{facts.about}

{textwrap.fill(f"Classes: {_describe_classes(facts.classes)}.", 118)}
Always answering the largest class is right for {largest} of {facts.n_samples} samples ({100 * share:.1f} %).
{"The rows are sorted by class: shuffle them" if facts.by_class else "Shuffle the rows"} before any experiment.

Views ({kind} of float64, samples x features):
{chr(10).join(_describe_view(facts, view) for view in facts.views)}

{textwrap.fill("Licence: " + facts.licence, 118)}
File: {file.filename}, {file.size} bytes, sha256 {file.sha256}
From: {file.address}
"""


def _describe_view(facts: Facts, view: str) -> str:
    links = ", links between the samples (lmssc.Graph)" if view in facts.graphs else ""
    return f"- {view}: {facts.n_samples} x {facts.views[view]}{links}"


def _describe_classes(classes: dict[str, int]) -> str:
    sizes = list(classes.values())
    if len(set(sizes)) == 1:
        names = list(classes)
        return f"{len(names)} of {sizes[0]} samples each, {names[0]} to {names[-1]}"
    return ", ".join(f"{name} ({size} samples)" for name, size in classes.items())
