"""transformers' Trainer on sequences: a small BERT that reads a digit as 16 tokens."""

import tempfile

import torch
import torch.nn.functional as F
from torch.utils.data import TensorDataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

import tstar
from digits import accuracy, data, show
from tstar.lab.callbacks.transformers import AdviceCallback


def tokens(images: torch.Tensor) -> torch.Tensor:
    """One token for 2×2 pixels: 3 + their grey level from 0 to 16 (0 to 2 are special tokens)."""
    return (F.avg_pool2d(images, 2).flatten(1) * 16).long() + 3


def run(advised: bool, samples: int, epochs: int) -> float:
    loader, held_out = data(samples)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=20, hidden_size=64, intermediate_size=128, num_hidden_layers=2,
        num_attention_heads=4, max_position_embeddings=16, num_labels=10,
    )  # fmt: skip
    model = BertForSequenceClassification(config)
    x, y = loader.dataset.tensors
    rows = [{"input_ids": i, "labels": label} for i, label in zip(tokens(x), y, strict=True)]
    with tempfile.TemporaryDirectory() as folder:
        args = TrainingArguments(
            folder, num_train_epochs=epochs, per_device_train_batch_size=32, learning_rate=1e-3,
            use_cpu=True, save_strategy="no", report_to="none", disable_tqdm=True,
            logging_strategy="no", dataloader_pin_memory=False,
        )  # fmt: skip
        callbacks = []
        if advised:
            advice = tstar.recommend(model, rows, args=args)
            print(advice)
            callbacks.append(AdviceCallback(advice))
        Trainer(model, args, train_dataset=rows, callbacks=callbacks).train()
        tstar.fold(model.eval()).save_pretrained(folder)
        plain = BertForSequenceClassification.from_pretrained(folder)  # knows nothing of tstar
    x, y = held_out.tensors
    return accuracy(plain, TensorDataset(tokens(x), y))


def main(samples: int = 1797, epochs: int = 10) -> tuple[float, float]:
    return run(False, samples, epochs), run(True, samples, epochs)


if __name__ == "__main__":
    show(*main())
