"""The M of every listed model is the model's own."""

import json

import pytest
import torch
from torch.torch_version import TorchVersion

from research.catalogue import NAMES, PATH, measure

LISTED = {
    (group["library"], model["name"]): model["features"]
    for group in json.loads(PATH.read_text(encoding="utf-8"))
    for model in group["models"]
}
# One of each family, of those that are quick to build; the rest with the slow tests.
QUICK = {
    *("alexnet", "convnext_tiny", "mobilenet_v2", "mnasnet1_0", "resnet18", "resnet50"),
    *("shufflenet_v2_x2_0", "squeezenet1_1", "vgg16", "vit_b_16", "regnet_y_8gf", "inception_v3"),
    *("vit_tiny_patch16_224", "resnet10t", "distilbert", "electra"),
}
NEEDS = {"torchvision": "torchvision", "timm": "timm", "transformers": "transformers"}


def test_the_file_lists_the_names_of_the_code():
    assert list(LISTED) == [(library, name) for library, names in NAMES.items() for name in names]


@pytest.mark.parametrize(
    ("library", "name"),
    [
        pytest.param(*key, marks=() if key[1] in QUICK else pytest.mark.slow, id="/".join(key))
        for key in LISTED
    ],
)
def test_features_are_those_of_the_model(library, name):
    pytest.importorskip(NEEDS[library])
    pytest.importorskip("torchvision")
    if torch.__version__ < TorchVersion("2.9"):
        pytest.skip(
            "the list is made with the newest versions; with older ones some models cannot be built on meta"
        )
    assert measure(library, name) == LISTED[library, name]
