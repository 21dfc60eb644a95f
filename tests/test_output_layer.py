"""The output layer is found by a run that leaves no trace."""

import copy
import random
import warnings
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
import torch
from torch import nn

import tstar
from tests.networks import Wordy, small_convnet
from tstar import TstarError
from tstar import output_layer as layers
from tstar.head import TemperedHead


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


def test_auxiliary_classifiers_are_tempered_if_named():
    class Aux(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.fc, self.aux = nn.Linear(6, 8), nn.Linear(8, 4), nn.Linear(8, 4)

        def forward(self, x):
            h = self.body(x).relu()
            return (self.fc(h), self.aux(h)) if self.training else self.fc(h)

    assert isinstance(tstar.temper(Aux(), 2.0).aux, nn.Linear)
    assert isinstance(tstar.temper(Aux(), 2.0, head=["fc", "aux"]).aux, TemperedHead)


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
        (lambda: nn.Sequential(nn.Linear(6, 1)), "two classes"),
        (lambda: MultiLabel(nn.Linear(6, 3)), "multi-label"),
        (Frozen, "requires_grad=False"),
        (Tied, "shares one with 'words'"),
        (lambda: nn.Sequential(nn.Linear(6, 8), Cosine(8, 4)), "cosine"),
        (
            lambda: nn.Sequential(nn.Linear(6, 8), nn.Softplus(), nn.BatchNorm1d(8)),
            "must come from a linear layer",
        ),
    ],
)
def test_models_that_cannot_be_tempered(make, message):
    with pytest.raises(TstarError, match=message):
        tstar.temper(make(), 2.0)


@pytest.mark.parametrize(
    "name", ["DistributedDataParallel", "DataParallel", "FullyShardedDataParallel", "_FabricModule"]
)
def test_a_wrapper_is_opened(name):
    wrapper, model = type(name, (nn.Module,), {})(), small_convnet()
    wrapper.module = model
    assert layers.unwrap(wrapper) is model
    assert layers.unwrap(torch.compile(model)) is model


def test_the_heads_of_a_tempered_model_are_the_layers_inside():
    model = tstar.temper(small_convnet(), 2.0)
    head = tstar.find_head(model)
    assert (head.path, head.layer, head.num_features) == ("6.layer", model[6].layer, 8)
    alone = TemperedHead(nn.Linear(6, 4), 2.0)
    assert tstar.find_head(alone).path == "layer"
    for named, path in ((model, "6"), (alone, "")):  # as before tempering
        assert layers.resolve_head(named, path) == tstar.find_head(named)
    kept = nn.ModuleDict({"original_module": alone, "default": TemperedHead(nn.Linear(6, 4), 3.0)})
    assert tstar.find_head(kept).path == "default.layer"  # PEFT keeps an idle copy
    assert str(tstar.find_head(alone)) == "'layer': Linear, M = 6, K = 4"
    assert str(tstar.find_head(nn.Linear(6, 4))).startswith("the model itself: Linear")


class Twins(nn.Module):
    """Two heads whose mean is the output."""

    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(6, 4), nn.Linear(6, 4)

    def forward(self, x):
        return (self.one(x) + self.two(x)) / 2


def test_two_heads_are_named():
    model = Twins()
    with pytest.raises(
        TstarError, match=r"Found 2 output layers \('one', 'two'\); pass head='one'"
    ):
        tstar.find_head(model)
    assert [h.path for h in layers.resolve_heads(model, "all", None)] == ["one", "two"]
    assert [h.path for h in layers.resolve_heads(model, ["two"], None)] == ["two"]
    assert layers.resolve_heads(model, "two", None)[0].layer is model.two
    record = layers.resolve_head(model, "one")
    assert layers.resolve_head(model, record) == record
    assert layers.resolve_head(torch.compile(model), "one").layer is model.one
    with pytest.raises(TstarError, match=r"must be a torch\.nn\.Module, got int"):
        layers.unwrap(3)


def test_a_head_inside_an_adapter_is_refused():
    model = nn.Sequential(nn.Linear(6, 8), nn.Module())
    model[1].base_layer = nn.Linear(8, 4)
    with pytest.raises(TstarError, match=r"an adapter \('1\.base_layer' is part of it"):
        layers.resolve_head(model, "1.base_layer")
    layers.check_head(model, layers.resolve_head(model, "0"))


def test_a_model_that_never_runs_says_why():
    class Never(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(6, 4)

        def forward(self, x):
            if x.sum() > 0:  # cannot be traced
                raise ValueError("never")
            raise ValueError("ever")

    with pytest.raises(TstarError, match=r"must run on a standard input.*example_input"):
        tstar.find_head(Never())
    with pytest.raises(TstarError, match=r"must run on example_input; .*It raised: ValueError: "):
        tstar.find_head(Never(), torch.ones(2, 6))


def test_what_a_model_takes_of_a_batch():
    assert layers.inputs_of([1, 2]) == layers.inputs_of([1]) == layers.inputs_of([1, 2, 3]) == 1
    assert layers.inputs_of((1, 2, 3)) == (1, 2, 3)
    assert layers.inputs_of({"a": 1}) == {"a": 1}
    assert layers.inputs_of([]) == []
    nested = layers.inputs_of([[1, 2], 3])
    assert layers.call(lambda pair: pair, nested) == [1, 2]
    assert layers.inputs_of(nested) == nested


@pytest.mark.parametrize(
    ("name", "config", "shapes"),
    [
        ("input_ids", {"eos_token_id": 7}, [(8,), (8,)]),
        ("pixel_values", {}, [(3, 224, 224)]),
        ("pixel_values", {"image_size": (16, 24), "num_channels": 1}, [(1, 16, 24)]),
        (
            "pixel_values",
            {"vision_config": SimpleNamespace(num_patches=4, patch_size=2, num_channels=3)},
            [(16, 12), (3, 224, 224)],
        ),
        ("input_values", {}, [(16000,), (1024, 128), (128, 3000)]),
        (
            "input_features",
            {"num_mel_bins": 20, "max_length": 64, "max_source_positions": 15},
            [(16000,), (64, 20), (20, 30)],
        ),
    ],
)
def test_standard_inputs_of_transformers_follow_their_config(name, config, shapes):
    model = nn.Linear(6, 4)
    model.main_input_name, model.config = name, SimpleNamespace(**config)
    given = [one for one in layers.standard_inputs(model) if isinstance(one, dict)]
    assert [tuple(one[name].shape) for one in given] == [(n, *s) for n in (2, 1) for s in shapes]
    if name == "input_ids":
        assert all((one[name][:, -1] == 7).all() for one in given)  # the end of the sequence
        assert given[1]["bbox"].shape == (2, 8, 4)


@pytest.mark.parametrize(
    ("layer", "shapes"),
    [
        (nn.Conv1d(3, 4, 3), [(3, 128), (3, 1024), (3, 16000)]),
        (nn.Conv3d(1, 4, 3), [(1, 16, 112, 112)]),
        (nn.Linear(6, 4), [(6,), (8, 6)]),
        (nn.LSTM(5, 4), [(16, 5)]),
        (nn.Embedding(9, 4), [(8,)]),
        (nn.LayerNorm(5), []),
    ],
)
def test_standard_inputs_fit_the_first_layer_that_tells(layer, shapes):
    for model in (layer, nn.Sequential(nn.LayerNorm(5), layer)):
        assert [tuple(one.shape) for one in layers.standard_inputs(model)] == [
            (2, *s) for s in shapes
        ]


def test_examples_may_be_tuples_and_dicts():
    model = Wordy()
    ids = torch.zeros(2, 5, dtype=torch.long)
    assert (
        tstar.find_head(model, (ids,))
        == tstar.find_head(model, {"ids": ids})
        == tstar.find_head(model, ids)
    )


class Flat(nn.Module):
    """PyTorch's MNIST example in small: it takes images of one size."""

    runs: ClassVar = []  # the devices, of all copies

    def __init__(self, size, looks=False):
        super().__init__()
        self.conv, self.fc, self.looks = (
            nn.Conv2d(1, 2, 3),
            nn.Linear(2 * (size - 2) ** 2, 10),
            looks,
        )

    def forward(self, x):
        self.runs.append(x.device.type)
        z = self.fc(self.conv(x).relu().flatten(1))
        return z.log_softmax(1) if not self.looks or z.sum() < 1e9 else z


@pytest.mark.parametrize("looks", [False, True])
@pytest.mark.parametrize("size", [8, 28, 32, 48, 160])
def test_a_network_of_one_size_needs_no_example(size, looks):
    assert tstar.find_head(Flat(size, looks)).num_features == 2 * (size - 2) ** 2


def test_what_fails_without_numbers_and_with_them_is_not_tried_again():
    Flat.runs.clear()
    with pytest.raises(TstarError, match="example_input"):
        tstar.find_head(Flat(77))
    assert (Flat.runs.count("cpu"), len(set(Flat.runs))) == (1, 2)


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


def test_logits_with_a_second_source_are_refused():
    class Residual(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc, self.table = nn.Linear(6, 4), nn.Parameter(torch.randn(6, 4))

        def forward(self, x):
            return self.fc(x) + x @ self.table

    with pytest.raises(TstarError, match="they come from 'fc', "):
        tstar.find_head(Residual(), torch.randn(2, 6))


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_an_example_on_another_device_is_moved_to_the_copy(device):
    model, x = small_convnet(), torch.randn(2, 3, 16, 16)
    assert tstar.find_head(model.to(device), x.to("meta")).path == "6"
    assert tstar.find_head(model.to(device), x).path == "6"


class Returns(nn.Module):
    """A linear layer whose output is returned in some way."""

    def __init__(self, wrap):
        super().__init__()
        self.fc, self.wrap = nn.Linear(6, 4), wrap

    def forward(self, x):
        return self.wrap(self.fc(x))


@pytest.mark.parametrize(
    "wrap",
    [
        lambda z: {"scores": z},  # one tensor needs no name
        lambda z: {"loss": z.sum(), "scores": z},  # a loss has no axis
        lambda z: {"logits": z, "hidden": z.detach()},
        lambda z: (z.sum(), [z]),
    ],
)
def test_logits_are_found_in_what_a_model_returns(wrap):
    assert tstar.find_head(Returns(wrap), torch.randn(2, 6)).path == "fc"


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.kind, self.size = nn.Linear(6, 4), nn.Linear(6, 1)

    def forward(self, x):
        return self.kind(x), self.size(x)


def test_a_head_that_would_be_refused_is_not_proposed():
    with pytest.raises(TstarError, match=r"pass head='kind' to name"):
        tstar.find_head(TwoHeads())
    assert isinstance(tstar.temper(TwoHeads(), 2.0, head="kind").size, nn.Linear)
    with pytest.raises(TstarError, match="got one output"):
        tstar.temper(TwoHeads(), 2.0, head=["kind", "size"])


def test_a_long_chain_of_branches_or_softmaxes_is_walked_once():
    def normalize(z):
        for _ in range(60):  # each subtraction doubles the paths back to the layer
            z = z - z.amax(-1, keepdim=True)
        return z.softmax(-1)

    def refine(z):
        for _ in range(60):  # from each softmax it is asked anew whether logits lead to it
            z = z - z.softmax(-1)
        return z

    for chain in (normalize, refine):
        assert tstar.find_head(Returns(chain), torch.randn(2, 6)).ends == ("softmax",)


def test_hooks_of_the_user_do_not_run_on_the_copy():
    model, seen = small_convnet(), []
    for module in model:
        module.register_forward_hook(lambda *given: seen.append(given))
        module.register_forward_pre_hook(lambda *given: seen.append(given))
    model[-1].register_full_backward_hook(lambda *given: seen.append(given))
    assert tstar.find_head(model, torch.randn(2, 3, 16, 16)).path == "6"
    assert not seen
    model(torch.randn(2, 3, 16, 16))
    assert len(seen) == 2 * len(model)


def test_state_of_the_whole_process_is_never_set(monkeypatch):
    """Another thread may draw, or change the filters of warnings, while a model is read."""

    def forbidden(*given, **named):
        raise AssertionError("the process's own")

    for owner, name in (
        *((torch, n) for n in ("set_rng_state", "manual_seed")),
        *((random, n) for n in ("setstate", "seed")),
        *((np.random, n) for n in ("set_state", "seed")),
        *((warnings, n) for n in ("catch_warnings", "simplefilter", "filterwarnings")),
    ):
        monkeypatch.setattr(owner, name, forbidden)
    model = Returns(lambda z: z.softmax(-1) * (z.sum() < 1e9).item())  # not on the meta device
    assert tstar.find_head(model).ends == ("softmax",)
    data = [(torch.randn(6), i % 2) for i in range(20)]
    assert tstar.csg(data).num_classes == 2
    tempered = tstar.temper(model, 2.0, loss="nll_loss", norm=None)
    tstar.recommend(tempered, data, loss="nll_loss")
    tstar.fold(tempered.eval(), inplace=True)


def test_an_example_counts_only_if_the_model_takes_it():
    model, fits = nn.Linear(6, 4), torch.randn(2, 6)
    assert layers.accepted(model, fits) is fits
    assert layers.accepted(model, torch.randn(2, 7)) is None
    assert layers.accepted(model, None) is None


class Served(nn.Softmax):
    def forward(self, z):
        return z if self.training else super().forward(z)


@pytest.mark.parametrize(("end", "ends"), [(nn.Softmax(-1), ("softmax",)), (Served(-1), ())])
def test_a_softmax_of_eval_mode_alone_does_not_count(end, ends):
    assert tstar.find_head(Returns(end), torch.randn(2, 6)).ends == ends


def test_a_model_without_logits_is_refused():
    with pytest.raises(TstarError, match="must return logits, got str"):
        tstar.find_head(Returns(lambda z: "nothing"), torch.randn(2, 6))
