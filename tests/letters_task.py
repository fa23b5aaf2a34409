"""A toy task that a random byte-level model is paid for: say many different printable characters.

Its groups are seldom tied, its outputs are now and then invalid, and what candidate 0 said is carried into
the next prompt, so that training, carrying and resuming are seen at work on `tiny` within a second.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field

from loratrial.errors import DataError
from loratrial.seeds import derive_seed
from loratrial.spec import TrialSpec, parse
from loratrial.tasks.task import Dataset, Figure, Item, Message, Reading, Reference, Score, Stream, Target

LETTERS = "abcdefghijklmnopqrstuvwxyz"
LONGEST_STATE = 12
BROKEN = {chr(code) for code in range(32)}

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


def letters_trial(*overrides: str, text: str = TRIAL) -> TrialSpec:
    """The trial of the task, with single values put into it."""
    return parse(text, "letters", overrides)


class LettersOptions(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    train_streams: int = Field(default=3, ge=0)
    eval_streams: int = Field(default=2, ge=0)
    items: int = Field(default=2, ge=1)
    padding: int = Field(default=0, ge=0)
    """Characters that every prompt is longer by."""


@dataclass(frozen=True)
class LettersTask:
    options: LettersOptions
    dataset: Dataset

    kind: ClassVar[str] = "letters"
    scorer_version: ClassVar[str] = "letters-1"
    options_model: ClassVar[type[Any]] = LettersOptions
    figures: ClassVar[Sequence[Figure]] = (Figure("letters", "Different characters"),)

    @classmethod
    def create(cls, options: LettersOptions, dataset: Dataset | None, seed: int) -> Self:
        return cls(options, dataset or _generate(options, seed))

    def messages(self, item: Item, state: str) -> tuple[Message, ...]:
        return (Message("user", f"{item.public['ask']}{'.' * self.options.padding}|{state}"),)

    def read(self, item: Item, text: str, state: str) -> Reading:
        if text[:1] in BROKEN:
            return Reading(False, state, problem="starts with a control character")
        said = "".join(character for character in text if " " < character < "\x7f")
        return Reading(True, (state + said)[-LONGEST_STATE:], facts=sorted(set(said)))

    def score(self, target: Target, reading: Reading) -> Score:
        facts = set(reading.facts or ()) if reading.valid else set()
        share = len(facts & set(target.private["word"])) / len(set(target.private["word"]))
        return Score(len(facts), {"letters": len(facts), "of_word": share})

    def gold(self, item: Item, state: str, target: Target) -> str:
        return str(target.private["word"])

    def references(self) -> Mapping[str, Reference]:
        return {"empty": lambda item, state, target: "", "alphabet": lambda item, state, target: LETTERS}

    def validate(self) -> None:
        for stream in self.dataset.streams:
            for item in stream.items:
                target = self.dataset.target(item)
                if self.score(target, self.read(item, self.gold(item, "", target), "")).reward < 3:
                    raise DataError(f"the gold answer to {item.stream} item {item.index} is worth nothing")


def _generate(options: LettersOptions, seed: int) -> Dataset:
    streams, targets = [], {}
    for split, n_streams in (("train", options.train_streams), ("eval", options.eval_streams)):
        for number in range(n_streams):
            name = f"{split}-{number}"
            chance = random.Random(derive_seed("letters", seed, name))
            asks = ["".join(chance.sample(LETTERS, 3 + index)) for index in range(options.items)]
            streams.append(
                Stream(name, split, tuple(Item(name, i, {"ask": ask}) for i, ask in enumerate(asks)))
            )
            for i in range(options.items):
                targets[name, i] = Target(name, i, {"word": "".join(chance.sample(LETTERS, 5))})
    return Dataset(tuple(streams), targets)
