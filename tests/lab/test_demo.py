"""The demo: its task is what it says, and its sentence and figure say what was measured."""

import pytest
import torch

from tests.lab.sweep.small import InlineEngine
from tstar.lab import demo
from tstar.lab.data import load
from tstar.lab.demo import Demo
from tstar.lab.sweep.store import Store
from tstar.recipes import find_row
from tstar.training import Training


class Advice:
    leave, norm, temperature, lr = False, "batch", 5.0, 0.09
    training = Training(lr=0.03)

    def __str__(self):
        return "the advice in words"

    def to_dict(self):
        return {}


def measured(gain):
    """60 % right without the advice, ``gain`` points more with it, on three seeds."""
    spread = (-1.0, 0.0, 1.0)
    curves = {"default": [[10.0, 60.0]] * 3, "advised": [[10.0, 60.0 + gain + d] for d in spread]}
    return Demo(Advice(), curves)


def test_the_task_is_seeded_hard_and_honest():
    data, again = demo.hard_digits(), demo.hard_digits.__wrapped__()
    assert data.checksum() == again.checksum()
    assert len(data.x_train) == demo.TRAIN_IMAGES
    assert len(data.x_train) + len(data.x_test) == 1797
    clean = load("digits").subset(train=demo.TRAIN_IMAGES)
    wrong = (data.y_train != clean.y_train).double().mean().item()
    assert wrong == pytest.approx(demo.WRONG, abs=0.07)
    assert torch.equal(data.y_test[: len(clean.y_test)], clean.y_test)  # the test labels are true


def test_no_training_image_is_tested_on():
    everything = load("digits")
    trained = {x.tobytes() for x in everything.subset(train=demo.TRAIN_IMAGES).x_train.numpy()}
    held_out = sum(x.tobytes() not in trained for x in everything.x_train.numpy())
    assert len(demo.hard_digits().x_test) == held_out + len(everything.x_test)


def test_what_is_trained_is_what_was_advised(tmp_path, monkeypatch):
    """Both ways from the same table: a comparison's runs, and the advice that is printed."""
    monkeypatch.setattr(demo, "STEPS", 30)
    monkeypatch.setattr("tstar.lab.sweep.run.make_engine", lambda *_: InlineEngine())
    rows, put = [], Store.put
    monkeypatch.setattr(Store, "put", lambda *a, **k: rows.append(a) or put(*a, **k))
    found = demo.run(seeds=1)
    advised = next(values for _, spec, _, values in rows if spec.method == "advised")
    assert advised["temperature"] == pytest.approx(found.advice.temperature, rel=1e-6)
    assert advised["extra"]["lr_factor"] == pytest.approx(
        found.advice.lr / found.advice.training.lr
    )
    assert found.curves["advised"][0] == pytest.approx(
        [100 * share for share in advised["curves"]["test_accuracy"]]
    )
    row = find_row(found.advice.case)
    assert found.advice.norm == row.norm
    assert found.advice.lr == pytest.approx(row.rate * found.advice.case.usual_lr)


def test_the_sentence_has_both_ways_and_the_spread_of_the_gain(monkeypatch):
    said = "Plain, at lr 0.03, 60.0 % are right; as advised (BatchNorm, T = 5, lr 0.09) 80.0 %"
    assert measured(20).sentence == f"{said}: +20.0 points over 3 seeds (+19.0 to +21.0)."
    monkeypatch.setattr(Advice, "leave", True)
    assert "leave this model as it is" in measured(0).sentence


def test_the_figure_is_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    demo.draw(measured(5), tmp_path / "demo.png")
    assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")
