"""``backbone=c``: the gradient into the features times c·T, and not one bit of a logit changed."""

import copy
import tempfile

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

import tstar
from tstar import TemperedHead, TstarError
from tstar.surgery.checkpoints import fold_state_dict
from tstar.surgery.head import scale_gradient

C, T = 0.4, 6.0
Y = torch.arange(16) % 4


def network(dtype=torch.float32):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4)).to(dtype)


def pair(norm="batch", dtype=torch.float64):
    """The same tempered network, as it is and with its backbone heard c·T times as loudly."""
    model = network(dtype)
    return tstar.temper(model, T, norm=norm), tstar.temper(model, T, norm=norm, backbone=C)


def batch(dtype=torch.float64, rows=16):
    return torch.randn(rows, 6, generator=torch.Generator().manual_seed(1), dtype=dtype)


def gradients(model, loss):
    model.zero_grad()
    loss(model).backward()
    return {name: p.grad.clone() for name, p in model.named_parameters()}


def test_the_features_keep_every_bit():
    odd = torch.tensor([-0.0, 0.0, float("inf"), -float("inf"), float("nan"), 1e-45, 1.5])
    same = scale_gradient(odd.requires_grad_(), torch.tensor(3.0))
    assert torch.equal(odd.view(torch.int32), same.view(torch.int32))


def test_the_gradient_is_that_of_the_textbook_form_to_the_last_bit():
    x, factor = torch.randn(50, 8, requires_grad=True), torch.tensor(2.7)
    (mine,) = torch.autograd.grad(scale_gradient(x, factor).square().sum(), x)
    fixed = x.detach()
    (theirs,) = torch.autograd.grad((fixed + factor * (x - fixed)).square().sum(), x)
    assert torch.equal(mine, theirs)


@pytest.mark.parametrize("norm", ["batch", "layer", None])
@pytest.mark.parametrize(
    "loss",
    [
        lambda z: F.cross_entropy(z, Y),
        lambda z: F.cross_entropy(z, Y, label_smoothing=0.1, weight=torch.arange(1.0, 5).to(z)),
        lambda z: F.multi_margin_loss(z, Y),
        lambda z: F.kl_div(z.log_softmax(1), torch.full_like(z, 0.25), reduction="batchmean"),
    ],
    ids=["cross-entropy", "smoothed and weighted", "margin", "distillation"],
)
def test_backbone_gradients_are_times_c_t_and_the_heads_are_not(norm, loss):
    as_is, heard = (gradients(m, lambda m: loss(m(batch()))) for m in pair(norm))
    for name, gradient in as_is.items():
        factor = C * T if name.startswith("0.") else 1.0
        torch.testing.assert_close(heard[name], factor * gradient)


@pytest.mark.parametrize("training", [True, False])
def test_logits_and_fold_are_untouched_to_the_last_bit(training):
    as_is, heard = pair(dtype=torch.float32)
    x = batch(torch.float32)
    for model in (as_is, heard):
        model.train()(x)
        model.train(training)
    assert torch.equal(as_is(x), heard(x))
    folded = [tstar.fold(m.eval()).state_dict() for m in (as_is, heard)]
    assert all(torch.equal(folded[0][key], folded[1][key]) for key in folded[0])


def test_in_eval_mode_the_gradient_is_the_functions_own():
    as_is, heard = (m.eval() for m in pair())
    x = batch().requires_grad_()
    grads = [torch.autograd.grad(m(x).square().sum(), x)[0] for m in (as_is, heard)]
    assert torch.equal(*grads)


def test_it_follows_a_schedule_and_is_shown():
    _, heard = pair()
    before = gradients(heard, lambda m: m(batch()).square().sum())
    heard[2].set_temperature(2 * T)
    after = gradients(heard, lambda m: (2 * m(batch())).square().sum())
    # The logits are halved and doubled again; (W/2T)ᵀ·c·2T: the backbone hears the loss twice as loudly as as it is.
    torch.testing.assert_close(after["0.weight"], 2 * before["0.weight"])
    torch.testing.assert_close(after["2.layer.weight"], before["2.layer.weight"])
    assert "temperature=12, backbone=0.4 (gradient into the backbone × 4.8)" in str(heard)


def test_checkpoints_with_and_without_it_load_either_way():
    as_is, heard = pair()
    assert "2.backbone" in heard.state_dict()
    assert "2.backbone" not in as_is.state_dict()
    old, new = copy.deepcopy(as_is.state_dict()), copy.deepcopy(heard.state_dict())
    heard.load_state_dict(old)
    assert heard[2].backbone.item() == C
    as_is.load_state_dict(new)
    assert as_is[2].backbone.item() == C
    new["2.norm.num_batches_tracked"] += 1  # as after training
    assert fold_state_dict(new).keys() == network().state_dict().keys()


def test_a_head_that_was_pickled_before_it_existed_still_runs():
    as_is, _ = pair()
    head = as_is[2]
    state = head.__getstate__() if hasattr(head, "__getstate__") else dict(vars(head))
    state = {**state, "_buffers": {k: v for k, v in head._buffers.items() if k != "backbone"}}
    old = TemperedHead.__new__(TemperedHead)
    old.__setstate__(state)
    features = torch.randn(8, 8, dtype=torch.float64)
    assert torch.equal(old.eval()(features), head.eval()(features))


@pytest.mark.filterwarnings("default")
def test_compiled_whole_without_a_graph_break():
    torch._dynamo.reset()
    _, heard = pair()
    compiled = torch.compile(copy.deepcopy(heard), fullgraph=True, backend="aot_eager")
    expected = gradients(heard, lambda m: F.cross_entropy(m(batch()), Y))
    F.cross_entropy(compiled(batch()), Y).backward()
    for name, parameter in compiled._orig_mod.named_parameters():
        torch.testing.assert_close(parameter.grad, expected[name])
    torch._dynamo.reset()


def test_autocast_and_grad_scaler():
    as_is, heard = pair(dtype=torch.float32)
    grads = []
    for model in (as_is, heard):
        scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
        with torch.autocast("cpu", torch.bfloat16):
            loss = F.cross_entropy(model(batch(torch.float32)), Y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        grads.append(model[0].weight.grad)
    torch.testing.assert_close(grads[1], C * T * grads[0], rtol=0.02, atol=1e-4)


def test_accumulation_and_activation_checkpointing():
    _, heard = pair(norm=None)
    x = batch()
    whole = gradients(heard, lambda m: F.cross_entropy(m(x), Y))
    parts = gradients(
        heard,
        lambda m: (F.cross_entropy(m(x[:8]), Y[:8]) + F.cross_entropy(m(x[8:]), Y[8:])) / 2,
    )
    again = gradients(heard, lambda m: F.cross_entropy(checkpoint(m, x, use_reentrant=False), Y))
    for name, gradient in whole.items():
        torch.testing.assert_close(parts[name], gradient)
        torch.testing.assert_close(again[name], gradient)


def test_global_clipping_sees_the_louder_backbone():
    """Clipping acts on what the optimizer is given: the head's share of the clipped norm becomes smaller."""
    share = []
    for model in pair():
        gradients(model, lambda m: F.cross_entropy(m(batch()), Y))
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
        share.append((model[2].layer.weight.grad.norm() / 1e-3, norm))
    assert share[1][1] > share[0][1]
    assert share[1][0] < share[0][0]


def test_gradients_of_each_sample_and_of_the_gradient():
    """``torch.func``'s vmap over samples, and a second derivative, as a gradient penalty takes."""
    _, heard = pair(norm=None)
    state = dict(heard.named_parameters())

    def loss(parameters, x, y):
        logits = torch.func.functional_call(heard, parameters, (x[None],))
        return F.cross_entropy(logits, y[None])

    each = torch.func.vmap(torch.func.grad(loss), (None, 0, 0))(state, batch(), Y)
    whole = gradients(heard, lambda m: F.cross_entropy(m(batch()), Y))
    torch.testing.assert_close(each["0.weight"].mean(0), whole["0.weight"])
    x = batch().requires_grad_()
    (first,) = torch.autograd.grad(F.cross_entropy(heard(x), Y), x, create_graph=True)
    first.square().sum().backward()
    assert x.grad.abs().sum() > 0


def test_matched_means_as_loud_as_in_the_plain_model():
    model, x = network(torch.float64), batch()
    with torch.no_grad():
        model[0].weight *= 0.2  # small features: BN would make the backbone loud
    heard = tstar.temper(model, T, backbone="matched", example_input=x)
    assert tstar.speeds(heard, x, ("sgd", 0.1)).gradient == pytest.approx(1.0)
    assert tstar.speeds(tstar.temper(model, T), x, ("sgd", 0.1)).gradient != pytest.approx(
        1, abs=0.1
    )
    assert tstar.temper(model, T, norm=None, backbone="matched")[2].backbone.item() == 1.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"backbone": "matched"}, "example_input=batch"),
        ({"backbone": "loud"}, "'matched' or None"),
        ({"backbone": 0.0}, "backbone must be positive"),
        ({"backbone": float("nan")}, "backbone must be finite"),
        (
            {"backbone": "matched", "example_input": batch(torch.float32, rows=4)},
            "at least 8 samples",
        ),
    ],
)
def test_what_cannot_be_heard(options, message):
    with pytest.raises(TstarError, match=message):
        tstar.temper(network(), T, **options)


def test_a_zero_head_cannot_be_matched():
    model = network()
    nn.init.zeros_(model[2].weight)
    with pytest.raises(TstarError, match="weight zero"):
        tstar.temper(model, T, backbone="matched", example_input=batch(torch.float32))


def _rank(rank, folder):
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/file", rank=rank, world_size=2)
    _, heard = pair(norm=None)
    model = DistributedDataParallel(heard)
    rows = slice(8 * rank, 8 * rank + 8)
    F.cross_entropy(model(batch()[rows]), Y[rows]).backward()
    torch.save({n: p.grad for n, p in heard.named_parameters()}, f"{folder}/{rank}.pt")
    dist.destroy_process_group()


@pytest.mark.slow
def test_two_processes_get_the_gradients_of_one():
    _, heard = pair(norm=None)
    alone = gradients(heard, lambda m: F.cross_entropy(m(batch()), Y))
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.start_processes(_rank, (folder,), nprocs=2, start_method="spawn")
        for rank in range(2):
            got = torch.load(f"{folder}/{rank}.pt", weights_only=True)
            for name, gradient in alone.items():
                torch.testing.assert_close(got[name], gradient)


def test_the_head_alone():
    head = TemperedHead(nn.Linear(8, 4), 2.0, None, backbone=0.5)
    x = torch.randn(3, 8, requires_grad=True)
    head(x).sum().backward()
    torch.testing.assert_close(x.grad, head.layer.weight.sum(0).expand(3, 8) * 0.5)
