"""A report as it is written."""

import pytest

from tests.report.planted import TASKS
from tstar import TstarError
from tstar.report.catalogue import get_figure
from tstar.report.write import write_report


def test_a_report_draws_as_many_pictures_as_were_asked_for(make_store, tmp_path, monkeypatch):
    from tstar.report import write

    store = make_store(tasks=TASKS[:1], widths=tuple(range(8, 34)), norms=("batch",), seeds=1)
    monkeypatch.setattr(write, "FIGURES", {"accuracy": get_figure("accuracy")})
    for asked, drawn in ((1, 1), (2, 2), (0, 3)):
        made = write.write_report(
            store, tmp_path / str(asked), formats=("svg",), fits=False, pictures=asked
        )
        assert len(made.figures) == drawn
        page = made.page.read_text(encoding="utf-8")
        assert (f"The first {drawn} of 3 pictures" in page) == (drawn < 3)
    with pytest.raises(TstarError, match="pictures >= 0"):
        write.write_report(store, tmp_path / "no", pictures=-1)


def test_unknown_formats_are_refused_before_anything_is_made(store, tmp_path):
    with pytest.raises(TstarError, match="format of a figure 'jpg'"):
        write_report(store, tmp_path / "out", formats=("jpg",))
    assert not (tmp_path / "out").exists()
