"""What goes to a hub comes back: tempered and folded models, saved and loaded as users do, offline."""

from pathlib import Path

import pytest
import torch
from torch import nn

import tstar


def of_transformers():
    hf = pytest.importorskip("transformers")
    sizes = {"vocab_size": 64, "hidden_size": 16, "intermediate_size": 32, "num_labels": 6}
    config = hf.BertConfig(**sizes, num_hidden_layers=1, num_attention_heads=2)
    return hf.BertForSequenceClassification(config)


def of_timm():
    return pytest.importorskip("timm").create_model("test_resnet", num_classes=6)


def save(model: nn.Module, folder: Path) -> None:
    if hasattr(model, "save_pretrained"):
        model.save_pretrained(folder)
    else:
        hub = pytest.importorskip("timm.models")
        hub.save_for_hf(model, str(folder), model_config={}, safe_serialization=True)


def load_plain(model: nn.Module, folder: Path) -> nn.Module:
    """With the library's own reader."""
    if hasattr(model, "from_pretrained"):
        return type(model).from_pretrained(folder)
    pytest.importorskip("timm.models").load_checkpoint(model, str(folder / "model.safetensors"))
    return model


def logits(model: nn.Module) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    if hasattr(model, "save_pretrained"):
        return model(torch.randint(1, 64, (6, 9), generator=generator)).logits
    return model(torch.randn(6, 3, 32, 32, generator=generator))


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("build", [of_transformers, of_timm])
def test_tempered_and_folded_models_round_trip(build, tmp_path):
    torch.manual_seed(0)
    model = tstar.temper(build(), 4.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        nn.functional.cross_entropy(logits(model.train()), torch.arange(6)).backward()
        optimizer.step()
    expected = logits(model.eval()).detach()
    save(model, tmp_path / "tempered")
    loaded = tstar.temper(build(), 2.0)
    weights = pytest.importorskip("safetensors.torch").load_file
    loaded.load_state_dict(weights(tmp_path / "tempered" / "model.safetensors"))
    assert torch.equal(logits(loaded.eval()), expected)
    assert (logits(build().eval()) - expected).abs().max() > 0.01  # another initialization differs
    save(tstar.fold(model), tmp_path / "folded")
    plain = load_plain(build(), tmp_path / "folded")
    torch.testing.assert_close(logits(plain.eval()), expected, rtol=1e-4, atol=1e-5)
