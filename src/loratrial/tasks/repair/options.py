"""The options of the repair task: what `[task]` of a trial file may say beside the kind."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from loratrial.tasks.repair.families import FAMILIES, FamilyName


class RepairOptions(BaseModel):
    """Everything that decides the puzzles, the splits and the worked answers of the repair task."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    families: tuple[FamilyName, ...] = Field(
        tuple(family.name for family in FAMILIES.values()),
        min_length=1,
        description="Families of expressions, taken in turn. Level 1: sums, comparisons, membership, "
        "extremes. Level 2: products, indexing, slicing, text. Level 3: logic, totals, conditionals. "
        "Level 4: sorted_slices. Level 5: nested.",
    )
    train: int = Field(64, ge=0, le=5_000, description="Puzzles of the split `train`, one stream each.")
    dev: int = Field(32, ge=0, le=5_000, description="Puzzles of the split `dev`.")
    test: int = Field(64, ge=0, le=5_000, description="Puzzles of the sealed split `test`.")
    unseal: bool = Field(False, description="Whether the dataset holds the split `test` at all.")
    examples: int = Field(3, ge=1, le=6, description="Inputs shown with their right outputs.")
    hidden: int = Field(12, ge=4, le=24, description="Hidden inputs that decide which candidate is right.")
    matching_share: float = Field(
        0.8,
        ge=0,
        le=1,
        description="Share of puzzles in which every candidate passes every example shown; in the others "
        "the examples rule out one candidate.",
    )
    gold: Literal["worked", "letter"] = Field(
        "worked",
        description="The answer that a supervised example teaches: candidate by candidate, or the letter.",
    )
    data_seed: int | None = Field(
        None, description="Seed of the puzzles; the trial's own seed when left out."
    )

    @field_validator("families")
    @classmethod
    def _distinct(cls, families: tuple[FamilyName, ...]) -> tuple[FamilyName, ...]:
        if len(set(families)) < len(families):
            raise ValueError("name each family once")
        return families
