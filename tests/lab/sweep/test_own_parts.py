"""Studies with a network, data, method, loss and so on of one's own."""

import json

import pytest

from tests.lab.sweep import small
from tests.lab.sweep.parts import OWN_STUDY, PARTS
from tests.lab.sweep.small import rows_of
from tstar.errors import TstarError
from tstar.lab.sweep.plan import make_plan
from tstar.lab.sweep.run import run_sweep
from tstar.lab.sweep.store import Store
from tstar.lab.sweep.study import load_study


def do(folder, engine):
    return small.do(load_study(folder / "study.toml"), folder / "runs.db", engine)


def test_every_part_may_be_yours(folder, inline):
    tally = do(folder, inline())
    assert (tally.done, tally.failed) == (2, 0)
    for row in rows_of(folder / "runs.db").values():
        assert (row["model"], row["dataset"]) == ("parts:net", "./parts.py:arrays")
        assert (row["num_classes"], row["domain"], len(row["source"])) == (3, "vector", 16)
        extra = json.loads(row["extra"])
        assert extra["metric"] == row["test_metric"] == pytest.approx(100 * row["test_accuracy"])
        assert extra["val_metric"] == row["val_metric"] == pytest.approx(100 * row["val_accuracy"])


METHOD = """
from tstar.lab.methods import Recipe

def mine(model, setting):
    return Recipe(model, lambda z, y, x: z.logsumexp(1).sum() - z[:, 0].sum(), report=recorded)

def recorded():
    return {"value": 1.5}

mine.needs = {"teacher"}
"""


def test_a_method_of_your_own_has_a_teacher_and_records_plain_values(tmp_path, inline):
    def sweep(method):
        (tmp_path / "mine.py").write_text(method, encoding="utf-8")
        text = (
            "csg = false\n[training]\nepochs = 1\n[[grid]]\ndataset = 'digits'\nmodel = 'mlp'\n"
            "num_features = 8\nmethod = './mine.py:mine'\nteacher_features = 16"
        )
        (tmp_path / "study.toml").write_text(text, encoding="utf-8")
        return do(tmp_path, inline())

    tally = sweep(METHOD)
    assert (tally.done, tally.failed) == (2, 0)
    tally = sweep(METHOD.replace("1.5", "{1.5}"))  # the teacher has no part of the method's
    assert (tally.failed, tally.before) == (1, 1)
    errors = [row["error"] for row in rows_of(tmp_path / "runs.db").values() if row["error"]]
    assert "must be numbers, text and lists" in errors[0]


@pytest.mark.parametrize(
    ("old", "new", "again"),
    [
        ("nn.ReLU()", "nn.Tanh()", 2),
        ("multi_margin_loss(logits, targets)", "multi_margin_loss(logits, targets, p=2)", 2),
    ],
)
def test_a_changed_function_is_trained_again(folder, inline, old, new, again):
    do(folder, inline())
    (folder / "parts.py").write_text(PARTS.replace(old, new), encoding="utf-8")
    tally = do(folder, inline())
    assert (tally.done, tally.before) == (again, 2 - again)


def test_a_part_that_changes_under_way_fails_the_run_instead_of_lying(folder, inline):
    class Meddling(inline):
        def submit(self, job):
            (folder / "parts.py").write_text(
                PARTS.replace("nn.ReLU()", "nn.Tanh()"), encoding="utf-8"
            )
            super().submit(job)

    tally = do(folder, Meddling())
    assert tally.failed == 2
    assert all("has changed since" in row["error"] for row in rows_of(folder / "runs.db").values())


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("import torch\n", "import torhc\n", r"\[training\]: .*:arrays could not be imported"),
        ("def net(", "def nets(", r"study, \[\[grid\]\] 1: .*did you mean 'nets'"),
        ("num_features=6):\n", "width=6):\n", "takes no num_features"),
        ("return nn.Seq", "return 3 or nn.Seq", r"an instance of torch\.nn.*Module, got int"),
        ("(in_channels,", "(7,", r"'parts:net' must take .* \(vector, of shape 5\), but raised"),
        ("x[:30], y[:30]", "x[:30]", "must give x_train, y_train, x_test and y_test"),
    ],
)
def test_parts_that_cannot_work_are_one_error_before_any_run(folder, inline, old, new, message):
    assert old in PARTS
    (folder / "parts.py").write_text(PARTS.replace(old, new), encoding="utf-8")
    engine = inline()
    with pytest.raises(TstarError, match=message):
        do(folder, engine)
    assert engine.executed == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("return nn.Sequential(", "return Wrong(", "16×K for a batch of 16"),
        ("return torch.optim.RMSprop(parameters, lr)", "return lr", "Optimizer, got float"),
        ("return 1 - step / (2 * steps)", "return None", "schedule returns must be a number"),
        ("return batch + 0.01", "return batch[:1] #", "must return a tensor of"),
        ("multi_margin_loss(logits, targets)", "softmax(logits, 1)", "must return one number"),
        (".float().mean() * 100", "", "metric returns must be a number"),
        ("num_features, num_classes)", "num_features, 9)", "each of the data's 3 classes"),
    ],
)
def test_a_part_that_fails_in_training_fails_its_runs_with_the_reason(
    folder, inline, old, new, message
):
    assert old in PARTS
    (folder / "parts.py").write_text(PARTS.replace(old, new), encoding="utf-8")
    assert do(folder, inline()).failed == 2
    assert all(message in row["error"] for row in rows_of(folder / "runs.db").values())


def test_machine_paths_are_refused(folder):
    text = OWN_STUDY.replace("parts:net", str(folder / "parts.py:net"))
    (folder / "study.toml").write_text(text, encoding="utf-8")
    with pytest.raises(TstarError, match="1: model must be a module or a file beside the study"):
        load_study(folder / "study.toml")


def test_a_method_of_your_own_with_options(folder, inline):
    text = OWN_STUDY.replace("temperature = 2", 'method = "./parts.py:method"')
    text = text.replace('loss = "./parts.py:loss"\n', "")
    (folder / "study.toml").write_text(
        text + '\n[options."./parts.py:method"]\npower = 3\n', encoding="utf-8"
    )
    assert do(folder, inline()).done == 2
    (row, *_) = rows_of(folder / "runs.db").values()
    assert (row["method"], row["options"]) == ("./parts.py:method", '{"power": 3}')


@pytest.mark.parametrize(
    ("made", "message"),
    [
        ("3", "Recipe, got int"),
        ("Recipe(3, len)", "failed: AttributeError"),
        ("Recipe(model, lambda z, y, x: 1 / 0)", "parts.py:method failed: ZeroDivisionError"),
    ],
)
def test_a_recipe_that_cannot_be_trained_with_is_named(folder, inline, made, message):
    text = OWN_STUDY.replace("temperature = 2", 'method = "./parts.py:method"')
    (folder / "study.toml").write_text(
        text.replace('loss = "./parts.py:loss"\n', ""), encoding="utf-8"
    )
    old = "Recipe(model, lambda z, y, x: nn.functional.cross_entropy(z / 2**power, y))"
    (folder / "parts.py").write_text(PARTS.replace(old, made), encoding="utf-8")
    assert do(folder, inline()).failed == 2
    assert all(message in row["error"] for row in rows_of(folder / "runs.db").values())


def test_a_network_that_fails_late_is_named_in_its_run(folder, inline):
    text = PARTS.replace("tired = 0", "tired = 1").replace("return nn.Seq", "return Tired(nn.Seq")
    text = text.replace("num_features, num_classes))", "num_features, num_classes)))")
    (folder / "parts.py").write_text(text, encoding="utf-8")
    assert do(folder, inline()).failed == 2
    for row in rows_of(folder / "runs.db").values():
        first, *_, last = row["error"].splitlines()
        assert first.startswith("Traceback")
        assert "parts.py:net failed: ArithmeticError: tired (parts.py, line" in last


def test_a_diverged_run_is_asked_for_no_metric(folder, inline):
    text = OWN_STUDY.replace("lr = 0.01", "lr = 1e30")
    (folder / "study.toml").write_text(text, encoding="utf-8")
    old = "(logits.argmax(1) == targets).float().mean() * 100"
    (folder / "parts.py").write_text(PARTS.replace(old, "logits.mean()"), encoding="utf-8")
    tally = do(folder, inline())
    assert (tally.diverged, tally.failed) == (2, 0)


def test_runs_that_end_together_are_stored_before_a_callback_raises(folder, inline):
    class Together(inline):
        def collect(self, timeout):
            return [
                outcome for _ in list(self.jobs) for outcome in super(Together, self).collect(0)
            ]

    def on_run(row):
        raise ValueError("no space")

    study = load_study(folder / "study.toml")
    with (
        Store(folder / "runs.db", create=True) as store,
        pytest.raises(TstarError, match=r"The callback .*on_run failed: ValueError: no sp"),
    ):
        run_sweep(make_plan(study, store), store, Together(slots=2), on_run=on_run)
    assert [row["status"] for row in rows_of(folder / "runs.db").values()] == ["done", "done"]
