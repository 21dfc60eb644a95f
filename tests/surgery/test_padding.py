"""Padding changes nothing: a padded batch trains the head as the same tokens without padding do."""

import copy
import io

import pytest
import torch
from torch import nn

import tstar
from tstar.errors import TstarError
from tstar.surgery.finding import tempered_heads


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
    tstar.mask_padding(padded)
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
    tstar.mask_padding(model)
    model(IDS, attention_mask=MASK)
    model.eval()
    tempered = model(IDS, attention_mask=MASK)
    torch.testing.assert_close(tempered, model(IDS))
    torch.testing.assert_close(tstar.fold(model)(IDS), tempered)


def test_a_removed_mask_is_gone_and_a_wrong_one_is_refused():
    model = tstar.temper(Tagger(), 3.0, head="out")
    handle = tstar.mask_padding(model)
    model(IDS, attention_mask=MASK)
    model(IDS)
    assert model.out.mask is None
    with pytest.raises(TstarError, match="shape"):
        model(IDS, attention_mask=MASK[:, :3])
    model(IDS, attention_mask=MASK)
    handle.remove()
    assert model.out.mask is None
    model(IDS, attention_mask=MASK)
    assert model.out.mask is None
    with pytest.raises(TstarError, match=r"tstar\.temper"):
        tstar.mask_padding(Tagger())
    with pytest.raises(TstarError, match=r"'attention_maks'.*'input_ids', 'attention_mask'"):
        tstar.mask_padding(model, "attention_maks")


def test_a_mask_by_position_is_seen():
    model = tstar.temper(Tagger(), 3.0, head="out")
    tstar.mask_padding(model)
    model(IDS, MASK)
    assert model.out.mask is MASK


def test_a_copy_masks_its_own_head():
    """A moving average is a deep copy, and some trainers pickle the whole model."""
    model = tstar.temper(Tagger(), 3.0, head="out")
    tstar.mask_padding(model)
    buffer = io.BytesIO()
    torch.save(model, buffer)
    buffer.seek(0)
    for other in (copy.deepcopy(model), torch.load(buffer, weights_only=False)):
        other(IDS, attention_mask=MASK)
        assert other.out.mask is MASK
        assert model.out.mask is None


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("adapter", [False, True])
def test_transformers_padding_does_not_move_the_statistics(adapter):
    """Token ids under the mask may be anything: the statistics and the loss are the same."""
    hf = pytest.importorskip("transformers")
    sizes = {
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
    }
    config = hf.BertConfig(**sizes, vocab_size=32, num_labels=4, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)  # fmt: skip
    torch.manual_seed(0)
    model = tstar.temper(hf.BertForTokenClassification(config), 3.0)
    if adapter:
        peft = pytest.importorskip("peft")
        model = peft.get_peft_model(model, peft.LoraConfig(task_type="TOKEN_CLS", r=2))
    model.train()
    others = torch.where(MASK.bool(), IDS, 11)
    labels = torch.where(MASK.bool(), IDS % 4, -100)
    seen = []
    for masked in (True, False):
        for ids in (IDS, others):
            run = copy.deepcopy(model)
            if masked:
                tstar.mask_padding(run)
            loss = run(input_ids=ids, attention_mask=MASK, labels=labels).loss
            (norm,) = [
                h.norm
                for path, h in tempered_heads(run).items()
                if not path.endswith("original_module")
            ]
            seen.append((loss.detach(), norm.running_mean))
    torch.testing.assert_close(seen[0], seen[1])
    assert not torch.allclose(seen[2][1], seen[3][1])
