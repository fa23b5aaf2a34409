"""The contract between a task and the rest: what is asked, how an answer is read, what it is worth.

A task is pure Python: it knows nothing of models, tokens or training. Everything that it returns can be
written as JSON, so that a recount replays it from files. Labels have a type of their own (`Target`), which
`messages` never receives: a prompt cannot show what it cannot see.

Left out on purpose: tool calls and environments with several turns within one item.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol, Self, runtime_checkable

Json = Any
"""A value that `json.dumps` writes and `json.loads` gives back equal."""

State = str
"""The text that a stream carries from item to item; empty at its start."""


@dataclass(frozen=True)
class Message:
    """One message of a chat prompt."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True)
class Item:
    """One question: its place, and what a prompt may show of it (`public`)."""

    stream: str
    index: int
    public: Mapping[str, Json]


@dataclass(frozen=True)
class Stream:
    """Items in chronological order that share carried state; one item for a task without state."""

    id: str
    split: str
    items: tuple[Item, ...]


@dataclass(frozen=True)
class Target:
    """The private label of one item. It stays out of prompts."""

    stream: str
    index: int
    private: Mapping[str, Json]


@dataclass(frozen=True)
class Dataset:
    """Streams of every split, and the label of every item by (stream, index)."""

    streams: tuple[Stream, ...]
    targets: Mapping[tuple[str, int], Target]

    def split(self, name: str) -> tuple[Stream, ...]:
        """The streams of one split, in their order."""
        return tuple(stream for stream in self.streams if stream.split == name)

    def target(self, item: Item) -> Target:
        return self.targets[item.stream, item.index]


@dataclass(frozen=True)
class Reading:
    """One output as the task understood it.

    `state` is what would be carried if this output were carried; for an invalid output that is the state
    before. `facts` is the parsed content, as JSON, for the ledger and the page.
    """

    valid: bool
    state: State
    facts: Json = None
    problem: str = ""


@dataclass(frozen=True)
class Score:
    """What an output is worth: the raw reward (unshaped, compared exactly for ties) and every figure.

    `figures` are plain numbers by name (booleans as 0 or 1), each of them averaged over candidates, then
    items. `detail` is anything else worth keeping (lists of what was missing, counts by kind).
    """

    reward: int | float
    figures: Mapping[str, int | float]
    detail: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True)
class Figure:
    """How one figure of a score is shown: `name` is its key in `Score.figures`.

    Those with `headline` stand in the result table; the others are in the result, and shown when asked for.
    """

    name: str
    label: str
    kind: Literal["share", "mean"] = "mean"
    better: Literal["higher", "lower", "neither"] = "higher"
    headline: bool = True


Reference = Callable[[Item, State, Target], str]
"""A policy with no model: writes an output. Only an oracle may look at the target."""


@runtime_checkable
class Task(Protocol):
    """What a task offers. Options are a pydantic model of the task's own, read from `[task]`."""

    kind: ClassVar[str]
    scorer_version: ClassVar[str]
    options_model: ClassVar[type[Any]]
    figures: ClassVar[Sequence[Figure]]
    """The first figure is the primary one."""

    @classmethod
    def create(cls, options: Any, dataset: Dataset | None, seed: int) -> Self:
        """The task over `dataset`, or over the one that its options describe when `dataset` is None;
        the same options and seed make the same dataset, byte for byte."""
        ...

    @property
    def dataset(self) -> Dataset: ...

    def messages(self, item: Item, state: State) -> tuple[Message, ...]:
        """The prompt for one item with the carried state."""
        ...

    def read(self, item: Item, text: str, state: State) -> Reading:
        """Understand one output. Never raises on any text."""
        ...

    def score(self, target: Target, reading: Reading) -> Score:
        """Score one output against the label."""
        ...

    def gold(self, item: Item, state: State, target: Target) -> str:
        """The output that a supervised example teaches, given the state carried into the item."""
        ...

    def references(self) -> Mapping[str, Reference]:
        """Policies with no model, scored with every trial so that a reward that can be gamed shows."""
        ...

    def validate(self) -> None:
        """Prove the grader on gold answers and on wrong ones; raises DataError naming the first failure."""
        ...
