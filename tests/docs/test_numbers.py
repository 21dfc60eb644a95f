"""Numbers in sentences of the README and the documentation, computed anew from the committed data.

Tables are made by scripts; what stands in a sentence is compared here.
"""

import csv
import json
import re
import statistics
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "results"


def rows(path):
    with (RESULTS / path).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def overhead():
    step = "training step, tempered / plain"
    ratios = [
        float(r["other"]) / float(r["plain"])
        for r in rows("quality/overhead.csv")
        if r["what"] == step
    ]
    text = (RESULTS / "quality" / "overhead.md").read_text(encoding="utf-8")
    low, high = re.search(rf"{step} \| [\d.]+ \| ([\d.]+) to ([\d.]+)", text).groups()
    return f"(ratio {statistics.median(ratios):.2f}, 95 % interval {float(low):.2f} to {float(high):.2f})"


def two_workers():
    found = json.loads((RESULTS / "sweep" / "benchmark.json").read_text(encoding="utf-8"))
    both = found["sixteen_longer_runs"]
    return f"[{both['one_worker_seconds'] / both['two_workers_seconds']:.1f} times]"


def papers_evidence():
    import tstar

    path = Path(tstar.__file__).parent / "lab" / "paper" / "default_variant.json"
    found = json.loads(path.read_text(encoding="utf-8"))
    words = {6: "six", 8: "eight", 9: "nine", 10: "ten"}
    scratch, tuned = (found[name] for name in ("scratch", "finetune"))
    first, second = (
        f"{words[f['wins']]} of {words[f['datasets']]} data sets" for f in (scratch, tuned)
    )
    return (
        f"{first} from scratch, {scratch['mean_gain']:+.1f} on average",
        f"{second}, {tuned['mean_gain']:+.1f} on average",
    )


def coefficients():
    from tstar.formula import published

    return tuple(
        f"| {name} | "
        + " | ".join(
            "" if value is None else f"{value:g}".replace("-", "−")
            for value in (entry.alpha, entry.beta, entry.gamma, entry.delta)
        ).replace("|  |", "| |")
        for name, entry in published().items()
    )


def covariances():
    trained = {
        (r["dataset"], float(r["temperature"])): r
        for r in rows("paper/variance.csv")
        if r["when"] == "after training" and r["features"] == "64"
    }
    names = ("digits", "cifar10_32", "gtsrb_32", "cifar100_32")
    first, *middle, last = (f"{float(trained[n, 1.0]['covariance']):.2g}" for n in names)
    return (
        f"it falls from {first} (digits, csg {float(trained['digits', 1.0]['csg']):.2f}) through {' and '.join(middle)} "
        f"to {last} (CIFAR-100, csg {float(trained['cifar100_32', 1.0]['csg']):.0f})"
    )


def lost_in_short_runs():
    import tstar
    from tstar.lab.curves import conditions

    worst = {}
    for condition in conditions(tstar.lab.atlas().query("atlas == 1")):
        facts = condition.facts
        if facts["optimizer"] != "sgd" or round(facts["lr"] * facts["steps"], 9) != 2:
            continue
        curve = condition.curve()
        base = {} if curve is None else curve.by_seed(1.0)
        for name in ("csgcn", "cn", "base", "csg") if base else ():
            M, K = int(facts["num_features"]), int(facts["num_classes"])
            there = curve.at_by_seed(tstar.temperature(M, K, facts["csg"], variant=name))
            gains = [100 * (there[seed] - base[seed]) for seed in there.keys() & base.keys()]
            if gains:
                worst[name] = min(worst.get(name, 0.0), statistics.fmean(gains))
    lost = sorted(-points for points in worst.values())
    return f"lost {lost[0]:.0f} to {lost[-1]:.0f} points at worst"


def evidence():
    import tstar

    return f"over {len(tstar.lab.atlas()) // 1000},000 real training runs"


def constant_of_the_law():
    from tstar import law

    return f"c = {law.SGD:g}"


def table(path, after="# "):
    """The cells of a page's lines by their first, of equal ones the first after a heading."""
    text = (RESULTS / path).read_text(encoding="utf-8").partition(after)[2]
    lines = (line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| "))
    found = {}
    for name, *cells in lines:
        found.setdefault(name, cells)
    return found


def fresh_test(heading, arm):
    """n, median, mean and its limits, gained and lost, as README rounds them."""
    cells = table("fresh/README.md", f"### {heading}\n")[arm]
    numbers = re.findall(r"[+-][\d.]+", f"{cells[4]} {cells[2]}")
    median, mean, *limits = (f"{float(number):+.1f}" for number in numbers)
    return cells[0], median, mean, " to ".join(limits), *(c.split()[0] for c in cells[5:7])


def headline():
    n, median, mean, limits, *_ = fresh_test("From scratch", "the table")
    _, constant, mean_of_constant, *_ = fresh_test("From scratch", "BN, the law's T, rate × 3")
    tuned = fresh_test("Fine-tuned", "the table")
    return (
        f"a median of {median} points over the plain model in {n} trainings",
        f"(mean {mean}, 95%: {limits})",
        f"gained {constant} (mean {mean_of_constant})",
        "In {} fine-tunings the table gained a median of {} (mean {}, {})".format(*tuned),
    )


def papers_method_in_the_fresh_test():
    n, median, _, _, gained, lost = fresh_test("From scratch", "BN, the paper's cn")
    scratch = f"from scratch: median {median}, {gained} gain and {lost} lose, n = {n}"
    n, median, mean, limits, gained, lost = fresh_test("Fine-tuned", "BN, the paper's csgcn")
    return (
        scratch,
        f"median {median}, mean {mean} ({limits}), {gained} gain and {lost} lose, n = {n}",
    )


def worth_of_the_law():
    known = {name: cells[:2] for name, cells in table("atlas2/README.md").items()}
    longer = "native, 1,000 steps and more: "
    sgd, adam = "native, SGD: ", "native, AdamW: "
    law = "BN, the law's T"
    n, faster = known[f"{sgd}{law}, rate × 3"]
    tuned, over_tuned = known[f"{sgd}BN, T over tuned plain"]
    count, plain = known[f"{adam}rate × 3"]
    return (
        f"gained a median of {faster} points over the plain model (n = {n})",
        f"at the same rate {known[sgd + law][1]}",
        f"at three times the rate {known[sgd + 'rate × 3'][1]}.",
        f"BatchNorm and T gained {over_tuned} (n = {tuned})",
        f"at three times the rate gained {plain} (n = {count})",
        f"the same rate {known[adam + law][1]}.",
        f"BatchNorm and T gained a median of {known[longer + law][1]}, "
        f"three times the rate {known[longer + 'rate × 3'][1]} (n = {known[longer + law][0]})",
    )


def transformers():
    from tstar.lab import paper

    printed = paper.table("transformers").set_index("method").loc["csgcn", "ViT-B/16"]
    notes = paper.table("footnotes").set_index("column").loc["ViT-B/16"]
    return f"fell to {printed:.0f} % at lr 0.1 and reached {float(notes['value']):.0f} % at {notes['lr']}"


@pytest.mark.parametrize(
    ("page", "made"),
    [
        ("docs/practitioners.md", overhead),
        ("docs/researchers.md", two_workers),
        ("docs/does-the-paper-hold.md", papers_evidence),
        ("docs/mathematics.md", coefficients),
        ("docs/mathematics.md", covariances),
        ("docs/practitioners.md", lost_in_short_runs),
        ("docs/practitioners.md", transformers),
        ("docs/researchers.md", evidence),
        ("docs/training.md", constant_of_the_law),
        ("docs/training.md", worth_of_the_law),
        ("README.md", headline),
        ("docs/does-the-paper-hold.md", papers_method_in_the_fresh_test),
    ],
)
def test_a_sentence_has_the_numbers_of_the_data(page, made):
    pytest.importorskip("pandas")
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    wanted = made()
    for phrase in (wanted,) if isinstance(wanted, str) else wanted:
        assert phrase in text, f"{page} must say {phrase!r}"


@pytest.mark.parametrize("page", ["README.md", "docs/practitioners.md"])
def test_the_pages_show_the_table_of_recipes_as_it_is(page):
    from docs.recipes import filled

    text = (ROOT / page).read_text(encoding="utf-8")
    assert "| from scratch, SGD | " in text
    assert filled(text) == text
