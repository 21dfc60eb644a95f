"""The text networks of the standard atlas: an output layer with the M that they say, and no heed to padding."""

import pytest
import torch

from research import texts
from tstar.output_layer import find_head


@pytest.mark.parametrize(("name", "M"), [("cnn", 300), ("lstm", 256), ("transformer", 128)])
def test_networks(name: str, M: int):
    torch.manual_seed(0)
    network = getattr(texts, name)(7, 1).eval()
    tokens = torch.randint(1, texts.WORDS, (3, 12))
    tokens[1, 6:] = 0
    head = find_head(network, tokens)
    assert (head.num_features, head.num_classes) == (M, 7)
    longer = torch.nn.functional.pad(tokens, (0, 6))
    if name != "lstm":  # backwards it starts in the padding
        torch.testing.assert_close(network(tokens), network(longer), rtol=1e-4, atol=1e-5)
    assert not torch.allclose(network(tokens), network(tokens.roll(1, 1)), atol=1e-5)
