"""Pretrained networks for the fresh test, with a small stand-in for MiniLM's files."""

import pytest
import torch

pytest.importorskip("transformers")

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


def test_every_layer_of_minilm_is_trained(root):
    model = finetuning.minilm(3, 4, True)
    assert find_head(model).num_features == 16
    assert all(p.requires_grad for p in model.parameters())
