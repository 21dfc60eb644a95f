"""Finding the head by what the model does; putting the tempered one in; taking it out without a trace."""

import copy
import random

import numpy as np
import pytest
import torch
from torch import nn

import tstar
from tstar import TemperedHead, TstarError


def small_convnet(classes=5):
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(inplace=True),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Dropout(0.5),
        nn.Linear(8, classes),
    )


class Twins(nn.Module):
    """Two heads whose mean is the output, as in a distilled transformer."""

    def __init__(self):
        super().__init__()
        self.body, self.one, self.two = nn.Linear(6, 8), nn.Linear(8, 4), nn.Linear(8, 4)

    def forward(self, x):
        h = self.body(x).relu()
        return (self.one(h) + self.two(h)) / 2


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


def train_a_little(model, example, steps=4):
    generator = torch.Generator().manual_seed(3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(steps):
        x = torch.randn(example.shape, generator=generator)
        loss = model.train()(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval()


def test_temper_train_fold_and_load_into_the_untouched_architecture():
    plain = small_convnet()
    example = torch.randn(8, 3, 16, 16)
    tempered = train_a_little(tstar.temper(plain, 7.5), example)
    folded = tstar.fold(tempered)
    torch.testing.assert_close(folded(example), tempered(example), rtol=1e-5, atol=1e-6)
    assert list(folded.state_dict()) == list(plain.state_dict())
    assert [type(m) for m in folded.modules()] == [type(m) for m in plain.modules()]
    untouched = small_convnet().eval()
    untouched.load_state_dict(folded.state_dict())
    assert torch.equal(untouched(example), folded(example))


def test_a_checkpoint_of_the_tempered_model_restores_the_temperature():
    trained = train_a_little(tstar.temper(small_convnet(), 7.5), torch.randn(8, 3, 16, 16))
    again = tstar.temper(small_convnet(), 1.0)
    with pytest.warns(tstar.TstarWarning, match=r"T = 7\.5 takes the place of T = 1 at '6'"):
        again.load_state_dict(trained.state_dict())
    x = torch.randn(2, 3, 16, 16)
    assert torch.equal(again.eval()(x), trained(x))


def test_temper_copies_unless_in_place():
    model = small_convnet()
    tempered = tstar.temper(model, 2.0)
    assert isinstance(model[6], nn.Linear)
    assert isinstance(tempered[6], TemperedHead)
    assert tstar.temper(model, 2.0, inplace=True) is model
    assert isinstance(model[6], TemperedHead)
    model[6].norm.num_batches_tracked.fill_(1)
    assert tstar.fold(model.eval(), inplace=True) is model
    assert isinstance(model[6], nn.Linear)


def test_temper_keeps_hooks_modes_dtype_and_requires_grad():
    model = small_convnet().double().eval()
    calls = []
    model[6].register_forward_hook(lambda *_: calls.append(1))
    model[0].weight.requires_grad_(False)
    tempered = tstar.temper(model, 2.0)
    tempered(torch.randn(2, 3, 8, 8, dtype=torch.float64))
    assert calls  # the layer's own hook runs
    assert tempered[6].norm.weight.dtype == torch.float64
    assert not any(m.training for m in tempered.modules())
    assert not tempered[0].weight.requires_grad
    assert tempered[6].norm.weight.requires_grad


def test_at_one_without_norm_nothing_changes_to_the_last_bit():
    model = small_convnet().eval()
    x = torch.randn(4, 3, 16, 16)
    assert torch.equal(tstar.temper(model, 1, norm=None)(x), model(x))


def test_two_heads():
    model = Twins()
    with pytest.raises(
        TstarError, match=r"Found 2 output layers \('one', 'two'\); pass head='one'"
    ):
        tstar.temper(model, 2.0)
    both = tstar.temper(model, 2.0, head="all")
    assert isinstance(both.one, TemperedHead)
    assert isinstance(both.two, TemperedHead)
    one = tstar.temper(model, 2.0, head="one")
    assert isinstance(one.two, nn.Linear)
    listed = tstar.temper(model, 2.0, head=["one", "two"])
    assert isinstance(listed.two, TemperedHead)
    folded = tstar.fold(train_a_little(both, torch.randn(8, 6)))
    assert list(folded.state_dict()) == list(model.state_dict())


def test_a_record_names_the_head():
    model = small_convnet()
    head = tstar.find_head(model)
    assert isinstance(tstar.temper(model, 2.0, head=head)[6], TemperedHead)


def test_untemper_gives_the_layers_back():
    model = small_convnet()
    again = tstar.untemper(tstar.temper(model, 3.0))
    assert all(
        torch.equal(a, b)
        for a, b in zip(again.state_dict().values(), model.state_dict().values(), strict=True)
    )


def test_a_model_that_is_its_own_head():
    tempered = tstar.temper(nn.Linear(6, 4), 2.0)
    assert isinstance(tempered, TemperedHead)
    with pytest.raises(TstarError, match="inplace=False"):
        tstar.temper(nn.Linear(6, 4), 2.0, inplace=True)


def test_a_shared_head_is_replaced_everywhere():
    class Alias(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(6, 4)
            self.head = self.fc

        def forward(self, x):
            return self.head(x)

    tempered = tstar.temper(Alias(), 2.0)
    assert tempered.fc is tempered.head
    assert isinstance(tempered.head, TemperedHead)


def test_tempering_twice_is_refused():
    with pytest.raises(TstarError, match="set_temperature"):
        tstar.temper(tstar.temper(small_convnet(), 2.0), 2.0)


def test_folding_what_is_not_tempered_is_refused():
    with pytest.raises(TstarError, match=r"call tstar\.temper first"):
        tstar.fold(small_convnet())


def test_wrapped_models():
    model = small_convnet()
    parallel = nn.DataParallel(model)
    with pytest.raises(TstarError, match=r"before it is wrapped, got DataParallel"):
        tstar.temper(parallel, 2.0)
    with pytest.raises(TstarError, match="compiled graph"):
        tstar.temper(torch.compile(model), 2.0)
    assert tstar.find_head(parallel).path == "6"
    tempered = train_a_little(tstar.temper(model, 2.0), torch.randn(4, 3, 8, 8))
    assert type(tstar.fold(torch.compile(tempered))) is nn.Sequential


def test_compiled_whole_without_a_graph_break():
    tempered = tstar.temper(small_convnet(), 3.0).eval()
    compiled = torch.compile(tempered, fullgraph=True, backend="aot_eager")
    x = torch.randn(4, 3, 8, 8)
    torch.testing.assert_close(compiled(x), tempered(x))


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
