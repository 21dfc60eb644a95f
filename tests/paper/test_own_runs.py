"""A user's runs in the paper's layout: same rows, same columns, same marks."""

import math

import pandas as pd
import pytest

from research.synthetic import planted_runs
from tests.paper.shared import run, shown
from tstar import TstarError, temperature
from tstar.formula.coefficients import VARIANTS
from tstar.paper.own_runs import dataset_name, described, mark, model_name, task_rows, yours


def cell(frame, method, column, block="ResNet50, fine-tuned"):
    return frame.set_index(["scenario", "method"]).loc[(block, method), column]


def test_each_run_finds_its_row():
    runs = [
        run(accuracy=0.50),
        run(accuracy=0.60, temperature=math.sqrt(2048)),
        run(accuracy=0.70, method="insert-ln", temperature=None),
        run(accuracy=0.10, temperature=5.0),
        run(accuracy=0.90, method="kd"),
        run(accuracy=0.75, norm="batch"),
    ]
    runs += [
        run(
            accuracy=0.8 + i / 100, norm="batch", temperature=temperature(2048, 43, 1.39, variant=v)
        )
        for i, v in enumerate(VARIANTS)
    ]
    frame = yours("datasets", pd.DataFrame(runs))
    wanted = {
        "T=1": 50,
        "T=sqrt(M)": 60,
        "Insert LN": 70,
        "BN, T=1": 75,
        "base": 80,
        "csg": 81,
        "cn": 82,
        "csgcn": 83,
    }
    for method, value in wanted.items():
        assert cell(frame, method, "gtsrb") == pytest.approx(value)
    marks = mark(frame, "datasets")
    assert cell(marks, "csgcn", "gtsrb") == "best"
    assert cell(marks, "cn", "gtsrb") in ("second", "")  # the advised T may be one of them
    assert frame.attrs["interpolated"] == set()
    assert frame.attrs["n"] == {("ResNet50, fine-tuned", "gtsrb"): (1, 1)}


def grid(accuracy, **facts):
    """T = 1 with BN, and T* of cn."""
    cn = temperature(2048, 43, 1.39, variant="cn")
    return [
        run(accuracy=accuracy - 0.01, norm="batch", **facts),
        run(accuracy=accuracy, norm="batch", temperature=cn, **facts),
    ]


def test_an_unmatched_mean_would_flip_the_sign():
    """Plain was run where training is easy alone. Where both were run, BN at T* is better by a point;
    the mean over all that was run says that plain is better by nineteen."""
    easy, hard = {"lr": 0.1}, {"lr": 0.001}
    runs = [run(accuracy=0.80, **easy), *grid(0.81, **easy), *grid(0.41, **hard)]
    frame = yours("datasets", pd.DataFrame(runs))
    assert cell(frame, "T=1", "gtsrb") == pytest.approx(80)
    assert cell(frame, "cn", "gtsrb") == pytest.approx(81)
    marks = mark(frame, "datasets")
    assert cell(marks, "T=1", "gtsrb") != "best"
    assert frame.attrs["n"] == {("ResNet50, fine-tuned", "gtsrb"): (1, 1)}


def test_seeds_are_matched_too():
    runs = [run(accuracy=0.80), *grid(0.81), *grid(0.31, seed=1)]
    frame = yours("datasets", pd.DataFrame(runs))
    assert cell(frame, "cn", "gtsrb") == pytest.approx(81)
    assert frame.attrs["n"] == {("ResNet50, fine-tuned", "gtsrb"): (1, 1)}


def test_one_condition_one_vote():
    """Ten seeds of one condition do not outvote one of the other."""
    many, few = {"lr": 0.1}, {"lr": 0.001}
    runs = [row for seed in range(10) for row in grid(0.9, seed=seed, **many)] + grid(0.5, **few)
    frame = yours("datasets", pd.DataFrame(runs))
    assert cell(frame, "cn", "gtsrb") == pytest.approx(70)
    assert frame.attrs["n"] == {("ResNet50, fine-tuned", "gtsrb"): (2, 11)}


def test_a_row_that_few_conditions_have_is_not_compared():
    runs = [row for lr in (0.1, 0.01, 0.001) for row in (run(lr=lr), *grid(0.6, lr=lr))]
    runs += [run(accuracy=0.99, method="insert-ln", temperature=None, lr=0.1)]
    frame = yours("datasets", pd.DataFrame(runs))
    assert "Insert LN" not in set(frame["method"])
    assert frame.attrs["n"] == {("ResNet50, fine-tuned", "gtsrb"): (3, 3)}


def test_sizes_of_one_data_set_have_columns_of_their_own():
    runs = [
        run("caltech101_32", size=32, num_train=1000),
        run("caltech101_96", size=96, num_train=1000),
    ]
    frame = yours("datasets", pd.DataFrame(runs))
    assert {"caltech101_32", "caltech101_96"} <= set(frame.columns)
    shared, rows = described(frame, "ResNet50, fine-tuned")
    assert shared == "1,000 samples"
    assert rows["px"] == {"caltech101_32": "32", "caltech101_96": "96"}
    assert rows["n"] == {"caltech101_32": "1 (1)", "caltech101_96": "1 (1)"}


def test_data_sets_keep_their_own_names_in_the_paper_s_order():
    """A subset of 16 pixels is not the paper's data set, and its short names are explained nowhere."""
    names = ["flowers102_32", "zoo", "gtsrb_16", "caltech101_32"]
    frame = yours("datasets", pd.DataFrame([run(name) for name in names]))
    found = [column for column in frame.columns if column in names]
    assert found == ["gtsrb_16", "caltech101_32", "flowers102_32", "zoo"]
    assert not {"GTS", "CT", "FLW"} & set(frame.columns)


def test_each_column_has_the_csg_of_its_own_runs():
    runs = [
        run("caltech101_32", size=32, csg=5.72),
        run("caltech101_96", size=96, csg=3.92),
        run("caltech101_96", size=96, csg=3.92, seed=1),
    ]
    rows = task_rows(yours("datasets", pd.DataFrame(runs)))
    assert rows["csg"] == {"caltech101_32": "5.72", "caltech101_96": "3.92"}
    assert set(rows["classes"].values()) == {"43"}
    runs = [run("gtsrb", csg=1.39, lr=0.1), run("gtsrb", csg=1.5, lr=0.01)]
    assert task_rows(yours("datasets", pd.DataFrame(runs)))["csg"] == {"gtsrb": "1.39–1.50"}


def test_what_a_heading_says_is_not_said_again():
    runs = [run("caltech101", size=s, num_train=9, scenario="scratch") for s in (32, 96)]
    frame = yours("models", pd.DataFrame(runs))
    assert described(frame, "caltech101 32 px")[0] == "9 samples"


def test_the_table_of_transformers_has_no_other_networks():
    rows = [
        run("caltech101", model=m, scenario="scratch")
        for m in ("vgg9", "vit_b_16", "timm/deit_tiny")
    ]
    frame = yours("transformers", pd.DataFrame(rows))
    assert [c for c in frame.columns if c != "method"] == ["ViT-B/16", "timm/deit_tiny"]
    with pytest.raises(TstarError, match="No run belongs"):
        yours("transformers", pd.DataFrame(rows[:1]))


def test_named_methods_are_their_rows():
    runs = [
        run(accuracy=0.3, method="default"),
        run(accuracy=0.4, method="ours-csgcn", norm="batch", temperature=8.66),
    ]
    frame = yours("datasets", pd.DataFrame(runs))
    assert cell(frame, "T=1", "gtsrb") == pytest.approx(30)
    assert cell(frame, "csgcn", "gtsrb") == pytest.approx(40)


def test_seeds_are_averaged_and_diverged_runs_are_chance():
    runs = [
        run(accuracy=0.5),
        run(accuracy=0.7, seed=1),
        run(accuracy=None, seed=2, status="diverged"),
        run(accuracy=0.0, seed=3, status="failed"),
    ]
    frame = yours("datasets", pd.DataFrame(runs))
    assert cell(frame, "T=1", "gtsrb") == pytest.approx(100 * (0.5 + 0.7 + 1 / 43) / 3)


def test_a_named_method_that_diverged_is_chance_too():
    runs = [
        run(accuracy=None, method="insert-ln", temperature=None, status="diverged"),
        run(accuracy=None, method="insert-ln", temperature=None, status="running"),
    ]
    frame = yours("datasets", pd.DataFrame(runs))
    assert cell(frame, "Insert LN", "gtsrb") == pytest.approx(100 / 43)


def test_a_grid_is_interpolated_at_the_method_s_temperature_and_marked():
    T = temperature(2048, 43, 1.39, variant="cn")
    low, high = 16.0, 32.0
    runs = [
        run(accuracy=a, norm="batch", temperature=t)
        for t, a in ((1.0, 0.2), (low, 0.6), (high, 0.4))
    ]
    frame = yours("datasets", pd.DataFrame(runs))
    wanted = 60 - 20 * math.log(T / low) / math.log(high / low)
    assert cell(frame, "cn", "gtsrb") == pytest.approx(wanted)
    row = frame.index[frame["method"] == "cn"].item()
    assert (row, "gtsrb") in frame.attrs["interpolated"]


def test_own_models_and_data_sets_get_their_own_places():
    runs = [run(accuracy=0.5, model="resnet10", scenario="scratch"), run("mine", accuracy=0.6)]
    frame = yours("datasets", pd.DataFrame(runs))
    assert cell(frame, "T=1", "gtsrb", "resnet10, from scratch") == pytest.approx(50)
    assert cell(frame, "T=1", "mine") == pytest.approx(60)


def test_the_other_measured_tables():
    models = yours(
        "models", pd.DataFrame([run("cifar10_32", model="convnext_small", scenario="scratch")])
    )
    assert models.set_index(["dataset", "method"]).loc[("cifar10_32", "T=1"), "ConvNeXt-S"] == 50
    swin = yours(
        "transformers", pd.DataFrame([run("caltech101", model="swin_t", scenario="scratch")])
    )
    assert swin.set_index("method").loc["T=1", "SwinT"] == 50
    smooth = pd.DataFrame([run(label_smoothing=0.1), run("dtd", label_smoothing=0.0, accuracy=0.9)])
    frame = yours("smoothing", smooth)
    assert cell(frame, "T=1", "gtsrb") == 50
    assert "dtd" not in frame.columns
    assert "gtsrb" not in yours("datasets", smooth).columns


def test_nothing_that_fits_is_said():
    with pytest.raises(TstarError, match="among 1 conditions"):
        yours("datasets", pd.DataFrame([run(method="kd")]))
    with pytest.raises(TstarError, match="next to a table of results, got 'tasks'"):
        yours("tasks", pd.DataFrame([run()]))
    with pytest.raises(TstarError, match="metric 'loss'"):
        yours("datasets", pd.DataFrame([run()]), metric="loss")


def test_names_of_data_sets_and_models():
    assert dataset_name("flowers102_32.npz") == "FLW"
    assert dataset_name("Oxford-IIIT_Pet") == "PET"
    assert dataset_name("CIFAR-100") == "CIFAR100"
    assert dataset_name("digits") == "digits"
    assert model_name("torchvision/resnet50") == "ResNet50"
    assert model_name("vgg9") == "vgg9"


def test_tables_of_coefficients_are_fitted_to_the_runs():
    runs = planted_runs("base", widths=(64, 512), tasks=((1.5, 10), (7.0, 100)))
    text = shown("coefficients", runs=runs, metric="val")
    assert "0.7239" in text
    assert "coefficients, fitted to these runs" in text
    assert len(yours("environments", runs, metric="val")) == 2 + 2
