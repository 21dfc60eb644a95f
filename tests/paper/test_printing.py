"""Tables of the paper on a terminal and as text."""

import pandas as pd
import pytest

from tests.paper.shared import run, shown
from tstar import paper


@pytest.mark.parametrize("name", list(paper.tables()))
def test_every_table_prints_with_its_marks(name):
    text = shown(name)
    marks = paper.marks(name)
    cells = paper.table(name).columns.difference(["table"])
    for column in cells:
        for sign, pattern in (("best", "**{}**"), ("second", "_{}_")):
            for index in marks.index[marks[column] == sign]:
                value = paper.table(name).loc[index, column]
                assert pattern.format(f"{value:.2f}" if isinstance(value, float) else value) in text


def test_bold_and_underlined_on_a_terminal():
    text = shown("transformers", plain=False)
    assert "\x1b[1m55.34" in text
    assert "\x1b[4m54.30" in text
    assert "**" not in text


def test_yours_is_a_table_of_its_own_that_says_what_differs():
    facts = {"size": 32, "num_train": 4000, "epochs": 20}
    runs = pd.DataFrame(
        [run(accuracy=0.4321, **facts), run(accuracy=0.5678, norm="batch", **facts)]
    )
    printed, own = shown("datasets", runs=runs).split("The same from your runs")
    assert "89.14" in printed
    assert "43.21" not in printed
    assert "89.14" not in own
    assert "ResNet50, fine-tuned · 32 px, 4,000 samples, 20 epochs" in own
    lines = own.splitlines()
    assert "_43.21_" in next(line for line in lines if "plain" in line)
    assert "**56.78**" in next(line for line in lines if "BN, T = 1" in line)
    assert "1 (1)" in own
