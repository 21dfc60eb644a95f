"""The data sets that have a name: what each is, where it must lie, and who reads it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tstar.data import fashion, official, vision
from tstar.data.dataset import DataSet
from tstar.data.digits import read_digits
from tstar.errors import TstarError

Reader = Callable[[Path, "int | None", bool], DataSet]


@dataclass(frozen=True)
class Entry:
    """One data set: its reader, the path below the root that must exist, and where to get it."""

    name: str
    num_classes: int
    pixels: str
    test: str
    reader: Reader
    folder: str = ""
    source: str = ""
    downloads: bool = True

    def base(self, root: Path) -> Path | None:
        """The folder to read from, ``root`` or ``root/NAME``; ``None`` if the data are in neither."""
        if self.name == "fashion-mnist":
            return root if fashion.find(root) else None
        return next((b for b in (root, root / self.name) if (b / self.folder).exists()), None)

    def present(self, root: Path) -> bool:
        """Whether the data are below ``root`` (they may still turn out to be broken)."""
        return not self.folder or self.base(root) is not None

    def read(self, root: Path, size: int | None, download: bool) -> DataSet:
        """The data set, or one error that says what to put where."""
        base = self.base(root)
        fetch = download and self.downloads
        # Asked first: some loaders create folders before they find out that there is nothing.
        if self.folder and base is None and not fetch:
            raise self.missing(root, "it is not there")
        try:
            return self.reader(base or root, size, fetch)
        except TstarError:
            raise
        except (OSError, RuntimeError, LookupError, ValueError) as error:
            raise self.missing(root, f"{type(error).__name__}: {str(error).strip()}") from error

    def missing(self, root: Path, reason: str) -> TstarError:
        """What to put where."""
        fetch = (
            f"or fetch it with tstar data show {self.name} --download "
            f"(tstar.data.load({self.name!r}, download=True)), "
        )
        return TstarError(
            f"{self.name} must be on disk as {root / self.folder}, but reading it failed ({reason}); "
            f"get it from {self.source} and unpack it there, {fetch if self.downloads else ''}or set root=… or TSTAR_DATA to the "
            "folder that holds it."
        )


def _digits(root: Path, size: int | None, download: bool) -> DataSet:
    return read_digits(size)


_VGG = "https://www.robots.ox.ac.uk/~vgg/data"
_OWN_SPLIT = "one fifth, drawn"
_ENTRIES = (
    Entry("digits", 10, "8", _OWN_SPLIT, _digits),
    Entry("cifar10", 10, "32", "official", vision.READERS["cifar10"], "cifar-10-batches-py",
          "https://www.cs.toronto.edu/~kriz/cifar.html (cifar-10-python.tar.gz)"),
    Entry("cifar100", 100, "32", "official", vision.READERS["cifar100"], "cifar-100-python",
          "https://www.cs.toronto.edu/~kriz/cifar.html (cifar-100-python.tar.gz)"),
    Entry("stl10", 10, "96", "official", vision.READERS["stl10"], "stl10_binary",
          "https://cs.stanford.edu/~acoates/stl10 (stl10_binary.tar.gz)"),
    Entry("gtsrb", 43, "vary", "official", vision.READERS["gtsrb"], "gtsrb/GTSRB",
          "https://benchmark.ini.rub.de (GTSRB-Training_fixed.zip, GTSRB_Final_Test_Images.zip, "
          "and GT-final_test.csv beside GTSRB)"),
    Entry("eurosat", 10, "64", _OWN_SPLIT, vision.READERS["eurosat"], "eurosat/2750",
          "https://github.com/phelber/eurosat (EuroSAT.zip)"),
    Entry("caltech101", 101, "vary", _OWN_SPLIT, vision.READERS["caltech101"],
          "caltech101/101_ObjectCategories",
          "https://data.caltech.edu/records/20086 (101_ObjectCategories and Annotations)"),
    Entry("flowers102", 102, "vary", "official", vision.READERS["flowers102"], "flowers-102",
          f"{_VGG}/flowers/102 (102flowers.tgz, imagelabels.mat, setid.mat)"),
    Entry("oxford-iiit-pet", 37, "vary", "official", vision.READERS["oxford-iiit-pet"],
          "oxford-iiit-pet", f"{_VGG}/pets (images.tar.gz, annotations.tar.gz)"),
    Entry("dtd", 47, "vary", "official, partition 1", vision.READERS["dtd"], "dtd/dtd",
          f"{_VGG}/dtd (dtd-r1.0.1.tar.gz)"),
    Entry("fashion-mnist", 10, "28", "official", fashion.read_fashion, "FashionMNIST/raw",
          "https://github.com/zalandoresearch/fashion-mnist (four idx files) or Debian's package "
          "dataset-fashion-mnist"),
    Entry("tiny-imagenet", 200, "64", "official validation", official.read_tiny_imagenet,
          "tiny-imagenet-200", "https://cs231n.stanford.edu/tiny-imagenet-200.zip", False),
    Entry("cub-200-2011", 200, "vary", "official", official.read_cub, "CUB_200_2011",
          "https://data.caltech.edu/records/65de6-vp158 (CUB_200_2011.tgz)", False),
    Entry("isic-2019", 8, "vary", _OWN_SPLIT, official.read_isic,
          "ISIC_2019_Training_GroundTruth.csv",
          "https://challenge.isic-archive.com/data/#2019 (the ground truth and, beside it, the folder "
          "ISIC_2019_Training_Input)", False),
)  # fmt: skip
CATALOGUE: dict[str, Entry] = {entry.name: entry for entry in _ENTRIES}
