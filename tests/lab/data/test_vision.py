"""torchvision's loaders on tiny copies of the layouts that they expect."""

import hashlib
import pickle
from pathlib import Path

import numpy as np
import pytest

datasets = pytest.importorskip("torchvision.datasets")

from tstar import TstarError  # noqa: E402
from tstar.lab.data import load  # noqa: E402


def agrees(data, paint):
    """The colors of all images tell their labels."""
    assert paint.labels(data.x_train) == data.y_train.tolist()
    assert paint.labels(data.x_test) == data.y_test.tolist()


def test_gtsrb(tmp_path, paint):
    base = tmp_path / "gtsrb"
    lines = ["Filename;Width;Height;Roi.X1;Roi.Y1;Roi.X2;Roi.Y2;ClassId"]
    for label in range(3):
        for sample in range(2):
            path = base / "GTSRB" / "Training" / f"{label:05d}" / f"{sample}.ppm"
            paint.write(path, label, sample, (9, 8))
        paint.write(base / "GTSRB" / "Final_Test" / "Images" / f"{label}.ppm", 2 - label, 0, (7, 7))
        lines.append(f"{label}.ppm;7;7;0;0;6;6;{2 - label}")
    (base / "GT-final_test.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    data = load("gtsrb", root=tmp_path, size=8)
    assert data.classes == ("0", "1", "2")
    assert data.y_test.tolist() == [2, 1, 0]
    agrees(data, paint)
    with pytest.raises(TstarError, match="pass size="):
        load("gtsrb", root=tmp_path)


def test_eurosat_gets_a_seeded_fifth(tmp_path, paint):
    for label, name in enumerate(["AnnualCrop", "Forest"]):
        for sample in range(10):
            path = tmp_path / "eurosat" / "2750" / name / f"{name}_{sample}.jpg"
            paint.write(path, label, sample)
    data = load("eurosat", root=tmp_path)
    assert (data.classes, data.num_classes) == (("AnnualCrop", "Forest"), 2)
    assert data.y_test.bincount().tolist() == [2, 2]
    agrees(data, paint)
    seen = sorted(paint.samples(data.x_train) + paint.samples(data.x_test))
    assert seen == sorted([*range(10)] * 2)


def test_caltech101_leaves_the_background_out(tmp_path, paint):
    base = tmp_path / "caltech101"
    for label, name in enumerate(["Faces", "ant", "BACKGROUND_Google"]):
        for sample in range(5):
            path = base / "101_ObjectCategories" / name / f"image_{sample + 1:04d}.jpg"
            paint.write(path, label, sample, (9 + sample, 8))
    (base / "Annotations").mkdir()
    data = load("caltech101", root=tmp_path, size=8)
    assert data.classes == ("Faces", "ant")
    assert data.y_train.bincount().tolist() == [4, 4]
    agrees(data, paint)


def test_pets(tmp_path, paint):
    base = tmp_path / "oxford-iiit-pet"
    (base / "annotations").mkdir(parents=True)
    for part, samples in (("trainval", (1, 2)), ("test", (3,))):
        lines = []
        for label, name in enumerate(["Abyssinian", "great_pyrenees"]):
            for sample in samples:
                paint.write(base / "images" / f"{name}_{sample}.jpg", label, sample)
                lines.append(f"{name}_{sample} {label + 1} 1 1\n")
        (base / "annotations" / f"{part}.txt").write_text("".join(lines), encoding="utf-8")
    data = load("oxford-iiit-pet", root=tmp_path)
    assert data.classes == ("Abyssinian", "Great Pyrenees")
    assert (len(data.x_train), len(data.x_test)) == (4, 2)
    agrees(data, paint)


def test_dtd_joins_its_validation_part_to_training(tmp_path, paint):
    base = tmp_path / "dtd" / "dtd"
    (base / "labels").mkdir(parents=True)
    for sample, part in enumerate(["train", "val", "test"]):
        lines = []
        for label, name in enumerate(["banded", "woven"]):
            paint.write(base / "images" / name / f"{part}.jpg", label, sample, (8 + label, 8))
            lines.append(f"{name}/{part}.jpg\n")
        (base / "labels" / f"{part}1.txt").write_text("".join(lines), encoding="utf-8")
    data = load("dtd", root=tmp_path, size=4)
    assert data.classes == ("banded", "woven")
    assert paint.samples(data.x_train) == [0, 0, 1, 1]
    assert paint.samples(data.x_test) == [2, 2]
    agrees(data, paint)


def cifar10(root, monkeypatch):
    """A tiny CIFAR-10 whose checksums torchvision is told to expect."""
    base = root / "cifar-10-batches-py"
    base.mkdir(parents=True)
    random = np.random.default_rng(0)
    pixels = random.integers(0, 256, (20, 3072), dtype=np.uint8)
    labels = [n % 10 for n in range(20)]
    sums = {}
    for name in ("data_batch_1", "test_batch", "batches.meta"):
        meta = {"label_names": [f"class{i}" for i in range(10)]}
        content = meta if name == "batches.meta" else {"data": pixels, "labels": labels}
        (base / name).write_bytes(pickle.dumps(content))
        sums[name] = hashlib.md5((base / name).read_bytes()).hexdigest()
    monkeypatch.setattr(datasets.CIFAR10, "train_list", [["data_batch_1", sums["data_batch_1"]]])
    monkeypatch.setattr(datasets.CIFAR10, "test_list", [["test_batch", sums["test_batch"]]])
    meta_facts = {"filename": "batches.meta", "key": "label_names", "md5": sums["batches.meta"]}
    monkeypatch.setattr(datasets.CIFAR10, "meta", meta_facts)
    return pixels, labels


def test_cifar10(tmp_path, monkeypatch):
    pixels, labels = cifar10(tmp_path, monkeypatch)
    data = load("CIFAR10", root=tmp_path)
    assert np.array_equal(data.x_train.numpy(), pixels.reshape(-1, 3, 32, 32))
    assert data.y_test.tolist() == labels
    assert data.classes[3] == "class3"
    assert load("cifar10", root=tmp_path, size=16).x_train.shape == (20, 3, 16, 16)


class Payload:
    """Unpickling this creates a file."""

    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return (Path.touch, (self.target,))


def test_a_pickle_with_another_checksum_is_never_opened(tmp_path, monkeypatch):
    cifar10(tmp_path, monkeypatch)
    target = tmp_path / "it was opened"
    content = pickle.dumps(Payload(target))
    pickle.loads(content)
    assert target.exists()  # the payload works
    target.unlink()
    for name in ("data_batch_1", "test_batch", "batches.meta"):
        path = tmp_path / "cifar-10-batches-py" / name
        good = path.read_bytes()
        path.write_bytes(content)
        with pytest.raises(TstarError, match="corrupted"):
            load("cifar10", root=tmp_path)
        assert not target.exists()
        path.write_bytes(good)


def test_stl10(tmp_path, monkeypatch):
    base = tmp_path / "stl10_binary"
    base.mkdir()
    pixels = np.random.default_rng(0).integers(0, 256, (20, 3, 96, 96), dtype=np.uint8)
    labels = (np.arange(20) % 10 + 1).astype(np.uint8)
    sums = {}
    for name in ("train_X.bin", "test_X.bin", "unlabeled_X.bin"):
        # The files are column-major: width before height.
        (base / name).write_bytes(pixels.transpose(0, 1, 3, 2).tobytes())
    for name in ("train_y.bin", "test_y.bin"):
        (base / name).write_bytes(labels.tobytes())
    (base / "class_names.txt").write_text("\n".join(f"c{i}" for i in range(10)), encoding="utf-8")
    for file in base.iterdir():
        sums[file.name] = hashlib.md5(file.read_bytes()).hexdigest()
    train = ["train_X.bin", "train_y.bin", "unlabeled_X.bin"]
    monkeypatch.setattr(datasets.STL10, "train_list", [[n, sums[n]] for n in train])
    test = ["test_X.bin", "test_y.bin"]
    monkeypatch.setattr(datasets.STL10, "test_list", [[n, sums[n]] for n in test])
    data = load("stl10", root=tmp_path)
    assert np.array_equal(data.x_train.numpy(), pixels)
    assert data.y_train.tolist() == [n % 10 for n in range(20)]
    assert data.classes[9] == "c9"
    assert load("stl10", root=tmp_path, size=32).x_test.shape == (20, 3, 32, 32)


def test_a_failed_download_is_one_clear_error(tmp_path, monkeypatch):
    def offline(*_, **__):
        raise RuntimeError("network is unreachable")

    monkeypatch.setattr(datasets.CIFAR100, "download", offline)
    with pytest.raises(TstarError, match=r"get it from https.*network is unreachable"):
        load("cifar100", root=tmp_path, download=True)
