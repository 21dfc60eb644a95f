"""Networks of other libraries by name. No weights are fetched."""

import pytest
import torch

from tests.networks import tiny_bert
from tstar import TstarError
from tstar.lab.models import build

vision = pytest.importorskip("torchvision")


def test_torchvision_network_with_our_number_of_classes():
    model = build("torchvision/squeezenet1_1", 7, num_features=512, seed=0).eval()
    assert model(torch.zeros(1, 3, 64, 64)).shape == (1, 7)


@pytest.mark.parametrize(
    ("name", "options", "match"),
    [
        ("shufflenet_v2_x0_5", {"num_features": 64}, "has 1024 features, but got num_features=64"),
        ("resnet51", {}, "did you mean 'resnet50'"),
    ],
)
def test_torchvision_errors(name, options, match):
    with pytest.raises(TstarError, match=match):
        build(f"torchvision/{name}", 3, **options)


def test_pretrained_network_gets_a_new_output_layer(monkeypatch):
    """``weights="DEFAULT"`` needs a download: here the plain network stands in for the loaded one."""
    models = vision.models
    plain = models.get_model

    def offline(name, **options):
        assert options.pop("weights") == "DEFAULT"
        return plain(name, num_classes=1000, **options)

    monkeypatch.setattr(models, "get_model", offline)
    model = build("torchvision/shufflenet_v2_x0_5", 6, pretrained=True, seed=0).eval()
    assert model(torch.zeros(1, 3, 64, 64)).shape == (1, 6)


def test_timm_network_with_other_channels():
    pytest.importorskip("timm")
    model = build("timm/resnet10t", 4, in_channels=1, seed=0).eval()
    assert model(torch.zeros(1, 1, 64, 64)).shape == (1, 4)
    with pytest.raises(TstarError, match="Unknown network of timm 'resnet10zz'"):
        build("timm/resnet10zz", 4)
    with pytest.raises(TstarError, match=r"more \(timm.list_models\(\) lists them\)") as far:
        build("timm/@", 4)
    assert len(str(far.value)) < 300


def test_transformers_from_a_local_folder(tmp_path):
    transformers = pytest.importorskip("transformers")
    source = transformers.BertModel(tiny_bert(vocab_size=30))
    source.save_pretrained(tmp_path)
    model = build(f"transformers/{tmp_path}", 5, seed=1).eval()
    assert model(torch.ones(2, 7, dtype=torch.int64)).shape == (2, 5)
    fresh = model.state_dict()
    loaded = build(f"transformers/{tmp_path}", 5, seed=0, pretrained=True).state_dict()
    key = "embeddings.word_embeddings.weight"
    assert torch.equal(loaded[f"model.bert.{key}"], source.state_dict()[key])
    assert not torch.equal(fresh[f"model.bert.{key}"], source.state_dict()[key])


def test_transformers_name_that_is_nowhere(monkeypatch):
    pytest.importorskip("transformers")

    def no_network(*_, **__):
        raise OSError("We couldn't connect to the hub.")

    monkeypatch.setattr("transformers.AutoConfig.from_pretrained", no_network)
    with pytest.raises(TstarError, match="needs a network connection or a local folder"):
        build("transformers/nobody/nothing", 3)


def test_padding_does_not_change_the_logits(tmp_path):
    """Against transformers itself with an explicit mask; columns of padding alone are left out."""
    pytest.importorskip("transformers")
    config = tiny_bert(vocab_size=50, num_hidden_layers=2, pad_token_id=3, initializer_range=0.5)
    config.save_pretrained(tmp_path)
    model = build(f"transformers/{tmp_path}", 5, seed=0).eval()
    generator = torch.Generator().manual_seed(0)
    lengths = torch.randint(1, 12, (150,), generator=generator)
    ids = torch.randint(4, 50, (150, 20), generator=generator)
    ids[torch.arange(20) >= lengths[:, None]] = 3
    mask = (torch.arange(20) < lengths[:, None]).long()
    with torch.no_grad():
        expected = model.model(input_ids=ids, attention_mask=mask).logits
        assert torch.allclose(model(ids), expected, atol=1e-5)
        assert torch.allclose(model(ids[:9, :12]), expected[:9], atol=1e-5)
        unmasked = model.model(input_ids=ids).logits
        assert not torch.allclose(unmasked, expected, atol=1e-3)
        nothing = torch.full((2, 4), 3)
        assert torch.isfinite(model(nothing)).all()
