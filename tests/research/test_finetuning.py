"""Pretrained networks for the second atlas, with a small stand-in for MiniLM's files."""

import pytest
import torch

pytest.importorskip("transformers")
pytest.importorskip("peft")

import transformers

from research import finetuning
from tests.networks import tiny_bert
from tstar.output_layer import find_head

WORDS = ["[PAD]", "[UNK]", *"abcdefgh"]


@pytest.fixture
def root(tmp_path, save_tokenizer, monkeypatch):
    for part in ("train", "test"):
        lines = "".join(f"{i % 3},{'a b c d '[: 2 * (1 + i % 4)]}\n" for i in range(40))
        (tmp_path / f"banking77_{part}.csv").write_text("label,text\n" + lines, encoding="utf-8")
    config = tiny_bert(vocab_size=len(WORDS), num_hidden_layers=2, max_position_embeddings=32)
    transformers.BertModel(config).save_pretrained(tmp_path / "minilm")
    save_tokenizer(tmp_path / "minilm", WORDS)
    monkeypatch.setenv("TSTAR_DATA", str(tmp_path))
    return tmp_path


def test_texts_become_few_tokens(root, monkeypatch):
    monkeypatch.setattr(finetuning, "MOST", (24, 12))
    data = finetuning.banking77(str(root), 3)
    assert data.x_train.shape == (24, 3)
    assert data.x_test.shape == (12, 3)
    assert data.num_classes == 3
    assert torch.equal(data.x_train, finetuning.banking77(str(root), 3).x_train)


def test_lora_trains_the_head_and_few_numbers_beside_it(root):
    model = finetuning.minilm_lora(3, 4, True)
    trained = {name for name, p in model.named_parameters() if p.requires_grad}
    assert {name.split(".")[-2] for name in trained if "lora" in name} == {"default"}
    head = {name for name in trained if "lora" not in name}
    assert {name.rpartition(".")[2] for name in head} == {"weight", "bias"}
    assert find_head(model).num_features == 16
    ids = torch.tensor([[2, 3, 0], [4, 5, 6]])
    model(ids).sum().backward()
    untrained = [p for p in model.parameters() if not p.requires_grad]
    assert untrained
    assert all(p.grad is None for p in untrained)


def test_every_layer_of_minilm_is_trained(root):
    assert all(p.requires_grad for p in finetuning.minilm(3, 4, True).parameters())
