"""The data sets that have a name."""

import pytest

from tstar import TstarError
from tstar.lab.data import load, names
from tstar.lab.data.catalogue import CATALOGUE


@pytest.mark.parametrize("name", [n for n in CATALOGUE if n not in ("digits", "fashion-mnist")])
def test_not_on_disk_says_what_to_put_where_and_creates_nothing(name, tmp_path):
    entry = CATALOGUE[name]
    with pytest.raises(TstarError) as caught:
        load(name, root=tmp_path)
    message = str(caught.value)
    assert str(tmp_path / entry.folder) in message
    assert entry.source in message
    assert ("download=True" in message) == (entry.loader is not None)
    assert "\n" not in message
    assert list(tmp_path.iterdir()) == []


def test_names_lists_all():
    assert {"digits", "cifar100@10", "cifar100-hard2", "isic-2019"} <= set(names())
    assert names() == sorted(names())
