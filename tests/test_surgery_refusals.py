"""What cannot be tempered as it stands is refused with the way out."""

import pytest
import torch
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
