"""The walk with a policy whose words are written down: what is carried, recorded, learned and resumed."""

import math
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from letters_task import LettersOptions, LettersTask

from loratrial.errors import ScorerError
from loratrial.evidence.ledger import LedgerWriter, ids_sha256, messages_sha256, read_groups
from loratrial.evidence.opened import Place
from loratrial.evidence.order import walk_order
from loratrial.policy.completion import Completion
from loratrial.seeds import candidate_seed
from loratrial.tasks.task import Item, Score, Stream
from loratrial.trial.walk import Decoding, align, walk, waves_of

DECODING = Decoding(trial_seed=11, n_candidates=3, temperature=1.5, max_completion_tokens=40, max_tokens=90)


class Scripted:
    """A policy that says `say(prompt, candidate)`; token ids are the bytes, 257 ends."""

    def __init__(self, say):
        self.say = say
        self.base = SimpleNamespace(n_positions=4096)
        self.version = 2
        self.prompts, self.requests, self.calls = [], [], 0

    def prompt_ids(self, messages):
        self.prompts.append("".join(message["content"] for message in messages))
        return list(self.prompts[-1].encode())

    def sample(self, requests, temperature):
        assert temperature == 1.5
        self.calls += 1
        self.requests += requests
        return [[self._completion(each, i) for i in range(len(each.seeds))] for each in requests]

    def _completion(self, request, candidate):
        if request.max_tokens < 1:
            return Completion()
        ids = [*self.say(bytes(request.prompt_ids).decode(), candidate).encode(), 257][: request.max_tokens]
        return Completion(ids, [-0.5] * len(ids), "stop" if ids[-1] == 257 else "length")

    def text(self, completion):
        return bytes(token for token in completion.token_ids if token < 256).decode(errors="replace")


def task(**options):
    return LettersTask.create(LettersOptions(**options), None, 11)


def places(of, parallel, walks=("train-0",), split="train"):
    for name in walks:
        for wave in walk_order(of.dataset.split(split), parallel):
            for stream, item in wave:
                yield Place(name, stream, item, first=item is stream.items[0])


def run(policy, of, path, parallel=1, learn=None, decoding=DECODING, **named):
    """Walk from where the ledger at `path` stands; returns its groups."""
    waves = waves_of(places(of, parallel, **named), parallel)
    with LedgerWriter(path) as ledger:
        align(ledger, waves)
        walk(policy, of, "arm", waves, decoding, ledger, learn)
    return list(read_groups(path))


def answers(prompt, candidate):
    """Different for every prompt and candidate, and the better the higher the candidate."""
    letters = "abcdefghij"[candidate * 3 : candidate * 3 + 1 + candidate]
    return letters + str(sum(prompt.encode()) % 97)


@settings(deadline=None, derandomize=True, max_examples=200)
@given(lengths=st.lists(st.integers(1, 4), min_size=1, max_size=7), parallel=st.integers(0, 8))
def test_waves_are_those_of_the_walk_order_also_for_streams_of_one_item(lengths, parallel):
    streams = [
        Stream(f"s{number}", "train", tuple(Item(f"s{number}", index, {}) for index in range(length)))
        for number, length in enumerate(lengths)
    ]
    flat = [
        Place(name, stream, item, item.index == 0)
        for name in ("train-0", "train-1")
        for wave in walk_order(streams, parallel)
        for stream, item in wave
    ]
    waves = [[(place.stream, place.item) for place in wave] for wave in waves_of(iter(flat), parallel)]
    assert waves == list(walk_order(streams, parallel)) * 2


def test_candidate_zero_is_carried_even_when_it_is_the_worst(tmp_path):
    policy = Scripted(lambda prompt, candidate: ["z", "abc", "defg"][candidate])
    groups = run(policy, task(items=3), tmp_path / "ledger")
    for stream in range(3):
        states = [group[0].reading.state for group in groups[stream * 3 : stream * 3 + 3]]
        assert states == ["z", "zz", "zzz"]
        prompts = policy.prompts[stream * 3 : stream * 3 + 3]
        assert [prompt.partition("|")[2] for prompt in prompts] == ["", "z", "zz"]
    assert all(group[0].score.reward < group[1].score.reward < group[2].score.reward for group in groups)
    assert [[record.carried for record in group] for group in groups] == [[True, False, False]] * 9


def test_what_other_candidates_say_never_reaches_a_prompt(tmp_path):
    policy = Scripted(lambda prompt, candidate: "0" if candidate == 0 else "XYZ")
    run(policy, task(items=4), tmp_path / "ledger", parallel=3)
    assert len(policy.prompts) == 12
    assert all("X" not in prompt for prompt in policy.prompts)
    assert sum("000" in prompt for prompt in policy.prompts) == 3


def test_an_invalid_candidate_zero_leaves_what_is_carried_as_it_was(tmp_path):
    policy = Scripted(lambda prompt, candidate: "\x01bad" if prompt.endswith("|a") else "a")
    groups = run(policy, task(train_streams=1, items=4), tmp_path / "ledger")
    assert [prompt.partition("|")[2] for prompt in policy.prompts] == ["", "a", "a", "a"]
    assert [group[0].reading.valid for group in groups] == [True, False, False, False]


def test_labels_never_reach_a_prompt(tmp_path):
    of = task(items=4)
    policy = Scripted(answers)
    run(policy, of, tmp_path / "train", parallel=2)
    run(policy, of, tmp_path / "eval", parallel=0, walks=("eval-7",), split="eval")
    assert len(policy.prompts) == 20
    words = [target.private["word"] for target in of.dataset.targets.values()]
    assert not any(word in prompt for word in words for prompt in policy.prompts)


def test_streams_side_by_side_carry_each_their_own(tmp_path):
    alone, beside = Scripted(answers), Scripted(answers)
    one_by_one = run(alone, task(items=3), tmp_path / "alone", parallel=1)
    together = run(beside, task(items=3), tmp_path / "beside", parallel=0)
    assert (alone.calls, beside.calls) == (9, 3)

    def said(groups):
        return {(g[0].stream, g[0].item): [(r.text, r.reading, r.seed) for r in g] for g in groups}

    assert said(one_by_one) == said(together)


def test_every_pass_begins_with_nothing_carried_and_draws_anew(tmp_path):
    policy = Scripted(answers)
    groups = run(policy, task(train_streams=1), tmp_path / "ledger", walks=("train-0", "train-1"))
    assert [prompt.endswith("|") for prompt in policy.prompts] == [True, False, True, False]
    assert groups[0][0].seed != groups[2][0].seed


def test_a_record_says_where_it_belongs_and_what_it_was_asked(tmp_path):
    of, policy = task(), Scripted(answers)
    groups = run(policy, of, tmp_path / "ledger", parallel=2)
    first = {stream.id: stream.items[0] for stream in of.dataset.split("train")}
    for ordinal, group in enumerate(groups):
        for candidate, record in enumerate(group):
            assert (record.group, record.candidate, record.n_candidates) == (ordinal, candidate, 3)
            assert (record.arm, record.walk, record.policy_version) == ("arm", "train-0", 2)
            assert record.seed == candidate_seed(11, "train-0", record.stream, record.item, candidate)
            assert bytes(record.token_ids[:-1]).decode() == record.text
            assert record.finish == "stop"
            if record.item == 0:
                messages = of.messages(first[record.stream], "")
                ids = list(messages[0].content.encode())
                assert record.messages_sha256 == messages_sha256(messages)
                assert (record.prompt_ids_sha256, record.n_prompt_tokens) == (ids_sha256(ids), len(ids))


def test_a_group_is_on_disk_before_anyone_learns_from_it(tmp_path):
    path, seen = tmp_path / "ledger", []

    def learn(groups):
        on_disk = list(read_groups(path))
        seen.append([group.ordinal for group in groups])
        for group in groups:
            written = on_disk[group.ordinal]
            assert [tuple(c.token_ids) for c in group.completions] == [r.token_ids for r in written]
            assert list(group.rewards) == [r.score.reward for r in written]
            assert list(group.valid) == [r.reading.valid for r in written]
            assert ids_sha256(group.prompts[0]) == written[0].prompt_ids_sha256

    run(Scripted(answers), task(), path, parallel=2, learn=learn)
    assert seen == [[0, 1], [2, 3], [4], [5]]


def test_a_completion_is_capped_by_its_own_limit_and_by_the_room_that_the_prompt_leaves(tmp_path):
    policy = Scripted(lambda prompt, candidate: "." * 60)
    groups = run(policy, task(train_streams=1, padding=60), tmp_path / "ledger")
    # prompts of 3 + 60 + 1 and of 4 + 60 + 1 + 12 carried characters, 90 in all
    assert [group[0].n_prompt_tokens for group in groups] == [64, 77]
    assert [request.max_tokens for request in policy.requests] == [26, 13]
    assert [{record.finish for record in group} for group in groups] == [{"length"}] * 2
    policy.base.n_positions = 70
    run(policy, task(train_streams=1, items=1, padding=60), tmp_path / "short")
    assert policy.requests[-1].max_tokens == 6


def test_a_prompt_without_room_is_refused_and_the_walk_goes_on(tmp_path):
    of, policy = task(items=2, padding=77), Scripted(lambda prompt, candidate: "abcdefgh")
    groups = run(policy, of, tmp_path / "ledger", parallel=3)
    assert [{record.finish for record in group} for group in groups] == [{"stop"}] * 3 + [{"refused"}] * 3
    for group in groups[3:]:
        for record in group:
            assert (record.token_ids, record.logprobs, record.text) == ((), (), "")
            assert not record.reading.valid
            assert record.reading.problem == "the prompt leaves no room for an answer"
            assert record.reading.state == "abcdefgh"
            assert record.score.reward == 0


def test_a_crash_of_the_scorer_stops_the_walk_and_is_no_reward_of_zero(tmp_path, monkeypatch):
    path, of, score = tmp_path / "ledger", task(), LettersTask.score
    expected = run(Scripted(answers), of, tmp_path / "whole", parallel=2)

    def broken(self, target, reading):
        if target.stream == "train-1" and target.index == 1:
            raise KeyError("word")
        return score(self, target, reading)

    monkeypatch.setattr(LettersTask, "score", broken)
    with pytest.raises(ScorerError, match="stream 'train-1' item 1: KeyError: 'word'"):
        run(Scripted(answers), of, path, parallel=2)
    assert len(list(read_groups(path))) == 3
    monkeypatch.setattr(LettersTask, "score", score)
    assert run(Scripted(answers), of, path, parallel=2) == expected
    assert path.read_bytes() == (tmp_path / "whole").read_bytes()


def test_a_reward_that_is_no_number_stops_the_walk(tmp_path, monkeypatch):
    monkeypatch.setattr(LettersTask, "score", lambda *_: Score(math.nan, {}))
    with pytest.raises(ScorerError, match="reward nan"):
        run(Scripted(answers), task(), tmp_path / "ledger")
    assert (tmp_path / "ledger").read_bytes() == b""


@pytest.mark.parametrize("parallel", [0, 1, 2])
def test_a_walk_cut_anywhere_goes_on_to_the_same_bytes_without_asking_twice(tmp_path, parallel):
    of, whole = task(items=2), tmp_path / "whole"
    walks = ("train-0", "train-1")
    run(Scripted(answers), of, whole, parallel, walks=walks)
    lines = whole.read_bytes().splitlines(keepends=True)
    for n_lines in range(len(lines) + 1):
        path = tmp_path / f"{parallel}-{n_lines}"
        path.write_bytes(b"".join(lines[:n_lines]) + (lines[n_lines][:20] if n_lines < len(lines) else b""))
        policy, learned = Scripted(answers), []
        run(policy, of, path, parallel, learned.append, walks=walks)
        assert path.read_bytes() == whole.read_bytes()
        n_asked = len(policy.prompts)
        n_kept = 12 - n_asked
        assert n_kept <= n_lines // 3 < n_kept + (parallel or 3)
        assert [group.ordinal for groups in learned for group in groups] == list(range(n_kept, 12))


def test_progress_tells_the_mean_reward_of_each_wave(tmp_path):
    told, of = [], task(train_streams=2, items=1)
    waves = waves_of(places(of, 2), 2)
    with LedgerWriter(tmp_path / "ledger") as ledger:
        policy = Scripted(lambda prompt, candidate: "ab"[: candidate + 1])
        walk(policy, of, "arm", waves, DECODING, ledger, advance=lambda n, note: told.append((n, note)))
    assert told == [(2, "reward 1.67")]
