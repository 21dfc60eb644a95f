"""Networks that several tests of the surgery use."""

from torch import nn


def small_convnet(classes=5):
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(inplace=True),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Dropout(0.5),
        nn.Linear(8, classes),
    )


class Wordy(nn.Module):
    """A recurrent text model with a dict output and data-dependent control flow: not traceable."""

    def __init__(self):
        super().__init__()
        self.words, self.rnn, self.out = (
            nn.Embedding(50, 8),
            nn.GRU(8, 16, batch_first=True),
            nn.Linear(16, 4),
        )

    def forward(self, ids):
        states, _ = self.rnn(self.words(ids))
        if states.sum() > 1e9:
            raise RuntimeError
        return {"logits": self.out(states[:, -1]), "states": states}


def tiny_bert(**others):
    """The configuration of a BERT that is made in no time."""
    from transformers import BertConfig

    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1}
    return BertConfig(**{**sizes, "num_attention_heads": 2, **others})


def advised(model, recipe, head=None, **training):
    """An advice from a planted row of the table: ``recipe`` has its numbers."""
    from tstar.advice import advise
    from tstar.case import read_case
    from tstar.recipes import Row

    case, heads = read_case(model, head=head, **training)
    row = Row(name="planted", where={}, do="as planted", **recipe)
    return advise(case, row, heads=tuple(each.path for each in heads))
