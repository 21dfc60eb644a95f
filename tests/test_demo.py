"""The demo: its task is what it says, and its table and figure say what was measured."""

import pytest
import torch

from tstar import demo
from tstar.demo import Demo, Point

pytest.importorskip("sklearn")


def measured():
    points = {}
    for M, T_star in ((32, 4.4), (96, 6.1)):
        points[M, 1.0, None] = Point(60.0, 1.0, 3)
        for T, mean in ((1.0, 55.0), (2.0, 61.0), (T_star, 70.0), (32.0, 30.0)):
            points[M, T, "batch"] = Point(mean + M / 100, 1.0, 3)
    return Demo(points, {32: 4.4, 96: 6.1}, notices=("short training",))


def test_the_task_is_seeded_hard_and_honest():
    data, again = demo.hard_digits(), demo.hard_digits.__wrapped__()
    assert data.checksum() == again.checksum()
    assert len(data.x_train) == demo.TRAIN_IMAGES
    assert len(data.x_train) + len(data.x_test) == 1797
    from tstar.data import load

    clean = load("digits").subset(train=demo.TRAIN_IMAGES)
    wrong = (data.y_train != clean.y_train).double().mean().item()
    assert wrong == pytest.approx(demo.WRONG, abs=0.07)
    assert torch.equal(data.y_test[: len(clean.y_test)], clean.y_test)  # the test labels are true


def test_no_training_image_is_tested_on():
    from tstar.data import load

    everything = load("digits")
    trained = {x.tobytes() for x in everything.subset(train=demo.TRAIN_IMAGES).x_train.numpy()}
    held_out = sum(x.tobytes() not in trained for x in everything.x_train.numpy())
    assert len(demo.hard_digits().x_test) == held_out + len(everything.x_test)


def test_a_run_is_a_function_of_its_cell(monkeypatch):
    monkeypatch.setattr(demo, "STEPS", 3)
    threads = torch.get_num_threads()
    cell = demo.Cell(16, 4.0, "batch", 0)
    try:
        assert demo.train_one(cell) == demo.train_one(cell)
    finally:
        torch.set_num_threads(threads)


def test_what_the_table_reads():
    result = measured()
    assert result.plain(96).mean == 60.0
    assert result.advised(96).mean == pytest.approx(70.96)
    assert result.best(96) == (6.1, result.advised(96))


def test_the_figure_is_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    demo.draw(measured(), str(tmp_path / "demo.png"))
    assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")
