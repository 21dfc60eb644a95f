"""What holds for every method, whatever it does, and how methods are named."""

import pytest
import torch
from torch import nn

from tests.lab.methods import networks as nets
from tests.lab.methods.networks import K, M, Net, X, Z, ce, facts, loss, prepared
from tstar import TstarError
from tstar.lab import methods

TABLE_1 = (
    "default sqrt-m insert-ln label-smoothing relaxed-softmax temperature-check kd meta-kd ctkd"
)
TABLE_1 += " temperature-scaling logit-standardization ours-base ours-csg ours-cn ours-csgcn"


def test_every_row_is_there_under_its_name():
    assert set(TABLE_1.split()) <= set(methods.list())
    for name in methods.list():
        assert methods.get(name).name == name
        assert methods.get(name).needs <= {"csg", "teacher", "validation"}


def test_options_by_keyword_and_in_the_name():
    assert methods.get("kd", tau=2.0) == methods.get("kd:tau=2.0")
    assert methods.get("insert-ln:affine=false") == methods.get("insert-ln", affine=False)
    both = methods.get("temperature-check:lowest=.5:points=3")
    assert (both.options["lowest"], len(both.candidates)) == (0.5, 3)


@pytest.mark.parametrize(
    ("name", "options", "match"),
    [
        ("insert-nl", {}, "insert-ln"),
        ("kd", {"tua": 2}, "tau"),
        ("default", {"T": 2}, "known: none"),
        ("ours-cn", {"variant": "csg"}, "option of method"),
        ("kd", {"tau": -1}, "positive"),
        ("insert-ln:affine", {}, "key=value"),
        ("fixed", {"norm": "bach"}, "batch"),
        ("temperature-check", {"points": 0}, "points"),
        ("label-smoothing", {"epsilon": 1.0}, "label_smoothing < 1"),
        ("adacos-fixed", {}, "K >= 3"),
    ],
)
def test_what_no_training_can_use_is_refused_before_it(name, options, match):
    with pytest.raises(TstarError, match=match):
        methods.get(name, **options).prepare(nn.Linear(3, 2), methods.Setting(3, 2))


@pytest.mark.parametrize("name", nets.ALL)
def test_gradients_of_the_loss_are_those_of_finite_differences(name):
    recipe = prepared(name)
    z = recipe.model(X).detach().double().requires_grad_()
    assert torch.autograd.gradcheck(lambda z: recipe.loss(z, nets.Y, X), (z,))


@pytest.mark.parametrize(
    "name", ["insert-ln", "relaxed-softmax", "adacos-fixed", "learned-temperature"]
)
def test_gradients_through_the_changed_heads(name):
    h = nets.random(3, M, seed=4).requires_grad_()
    assert torch.autograd.gradcheck(prepared(name).model.head.double(), (h,))


@pytest.mark.filterwarnings("ignore:The advice is for a learning rate")
@pytest.mark.parametrize("name", nets.ALL)
def test_prepare_leaves_the_given_model_and_the_generator_alone(name):
    model, setting, state = Net(), facts(), torch.get_rng_state()
    recipe = methods.get(name).prepare(model, setting)
    assert torch.equal(state, torch.get_rng_state())
    loss(recipe).backward()
    torch.optim.SGD(recipe.model.parameters(), 0.5).step()
    fresh = Net()
    assert [type(m) for m in model.modules()] == [type(m) for m in fresh.modules()]
    untouched = zip(model.state_dict().values(), fresh.state_dict().values(), strict=True)
    assert all(torch.equal(a, b) for a, b in untouched)


class Conv(nn.Module):
    """Its output layer is a convolution, whose maps are averaged."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.body, self.head = nn.Conv2d(3, M, 3), nn.Conv2d(M, K, 1)

    def forward(self, x):
        return self.head(self.body(x).relu()).mean((2, 3))


@pytest.mark.parametrize("name", nets.ALL)
def test_every_method_takes_a_convolution_as_output_layer(name):
    x = torch.randn(5, 3, 8, 8, generator=torch.Generator().manual_seed(1))
    recipe = methods.get(name).prepare(Conv(), facts(teacher=Conv(), head="head"))
    logits = recipe.model(x)
    assert logits.shape == (5, K)
    assert torch.isfinite(recipe.loss(logits, torch.arange(5), x))


@pytest.mark.parametrize(("options", "epsilon"), [({}, 0.1), ({"epsilon": 0.35}, 0.35)])
def test_label_smoothing(options, epsilon):
    value = loss(prepared("label-smoothing", **options)).item()
    assert value == pytest.approx(ce(Z, epsilon), rel=1e-12)


@pytest.mark.parametrize("name", nets.ALL)
def test_every_method_combines_with_label_smoothing(name):
    """The smoothed loss minus the plain one is ε·(mean over k of −log p_k − (−log p_y)), on the hard part."""
    epsilon, scale = 0.2, 0.1 if methods.get(name).needs & {"teacher"} else 1.0
    if name == "label-smoothing":  # it brings its own ε
        scale = 0.0
    plain, smooth = prepared(name), methods.get(name).prepare(Net(), facts(epsilon))
    z = plain.model(X).detach().numpy()
    expected = scale * (ce(z, epsilon) - ce(z))
    assert (loss(smooth) - loss(plain)).item() == pytest.approx(expected, abs=1e-7)


SOURCE = """
from tstar.lab.methods import Recipe

def doubled(model, facts, factor=2.0):
    return Recipe(model, lambda z, y, x: factor * z.sum())

def nothing(model, facts):
    return model

doubled.needs = {"teacher"}
"""


def test_a_function_of_your_own(tmp_path):
    (tmp_path / "mine.py").write_text(SOURCE, encoding="utf-8")
    place = str(tmp_path / "mine.py")
    for options, factor in (({}, 2), ({"factor": 5.0}, 5)):
        method = methods.get(f"{place}:doubled", **options)
        assert method.needs == {"teacher"}
        value = method.prepare(nn.Identity(), facts()).loss(X, None, None)
        assert value.item() == pytest.approx(factor * X.sum().item())
    with pytest.raises(TstarError, match=r"an instance of tstar\..*Recipe, got Identity"):
        methods.get(f"{place}:nothing").prepare(nn.Identity(), facts())
