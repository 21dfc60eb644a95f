"""LoRA with a task type: the head is trained whole, saved with its statistics and T, merged and folded.

packages: transformers, peft
outcome: folds
slow: true
"""

import tempfile

import torch
import toy
from peft import LoraConfig, PeftModel, get_peft_model

import tstar

data = toy.tokens()
lora = LoraConfig(task_type="SEQ_CLS", r=4, target_modules=["query", "value"])
adapted = get_peft_model(tstar.temper(toy.bert(), 3.0), lora)
optimizer = torch.optim.AdamW([p for p in adapted.parameters() if p.requires_grad], lr=1e-2)
for _ in range(10):
    for ids, labels in toy.loader(data):
        optimizer.zero_grad()
        adapted(input_ids=ids, labels=labels).loss.backward()
        optimizer.step()
with tempfile.TemporaryDirectory() as folder:
    adapted.save_pretrained(folder)
    loaded = PeftModel.from_pretrained(tstar.temper(toy.bert(), 3.0), folder)
model = loaded.merge_and_unload().eval()
accuracy, x = toy.accuracy(model, data), data[0]
assert torch.allclose(model(x).logits, adapted.eval()(x).logits, atol=1e-5)
plain = tstar.fold(model)
