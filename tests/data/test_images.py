"""Image files that do not fit into memory: decoded on the fly, the same numbers as in memory."""

import multiprocessing
from pathlib import Path

import numpy as np
import pytest
import torch

Image = pytest.importorskip("PIL.Image")

from torch import nn  # noqa: E402

from tstar import TstarError, csg, methods  # noqa: E402
from tstar.data import DataSet, join, load  # noqa: E402
from tstar.data.images import MEMORY, Images, fit_in_memory, streamed  # noqa: E402
from tstar.data.limits import LOADERS  # noqa: E402
from tstar.data.task import as_task  # noqa: E402
from tstar.models import build  # noqa: E402
from tstar.training import Config, train  # noqa: E402
from tstar.training.running import run  # noqa: E402


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """96 images of three classes, told by their red, in sizes that differ."""
    random = np.random.default_rng(0)
    for part, count in (("train", 24), ("test", 8)):
        for label, name in enumerate("abc"):
            place = tmp_path / "toy" / part / name
            place.mkdir(parents=True)
            for sample in range(count):
                pixels = random.integers(0, 256, (8 + sample % 3, 9, 3), dtype=np.uint8)
                pixels[..., 0] = 80 * label + pixels[..., 0] // 8
                Image.fromarray(pixels).save(place / f"{sample}.png")
    return tmp_path / "toy"


@pytest.fixture
def both(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[DataSet, DataSet]:
    held = load(folder, size=8)
    monkeypatch.setenv("TSTAR_MEMORY_MB", "0")  # as the documentation has it
    return held, load(folder, size=8)


def test_size_chooses(folder: Path, both: tuple[DataSet, DataSet]) -> None:
    held, files = both
    assert streamed(held.x_train) is None
    assert isinstance(files.x_train, Images)
    assert isinstance(files.x_test, Images)
    assert (held.x_train.shape, held.x_train.dtype) == (files.x_train.shape, files.x_train.dtype)
    assert repr(held) == repr(files)


def test_the_limit_is_what_both_parts_need(
    both: tuple[DataSet, DataSet], monkeypatch: pytest.MonkeyPatch
) -> None:
    images = streamed(both[1].x_train)
    assert images is not None
    many = -(-(1 << 20) // images.numel())
    monkeypatch.setenv("TSTAR_MEMORY_MB", "1")
    assert fit_in_memory(*[images] * (many - 1))
    assert not fit_in_memory(*[images] * (many + 1))


@pytest.mark.parametrize("loaders", [0, 2])
def test_the_same_batches(
    both: tuple[DataSet, DataSet], monkeypatch: pytest.MonkeyPatch, loaders: int
) -> None:
    monkeypatch.setenv(LOADERS, str(loaders))
    held, files = both
    images = streamed(files.x_train)
    assert images is not None
    rows = torch.randperm(72, generator=torch.Generator().manual_seed(3)).split(32)
    state = torch.get_rng_state()
    read = list(images.batches(rows))
    assert torch.equal(torch.get_rng_state(), state)
    assert [len(batch) for batch in read] == [32, 32, 8]
    for batch, index in zip(read, rows, strict=True):
        assert torch.equal(batch, held.x_train[index])
    assert torch.equal(files.x_train[3], held.x_train[3])
    assert torch.equal(files.x_train[-5:], held.x_train[-5:])


def test_the_same_training_to_the_last_bit(both: tuple[DataSet, DataSet]) -> None:
    config = Config(epochs=2, batch_size=16, device="cpu")
    results = []
    for data in both:
        model = build("resnet10", num_classes=3, num_features=8, in_channels=3, seed=0)
        results.append((train(model, data, config, seed=1), model.state_dict()))
    (one, weights), (other, others) = results
    assert one.curves == other.curves
    assert (one.test_accuracy, one.nll) == (other.test_accuracy, other.nll)
    for name, value in weights.items():
        assert torch.equal(value, others[name]), name


@pytest.mark.parametrize("name", ["temperature-scaling", "meta-kd"])
def test_methods_that_use_validation_data_read_them_in_batches(
    both: tuple[DataSet, DataSet], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def make() -> nn.Module:
        return build("resnet10", num_classes=3, num_features=8, in_channels=3, seed=0)

    most = 0
    original = Images.__getitem__

    def watched(self: Images, index: object) -> torch.Tensor:
        nonlocal most
        read = original(self, index)
        most = max(most, len(read))
        return read

    monkeypatch.setenv(LOADERS, "0")
    monkeypatch.setattr(Images, "__getitem__", watched)
    monkeypatch.setattr("tstar.methods.common._VALUES", 16 * 3 * 8 * 8)
    monkeypatch.setattr("tstar.data.augment._TOGETHER", 16)
    config = Config(epochs=2, batch_size=16, device="cpu", val_fraction=0.5)
    done = [
        run(methods.get(name), make, data, config, num_classes=3, seed=1, teacher=make).result
        for data in both
    ]
    assert (done[0].curves, done[0].nll, done[0].extra) == (
        done[1].curves,
        done[1].nll,
        done[1].extra,
    )
    assert 0 < most <= 16


def test_the_same_data(both: tuple[DataSet, DataSet]) -> None:
    held, files = both
    assert held.checksum() == files.checksum()
    assert float(csg(held, seed=0)) == float(csg(files, seed=0))
    for name, change in {
        "subset": lambda data: data.subset(train=30, test=9, seed=2),
        "regroup": lambda data: data.regroup([[2], [0]], ["c", "a"], "two"),
    }.items():
        some, same = change(files), change(held)
        assert streamed(some.x_train) is not None, name
        assert some.checksum() == same.checksum(), name
    assert torch.equal(as_task(files).x_train.sort(0)[0], as_task(held).x_train.sort(0)[0])


def test_joined_sets_are_all_in_memory_or_none(both: tuple[DataSet, DataSet]) -> None:
    held, files = both
    other = files.regroup([[0], [1]], ["a", "b"], "other")
    joined = join([files, other])
    assert streamed(joined.x_train) is not None
    assert torch.equal(joined.x_train[-4:], other.x_train[-4:])
    with pytest.raises(TstarError, match=f"{MEMORY}=0"):
        join([held, other])


def test_a_damaged_image_is_named(folder: Path, both: tuple[DataSet, DataSet]) -> None:
    images = streamed(both[1].x_train)
    assert images is not None
    (folder / "train" / "b" / "3.png").write_bytes(b"no image")
    with pytest.raises(TstarError, match=r"b/3\.png must be a readable image") as caught:
        list(images.batches([torch.arange(72)]))
    assert "Traceback" not in str(caught.value)


def test_images_of_several_sizes_need_a_size(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MEMORY, "0")
    files = load(folder)
    with pytest.raises(TstarError, match="pass size="):
        files.checksum()


def _in_a_daemon(images: Images, link: object) -> None:
    link.send(len(next(iter(images.batches([torch.arange(4)])))))  # type: ignore[attr-defined]


def test_a_process_without_children_decodes_by_itself(both: tuple[DataSet, DataSet]) -> None:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(
        target=_in_a_daemon, args=(streamed(both[1].x_train), theirs), daemon=True
    )
    process.start()
    assert ours.poll(120)
    assert ours.recv() == 4
    process.join()
