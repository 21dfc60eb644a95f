"""Inputs that models of known libraries take."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

import tstar
from tstar import TemperedHead, TstarError
from tstar.surgery.example_inputs import standard_inputs


def test_a_model_that_takes_no_standard_input_asks_for_one():
    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(6, 4)

        def forward(self, x, mask, key):
            if mask.any() and key == 3:
                return self.fc(x)
            raise ValueError

    with pytest.raises(TstarError, match="pass example_input"):
        tstar.find_head(Odd())
    assert tstar.find_head(Odd(), (torch.randn(2, 6), torch.ones(1), 3)).path == "fc"
    assert isinstance(tstar.temper(Odd(), 2.0, head="fc").fc, TemperedHead)


def shapes(model):
    """The shape of each input, or of each of its parts by name."""
    return [
        {name: tuple(part.shape) for name, part in one.items()}
        if isinstance(one, dict)
        else tuple(one.shape)
        for one in standard_inputs(model)
    ]


@pytest.mark.parametrize(
    ("layer", "wanted"),
    [
        (nn.Linear(6, 4), [(2, 6), (2, 8, 6)]),
        (nn.Conv1d(3, 4, 5), [(2, 3, 128), (2, 3, 1024), (2, 3, 16000)]),
        (nn.Conv3d(3, 4, 1), [(2, 3, 16, 112, 112)]),
        (nn.GRU(5, 4), [(2, 16, 5)]),
        (nn.Embedding(50, 4), [(2, 8)]),
        (nn.Conv2d(1, 4, 3), [(2, 1, s, s) for s in (32, 64, 224, 96, 128, 299, 256, 384, 16)]),
        (nn.BatchNorm1d(4), []),  # nothing is known of what it takes
        (nn.ReLU(), []),
    ],
)
def test_inputs_of_a_model_s_first_layer(layer, wanted):
    assert shapes(layer) == wanted
    model = nn.Sequential(nn.Dropout(), layer, nn.Linear(9, 9))
    assert shapes(model) == (wanted or [(2, 9), (2, 8, 9)])


def test_inputs_have_the_model_s_dtype_and_are_the_same_each_time():
    model = nn.Linear(6, 4).double()
    first, again = next(standard_inputs(model)), next(standard_inputs(model))
    assert first.dtype == torch.float64
    assert torch.equal(first, again)
    assert first.std() > 0.1
    ids = next(standard_inputs(nn.Embedding(50, 4)))
    assert (ids.dtype, int(ids.max())) == (torch.long, 0)  # in any vocabulary


def test_timm_declares_its_input():
    model = nn.Linear(6, 4)
    model.default_cfg = {"input_size": (3, 20, 20)}
    assert shapes(model)[0] == (2, 3, 20, 20)
    model.pretrained_cfg = {"input_size": (3, 24, 24)}
    assert shapes(model)[0] == (2, 3, 24, 24)


def transformer(name, **config):
    model = nn.Linear(6, 4)
    model.main_input_name, model.config = name, SimpleNamespace(**config)
    return model


def test_transformers_declare_theirs():
    text = transformer("input_ids", eos_token_id=7)
    inputs = list(standard_inputs(text))
    assert [tuple(one["input_ids"].shape) for one in inputs[:4]] == [(2, 8), (2, 8), (1, 8), (1, 8)]
    assert inputs[0]["input_ids"][:, -1].tolist() == [7, 7]
    rest = inputs[0]["input_ids"][:, :-1]
    assert 3 <= int(rest.min()) <= int(rest.max()) < 10
    assert inputs[1]["bbox"].shape == (2, 8, 4)
    image = shapes(transformer("pixel_values", image_size=(20, 30), num_channels=1))
    assert image[:2] == [{"pixel_values": (2, 1, 20, 30)}, {"pixel_values": (1, 1, 20, 30)}]
    assert shapes(transformer("pixel_values"))[0] == {"pixel_values": (2, 3, 224, 224)}
    vision = SimpleNamespace(patch_size=4, num_patches=16, num_channels=None)
    patches = shapes(transformer("pixel_values", vision_config=vision))[0]
    assert patches == {
        "pixel_values": (2, 16, 48),
        "pixel_attention_mask": (2, 16),
        "spatial_shapes": (2, 2),
    }
    first = next(standard_inputs(transformer("pixel_values", vision_config=vision)))
    assert first["spatial_shapes"].prod(1).tolist() == [16, 16]  # as many patches as there are
    assert first["pixel_attention_mask"].all()
    sound = shapes(transformer("input_values", num_mel_bins=40, max_length=100))
    assert sound[:3] == [
        {"input_values": (2, 16000)},
        {"input_values": (2, 100, 40)},
        {"input_values": (2, 40, 3000)},
    ]
    short = shapes(transformer("input_features", max_source_positions=50))
    assert short[1:3] == [{"input_features": (2, 1024, 128)}, {"input_features": (2, 128, 100)}]
    assert shapes(transformer(None)) == [(2, 6), (2, 8, 6)]
