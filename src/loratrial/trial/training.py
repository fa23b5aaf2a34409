"""Training one arm, from its parent's adapter to its own, on disk.

Whatever kills it, a restart goes on from the last checkpoint and ends in the same bytes: the ledger and the
learning record are cut back to the checkpoint, and everything after it is done again with the same seeds.
"""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from loratrial.errors import RunFolderError
from loratrial.evidence.jsonio import canonical
from loratrial.evidence.ledger import LedgerWriter
from loratrial.evidence.opened import TRAIN_SPLIT, OpenedRun, Place
from loratrial.learning.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from loratrial.learning.group import Group
from loratrial.learning.learner import Learner, Objective
from loratrial.learning.optimizer import Optimizer
from loratrial.learning.warm_start import Example, batches, learning_rate_at, supervised_update
from loratrial.policy.chat import completion_ids
from loratrial.policy.completion import Choice, Completion
from loratrial.policy.policy import Policy
from loratrial.progress import Progress
from loratrial.seeds import derive_seed
from loratrial.spec import GrpoArm, ReinforceArm, SupervisedArm
from loratrial.tasks.choosing import Mode, is_choice_task, shown, split_answer
from loratrial.tasks.task import State, Task
from loratrial.trial.decoding import training_decoding
from loratrial.trial.pricing import Pricing, pricing_of
from loratrial.trial.walk import align, choice_of, walk, waves_of

SECONDS_BETWEEN_CHECKPOINTS = 30.0
CHECKPOINT_FILE = "checkpoint.safetensors"


def train(run: OpenedRun, policy: Policy, arm: str, progress: Progress) -> dict[str, Any]:
    """Train `arm` from where `policy` stands (its parent's adapter), save the adapter, and reload it.

    The checkpoint stays, for the caller to remove once the arm is on record.

    Returns what `arm.json` says of it: the adapter's hash, the policy's version, and by how much the
    log-probabilities of the reloaded adapter differ from the trained one's (0.0 is expected).
    """
    spec = run.spec.arms[arm]
    run.folder.arm(arm).mkdir(parents=True, exist_ok=True)
    if isinstance(spec, SupervisedArm):
        _train_supervised(run, policy, arm, spec, progress)
    elif isinstance(spec, GrpoArm | ReinforceArm):
        _train_on_samples(run, policy, arm, spec, progress)
    digest = policy.save(run.folder.adapter(arm))
    difference = _reload_difference(run, policy, run.folder.adapter(arm))
    return {"adapter_sha256": digest, "version": policy.version, "reload_difference": difference}


def training_waves(run: OpenedRun, spec: GrpoArm | ReinforceArm) -> list[list[Place]]:
    """The groups that an arm learns from, wave by wave: those begun before `max_groups` were sampled."""
    kept: list[list[Place]] = []
    n_groups = 0
    for wave in waves_of(run.training_places(spec), spec.parallel_streams):
        if spec.max_groups is not None and n_groups >= spec.max_groups:
            break
        kept.append(wave)
        n_groups += len(wave)
    return kept


class _Record:
    """The learning record and the checkpoints of one arm."""

    def __init__(
        self, run: OpenedRun, policy: Policy, optimizer: Optimizer, pricing: Pricing, arm: str
    ) -> None:
        self._policy, self._optimizer, self._pricing = policy, optimizer, pricing
        self._path = run.folder.updates(arm)
        self._checkpoint_path = run.folder.arm(arm) / CHECKPOINT_FILE
        self._saved_at = time.monotonic()
        checkpoint = load_checkpoint(self._checkpoint_path)
        self.n_groups = checkpoint.n_groups if checkpoint else 0
        self.n_lines = checkpoint.n_lines if checkpoint else 0
        if checkpoint:
            policy.set_state(checkpoint.adapter)
            policy.version = checkpoint.version
            optimizer.set_state(checkpoint.optimizer)
            pricing.restore(checkpoint.price)
        self._path.touch()
        lines = self._path.read_bytes().splitlines(keepends=True)
        if len(lines) < self.n_lines:
            raise self.lost(self._path)
        os.truncate(self._path, sum(len(line) for line in lines[: self.n_lines]))

    def lost(self, path: Path) -> RunFolderError:
        """The error of a file that says less than the checkpoint was made after."""
        return RunFolderError(
            f"{path} has lost lines that {self._checkpoint_path.name} beside it goes on from; delete the "
            f"folder {path.parent} to train this arm anew"
        )

    def add(self, lines: Sequence[dict[str, Any]], n_groups: int) -> None:
        """Append `lines`; from time to time, make this the point to go on from."""
        with self._path.open("ab") as file:
            file.write("".join(canonical(line) + "\n" for line in lines).encode())
            file.flush()
            os.fsync(file.fileno())
        self.n_lines += len(lines)
        self.n_groups += n_groups
        if time.monotonic() - self._saved_at >= SECONDS_BETWEEN_CHECKPOINTS:
            self.save()

    def save(self) -> None:
        checkpoint = Checkpoint(
            self._policy.state(),
            self._optimizer.state(),
            self._policy.version,
            self.n_groups,
            self.n_lines,
            self._pricing.saved(),
        )
        save_checkpoint(self._checkpoint_path, checkpoint)
        self._saved_at = time.monotonic()


def _train_on_samples(
    run: OpenedRun, policy: Policy, arm: str, spec: GrpoArm | ReinforceArm, progress: Progress
) -> None:
    waves = training_waves(run, spec)
    reference = policy.state() if policy.version else None
    optimizer = Optimizer(policy.parameters, spec.learning_rate, spec.weight_decay, spec.gradient_clip)
    pricing = pricing_of(run, spec.token_price)
    record = _Record(run, policy, optimizer, pricing, arm)
    objective = Objective(
        advantage=spec.advantage,
        temperature=run.spec.sampling.temperature,
        clip_ratio=spec.clip_ratio if isinstance(spec, GrpoArm) else None,
        kl_penalty=spec.kl_penalty if isinstance(spec, GrpoArm) else 0.0,
        updates_per_group=spec.updates_per_group if isinstance(spec, GrpoArm) else 1,
    )
    learner = Learner(policy, optimizer, objective, reference, run.spec.model.candidates_per_pass)
    clock = _Clock()

    def learn(groups: list[Group]) -> None:
        sampling_seconds = clock.lap()
        lines = learner.learn(groups, pricing.price)
        pricing.look(groups)
        seconds = {"sampling_seconds": sampling_seconds, "learning_seconds": clock.lap()}
        record.add([{**line, **seconds} for line in lines], len(groups))

    with LedgerWriter(run.folder.training_ledger(arm)) as ledger:
        if ledger.n_groups < record.n_groups:
            raise record.lost(ledger.path)
        ledger.truncate(record.n_groups)
        done = align(ledger, waves)
        n_groups = sum(len(wave) for wave in waves)
        decoding = training_decoding(run.spec, arm)
        with progress.stage(f"train {arm} ({spec.method})", n_groups, "groups", done) as stage:
            clock.lap()
            walk(policy, run.task, arm, waves, decoding, ledger, learn, lambda: pricing.price, stage.advance)


def _train_supervised(
    run: OpenedRun, policy: Policy, arm: str, spec: SupervisedArm, progress: Progress
) -> None:
    examples = _examples(run, policy, spec.max_examples)
    seed = run.spec.trial.seed if spec.seed is None else spec.seed
    plan = batches(len(examples), spec.batch_size, spec.passes, seed)
    optimizer = Optimizer(policy.parameters, spec.learning_rate, spec.weight_decay, spec.gradient_clip)
    record = _Record(run, policy, optimizer, Pricing(None), arm)
    clock = _Clock()
    with progress.stage(f"train {arm} ({spec.method})", len(plan), "updates", record.n_lines) as stage:
        for number, batch in enumerate(plan[record.n_lines :], start=record.n_lines):
            rate = learning_rate_at(number, len(plan), spec.learning_rate, spec.warmup_updates, spec.schedule)
            dropout_seed = derive_seed("dropout", seed, number)
            chosen = [examples[index] for index in batch]
            figures = supervised_update(policy, optimizer, chosen, rate, dropout_seed)
            line = {"update": number, "examples": batch, "learning_rate": rate, **figures}
            record.add([{**line, "learning_seconds": clock.lap()}], 0)
            stage.advance(1, f"loss {figures['loss']:.3f}")


def _examples(run: OpenedRun, policy: Policy, limit: int | None) -> list[Example]:
    """Prompt and gold output of every training item, asked for as in sampling, each stream carrying what
    its gold outputs said."""
    mode = run.spec.sampling.mode
    choice = choice_of(policy, run.task, mode)
    examples: list[Example] = []
    for stream in run.task.dataset.split(TRAIN_SPLIT):
        state: State = ""
        for item in stream.items:
            if limit is not None and len(examples) >= limit:
                return examples
            asked = shown(run.task, item, mode, 0)
            prompt_ids = policy.prompt_ids([asdict(message) for message in run.task.messages(asked, state)])
            gold = run.task.gold(asked, state, run.task.dataset.target(item))
            examples.append(Example(prompt_ids, _said(run.task, policy, gold, mode, choice)))
            state = run.task.read(asked, gold, state).state
    return examples


def _said(task: Task, policy: Policy, text: str, mode: Mode, choice: Choice | None) -> Completion:
    """`text` as a policy would have said it in `mode`."""
    if choice is None or not is_choice_task(task):
        return Completion(completion_ids(policy.tokenizer, text), finish="stop")
    reasoning, label = split_answer(task, text)
    free = completion_ids(policy.tokenizer, reasoning) if mode == "reasoning" else []
    return Completion([*free, choice.label_ids[task.labels.index(label)]], finish="stop", choice=choice)


@torch.no_grad()
def _reload_difference(run: OpenedRun, policy: Policy, folder: Path) -> float:
    """The largest difference that reloading the adapter makes to the log-probabilities of a gold output."""
    (example,) = _examples(run, policy, 1)
    score: Callable[[], torch.Tensor] = lambda: policy.logprobs(  # noqa: E731
        example.prompt_ids, [example.completion], run.spec.sampling.temperature
    )[0]
    trained = score()
    policy.load(folder)
    return float((score() - trained).abs().max())


class _Clock:
    """Seconds since the last look."""

    def __init__(self) -> None:
        self._at = time.monotonic()

    def lap(self) -> float:
        before, self._at = self._at, time.monotonic()
        return round(self._at - before, 3)
