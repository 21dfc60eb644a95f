"""Sweeps as processes of their own, watched from outside."""

LONGER = """
csg = false
[training]
epochs = 12
[[grid]]
dataset = "digits"
model = "mlp"
num_features = 16
temperature = [1, 2, 4, 8, 16, 32]
seeds = 2
"""


RESULTS = ("val_accuracy", "test_accuracy", "nll", "ece", "train_loss", "curves")
