"""A transformers model that is configured for regression.

packages: transformers
outcome: refuses "got a regression model"
"""

import toy

import tstar

tstar.temper(toy.bert(problem_type="regression"), 4.0)
