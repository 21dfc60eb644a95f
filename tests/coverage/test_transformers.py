"""transformers' classifiers from tiny configs: text, tokens, images, sound; with and without a head's bias."""

from typing import ClassVar

import pytest
import torch

from .contract import CLASSES, Contract

hf = pytest.importorskip("transformers")

SMALL = {
    "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
    "num_labels": CLASSES,
}  # fmt: skip
TEXT = SMALL | {"vocab_size": 64, "max_position_embeddings": 32, "pad_token_id": 0}


def ids():
    generator = torch.Generator().manual_seed(0)
    return {"input_ids": torch.randint(3, 60, (4, 9), generator=generator)}


def pixels():
    return {"pixel_values": torch.randn(4, 3, 16, 16, generator=torch.Generator().manual_seed(0))}


def sound():
    return {"input_values": torch.randn(4, 800, generator=torch.Generator().manual_seed(0))}


def bert(kind="BertForSequenceClassification"):
    return lambda: getattr(hf, kind)(hf.BertConfig(**TEXT))


def llama():
    return hf.LlamaForSequenceClassification(hf.LlamaConfig(**TEXT, num_key_value_heads=2))


def vit():
    return hf.ViTForImageClassification(hf.ViTConfig(**SMALL, image_size=16, patch_size=8))


def siglip2():
    """Takes images already cut into patches."""
    parts = {k: v for k, v in SMALL.items() if k != "num_labels"}
    vision = parts | {"num_patches": 16, "patch_size": 4}
    config = hf.Siglip2Config(
        text_config=parts | {"vocab_size": 64}, vision_config=vision, num_labels=CLASSES
    )
    return hf.Siglip2ForImageClassification(config)


def patches():
    values = torch.randn(4, 16, 48, generator=torch.Generator().manual_seed(0))
    shapes = torch.full((4, 2), 4)
    return {
        "pixel_values": values,
        "pixel_attention_mask": torch.ones(4, 16, dtype=torch.long),
        "spatial_shapes": shapes,
    }


def resnet():
    config = hf.ResNetConfig(
        embedding_size=8,
        hidden_sizes=[8, 16],
        depths=[1, 1],
        layer_type="basic",
        num_labels=CLASSES,
    )
    return hf.ResNetForImageClassification(config)


def wav2vec2():
    config = hf.Wav2Vec2Config(
        **SMALL, conv_dim=(8, 8), conv_stride=(5, 2), conv_kernel=(10, 3), num_conv_pos_embeddings=4,
        num_conv_pos_embedding_groups=2, classifier_proj_size=12, vocab_size=32, mask_time_prob=0.0,
    )  # fmt: skip
    return hf.Wav2Vec2ForSequenceClassification(config)


def lora():
    peft = pytest.importorskip("peft")
    config = peft.LoraConfig(task_type="SEQ_CLS", r=2, target_modules=["query", "value"])
    return peft.get_peft_model(bert()(), config)


@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore:The output layer 'score' gained"
)
class TestTransformers(Contract):
    cases: ClassVar = {
        "bert": (bert(), ids, "classifier", 16),
        "bert, tokens": (bert("BertForTokenClassification"), ids, "classifier", 16),
        "llama, no bias": (llama, ids, "score", 16),
        "vit": (vit, pixels, "classifier", 16),
        "siglip2, patches": (siglip2, patches, "classifier", 16),
        "resnet": (resnet, pixels, "classifier.1", 16),
        "wav2vec2": (wav2vec2, sound, "classifier", 12),
        "bert with LoRA": (
            lora, ids, "base_model.model.classifier.modules_to_save.default", 16,
        ),
    }  # fmt: skip
