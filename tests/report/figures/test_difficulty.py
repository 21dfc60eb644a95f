"""Tasks by their difficulty."""

from tstar.report.figures.difficulty import difficulty_data


def test_tasks_are_in_the_order_of_their_difficulty(records):
    data = difficulty_data(records)
    assert [task.dataset for task in data.tasks] == ["easy", "middle", "hard"]
    assert all(task.plain is not None and task.bn is not None for task in data.tasks)
    assert data.model == "resnet10"
