"""Distances that rank, exactly."""

import numpy as np
import pytest
import torch

from tstar.difficulty.neighbors import nearest
from tstar.difficulty.neighbors.exact import Exact, halving_sum, int8_is_exact, int8_is_faster
from tstar.difficulty.neighbors.pairs import Pairs


def test_products_beyond_float32s_whole_numbers_are_still_ranked_exactly(helpers):
    # distances near 2e8 that differ by 1: a float32 product cannot tell them apart
    base = np.zeros(3072, np.uint8)
    far = np.full((40, 3072), 255, np.uint8)
    far[np.arange(40), np.arange(40)] -= np.random.default_rng(0).permutation(40).astype(np.uint8)
    data = np.vstack([base, far])
    for route in "whole", "sketch", "int8":
        np.testing.assert_array_equal(
            nearest(data, np.array([0]), 6, route=route),
            helpers.brute_neighbors(data, [0], 6),
        )


@pytest.mark.parametrize("width", [3, 600, 2100, 9000])
@pytest.mark.parametrize(
    ("dtype", "int8"),
    [(np.uint8, False), (np.uint8, True), (np.float32, False), (np.float64, False)],
)
def test_distances_are_those_by_hand(dtype, int8, width):
    if int8 and not int8_is_exact():
        pytest.skip("int8 products overflow here: no VNNI")
    data = np.random.default_rng(0).integers(0, 256, (70, width)).astype(dtype)
    queries = np.array([3, 60, 8])
    pairs = Pairs(np.repeat([0, 2], 70), np.tile(np.arange(70), 2))  # the second has none
    wide = data.astype(np.int64)
    np.testing.assert_array_equal(
        Exact(data, int8=int8).distances(queries, pairs),
        np.concatenate([((wide - wide[q]) ** 2).sum(axis=1) for q in (3, 8)]),
    )


def test_a_sum_by_halves_is_the_sum():
    for width in (1, 2, 5, 64, 100):
        values = np.random.default_rng(width).normal(size=(3, width))
        np.testing.assert_allclose(halving_sum(values.copy()), values.sum(axis=1), rtol=1e-12)


@pytest.mark.parametrize(
    ("vnni", "limit", "faster"),
    [(True, None, True), (True, "default", True), (True, "AVX2", False), (False, None, False)],
)
def test_int8_products_are_taken_where_onednn_may_use_vnni(monkeypatch, vnni, limit, faster):
    monkeypatch.setattr(torch.cpu, "_is_vnni_supported", lambda: vnni, raising=False)
    monkeypatch.delenv("DNNL_MAX_CPU_ISA", raising=False)
    monkeypatch.delenv("ONEDNN_MAX_CPU_ISA", raising=False)
    if limit is not None:
        monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", limit)
    assert int8_is_faster.__wrapped__() is faster


def test_products_that_overflow_are_noticed(monkeypatch):
    import torch

    right = torch._int_mm
    assert int8_is_exact.__wrapped__() == int8_is_exact()
    monkeypatch.setattr(torch, "_int_mm", lambda a, b: right(a, b).clamp(-32768, 32767))
    assert not int8_is_exact.__wrapped__()
