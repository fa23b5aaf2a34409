"""The options of the notes task: what `[task]` of a trial file may say beside the kind."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from loratrial.tasks.notes.world import MAX_USERS, Family


class NotesOptions(BaseModel):
    """Everything that decides the dataset, the prompt and the reward of the notes task."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    reward: Literal["value_recall", "assignment_f1"] = Field(
        "value_recall",
        description="The raw reward: the number of matched values, keys ignored (the published reward), or "
        "the F1 of values that stand under the right attribute.",
    )
    layout: Literal["stable", "published"] = Field(
        "stable",
        description="`stable` puts the history first, so that each prompt extends the one of the session "
        "before; `published` is the published row format, with the current time first.",
    )
    instructions: Literal["brief", "full"] = Field(
        "brief", description="The system message: under 100 words, or every rule spelled out."
    )
    train_users: int = Field(
        6, ge=0, le=MAX_USERS, description="Users of the split `train`, one stream each."
    )
    eval_users: int = Field(4, ge=0, le=MAX_USERS, description="Users of the split `eval`, one stream each.")
    sessions: int = Field(4, ge=1, le=50, description="Sessions of each user.")
    statements: int = Field(3, ge=1, le=50, description="Statements of each session that say a fact.")
    updates: float = Field(
        0.3,
        ge=0,
        le=1,
        description="Share of the statements after the first session that update or repeat an earlier fact.",
    )
    distractors: float = Field(
        0.25, ge=0, le=0.8, description="Share of all statements that say nothing about the user."
    )
    attributes: tuple[Family, ...] = Field(
        ("person", "size", "favorite"),
        description="Attribute families. Atomic values: person, size, favorite. Harder: list, compound, "
        "intent; `temporary` adds changes that end by themselves to the other families.",
    )
    disjoint: tuple[Literal["users", "templates", "values"], ...] = Field(
        ("users",),
        description="What the splits do not share. Users never; wording templates and value vocabularies on "
        "request.",
    )
    data_seed: int | None = Field(
        None, ge=0, description="Seed of the generated dataset; the trial's seed when not given."
    )

    @field_validator("attributes")
    @classmethod
    def _has_something_to_say(cls, families: tuple[Family, ...]) -> tuple[Family, ...]:
        if not set(families) - {"temporary"}:
            raise ValueError("name at least one family that has values, such as person")
        return families
