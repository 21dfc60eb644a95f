"""One thread a process: the suite runs on several processes, and small networks gain nothing from more.

Nothing hangs on how busy the machine is: every test draws the same random numbers, whatever ran before it on its
worker, and property tests have no deadlines. Their examples are the same in every run, so that a change alone can break
them; ``--hypothesis-profile=random`` draws new ones (``make test-portable``).
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("HF_HUB_OFFLINE", "1")  # peft asks for a local model's configuration, too

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, settings

PATIENT = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("tstar", derandomize=True, **PATIENT)
settings.register_profile("random", **PATIENT)
settings.load_profile("tstar")


@pytest.hookimpl(tryfirst=True)  # before the fixtures of its module
def pytest_runtest_setup():
    torch.manual_seed(0)


@pytest.fixture
def save_tokenizer() -> Callable[[Path, Sequence[str]], None]:
    """Writes a tokenizer of one token a word, numbered as the words are; [PAD] and [UNK] among them."""

    def save(folder: Path, words: Sequence[str]) -> None:
        import tokenizers
        import transformers

        model = tokenizers.models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="[UNK]")
        raw = tokenizers.Tokenizer(model)
        raw.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
        transformers.PreTrainedTokenizerFast(
            tokenizer_object=raw, pad_token="[PAD]", unk_token="[UNK]"
        ).save_pretrained(folder)

    return save


# A module's, not the session's: playwright keeps an event loop running in this thread while it is open, and other
# modules have loops of their own.
@pytest.fixture(scope="module")
def browser():
    from tests.browsing import running

    yield from running()
