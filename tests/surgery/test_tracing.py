"""The output layer, found without running the model."""

import threading

import torch
from torch import nn

from tests.surgery.networks import Wordy, small_convnet
from tstar.surgery.tracing import trace


class Two(nn.Module):
    def __init__(self, ends):
        super().__init__()
        self.body, self.a, self.b = nn.Linear(4, 6), nn.Linear(6, 3), nn.Linear(6, 3)
        self.ends = ends

    def forward(self, x):
        h = self.body(x).relu()
        return self.ends(self.a(h), self.b(h))


def test_the_last_layer_is_found_and_what_is_passed_is_named():
    seen = trace(small_convnet())
    assert (seen.paths, seen.blocked) == (("6",), ())
    model = nn.Sequential(nn.Linear(4, 3), nn.Softmax(1))
    assert trace(model).passed == ("softmax",)


def test_every_layer_that_the_logits_come_from_is_found():
    assert set(trace(Two(lambda a, b: a + 2 * b)).paths) == {"a", "b"}
    assert trace(Two(lambda a, b: {"logits": b, "other": a})).paths == ("b",)


def test_what_lies_between_and_is_not_known_blocks():
    seen = trace(nn.Sequential(nn.Linear(4, 3), nn.Bilinear(3, 3, 2))[:1].append(nn.LayerNorm(3)))
    assert seen.paths == ()
    assert seen.blocked == ("LayerNorm",)


def test_what_only_a_run_can_tell_is_left_to_it():
    assert trace(Wordy()) is None  # its flow depends on the data
    assert trace(Two(lambda a, b: (a, b))) is None


def test_the_model_stays_as_it_is():
    model = small_convnet().train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    trace(model)
    assert model.training
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


def test_other_threads_run_their_models_while_one_is_traced():
    met, stop, failed = threading.Event(), threading.Event(), []
    other = nn.Sequential(nn.Linear(4, 3), nn.ReLU())

    class Slow(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 3)

        def forward(self, x):
            met.wait(60)
            return self.layer(x)

    def run():
        while not stop.is_set():
            try:
                other(torch.zeros(2, 4))
            except Exception as error:
                failed.append(error)
            met.set()

    call, thread = nn.Module.__call__, threading.Thread(target=run)
    thread.start()
    found: list[object] = []
    tracers = [threading.Thread(target=lambda: found.append(trace(Slow()).paths)) for _ in range(4)]
    for tracer in tracers:
        tracer.start()
    for tracer in tracers:
        tracer.join()
    stop.set()
    thread.join()
    assert found == [("layer",)] * 4
    assert not failed
    assert nn.Module.__call__ is call
