"""Insert LN: LayerNorm on the logits, before the softmax."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from tstar.errors import TstarError
from tstar.methods.common import Plain, cross_entropy, with_output_layer
from tstar.methods.interface import Facts, Recipe
from tstar.surgery.layers import class_dim, weight_of


class LogitNorm(nn.Module):
    """The output layer followed by a LayerNorm over the K logits."""

    def __init__(self, layer: nn.Module, affine: bool) -> None:
        super().__init__()
        weight = weight_of(layer)
        self.layer = layer
        self.norm = nn.LayerNorm(
            len(weight), elementwise_affine=affine, device=weight.device, dtype=weight.dtype
        )
        self._dim = class_dim(layer)

    def forward(self, features: Tensor) -> Tensor:
        logits: Tensor = self.norm(self.layer(features).movedim(self._dim, -1))
        return logits.movedim(-1, self._dim)


@dataclass(frozen=True)
class InsertLN(Plain):
    r"""L = CE(LayerNorm_K(z), y), LayerNorm(z) = g ⊙ (z − mean z)/sqrt(var z + 1e-5) + c.

    Symbols: z (B, K) logits, mean and (biased) variance over a sample's K logits, g and c (K,) the
    trainable affine part. Without it the largest probability is capped, since the normalized
    logits cannot lie further apart than (sqrt(K−1), −1/sqrt(K−1), …): .881 for K = 2, .757 for 10 (D).

    Reference: Hasegawa 2022, the paper's row "Insert LN"; the affine part is on there (S).
    """

    affine: bool = True
    name = "insert-ln"

    def __post_init__(self) -> None:
        if not isinstance(self.affine, bool):
            raise TstarError(f"affine must be true or false, got affine={self.affine!r}.")

    def prepare(self, model: nn.Module, facts: Facts) -> Recipe:
        changed = with_output_layer(model, facts, lambda layer: LogitNorm(layer, self.affine))
        return Recipe(model=changed, loss=cross_entropy(facts))
