"""Expressions that choose runs."""

import pytest

from tstar.errors import TstarError
from tstar.sweep.select import asked_by, selector

ROW = {
    "model": "vgg9",
    "lr": 0.1,
    "seed": 3,
    "csg": None,
    "augment": 1,
    "studies": '{"mine": "ab"}',
    "test_metric": 0.75,
}


@pytest.mark.parametrize(
    ("where", "chosen"),
    [
        ('model == "vgg9" and lr == 0.1', True),
        ('model == "vgg9" and not lr == 0.1', False),
        ('model in ("mlp", "vgg9")', True),
        ('model not in ["mlp", "vgg9"]', False),
        ("0.01 < lr <= 0.1", True),
        ("lr > 0.1 or seed == 3", True),
        ("csg > 1", False),
        ("csg == None", True),
        ("csg is None", True),
        ("lr is not None", True),
        ("-csg > 1", False),
        ("-lr < 0", True),
        ('"vgg" in model', True),
        ('"vgg" in weights', False),
        ("lr in (0.1, None)", True),
        ("augment == 1 and augment == True", True),
        ('augment == "./kit.py:noise"', False),
        ("not (lr > 1 or seed)", False),
        ("lr > -1", True),
        ("test_metric > 0.5", True),
        ("val_metric > 0.5", False),
    ],
)
def test_columns_are_compared_with_values(where, chosen):
    assert selector(where)(ROW) is chosen


def test_a_study_chooses_the_runs_that_it_asks_for_now():
    old, new, gone = ({"studies": f'{{"mine": {h}}}'} for h in ('"ab"', '"cd"', "null"))
    asked = [(new["studies"], 5.0), (old["studies"], 3.0), (old["studies"], 4.0)]
    asked += [('{"other": "ab"}', 9.0), (None, 9.0), (gone["studies"], 9.0), ("broken", None)]
    for order in (asked, asked[::-1]):
        mine = asked_by("mine", order)
        assert [mine(row) for row in (new, old, gone, {"studies": None})] == [True, *[False] * 3]
    assert asked_by("other", asked)({"studies": '{"mine": "cd", "other": "ab"}'})
    assert asked_by(None, [])(old)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ([('{"mine": "ab"}', 1.0)], "Unknown study 'mien'; did you mean 'mine'"),
        ([(None, 1.0)], "No run of the store names a study"),
        ([('{"mien": null}', 1.0)], "was changed, and none of the runs that it asks for now"),
    ],
)
def test_a_study_that_asks_for_nothing_is_an_error(asked, message):
    with pytest.raises(TstarError, match=message):
        asked_by("mien", asked)


@pytest.mark.parametrize(
    "where",
    [
        "lr = 1",
        "",
        "__import__('os').system('x')",
        "lr + 1 == 2",
        "(lambda: 1)()",
        "lr.real",
        "[x for x in lr]",
        "(",
    ],
)
def test_nothing_else_is_evaluated(where):
    with pytest.raises(TstarError, match="must compare columns"):
        selector(where)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("-model > 3", "only numbers have a sign, and the column model holds text"),
        ("model > 3", "the column model holds text, but 3 is a number"),
        ("metric > 0.5", "the column metric holds text, but 0.5 is a number"),
        ('lr == "0.1"', "the column lr holds numbers, but '0.1' is text"),
        ("lr in 3", "in needs a list, such as .*, but 3 is a number"),
        ("lr in seed", "in needs a list, such as .*, but the column seed holds numbers"),
        ('lr in (0.1, "0.2")', "the column lr holds numbers, but '0.2' is text"),
        ("lr in model", "the column lr holds numbers, but the column model holds text"),
        ("lr == (0.1, 0.2)", r"the column lr holds numbers, but \(0.1, 0.2\) is a list"),
        ("(1, 2) == (1, 2)", "a list can only follow in or not in"),
        ("seed == 1 or not model < 2", "the column model holds text, but 2 is a number"),
        ('model == b"vgg9"', "neither a number nor text"),
        ("1", "1 compares no column"),
        ("'foo>2'", "'foo>2' compares no column"),
        ("lr > 2 or not 1", "1 compares no column"),
        ("lr > 2 and 1 == 1", "1 == 1 compares no column"),
        ("(lr > 2,)", "compares no column"),
    ],
)
def test_what_no_run_or_every_run_would_meet_is_an_error(where, message):
    with pytest.raises(TstarError, match=f"must compare columns with values.*: .*{message}"):
        selector(where)


def test_unknown_columns_are_named():
    with pytest.raises(TstarError, match="did you mean 'model'"):
        selector('modle == "x"')
