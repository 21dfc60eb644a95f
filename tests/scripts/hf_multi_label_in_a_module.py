"""A multi-label transformers model inside a module of one's own.

packages: transformers
outcome: refuses "got a multi-label model"
"""

import toy
from torch import nn

import tstar


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.bert = toy.bert(problem_type="multi_label_classification")

    def forward(self, input_ids):
        return self.bert(input_ids).logits


tstar.recommend(Tagger(), head="bert.classifier")
