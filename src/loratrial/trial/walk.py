"""The walk: the one way through the data, in training and in evaluation.

For each item of each stream: render the prompt, sample a group, read and score it, put it on disk, learn
(training only), carry candidate 0 on. A walk that was interrupted goes on where its ledger ends. Left out:
which order the items come in (`evidence.order`) and what is learned (the caller's `learn`).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby

from loratrial.evidence.judge import carried_state, judge
from loratrial.evidence.ledger import CandidateRecord, LedgerWriter, ids_sha256, messages_sha256, read_groups
from loratrial.evidence.opened import Place
from loratrial.learning.group import Group
from loratrial.learning.token_price import priced_reward
from loratrial.policy.completion import Choice, Completion
from loratrial.policy.policy import Policy
from loratrial.policy.sampler import Request
from loratrial.seeds import candidate_seed
from loratrial.tasks.choosing import Mode, is_choice_task, rotation_of, shown, supplied_text
from loratrial.tasks.task import Item, State, Task


@dataclass(frozen=True)
class Decoding:
    """How groups are sampled; in evaluation equal for every arm of a trial."""

    trial_seed: int
    n_candidates: int
    temperature: float
    max_completion_tokens: int
    max_tokens: int
    """Prompt and completion together."""
    mode: Mode = "text"
    rotate_labels: bool = False


@dataclass(frozen=True)
class _Prompt:
    """What some candidates of a group are asked: all of them, unless labels are rotated."""

    item: Item
    """As it is shown."""
    messages_sha256: str
    rotation: int
    candidates: Sequence[int]
    request: Request
    """Of these candidates alone."""
    refused: bool


@dataclass(frozen=True)
class _Asked:
    """One group about to be sampled."""

    place: Place
    prompts: tuple[_Prompt, ...]
    state: State


def waves_of(places: Iterator[Place], parallel: int) -> list[list[Place]]:
    """The groups that are sampled together: neighbours of the same walk at the same item index, at most
    `parallel` of them (0: any number), each of a stream of its own."""
    waves: list[list[Place]] = []
    for _, run in groupby(places, key=lambda place: (place.walk, place.item.index)):
        together = list(run)
        size = parallel or len(together)
        waves += [together[start : start + size] for start in range(0, len(together), size)]
    return waves


def walk(
    policy: Policy,
    task: Task,
    arm: str,
    waves: Sequence[Sequence[Place]],
    decoding: Decoding,
    ledger: LedgerWriter,
    learn: Callable[[list[Group]], None] | None = None,
    price: Callable[[], float | None] = lambda: None,
    advance: Callable[[int, str], None] = lambda n, note: None,
) -> None:
    """Walk `waves` to their end, from where `ledger` stands.

    `price` tells what a reasoning token costs at the moment, where an arm is charged for them.
    The ledger must end at the end of a wave (`align`). Raises ScorerError when the task fails at an output.
    """
    done = ledger.n_groups
    states = _carried(ledger) if done else {}
    ordinal = 0
    choice = choice_of(policy, task, decoding.mode)
    for wave in waves:
        if ordinal < done:
            ordinal += len(wave)
            continue
        asked = [_ask(policy, task, place, states, decoding, choice) for place in wave]
        completions = _sample(policy, asked, decoding)
        groups = []
        for each, said in zip(asked, completions, strict=True):
            records = _records(policy, task, arm, each, said, ordinal, decoding.mode, price())
            ledger.append_group(records)
            states[each.place.walk, each.place.stream.id] = carried_state(
                [record.reading for record in records], each.state
            )
            groups.append(
                Group(
                    ordinal,
                    [prompt.request.prompt_ids for prompt in _by_candidate(each)],
                    said,
                    [record.score.reward for record in records],
                    [record.reading.valid for record in records],
                )
            )
            ordinal += 1
        if learn:
            learn(groups)
        rewards = [reward for group in groups for reward in group.rewards]
        advance(len(wave), f"reward {sum(rewards) / len(rewards):.2f}")


def choice_of(policy: Policy, task: Task, mode: Mode) -> Choice | None:
    """The choice that ends every answer in `mode`; None for plain text. Raises ModelError when the policy's
    tokenizer has no single token for each label."""
    if mode == "text" or not is_choice_task(task):
        return None
    return policy.choice(supplied_text(task, mode), task.labels)


def align(ledger: LedgerWriter, waves: Sequence[Sequence[Place]]) -> int:
    """Cut `ledger` back to the last whole wave, which is where a walk can go on; returns its groups."""
    n_groups = 0
    for wave in waves:
        if n_groups + len(wave) > ledger.n_groups:
            break
        n_groups += len(wave)
    ledger.truncate(n_groups)
    return n_groups


def _carried(ledger: LedgerWriter) -> dict[tuple[str, str], State]:
    """What each stream carries after the groups that stand in the ledger."""
    states: dict[tuple[str, str], State] = {}
    for group in read_groups(ledger.path):
        key = group[0].walk, group[0].stream
        states[key] = carried_state([record.reading for record in group], states.get(key, ""))
    return states


def _ask(
    policy: Policy,
    task: Task,
    place: Place,
    states: dict[tuple[str, str], State],
    decoding: Decoding,
    choice: Choice | None,
) -> _Asked:
    state = "" if place.first else states[place.walk, place.stream.id]
    by_rotation: dict[int, list[int]] = {}
    for candidate in range(decoding.n_candidates):
        rotation = rotation_of(task, decoding.rotate_labels, candidate)
        by_rotation.setdefault(rotation, []).append(candidate)
    prompts = []
    for rotation, candidates in by_rotation.items():
        item = shown(task, place.item, decoding.mode, rotation)
        messages = task.messages(item, state)
        prompt_ids = policy.prompt_ids([asdict(message) for message in messages])
        room = min(decoding.max_tokens, policy.base.n_positions) - len(prompt_ids)
        cap = decoding.max_completion_tokens
        if choice is not None:
            room -= len(choice.supplied_ids) + 1
            cap = 0 if decoding.mode == "direct" else cap
        refused = room < min(cap, 1)
        seeds = [
            candidate_seed(decoding.trial_seed, place.walk, place.stream.id, place.item.index, candidate)
            for candidate in candidates
        ]
        request = Request(prompt_ids, seeds, 0 if refused else min(cap, room), None if refused else choice)
        prompts.append(_Prompt(item, messages_sha256(messages), rotation, candidates, request, refused))
    return _Asked(place, tuple(prompts), state)


def _sample(policy: Policy, asked: Sequence[_Asked], decoding: Decoding) -> list[list[Completion]]:
    """The completions of every group, in the order of its candidates."""
    requests = [prompt.request for each in asked for prompt in each.prompts]
    sampled = iter(policy.sample(requests, decoding.temperature))
    found = []
    for each in asked:
        of_group = {
            candidate: completion
            for prompt in each.prompts
            for candidate, completion in zip(prompt.candidates, next(sampled), strict=True)
        }
        found.append([of_group[candidate] for candidate in range(decoding.n_candidates)])
    return found


def _by_candidate(asked: _Asked) -> list[_Prompt]:
    """The prompt of each candidate of a group."""
    found = {candidate: prompt for prompt in asked.prompts for candidate in prompt.candidates}
    return [found[candidate] for candidate in range(len(found))]


def _records(
    policy: Policy,
    task: Task,
    arm: str,
    asked: _Asked,
    completions: Sequence[Completion],
    ordinal: int,
    mode: Mode,
    price: float | None,
) -> list[CandidateRecord]:
    place = asked.place
    hashes = {prompt.rotation: ids_sha256(prompt.request.prompt_ids) for prompt in asked.prompts}
    records = []
    pairs = zip(_by_candidate(asked), completions, strict=True)
    for candidate, (prompt, completion) in enumerate(pairs):
        text = policy.text(completion)
        finish = "refused" if prompt.refused else completion.finish
        reading, score = judge(task, prompt.item, text, finish, asked.state)
        n_reasoning = completion.n_reasoning
        records.append(
            CandidateRecord(
                walk=place.walk,
                arm=arm,
                group=ordinal,
                stream=place.stream.id,
                item=place.item.index,
                candidate=candidate,
                n_candidates=len(completions),
                seed=prompt.request.seeds[prompt.candidates.index(candidate)],
                policy_version=policy.version,
                messages_sha256=prompt.messages_sha256,
                prompt_ids_sha256=hashes[prompt.rotation],
                n_prompt_tokens=len(prompt.request.prompt_ids),
                mode=mode,
                rotation=prompt.rotation,
                token_ids=tuple(completion.token_ids),
                supplied_ids=completion.choice.supplied_ids if completion.choice else (),
                n_reasoning=n_reasoning,
                text=text,
                finish=finish,
                logprobs=tuple(completion.logprobs),
                reading=reading,
                score=score,
                price=price,
                priced_reward=None if price is None else priced_reward(score.reward, price, n_reasoning),
                carried=candidate == 0,
            )
        )
    return records
