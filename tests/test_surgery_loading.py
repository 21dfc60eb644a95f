"""A folded model is loaded with the bias that folding added."""

import warnings

import pytest
import torch
from torch import nn

import tstar

hf = pytest.importorskip("transformers")


pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


IDS = torch.randint(3, 60, (4, 9), generator=torch.Generator().manual_seed(0))


TINY = {
    "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
    "num_labels": 5, "vocab_size": 64, "max_position_embeddings": 32, "pad_token_id": 0,
}  # fmt: skip


LORA = {"r": 2, "target_modules": r".*(q_proj|v_proj|query|value)", "init_lora_weights": False}


def llama():
    torch.manual_seed(0)
    return hf.LlamaForSequenceClassification(hf.LlamaConfig(**TINY, num_key_value_heads=2))


def bert():
    torch.manual_seed(0)
    return hf.BertForSequenceClassification(hf.BertConfig(**TINY))


def trained(model):
    """After a few steps that move the running mean, γ and β away from what they start at."""
    model.train()
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.5)
    for _ in range(3):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(input_ids=IDS).logits, torch.arange(4)).backward()
        optimizer.step()
    return model.eval()


def logits(model):
    with torch.no_grad():
        return model(input_ids=IDS).logits


def same(a, b):
    return torch.allclose(a, b, rtol=1e-4, atol=1e-6)


@pytest.fixture
def saved(tmp_path):
    """The tempered logits of a Llama whose head gained a bias, and the folder that it was saved in."""
    model = trained(tstar.temper(llama(), 4.0))
    with pytest.warns(
        tstar.TstarWarning, match=r"'score' gained a bias.*tstar\.load_folded\(Llama"
    ):
        folded = tstar.fold(model, allow_bias=True)
    folded.save_pretrained(tmp_path)
    return logits(model), tmp_path


def test_from_pretrained_alone_gives_other_logits(saved):
    """The hazard that the warning speaks of. If this fails, transformers has learnt to load the bias."""
    expected, folder = saved
    plain = hf.LlamaForSequenceClassification.from_pretrained(folder).eval()
    assert not same(logits(plain), expected)


@pytest.mark.parametrize(
    "name", ["LlamaForSequenceClassification", "AutoModelForSequenceClassification"]
)
def test_load_folded_gives_the_tempered_logits(saved, name):
    expected, folder = saved
    model = tstar.load_folded(getattr(hf, name), folder).eval()
    assert type(model) is hf.LlamaForSequenceClassification
    assert model.score.bias.requires_grad
    assert same(logits(model), expected)


def test_a_head_with_a_bias_gives_no_warning_and_loads_as_ever(tmp_path):
    model = trained(tstar.temper(bert(), 4.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error", tstar.TstarWarning)
        tstar.fold(model, allow_bias=True).save_pretrained(tmp_path)
    loaded = tstar.load_folded(hf.BertForSequenceClassification, tmp_path).eval()
    assert same(logits(loaded), logits(model))
    assert list(loaded.state_dict()) == list(bert().state_dict())


def test_without_allow_bias_it_is_refused():
    with pytest.raises(tstar.TstarError, match="allow_bias=True"):
        tstar.fold(trained(tstar.temper(llama(), 4.0)))


def test_what_is_not_a_folder_of_tensors_is_refused(tmp_path):
    with pytest.raises(tstar.TstarError, match="snapshot_download"):
        tstar.load_folded(hf.LlamaForSequenceClassification, "meta-llama/none")
    with pytest.raises(tstar.TstarError, match=r"load_folded\(\) failed in your model or folder"):
        tstar.load_folded(hf.LlamaForSequenceClassification, tmp_path)


def test_a_tempered_folder_is_refused_and_folded_on_the_command_line(tmp_path):
    """A trainer saves the tempered model; the class alone would start its head anew."""
    from typer.testing import CliRunner

    from tstar.lab.cli import app as program
    from tstar.lab.cli import fold_commands  # noqa: F401  registers the command

    model = trained(tstar.temper(llama(), 4.0))
    model.save_pretrained(tmp_path)
    with pytest.raises(tstar.TstarError, match="'tstar fold'"):
        tstar.load_folded(hf.LlamaForSequenceClassification, tmp_path)
    file = str(tmp_path / "model.safetensors")
    done = CliRunner().invoke(program.app, ["fold", file, "-o", file, "--force", "--allow-bias"])
    assert "load with tstar.load_folded" in done.output.replace("\n", " ")
    loaded = tstar.load_folded(hf.LlamaForSequenceClassification, tmp_path).eval()
    assert same(logits(loaded), logits(model))


@pytest.mark.parametrize("base", [llama, bert])
@pytest.mark.parametrize("first", ["temper", "adapter"])
def test_an_adapter_is_merged_before_or_after_folding(base, first, tmp_path):
    peft = pytest.importorskip("peft")
    config = peft.LoraConfig(task_type="SEQ_CLS", **LORA)
    if first == "temper":
        model = peft.get_peft_model(tstar.temper(base(), 4.0), config)
    else:
        model = tstar.temper(peft.get_peft_model(base(), config), 4.0)
    expected = logits(trained(model))
    bare = base is llama
    plain_keys = {*base().state_dict(), *(["score.bias"] if bare else [])}
    with warnings.catch_warnings():
        warnings.simplefilter("error", tstar.TstarWarning)
        if bare:
            warnings.filterwarnings(
                "ignore", "The output layer .* gained a bias", tstar.TstarWarning
            )
        fold_first = tstar.fold(model, allow_bias=bare).merge_and_unload()
        merge_first = tstar.fold(model.merge_and_unload(), allow_bias=bare)
    for plain in (fold_first, merge_first):
        assert type(plain) is type(base())
        assert set(plain.state_dict()) == plain_keys
        assert same(logits(plain), expected)
    merge_first.save_pretrained(tmp_path)
    assert same(logits(tstar.load_folded(type(merge_first), tmp_path).eval()), expected)


def test_a_folded_adapter_with_a_new_bias_is_told_to_merge_first():
    peft = pytest.importorskip("peft")
    adapted = peft.get_peft_model(llama(), peft.LoraConfig(task_type="SEQ_CLS", **LORA))
    model = trained(tstar.temper(adapted, 4.0))
    with pytest.warns(tstar.TstarWarning, match="merge_and_unload"):
        tstar.fold(model, allow_bias=True)
