"""A decoder whose output layer has no bias: folded with one, saved, and loaded with tstar.load_folded.

packages: transformers
outcome: warns "gained a bias, which LlamaForSequenceClassification.from_pretrained drops"
slow: true
"""

import tempfile

import torch
import toy
from transformers import LlamaConfig, LlamaForSequenceClassification

import tstar

torch.manual_seed(0)
data = toy.tokens()
config = LlamaConfig(
    vocab_size=40, hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2, num_labels=3,
    pad_token_id=0,
)  # fmt: skip
model = tstar.temper(LlamaForSequenceClassification(config), 3.0)
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
for _ in range(6):
    for ids, labels in toy.loader(data):
        optimizer.zero_grad()
        model(input_ids=ids, labels=labels).loss.backward()
        optimizer.step()
assert toy.accuracy(model, data) > 0.9
plain = tstar.fold(model, allow_bias=True)
with tempfile.TemporaryDirectory() as folder:
    plain.save_pretrained(folder)
    loaded = tstar.load_folded(LlamaForSequenceClassification, folder).eval()
torch.testing.assert_close(loaded(data[0]).logits, model(data[0]).logits, rtol=1e-4, atol=1e-5)
