"""Features of pretrained networks as data sets of vectors, for linear probes: the backbone is frozen, so it runs once.

    python benchmarks/pretrained_weights.py DATA_ROOT
    python -m research.frozen_features DATA_ROOT

MobileNetV2 (ImageNet, M = 1280) on images and MiniLM (sentences, M = 384, mean over tokens) on texts.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tstar.lab.data import DataSet, load, tokenize
from tstar.lab.data.files import write_npz

IMAGES = {"caltech101_96": 96, "flowers102_96": 96, "cifar10_32": 96, "gtsrb_32": 96}
TEXTS = ("banking77", "clinc150")
_PIXELS = torch.tensor(
    [[0.485, 0.456, 0.406], [0.229, 0.224, 0.225]]
)  # of ImageNet's training images
_MOST = (2500, 1500)  # samples of a data set, training and test


def mobilenet(root: Path) -> nn.Module:
    import torchvision

    model = torchvision.models.mobilenet_v2()
    state = torch.load(root / "mobilenet_v2.pt", map_location="cpu", weights_only=True)
    model.load_state_dict(state, strict=False)
    return nn.Sequential(model.features, nn.AdaptiveAvgPool2d(1), nn.Flatten()).eval()


def image_features(model: nn.Module, images: Tensor) -> Tensor:
    x = images.float() / (255 if images.dtype == torch.uint8 else 1)
    x = F.interpolate(x, size=96, mode="bilinear", antialias=True) if x.shape[-1] != 96 else x
    mean, std = (row[:, None, None] for row in _PIXELS)
    features: Tensor = model((x - mean) / std)
    return features


def text_features(folder: Path, data: DataSet) -> DataSet:
    from transformers import AutoModel

    model = AutoModel.from_pretrained(folder).eval()
    tokens = tokenize(data, str(folder))

    def run(ids: Tensor) -> Tensor:
        mask = (ids != 0).long()
        states = model(ids, attention_mask=mask).last_hidden_state
        mean: Tensor = (states * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
        return mean

    return _mapped(tokens, run)


def _mapped(data: DataSet, run: object) -> DataSet:
    def all_of(x: Tensor) -> Tensor:
        return torch.cat([run(part) for part in x.split(64)])  # type: ignore[operator]

    with torch.inference_mode():
        x, x_test = all_of(data.x_train), all_of(data.x_test)
    # As hashed texts are: vectors that reach the model as they are, where others are standardized.
    return replace(data, x_train=x, x_test=x_test, domain="text", texts=None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", type=Path)
    root: Path = parser.parse_args().root
    torch.set_num_threads(1)
    model = mobilenet(root)
    for name in IMAGES:
        data = load(name, root=str(root))
        data = data.subset(min(_MOST[0], len(data.y_train)), min(_MOST[1], len(data.y_test)))
        made = _mapped(data, lambda x: image_features(model, x))
        write_npz(made, root / f"mobilenet_{name.partition('_')[0]}.npz")
        print(name, tuple(made.x_train.shape), flush=True)
    for name in TEXTS:
        data = load(name, root=str(root)).subset(_MOST[0], _MOST[1])
        made = text_features(root / "minilm", data)
        write_npz(made, root / f"minilm_{name}.npz")
        print(name, tuple(made.x_train.shape), flush=True)


if __name__ == "__main__":
    main()
