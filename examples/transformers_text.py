"""transformers' Trainer on sequences: a small BERT that reads a digit's 64 pixels as 64 tokens."""

import tempfile

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

import tstar
from digits import data


def tokens(images: torch.Tensor) -> torch.Tensor:
    """One token a pixel: 3 + its grey level from 0 to 16 (0 to 2 are special tokens)."""
    return (images.flatten(1) * 16).long() + 3


def main(samples: int = 1797, epochs: int = 5) -> float:
    train_set, held_out = data(samples)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=20, hidden_size=64, intermediate_size=128, num_hidden_layers=2,
        num_attention_heads=4, max_position_embeddings=64, num_labels=10,
    )  # fmt: skip
    model = BertForSequenceClassification(config)
    model = tstar.temper(model, tstar.temperature(num_features=64, num_classes=10))
    x, y = train_set.tensors
    rows = [{"input_ids": i, "labels": label} for i, label in zip(tokens(x), y, strict=True)]

    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder, num_train_epochs=epochs, per_device_train_batch_size=32, learning_rate=2e-3,
            use_cpu=True, save_strategy="no", report_to="none", disable_tqdm=True, logging_strategy="no",
            dataloader_pin_memory=False,
        )  # fmt: skip
        Trainer(model, arguments, train_dataset=rows).train()
        tstar.fold(model.eval()).save_pretrained(folder)
        plain = BertForSequenceClassification.from_pretrained(folder).eval()

    x, y = held_out.tensors
    with torch.no_grad():
        logits = plain(tokens(x)).logits
        assert torch.allclose(logits, model(tokens(x)).logits, atol=1e-4)
    return (logits.argmax(-1) == y).float().mean().item()


if __name__ == "__main__":
    print(f"accuracy {main():.3f}")
