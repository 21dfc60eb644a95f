"""transformers' Trainer on text, with a saved checkpoint that the plain class loads after folding.

packages: transformers, accelerate
outcome: folds
slow: true
"""

import tempfile

import toy
from transformers import BertForSequenceClassification, Trainer, TrainingArguments

import tstar
from tstar.lab.callbacks.transformers import TemperatureCallback

data = toy.tokens()
model = tstar.temper(toy.bert(), 3.0)
rows = [{"input_ids": ids, "labels": int(label)} for ids, label in zip(*data, strict=True)]
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        folder, num_train_epochs=8, per_device_train_batch_size=16, learning_rate=3e-3, use_cpu=True,
        report_to="none", disable_tqdm=True, save_strategy="no", dataloader_pin_memory=False,
    )  # fmt: skip
    schedule = TemperatureCallback(tstar.Schedule.warmup(3.0, steps=10))
    Trainer(model, arguments, train_dataset=rows, callbacks=[schedule]).train()
    accuracy, x = toy.accuracy(model, data), data[0]
    plain = tstar.fold(model)
    plain.save_pretrained(folder)
    plain = BertForSequenceClassification.from_pretrained(folder).eval()
