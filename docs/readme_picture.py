"""Draw docs/images/digits.png, the picture of the README (make picture).

Left: the digits of ``lmssc demo``, laid out from the learned graph. Right: mean accuracy on the data sets of
``results/accuracy/fresh.csv``. The numbers in the picture are also stored in the file, where a test reads them.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from measured import mean_accuracies
from numpy.typing import NDArray
from scipy import sparse
from sklearn.manifold import TSNE

from lmssc import LMSSC
from lmssc.cli.digits_demo import make_task
from lmssc.plotting import COLOURS

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "images" / "digits.png"
N_EIGENVECTORS = 20


def layout(graph: sparse.csr_array) -> NDArray[np.floating]:
    """Positions in the plane: t-SNE of the smoothest eigenvectors of the graph's normalised Laplacian."""
    symmetric = sparse.csr_array((graph + graph.T) / 2)
    scale = sparse.diags_array(1 / np.sqrt(symmetric.sum(axis=1)))
    start = np.ones(graph.shape[0])  # eigsh draws a random start otherwise
    values, vectors = sparse.linalg.eigsh(scale @ symmetric @ scale, k=N_EIGENVECTORS, which="LA", v0=start)
    return TSNE(init="pca", random_state=0).fit_transform(vectors * np.clip(values, 0, None))


def draw_map(ax: Any) -> float:
    """The digits, coloured by the label that was found; the accuracy in percent on the held-out labels."""
    task = make_task(rate=0.05, seed=0)
    model = LMSSC().fit(task.views, task.y)
    place = layout(model.graph_)
    wrong = task.held_out & (model.transduction_ != task.target)
    for digit in range(10):
        chosen = task.held_out & (model.transduction_ == digit)
        ax.scatter(*place[chosen].T, s=7, color=COLOURS[digit % len(COLOURS)], linewidths=0)
        middle = np.median(place[task.target == digit], axis=0)
        ax.text(*middle, str(digit), fontsize=17, weight="bold", ha="center", va="center").set_path_effects(
            [withStroke(linewidth=3, foreground="white")]
        )
    ax.scatter(*place[~task.held_out].T, s=26, color="none", edgecolors="black", linewidths=0.9, label="label given")
    ax.scatter(*place[wrong].T, s=16, marker="x", color="black", linewidths=0.8, label="wrong label")
    accuracy = round(100 * float(np.mean(~wrong[task.held_out])), 1)
    ax.set_title(f"{len(task.y):,} digits, {np.sum(~task.held_out)} labels given: {accuracy} % of the rest right")
    ax.legend(loc="lower left", fontsize=8, frameon=False)
    ax.set_axis_off()
    return accuracy


def draw_accuracies(ax: Any, means: dict[str, float]) -> None:
    """A dot for each method, the best on top."""
    names = list(means)[::-1]
    for height, name in enumerate(names):
        colour = "#2a6fb0" if name == "LMSSC" else "#7a8794"
        ax.plot(means[name], height, "o", color=colour, markersize=9)
        ax.text(means[name] + 0.4, height, f"{means[name]:.1f}", va="center", color=colour)
    ax.set_yticks(range(len(names)), names)
    ax.set(xlim=(66, 80), title="Mean accuracy on 22 other data sets (%)")
    ax.grid(axis="y", alpha=0.3)
    ax.spines[["top", "right"]].set_visible(False)


def main() -> None:
    """Draw the picture and store its numbers in it."""
    figure = Figure(figsize=(11, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1.2, 1])
    means = mean_accuracies(ROOT)
    numbers = {"digits": draw_map(left), "fresh": means}
    draw_accuracies(right, means)
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, dpi=110, metadata={"Description": json.dumps(numbers)}, pil_kwargs={"optimize": True})
    print(f"Written: {PICTURE.relative_to(ROOT)}, {PICTURE.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
