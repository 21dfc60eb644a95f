"""What holds for every method, whatever it does, and how methods are named."""

import pytest
import torch
from torch import nn

from tests.lab.methods import networks as nets
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
    both = methods.get("temperature-check:lowest=.5:points=3").options
    assert (both["lowest"], both["points"]) == (0.5, 3)
    assert methods.get("temperature-check:points=9").trainings == 9


@pytest.mark.parametrize(
    ("name", "options", "match"),
    [
        ("insert-nl", {}, "insert-ln"),
        ("kd", {"tua": 2}, "tau"),
        ("default", {"T": 2}, "known: none"),
        ("ours-cn", {"variant": "csg"}, "option of method"),
        ("kd", {"tau": -1}, "positive"),
        ("ours-cn:schedule", {}, "key=value"),
        ("ours-cn", {"schedule": "cosinus"}, "cosine"),
        ("temperature-check", {"points": 0}, "points"),
        ("fixed", {"backbone": "matcht"}, "matched"),
    ],
)
def test_bad_names_and_options_are_refused_with_a_hint(name, options, match):
    with pytest.raises(TstarError, match=match):
        methods.get(name, **options)


@pytest.mark.parametrize(
    ("name", "options", "match"),
    [("label-smoothing", {"epsilon": 1.0}, "label_smoothing < 1"), ("adacos-fixed", {}, "K >= 3")],
)
def test_what_no_training_can_use_is_refused_before_it(name, options, match):
    two = nn.Linear(3, 2)
    with pytest.raises(TstarError, match=match):
        methods.get(name, **options).prepare(two, methods.Setting(3, 2))


@pytest.mark.parametrize("name", [n for n in nets.ALL if n != "heated-up"])
def test_gradients_of_the_loss_are_those_of_finite_differences(name):
    recipe = methods.get(name).prepare(nets.Net(), nets.facts())
    z = recipe.model(nets.X).detach().requires_grad_()
    assert torch.autograd.gradcheck(lambda z: recipe.loss(z, nets.Y, nets.X), (z,))


@pytest.mark.parametrize(
    "name", ["insert-ln", "relaxed-softmax", "adacos-fixed", "learned-temperature"]
)
def test_gradients_through_the_changed_heads(name):
    head = methods.get(name).prepare(nets.Net(), nets.facts()).model.head.double()
    h = nets.random(3, nets.M, seed=4).requires_grad_()
    assert torch.autograd.gradcheck(head, (h,))


@pytest.mark.filterwarnings("ignore:The advice is for a learning rate")
@pytest.mark.parametrize("name", nets.ALL)
def test_prepare_leaves_the_given_model_and_the_generator_alone(name):
    model = nets.net()
    before = {key: value.clone() for key, value in model.state_dict().items()}
    modules, known = [type(m) for m in model.modules()], nets.usual()
    state = torch.get_rng_state()
    recipe = methods.get(name).prepare(model, known)
    assert torch.equal(state, torch.get_rng_state())
    optimizer = torch.optim.SGD(recipe.model.parameters(), 0.5)
    recipe.loss(recipe.model(nets.INPUTS), nets.LABELS, nets.INPUTS).backward()
    optimizer.step()
    assert [type(m) for m in model.modules()] == modules
    assert all(torch.equal(before[key], value) for key, value in model.state_dict().items())


@pytest.mark.parametrize("name", nets.ALL)
def test_every_method_takes_a_convolution_as_output_layer(name):
    def conv(classes: int = nets.CLASSES) -> nn.Module:
        torch.manual_seed(0)
        return nn.Sequential(
            nn.Conv2d(3, nets.WIDTH, 3), nn.ReLU(), nn.Conv2d(nets.WIDTH, classes, 1), _Pool()
        )

    x = torch.randn(5, 3, 8, 8, generator=torch.Generator().manual_seed(1))
    recipe = methods.get(name).prepare(conv(), nets.usual(teacher=conv(), head="2"))
    logits = recipe.model(x)
    assert logits.shape == (5, nets.CLASSES)
    assert torch.isfinite(recipe.loss(logits, torch.arange(5), x))


class _Pool(nn.Module):
    def forward(self, x):
        return x.mean((2, 3))


@pytest.mark.parametrize(("options", "epsilon"), [({}, 0.1), ({"epsilon": 0.35}, 0.35)])
def test_label_smoothing(options, epsilon):
    value, z, _ = nets.loss_of("label-smoothing", **options)
    assert value == pytest.approx(nets.ce(z, nets.Y, epsilon), rel=1e-12)


@pytest.mark.parametrize("name", nets.ALL)
def test_every_method_combines_with_label_smoothing(name):
    """The smoothed loss minus the plain one is ε·(mean over k of −log p_k − (−log p_y)), on the hard part."""
    epsilon, scale = 0.2, 0.1 if methods.get(name).needs & {"teacher"} else 1.0
    model, known, softer = nets.Net(), nets.facts(), nets.facts(label_smoothing=epsilon)
    plain = methods.get(name).prepare(model, known)
    smooth = methods.get(name).prepare(model, softer)
    logits = plain.model(nets.X)
    difference = smooth.loss(smooth.model(nets.X), nets.Y, nets.X) - plain.loss(
        logits, nets.Y, nets.X
    )
    z = logits.detach().numpy()
    expected = scale * (nets.ce(z, nets.Y, epsilon) - nets.ce(z, nets.Y))
    if name == "label-smoothing":  # it brings its own ε
        expected = 0.0
    assert difference.item() == pytest.approx(expected, abs=1e-7)


SOURCE = """
from tstar.lab.methods import Recipe

def doubled(model, facts, factor=2.0):
    return Recipe(model, lambda z, y, x: factor * z.sum())

def nothing(model, facts):
    return model

def taught(model, facts):
    return doubled(model, facts, 3.0)

taught.needs = {"teacher"}
"""


@pytest.fixture
def part(tmp_path):
    (tmp_path / "mine.py").write_text(SOURCE, encoding="utf-8")
    return lambda name: f"{tmp_path / 'mine.py'}:{name}"


def test_a_function_of_your_own_with_options(part):
    z = nets.facts().validation[0]
    for method, factor in (
        (methods.get(part("doubled")), 2),
        (methods.get(part("doubled"), factor=5.0), 5),
    ):
        assert method.needs == frozenset()
        recipe = method.prepare(nn.Identity(), nets.facts())
        assert recipe.loss(z, None, None).item() == pytest.approx(factor * z.sum().item())


def test_what_is_no_method_is_said(part):
    with pytest.raises(
        TstarError, match=r"must return an instance of tstar\..*Recipe, got Identity"
    ):
        methods.get(part("nothing")).prepare(nn.Identity(), nets.facts())
    assert methods.get(part("taught")).needs == {"teacher"}
