"""The exact k nearest neighbors: prune with provable bounds, then rank with exact distances."""

from tstar.difficulty.neighbors.search import nearest

__all__ = ["nearest"]
