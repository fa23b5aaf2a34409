"""The dry run: what a trial would do and what that takes, told without loading weights or writing anything.

Prompts are counted as they would be if every answer so far had been the gold one, which is only an estimate
where an answer is carried on. Tokens are upper bounds: every completion at its cap, no tied group. Left out:
seconds and memory, which hang on the machine.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM

from loratrial.errors import ModelError
from loratrial.evidence.folder import RunFolder
from loratrial.evidence.opened import TRAIN_SPLIT, Evaluation, OpenedRun, Place
from loratrial.learning.warm_start import batches
from loratrial.policy import chat
from loratrial.policy.models import BaseDescription, describe_base
from loratrial.spec import GrpoArm, SupervisedArm, TrialSpec, UntrainedArm, arm_order, cautions
from loratrial.tasks.choosing import Mode, rotation_of, shown
from loratrial.tasks.task import Item, Message, State, Task
from loratrial.trial.decoding import evaluation_decoding, training_decoding
from loratrial.trial.preparing import make_task
from loratrial.trial.training import training_waves
from loratrial.trial.walk import Decoding

CHARACTERS_A_TOKEN = 4
"""What a token is taken to be where the tokenizer is not at hand: usual for English text."""


def plan(spec: TrialSpec) -> dict[str, Any]:
    """What `loratrial run --dry-run` prints: arms and evaluations in order, and their tokens at most.

    `forward_tokens` count every token that goes through the model, in sampling and in learning; a backward
    pass takes about twice a forward one and is not in them.

    Raises DataError when the task's grader fails or a split is empty, ModelError when nothing is known of the
    base or it has none of the adapter's layers.
    """
    task = make_task(spec)
    base = describe_base(spec.model.base, spec.model.revision)
    sizes = _sizes(spec, task, base)
    run = OpenedRun(RunFolder(Path()), spec, task)  # nothing is read from its folder
    arms = [_arm_plan(run, name, sizes) for name in arm_order(spec)]
    evaluations = [_evaluation_plan(run, evaluation, sizes) for evaluation in run.evaluations()]
    n_arms = len(spec.evaluated_arms)
    total = sum(arm["forward_tokens"] for arm in arms)
    total += n_arms * sum(evaluation["forward_tokens"] for evaluation in evaluations)
    longest = max(sizes, key=lambda place: sizes[place].prompt)
    return {
        "trial": spec.trial.name,
        "base": dict(base.identity),
        "base_parameters": base.n_parameters,
        "adapter_parameters": _adapter_parameters(spec, base),
        "counts": _how_counted(base),
        "longest_prompt": {"stream": longest[0], "item": longest[1], "tokens": sizes[longest].prompt},
        "warnings": _warnings(spec, base, sizes),
        "arms": arms,
        "evaluated_arms": list(spec.evaluated_arms),
        "evaluations_of_each_arm": evaluations,
        "forward_tokens": total,
    }


@dataclass(frozen=True)
class _Size:
    """One item in tokens."""

    prompt: int
    gold: int
    room: int
    """For one candidate after the prompt; 0 when the prompt is refused."""

    def completion(self, cap: int, mode: Mode) -> int:
        """The longest completion of one candidate; a label after its prefix is counted as one token."""
        return min(1 if mode == "direct" else cap + (mode == "reasoning"), self.room)


_Sizes = Mapping[tuple[str, int], _Size]


def _sizes(spec: TrialSpec, task: Task, base: BaseDescription) -> _Sizes:
    """The size of every item, asked for as in training, each stream carrying what its gold answers say."""
    sizes = {}
    mode = spec.sampling.mode
    for stream in task.dataset.streams:
        state: State = ""
        for item in (shown(task, item, mode, 0) for item in stream.items):
            gold = task.gold(item, state, task.dataset.target(item))
            prompt_tokens, gold_tokens = _count(base, task.messages(item, state), gold)
            room = min(spec.sampling.max_tokens, base.n_positions) - prompt_tokens
            sizes[_key(item)] = _Size(prompt_tokens, gold_tokens, max(0, room))
            state = task.read(item, gold, state).state
    return sizes


def _count(base: BaseDescription, messages: Sequence[Message], gold: str) -> tuple[int, int]:
    """The tokens of a prompt and of its gold answer, the answer's end included."""
    if base.tokenizer is None:
        characters = sum(len(message.content) for message in messages)
        return -(-characters // CHARACTERS_A_TOKEN), -(-len(gold) // CHARACTERS_A_TOKEN) + 1
    prompt_ids = chat.prompt_ids(base.tokenizer, [asdict(message) for message in messages])
    return len(prompt_ids), len(chat.completion_ids(base.tokenizer, gold))


def _key(item: Item) -> tuple[str, int]:
    return item.stream, item.index


def _how_counted(base: BaseDescription) -> str:
    if base.tokenizer is not None:
        return "prompts by the base's own tokenizer, carrying gold answers on; completions at their cap"
    return (
        f"prompts estimated as characters / {CHARACTERS_A_TOKEN} (no tokenizer at hand), carrying gold "
        "answers on; completions at their cap"
    )


def _n_prompts(task: Task, decoding: Decoding) -> int:
    """The different prompts of one group."""
    return len({rotation_of(task, decoding.rotate_labels, each) for each in range(decoding.n_candidates)})


def _sampling_tokens(
    task: Task, places: Sequence[Place], decoding: Decoding, sizes: _Sizes
) -> tuple[int, int]:
    """Prompt tokens (a prompt once, for all candidates that share it) and completion tokens of some
    groups."""
    of_places = [sizes[_key(place.item)] for place in places]
    longest = (size.completion(decoding.max_completion_tokens, decoding.mode) for size in of_places)
    return _n_prompts(task, decoding) * sum(size.prompt for size in of_places), decoding.n_candidates * sum(
        longest
    )


def _arm_plan(run: OpenedRun, name: str, sizes: _Sizes) -> dict[str, Any]:
    arm = run.spec.arms[name]
    head: dict[str, Any] = {"arm": name, "method": arm.method, "from": arm.parent}
    if isinstance(arm, UntrainedArm):
        return {**head, "forward_tokens": 0}
    if isinstance(arm, SupervisedArm):
        items = [item for stream in run.task.dataset.split(TRAIN_SPLIT) for item in stream.items]
        taken = [sizes[_key(item)] for item in items[: arm.max_examples]]
        prompt_tokens = arm.passes * sum(size.prompt for size in taken)
        gold_tokens = arm.passes * sum(size.gold for size in taken)
        return {
            **head,
            "examples": len(taken),
            "updates": len(batches(len(taken), arm.batch_size, arm.passes, seed=0)),
            "prompt_tokens": prompt_tokens,
            "gold_tokens": gold_tokens,
            "forward_tokens": prompt_tokens + gold_tokens,
        }
    waves = training_waves(run, arm)
    places = [place for wave in waves for place in wave]
    decoding = training_decoding(run.spec, name)
    prompt_tokens, completion_tokens = _sampling_tokens(run.task, places, decoding, sizes)
    of_prompt = -(-decoding.n_candidates // _n_prompts(run.task, decoding))
    per_pass = run.spec.model.candidates_per_pass or of_prompt
    looks = 1
    if isinstance(arm, GrpoArm):
        looks = arm.updates_per_group + (arm.kl_penalty > 0)  # the reference looks once
    learning = looks * (-(-of_prompt // per_pass) * prompt_tokens + completion_tokens)
    return {
        **head,
        "groups": len(places),
        "candidates": decoding.n_candidates,
        "updates": len(waves) * (arm.updates_per_group if isinstance(arm, GrpoArm) else 1),
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "forward_tokens": prompt_tokens + completion_tokens + learning,
    }


def _evaluation_plan(run: OpenedRun, evaluation: Evaluation, sizes: _Sizes) -> dict[str, Any]:
    places = list(run.evaluation_places(evaluation))
    decoding = evaluation_decoding(run.spec, evaluation.mode)
    prompt_tokens, completion_tokens = _sampling_tokens(run.task, places, decoding, sizes)
    return {
        "split": evaluation.split,
        "mode": evaluation.mode,
        "seed": evaluation.seed,
        "groups": len(places),
        "candidates": decoding.n_candidates,
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "forward_tokens": prompt_tokens + completion_tokens,
    }


def _adapter_parameters(spec: TrialSpec, base: BaseDescription) -> int:
    """What a LoRA adapter of the trial trains: rank x (width in + width out) for each adapted layer."""
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(base.config)  # type: ignore[no-untyped-call]
    widths = [
        module.in_features + module.out_features
        for name, module in model.named_modules()
        if isinstance(module, torch.nn.Linear) and name.rpartition(".")[2] in spec.adapter.targets
    ]
    if not widths:
        raise ModelError(f"adapter.targets: the base {base.identity['base']} has none of these layers")
    return spec.adapter.rank * sum(widths)


def _warnings(spec: TrialSpec, base: BaseDescription, sizes: _Sizes) -> list[str]:
    found = [*cautions(spec), *([base.note] if base.note else [])]
    if spec.model.device == "cuda" and not torch.cuda.is_available():
        found.append("model.device is 'cuda', and there is no GPU here")
    longest, cap = max(size.prompt for size in sizes.values()), spec.sampling.max_completion_tokens
    limit, name = min(
        (spec.sampling.max_tokens, "sampling.max_tokens"), (base.n_positions, "positions of the base")
    )
    if longest >= limit:
        found.append(f"the longest prompt ({longest} tokens) has no room in {limit} {name}: it is refused")
    elif longest + cap > limit:
        found.append(
            f"the longest prompt ({longest} tokens) leaves {limit - longest} of {limit} {name}: its "
            f"completions are cut before sampling.max_completion_tokens = {cap}"
        )
    gold = max(size.gold for size in sizes.values())
    if gold > cap and spec.sampling.mode != "direct":
        found.append(
            f"the longest gold answer ({gold} tokens) is longer than sampling.max_completion_tokens = {cap}: "
            "no candidate can give it whole"
        )
    return found
