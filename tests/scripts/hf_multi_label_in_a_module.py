"""A multi-label transformers model inside a module of one's own.

packages: transformers
outcome: refuses "got a multi-label model"
"""

from torch import nn
from transformers import BertConfig, BertForSequenceClassification

import tstar


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        config = BertConfig(
            vocab_size=40, hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2,
            num_labels=3, problem_type="multi_label_classification",
        )  # fmt: skip
        self.bert = BertForSequenceClassification(config)

    def forward(self, input_ids):
        return self.bert(input_ids).logits


tstar.recommend(Tagger(), head="bert.classifier")
