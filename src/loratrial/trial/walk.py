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
from loratrial.policy.policy import Policy
from loratrial.policy.sampler import Completion, Request
from loratrial.seeds import candidate_seed
from loratrial.tasks.task import Message, State, Task


@dataclass(frozen=True)
class Decoding:
    """How groups are sampled; equal for every arm of a trial."""

    trial_seed: int
    n_candidates: int
    temperature: float
    max_completion_tokens: int
    max_tokens: int
    """Prompt and completion together."""


@dataclass(frozen=True)
class _Asked:
    """One group about to be sampled."""

    place: Place
    messages: tuple[Message, ...]
    prompt_ids: list[int]
    request: Request
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
    advance: Callable[[int, str], None] = lambda n, note: None,
) -> None:
    """Walk `waves` to their end, from where `ledger` stands.

    The ledger must end at the end of a wave (`align`). Raises ScorerError when the task fails at an output.
    """
    done = ledger.n_groups
    states = _carried(ledger) if done else {}
    ordinal = 0
    for wave in waves:
        if ordinal < done:
            ordinal += len(wave)
            continue
        asked = [_ask(policy, task, place, states, decoding) for place in wave]
        sampled = policy.sample([each.request for each in asked], decoding.temperature)
        groups = []
        for each, completions in zip(asked, sampled, strict=True):
            records = _records(policy, task, arm, each, completions, ordinal)
            ledger.append_group(records)
            states[each.place.walk, each.place.stream.id] = carried_state(
                [record.reading for record in records], each.state
            )
            groups.append(
                Group(
                    ordinal,
                    each.prompt_ids,
                    completions,
                    [record.score.reward for record in records],
                    [record.reading.valid for record in records],
                )
            )
            ordinal += 1
        if learn:
            learn(groups)
        rewards = [reward for group in groups for reward in group.rewards]
        advance(len(wave), f"reward {sum(rewards) / len(rewards):.2f}")


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
) -> _Asked:
    state = "" if place.first else states[place.walk, place.stream.id]
    messages = task.messages(place.item, state)
    prompt_ids = policy.prompt_ids([asdict(message) for message in messages])
    room = min(decoding.max_tokens, policy.base.n_positions) - len(prompt_ids)
    seeds = [
        candidate_seed(decoding.trial_seed, place.walk, place.stream.id, place.item.index, candidate)
        for candidate in range(decoding.n_candidates)
    ]
    request = Request(prompt_ids, seeds, min(decoding.max_completion_tokens, room))
    return _Asked(place, messages, prompt_ids, request, state)


def _records(
    policy: Policy, task: Task, arm: str, asked: _Asked, completions: Sequence[Completion], ordinal: int
) -> list[CandidateRecord]:
    place = asked.place
    prompt_hashes = messages_sha256(asked.messages), ids_sha256(asked.prompt_ids)
    records = []
    for candidate, completion in enumerate(completions):
        text = policy.decode(completion.token_ids)
        finish = completion.finish if asked.request.max_tokens > 0 else "refused"
        reading, score = judge(task, place.item, text, finish, asked.state)
        records.append(
            CandidateRecord(
                walk=place.walk,
                arm=arm,
                group=ordinal,
                stream=place.stream.id,
                item=place.item.index,
                candidate=candidate,
                n_candidates=len(completions),
                seed=asked.request.seeds[candidate],
                policy_version=policy.version,
                messages_sha256=prompt_hashes[0],
                prompt_ids_sha256=prompt_hashes[1],
                n_prompt_tokens=len(asked.prompt_ids),
                token_ids=tuple(completion.token_ids),
                text=text,
                finish=finish,
                logprobs=tuple(completion.logprobs),
                reading=reading,
                score=score,
                carried=candidate == 0,
            )
        )
    return records
