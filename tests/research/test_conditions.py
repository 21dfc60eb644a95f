"""The design of the second atlas: seeded, stratified, and every stage decided by validation alone."""

from collections import Counter

from research import conditions
from research.running import identity
from research.second_atlas import missing, plain_runs, runs_of, tuned


def test_a_condition_depends_on_its_place_alone():
    assert conditions.draw(11) == conditions.draw(11)
    assert conditions.draw(11) != conditions.draw(11, seed=1)


def test_every_block_has_every_family_once():
    size = len(conditions.FAMILIES)
    for block in range(3):
        families = Counter(conditions.draw(block * size + i).family for i in range(size))
        assert families == Counter(dict.fromkeys(conditions.FAMILIES, 1))


def test_ranges():
    drawn = [conditions.draw(i).plain for i in range(120)]
    sizes = {name: facts for sets in conditions.DATA.values() for name, facts in sets.items()}
    for spec in drawn:
        assert 16 <= spec.num_features <= 2048
        assert spec.config.batch_size <= spec.train_samples / 2
        assert (spec.classes or 2) <= sizes[spec.dataset][0]
        assert 100 <= spec.config.steps <= 10_000
    assert {spec.config.optimizer for spec in drawn} == {"sgd", "adamw"}
    assert len({spec.config.batch_size for spec in drawn}) >= 6
    assert len({spec.config.schedule for spec in drawn}) == 4


def test_probes_train_the_output_layer_alone():
    drawn = [conditions.draw(conditions.PROBES + i) for i in range(12)]
    assert {c.plain.dataset for c in drawn} == set(conditions.PROBED)
    for condition in drawn:
        assert condition.family == "probe"
        assert conditions.features_of(condition.plain) in (384, 1280)
        assert condition.plain.model == "research.networks:linear"


def test_long_runs_of_every_deep_family_in_turn():
    drawn = [conditions.draw(conditions.DEEP + i) for i in range(12)]
    assert [c.family for c in drawn] == 2 * list(conditions.DEEP_FAMILIES)
    for condition in drawn:
        spec = condition.plain
        assert condition.long
        assert not condition.brief
        assert 5_000 <= spec.config.steps <= 8_000
        assert spec.config.steps * spec.config.batch_size >= 30 * spec.train_samples


def test_fine_tuning_takes_every_pair_in_turn_and_is_brief():
    drawn = [conditions.draw(conditions.TUNING + i) for i in range(len(conditions.TUNED))]
    assert [c.family for c in drawn] == [network for network, _ in conditions.TUNED]
    for condition in drawn:
        assert condition.plain.scenario == "finetune"
        assert (conditions.classes_of(condition.plain), conditions.features_of(condition.plain)) in [
            (101, 1280), (10, 1280), (102, 1280), (43, 1280), (77, 384), (150, 384)
        ]  # fmt: skip
        found = _run_all(condition, lambda s: 0.5)
        assert len(plain_runs(condition, found)) == 4
        decays = {s.config.weight_decay for s in runs_of(condition, found)}
        assert len(decays) == 1
        # With AdamW half of the law's T is 1, which is there anyway, and the advised T another.
        assert len(runs_of(condition, found)) == 12


def _run_all(condition, value):
    found = {}
    while todo := missing(condition, found):
        found |= {identity(s): {"status": "done", "val_accuracy": value(s)} for s in todo}
    return found


def test_plain_is_tuned_by_validation_in_both_directions():
    condition = conditions.draw(0)
    usual = condition.plain.config
    for sign in (1, -1):
        found = _run_all(condition, lambda s, sign=sign: 0.5 + sign * s.config.lr / 1e3)
        chosen = tuned(condition, found)
        assert (chosen.config.lr > usual.lr) == (sign > 0)
        rates = {s.config.lr for s in plain_runs(condition, found)}
        assert len(rates) == 4
        assert len(plain_runs(condition, found)) == 6


def test_who_has_tuned_is_compared_at_the_tuned_rate_on_two_seeds():
    condition = conditions.draw(0)
    found = _run_all(condition, lambda s: 0.5 + s.config.lr / 1e3)
    chosen = tuned(condition, found)
    assert chosen.config.lr != condition.plain.config.lr
    there = [s for s in runs_of(condition, found) if s.config == chosen.config]
    for norm, T in (("none", 1.0), ("batch", conditions.advised(chosen))):
        assert {s.seed for s in there if (s.norm, s.temperature) == (norm, T)} == {0, 1}


def test_a_run_that_diverged_counts_as_chance():
    condition = conditions.draw(0)
    low, found = condition.at(lr=1.0), {}
    while todo := missing(condition, found):
        for s in todo:
            gone = s.norm == "none" and s != low
            found[identity(s)] = (
                {"status": "diverged", "val_accuracy": None}
                if gone
                else {"status": "done", "val_accuracy": 0.9}
            )
    assert tuned(condition, found) == low
