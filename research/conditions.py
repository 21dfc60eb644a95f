"""The second atlas's conditions: drawn at random from stated ranges, so that every exponent can be told apart.

``draw(i)`` is condition i of a seed: whatever prefix has been run is a sample of the whole, since families of networks come
in shuffled blocks and everything else is drawn independently. A condition is what a user has before asking us: a network, a
data set, and a way of training with the learning rate and the weight decay that people take without thinking (in one
condition of five the rate is off by a factor of three).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from tstar.formula import training_aware
from tstar.lab.sweep.spec import Spec
from tstar.lab.training.config import Config

SEED = 17
# Families of networks and the models that stand for them, by kind of data.
FAMILIES: dict[str, dict[str, str]] = {
    "vgg": {"image": "vgg9", "signal": "vgg9-1d"},
    "resnet": {"image": "resnet10", "signal": "resnet10-1d"},
    "pyramidnet": {"image": "pyramidnet10", "signal": "pyramidnet10-1d"},
    "vit": {"image": "vit4"},
    "convnext": {"image": "convnext4"},
    "mixer": {"image": "mixer4"},
    "mlp": {"image": "mlp", "signal": "mlp", "vector": "mlp"},
    "text-mlp": {"text": "mlp"},
    "cnn": {"image": "cnn4", "signal": "cnn4-1d"},
    "mlp-no-norm": dict.fromkeys(("image", "signal", "vector", "text"), "mlp-no-norm"),
}
# Data sets by kind: classes, training and test samples. caltech101, japanese_vowels and breast_cancer are kept for the test.
DATA: dict[str, dict[str, tuple[int, int, int]]] = {
    "image": {
        "cifar10_32": (10, 5000, 2500),
        "cifar100_32": (100, 5000, 2500),
        "gtsrb_32": (43, 3999, 2004),
        "flowers102_32": (102, 3505, 1498),
        "tinyimagenet_32": (200, 4000, 2000),
        "fashion_5k": (10, 5000, 2500),
    },
    "signal": {"uci_har": (6, 3676, 1474), "osuleaf": (6, 200, 242)},
    "vector": {"segment": (7, 1547, 763), "digits": (10, 1438, 359)},
    "text": {"banking77": (77, 10003, 3080), "clinc150": (150, 15000, 4500)},
}
# For the test of advice that was written down before: no fit has seen these.
NEW_FAMILIES: dict[str, dict[str, str]] = {
    "dense": {"image": "research.networks:dense"},
    "gru": {"image": "research.networks:gru", "signal": "research.networks:gru"},
}
NEW_DATA: dict[str, dict[str, tuple[int, int, int]]] = {
    "image": {"caltech101_32": (101, 3498, 1802)},
    "signal": {"japanese_vowels": (9, 270, 370)},
    "vector": {"breast_cancer": (2, 381, 188)},
}
# Frozen features (research.frozen_features): classes, training samples, M.
PROBED = {
    "mobilenet_caltech101": (101, 1515, 1280),
    "minilm_banking77": (77, 2500, 384),
    "mobilenet_cifar10": (10, 2500, 1280),
    "minilm_clinc150": (150, 2500, 384),
    "mobilenet_flowers102": (102, 1530, 1280),
    "mobilenet_gtsrb": (43, 2500, 1280),
}
# Pretrained networks that are trained on (research.finetuning), and the data sets for them: in the order in which they come.
TUNED = (
    ("mobilenet", "caltech101_96"),
    ("minilm", "banking77"),
    ("minilm_lora", "clinc150"),
    ("mobilenet", "cifar10_32"),
    ("minilm", "clinc150"),
    ("minilm_lora", "banking77"),
    ("mobilenet", "flowers102_96"),
    ("mobilenet", "gtsrb_32"),
)
TUNED_FACTS = {  # classes, M
    "caltech101_96": (101, 1280),
    "cifar10_32": (10, 1280),
    "flowers102_96": (102, 1280),
    "gtsrb_32": (43, 1280),
    "banking77": (77, 384),
    "clinc150": (150, 384),
}
# Families whose steps are quick enough for 10,000 of them and more.
LONG_FAMILIES = ("mlp", "text-mlp", "mlp-no-norm")
# Those whose steps are not: 5,000 and more, of narrow networks in small batches.
DEEP_FAMILIES = ("resnet", "vit", "vgg", "convnext", "pyramidnet", "mixer")
# Where the numbers of further kinds of conditions begin.
PROBES = 10_000  # linear probes
LONG = 20_000  # 10,000 to 40,000 steps on few samples
DEEP = 25_000  # 5,000 to 8,000 steps of convolutional networks and transformers, on few images
TUNING = 30_000  # pretrained networks, all of them trained or by LoRA
STRATA = (0, PROBES, LONG, DEEP, TUNING)
KINDS = {"image": 0.55, "signal": 0.15, "vector": 0.1, "text": 0.2}
KIND_OF = {
    **dict.fromkeys(("vit", "convnext", "mixer"), "layer-norms"),
    **dict.fromkeys(("cnn", "mlp-no-norm", "gru"), "no norms"),
    "probe": "frozen",
    **dict.fromkeys(("mobilenet", "minilm", "minilm_lora"), "pretrained"),
}
USUAL = {  # learning rate and weight decay that people take without thinking
    ("sgd", "batch-norms"): (0.1, 5e-4),
    ("sgd", "layer-norms"): (0.03, 5e-4),
    ("sgd", "no norms"): (0.01, 5e-4),
    ("adamw", "batch-norms"): (1e-3, 0.01),
    ("adamw", "layer-norms"): (1e-3, 0.01),
    ("adamw", "no norms"): (1e-3, 0.01),
}
# Large batches are drawn less often: a step of them costs as much as a whole run of small ones.
BATCHES = {8: 0.1, 16: 0.18, 32: 0.2, 64: 0.2, 128: 0.14, 256: 0.09, 512: 0.09}
# The most that a run may take by the estimate below, and a quarter more for the shortest.
SECONDS = 3.5
LONG_SECONDS = 16.0  # the same of a long run; at least 10,000 steps whatever they take
DEEP_SECONDS = 40.0  # the same of a long run of DEEP_FAMILIES; at least 5,000 steps
QUICK = 1.4  # the same from condition FIRST on, where the run is not meant to fit its training set
FIRST = 40
TESTED = 300  # test samples at the least (or all there are): fewer would drown everything in noise
FEWEST = 400  # training samples at the least, for the same reason: a fifth of them choose
# Training samples of a class at the least, on average: with fewer every recipe is at chance.
PER_CLASS = 10
EPOCHS_TO_FIT = 40  # passes after which a plain model has mostly learned its training set by heart


@dataclass(frozen=True)
class Condition:
    """What a user has: the plain run at the usual recipe. ``index`` is its place in the design."""

    index: int
    family: str
    plain: Spec

    @property
    def long(self) -> bool:
        """Of 5,000 steps and more: fewer recipes."""
        return LONG <= self.index < TUNING

    @property
    def brief(self) -> bool:
        """Its runs are dear: the weight decay is not tuned, and there are fewer recipes."""
        return self.index >= TUNING

    def at(self, *, lr: float = 1.0, weight_decay: float = 1.0, **changes: object) -> Spec:
        """The plain run with the rate and decay multiplied, and other fields of the spec changed."""
        own = self.plain.config
        rates = {"lr": nice(own.lr * lr), "weight_decay": nice(own.weight_decay * weight_decay)}
        config = replace(own, **rates)
        return replace(self.plain, config=config, **changes)  # type: ignore[arg-type]


def nice(value: float) -> float:
    """Three digits: so that a rate reached in two ways is one rate."""
    return float(f"{value:.3g}")


def draw(
    index: int,
    seed: int = SEED,
    families: dict[str, dict[str, str]] = FAMILIES,
    data: dict[str, dict[str, tuple[int, int, int]]] = DATA,
) -> Condition:
    """Condition ``index``: the same whatever has been drawn before; ``STRATA`` says which are of another kind."""
    if index >= PROBES:
        further = {PROBES: _probe, LONG: _long, DEEP: _long, TUNING: _tuning}
        return further[max(start for start in STRATA if start <= index)](index, seed)
    block, place = divmod(index, len(families))
    family = list(families)[np.random.default_rng([seed, block]).permutation(len(families))[place]]
    random = np.random.default_rng([seed, block, place])

    kinds = [kind for kind in families[family] if kind in data]
    weights = np.array([KINDS[kind] for kind in kinds])
    kind = str(random.choice(kinds, p=weights / weights.sum()))
    dataset = str(random.choice(list(data[kind])))
    available, rows, tests = data[kind][dataset]
    fewest = _fewest_classes(available, tests)
    classes = _log_int(random, fewest, available) if random.random() < 0.7 else available
    fits = random.random() < 0.45  # a run that is meant to fit its training set
    there = rows * classes // available
    most = min(there, max(FEWEST, 1000 if fits else 5000, PER_CLASS * classes))
    samples = min(most, max(_log_int(random, min(FEWEST, most), most), PER_CLASS * classes))

    wide = _log_choice(random, 16, 2048)
    narrow = int(random.choice([16, 32, 64] if kind != "text" else [32, 64, 128]))
    trunk = narrow if wide > narrow and (wide > 128 or random.random() < 0.3) else None
    deepened = family in ("mlp", "text-mlp", "mlp-no-norm", "resnet")
    depth = int(random.choice([1, 2, 3])) if deepened else None

    if family in NEW_FAMILIES:  # they have neither a narrower trunk nor a depth
        wide, trunk, depth = min(wide, 128), None, None

    optimizer = "adamw" if random.random() < 0.35 else "sgd"
    momentum = float(random.choice([0.9, 0.95, 0.0], p=[0.7, 0.15, 0.15]))
    batch = int(random.choice(list(BATCHES), p=list(BATCHES.values())))
    batch = min(batch, 2 ** int(math.log2(samples / 2)))
    lr, decay = USUAL[optimizer, KIND_OF.get(family, "batch-norms")]
    if random.random() < 0.2:
        lr *= 3.0 if random.random() < 0.5 else 1 / 3
    decay *= float(random.choice([1, 0, 10, 0.1], p=[0.7, 0.1, 0.1, 0.1]))
    schedule = str(
        random.choice(["cosine", "linear", "constant", "one-cycle"], p=[0.5, 0.2, 0.15, 0.15])
    )

    seconds = SECONDS if fits or index < FIRST else QUICK
    cost = step_seconds(family, kind, trunk or wide, depth, batch)
    while 100 * cost > 1.25 * seconds and batch > 64:
        batch //= 2
        cost = step_seconds(family, kind, trunk or wide, depth, batch)
    longest = max(100, min(10_000, int(seconds / cost)))
    if fits:  # few enough samples that the cost limit allows the passes
        samples = min(samples, max(FEWEST, PER_CLASS * classes, longest * batch // EPOCHS_TO_FIT))
        batch = min(batch, 2 ** int(math.log2(samples / 2)))
    shortest = min(longest, max(100, EPOCHS_TO_FIT * samples // batch)) if fits else 100
    steps = _log_int(random, shortest, longest)
    augment = kind == "image" and not fits and random.random() < 0.5
    config = Config(
        steps=steps,
        batch_size=batch,
        optimizer=optimizer,
        lr=nice(lr),
        momentum=momentum if optimizer == "sgd" else 0.9,
        weight_decay=nice(decay),
        schedule=schedule,
        warmup=0.1 if schedule == "linear" else 0.0,
        label_smoothing=0.1 if random.random() < 0.15 else 0.0,
        val_fraction=0.2,
        augment=augment,
    )
    plain = Spec(
        dataset=dataset,
        model=families[family][kind],
        size=16 if kind == "image" else None,
        num_features=wide,
        trunk_features=trunk,
        depth=depth,
        classes=None if classes == available else classes,
        train_samples=samples,
        label_noise=0.2 if not fits and random.random() < 0.15 else 0.0,
        data_seed=int(random.integers(1000)),
        temperature=1.0,
        norm="none",
        config=config,
    )
    return Condition(index, family, plain)


def _probe(index: int, seed: int) -> Condition:
    """A linear probe: the output layer alone is trained, on features of a frozen pretrained network."""
    random = np.random.default_rng([seed, index])
    dataset = list(PROBED)[(index - PROBES) % len(PROBED)]
    classes, rows, _ = PROBED[dataset]
    optimizer = "adamw" if random.random() < 0.5 else "sgd"
    lr = {"sgd": 0.1, "adamw": 1e-3}[optimizer]
    if random.random() < 0.2:
        lr *= 3.0 if random.random() < 0.5 else 1 / 3
    config = Config(
        steps=_log_int(random, 100, 2000),
        batch_size=int(random.choice([16, 32, 64, 128, 256])),
        optimizer=optimizer,
        lr=nice(lr),
        weight_decay=float(random.choice([0.0, 5e-4])) if optimizer == "sgd" else 0.01,
        schedule=str(random.choice(["cosine", "constant"], p=[0.7, 0.3])),
        val_fraction=0.2,
        augment=False,
    )
    samples = _log_int(random, min(rows, PER_CLASS * classes), rows)
    plain = Spec(
        dataset=dataset,
        model="research.networks:linear",
        train_samples=None if samples == rows else samples,
        temperature=1.0,
        norm="none",
        config=config,
    )
    return Condition(index, "probe", plain)


def _long(index: int, seed: int) -> Condition:
    """A long run on few samples, which the plain model learns by heart."""
    random = np.random.default_rng([seed, index])
    deep = index >= DEEP
    families, start = (DEEP_FAMILIES, DEEP) if deep else (LONG_FAMILIES, LONG)
    family = families[(index - start) % len(families)]
    kinds = ["image"] if deep else [kind for kind in FAMILIES[family] if kind in DATA]
    kind = str(random.choice(kinds))
    dataset = str(random.choice(list(DATA[kind])))
    available, rows, tests = DATA[kind][dataset]
    classes = _log_int(random, _fewest_classes(available, tests), available)
    there = rows * classes // available
    samples = min(there, max(_log_int(random, 400, 1000), PER_CLASS * classes))
    wide = _log_choice(random, 32, 512)
    most = 32 if deep else 64
    narrow = most if wide > most else None
    optimizer = "adamw" if random.random() < 0.35 else "sgd"
    batch = int(random.choice([8, 16] if deep else [16, 32, 64]))
    lr, decay = USUAL[optimizer, KIND_OF.get(family, "batch-norms")]
    decay *= float(random.choice([1, 0, 10], p=[0.7, 0.15, 0.15]))
    cost = step_seconds(family, kind, narrow or wide, None, batch)
    fewest, limit, seconds = (5_000, 8_000, DEEP_SECONDS) if deep else (10_000, 40_000, LONG_SECONDS)  # fmt: skip
    steps = _log_int(random, fewest, max(fewest, min(limit, int(seconds / cost))))
    config = Config(
        steps=steps,
        batch_size=batch,
        optimizer=optimizer,
        lr=nice(lr),
        weight_decay=nice(decay),
        schedule=str(random.choice(["cosine", "constant"], p=[0.75, 0.25])),
        val_fraction=0.2,
        augment=False,
    )
    plain = Spec(
        dataset=dataset,
        model=FAMILIES[family][kind],
        size=16 if kind == "image" else None,
        num_features=wide,
        trunk_features=narrow,
        classes=None if classes == available else classes,
        train_samples=samples,
        data_seed=int(random.integers(1000)),
        temperature=1.0,
        norm="none",
        config=config,
    )
    return Condition(index, family, plain)


def _tuning(index: int, seed: int) -> Condition:
    """A pretrained network with a new head, trained for few steps: all of it, or low-rank changes and the head."""
    random = np.random.default_rng([seed, index])
    network, dataset = TUNED[(index - TUNING) % len(TUNED)]
    images = network == "mobilenet"
    optimizer = "sgd" if images and random.random() < 0.5 else "adamw"
    config = Config(
        steps=_log_int(random, 100, 200 if images else 150),
        batch_size=16 if images else 8,
        optimizer=optimizer,
        lr=tuning_rate(network, optimizer),
        weight_decay=5e-4 if optimizer == "sgd" else 0.01,
        schedule=str(random.choice(["cosine", "linear"])),
        val_fraction=0.2,
        augment=False,
    )
    plain = Spec(
        dataset=f"research.finetuning:{dataset}",
        model=f"research.finetuning:{network}",
        scenario="finetune",
        weights="default",
        temperature=1.0,
        norm="none",
        config=config,
    )
    return Condition(index, network, plain)


def tuning_rate(network: str, optimizer: str) -> float:
    """The usual rate of fine-tuning."""
    return {"sgd": 0.01, "adamw": 1e-3 if "lora" in network else 1e-4}[optimizer]


def data_of(spec: Spec) -> str:
    """The data set's name, without the module that reads it."""
    return spec.dataset.rpartition(":")[2]


def features_of(spec: Spec) -> int:
    """M, which a probe takes from its data and a pretrained network brings along."""
    if spec.scenario == "finetune":
        return TUNED_FACTS[data_of(spec)][1]
    return spec.num_features or PROBED[spec.dataset][2]


def classes_of(spec: Spec) -> int:
    if spec.dataset in PROBED:
        return PROBED[spec.dataset][0]
    if spec.scenario == "finetune":
        return TUNED_FACTS[data_of(spec)][0]
    return spec.classes or next(
        sets[spec.dataset][0]
        for every in (DATA, NEW_DATA)
        for sets in every.values()
        if spec.dataset in sets
    )


def _fewest_classes(available: int, tests: int) -> int:
    """So many that ``TESTED`` test samples are left, where there are that many."""
    return min(available, max(2, math.ceil(TESTED * available / tests)))


def _log_int(random: np.random.Generator, low: int, high: int) -> int:
    return round(math.exp(random.uniform(math.log(low), math.log(max(low, high)))))


def _log_choice(random: np.random.Generator, low: int, high: int) -> int:
    """A power of two, evenly in its logarithm."""
    return 2 ** int(random.integers(int(math.log2(low)), int(math.log2(high)) + 1))


# Seconds of a step: for any batch, and for each sample at a width of 32. Measured on one core of 2026.
_COST = {
    "vgg": (4e-3, 6e-5),
    "resnet": (5e-3, 1.2e-4),
    "pyramidnet": (6e-3, 1.8e-4),
    "vit": (5e-3, 1.4e-4),
    "convnext": (5e-3, 1.8e-4),
    "mixer": (4e-3, 1.3e-4),
    "cnn": (2e-3, 8e-5),
    "dense": (4e-3, 1.5e-4),
    "gru": (4e-3, 1e-4),
}


def step_seconds(family: str, kind: str, width: int, depth: int | None, batch: int) -> float:
    """A rough estimate, for the limit on a run's cost."""
    if "mlp" in family:
        return 1e-3 + batch * (2e-5 if kind == "text" else 1e-5) + width**2 * 3e-9 * batch
    fixed, sample = _COST[family]
    return (fixed + batch * sample * max(1.0, width / 32)) * (depth or 1) ** 0.8


def predicted(at: Spec) -> float:
    """T of the law at a run's rate: the middle of a condition's grid, before anything is fitted on this atlas.

    SGD: 0.61·sqrt(lr·M)·(steps/(K·B·(1 − μ)))^¼, fitted on the first atlas. Adam, whose steps do not see the
    gradient's scale, has a wide plateau: 2.
    """
    c = at.config
    if c.optimizer != "sgd":
        return 2.0
    budget = (c.steps or 1) / (classes_of(at) * c.batch_size * (1 - c.momentum))
    T = 0.61 * math.sqrt(c.lr * features_of(at)) * budget**0.25
    return nice(min(max(T, 0.5), 64.0))


def advised(at: Spec) -> float:
    """T of the law at a run's rate; of fine-tuning with AdamW the one of results/atlas2/tuning_temperatures.csv."""
    law = training_aware().law
    if at.scenario == "finetune" and at.config.optimizer == "adamw" and law is not None:
        return law.adam_finetune or law.adam
    return predicted(at)
