"""What tests of models, learning and trials share: policies on random models, and one finished small run."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch

from loratrial.policy.models import load_base
from loratrial.policy.policy import Policy
from loratrial.progress import SilentProgress
from loratrial.spec import TrialSpec, parse
from loratrial.trial.run import run_trial

ALL_TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")

TRIAL = """
[trial]
name = "letters"
seed = 11
control = "base"
[model]
base = "tiny"
device = "cpu"
threads = 1
[adapter]
rank = 2
alpha = 4
targets = ["q_proj", "v_proj", "down_proj"]
[task]
kind = "letters_task:LettersTask"
[sampling]
candidates = 3
temperature = 1.5
max_completion_tokens = 6
max_tokens = 256
[arms.base]
method = "none"
[arms.warm]
method = "supervised"
from = "base"
learning_rate = 1e-2
batch_size = 2
warmup_updates = 1
schedule = "linear"
[arms.trained]
method = "grpo"
from = "warm"
learning_rate = 1e-2
parallel_streams = 2
[arms.loo]
method = "reinforce"
from = "base"
learning_rate = 1e-2
max_groups = 2
[evaluation]
seeds = [7]
parallel_streams = 1
"""


@pytest.fixture(autouse=True, scope="session")
def _one_thread():
    """Sums are split over threads, so exact comparisons need a fixed number of them."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def make_policy() -> Callable[..., Policy]:
    """A policy on a random model whose adapter does something: B is drawn as well."""

    def make(name: str = "tiny", *, strength: float = 0.1, seed: int = 3, **options) -> Policy:
        options = {"rank": 4, "alpha": 8, "targets": ALL_TARGETS, **options}
        policy = Policy(load_base(name), **options)
        policy.reset(seed)
        stir(policy, strength, seed)
        return policy

    return make


def stir(policy: Policy, strength: float, seed: int = 3) -> None:
    """Draw the adapter's B matrices, which a fresh adapter has at zero."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, value in policy.parameters.items():
            if "lora_B" in name:
                value.copy_(strength * torch.randn(value.shape, generator=generator) / math.sqrt(len(value)))


@pytest.fixture(scope="session")
def letters_spec() -> Callable[..., TrialSpec]:
    """The trial of the toy task, with single values put into it."""

    def make(*overrides: str, text: str = TRIAL) -> TrialSpec:
        return parse(text, "letters", overrides)

    return make


@pytest.fixture(scope="session")
def finished(letters_spec, tmp_path_factory) -> Path:
    """The run folder of the toy trial, carried to its end; not to be changed."""
    folder = tmp_path_factory.mktemp("finished") / "run"
    run_trial(letters_spec(), folder, SilentProgress(), "test")
    return folder


def random_ids(n: int, seed: int) -> list[int]:
    """`n` byte ids."""
    return torch.randint(0, 256, (n,), generator=torch.Generator().manual_seed(seed)).tolist()


def lengths_to_ids(lengths: Sequence[int], seed: int = 5) -> list[list[int]]:
    """A completion of bytes of each length."""
    return [random_ids(length, seed + index) for index, length in enumerate(lengths)]
