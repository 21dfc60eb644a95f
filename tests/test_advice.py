"""recommend: the decision as a table of situations, what is read, what is said, what is applied."""

import json
from dataclasses import replace
from functools import partial

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.optim import lr_scheduler as schedulers
from tstar.evidence import Facts, Measured, expect, measured
from tstar.facts import looks_trained

import tstar
from tstar import TstarError
from tstar.advice import Recommendation, decide, recommend
from tstar.training import Training

# -- decide ----------------------------------------------------------------------------------------

IMAGE = dict(domain="image", kind="convnet", norms="batch-norms")
VIT = dict(domain="image", kind="transformer", norms="layer-norms")
TEXT = dict(domain="text", kind="transformer", norms="layer-norms")
TABLE = dict(domain="table", kind="mlp", norms="no norms")


def situation(M, K, optimizer, lr, steps, batch, samples, parameters, csg=None, **known):
    names = ("scenario", "tuned", "weight_decay", "label_smoothing")
    how = {"scenario": "scratch", "weight_decay": 5e-4 if optimizer == "sgd" else 0.01}
    how |= {name: known.pop(name) for name in names if name in known}
    momentum = 0.9 if optimizer == "sgd" else None
    training = Training(optimizer, lr, steps, momentum, batch, **how)
    return Facts(M, K, training, samples=samples, parameters=int(parameters), csg=csg, **known)


def paper(
    M=2048, K=100, steps=78_200, samples=50_000, parameters=23.7e6, csg=25.5, lr=0.1, **known
):
    return situation(M, K, "sgd", lr, steps, 128, samples, parameters, csg, **{**IMAGE, **known})


def short(optimizer="sgd", M=128, K=10, lr=None, steps=1000, samples=5000, parameters=3e5, **known):
    lr = lr or (0.1 if optimizer == "sgd" else 1e-3)
    return situation(M, K, optimizer, lr, steps, 64, samples, parameters, **{**IMAGE, **known})


wide_adam = partial(short, "adamw", M=512, widened=True)
tuning = partial(paper, lr=0.01, scenario="finetune")
minilm = partial(situation, 384, 77, "adamw", 1e-4, 1000, 8, 2000, 22e6, **TEXT, scenario="finetune")  # fmt: skip
mobilenet = partial(situation, 1280, 101, "sgd", 0.01, 300, 16, 1500, 2.3e6, **IMAGE, scenario="finetune")  # fmt: skip

SITUATIONS = {
    # The paper's own settings: what it measured decides.
    "ResNet50, CIFAR-100": (paper(), "paper_cn"),
    "ResNet50, CIFAR-10": (paper(K=10, csg=4.43), "paper_cn"),
    "without csg": (paper(csg=None), "paper_cn"),
    "csg outside its range": (paper(csg=500.0), "paper_cn"),
    "EfficientNet-B0, CIFAR-100": (paper(M=1280, parameters=4.1e6), "paper_cn"),
    "RegNet, CIFAR-10": (paper(M=2016, K=10, parameters=37.5e6), "paper_cn"),
    "ResNet50, GTSRB": (paper(K=43, steps=41_800, samples=26_640, csg=1.39), "paper_cn"),
    "ResNet50, Flowers102": (paper(K=102, steps=1_600, samples=1_020, csg=7.47), "paper_cn"),
    "ResNet50, Pets": (paper(K=37, steps=5_800, samples=3_680, csg=22.8), "paper_cn"),
    "ResNet50, CUB": (paper(K=200, steps=9_400, samples=5_994, csg=75.3), "paper_cn"),
    "ViT, SGD 0.1": (paper(M=768, K=101, steps=11_000, samples=6_941, parameters=86e6, csg=5.59, **VIT), "paper_cn"),
    "SwinT, SGD 0.1": (paper(M=768, K=101, steps=11_000, samples=6_941, parameters=27e6, csg=5.59, **VIT), "paper_cn"),
    "fine-tuning on Flowers102": (tuning(K=102, steps=400, samples=1_020, csg=7.47), "paper_csgcn"),
    "fine-tuning on CUB": (tuning(K=200, steps=2_350, samples=5_994, csg=75.3), "paper_csgcn"),
    "fine-tuning on GTSRB": (tuning(K=43, steps=10_450, samples=26_640, csg=1.39), "paper_csgcn"),
    "SwinT, fine-tuning on Pets": (tuning(M=768, K=37, steps=1_450, samples=3_680, parameters=27e6, csg=22.8, **VIT), "paper_csgcn"),
    "fine-tuning, csg unknown": (tuning(K=102, steps=400, samples=1_020, csg=None), "leave"),
    # Near the paper.
    "ResNet18, CIFAR-10": (paper(M=512, K=10, parameters=11e6, csg=4.4), "paper_cn"),
    "100 epochs": (paper(steps=39_100), "paper_cn"),
    "ImageNet": (situation(2048, 1000, "sgd", 0.1, 450_000, 256, 1_281_167, 25.5e6, **IMAGE), "paper_cn"),
    "ResNet10, 200 epochs of 3,680": (situation(128, 37, "sgd", 0.1, 11_500, 64, 3_680, 7e5, **IMAGE), "decay"),
    # Plain trained to 83 % of its training set; a BatchNorm and T cost 1.3 points.
    "whole CIFAR-10 at 16 pixels": (situation(128, 10, "sgd", 0.1, 10_000, 128, 50_000, 3.1e5, **IMAGE), "leave"),
    "no norm allowed": (paper(insertable=False), "leave"),
    "batches of one": (replace(paper(), training=replace(paper().training, batch_size=1)), "leave"),
    # Short trainings from scratch: the second atlas.
    "ResNet10, SGD": (short(), "bn"),
    "ResNet10, 800 steps": (short(steps=800), "bn"),
    "ResNet10, AdamW": (short("adamw"), "bn_rate"),
    "ResNet10, Adam": (short("adam"), "bn_rate"),
    "VGG widened, SGD": (short(M=512, widened=True), "bn_rate"),
    "VGG widened, AdamW": (wide_adam(), "rate"),
    "CNN without norms, SGD": (short(lr=0.01, M=64, norms="no norms"), "bn_rate"),
    "ConvNeXt, SGD": (short(lr=0.03, norms="layer-norms"), "bn_rate"),
    "ViT, short, SGD at 0.03": (short(lr=0.03, **VIT), "bn"),
    "ViT, short, SGD at 0.003": (short(lr=0.003, **VIT), "bn_rate"),
    "ViT, short, AdamW": (short("adamw", **VIT), "bn_rate"),
    "MLP on texts, AdamW": (short("adamw", M=256, K=77, domain="text", kind="mlp"), "bn_rate"),
    "MLP on texts, SGD": (short(M=256, K=77, domain="text", kind="mlp"), "bn"),
    "MLP on a table, SGD": (short(lr=0.01, M=64, steps=500, samples=1_500, **TABLE), "bn_rate"),
    "MLP on a table, AdamW": (short("adamw", M=64, steps=500, samples=1_500, **TABLE), "rate"),
    "1-d network on signals, SGD": (short(K=6, steps=400, samples=3_000, domain="signal"), "bn"),
    "linear probe, SGD": (short(M=1280, K=101, samples=1_500, norms="frozen", kind=None), "bn_rate"),
    "linear probe, AdamW": (short("adamw", M=1280, K=101, samples=1_500, norms="frozen", kind=None), "leave"),
    "100 steps": (short(steps=100, samples=1_000), "bn"),
    "no norm allowed, SGD": (short(insertable=False), "leave"),
    "no norm allowed, AdamW": (short("adamw", insertable=False), "rate"),
    "a norm is there already": (short(normed=True), "bn"),
    "it fits": (short(fits=True), "bn_rate"),
    "it does not fit": (short(fits=False), "bn"),
    "label smoothing": (short(label_smoothing=0.1), "bn"),
    "without decay": (short(weight_decay=0.0), "bn"),
    # Rate and decay tuned: both stay.
    "tuned, SGD": (short(tuned=True), "bn"),
    "tuned, AdamW": (short("adamw", tuned=True), "leave"),
    "tuned, layer norms, SGD": (short(lr=0.03, norms="layer-norms", tuned=True), "bn"),
    "tuned, no norm allowed": (short(tuned=True, insertable=False), "leave"),
    # Fine-tuning of ours.
    "MiniLM": (minilm(), "head_lr"),
    "MiniLM, longer": (replace(minilm(), training=replace(minilm().training, steps=2000)), "head_lr"),
    "BERT": (situation(768, 77, "adamw", 1e-4, 2000, 32, 10_000, 110e6, **TEXT, scenario="finetune"), "head_lr"),
    "MobileNet, SGD": (mobilenet(), "bn"),
    "ViT-B on images": (situation(768, 101, "adamw", 1e-4, 2170, 32, 6_941, 86e6, **VIT, scenario="finetune"), "leave"),
    # Nothing like it was measured: a pilot.
    "Lion": (short("lion"), "leave"),
    "ResNet50, AdamW, 100 epochs": (situation(2048, 100, "adamw", 1e-3, 39_100, 128, 50_000, 23.7e6, **IMAGE), "leave"),
    "ViT-B, ImageNet, AdamW": (situation(768, 1000, "adamw", 1e-3, 375_000, 1024, 1_281_167, 86e6, **VIT), "leave"),
    "500,000 rows": (situation(256, 10, "adamw", 1e-3, 19_540, 512, 500_000, 8e4, **TABLE), "rate"),
    "GPT-sized": (situation(4096, 1000, "adamw", 1e-5, 10**6, 512, 10**8, 7e9, **TEXT, scenario="finetune"), "leave"),
}  # fmt: skip


@pytest.mark.parametrize("name", SITUATIONS)
def test_situations(name):
    facts, action = SITUATIONS[name]
    found = decide(facts)
    assert found.action == action, [(e.action, round(e.mean, 1)) for e in found.expectations]
    assert found.reasons


PILOT = [name for name in SITUATIONS if not decide(SITUATIONS[name][0]).measured]


def test_what_was_not_measured_is_little_and_none_of_the_papers():
    unlike = {"batches of one", "ViT-B on images", "Lion", "ViT-B, ImageNet, AdamW", "GPT-sized"}
    assert set(PILOT) == unlike
    rows = [row for row in measured() if row.source == "paper"]
    assert all(decide(row.facts).measured for row in rows)


def test_the_numbers_of_a_recipe():
    sgd = decide(short(lr=0.01, M=64, norms="no norms"))  # bn_rate
    assert (sgd.lr, sgd.weight_decay, sgd.head_lr, sgd.norm) == (0.03, 5e-4, None, "batch")
    how = dict(optimizer="sgd", lr=0.03, steps=1000, batch_size=64, momentum=0.9)
    assert sgd.temperature == tstar.temperature(64, 10, **how)
    papers = decide(paper())
    assert papers.temperature == tstar.temperature(2048, 100, variant="cn")
    assert (papers.lr, papers.weight_decay) == (0.1, 5e-4)
    rate = decide(wide_adam())
    assert (rate.lr, rate.temperature, rate.norm) == (0.003, 1.0, None)
    assert decide(short(normed=True)).norm is None
    assert decide(short(normed=True)).temperature > 1
    assert decide(mobilenet()).temperature >= 1  # SGD in fine-tuning never goes below


def planted(facts=None, count=20, **gains):
    return [Measured("atlas", "net", "data", facts or short(), 50.0, gains, 2)] * count


@pytest.mark.parametrize(
    ("gains", "action"),
    [
        ({"bn": 3.0}, "bn"),
        ({"bn": -3.0}, "leave"),
        ({"bn": 0.0}, "leave"),
        ({"rate": 3.0, "bn_rate": 3.0}, "rate"),  # surgery must beat what is simpler
        ({"rate": 3.0, "bn_rate": 5.0}, "bn_rate"),
        ({"decay": 4.0, "bn": 3.0}, "decay"),
        ({"head_lr": 6.0, "bn": 5.5, "rate": 1.0}, "head_lr"),
        ({"bn1": 4.0, "bn": 1.0}, "bn1"),
        ({"bn_rate_decay": 6.0, "bn_rate": 2.0, "decay": 3.0}, "bn_rate_decay"),
        ({"paper_cn": 5.0, "bn": 2.0}, "paper_cn"),
    ],
)
def test_the_best_action_that_is_simple_enough(gains, action):
    assert decide(short(), planted(**gains)).action == action


def test_each_action_has_its_numbers():
    def found(action, **known):
        return decide(short(**known), planted(short(**known), **{action: 5.0}))

    assert found("decay").weight_decay == 1.5e-3
    assert found("head_lr").head_lr == 1.0
    assert found("head_lr", scenario="finetune").head_lr == 10.0
    for lr, rate in ((1e-5, 1e-3), (1e-3, 0.01), (0.03, 0.03)):  # with Adam none above 0.01
        assert found("head_lr", optimizer="adamw", lr=lr, scenario="finetune").head_lr == rate
    both = found("bn_rate_decay")
    assert (both.lr, both.weight_decay) == (0.3, 1.5e-3)
    assert (found("bn1").temperature, found("bn1").norm) == (1.0, "batch")
    assert found("decay", weight_decay=0.0).action == "leave"  # three times nothing
    for action in ("rate", "decay", "bn_rate", "bn_rate_decay"):
        assert found(action, tuned=True).action == "leave"
    for kind, action in (("transformer", "leave"), ("convnet", "rate")):
        assert found("rate", kind=kind, lr=0.03).action == action
    for lr, action in ((0.2, "paper_cn"), (0.25, "leave")):  # four times the paper's, per sample
        assert found("paper_cn", lr=lr).action == action


def test_a_few_scattered_rows_are_not_enough():
    rows = [*planted(count=2, bn=10.0), *planted(count=2, bn=-9.0)]
    assert decide(short(), rows).action == "leave"
    far = replace(short(), training=replace(short().training, steps=10**6))
    assert not decide(far, planted(bn=5.0)).measured
    assert not decide(short(), []).measured


# -- read ------------------------------------------------------------------------------------------


def network(M=64, K=10, norm=True):
    layers = [nn.Conv2d(3, M, 3), nn.BatchNorm2d(M) if norm else nn.Identity(), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(M, K))


HOW = dict(optimizer="sgd", lr=0.1, steps=1000, batch_size=64, samples=5000)


def test_what_is_read_from_the_model():
    facts = recommend(network(), **HOW).facts
    assert (facts.num_features, facts.num_classes, facts.samples) == (64, 10, 5000)
    assert (facts.domain, facts.kind, facts.norms) == ("image", "convnet", "batch-norms")
    assert facts.parameters == sum(p.numel() for p in network().parameters())
    assert facts.assumed == ("weight_decay=0.0005",)
    text = nn.Sequential(nn.Embedding(9, 8), nn.Flatten(), nn.Linear(32, 8), nn.Linear(8, 3))
    example = torch.zeros(2, 4, dtype=torch.long)
    read = recommend(text, example_input=example, **HOW).facts
    assert (read.domain, read.kind, read.norms) == ("text", "mlp", "no norms")
    assert recommend(text, example_input=example, domain="table", **HOW).facts.domain == "table"


def test_without_a_rate_it_is_a_whole_recipe():
    x, y = torch.rand(500, 3, 8, 8), torch.arange(500) % 10
    advice = recommend(network(), (x, y), epochs=30, batch_size=128)
    assert (advice.training.optimizer, advice.training.steps) == ("sgd", 120)
    assert advice.lr in (0.1, 0.3)
    assert "lr=0.1" in advice.facts.assumed
    assert "this assumes" in str(advice)


def test_saying_what_is_assumed_changes_nothing():
    """So more that is said never flips an advice, unless it differs from what was assumed."""
    large = nn.Sequential(nn.Conv2d(3, 512, 3), nn.Conv2d(512, 512, 3), *network(512)[1:])
    bare = recommend(large)
    assert bare.action == "paper_cn"  # the paper's training is the usual one
    t = bare.training
    told = dict(optimizer=t.optimizer, lr=t.lr, steps=t.steps, batch_size=t.batch_size)
    for count in range(len(told) + 1):
        some = dict(list(told.items())[:count])
        found = recommend(large, **some)
        assert (found.action, found.temperature, found.lr) == (bare.action, bare.temperature, bare.lr)  # fmt: skip


def test_fine_tuning_is_read_from_the_weights():
    fresh, loaded = network(), network()
    assert not looks_trained(fresh)
    nn.init.uniform_(loaded[1].weight)
    assert looks_trained(loaded)
    assert recommend(loaded, **HOW).training.scenario == "finetune"
    found = recommend(loaded, samples=960, epochs=5)  # in fine-tuning's batches
    assert (found.training.batch_size, found.training.steps) == (32, 150)
    assert "batch_size=32" in found.facts.assumed
    assert recommend(loaded, **HOW, scenario="scratch").training.scenario == "scratch"
    assert recommend(fresh, **HOW).training.scenario == "scratch"
    for parameter in fresh[:-1].parameters():
        parameter.requires_grad_(False)
    assert recommend(fresh, **HOW).facts.norms == "frozen"
    named = network()
    named.config = type("Config", (), {"_name_or_path": "someone/bert"})()
    assert looks_trained(named)


def test_a_loader_tells_batch_size_and_steps():
    x, y = torch.rand(100, 3, 8, 8), torch.arange(100) % 10
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=10)
    found = recommend(network(), loader, optimizer="sgd", lr=0.1, epochs=3)
    assert (found.training.batch_size, found.training.steps) == (10, 30)
    found = recommend(network(), loader, optimizer="sgd", lr=0.1, epochs=3, accumulate=5)
    assert (found.training.batch_size, found.training.steps, found.facts.samples) == (50, 6, 100)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"norm": "layer"}, "Unknown norm"),
        ({"domain": "video"}, "Unknown domain"),
        ({"train_accuracy": 83}, "at most 1"),
        ({"num_classes": 1}, "num_classes must be"),
        ({"lr": -1}, "lr must be positive"),
        ({"variant": "cm"}, "Unknown variant"),
        ({"bath_size": 3}, "did you mean 'batch_size'"),
        ({"loss": nn.MSELoss()}, "softmax"),
    ],
)
def test_bad_input(words, message):
    with pytest.raises(TstarError, match=message):
        recommend(network(), **words)


def test_a_variant_that_is_named_is_used():
    found = recommend(network(), variant="csgcn", csg=3.0, **HOW)
    assert found.temperature == tstar.temperature(64, 10, 3.0, variant="csgcn")
    assert (found.action, found.norm, found.lr) == ("named", "batch", 0.1)
    assert "α·sqrt(M)" in found.details()
    x, y = torch.rand(60, 3, 8, 8), torch.arange(60) % 10
    assert recommend(network(), (x, y), variant="csgcn", **HOW).facts.csg is not None
    assert recommend(network(), (x, y), **HOW).facts.csg is None  # the law makes no use of it


def test_nothing_is_touched():
    net = network().train()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    state = torch.random.get_rng_state()
    recommend(net, **HOW)
    assert net.training
    assert torch.equal(torch.random.get_rng_state(), state)
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())


# -- describe --------------------------------------------------------------------------------------


def advised(facts, **known):
    from tstar.output_layer import find_head

    head = find_head(network(facts.num_features, facts.num_classes))
    return Recommendation(**{**vars(decide(facts)), **known}, facts=facts, heads=(head,))


@pytest.mark.parametrize("name", SITUATIONS)
def test_four_lines_one_line_and_json(name, tmp_path):
    advice = advised(SITUATIONS[name][0])
    lines = str(advice).splitlines()
    assert [line.split(":")[0] for line in lines] == ["Do this", "Expect", "Main risk", "Check"]
    assert "\n" not in repr(advice)
    assert len(repr(advice)) < 150
    advice.save(tmp_path / "advice.json")
    saved = json.loads((tmp_path / "advice.json").read_text(encoding="utf-8"))
    assert saved == json.loads(json.dumps(advice.to_dict(), allow_nan=False))
    assert ("only a pilot" in lines[2]) == (name in PILOT)
    assert advice.leave == (advice.action == "leave")
    assert ("advice.apply" in lines[0]) is not advice.leave
    assert ("BatchNorm" in lines[0]) == (advice.norm is not None)
    for word in ("travel", "standard deviation", "Coefficients", "insertable", "widened", "family"):
        assert word not in str(advice) + advice.details()
    assert max(map(len, advice.details().splitlines())) <= 100
    assert advice.card().endswith((".", "%."))
    assert ("by at most 3e-06" in advice.card(2.9e-6)) == advice.surgery


def test_what_is_expected_is_said_with_its_range_and_source():
    advice = advised(paper())
    found = advice.expectation
    said = min(found.mean, found.median)
    assert f"{said:+.1f} points of accuracy (80 % range {found.low:+.1f}" in str(advice)
    assert found.source in str(advice)
    assert "of the paper: " in found.source
    assert "images; plain " in found.source
    (row,) = planted(count=1, bn=3.0)
    near, far = ([(1.0, replace(row, plain=p)) for p in (low, 100.0)] for low in (50.0, 2.0))
    assert expect(near, "bn").source.endswith("; plain accuracy 50–100 %")
    assert "plain" not in expect(far, "bn").source  # a range that says nothing


@pytest.mark.parametrize("facts", [wide_adam(), minilm(), mobilenet(), short()])
def test_following_the_advice_again_and_again_ends(facts):
    """No rate and no decay is raised above what was tried in trainings like it."""
    first = facts.training
    for _ in range(6):
        found = decide(facts)
        facts = replace(
            facts, training=replace(facts.training, lr=found.lr, weight_decay=found.weight_decay)
        )
    assert first.lr / 10 < facts.training.lr < 10 * first.lr
    assert facts.training.weight_decay < 10 * first.weight_decay


@pytest.mark.parametrize("decay", [0.01, 0.5])
def test_a_decay_beyond_the_measured_ones_is_not_raised(decay):
    facts = SITUATIONS["ResNet10, 200 epochs of 3,680"][0]
    found = decide(replace(facts, training=replace(facts.training, weight_decay=decay)))
    assert found.weight_decay == decay


def test_a_norm_sees_the_batch_of_one_forward_pass():
    accumulated = {"optimizer": "sgd", "lr": 0.01, "steps": 800, "samples": 2000, "accumulate": 16}
    assert recommend(network(128), batch_size=1, **accumulated).norm is None
    few = recommend(network(128), batch_size=4, **accumulated)
    assert few.norm == "batch"
    assert "batches of 4" in few.details() + str(few)


def test_the_typical_gain_lies_in_its_range():
    rows = [
        Measured("atlas", "net", "data", short(), 50.0, {"bn": gain}) for gain in (18.0, 20.0, 22.0)
    ]
    e = expect([(9.0, row) for row in rows], "bn")
    assert e.mean < e.low
    said = replace(advised(short()), action="bn", expectations=(e,))._expect()
    assert f"{e.low:+.1f} points of accuracy" in said


@pytest.mark.parametrize(
    ("name", "call"), [("lion", "'your.package:lion'"), ("adamw_torch_fused", "'adamw'")]
)
def test_the_check_names_an_optimizer_that_it_takes(name, call):
    assert f"optimizer={call}" in str(recommend(network(128), optimizer=name, lr=1e-3, steps=900))


def test_what_stays_is_kept_and_what_changes_is_set():
    kept = str(advised(paper())).splitlines()[0]
    assert ", keep lr 0.1: model = advice.apply" in kept
    assert "set lr to 0.003 (in place of 0.001)" in str(advised(wide_adam()))
    assumed = str(
        advised(replace(paper(), assumed=("lr=0.1", "weight_decay=0.0005")))
    ).splitlines()[0]
    assert "take lr 0.1" in assumed
    assert "weight_decay" not in assumed  # a guess that apply does not write


def test_what_was_not_measured_is_cautioned():
    soft = nn.KLDivLoss(reduction="batchmean")
    smooth = partial(F.cross_entropy, label_smoothing=0.1)
    dense = nn.Sequential(nn.Conv2d(3, 64, 3), nn.ReLU(), nn.Conv2d(64, 10, 1))
    told = {"soft targets": (network(), soft), "label smoothing": (network(), smooth)}
    told |= {"each pixel or token": (dense, None), "not fit": (network(), nn.CrossEntropyLoss())}
    for words, (net, loss) in told.items():
        assert words in str(recommend(net, loss=loss, **HOW)).splitlines()[2]
    assert "the output layer 10" in str(recommend(network(), (torch.rand(9, 3, 8, 8), torch.arange(9)), **HOW))  # fmt: skip


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        (short("lion"), "only a pilot"),
        (replace(short(), training=replace(short().training, batch_size=4)), "batches of 4"),
        (short(steps=60, samples=1_000), "60 steps are few"),
        (SITUATIONS["ViT, SGD 0.1"][0], "fell to 5 %"),
        (short(lr=0.03, **VIT), "does not fit its training set ("),  # a rate that is known to do
        (short(label_smoothing=0.1), "label smoothing"),
        (replace(short(), assumed=("lr=0.1",)), "assumes lr=0.1"),
        (short(), "does not fit its training set (8"),
        (wide_adam(), "another rate"),
        (paper(), "not shuffled"),
        (short(tuned=True, insertable=False), "nothing changes"),
        (
            replace(short(tuned=True, insertable=False), assumed=("weight_decay=0.0005",)),
            "nothing changes",
        ),
    ],
)
def test_the_main_risk(facts, words):
    assert words in str(advised(facts)).splitlines()[2]


# -- apply -----------------------------------------------------------------------------------------


def test_apply_tempers_in_place_and_sets_rate_and_decay():
    net = network(128)
    body, head = net[0], net[-1]
    groups = [{"params": body.parameters(), "lr": 0.02}, {"params": head.parameters()}]
    optimizer = torch.optim.SGD(groups, lr=0.1, momentum=0.9, weight_decay=5e-4)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.5**step)
    advice = replace(advised(short()), lr=0.3, weight_decay=1.5e-3)
    assert advice.apply(net, optimizer, scheduler) is net
    tempered = net.get_submodule("5")
    assert float(tempered.temperature) == pytest.approx(advice.temperature)
    held = {id(p) for group in optimizer.param_groups for p in group["params"]}
    assert all(id(p) in held for p in tempered.parameters())
    rates = [group["lr"] for group in optimizer.param_groups]
    assert rates == pytest.approx([0.06, 0.3])  # each keeps its ratio
    assert [group["weight_decay"] for group in optimizer.param_groups] == [1.5e-3, 1.5e-3]
    optimizer.step()
    scheduler.step()
    assert optimizer.param_groups[1]["lr"] == pytest.approx(0.15)


def test_apply_and_the_record_of_a_training_mean_the_same_group():
    net = network(128)
    weight, bias = net[-1].parameters()
    groups = [{"params": [weight]}, {"params": [bias], "lr": 0.2}]  # Caffe's: biases go faster
    optimizer = torch.optim.SGD(groups, lr=0.1)
    read = Training.of(optimizer, layer=net[-1]).lr
    replace(advised(short()), lr=3 * read).apply(net, optimizer)
    assert [group["lr"] for group in optimizer.param_groups] == pytest.approx([0.3, 0.6])


SCHEDULERS = {
    "one cycle": lambda o: schedulers.OneCycleLR(o, max_lr=[g["lr"] for g in o.param_groups], total_steps=10),
    "cyclic": lambda o: schedulers.CyclicLR(o, [g["lr"] / 9 for g in o.param_groups], [g["lr"] for g in o.param_groups], 3),
    "cosine": lambda o: schedulers.CosineAnnealingLR(o, 10),
    "lambda": lambda o: schedulers.LambdaLR(o, lambda step: 1 - step / 10),
    "plateau": lambda o: schedulers.ReduceLROnPlateau(o, patience=1),
    "sequential": lambda o: schedulers.SequentialLR(o, [schedulers.LinearLR(o, 0.5, total_iters=3), schedulers.CosineAnnealingLR(o, 7)], milestones=[3]),
    "timm": lambda o: pytest.importorskip("timm.scheduler").CosineLRScheduler(o, t_initial=10, warmup_t=3, warmup_lr_init=0.0),
    "transformers": lambda o: pytest.importorskip("transformers").get_cosine_schedule_with_warmup(o, 3, 9),
}  # fmt: skip
RATE = dict(action="rate", temperature=1.0, norm=None, lr=0.3)
HEAD = dict(action="head_lr", temperature=1.0, norm=None, lr=0.1, head_lr=1.0)


@pytest.mark.parametrize("name", SCHEDULERS)
@pytest.mark.parametrize(("known", "body", "head"), [(RATE, 3, 3), (HEAD, 1, 10)])
def test_a_scheduler_goes_on_from_the_new_rate(name, known, body, head):
    """Each rate of the whole schedule is a multiple of that of a twin without the advice."""

    def rates(apply):
        net = network(128)
        layers = [{"params": net[0].parameters(), "lr": 0.02}, {"params": net[1:].parameters()}]
        optimizer = torch.optim.SGD(layers, lr=0.1, momentum=0.9)
        scheduler = SCHEDULERS[name](optimizer)
        if apply:
            replace(advised(short()), **known).apply(net, optimizer, scheduler)
        found = []
        for epoch in range(1, 10):
            groups = [(g["lr"], {*map(id, g["params"])}) for g in optimizer.param_groups]
            found.append([next(lr for lr, held in groups if id(m.weight) in held) for m in (net[0], net[1], net[-1])])  # fmt: skip
            optimizer.step()
            scheduler.step(*([epoch] if name in ("plateau", "timm") else []))
        return found

    wanted = [[body * a, body * b, head * c] for a, b, c in rates(False)]
    got = rates(True)
    assert got[1:] == [pytest.approx(row) for row in wanted[1:]]
    assert name == "timm" or got[0] == pytest.approx(wanted[0])


def test_the_heads_own_rate_is_a_group_of_its_own_and_set_once():
    net, advice = network(128), replace(advised(short()), **HEAD)
    optimizer = torch.optim.SGD(net.named_parameters(), lr=0.1)
    for _ in range(2):  # a cell of a notebook runs twice
        assert advice.apply(net, optimizer) is net
        rates = {id(p): group["lr"] for group in optimizer.param_groups for p in group["params"]}
        assert {rates[id(p)] for p in net[-1].parameters()} == {1.0}
        assert {rates[id(p)] for p in net[0].parameters()} == {0.1}
    assert optimizer.param_groups[-1]["param_names"] == ["5.weight", "5.bias"]


def test_a_scheduler_that_is_not_passed_is_noticed():
    net = network(128)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    schedulers.CosineAnnealingLR(optimizer, 10)
    with pytest.warns(tstar.TstarWarning, match="has a scheduler already"):
        replace(advised(short()), **RATE).apply(net, optimizer)
    net = network(128)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.3)
    schedulers.CosineAnnealingLR(optimizer, 10)
    replace(advised(short()), **RATE).apply(net, optimizer)  # its rate is right already


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("first", ["decay", "no decay"])
def test_decay_is_set_where_there_is_one_and_the_norm_has_none(bias, first):
    """timm lists the group without decay first; a head without a bias has its weight alone."""
    net = network(128)
    net[-1] = nn.Linear(128, 10, bias=bias)
    kinds = [[p for p in net.parameters() if (p.ndim > 1) == wide] for wide in (True, False)]
    groups = [{"params": p, "weight_decay": d} for p, d in zip(kinds, (5e-4, 0.0), strict=True)]
    optimizer = torch.optim.SGD(groups if first == "decay" else groups[::-1], lr=0.1)
    assert recommend(net, optimizer=optimizer, steps=1000, batch_size=64).training.weight_decay == 5e-4  # fmt: skip
    advice = replace(advised(short()), weight_decay=1.5e-3)
    advice.apply(net, optimizer)
    decays = {id(p): g["weight_decay"] for g in optimizer.param_groups for p in g["params"]}
    assert decays[id(net[-1].weight)] == pytest.approx(1.5e-3)
    assert {decays[id(p)] for p in net[-1].norm.parameters()} == {0.0}


def test_rate_and_a_decay_that_is_missing_are_set_in_a_wrapped_model_too():
    net = torch.nn.DataParallel(network(128))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    assert replace(advised(short()), **RATE).apply(net, optimizer) is net
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.3)
    assert optimizer.param_groups[0]["weight_decay"] == 5e-4
    with pytest.raises(TstarError, match="before it is wrapped"):
        advised(short()).apply(net, optimizer)


def test_what_was_guessed_or_stays_is_not_written():
    net = network(128)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.02, weight_decay=1e-4)
    left = replace(advised(short()), action="leave", temperature=1.0, norm=None, lr=0.1)
    assert left.apply(net, optimizer) is net
    assert (optimizer.param_groups[0]["lr"], optimizer.param_groups[0]["weight_decay"]) == (
        0.02,
        1e-4,
    )
    guessed = replace(short(), assumed=("weight_decay=0.0005",))
    replace(advised(guessed), **RATE).apply(net, optimizer)
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.3)
    assert optimizer.param_groups[0]["weight_decay"] == 1e-4


def test_a_model_that_was_tempered_before_gets_its_rates():
    advice = replace(advised(short()), lr=0.3)
    net = tstar.temper(network(128), advice)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    assert advice.apply(net, optimizer) is net
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.3)
    with pytest.raises(TstarError, match="already tempered"):
        replace(advice, temperature=40.0).apply(net, optimizer)


def test_for_trainers_and_searchers():
    class Arguments:
        learning_rate, weight_decay = 1e-4, 0.0

    args, advice = Arguments(), advised(wide_adam())
    made = advice.hf_args(args)
    assert (made.learning_rate, made.weight_decay) == (0.003, 0.01)
    assert args.learning_rate == 1e-4

    with pytest.raises(TstarError, match="AdviceCallback"):  # it has one rate only
        replace(advice, head_lr=0.03).hf_args(args)


@pytest.mark.parametrize("facts", [short(), wide_adam(), short(weight_decay=0.0)])
def test_a_study_starts_with_the_recipe_and_searches_around_it(facts):
    optuna = pytest.importorskip("optuna")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study, advice = optuna.create_study(), replace(advised(facts), head_lr=0.3)
    ranges = advice.enqueue(study)

    def objective(trial):
        found = {name: trial.suggest_float(name, *ends, log=True) for name, ends in ranges.items()}
        return sum(abs(value) for value in found.values())

    study.optimize(objective, n_trials=2)
    names = ["lr", "head_lr", "weight_decay", "temperature"]
    wanted = {n: getattr(advice, n) for n in names if getattr(advice, n) and (n != "temperature" or advice.surgery)}  # fmt: skip
    assert study.trials[0].params == pytest.approx(wanted)


def test_the_flow():
    torch.manual_seed(0)
    net, x, y = network(32, 4), torch.randn(64, 3, 8, 8), torch.arange(64) % 4
    advice = recommend(net, optimizer="sgd", lr=0.1, steps=200, batch_size=32, samples=64)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net = advice.apply(net, optimizer)
    for _ in range(3):
        F.cross_entropy(net(x), y).backward()
        optimizer.step()
        optimizer.zero_grad()
    tempered = net.eval()(x)
    folded = tstar.fold(net)
    assert torch.allclose(folded(x), tempered, atol=1e-5)
    assert isinstance(folded[-1], nn.Linear)


def test_no_risk_is_named_only_if_nothing_changes_and_that_was_measured():
    net = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 3))
    told = dict(lr=1e-3, steps=10**6, batch_size=64, samples=2000, weight_decay=0.01)
    unknown = recommend(net, optimizer="lion", scenario="scratch", **told)
    assert (unknown.leave, unknown.measured) == (True, False)
    assert "none: nothing changes." not in list(unknown._risks())
    known = replace(unknown, measured=True)
    assert list(known._risks()) == ["none: nothing changes."]
