"""What cannot be tempered as it stands is refused with the way out."""

import functools
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import tstar
from tstar import TstarError, TstarWarning
from tstar.head import TemperedHead


class Two(nn.Module):
    """Returns two tensors; ``give`` says which."""

    def __init__(self, give):
        super().__init__()
        self.body, self.decoder, self.fc = nn.Linear(6, 8), nn.Linear(8, 6), nn.Linear(8, 4)
        self.give = give

    def forward(self, x):
        f = self.body(x).relu()
        z = self.fc(f)
        known = {"features": f, "decoded": self.decoder(f), "logits": z, "loss": z.sum()}
        known |= {"attention": torch.softmax(f @ f.T, -1), "probabilities": z.softmax(-1)}
        return tuple(known[name] for name in self.give)


@pytest.mark.parametrize(
    "give", [("features", "logits"), ("logits", "features"), ("decoded", "logits")]
)
@pytest.mark.parametrize("example", [None, torch.randn(3, 6)], ids=["no example", "example"])
def test_several_tensors_that_could_be_logits_are_an_ambiguity(give, example):
    with pytest.raises(TstarError, match=r"several tensors that could be the logits.*'fc'"):
        tstar.temper(Two(give), 2.0, example_input=example)
    named = tstar.temper(Two(give), 2.0, head="fc")
    assert isinstance(named.fc, TemperedHead)


@pytest.mark.parametrize(
    "give", [("loss", "logits"), ("logits", "attention"), ("logits", "probabilities"), ("logits",)]
)
def test_a_tuple_with_one_candidate_is_none(give):
    assert tstar.find_head(Two(give)).path == "fc"


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


class Held(nn.Module):
    def __init__(self, hold):
        super().__init__()
        self.body, self.fc = nn.Linear(6, 8), nn.Linear(8, 4)
        self.held = hold(self.fc)

    def forward(self, x):
        h = self.body(x).relu()
        held = self.held
        for key in ("one", 0):
            if isinstance(held, dict | list) and (key in held or key == 0):
                held = held[key]
                break
        return held(h)


@pytest.mark.parametrize(
    "hold",
    [lambda fc: [fc], lambda fc: {"one": fc}, lambda fc: fc.forward, lambda fc: functools.partial(fc), lambda fc: lambda h: fc(h)],
    ids=["list", "dict", "bound method", "partial", "closure"],
)  # fmt: skip
@pytest.mark.parametrize("inplace", [True, False])
def test_a_head_that_something_else_holds_is_not_bypassed(hold, inplace):
    model = Held(hold)
    with pytest.raises(TstarError, match=r"past the norm and T|they come from Addmm"):
        tstar.temper(model, 2.0, inplace=inplace, example_input=torch.randn(4, 6))
    assert isinstance(model.fc, nn.Linear)  # as it was


class LazyUntraceable(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.norm, self.fc = nn.LazyLinear(8), nn.LazyBatchNorm1d(), nn.Linear(8, 3)

    def forward(self, x):
        h = self.body(x)
        return self.fc(h if h.sum() > 0 else -h)


@pytest.mark.parametrize(
    "ask",
    [
        lambda model: tstar.temper(model, 2.0),
        tstar.find_head,
        lambda model: tstar.find_head(model, torch.randn(4, 6)),
    ],
    ids=["temper", "find_head", "find_head with an input"],
)
def test_a_lazy_model_is_refused_and_stays_lazy(ask):
    for model in (LazyUntraceable(), nn.Sequential(nn.LazyLinear(8), nn.ReLU(), nn.Linear(8, 3))):
        with pytest.raises(TstarError, match="run one batch"):
            ask(model)
        assert model(torch.randn(4, 7)).shape == (4, 3)


class Ending(nn.Module):
    """A head and another one whose output ends otherwise; ``untraceable`` only a run shows what happens."""

    def __init__(self, end, other=None, *, untraceable=False, runs=True):
        super().__init__()
        self.body, self.fc, self.gate = nn.Linear(6, 8), nn.Linear(8, 3), nn.Linear(8, 3)
        self.end, self.other, self.untraceable, self.runs = end, other, untraceable, runs

    def forward(self, x):
        h = self.body(x)
        if self.untraceable and h.sum() > 1e9:
            h = -h
        if not self.runs:
            raise RuntimeError
        logits = self.end(self.fc(h))
        return logits if self.other is None else self.other(logits, self.gate(h))


@pytest.mark.parametrize("untraceable", [False, True])
@pytest.mark.parametrize("end", [nn.Sigmoid(), nn.Softmax(-1)])
def test_a_head_that_is_named_is_verified_as_a_found_one_is(end, untraceable):
    model = Ending(end, untraceable=untraceable)
    for head in (None, "fc"):
        with pytest.raises(TstarError, match=r"(softmax|sigmoid) after 'fc'"):
            tstar.temper(model, 2.0, head=head)
    loss = "nll_loss" if isinstance(end, nn.Softmax) else "cross_entropy"
    assert tstar.temper(model, 2.0, head="fc", loss=loss)
    with pytest.raises(TstarError, match=r"got 'body', but they come from 'fc'\."):
        tstar.temper(model, 2.0, head="body", loss=loss)
    with pytest.raises(TstarError, match=r"got 'body', but they come from 'fc'\."):
        tstar.recommend(model, head=["fc", "body"], loss=loss)
    assert tstar.temper(model, 2.0, head="gate", loss=loss)  # which the run does not call


@pytest.mark.parametrize("untraceable", [False, True])
@pytest.mark.parametrize(
    "other",
    [
        lambda logits, gate: logits * gate.sigmoid(),
        lambda logits, gate: (gate.sigmoid(), logits),
        lambda logits, gate: {"logits": logits, "probabilities": logits.softmax(-1)},
        lambda logits, gate: {"class": logits, "box": gate.sigmoid()},
    ],
    ids=["gated", "tuple", "probabilities", "dict"],
)
def test_what_follows_another_head_is_not_counted(other, untraceable):
    model = Ending(nn.Identity(), other, untraceable=untraceable)
    assert isinstance(tstar.temper(model, 2.0, head="fc").fc, TemperedHead)


def test_segmentation_models_interpolate_after_the_head():
    segmentation = pytest.importorskip("torchvision").models.segmentation
    model = segmentation.lraspp_mobilenet_v3_large(
        weights=None, weights_backbone=None, num_classes=5
    )
    with pytest.raises(TstarError, match="Found 2 output layers"):
        tstar.find_head(model)
    tempered = tstar.temper(model, 3.0, head="all")
    x = torch.randn(2, 3, 32, 32)
    tempered.train()(x)
    folded = tstar.fold(tempered.eval(), allow_bias=True)
    torch.testing.assert_close(folded(x)["out"], tempered(x)["out"], rtol=1e-4, atol=1e-5)


def test_an_adapter_that_will_not_save_the_head_is_told():
    peft = pytest.importorskip("peft")
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4))
    adapted = peft.get_peft_model(model, peft.LoraConfig(target_modules=["0"], r=2))
    with pytest.raises(TstarError, match="requires_grad=False"):
        tstar.temper(adapted, 2.0, head="base_model.model.2")
    adapted.base_model.model[2].requires_grad_(True)
    with pytest.warns(TstarWarning, match=r"will miss 'base_model\.model\.2'"):
        tstar.temper(adapted, 2.0, head="base_model.model.2")


@pytest.mark.slow
def test_sharded_models_are_refused_in_both_directions(tmp_path):
    """FSDP2 in a group of one process."""
    import torch.distributed as dist
    from torch.distributed.fsdp import fully_shard

    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/file", rank=0, world_size=1)
    try:
        mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (1,))
        model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4))
        with pytest.raises(TstarError, match="wrapped, compiled or sharded"):
            tstar.temper(fully_shard(model, mesh=mesh), 2.0, inplace=True)
        right = fully_shard(
            tstar.temper(nn.Sequential(nn.Linear(6, 8), nn.Linear(8, 4)), 2.0), mesh=mesh
        )
        with pytest.raises(TstarError, match="full_state_dict=True"):
            tstar.fold(right.eval())
    finally:
        dist.destroy_process_group()


def test_fabric_s_wrapper():
    fabric = pytest.importorskip("lightning.fabric").Fabric(accelerator="cpu", devices=1)
    model = fabric.setup(nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4)))
    with pytest.raises(TstarError, match="tempered before it is wrapped"):
        tstar.temper(model, 2.0)


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
