"""Tasks by their difficulty."""

from tests.report.planted import TASKS
from tstar.report.figures.difficulty import difficulty_data
from tstar.report.figures.heatmaps import draw_heatmaps
from tstar.report.records import load


def test_tasks_are_in_the_order_of_their_difficulty(records):
    data = difficulty_data(records)
    assert [panel.scale for panel in data.panels[::2]] == ["easy", "middle", "hard"]
    assert [panel.title.rpartition(" · ")[2] for panel in data.panels] == ["no BN", "BN"] * 3
    assert all(panel.title.startswith("resnet10 · ") for panel in data.panels)


def test_a_task_has_a_row_of_its_own_also_where_a_norm_was_not_run(make_store):
    """Without BN the easiest task was not run: its place stays empty, and the next pair does not move."""

    def change(rows):
        return [row for row in rows if (row[0].dataset, row[0].norm) != ("easy", "none")]

    data = difficulty_data(load(make_store(widths=(64,), seeds=1, change=change)))
    assert data.columns == 2
    assert not data.panels[0].temperatures
    assert [panel.scale for panel in data.panels] == [
        "",
        "easy",
        "middle",
        "middle",
        "hard",
        "hard",
    ]
    figure = draw_heatmaps(data)
    shown = [axes for axes in figure.axes if axes.axison]
    rows = [axes.get_subplotspec().rowspan.start for axes in shown]
    columns = [axes.get_subplotspec().colspan.start for axes in shown]
    assert [*zip(rows, columns, strict=True)] == [(0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]
    assert [axes.get_title() for axes in shown] == [
        f"{name} (csg {csg:g}) · {norm}"
        for name, csg, _ in TASKS
        for norm in ("no BN", "BN")
        if (name, norm) != ("easy", "no BN")
    ]


def test_with_one_norm_alone_there_is_no_gap(make_store):
    data = difficulty_data(load(make_store(widths=(64,), seeds=1, norms=("batch",))))
    assert [panel.scale for panel in data.panels] == ["easy", "middle", "hard"]
