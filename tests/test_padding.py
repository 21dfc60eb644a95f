"""Padding changes nothing: a padded batch trains the head as the same tokens without padding do."""

import pytest
import torch
from torch import nn

import tstar
from tstar.errors import TstarError
from tstar.padding import mask_padding


class Tagger(nn.Module):
    """One label a token; takes the mask as transformers' models do."""

    def __init__(self):
        super().__init__()
        self.words, self.out = nn.Embedding(20, 8), nn.Linear(8, 4)

    def forward(self, input_ids, attention_mask=None):
        return self.out(self.words(input_ids))


IDS = torch.tensor([[3, 4, 5, 0, 0], [6, 7, 8, 9, 0]])
MASK = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 0]])


def test_statistics_logits_and_gradients_are_those_of_the_tokens_alone():
    torch.manual_seed(0)
    plain = Tagger()
    packed = tstar.temper(plain, 3.0, head="out")
    padded = tstar.temper(plain, 3.0, head="out")
    unmasked = tstar.temper(plain, 3.0, head="out")
    mask_padding(padded)
    alone = packed(IDS[MASK.bool()][None])
    among = padded(input_ids=IDS, attention_mask=MASK)
    torch.testing.assert_close(among[MASK.bool()][None], alone)
    for logits in (alone, among[MASK.bool()][None]):
        nn.functional.cross_entropy(logits[0], torch.arange(7) % 4).backward()
    torch.testing.assert_close(padded.out.norm.running_mean, packed.out.norm.running_mean)
    torch.testing.assert_close(padded.out.norm.running_var, packed.out.norm.running_var)
    for one, other in zip(padded.parameters(), packed.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad)
    unmasked(IDS, attention_mask=MASK)
    assert not torch.allclose(unmasked.out.norm.running_mean, packed.out.norm.running_mean)


def test_eval_mode_and_folding_do_not_see_the_mask():
    model = tstar.temper(Tagger(), 3.0, head="out")
    mask_padding(model)
    model(IDS, attention_mask=MASK)
    model.eval()
    tempered = model(IDS, attention_mask=MASK)
    torch.testing.assert_close(tempered, model(IDS))
    torch.testing.assert_close(tstar.fold(model)(IDS), tempered)


def test_a_removed_mask_is_gone_and_a_wrong_one_is_refused():
    model = tstar.temper(Tagger(), 3.0, head="out")
    handle = mask_padding(model)
    model(IDS, attention_mask=MASK)
    model(IDS)
    assert model.out.mask is None
    with pytest.raises(TstarError, match="shape"):
        model(IDS, attention_mask=MASK[:, :3])
    handle.remove()
    with pytest.raises(TstarError, match=r"tstar\.temper"):
        mask_padding(Tagger())
