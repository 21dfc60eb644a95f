"""Options that several commands share."""

import pytest

from tests.planted import frame
from tstar.cli.options import chosen
from tstar.errors import TstarError


def test_runs_are_read_only_where_some_are_chosen(tmp_path):
    path = tmp_path / "runs.csv"
    assert chosen(path, None, None) == path  # not even opened
    runs = frame(lambda dataset, M: 2.0)
    runs.to_csv(path, index=False)
    found = chosen(path, "dataset == 'a' and temperature > 10", None)
    assert set(found["dataset"]) == {"a"}
    assert len(found) == len(runs.query("dataset == 'a' and temperature > 10"))
    with pytest.raises(TstarError, match=r"No runs of .*runs\.csv' were chosen"):
        chosen(path, "dataset == 'c'", None)
