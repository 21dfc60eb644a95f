"""How the logits' variance splits into its diagonal and its covariance part, on real features.

The paper writes the variance of a logit after BatchNorm as

    V[y_j] = Σ_k w_jk²·V[z_k] + Σ_{k≠l} w_jk·w_jl·Cov(z_k, z_l),   V[z_k] = 1 before BN's affine part,

and neglects the second sum "because correlations between feature maps are low when M is sufficiently
large"; its appendix takes that sum to grow with ln csg. Here both are measured: on the test features of
a tempered ResNet10, before and after training, at T = 1 and at T*.

    python -m research.variance -o results/variance digits
    python -m research.variance -o results/variance digits gtsrb_32.npz cifar10_32.npz …   (--data-root)

A few minutes on one core for each data set.
"""

from __future__ import annotations

import argparse
import csv
import platform
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import torch

import tstar
from tstar.data import DataSet, load, standardizer
from tstar.models import build
from tstar.surgery.finding import tempered_heads
from tstar.sweep.provenance import commit
from tstar.training import Config, train

WIDTHS = {"digits": (16, 64, 128)}
EPOCHS = {"digits": 20}
EPOCHS_ELSE = 8


@dataclass(frozen=True)
class Row:
    """One network. Variances are means over the classes, of the logits before the division by T."""

    dataset: str
    csg: float
    classes: int
    features: int
    temperature: float
    when: str
    diagonal: float
    covariance: float
    variance: float
    covariance_share: float
    mean_correlation: float
    top_probability: float
    test_accuracy: float


def decompose(features: torch.Tensor, weight: torch.Tensor) -> tuple[float, float, float]:
    """(Σ_k w²V, Σ_{k≠l} wwCov, their sum) of V[W·z], averaged over the rows of W.

    features: z, N×M. weight: W, K×M.
    """
    cov = torch.cov(features.T, correction=0)
    diagonal = (weight**2 @ cov.diagonal()).mean()
    total = ((weight @ cov) * weight).sum(1).mean()
    return float(diagonal), float(total - diagonal), float(total)


def mean_correlation(features: torch.Tensor) -> float:
    """The mean of |corr(z_k, z_l)| over k ≠ l, dead features left out."""
    alive = features[:, features.var(0) > 1e-12]
    corr = torch.corrcoef(alive.T).abs()
    M = len(corr)
    return float((corr.sum() - M) / (M * (M - 1)))


def head_inputs(model: torch.nn.Module, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """(what the output layer is given, the tempered logits) on ``x`` in eval mode, as float64."""
    (head,) = tempered_heads(model).values()
    seen: list[torch.Tensor] = []
    handle = head.layer.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    model.eval()
    with torch.no_grad():
        logits = torch.cat([model(part) for part in x.split(500)])
    handle.remove()
    return torch.cat(seen).double(), logits.double()


def measure(
    model: torch.nn.Module, data: DataSet, csg: float, T: float, when: str, accuracy: float
) -> Row:
    inputs = standardize(data, data.x_test)
    if when == "before training":
        learn_statistics(model, standardize(data, data.x_train[:1000]))
    z, logits = head_inputs(model, inputs)
    (head,) = tempered_heads(model).values()
    weight = head.layer.weight.detach().double()
    diagonal, covariance, total = decompose(z, weight)
    spread = float((logits * T).var(0, correction=0).mean())
    assert abs(spread - total) < 1e-3 * max(total, 1e-9), (spread, total)
    return Row(
        dataset=data.name.removesuffix(".npz"),
        csg=round(csg, 3),
        classes=data.num_classes,
        features=z.shape[1],
        temperature=round(T, 3),
        when=when,
        diagonal=diagonal,
        covariance=covariance,
        variance=total,
        covariance_share=covariance / total,
        mean_correlation=mean_correlation(z),
        top_probability=float(logits.softmax(1).amax(1).mean()),
        test_accuracy=accuracy,
    )


def learn_statistics(model: torch.nn.Module, x: torch.Tensor) -> None:
    """Let every BatchNorm take the mean and variance of ``x``, with the weights as they are."""
    for module in model.modules():
        if isinstance(module, torch.nn.modules.batchnorm._BatchNorm):
            module.momentum = 1.0
    model.train()
    with torch.no_grad():
        model(x)


def standardize(data: DataSet, x: torch.Tensor) -> torch.Tensor:
    """Images as training sees them, standardized with the training set's statistics."""
    return standardizer(data.x_train, data.domain)(x)


def rows(data: DataSet, seed: int) -> Iterator[Row]:
    csg = float(tstar.csg(data, seed=seed))
    name = data.name.removesuffix(".npz")
    config = Config(epochs=EPOCHS.get(name, EPOCHS_ELSE), val_fraction=0.0)
    for M in WIDTHS.get(name, (64,)):
        for T in sorted({1.0, tstar.temperature(M, data.num_classes)}):  # T* may be 1
            channels = data.x_train.shape[1]
            plain = build(
                "resnet10", data.num_classes, num_features=M, in_channels=channels, seed=seed
            )
            model = tstar.temper(plain, T)
            if T == 1.0:
                yield measure(tstar.temper(plain, T), data, csg, T, "before training", float("nan"))
            result = train(model, data, config, seed=seed)
            yield measure(
                model, data, csg, T, "after training", result.test_accuracy or float("nan")
            )


def write(found: list[Row], out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    with (out / "variance.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([field.name for field in fields(Row)])
        for row in found:
            writer.writerow(
                [f"{v:.4g}" if isinstance(v, float) else v for v in asdict(row).values()]
            )


def write_readme(out: Path, data: list[str], seed: int) -> None:
    versions = f"tstar {tstar.__version__}, commit {commit()}, torch {torch.__version__}"
    text = f"""# The variance of the logits, split

`variance.csv`: for each network the diagonal part Σ_k w_jk²·V[z_k] and the covariance part Σ_{{k≠l}} w_jk·w_jl·Cov(z_k, z_l) of
the logits' variance (means over the classes, test images, before the division by T), the covariance's share, the mean
|correlation| of features, the mean largest probability and the test accuracy. ResNet10 with BatchNorm before the output
layer; SGD, lr 0.1, cosine, batches of 128; {EPOCHS["digits"]} epochs on digits and {EPOCHS_ELSE} elsewhere; T = 1 and T* of the class-count
variant; one seed. csg is that of these (small) training sets.

Rebuild: `python -m research.variance {" ".join(data)} --seed {seed}` (with `--data-root` for the files; {versions},
Python {platform.python_version()}, {platform.machine()}, one thread).
"""
    (out / "README.md").write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data", nargs="+", help="names or files of tstar.data.load")
    parser.add_argument("--data-root", type=Path, help="folder of the files")
    parser.add_argument("-o", "--out", type=Path, default=Path("results/variance"))
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    torch.set_num_threads(1)
    found: list[Row] = []
    for name in given.data:
        for row in rows(load(name, root=given.data_root), given.seed):
            print(*(f"{v:.3g}" if isinstance(v, float) else v for v in asdict(row).values()))
            sys.stdout.flush()
            found.append(row)
            write(found, given.out)
    write_readme(given.out, given.data, given.seed)


if __name__ == "__main__":
    main()
