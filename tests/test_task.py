"""A model whose task is not one softmax over the classes is refused, by its loss or by its end."""

import functools
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import tstar
from tstar import TstarError
from tstar.head import TemperedHead


class Wrapped(nn.Module):
    """A training module around a model with a configuration, as Lightning users write them."""

    def __init__(self, task):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4))
        self.net.config = SimpleNamespace(problem_type=task)

    def forward(self, x):
        return self.net(x)


@pytest.mark.parametrize(
    ("task", "named"), [("multi_label_classification", "multi-label"), ("regression", "regression")]
)
def test_a_task_without_softmax_is_seen_through_wrappers(task, named):
    with pytest.raises(TstarError, match=named):
        tstar.temper(Wrapped(task), 2.0)
    with pytest.raises(TstarError, match=named):
        tstar.recommend(Wrapped(task), head="net.2")
    for loss in ("cross_entropy", nn.CrossEntropyLoss(), nn.NLLLoss(), F.nll_loss):
        assert tstar.temper(Wrapped(task), 2.0, loss=loss)
    assert tstar.temper(Wrapped("single_label_classification"), 2.0)


@pytest.mark.parametrize("end", [nn.Sigmoid(), nn.Identity()])
def test_a_sigmoid_after_the_logits_is_no_softmax(end):
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4), end)
    if isinstance(end, nn.Identity):
        assert tstar.temper(model, 2.0)
        return
    for example in (None, torch.randn(2, 6)):
        with pytest.raises(TstarError, match="a sigmoid after '2'"):
            tstar.temper(model, 2.0, example_input=example)
    assert tstar.temper(model, 2.0, loss=nn.CrossEntropyLoss())


def _true(z):
    """Symbolic values have no truth."""
    return bool(z.abs().sum() >= 0)


class Ends(nn.Module):
    """``end(model, logits)`` is what it returns."""

    def __init__(self, end):
        super().__init__()
        self.body, self.fc, self.end = nn.Linear(6, 8), nn.Linear(8, 4), end

    def forward(self, x):
        return self.end(self, self.fc(self.body(x).relu()))


@pytest.mark.parametrize(
    "end",
    [
        lambda self, z: z.softmax(-1),
        lambda self, z: F.softmax(z, dim=1),
        lambda self, z: z.softmax(-1) if _true(z) else z,  # cannot be traced
    ],
)
@pytest.mark.parametrize("example", [None, torch.randn(3, 6)], ids=["no example", "example"])
@pytest.mark.parametrize("loss", [None, nn.CrossEntropyLoss(), "cross_entropy", lambda z, y: z])
def test_a_softmax_at_the_end_would_be_one_too_many(end, example, loss):
    for model in (Ends(end), nn.Sequential(nn.Linear(6, 4), nn.Softmax(1))):
        with pytest.raises(
            TstarError, match=r"a softmax after '\w+': .* a second time\. Remove it"
        ):
            tstar.temper(model, 2.0, example_input=example, loss=loss)
        for nll in ("nll_loss", nn.NLLLoss()):  # of the logarithm of what the model returns
            assert tstar.temper(model, 2.0, example_input=example, loss=nll)


@pytest.mark.parametrize(
    "end",
    [
        lambda self, z: z.log_softmax(-1),
        lambda self, z: z if self.training else z.softmax(-1),
        lambda self, z: z if self.training else z.sigmoid(),
        lambda self, z: z if self.training or not _true(z) else z.softmax(-1),
        lambda self, z: (z.softmax(-1), z),
        lambda self, z: (z, z.softmax(-1)),
        lambda self, z: {"probabilities": z.softmax(-1), "logits": z},
    ],
)
@pytest.mark.parametrize("example", [None, torch.randn(3, 6)], ids=["no example", "example"])
def test_a_softmax_for_the_users_of_the_model_or_beside_the_logits_is_none(end, example):
    for model in (Ends(end), Ends(end).eval()):
        assert isinstance(tstar.temper(model, 2.0, example_input=example).fc, TemperedHead)


@pytest.mark.parametrize(
    "loss",
    [nn.BCEWithLogitsLoss(), F.binary_cross_entropy_with_logits, nn.MSELoss(), F.smooth_l1_loss, nn.MSELoss,
     nn.MultiLabelSoftMarginLoss(), nn.HuberLoss(), F.multilabel_margin_loss, nn.GaussianNLLLoss(),
     functools.partial(F.binary_cross_entropy_with_logits, reduction="sum"), nn.TripletMarginLoss(),
     type("BinaryCrossEntropy", (nn.Module,), {})(), type("Mine", (nn.L1Loss,), {})()],
)  # fmt: skip
def test_a_loss_without_a_softmax_is_known_by_what_it_is(loss):
    with pytest.raises(TstarError, match="softmax temperature does not apply"):
        tstar.temper(nn.Linear(6, 14), 2.0, loss=loss)


def sigmoid_focal_loss_of_my_own(z, y):
    return z


@pytest.mark.parametrize(
    "loss",
    [F.cross_entropy, nn.NLLLoss(), nn.CrossEntropyLoss(label_smoothing=0.1), lambda z, y: z, nn.CrossEntropyLoss,
     functools.partial(F.cross_entropy, label_smoothing=0.1), nn.KLDivLoss(), "cross_entropy", "nll_loss",
     sigmoid_focal_loss_of_my_own, type("MSELoss", (), {"__call__": sigmoid_focal_loss_of_my_own})()],
)  # fmt: skip
def test_other_losses_are_taken_at_their_word(loss):
    assert tstar.temper(nn.Linear(6, 14), 2.0, loss=loss)


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        ("cross_entrpy", "Unknown loss 'cross_entrpy'; did you mean 'cross_entropy'"),
        ("mse", "Unknown loss 'mse'"),
        (3, "loss must be a function, a module, or a name, got 3"),
        (torch.zeros(1), "loss must be a function, a module"),
    ],
)
def test_what_is_no_loss_is_an_error(loss, message):
    with pytest.raises(TstarError, match=message):
        tstar.temper(nn.Linear(6, 14), 2.0, loss=loss)
