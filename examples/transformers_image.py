"""transformers' Trainer on images: a small ViT, tempered, trained, folded, saved and loaded as a plain ViT."""

import tempfile

import torch
from transformers import Trainer, TrainingArguments, ViTConfig, ViTForImageClassification

import tstar
from digits import accuracy, data
from tstar.lab.callbacks.transformers import TemperatureCallback


def rows(images: torch.Tensor, labels: torch.Tensor) -> list[dict[str, torch.Tensor]]:
    return [{"pixel_values": x, "labels": y} for x, y in zip(images, labels, strict=True)]


def main(samples: int = 1797, epochs: int = 5) -> float:
    train_set, held_out = data(samples)
    torch.manual_seed(0)
    config = ViTConfig(
        image_size=8, patch_size=2, num_channels=1, hidden_size=64, intermediate_size=128,
        num_hidden_layers=2, num_attention_heads=4, num_labels=10,
    )  # fmt: skip
    model = ViTForImageClassification(config)
    T = tstar.temperature(num_features=64, num_classes=10)
    model = tstar.temper(model, T)

    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder, num_train_epochs=epochs, per_device_train_batch_size=32, learning_rate=2e-3,
            use_cpu=True, save_strategy="no", report_to="none", disable_tqdm=True, logging_strategy="no",
            dataloader_pin_memory=False,
        )  # fmt: skip
        schedule = TemperatureCallback(tstar.Schedule.warmup(T, steps=10))
        trainer = Trainer(
            model, arguments, train_dataset=rows(*train_set.tensors), callbacks=[schedule]
        )
        trainer.train()

        tstar.fold(model.eval()).save_pretrained(folder)
        plain = ViTForImageClassification.from_pretrained(folder)  # knows nothing of tstar
    x = held_out.tensors[0]
    assert torch.allclose(plain.eval()(x).logits, model(x).logits, atol=1e-4)
    return accuracy(plain, held_out)


if __name__ == "__main__":
    print(f"accuracy {main():.3f}")
