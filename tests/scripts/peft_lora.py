"""LoRA with a task type: the head is trained whole, saved with its statistics and T, merged and folded.

packages: transformers, peft
outcome: folds
slow: true
"""

import tempfile

import torch
import toy
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import BertConfig, BertForSequenceClassification

import tstar


def base():
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=40,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_labels=3,
    )
    return tstar.temper(BertForSequenceClassification(config), 3.0)


data = toy.tokens()
adapted = get_peft_model(
    base(), LoraConfig(task_type="SEQ_CLS", r=4, target_modules=["query", "value"])
)
optimizer = torch.optim.AdamW([p for p in adapted.parameters() if p.requires_grad], lr=1e-2)
for _ in range(10):
    for ids, labels in toy.loader(data):
        optimizer.zero_grad()
        adapted(input_ids=ids, labels=labels).loss.backward()
        optimizer.step()
with tempfile.TemporaryDirectory() as folder:
    adapted.save_pretrained(folder)
    loaded = PeftModel.from_pretrained(base(), folder)
model = loaded.merge_and_unload().eval()
accuracy, x = toy.accuracy(model, data), data[0]
assert torch.allclose(model(x).logits, adapted.eval()(x).logits, atol=1e-5)
plain = tstar.fold(model)
