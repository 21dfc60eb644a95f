"""Tasks by their difficulty."""

from tstar.report.figures.difficulty import difficulty_data


def test_tasks_are_in_the_order_of_their_difficulty(records):
    data = difficulty_data(records)
    assert [panel.scale for panel in data.panels[::2]] == ["easy", "middle", "hard"]
    assert [panel.title.rpartition(" · ")[2] for panel in data.panels] == ["no BN", "BN"] * 3
    assert all(panel.title.startswith("resnet10 · ") for panel in data.panels)
