"""Texts as token ids, with a tokenizer that the tests make."""

import pytest
import torch

pytest.importorskip("sklearn")
pytest.importorskip("transformers")
pytest.importorskip("tokenizers")

import transformers

from tstar import TstarError
from tstar.lab.data import load, tokenize
from tstar.lab.training import Config
from tstar.lab.training.parts import make_parts

WORDS = ["[PAD]", "[UNK]", "red", "blue", "car", "cat", "dog"]
LINES = ["red car", "dog", "blue blue cat dog red", "unheard car"]


@pytest.fixture
def write_model(save_tokenizer):
    """Writes a configuration and a tokenizer: one token per word, numbered as in ``WORDS``."""

    def write(folder, padding=0):
        transformers.BertConfig(vocab_size=len(WORDS), pad_token_id=padding).save_pretrained(folder)
        save_tokenizer(folder, WORDS)
        return folder

    return write


@pytest.fixture
def data(tmp_path):
    lines = "label,text\n" + "".join(f"{i % 2},{text}\n" for i, text in enumerate(LINES))
    for part in ("train", "test"):
        (tmp_path / f"toy_{part}.csv").write_text(lines, encoding="utf-8")
    return load("toy", root=tmp_path)


def test_ids_of_the_models_tokenizer(tmp_path, data, write_model):
    tokens = tokenize(data, str(write_model(tmp_path / "model")))
    expected = [[2, 4, 0, 0, 0], [6, 0, 0, 0, 0], [3, 3, 5, 6, 2], [1, 4, 0, 0, 0]]
    assert tokens.domain == "tokens"
    assert tokens.x_train.tolist() == tokens.x_test.tolist() == expected
    assert torch.equal(tokens.y_train, data.y_train)
    assert tokens.classes == data.classes


def test_long_texts_are_cut(tmp_path, data, write_model):
    tokens = tokenize(data, str(write_model(tmp_path / "model")), limit=3)
    assert tokens.x_train.tolist() == [[2, 4, 0], [6, 0, 0], [3, 3, 5], [1, 4, 0]]


def test_the_padding_is_the_configurations(tmp_path, data, write_model):
    tokens = tokenize(data, str(write_model(tmp_path / "model", padding=1)))
    assert tokens.x_train[1].tolist() == [6, 1, 1, 1, 1]


def test_ids_reach_the_model_unchanged(tmp_path, data, write_model):
    tokens = tokenize(data, str(write_model(tmp_path / "model")))
    parts = make_parts(tokens, Config(val_fraction=0), seed=0)
    generator = torch.Generator().manual_seed(0)
    for batch in (parts.distorted(parts.x[:], generator), parts.ready(parts.x[:])):
        assert batch.dtype == torch.int64
        assert torch.equal(batch, tokens.x_train)


def test_texts_stay_with_their_samples(data):
    assert data.texts == (tuple(LINES), tuple(LINES))
    drawn = data.subset(2, 3)
    assert drawn.texts is not None
    for x, texts in ((drawn.x_train, drawn.texts[0]), (drawn.x_test, drawn.texts[1])):
        assert len(x) == len(texts)
        for row, text in zip(x, texts, strict=True):
            assert torch.equal(row, data.x_train[LINES.index(text)])
    swapped = data.regroup([[1], [0]], ["b", "a"], "swapped")
    assert swapped.texts == data.texts


def test_refused(tmp_path, data, write_model):
    with pytest.raises(TstarError, match="must name a padding token"):
        tokenize(data, str(write_model(tmp_path / "model", padding=None)))
    with pytest.raises(TstarError, match="must hold texts to be tokenized"):
        tokenize(load("digits"), str(tmp_path / "model"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(TstarError, match="must be the folder of a model with a tokenizer"):
        tokenize(data, str(tmp_path / "empty"))
