"""Cases as users have them, and some that nobody has."""

import random

from tstar.case import Case
from tstar.training import Training


def random_case(seed):
    """A case as users have them, and some that nobody has."""
    draw = random.Random(seed)
    optimizer = draw.choice(["sgd", "sgd", "adam", "adamw", "adamw", "lion"])
    scenario = draw.choice(["scratch", "scratch", "finetune"])
    batch_size = draw.choice([1, 4, 8, 32, 64, 128, 512, 4096])
    training = Training(
        optimizer,
        lr=10 ** draw.uniform(-6, 0.5),
        momentum=0.9 if optimizer == "sgd" else None,
        weight_decay=draw.choice([0.0, 1e-4, 5e-4, 0.01, 0.1]),
        batch_size=batch_size,
        steps=round(10 ** draw.uniform(0.5, 6)),
        samples=round(10 ** draw.uniform(1.5, 6)),
        scenario=scenario,
        tuned=draw.random() < 0.3,
    )
    return Case(
        num_features=draw.choice([8, 32, 64, 128, 512, 768, 2048, 4096]),
        num_classes=draw.choice([2, 5, 10, 77, 100, 150, 1000]),
        training=training,
        norms=draw.choice(["batch-norms", "layer-norms", "no norms", "frozen"]),
        kind=draw.choice(["convnet", "transformer", "mlp", "recurrent"]),
    )
