"""Damaged files and strange ones: one clear error, in little time and memory."""

import itertools
import os
import tracemalloc
import zipfile

import numpy as np
import pytest

from tests.lab.data.forms import measured as csg
from tstar import TstarError
from tstar.lab.data import load
from tstar.samples import MEMORY

Y = np.arange(12) % 3


def stored(folder, **arrays):
    np.savez_compressed(folder / "toy.npz", **arrays)
    return folder / "toy.npz"


def refused(path, match="toy"):
    """By both readers, within 64 MB."""
    for read in (load, csg):
        tracemalloc.start()
        with pytest.raises(TstarError, match=match):
            read(path)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 64 << 20


def test_labels_far_beyond_the_number_of_samples(tmp_path):
    for top in (10**7, 2**63, 2**64 - 1):
        y, x = Y.astype(np.uint64), np.ones((12, 2))
        y[-1] = top
        with pytest.raises(TstarError, match="without gaps"):
            load(stored(tmp_path, x_train=x, y_train=y, x_test=x, y_test=Y))
        with pytest.raises(TstarError, match="is new"):
            load(stored(tmp_path, x_train=x, y_train=Y, x_test=x, y_test=y))


def folder_with(folder):
    image = pytest.importorskip("PIL.Image")
    for name in "ab":
        (folder / "toy" / name).mkdir(parents=True)
        for i in range(6):
            image.new("RGB", (8, 8), (i, 0, 0)).save(folder / "toy" / name / f"{i}.png")
    return folder / "toy"


def test_a_huge_picture_is_refused_unread(tmp_path):
    image = pytest.importorskip("PIL.Image")
    pytest.importorskip("torchvision.datasets")  # whose code takes memory, too
    path = folder_with(tmp_path)
    image.new("1", (14_000, 14_000)).save(path / "a" / "huge.png")
    refused(path, r"huge\.png")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="has no pipes")
def test_a_pipe_named_like_a_picture_does_not_block(tmp_path):
    path = folder_with(tmp_path)
    os.mkfifo(path / "a" / "pipe.png")
    refused(path, r"pipe\.png must be a readable image, but is not a regular file")
    os.mkfifo(tmp_path / "toy.npz")
    refused(tmp_path / "toy.npz", "toy")


@pytest.mark.parametrize(
    "name", ["", " ", 3, None, b"digits", "x" * 5000, "a\0b", "nowhere/x.npz", 2.5]
)
def test_names_that_are_none(name, tmp_path):
    with pytest.raises(TstarError):
        load(name, root=tmp_path)
    with pytest.raises(TstarError):
        csg(name)


def test_every_cut_and_every_flip_of_an_archive(tmp_path):
    """Damage at random places is an error of ours, or gives data; nothing else."""
    x = np.random.default_rng(0).integers(0, 256, (12, 4, 4, 3), dtype=np.uint8)
    path = stored(
        tmp_path, x_train=x, y_train=Y, x_test=x, y_test=Y, classes=np.array(["a", "b", "c"])
    )
    whole = path.read_bytes()
    random = np.random.default_rng(1)
    failed = []
    for trial in range(300):
        damaged = bytearray(whole)
        if trial % 3 == 0:
            damaged = damaged[: random.integers(len(whole))]
        else:
            for _ in range(trial % 5 + 1):
                damaged[random.integers(len(whole))] = random.integers(256)
        path.write_bytes(bytes(damaged))
        for read in (load, lambda path: csg(path, neighbors=2)):
            try:
                read(path)
            except TstarError as error:
                failed.append(str(error))
    assert len(failed) > 200
    assert all("toy" in text or "sample" in text or "class" in text for text in failed)


def test_odd_archives(tmp_path):
    x = np.ones((12, 2))
    encrypted = stored(tmp_path, x=x, y=Y)
    content = bytearray(encrypted.read_bytes())
    at = content.find(b"PK\x01\x02")
    while at >= 0:  # the flag that says: encrypted
        content[at + 8] |= 1
        at = content.find(b"PK\x01\x02", at + 1)
    encrypted.write_bytes(bytes(content))
    refused(encrypted)
    refused(stored(tmp_path, x=np.float64(3), y=Y), "one row per sample")
    refused(stored(tmp_path, x=x, y=np.float64(3)), "one row per sample")
    refused(stored(tmp_path, x=x.astype("M8[s]"), y=Y), "numbers")
    refused(stored(tmp_path, x=x, y=Y[:5]), "12 samples and 5 labels")
    with zipfile.ZipFile(tmp_path / "toy.npz", "w") as archive:
        archive.writestr("x.npy", b"not an array")
        archive.writestr("y.npy", b"nor this")
    refused(tmp_path / "toy.npz")
    np.save(tmp_path / "single.npy", x)
    (tmp_path / "single.npy").rename(tmp_path / "toy.npz")
    refused(tmp_path / "toy.npz")


def test_a_program_that_is_called_an_image_is_not_run(tmp_path, monkeypatch):
    eps = pytest.importorskip("PIL.EpsImagePlugin")
    ran = []
    monkeypatch.setattr(eps, "Ghostscript", lambda *args, **kwargs: ran.append(args))
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "0.png").write_text(
            "%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\n{} loop\n",
            encoding="utf-8",
        )
    with pytest.raises(TstarError, match="cannot identify"):
        load(tmp_path)
    assert not ran


def test_a_size_that_no_memory_holds(monkeypatch):
    images = np.zeros((12, 8, 8, 3), np.uint8)
    for size in (30_000, 10**9, 2**70):
        with pytest.raises(TstarError, match="size"):
            csg(images, Y, size=size)
        with pytest.raises(TstarError, match="size"):
            load("digits", size=size)
    monkeypatch.setenv(MEMORY, "1")
    with pytest.raises(TstarError, match=f"fit into 1 MB.*{MEMORY}"):
        csg([(image, y) for image, y in zip(images, Y, strict=True)], size=200)


def test_a_stream_that_never_ends_is_given_up(monkeypatch):
    monkeypatch.setenv(MEMORY, "1")
    with pytest.raises(TstarError, match="fit into 1 MB"):
        csg(itertools.repeat((np.zeros(1000, np.float32), 0)))
