"""The demo: its task is what it says, and its sentence and figure say what was measured."""

import pytest
import torch

from tstar.lab import demo
from tstar.lab.demo import Demo


class Advice:
    leave = False

    def __str__(self):
        return "the advice in words"

    def to_dict(self):
        return {}


def measured(gain):
    """60 of 100 samples right without the advice, ``gain`` more with it, on three seeds."""
    right = {"default": [[1.0] * 60 + [0.0] * 40] * 3}
    right["advised"] = [[1.0] * (60 + gain) + [0.0] * (40 - gain)] * 3
    return Demo(Advice(), {way: [[10.0, 20.0]] * 3 for way in demo.WAYS}, right)


def test_the_task_is_seeded_hard_and_honest():
    data, again = demo.hard_digits(), demo.hard_digits.__wrapped__()
    assert data.checksum() == again.checksum()
    assert len(data.x_train) == demo.TRAIN_IMAGES
    assert len(data.x_train) + len(data.x_test) == 1797
    from tstar.lab.data import load

    clean = load("digits").subset(train=demo.TRAIN_IMAGES)
    wrong = (data.y_train != clean.y_train).double().mean().item()
    assert wrong == pytest.approx(demo.WRONG, abs=0.07)
    assert torch.equal(data.y_test[: len(clean.y_test)], clean.y_test)  # the test labels are true


def test_no_training_image_is_tested_on():
    from tstar.lab.data import load

    everything = load("digits")
    trained = {x.tobytes() for x in everything.subset(train=demo.TRAIN_IMAGES).x_train.numpy()}
    held_out = sum(x.tobytes() not in trained for x in everything.x_train.numpy())
    assert len(demo.hard_digits().x_test) == held_out + len(everything.x_test)


def test_a_run_is_a_function_of_way_and_seed(monkeypatch):
    monkeypatch.setattr(demo, "STEPS", 30)
    threads = torch.get_num_threads()
    try:
        curve, right = demo.train_one("advised", 0)
        assert (curve, right) == demo.train_one("advised", 0)
        assert curve[-1] == pytest.approx(100 * sum(right) / len(right))
    finally:
        torch.set_num_threads(threads)


def test_the_sentence_tells_a_gain_from_chance(monkeypatch):
    assert "+20.0 points over 3 seeds, more than chance explains" in measured(20).sentence
    assert "+1.0 points over 3 seeds, no more than chance explains" in measured(1).sentence
    monkeypatch.setattr(Advice, "leave", True)
    assert "leave this model as it is" in measured(0).sentence


def test_the_figure_is_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    demo.draw(measured(5), tmp_path / "demo.png")
    assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")
