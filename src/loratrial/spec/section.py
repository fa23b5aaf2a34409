"""What every table of the trial file has in common."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Seed = Annotated[int, Field(ge=0, lt=2**63)]


class Section(BaseModel):
    """A table of the trial file: unknown keys, other types and non-finite numbers are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)
