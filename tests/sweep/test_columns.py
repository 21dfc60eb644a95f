"""The columns of a store, and what may stand in them."""

import os

import pytest

from tests.sweep.small import finish
from tstar.errors import TstarError
from tstar.sweep.columns import COLUMNS
from tstar.sweep.store import Store
from tstar.sweep.transfer import load_runs


def test_the_spec_is_in_the_columns(path, specs):
    with Store(path, create=True) as store:
        store.claim(specs[0])
        row = store.get(specs[0].key)
    for name, value in specs[0].to_dict().items():
        if name in COLUMNS:
            assert row[name] == value, name
    assert (row["status"], row["attempts"], row["pid"]) == ("running", 1, os.getpid())


def test_every_field_of_a_spec_has_a_column(specs):
    assert set(specs[0].to_dict()) <= set(COLUMNS)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        *(("test_accuracy", "abc"), ("lr", b"x"), ("seed", "many"), ("model", b"\xff")),
        *(("scenario", "dream"), ("spec", "{"), ("curves", "[" * 100_000), ("studies", "no")),
    ],
)
def test_a_cell_of_a_wrong_kind_is_one_error_with_its_place(path, specs, column, value):
    with Store(path, create=True) as store:
        finish(store, specs[0])
        store._db.execute(f"UPDATE runs SET {column} = ?", (value,))
        with pytest.raises(TstarError, match=rf"runs\.db: the run {specs[0].key} .* {column}"):
            list(store.rows())
    with pytest.raises(TstarError, match=column):
        load_runs(path)
