"""The seeds of each task as boxes."""

from tstar.report.figures.accuracy_boxes import accuracy_boxes_data


def test_boxes_hold_the_seeds(records):
    data = accuracy_boxes_data(records)
    assert len(data.panels) == 6
    for panel in data.panels:
        assert [box.n for box in panel.boxes] == [3] * len(panel.temperatures)
