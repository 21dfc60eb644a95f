"""The task of 300 classes of ``studies/atlas-many-classes.toml``: two data sets as one."""

from __future__ import annotations

from typing import Any

import torch

from tstar.lab.data import load


def cifar100_tinyimagenet(root: Any, size: int | None) -> tuple[torch.Tensor, ...]:
    """x_train, y_train, x_test, y_test; Tiny ImageNet's labels follow those of CIFAR-100."""
    one, other = (load(f"{name}_32", root=root, size=size) for name in ("cifar100", "tinyimagenet"))
    shift = one.num_classes
    return (
        torch.cat([one.x_train, other.x_train]),
        torch.cat([one.y_train, other.y_train + shift]),
        torch.cat([one.x_test, other.x_test]),
        torch.cat([one.y_test, other.y_test + shift]),
    )
