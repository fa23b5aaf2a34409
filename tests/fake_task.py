"""A task of a few streams for tests of everything around tasks, and things that only look like tasks."""

from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, field_validator

from loratrial.tasks.task import Dataset, Item, Message, Reading, Score, Stream, Target


class FakeOptions(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    users: int = Field(default=2, ge=1)
    share: float = 0.5
    layouts: tuple[str, ...] = ("plain",)
    note: str | None = None

    @field_validator("note")
    @classmethod
    def _no_secret(cls, note: str | None) -> str | None:
        if note == "secret":
            raise ValueError("a note is\nno place for a secret")
        return note


class FakeTask:
    kind: ClassVar[str] = "fake"
    scorer_version: ClassVar[str] = "1"
    options_model: ClassVar[type[BaseModel]] = FakeOptions
    figures: ClassVar[tuple[()]] = ()

    def __init__(self, options: FakeOptions, seed: int) -> None:
        names = [f"user-{seed}-{number}" for number in range(options.users)]
        self.dataset = Dataset(
            tuple(Stream(name, "train", (Item(name, 0, {"question": "?"}),)) for name in names),
            {(name, 0): Target(name, 0, {"answer": "!"}) for name in names},
        )

    @classmethod
    def create(cls, options: FakeOptions, dataset: Dataset | None, seed: int) -> "FakeTask":
        return cls(options, seed)

    def messages(self, item: Item, state: str) -> tuple[Message, ...]:
        return (Message("user", str(item.public["question"])),)

    def read(self, item: Item, text: str, state: str) -> Reading:
        return Reading(True, state)

    def score(self, target: Target, reading: Reading) -> Score:
        return Score(0, {})

    def gold(self, item: Item, state: str, target: Target) -> str:
        return str(target.private["answer"])


class NoOptionsModel(FakeTask):
    options_model: ClassVar[Any] = dict


class LaxOptions(BaseModel):
    users: int = 2


class LaxTask(FakeTask):
    options_model = LaxOptions


class NoTask:
    kind = "no"


not_a_class = 7
