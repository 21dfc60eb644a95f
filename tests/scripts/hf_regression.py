"""A transformers model that is configured for regression.

packages: transformers
outcome: refuses "got a regression model"
"""

from transformers import BertConfig, BertForSequenceClassification

import tstar

config = BertConfig(
    vocab_size=40, hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2, num_labels=3,
    problem_type="regression",
)  # fmt: skip
tstar.temper(BertForSequenceClassification(config), 4.0)
