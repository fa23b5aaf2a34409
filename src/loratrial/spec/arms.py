"""The arms of a trial, one model a training method; `method` tells which one a table is.

A token price is a table within an arm; `controller` tells which one it is.
Left out: how a method learns, which stands in `learning/`, and whether arms fit together (`checks.py`).
"""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from loratrial.spec.section import Section, Seed


class UntrainedArm(Section):
    """The base model with the adapter off."""

    learns_from_samples: ClassVar[bool] = False

    method: Literal["none"] = Field(description="No training.")
    parent: None = Field(default=None, alias="from", description="Not allowed: it starts from no other arm.")


class _TrainedArm(Section):
    method: str
    parent: str = Field(alias="from", description="The arm whose weights training starts from.")
    passes: int = Field(default=1, ge=1, description="Passes over the training split (passes).")
    learning_rate: float = Field(default=1e-5, gt=0, description="Step size of AdamW (no unit).")
    weight_decay: float = Field(default=0.0, ge=0, description="Decoupled weight decay of AdamW (no unit).")
    gradient_clip: float = Field(default=1.0, gt=0, description="Cap on the gradient's norm (no unit).")


class SupervisedArm(_TrainedArm):
    """Cross-entropy on the task's gold outputs; prompt tokens carry no loss."""

    learns_from_samples: ClassVar[bool] = False

    method: Literal["supervised"] = Field(description="Learns from the task's gold outputs.")
    learning_rate: float = Field(default=2e-4, gt=0, description="Step size of AdamW (no unit).")
    batch_size: int = Field(default=1, ge=1, description="Examples of one update (examples).")
    max_examples: int | None = Field(
        default=None, ge=1, description="Use only so many examples of the training split (examples)."
    )
    seed: Seed | None = Field(
        default=None, description="Seed of the order of examples; the trial's own when not set."
    )
    warmup_updates: int = Field(
        default=0, ge=0, description="Updates over which the learning rate rises to its value (updates)."
    )
    schedule: Literal["constant", "linear"] = Field(
        default="constant",
        description="The learning rate after warm-up: constant, or falling to 0 in a line.",
    )


class FixedPrice(Section):
    """The same price throughout."""

    controller: Literal["fixed"] = Field(description="The price stays.")
    price: float = Field(ge=0, description="Price of a reasoning token (reward a token).")


class IntegralPrice(Section):
    """The price rises by what accuracy is above the target, and falls by what it is below.

    Source: A-DLP, arXiv 2505.18298; the cap is ours.
    """

    controller: Literal["integral"] = Field(description="price += step x (accuracy - target).")
    price: float = Field(ge=0, description="Price at the start (reward a token).")
    step: float = Field(gt=0, description="Step of the price at an error of 1 (reward a token).")
    target_accuracy: float = Field(
        ge=0, le=1, description="Accuracy to hold (share of the update's candidates)."
    )
    min_price: float = Field(default=0.0, ge=0, description="Floor (reward a token).")
    max_price: float = Field(gt=0, description="Cap (reward a token).")


class DualPrice(Section):
    """The price rises while answers are longer than the target, and falls while they are shorter.

    Source: LEASH, arXiv 2512.21540.
    """

    controller: Literal["dual"] = Field(description="price += step x mean(length / target - 1).")
    price: float = Field(description="Price at the start (reward a token).")
    step: float = Field(gt=0, description="Step of the price at an error of 1 (reward a token).")
    target_tokens: float = Field(gt=0, description="Length to reach (reasoning tokens).")
    min_price: float = Field(default=0.0, description="Floor; may be negative (reward a token).")
    max_price: float = Field(description="Cap (reward a token).")


class MultiplicativePrice(Section):
    """The price is multiplied by exp(alpha x (smoothed accuracy - target)). Source: this project."""

    controller: Literal["multiplicative"] = Field(
        description="price x= exp(alpha x (smoothed accuracy - target))."
    )
    price: float = Field(gt=0, description="Price at the start (reward a token).")
    alpha: float = Field(gt=0, description="Relative step of the price at an error of 1 (no unit).")
    target_accuracy: float = Field(
        ge=0, le=1, description="Accuracy to hold (share of the update's candidates)."
    )
    smoothing: float = Field(
        default=0.0, ge=0, lt=1, description="Weight of the past in the smoothed accuracy (share)."
    )
    min_price: float = Field(gt=0, description="Floor (reward a token).")
    max_price: float = Field(gt=0, description="Cap (reward a token).")


class ReplayedPrice(Section):
    """The prices that another arm was charged, update by update, whatever this arm does."""

    controller: Literal["replay"] = Field(description="The recorded prices of another arm.")
    of: str = Field(description="The arm whose prices are played back.")


TokenPrice = Annotated[
    FixedPrice | IntegralPrice | DualPrice | MultiplicativePrice | ReplayedPrice,
    Field(discriminator="controller"),
]

PRICE_MODELS: Mapping[str, type[Section]] = {
    "fixed": FixedPrice,
    "integral": IntegralPrice,
    "dual": DualPrice,
    "multiplicative": MultiplicativePrice,
    "replay": ReplayedPrice,
}
"""The model of each controller of the token price."""


class _SampledArm(_TrainedArm):
    learns_from_samples: ClassVar[bool] = True

    max_groups: int | None = Field(
        default=None,
        ge=1,
        description="Stop after so many groups, tied ones included (groups); all groups when not set.",
    )
    candidates: int | None = Field(
        default=None, ge=1, description="Candidates of a training group; `sampling.candidates` when not set."
    )
    parallel_streams: int = Field(
        default=1,
        ge=1,
        description="Streams walked side by side, each giving one group to every update (streams).",
    )
    max_completion_tokens: int | None = Field(
        default=None,
        ge=1,
        description="Longest completion in training (tokens); `sampling.max_completion_tokens` when not set. "
        "Evaluation keeps to the latter.",
    )
    token_price: TokenPrice | None = Field(
        default=None,
        description="What each reasoning token costs of the reward in training: a table of its own, "
        "`[arms.NAME.token_price]`. Evaluation never applies it.",
    )


class GrpoArm(_SampledArm):
    """Group relative policy optimization: clipped ratio, KL to the arm that training started from.

    Source: Shao et al. 2024, arXiv 2402.03300, section 4.1.
    """

    method: Literal["grpo"] = Field(description="Learns from its own samples, by GRPO.")
    advantage: Literal["group_std", "leave_one_out"] = Field(
        default="group_std",
        description="`group_std`: reward less the group's mean, over its standard deviation; "
        "`leave_one_out`: reward less the mean of the other candidates.",
    )
    clip_ratio: float = Field(
        default=0.2,
        gt=0,
        lt=1,
        description="The ratio to the sampling policy is clipped to 1 ± this (no unit).",
    )
    kl_penalty: float = Field(
        default=0.02,
        ge=0,
        description="Weight of the KL term to the arm that training started from (no unit).",
    )
    updates_per_group: int = Field(
        default=1, ge=1, description="Updates made on each group before it is dropped (updates)."
    )


class ReinforceArm(_SampledArm):
    """REINFORCE with a leave-one-out baseline: no clipping, no KL.

    Source: Ahmadian et al. 2024, arXiv 2402.14740, section 3.
    """

    method: Literal["reinforce"] = Field(description="Learns from its own samples, by REINFORCE.")
    advantage: Literal["group_std", "leave_one_out"] = Field(
        default="leave_one_out",
        description="`leave_one_out`: reward less the mean of the other candidates; "
        "`group_std`: reward less the group's mean, over its standard deviation.",
    )


ArmSpec = Annotated[UntrainedArm | SupervisedArm | GrpoArm | ReinforceArm, Field(discriminator="method")]

ARM_MODELS: Mapping[str, type[Section]] = {
    "none": UntrainedArm,
    "supervised": SupervisedArm,
    "grpo": GrpoArm,
    "reinforce": ReinforceArm,
}
"""The model of each method."""
