"""What every classifier goes through. A family inherits the class and says how to build a tiny member."""

import copy
from collections.abc import Mapping
from typing import ClassVar

import pytest
import torch
from torch import nn

import tstar
from tstar.output_layer import tempered_heads

CLASSES = 5
T = 4.0


def tensors(value):
    """Every tensor in a nested output."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, Mapping):
        value = list(value.values())
    return [t for v in value for t in tensors(v)] if isinstance(value, list | tuple) else []


class Contract:
    """Subclasses give ``cases``: name → (build, example, paths of the heads, M)."""

    cases: ClassVar[dict] = {}

    def pytest_generate_tests(self, metafunc):
        metafunc.parametrize("case", list(self.cases))

    def build(self, case):
        torch.manual_seed(0)
        build, example, paths, features = self.cases[case]
        return build(), example(), [paths] if isinstance(paths, str) else paths, features

    def call(self, model, example):
        return model(**example) if isinstance(example, Mapping) else model(example)

    def logits(self, model, example):
        with torch.no_grad():
            output = self.call(model, example)
        return output["logits"] if isinstance(output, Mapping) else tensors(output)[0]

    def trained(self, model, example, paths, steps=2):
        tempered = tstar.temper(model, T, head=paths).train()
        optimizer = torch.optim.SGD(tempered.parameters(), lr=1e-2)
        for _ in range(steps):
            outputs = [
                t for t in tensors(self.call(tempered, example)) if t.shape[-1:] == (CLASSES,)
            ]
            losses = [
                nn.functional.cross_entropy(
                    o.flatten(0, -2), torch.arange(o[..., 0].numel()) % CLASSES
                )
                for o in outputs
            ]
            optimizer.zero_grad()
            torch.stack(losses).sum().backward()
            nn.utils.clip_grad_norm_(tempered.parameters(), 1.0)
            optimizer.step()
        return tempered

    def test_the_head_is_found_without_help(self, case):
        model, _, paths, features = self.build(case)
        if len(paths) == 1:
            head = tstar.find_head(model)
            assert (head.path, head.num_features, head.num_classes) == (paths[0], features, CLASSES)
        else:
            with pytest.raises(tstar.TstarError, match="head='all'"):
                tstar.find_head(model)
            assert set(tempered_heads(tstar.temper(model, T, head="all"))) == set(paths)

    def test_a_step_reaches_the_layer_the_norm_and_what_lies_before(self, case):
        # Gradients, not moved values: where clipping leaves steps below the last bit of float32, whether a
        # value of 1 moves depends on the processor; whether its gradient is zero does not.
        model, example, paths, _ = self.build(case)
        tempered = self.trained(model, example, paths)
        reached = [p for p in tempered.parameters() if p.grad is not None and p.grad.any()]
        heads = [tempered.get_submodule(path) for path in paths]
        for head in heads:
            assert int(head.norm.num_batches_tracked) == 2
            assert any(p is head.weight for p in reached)
            assert any(p is head.norm.weight for p in reached)
        of_heads = [p for head in heads for p in head.parameters()]
        assert any(not any(p is own for own in of_heads) for p in reached)

    def test_folding_gives_the_plain_architecture_with_the_tempered_logits(self, case):
        model, example, paths, _ = self.build(case)
        tempered = self.trained(model, example, paths).eval()
        bare = [p for p in paths if model.get_submodule(p).bias is None]
        folded = tstar.fold(tempered, allow_bias=bool(bare))
        expected = self.logits(tempered, example)
        torch.testing.assert_close(self.logits(folded, example), expected, rtol=1e-4, atol=1e-5)
        added = set(folded.state_dict()) ^ set(model.state_dict())
        assert added == {f"{path}.bias" for path in bare}
        if not bare:
            model.load_state_dict(folded.state_dict())
            plain = self.logits(model.eval(), example)
            torch.testing.assert_close(plain, expected, rtol=1e-4, atol=1e-5)
        assert expected.std() > 0  # constant logits would agree with anything

    def test_tempering_and_untempering_leave_the_model_as_it_was(self, case):
        model, example, paths, _ = self.build(case)
        model.eval()
        state = copy.deepcopy(model.state_dict())
        tempered = tstar.temper(model, T, head=paths)
        assert not any(module.training for module in tempered.modules())
        back = tstar.untemper(tempered).state_dict()
        assert list(back) == list(state)
        assert all(torch.equal(back[name], state[name]) for name in state)
        torch.testing.assert_close(
            self.logits(tstar.untemper(tempered), example), self.logits(model, example)
        )
