"""The classifiers of transformers, each built from a config that was shrunk by general rules."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import nn

from coverage_contract import CLASSES
from coverage_models import NotBuilt, first_that_runs

TASKS = {
    "image": "MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES",
    "sequence": "MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES",
    "token": "MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING_NAMES",
    "audio": "MODEL_FOR_AUDIO_CLASSIFICATION_MAPPING_NAMES",
}
# What a size is called in the configs, and how small it can be. The first rule that builds a model counts.
LAYERS = dict.fromkeys(
    [
        "num_hidden_layers",
        "num_layers",
        "n_layer",
        "n_layers",
        "encoder_layers",
        "decoder_layers",
        "num_encoder_layers",
        "num_decoder_layers",
        "n_encoder_layers",
        "num_block_layers",
        "depth",
    ],
    2,
)
VOCABULARY = {
    "vocab_size": 128, "vocab_size_per_layer_input": 128, "entity_vocab_size": 16,
    "max_2d_position_embeddings": 1024, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
WIDTHS = {
    **dict.fromkeys(["hidden_size", "d_model", "n_embd", "dim", "emb_dim", "embed_dim", "word_embed_proj_dim", "embedding_size", "model_dim", "rnn_hidden_size", "output_hidden_size"], 32),
    **dict.fromkeys(["num_attention_heads", "n_head", "n_heads", "encoder_attention_heads", "decoder_attention_heads", "num_heads", "encoder_num_attention_heads"], 4),
    **dict.fromkeys(["num_key_value_heads", "num_kv_heads"], 2),
    **dict.fromkeys(["intermediate_size", "ffn_dim", "d_ff", "encoder_ffn_dim", "decoder_ffn_dim", "n_inner", "d_inner", "moe_intermediate_size", "shared_expert_intermediate_size", "ffn_hidden_size"], 64),
    **dict.fromkeys(["head_dim", "d_kv", "d_head", "attention_head_size", "rotary_dim"], 8),
    "depth_coefficient": 0.5,
    "d_latents": 32, "num_latents": 8, "num_self_attends_per_block": 1, "num_self_attention_heads": 4,
    "num_cross_attention_heads": 4, "num_experts": 4, "num_local_experts": 4, "n_routed_experts": 4, "n_group": 1, "topk_group": 1, "num_experts_per_tok": 2,
    "q_lora_rank": 16, "kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 8,
    "max_position_embeddings": 512, "n_positions": 512, "classifier_proj_size": 24,
    "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 2, "image_size": 32, "patch_size": 8,
}  # fmt: skip
RULES = (
    LAYERS | VOCABULARY | WIDTHS,
    LAYERS | VOCABULARY | {k: v for k, v in WIDTHS.items() if k not in ("image_size", "patch_size", "head_dim")},
    VOCABULARY | WIDTHS,
    LAYERS | VOCABULARY,
    LAYERS,
    {},
)  # fmt: skip
# What a few configs want besides: sizes that must agree with others.
PARTICULAR: dict[str, dict[str, Any]] = {
    "esmc": {"num_key_value_heads": 4},  # no grouped queries
    "cohere_compass_text": {
        "rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 1e4}},
    },
    "reformer": {
        "axial_pos_embds_dim": [16, 16], "axial_pos_shape": [4, 4], "attn_layers": ["local", "lsh"],
        "local_attn_chunk_length": 4, "lsh_attn_chunk_length": 4, "feed_forward_size": 64, "num_buckets": 2,
    },
}  # fmt: skip
LARGEST = 100_000_000  # parameters that still count as tiny enough to build on this machine


def transformers_names() -> list[str]:
    """task/model_type of every entry in the library's own mappings."""
    from transformers.models.auto import modeling_auto

    return [
        f"{task}/{kind}" for task, name in TASKS.items() for kind in getattr(modeling_auto, name)
    ]


def transformers_model(name: str) -> tuple[nn.Module, Any, int | None]:
    from transformers import (
        AutoModelForAudioClassification,
        AutoModelForImageClassification,
        AutoModelForSequenceClassification,
        AutoModelForTokenClassification,
    )

    auto = {
        "image": AutoModelForImageClassification,
        "sequence": AutoModelForSequenceClassification,
        "token": AutoModelForTokenClassification,
        "audio": AutoModelForAudioClassification,
    }
    task, _, kind = name.partition("/")
    reasons = []
    for rule in RULES:
        try:
            config = shrunk(kind, rule)
            with torch.device("meta"):
                size = sum(p.numel() for p in auto[task].from_config(config).parameters())
            if size > LARGEST:
                reasons.append(f"{size / 1e6:.0f} M parameters")
                continue
            model = auto[task].from_config(config).float()
            return model, first_that_runs(model, [lambda i=i: i for i in inputs(model, task)]), None
        except Exception as error:
            reasons.append(f"{type(error).__name__}: {error}"[:120])
    raise NotBuilt(" | ".join(reasons))


def shrunk(kind: str, rule: dict[str, float]) -> Any:
    """The default config of a model type with the sizes that a rule names, in its parts as well."""
    from transformers import AutoConfig

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        default = AutoConfig.for_model(kind)
        values = sizes(default, rule) | PARTICULAR.get(kind, {})
        config = type(default)(**values, num_labels=CLASSES)
    if config.is_encoder_decoder and getattr(config, "decoder_start_token_id", None) is None:
        config.decoder_start_token_id = 0
    config.architectures = config.architectures or []  # asked for where a type has two classifiers
    if getattr(config, "languages", None) and hasattr(config, "default_language"):
        config.default_language = config.languages[0]
    return config


def sizes(config: Any, rule: dict[str, float]) -> dict[str, Any]:
    settable = config.to_dict() | dict.fromkeys(config.attribute_map, 0)
    values: dict[str, Any] = {
        k: v for k, v in rule.items() if k in settable and not isinstance(settable[k], list | tuple)
    }
    mapped = {config.attribute_map.get(k) for k in values}
    values = {k: v for k, v in values.items() if k not in mapped}
    layers = next((values[k] for k in LAYERS if k in values), None)
    for key in ("layer_types", "mlp_layer_types", "layers_block_type"):
        kinds = settable.get(key)
        if layers and isinstance(kinds, list) and len(kinds) > layers:
            last = "full_attention" if "full_attention" in kinds else kinds[-1]
            values[key] = [*kinds[: layers - 1], last]
    if "kv_lora_rank" in settable and "num_key_value_heads" in values:
        values["num_key_value_heads"] = values[
            "num_attention_heads"
        ]  # latent attention has no groups
    for key in getattr(config, "sub_configs", {}):
        part = getattr(config, key, None)
        if part is not None:
            values[key] = part.to_dict() | sizes(part, rule)
    return values


def inputs(model: nn.Module, task: str) -> list[dict[str, torch.Tensor]]:
    """Two samples in the shapes that the task's models take."""
    config: Any = model.config
    if task in ("sequence", "token") or model.main_input_name == "input_ids":
        ids = torch.randint(3, 100, (2, 16))
        end = getattr(config, "eos_token_id", None)
        ids[:, -1] = end if isinstance(end, int) else 2  # BART and its kin classify there
        boxes = torch.zeros(2, 16, 4, dtype=torch.long)
        more = [{}, {"bbox": boxes}, {"decoder_input_ids": ids}]
        return [{"input_ids": ids} | extra for extra in more]
    if task == "image":
        size = getattr(config, "image_size", None) or 64
        shapes = [size if isinstance(size, list | tuple) else (size, size), (64, 64), (224, 224)]
        channels = getattr(config, "num_channels", 3)
        maps = [{"pixel_values": torch.randn(2, channels, *shape)} for shape in shapes]
        patch = getattr(getattr(config, "vision_config", None), "patch_size", None) or 1
        patches = {
            "pixel_values": torch.randn(2, 16, channels * patch**2),
            "pixel_attention_mask": torch.ones(2, 16),
            "spatial_shapes": torch.full((2, 2), 4),
        }
        return [*maps, patches]
    name = str(model.main_input_name)
    mels = getattr(config, "num_mel_bins", None) or 80
    bands = getattr(config, "feature_projection_input_dim", None) or mels
    frames = getattr(config, "max_length", None) or 1024
    positions = 2 * (getattr(config, "max_source_positions", None) or 1500)
    shapes = [
        (2, 4000),
        (2, mels, positions),
        (2, frames, mels),
        (2, 1, frames, mels),
        (2, 1, 1001, 64),
        (2, 100, bands),
    ]
    return [{name: torch.randn(shape)} for shape in shapes]
