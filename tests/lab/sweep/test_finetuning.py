"""Fine-tuning in a sweep: a transformer on texts, from a folder below the data root, and joined sets."""

from dataclasses import replace

import numpy as np
import pytest
import torch

pytest.importorskip("sklearn")
pytest.importorskip("transformers")
pytest.importorskip("tokenizers")

import transformers

from tests.networks import tiny_bert
from tstar.errors import TstarError
from tstar.lab.sweep import execute
from tstar.lab.sweep.plan import make_plan, measure_step
from tstar.lab.sweep.study import parse_study
from tstar.output_layer import tempered_heads

WORDS = ["[PAD]", "[UNK]", *"abcdefgh"]
STUDY = """
csg = false
[training]
steps = 12
batch_size = 8
scenario = "finetune"
weights = "default"
[[grid]]
dataset = "toy"
model = "transformers/tiny"
optimizer = "adamw"
lr = 0.01
norm = ["batch", "none"]
temperature = 2
"""


@pytest.fixture
def root(tmp_path, save_tokenizer):
    """Texts of two classes that only the order of the letters tells apart, and a tiny BERT."""
    rng = np.random.default_rng(0)
    for part, count in (("train", 60), ("test", 20)):
        lines = [
            f"{i % 2},{' '.join([*rng.choice(list('efgh'), 1 + i % 3), *'abcd'[:: 1 - 2 * (i % 2)]])}"
            for i in range(count)
        ]
        (tmp_path / f"toy_{part}.csv").write_text(
            "label,text\n" + "\n".join(lines), encoding="utf-8"
        )
    folder = tmp_path / "tiny"
    config = tiny_bert(vocab_size=len(WORDS), max_position_embeddings=16)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        transformers.BertModel(config).save_pretrained(folder)
    save_tokenizer(folder, WORDS)
    return tmp_path


def test_a_transformer_is_planned_timed_and_tuned(root):
    plan = make_plan(parse_study(STUDY), None, data_root=str(root))
    assert len(plan.todo) == 2
    assert measure_step(plan.todo[0], str(root), "cpu") > 0
    for spec in plan.todo:
        outcome = execute.execute(execute.Job(spec, str(root)))
        values = outcome.values
        assert outcome.status == "done", values.get("error")
        assert (values["num_features"], values["num_classes"]) == (16, 2)
        assert (values["domain"], values["temperature"], values["norm"]) == ("text", 2, spec.norm)
        # Dropout is on: the same spec still gives the same numbers.
        again = execute.execute(execute.Job(spec, str(root))).values
        for name in ("val_accuracy", "test_accuracy", "train_loss", "nll"):
            assert values[name] == again[name]


def test_vectors_and_tokens_are_of_the_same_data(root):
    """One checksum and one csg a data set: the run's own view of it does not matter."""
    spec = parse_study(STUDY).specs[0]
    data = execute.load_data(execute.DataKey("toy"), str(root))
    tokens = execute.inputs_for(spec, data, str(root))
    assert (data.domain, tokens.domain) == ("text", "tokens")
    assert execute.inputs_for(replace(spec, model="mlp"), data, str(root)) is data
    plan = make_plan(parse_study(STUDY), None, data_root=str(root))
    assert {s.data_checksum for s in plan.specs} == {data.checksum()}


def test_the_weights_are_those_of_the_folder(root):
    spec = parse_study(STUDY).specs[0]
    data = execute.load_data(execute.DataKey("toy"), str(root))
    saved = transformers.BertModel.from_pretrained(root / "tiny").state_dict()
    key = "embeddings.word_embeddings.weight"
    tuned = execute.build_model(spec, data, str(root)).state_dict()
    fresh = execute.build_model(replace(spec, weights=None, scenario="scratch"), data, str(root))
    assert torch.equal(tuned[f"model.bert.{key}"], saved[key])
    assert not torch.equal(fresh.state_dict()[f"model.bert.{key}"], saved[key])
    assert not tempered_heads(fresh)


@pytest.mark.parametrize("path", ["/somewhere/tiny", "../tiny", "C:/tiny"])
def test_machine_paths_are_refused(root, path):
    with pytest.raises(TstarError, match="model must be a name or a path below the data root"):
        make_plan(parse_study(STUDY.replace("tiny", path)), None, data_root=str(root))
    with pytest.raises(TstarError, match="dataset must be a name or a path below the data root"):
        execute.load_data(execute.DataKey(path), str(root))
