"""The exact k nearest neighbours: prune with provable bounds, then rank with exact distances."""

from tstar.difficulty.neighbors.search import nearest

__all__ = ["nearest"]
