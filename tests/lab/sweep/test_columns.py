"""The columns of a store, and what may stand in them."""

import pytest

from tests.lab.sweep.small import finish, with_own
from tstar.errors import TstarError
from tstar.lab.sweep.columns import COLUMNS, own_scores
from tstar.lab.sweep.store import Store
from tstar.lab.sweep.transfer import load_runs


def test_the_spec_is_in_the_columns(path, specs):
    with Store(path, create=True) as store:
        store.put(specs[0], "done", {})
        row = store.get(specs[0].key)
    for name, value in specs[0].to_dict().items():
        if name in COLUMNS:
            assert row[name] == value, name


def test_every_field_of_a_spec_has_a_column(specs):
    assert set(specs[0].to_dict()) <= set(COLUMNS)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        *(("test_accuracy", "abc"), ("lr", b"x"), ("seed", "many"), ("model", b"\xff")),
        *(("spec", "{"), ("curves", "[" * 100_000), ("studies", "no")),
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


def test_the_values_of_a_metric_are_columns():
    recorded = {"metric": 0.25, "val_metric": 0.5, "tau": 2.0}
    assert own_scores(recorded) == {"val_metric": 0.5, "test_metric": 0.25}


def test_an_augmentation_of_ones_own_is_there_by_its_name(path, specs):
    with Store(path, create=True) as store:
        finish(store, specs[0])
        finish(store, with_own(specs[1], "./kit.py:noise"))
        assert [row["augment"] for row in store.rows()] == [1, "./kit.py:noise"]
