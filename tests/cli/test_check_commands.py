"""``tstar check`` as a user types it."""

import json
import re

import pytest

from tstar.errors import TstarError

SMALL = ["check", "--model", "mlp", "--features", "8", "--data", "digits", "--seeds", "1"]


def test_check_prints_a_table_and_a_sentence(run):
    result = run(*SMALL, "--temperatures", "1,500", "--budget", "8")
    assert re.search(
        r"^ *1 .*← .*peak", result.stdout, re.MULTILINE
    )  # far apart: hardly trained at 500
    assert "At your rate the formula points at T =" in result.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["check", "--model", "mlp", "--data", "digits", "--temperatures", "1,x"],
            "must be numbers separated by commas",
        ),
        (["check", "--model", "resnet1", "--data", "digits"], "did you mean 'resnet10'"),
        (["check", "--model", "mlp", "--data", "digit"], "did you mean 'digits'"),
        # Before anything is trained.
        (["check", "--model", "mlp", "--data", "digits", "-o", "a.gif"], "figure 'gif'"),
    ],
)
def test_errors_say_what_to_do(run, words, message):
    with pytest.raises(TstarError, match=re.escape(message)):
        run(*words)


def test_check_is_told_what_the_advice_depends_on(run):
    said = ["--tuned", "--scenario", "finetune", "--json"]
    result = run(*SMALL, "--temperatures", "1", "--budget", "5", *said)
    told = json.loads(result.stdout)["advice"]["training"]
    assert (told["tuned"], told["scenario"]) == (True, "finetune")
