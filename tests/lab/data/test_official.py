"""Tiny ImageNet, CUB-200-2011 and ISIC 2019 on tiny copies of their official layouts."""

import pytest

from tstar import TstarError
from tstar.lab.data import load


def tiny_imagenet(root, paint):
    folder = root / "tiny-imagenet-200"
    ids = [
        "n02",
        "n01",
        "n03",
    ]  # in no order, as in the archive: n01 < n02 < n03 get labels 0, 1, 2
    for label, wnid in enumerate(sorted(ids)):
        for sample in range(3):
            paint.write(folder / "train" / wnid / "images" / f"{wnid}_{sample}.JPEG", label, sample)
        (folder / "train" / wnid / f"{wnid}_boxes.txt").write_text(
            f"{wnid}_0.JPEG\t0\t0\t9\t9\n", encoding="utf-8"
        )
    lines = []
    for number, (label, wnid) in enumerate([(2, "n03"), (0, "n01"), (1, "n02"), (0, "n01")]):
        paint.write(folder / "val" / "images" / f"val_{number}.JPEG", label, number)
        lines.append(f"val_{number}.JPEG\t{wnid}\t0\t0\t9\t9\n")
    (folder / "val" / "val_annotations.txt").write_text("".join(lines), encoding="utf-8")
    (folder / "wnids.txt").write_text("\n".join(ids) + "\n", encoding="utf-8")
    (folder / "words.txt").write_text(
        "n01\tgoldfish, Carassius\nn02\tcrane\nn03\tcrane\nn99\tcat\n", encoding="utf-8"
    )


def test_tiny_imagenet(tmp_path, paint):
    tiny_imagenet(tmp_path, paint)
    data = load("tiny-imagenet", root=tmp_path)
    assert data.classes == ("goldfish", "crane (n02)", "crane (n03)")
    assert data.x_train.shape == (9, 3, 12, 12)
    assert paint.labels(data.x_train) == data.y_train.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert paint.labels(data.x_test) == data.y_test.tolist() == [2, 0, 1, 0]
    assert paint.samples(data.x_test) == [0, 1, 2, 3]


def cub(root, paint):
    folder = root / "CUB_200_2011"
    folder.mkdir(parents=True)
    classes = ["001.Albatross", "002.Auklet"]
    images, labels, parts = [], [], []
    for key, (label, sample, train) in enumerate(
        [(0, 0, 1), (0, 1, 0), (1, 0, 0), (1, 1, 1), (1, 2, 1)], start=1
    ):
        file = f"{classes[label]}/bird_{sample}.jpg"
        paint.write(folder / "images" / file, label, sample, (10 + key, 9))
        images.append(f"{key} {file}")
        labels.append(f"{key} {label + 1}")
        parts.append(f"{key} {train}")
    for name, lines in (
        ("classes", [f"{i + 1} {c}" for i, c in enumerate(classes)]),
        ("images", images),
        ("image_class_labels", labels),
        ("train_test_split", parts),
    ):
        (folder / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_cub(tmp_path, paint):
    cub(tmp_path, paint)
    data = load("cub-200-2011", root=tmp_path, size=8)
    assert data.classes == ("001.Albatross", "002.Auklet")
    assert paint.labels(data.x_train) == data.y_train.tolist() == [0, 1, 1]
    assert paint.samples(data.x_train) == [0, 1, 2]
    assert paint.labels(data.x_test) == data.y_test.tolist() == [0, 1]
    with pytest.raises(TstarError, match="must have one size"):
        load("cub-200-2011", root=tmp_path)


def test_cub_whose_lists_disagree(tmp_path, paint):
    cub(tmp_path, paint)
    (tmp_path / "CUB_200_2011" / "train_test_split.txt").write_text("1 1\n", encoding="utf-8")
    with pytest.raises(TstarError, match="KeyError"):
        load("cub-200-2011", root=tmp_path, size=8)


def isic(root, paint, rows=None):
    lines = ["image,MEL,NV,BCC,AK,BKL,DF,VASC,SCC,UNK"]
    for number in range(80):
        label, sample = number % 8, number // 8
        paint.write(
            root / "ISIC_2019_Training_Input" / f"ISIC_{number:07d}.jpg", label, sample, (9, 7)
        )
        marks = ["1.0" if i == label else "0.0" for i in range(9)]
        lines.append(f"ISIC_{number:07d},{','.join(marks)}")
    (root / "ISIC_2019_Training_GroundTruth.csv").write_text(
        "\n".join(lines + (rows or [])) + "\n", encoding="utf-8"
    )


@pytest.mark.parametrize("folder", ["", "isic-2019"])
def test_isic(tmp_path, paint, folder):
    isic(tmp_path / folder, paint)
    data = load("isic-2019", root=tmp_path, size=6)
    assert data.classes == ("MEL", "NV", "BCC", "AK", "BKL", "DF", "VASC", "SCC")
    assert data.y_train.bincount().tolist() == [8] * 8
    assert data.y_test.bincount().tolist() == [2] * 8
    for part in ("train", "test"):
        x, y = getattr(data, f"x_{part}"), getattr(data, f"y_{part}")
        assert paint.labels(x) == y.tolist()
    pairs = [
        *zip(paint.labels(data.x_train), paint.samples(data.x_train), strict=True),
        *zip(paint.labels(data.x_test), paint.samples(data.x_test), strict=True),
    ]
    assert sorted(pairs) == [(label, sample) for label in range(8) for sample in range(10)]


def test_isic_with_a_line_that_marks_nothing(tmp_path, paint):
    isic(tmp_path, paint, ["ISIC_9," + ",".join(["0.0"] * 9)])
    with pytest.raises(TstarError, match="must have one diagnosis"):
        load("isic-2019", root=tmp_path, size=6)
