"""Finding the head by what the model does."""

import copy
import random

import numpy as np
import pytest
import torch
from torch import nn

import tstar
from tests.surgery.networks import small_convnet
from tstar import TemperedHead, TstarError


class Wordy(nn.Module):
    """A recurrent text model with a dict output and data-dependent control flow: not traceable."""

    def __init__(self):
        super().__init__()
        self.words, self.rnn, self.out = (
            nn.Embedding(50, 8),
            nn.GRU(8, 16, batch_first=True),
            nn.Linear(16, 4),
        )

    def forward(self, ids):
        states, _ = self.rnn(self.words(ids))
        if states.sum() > 1e9:
            raise RuntimeError
        return {"logits": self.out(states[:, -1]), "states": states}


class Cosine(nn.Linear):
    def forward(self, x):
        return nn.functional.linear(
            nn.functional.normalize(x), nn.functional.normalize(self.weight)
        )


class MyLinear(nn.Linear):
    def forward(self, x):
        return x @ self.weight.T + self.bias


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.out = nn.Embedding(20, 8), nn.Linear(8, 20)
        self.out.weight = self.words.weight

    def forward(self, ids):
        return self.out(self.words(ids).mean(1))


@pytest.mark.parametrize(
    ("model", "example", "path", "M", "K"),
    [
        (small_convnet(), torch.randn(2, 3, 16, 16), "6", 8, 5),
        (
            nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4), nn.LogSoftmax(1)),
            torch.randn(2, 6),
            "2",
            8,
            4,
        ),
        (nn.Linear(6, 4), torch.randn(2, 6), "", 6, 4),
        (
            nn.Sequential(
                nn.Conv2d(3, 8, 3),
                nn.Conv2d(8, 4, 1),
                nn.ReLU(),
                nn.AdaptiveAvgPool2d(1),
                nn.Flatten(),
            ),
            torch.randn(2, 3, 8, 8),
            "1",
            8,
            4,
        ),
        (Wordy(), torch.zeros(2, 5, dtype=torch.long), "out", 16, 4),
        (nn.Sequential(nn.Linear(6, 8), nn.ReLU(), MyLinear(8, 4)), torch.randn(2, 6), "2", 8, 4),
    ],
)
def test_the_head_is_found_with_and_without_an_example(model, example, path, M, K):
    for given in (example, None):
        head = tstar.find_head(model, given)
        assert (head.path, head.num_features, head.num_classes) == (path, M, K)
        assert head.layer is model.get_submodule(path)


def test_examples_may_be_tuples_and_dicts():
    model = Wordy()
    ids = torch.zeros(2, 5, dtype=torch.long)
    assert (
        tstar.find_head(model, (ids,))
        == tstar.find_head(model, {"ids": ids})
        == tstar.find_head(model, ids)
    )


def test_a_layer_off_the_path_to_the_logits_is_not_chosen():
    """The last layer that runs, and the last one registered, are both decoys."""

    class Decoy(nn.Module):
        def __init__(self):
            super().__init__()
            self.true_head, self.projector = nn.Linear(6, 4), nn.Linear(6, 9)

        def forward(self, x):
            logits = self.true_head(x)
            self.embedding = self.projector(x)
            return logits

    assert tstar.find_head(Decoy(), torch.randn(2, 6)).path == "true_head"
    assert tstar.find_head(Decoy()).path == "true_head"


def test_probing_leaves_no_trace():
    model = small_convnet().train()
    model[1].eval()  # a mode that a plain model.train() afterwards would lose
    before = copy.deepcopy(model.state_dict())
    modes = [m.training for m in model.modules()]
    hooks = [len(m._forward_hooks) for m in model.modules()]
    states = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].copy()  # noqa: NPY002
    for example in (None, torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))):
        tstar.find_head(model, example)
    tstar.temper(model, 3.0, head="all")
    assert modes == [m.training for m in model.modules()]
    assert hooks == [len(m._forward_hooks) for m in model.modules()]
    assert all(torch.equal(before[k], v) for k, v in model.state_dict().items())
    assert all(p.grad is None for p in model.parameters())
    assert torch.equal(states[0], torch.get_rng_state())
    assert states[1] == random.getstate()
    assert (states[2] == np.random.get_state()[1]).all()  # noqa: NPY002


def test_auxiliary_classifiers_are_seen_by_all():
    class Aux(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.fc, self.aux = nn.Linear(6, 8), nn.Linear(8, 4), nn.Linear(8, 4)

        def forward(self, x):
            h = self.body(x).relu()
            return (self.fc(h), self.aux(h)) if self.training else self.fc(h)

    assert isinstance(tstar.temper(Aux(), 2.0).aux, nn.Linear)
    assert isinstance(tstar.temper(Aux(), 2.0, head="all").aux, TemperedHead)


class Frozen(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(6, 8), nn.Linear(8, 4))
        self[1].requires_grad_(False)


class MultiLabel(nn.Sequential):
    class config:
        problem_type = "multi_label_classification"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nn.ReLU(), "no parameters"),
        (lambda: 3, "must be a torch.nn.Module"),
        (lambda: nn.Sequential(nn.Linear(6, 1)), "single logit"),
        (lambda: MultiLabel(nn.Linear(6, 3)), "multi-label"),
        (Frozen, "requires_grad=False"),
        (Tied, "shares it with 'words'"),
        (lambda: nn.Sequential(nn.Linear(6, 8), Cosine(8, 4)), "cosine"),
        (
            lambda: nn.Sequential(nn.Linear(6, 8), nn.Softplus(), nn.BatchNorm1d(8)),
            "must end in a linear layer",
        ),
    ],
)
def test_models_that_cannot_be_tempered(make, message):
    with pytest.raises(TstarError, match=message):
        tstar.temper(make(), 2.0)


def test_logits_with_a_second_source_are_refused():
    class Residual(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc, self.table = nn.Linear(6, 4), nn.Parameter(torch.randn(6, 4))

        def forward(self, x):
            return self.fc(x) + x @ self.table

    with pytest.raises(TstarError, match="besides 'fc' they depend on"):
        tstar.find_head(Residual(), torch.randn(2, 6))


def test_a_bad_example_input():
    with pytest.raises(TstarError, match="must run on example_input, but it raised RuntimeError"):
        tstar.find_head(small_convnet(), torch.randn(2, 7, 16, 16))
    with pytest.raises(TstarError, match="must be on the model's device"):
        tstar.find_head(small_convnet(), torch.randn(2, 3, 16, 16, device="meta"))
    with pytest.raises(TstarError, match="must be on the model's device"):
        tstar.find_head(small_convnet().to("meta"), torch.randn(2, 3, 16, 16))


def test_a_model_that_takes_no_standard_input_asks_for_one():
    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(6, 4)

        def forward(self, x, mask, key):
            if mask.any() and key == 3:
                return self.fc(x)
            raise ValueError

    with pytest.raises(TstarError, match="pass example_input"):
        tstar.find_head(Odd())
    assert tstar.find_head(Odd(), (torch.randn(2, 6), torch.ones(1), 3)).path == "fc"
    assert isinstance(tstar.temper(Odd(), 2.0, head="fc").fc, TemperedHead)


def test_an_unknown_path_names_the_candidates():
    with pytest.raises(TstarError, match="the last candidates are '6'"):
        tstar.temper(small_convnet(), 2.0, head="classifier")


def test_a_quantized_head_is_refused():
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quantized = torch.ao.quantization.quantize_dynamic(
            nn.Sequential(nn.Linear(6, 8), nn.Linear(8, 4))
        )
    with pytest.raises(TstarError, match="quantiz"):
        tstar.temper(quantized, 2.0, head="1")
