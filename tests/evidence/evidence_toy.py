"""A small task with carried state, and a whole run folder of it written with no model.

Each item names one colour; an answer is words; the state collects words; the label is every colour so far.
"""

import random
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from loratrial.evidence.figures import build_result
from loratrial.evidence.folder import RunFolder, write_atomic
from loratrial.evidence.jsonio import canonical, pretty
from loratrial.evidence.judge import carried_state, judge
from loratrial.evidence.learning_record import expected_group
from loratrial.evidence.ledger import CandidateRecord, LedgerWriter, ids_sha256, messages_sha256
from loratrial.evidence.order import walk_order
from loratrial.seeds import candidate_seed, derive_seed
from loratrial.spec import parse, resolved_toml, spec_hash
from loratrial.tasks.dataset import dataset_hash, write
from loratrial.tasks.registry import find_task
from loratrial.tasks.task import Dataset, Figure, Item, Message, Reading, Score, Stream, Target

COLOURS = ("red", "blue", "green", "white", "black")


class ToyOptions(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    train_streams: int = 2
    eval_streams: int = 5
    items: int = 2


@dataclass(frozen=True)
class ToyTask:
    dataset: Dataset
    kind = "evidence_toy:ToyTask"
    scorer_version = "1"
    options_model = ToyOptions
    figures = (Figure("recall", "recall", "share"), Figure("extra", "unsupported", "mean", "lower"))

    @classmethod
    def create(cls, options, dataset, seed):
        if dataset is not None:
            return cls(dataset)
        streams, targets = [], {}
        splits = ["train"] * options.train_streams + ["eval"] * options.eval_streams
        for number, split in enumerate(splits):
            chance = random.Random(derive_seed("toy", seed, number))
            # streams of unequal length, so that clusters are unequal
            said = chance.sample(COLOURS, options.items + number % 2)
            name = f"s{number}"
            streams.append(
                Stream(name, split, tuple(Item(name, i, {"say": word}) for i, word in enumerate(said)))
            )
            for i in range(len(said)):
                targets[name, i] = Target(name, i, {"words": sorted(said[: i + 1])})
        return cls(Dataset(tuple(streams), targets))

    def messages(self, item, state):
        return (Message("system", "Collect."), Message("user", f"{item.public['say']} | {state}"))

    def read(self, item, text, state):
        if text.startswith("{"):
            return Reading(False, state, problem="looks like JSON")
        words = sorted({*state.split(), *text.split()})
        return Reading(True, " ".join(words), facts=words)

    def score(self, target, reading):
        wanted, given = set(target.private["words"]), set(reading.facts or ())
        if not reading.valid:
            return Score(0, {"recall": 0.0, "extra": 0, "exact": 0}, {"missing": sorted(wanted)})
        figures = {
            "recall": len(wanted & given) / len(wanted),
            "extra": len(given - wanted),
            "exact": int(given == wanted),
        }
        return Score(len(wanted & given), figures, {"missing": sorted(wanted - given)})

    def gold(self, item, state, target):
        return item.public["say"]

    def references(self):
        return {
            "oracle": lambda item, state, target: " ".join(target.private["words"]),
            "empty": lambda item, state, target: "",
            "everything": lambda item, state, target: " ".join(COLOURS),
        }

    def validate(self):
        pass


TRIAL = """
[trial]
name = "toy"
seed = 5
control = "base"
[model]
base = "tiny"
[task]
kind = "evidence_toy:ToyTask"
[sampling]
candidates = 3
[arms.base]
method = "none"
[arms.warm]
method = "supervised"
from = "base"
[arms.trained]
method = "grpo"
from = "warm"
passes = 2
[arms.loo]
method = "reinforce"
from = "base"
max_groups = 3
candidates = 4
parallel_streams = 2
[evaluation]
seeds = [7, 8]
in_sample = true
in_sample_seeds = [9]
"""

SKILL = {"base": 0.3, "warm": 0.5, "trained": 0.9, "loo": 0.4}


def sample(item: Item, seed: int, skill: float) -> str:
    chance = random.Random(seed)
    if chance.random() < 0.1:
        return "{}"
    return item.public["say"] if chance.random() < skill else chance.choice(COLOURS)


class Writer:
    """Writes a run folder as a trial does, with a coin for a policy."""

    def __init__(self, root: Path, text: str = TRIAL) -> None:
        self.folder = RunFolder(root)
        self.spec = parse(text)
        kind = find_task(self.spec.task.kind)
        self.task = kind.create(self.spec.task.options, None, self.spec.trial.seed)

    def answer(self, item: Item, state: str, seed: int, skill: float) -> str:
        return sample(item, seed, skill)

    def write(self) -> None:
        self.folder.root.mkdir(parents=True)
        self.head("running")
        write_atomic(self.folder.trial_file, resolved_toml(self.spec))
        write(self.task.dataset, self.folder.data)
        versions = {}
        for name, arm in self.spec.arms.items():
            entry = {"method": arm.method, "parent": arm.parent, "complete": True, "fingerprint": name}
            self.folder.arm(name).mkdir(parents=True)
            versions[name] = self.train(name) if arm.learns_from_samples else int(name == "warm")
            if arm.method != "none":
                weights = self.folder.adapter(name) / "adapter_model.safetensors"
                weights.parent.mkdir()
                weights.write_bytes(name.encode())
                entry["adapter_sha256"] = sha256(name.encode()).hexdigest()
            write_atomic(self.folder.arm_file(name), pretty(entry))
        for name in self.spec.evaluated_arms:
            runs = [("eval", seed) for seed in self.spec.evaluation.seeds]
            for split, seed in [*runs, *(("train", seed) for seed in self.spec.in_sample_seeds)]:
                self.evaluate(name, split, seed, versions[name])
        write_atomic(self.folder.result_file, pretty(build_result(self.folder.root)))
        self.head("complete")

    def head(self, status: str) -> None:
        self.folder.write_run(
            trial=self.spec.trial.name,
            status=status,
            spec_sha256=spec_hash(self.spec),
            data_sha256=dataset_hash(self.task.dataset),
        )

    def group(self, ordinal, walk, arm, item, state, n_candidates, version) -> list[CandidateRecord]:
        records = []
        for candidate in range(n_candidates):
            seed = candidate_seed(self.spec.trial.seed, walk, item.stream, item.index, candidate)
            text = self.answer(item, state, seed, SKILL[arm])
            reading, score = judge(self.task, item, text, "stop", state)
            prompt = self.task.messages(item, state)
            ids = list(text.encode())
            records.append(
                CandidateRecord(
                    walk=walk,
                    arm=arm,
                    group=ordinal,
                    stream=item.stream,
                    item=item.index,
                    candidate=candidate,
                    n_candidates=n_candidates,
                    seed=seed,
                    policy_version=version,
                    messages_sha256=messages_sha256(prompt),
                    prompt_ids_sha256=ids_sha256(list(prompt[1].content.encode())),
                    n_prompt_tokens=len(prompt[1].content),
                    mode="text",
                    rotation=0,
                    token_ids=tuple(ids),
                    supplied_ids=(),
                    n_reasoning=max(0, len(ids) - 1),
                    text=text,
                    finish="stop",
                    logprobs=tuple(-0.5 for _ in ids),
                    reading=reading,
                    score=score,
                    price=None,
                    priced_reward=None,
                    carried=candidate == 0,
                )
            )
        return records

    def evaluate(self, arm: str, split: str, seed: int, version: int) -> None:
        path = self.folder.evaluation_ledger(arm, split, seed)
        path.parent.mkdir(parents=True, exist_ok=True)
        state: dict[str, str] = {}
        with LedgerWriter(path) as ledger:
            waves = walk_order(self.task.dataset.split(split), self.spec.evaluation.parallel_streams)
            for stream, item in (place for wave in waves for place in wave):
                before = state.get(stream.id, "")
                n_candidates = self.spec.evaluation_candidates
                group = self.group(ledger.n_groups, f"eval-{seed}", arm, item, before, n_candidates, version)
                ledger.append_group(group)
                state[stream.id] = carried_state([record.reading for record in group], before)

    def train(self, arm: str) -> int:
        spec = self.spec.arms[arm]
        lines, version = [], 0
        with LedgerWriter(self.folder.training_ledger(arm)) as ledger:
            for number in range(spec.passes):
                state: dict[str, str] = {}
                for wave in walk_order(self.task.dataset.split("train"), spec.parallel_streams):
                    if spec.max_groups is not None and ledger.n_groups >= spec.max_groups:
                        break
                    entries = []
                    for stream, item in wave:
                        before = state.get(stream.id, "")
                        n_candidates = self.spec.training_candidates(arm)
                        group = self.group(
                            ledger.n_groups, f"train-{number}", arm, item, before, n_candidates, version
                        )
                        rewards = [record.score.reward for record in group]
                        n_valid = sum(record.reading.valid for record in group)
                        entries.append(expected_group(ledger.n_groups, rewards, n_valid, spec.advantage))
                        ledger.append_group(group)
                        state[stream.id] = carried_state([record.reading for record in group], before)
                    learns = any(any(entry["advantages"]) for entry in entries)
                    lines.append({"update": version if learns else None, "groups": entries, "seconds": 0.1})
                    version += learns
        self.folder.updates(arm).write_text("".join(canonical(line) + "\n" for line in lines))
        return version
