"""Queries and rows to compare them with, in flat arrays."""

import numpy as np

from tstar.difficulty.neighbors.pairs import Pairs, first, joined

PAIRS = Pairs(np.array([0, 0, 0, 2, 2, 2, 2]), np.array([9, 4, 7, 1, 5, 3, 8]))


def test_edges_lie_between_queries():
    assert PAIRS.edges(4).tolist() == [0, 3, 3, 7, 7]


def test_parts_hold_one_query_and_no_more_than_asked_for():
    assert list(PAIRS.parts(3)) == [(0, 0, 3), (2, 3, 6), (2, 6, 7)]
    assert list(PAIRS.only(PAIRS.who > 2).parts(3)) == []


def test_the_first_are_those_of_least_value_and_ties_are_broken_by_row():
    pairs = PAIRS.only(PAIRS.who == 0)
    values = np.array([2.0, 1.0, 1.0])
    assert pairs.rows[first(pairs, values, 3, 1)].tolist() == [[4, 7, 9]]
    both = Pairs(np.array([0, 0, 0, 1, 1]), np.array([9, 4, 7, 6, 2]))
    values = np.array([1.0, 1.0, 0.5, 3.0, 3.0])
    assert both.rows[first(both, values, 2, 2)].tolist() == [[7, 4], [2, 6]]


def test_pairs_are_joined_query_by_query_with_their_values():
    other = Pairs(np.array([0, 1]), np.array([6, 2]))
    made, (values,) = joined(PAIRS, other, (PAIRS.rows * 10, other.rows * 10))
    assert made.who.tolist() == [0, 0, 0, 0, 1, 2, 2, 2, 2]
    assert sorted(made.rows[:4]) == [4, 6, 7, 9]
    assert made.rows[4] == 2
    assert (values == made.rows * 10).all()
