"""The handwritten digits of scikit-learn in several views; needs no network."""

from math import factorial

import numpy as np
import numpy.typing as npt
from scipy import ndimage
from sklearn.datasets import load_digits
from sklearn.utils import Bunch

FloatArray = npt.NDArray[np.float64]

_SIDE = 8  # images are 8 × 8
_INK = 6.0  # a pixel of at least this grey value (0 to 16) counts as ink
_ORIENTATIONS = 8
_CELL, _CELL_STEP = 4, 2
_ZERNIKE_ORDER = 8

_DESCR = """Handwritten digits in several views
===================================

1797 handwritten digits, 8 x 8 pixels with 17 grey values (0 is paper, 16 is full ink), as shipped with
scikit-learn (`sklearn.datasets.load_digits`). They are the test part of the UCI set "Optical Recognition of
Handwritten Digits" by E. Alpaydin and C. Kaynak, written by 13 people. Ten classes, the digits 0 to 9, of 174
to 183 samples each; the rows are in the order of scikit-learn and are not sorted by class.

Every view is computed from the images, nothing else:

{views}

The views `fourier` and `zernike` cannot tell an image from the same image turned by 180 degrees, so 6 and 9
look alike there; `morphology` is a handful of coarse shape measures and the weakest view.
"""


def pixels(images: FloatArray) -> FloatArray:
    """Grey values of the pixels that at least one of the images inks, row by row.

    Parameters
    ----------
    images : array of shape (n_samples, 8, 8)

    Returns
    -------
    array of shape (n_samples, n_pixels)
        61 columns for the digits of scikit-learn: three pixels at the border are always paper.
    """
    flat = images.reshape(len(images), -1)
    return flat[:, flat.any(axis=0)]


def fourier(images: FloatArray) -> FloatArray:
    """Magnitudes |f̂(u, v)| of the two-dimensional discrete Fourier transform.

    f̂(u, v) = Σ_yx f(y, x) exp(−2πi (uy + vx) / 8). As f is real, f̂(−u, −v) is the conjugate of f̂(u, v):
    of each such pair one is kept.

    Parameters
    ----------
    images : array of shape (n_samples, 8, 8)

    Returns
    -------
    array of shape (n_samples, 34)
    """
    magnitudes = np.abs(np.fft.rfft2(images))
    u, v = np.indices(magnitudes.shape[1:])
    own_mirror = (v == 0) | (v == _SIDE // 2)  # columns with both members of each pair
    return magnitudes[:, ~own_mirror | (u <= _SIDE // 2)]


def profiles(images: FloatArray) -> FloatArray:
    """Ink sums of rows and columns, and the distance from each side to the first ink.

    Σ_x f(y, x) for each row, Σ_y f(y, x) for each column; then, from left and right for each row and from
    top and bottom for each column but the first (ink in one of the 1797 images), the number of pixels before
    the first ink, 8 where there is none.

    Parameters
    ----------
    images : array of shape (n_samples, 8, 8)

    Returns
    -------
    array of shape (n_samples, 46)
    """
    ink = images >= _INK
    columns = ink[:, :, 1:].swapaxes(1, 2)
    sides = [ink, ink[:, :, ::-1], columns, columns[:, :, ::-1]]
    distances = [np.where(side.any(axis=2), side.argmax(axis=2), _SIDE) for side in sides]
    return np.hstack([images.sum(axis=2), images.sum(axis=1), *distances])


def gradients(images: FloatArray) -> FloatArray:
    """Histograms of gradient directions over overlapping cells, weighted by the gradient's magnitude.

    With (g_y, g_x) from central differences, a pixel votes √(g_y² + g_x²) for its direction
    atan2(g_y, g_x), shared linearly between the two nearest of 8 directions 45° apart. Votes are summed over
    cells of 4 × 4 pixels that start at every second pixel of the image with a margin of one pixel of paper,
    and the histogram of a cell is divided by the square root of its squared norm plus 1.

    Parameters
    ----------
    images : array of shape (n_samples, 8, 8)

    Returns
    -------
    array of shape (n_samples, 128)
    """
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1)))
    g_y, g_x = np.gradient(padded, axis=(1, 2))
    direction = np.arctan2(g_y, g_x) * (_ORIENTATIONS / (2 * np.pi))
    offset = (direction[..., None] - np.arange(_ORIENTATIONS)) % _ORIENTATIONS
    share = np.maximum(0, 1 - np.minimum(offset, _ORIENTATIONS - offset))
    votes = np.hypot(g_y, g_x)[..., None] * share
    cells = np.lib.stride_tricks.sliding_window_view(votes, (_CELL, _CELL), axis=(1, 2))
    histograms = cells[:, ::_CELL_STEP, ::_CELL_STEP].sum(axis=(-2, -1))
    histograms /= np.sqrt((histograms**2).sum(axis=-1, keepdims=True) + 1)
    return histograms.reshape(len(images), -1)


def zernike(images: FloatArray) -> FloatArray:
    """Magnitudes of the Zernike moments of order 1 to 8 on the disk around the image.

    A_nm = (n + 1)/π · Σ f(ρ, θ) R_nm(ρ) exp(−imθ) ΔA, with ρ = 1 at the corners of the image and the radial
    polynomial R_nm(ρ) = Σ_s (−1)^s (n−s)! / (s! ((n+m)/2 − s)! ((n−m)/2 − s)!) ρ^(n−2s). |A_nm| does not
    change when the image turns about its centre. Order 0 is the ink, which other views have.

    Parameters
    ----------
    images : array of shape (n_samples, 8, 8)

    Returns
    -------
    array of shape (n_samples, 24)
    """
    centred = (np.arange(_SIDE) - (_SIDE - 1) / 2) / (_SIDE / 2 * np.sqrt(2))
    z = (centred[None, :] + 1j * centred[:, None]).ravel()
    pixel_area = 2 / _SIDE**2
    basis = np.stack(
        [
            (n + 1) / np.pi * _radial(n, m, np.abs(z)) * np.exp(-1j * m * np.angle(z)) * pixel_area
            for n in range(1, _ZERNIKE_ORDER + 1)
            for m in range(n % 2, n + 1, 2)
        ],
        axis=1,
    )
    return np.abs(images.reshape(len(images), -1) @ basis)


def _radial(n: int, m: int, rho: FloatArray) -> FloatArray:
    """Radial Zernike polynomial R_nm(ρ)."""
    total = np.zeros_like(rho)
    for s in range((n - m) // 2 + 1):
        divisor = factorial(s) * factorial((n + m) // 2 - s) * factorial((n - m) // 2 - s)
        total += (-1) ** s * factorial(n - s) / divisor * rho ** (n - 2 * s)
    return total


def morphology(images: FloatArray) -> FloatArray:
    """Coarse measures of shape: ink, pieces and holes, perimeter, extent, centroid and second moments.

    - ink: Σ f
    - area: number of ink pixels
    - components: connected pieces of ink (pixels touch by side or corner)
    - holes: connected pieces of paper (pixels touch by side) without the one around the digit; the Euler
      number is components − holes
    - perimeter: sides between an ink pixel and a paper pixel
    - height and width: number of rows and of columns that hold ink pixels
    - centroid: ȳ = Σ y f / Σ f, and x̄
    - second moments: Σ (y−ȳ)² f / Σ f, the same for x, and Σ (y−ȳ)(x−x̄) f / Σ f
    - eccentricity: √(1 − λ₂/λ₁), λ₁ ≥ λ₂ the eigenvalues of the matrix of second moments

    Parameters
    ----------
    images : array of shape (n_samples, 8, 8)

    Returns
    -------
    array of shape (n_samples, 13)
    """
    ink = np.pad(images >= _INK, ((0, 0), (1, 1), (1, 1)))
    by_side = ndimage.generate_binary_structure(2, 1)
    by_corner = ndimage.generate_binary_structure(2, 2)
    perimeter = sum(np.count_nonzero(np.diff(ink, axis=axis), axis=(1, 2)) for axis in (1, 2))
    return np.column_stack(
        [
            images.sum(axis=(1, 2)),
            ink.sum(axis=(1, 2)),
            _count_pieces(ink, by_corner),
            _count_pieces(~ink, by_side) - 1,
            perimeter,
            ink.any(axis=2).sum(axis=1),
            ink.any(axis=1).sum(axis=1),
            _moments(images),
        ]
    )


def _count_pieces(masks: npt.NDArray[np.bool_], structure: npt.NDArray[np.bool_]) -> npt.NDArray[np.intp]:
    """Count the connected pieces of every mask in one labelling; layers of the stack do not touch."""
    between_layers = np.zeros_like(structure)
    labels, n_pieces = ndimage.label(masks, np.stack([between_layers, structure, between_layers]))
    layer_of_piece = np.empty(n_pieces + 1, dtype=np.intp)
    layer_of_piece[labels] = np.arange(len(masks))[:, None, None]
    return np.bincount(layer_of_piece[1:], minlength=len(masks))


def _moments(images: FloatArray) -> FloatArray:
    """Centroid (y, x), second central moments (yy, xx, yx) and eccentricity of the grey values."""
    weight = images / images.sum(axis=(1, 2), keepdims=True)
    position = np.arange(_SIDE)
    y = (weight * position[:, None]).sum(axis=(1, 2))
    x = (weight * position).sum(axis=(1, 2))
    dy = position[:, None] - y[:, None, None]
    dx = position - x[:, None, None]
    yy, xx, yx = ((weight * product).sum(axis=(1, 2)) for product in (dy * dy, dx * dx, dy * dx))
    mean, spread = (yy + xx) / 2, np.hypot((yy - xx) / 2, yx)  # eigenvalues are mean ± spread
    eccentricity = np.sqrt(2 * spread / (mean + spread))
    return np.column_stack([y, x, yy, xx, yx, eccentricity])


_VIEWS = (pixels, fourier, profiles, gradients, zernike, morphology)


def load_digits_views() -> Bunch:
    """Load 1797 real handwritten digits in six views, without a network.

    The images are those of `sklearn.datasets.load_digits`; each view is a different description of the
    same image. The rows are in the order of scikit-learn, not sorted by class.

    Returns
    -------
    Bunch
        ``views`` : list of float arrays of shape (1797, n_features), one per view;
        ``view_names`` : their names, pixels, fourier, profiles, gradients, zernike and morphology;
        ``target`` : integer array of shape (1797,), the digit;
        ``target_names`` : list of str, ``"0"`` to ``"9"``;
        ``images`` : array of shape (1797, 8, 8), grey values from 0 to 16;
        ``DESCR`` : origin of the digits and description of each view.

    Examples
    --------
    >>> from lmssc.datasets import load_digits_views
    >>> digits = load_digits_views()
    >>> for name, view in zip(digits.view_names, digits.views):
    ...     print(name, view.shape)
    pixels (1797, 61)
    fourier (1797, 34)
    profiles (1797, 46)
    gradients (1797, 128)
    zernike (1797, 24)
    morphology (1797, 13)
    """
    digits = load_digits()
    views = [view(digits.images) for view in _VIEWS]
    return Bunch(
        views=views,
        view_names=[view.__name__ for view in _VIEWS],
        target=digits.target,
        target_names=[str(name) for name in digits.target_names],
        images=digits.images,
        DESCR=_DESCR.format(views=_describe(views)),
    )


def _describe(views: list[FloatArray]) -> str:
    """One line per view: its name, its number of features, and the first line of its docstring."""
    return "\n".join(
        f"- {view.__name__} ({X.shape[1]}): {(view.__doc__ or '').splitlines()[0]}"
        for view, X in zip(_VIEWS, views, strict=True)
    )
