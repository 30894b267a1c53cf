"""The files that ``lmssc demo --files`` writes: the digits as someone might have them, for ``lmssc classify``."""

import csv
import gzip
import io
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
from numpy.typing import NDArray

from lmssc.datasets import load_digits_views
from lmssc.demo import Task
from lmssc.files.outputs import staged_folder

# Share of the samples that the last view lacks.
LACKING = 0.05


def write_files(task: Task, out: Path, seed: int) -> str:
    """Write the views of the digits in several formats, each in another order of rows, and the few labels.

    Parameters
    ----------
    task : Task
        The digits, most of their labels hidden.
    out : Path
        The folder; new or empty.
    seed : int
        Decides the order of the rows, and which samples the last view lacks.

    Returns
    -------
    str
        What to type next.
    """
    names = load_digits_views().view_names
    ids = np.array([f"digit-{row:04d}" for row in task.rows])
    random = np.random.default_rng(seed)
    with staged_folder(out, force=False) as stage:
        (stage / "views").mkdir()
        for name, view in zip(names, task.views, strict=True):
            order = random.permutation(len(ids))
            if name == names[-1]:
                order = order[round(LACKING * len(ids)) :]
            _write_view(stage / "views", name, ids[order], view[order])
        given = ~task.hidden
        _write_table(stage / "labels.csv", ["id", "label"], zip(ids[given], task.y[given].tolist(), strict=True))
        _write_table(stage / "truth.csv", ["id", "label"], zip(ids, task.target.tolist(), strict=True))
    folder = shlex.quote(str(out))
    result = shlex.quote(str(out.with_name(f"{out.name}-result")))
    return f"lmssc classify {folder}/views/* --labels {folder}/labels.csv --out {result}"


def _write_view(folder: Path, name: str, ids: NDArray, view: NDArray) -> None:
    """Each view in a format of its own, all of which a plain installation reads."""
    columns = [f"{name}_{number}" for number in range(1, view.shape[1] + 1)]
    rows = ([key, *(f"{value:.7g}" for value in row)] for key, row in zip(ids, view.tolist(), strict=True))
    if name == "fourier":
        _write_table(folder / f"{name}.tsv.gz", ["id", *columns], rows, delimiter="\t")
    elif name == "profiles":
        arrays: dict[str, Any] = {"id": ids, name: view}
        np.savez(folder / f"{name}.npz", **arrays)
    elif name == "gradients":
        scipy.io.savemat(folder / f"{name}.mat", {"id": ids.astype(object), name: view}, do_compression=True)
    else:
        _write_table(folder / f"{name}.csv", ["id", *columns], rows)


def _write_table(path: Path, header: list[str], rows: Iterable[Iterable[Any]], delimiter: str = ",") -> None:
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    content = text.getvalue().encode()
    path.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)
