"""``tstar fold`` on saved checkpoints: the plain architecture gives the tempered logits."""

import json
import os
import pickle
from pathlib import Path

import pytest
import torch
from torch import nn
from typer.testing import CliRunner

import tstar
from tstar.errors import TstarError
from tstar.lab.checkpoints import fold_state_dict
from tstar.lab.cli import app as program
from tstar.lab.cli import fold_commands  # noqa: F401  registers the command

RUNNER = CliRunner()


def network(kind="linear", bias=True):
    if kind == "conv":
        head = nn.Conv2d(6, 4, 1, bias=bias)
        return nn.Sequential(
            nn.Conv2d(3, 6, 3), nn.ReLU(), head, nn.AdaptiveAvgPool2d(1), nn.Flatten()
        )
    return nn.Sequential(nn.Flatten(), nn.Linear(48, 6), nn.ReLU(), nn.Linear(6, 4, bias=bias))


def trained(model, norm="batch"):
    """A tempered model that has taken a few steps, so that every tensor of the head has moved."""
    generator = torch.Generator().manual_seed(1)
    tempered = tstar.temper(model, 5.0, norm=norm)
    optimizer = torch.optim.SGD(tempered.parameters(), lr=0.5)
    for _ in range(4):
        x = torch.randn(8, 3, 4, 4, generator=generator) + 0.5
        y = torch.randint(4, (8,), generator=generator)
        optimizer.zero_grad()
        nn.functional.cross_entropy(tempered(x), y).backward()
        optimizer.step()
    return tempered.eval()


def images():
    return torch.randn(8, 3, 4, 4, generator=torch.Generator().manual_seed(2))


def run(*arguments):
    return RUNNER.invoke(program.app, ["fold", *map(str, arguments)])


@pytest.mark.parametrize("norm", ["batch", None])
@pytest.mark.parametrize("kind", ["linear", "conv"])
@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
def test_the_plain_architecture_loads_it_and_gives_the_same_logits(tmp_path, suffix, kind, norm):
    tempered = trained(network(kind), norm)
    path = tmp_path / f"run{suffix}"
    if suffix == ".pt":
        torch.save(tempered.state_dict(), path)
    else:
        pytest.importorskip("safetensors.torch").save_file(tempered.state_dict(), path)
    result = run(path, "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.output)
    assert list(report["temperatures"].values()) == [5.0]
    if suffix == ".pt":
        state = torch.load(report["output"], weights_only=True)
        assert list(state) == list(network(kind).state_dict())  # in the same order as well
    else:
        state = pytest.importorskip("safetensors.torch").load_file(report["output"])
    plain = network(kind)
    plain.load_state_dict(state)
    torch.testing.assert_close(plain.eval()(images()), tempered(images()), rtol=1e-5, atol=1e-6)


def test_a_trainer_s_checkpoint_is_searched_and_several_need_a_key(tmp_path):
    tempered = trained(network())
    state = tempered.state_dict()
    path = tmp_path / "trainer.pt"
    torch.save({"model": state, "ema": state}, path)
    assert "--key" in str(run(path).exception)
    assert run(path, "--key", "ema").exit_code == 0


def test_a_head_without_bias_gains_one_only_on_request(tmp_path):
    tempered = trained(network(bias=False))
    path = tmp_path / "run.pt"
    torch.save(tempered.state_dict(), path)
    refused = run(path)
    assert "allow_bias" in str(refused.exception)
    accepted = run(path, "--allow-bias")
    assert "added 3.bias" in accepted.output
    plain = network(bias=True)
    plain.load_state_dict(torch.load(tmp_path / "run.folded.pt", weights_only=True))
    torch.testing.assert_close(plain.eval()(images()), tempered(images()), rtol=1e-5, atol=1e-6)


class Payload:
    def __reduce__(self):
        return (exec, ("raise SystemExit('unpickled')",))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (pickle.dumps(Payload(), protocol=2), "nothing is unpickled"),
        (b"", "nothing is unpickled"),
        (None, "tempered head"),
    ],
    ids=["code", "empty", "plain"],
)
def test_a_file_that_is_not_a_tempered_state_dict_is_refused(tmp_path, content, said):
    path = tmp_path / "bad.pt"
    if content is None:
        torch.save(network().state_dict(), path)
    else:
        path.write_bytes(content)
    result = run(path)
    assert isinstance(result.exception, TstarError)
    assert said in str(result.exception)
    assert not (tmp_path / "bad.folded.pt").exists()


def test_missing_keys_and_existing_outputs_are_refused(tmp_path):
    broken = trained(network()).state_dict()
    del broken["3.norm.running_var"]
    with pytest.raises(TstarError, match="whole tempered head"):
        fold_state_dict(broken)
    path = tmp_path / "run.pt"
    torch.save(trained(network()).state_dict(), path)
    assert run(path).exit_code == 0
    assert "--force" in str(run(path).exception)
    assert "No checkpoint found" in str(run(tmp_path / "absent.pt").exception)
    for folder in (tmp_path, ".", "/"):
        assert "is a folder; name the file in it" in str(run(folder).exception)


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX files")
@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
def test_what_was_private_stays_so_and_only_files_are_replaced(tmp_path, suffix, monkeypatch):
    path, node = tmp_path / f"run{suffix}", tmp_path / f"node{suffix}"
    save = torch.save if suffix == ".pt" else pytest.importorskip("safetensors.torch").save_file
    save(trained(network()).state_dict(), path)
    os.mkfifo(node)
    assert "must be the path of a file" in str(run(path, "-o", node, "--force").exception)
    assert node.is_fifo()
    modes = []
    whole = Path.replace
    monkeypatch.setattr(
        Path, "replace", lambda p, to: (modes.append(p.stat().st_mode & 0o777), whole(p, to))[1]
    )
    for mode in (0o600, 0o640):
        path.chmod(mode)
        run(path, "--force")
        folded = tmp_path / f"run.folded{suffix}"
        assert folded.stat().st_mode & 0o777 == mode
    assert modes == [0o600, 0o640]  # before it stands there


def test_a_file_is_folded_in_place_and_whole_until_then(run, tmp_path, monkeypatch):
    safetensors = pytest.importorskip("safetensors.torch")
    model, file = trained(network()), tmp_path / "model.safetensors"
    safetensors.save_file(model.state_dict(), file)
    before = file.read_bytes()

    def full(*given, **options):
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr("safetensors.torch.save_file", full)
        failed = RUNNER.invoke(program.app, ["fold", str(file), "-o", str(file), "--force"])
    assert "disk full" in str(failed.exception)
    assert file.read_bytes() == before
    run("fold", str(file), "-o", str(file), "--force")
    assert set(safetensors.load_file(file)) == set(fold_state_dict(model.state_dict()))
    assert not list(tmp_path.glob("*.part"))
