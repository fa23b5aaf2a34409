"""What a trial file may say: one frozen, strict model a table, each key with its type, default and meaning.

The page docs/trial-file.md is generated from these models. Left out: combinations of keys that make no sense
together, which `checks.py` names.
"""

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Field, SerializeAsAny, model_serializer, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError, ValidationError

from loratrial.errors import TrialFileError
from loratrial.spec.arms import ArmSpec
from loratrial.spec.checks import problems
from loratrial.spec.names import NAME_PATTERN, REVISION_PATTERN, Source, source_of
from loratrial.spec.section import Section, Seed
from loratrial.tasks.choosing import Mode
from loratrial.tasks.registry import find_task


class TrialSection(Section):
    """What the trial is called, what its random numbers hang on, what it compares with."""

    name: str = Field(
        pattern=NAME_PATTERN,
        max_length=64,
        description="Name of the trial and start of its run folder's name: small letters, digits, hyphens.",
    )
    seed: Seed = Field(
        default=2718, description="Seed of every random number of the trial (a whole number from 0)."
    )
    control: str = Field(description="The arm that the others are compared with (an arm's name).")


class ModelSpec(Section):
    """The frozen base model and where it runs."""

    base: str = Field(
        description="A bundled model (`smollm2-135m`; `tiny` and `tiny-llama`, which are random), a local "
        "folder (it starts with `/`, `./`, `../` or `~/`; relative to where the command runs), or a hub id "
        "(`owner/name`)."
    )
    revision: str | None = Field(
        default=None,
        pattern=REVISION_PATTERN,
        description="Commit of the hub model (40 hex digits). Required for a hub id, refused for all else.",
    )
    dtype: Literal["float32", "bfloat16"] = Field(
        default="float32", description="Number format of the frozen base. The adapter is always float32."
    )
    device: Literal["auto", "cpu", "cuda"] = Field(
        default="auto", description="Where the model runs; `auto` is a GPU when there is one."
    )
    threads: int = Field(default=0, ge=0, description="CPU threads (threads); 0 is one a core.")
    tf32: bool = Field(
        default=False, description="Let a GPU round float32 products to TF32: faster, less exact."
    )
    gradient_checkpointing: bool = Field(
        default=False, description="Compute activations again in the backward pass: less memory, more time."
    )
    candidates_per_pass: int = Field(
        default=0,
        ge=0,
        description="Candidates of a group that go through the model at once in training (candidates): fewer "
        "take less memory and more time, and the update is the same. 0 is the whole group.",
    )

    @property
    def source(self) -> Source:
        """Where `base` comes from: bundled, a path, or the hub."""
        return source_of(self.base)


class AdapterSpec(Section):
    """The LoRA adapter that every trained arm gets (Hu et al. 2021, arXiv 2106.09685)."""

    rank: int = Field(default=16, ge=1, description="Rank r of the update (dimensions).")
    alpha: int = Field(
        default=32, ge=1, description="Scale of the update: it is multiplied by alpha / rank (no unit)."
    )
    dropout: float = Field(
        default=0.0,
        ge=0,
        lt=1,
        description="Dropout on the adapter's input (share of values). 0 where an arm learns from its own "
        "samples: the policy that is trained has to be the one that sampled.",
    )
    targets: tuple[Annotated[str, Field(min_length=1)], ...] = Field(
        default=("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"),
        min_length=1,
        description="The linear layers that are adapted, by the last part of their names.",
    )


class TaskSpec(Section):
    """The kind of task and, flat beside it, the task's own options."""

    kind: str = Field(
        min_length=1,
        description="The task: a registered kind such as `notes`, or `package:Name` for a class of your own.",
    )
    options: SerializeAsAny[BaseModel] = Field(description="The task's own options, as its model read them.")

    @model_validator(mode="before")
    @classmethod
    def _read_options(cls, data: Any) -> Any:
        if not isinstance(data, Mapping) or isinstance(data.get("options"), BaseModel):
            return data
        if not isinstance(data.get("kind"), str):
            return {**{key: data[key] for key in ("kind",) if key in data}, "options": _Nothing()}
        try:
            model = find_task(data["kind"]).options_model
        except TrialFileError as problem:
            raise _located(("kind",), str(problem)) from problem
        options = {key: value for key, value in data.items() if key != "kind"}
        return {"kind": data["kind"], "options": model.model_validate_json(json.dumps(options), strict=True)}

    @model_serializer(mode="plain")
    def _write_flat(self) -> dict[str, Any]:
        return {"kind": self.kind, **self.options.model_dump(mode="json", by_alias=True)}


class _Nothing(BaseModel):
    """Stands for options that cannot be read while the kind is unknown."""


class SamplingSpec(Section):
    """How every candidate is sampled, in training and in evaluation alike."""

    candidates: int = Field(default=4, ge=1, description="Candidates of one group (sampled answers an item).")
    temperature: float = Field(
        default=1.0,
        gt=0,
        description="Divides the logits, in sampling and in every log-probability (no unit).",
    )
    top_p: float = Field(
        default=1.0,
        description="Share of the probability that is sampled from. Only 1.0: log-probabilities are of the "
        "distribution that was sampled from, and a cut one would need its own.",
    )
    top_k: int = Field(
        default=0, description="How many tokens are sampled from (tokens). Only 0, which is all of them."
    )
    max_completion_tokens: int = Field(
        default=96, ge=1, description="Longest completion (tokens); a longer one is cut and marked truncated."
    )
    mode: Mode = Field(
        default="text",
        description="How an answer is asked for, in training: `text` lets the policy write it; `reasoning` "
        "and `direct` are for tasks whose answer is one of a few labels. `reasoning`: free text up to "
        "`max_completion_tokens`, then the answer prefix is supplied and the label drawn among the labels "
        "alone; `direct`: the label at once.",
    )
    rotate_labels: bool = Field(
        default=False,
        description="Show each candidate of a group the labels moved on by one place, in training and in "
        "evaluation.",
    )
    max_tokens: int = Field(
        default=2048, ge=2, description="Longest prompt and completion together (tokens)."
    )


class EvaluationSpec(Section):
    """What every arm is measured on, with the same noise for all."""

    split: str = Field(default="eval", min_length=1, description="The split that arms are compared on.")
    seeds: tuple[Seed, ...] = Field(default=(7319,), min_length=1, description="One whole evaluation a seed.")
    modes: tuple[Mode, ...] | None = Field(
        default=None,
        min_length=1,
        description="One whole evaluation a mode, each compared by itself; `sampling.mode` when not set.",
    )
    candidates: int | None = Field(
        default=None, ge=1, description="Candidates of an item; `sampling.candidates` when not set."
    )
    parallel_streams: int = Field(
        default=0, ge=0, description="Streams walked side by side (streams); 0 is all of them."
    )
    arms: tuple[str, ...] | None = Field(
        default=None, min_length=1, description="The arms to evaluate; every arm when not set."
    )
    in_sample: bool = Field(
        default=False, description="Evaluate on the training split as well, labelled in-sample everywhere."
    )
    in_sample_seeds: tuple[Seed, ...] | None = Field(
        default=None, min_length=1, description="Seeds of the in-sample evaluation; `seeds` when not set."
    )


class TrialSpec(Section):
    """A whole trial file."""

    trial: TrialSection
    model: ModelSpec
    adapter: AdapterSpec = AdapterSpec()
    task: TaskSpec
    sampling: SamplingSpec = SamplingSpec()
    arms: Mapping[str, ArmSpec]
    evaluation: EvaluationSpec = EvaluationSpec()

    @model_validator(mode="after")
    def _check(self) -> Self:
        found = problems(self)
        if found:
            raise ValidationError.from_exception_data("TrialSpec", [_detail(*problem) for problem in found])
        return self

    @property
    def evaluated_arms(self) -> tuple[str, ...]:
        """The arms that are evaluated, in the order of the file."""
        chosen = self.arms if self.evaluation.arms is None else self.evaluation.arms
        return tuple(name for name in self.arms if name in chosen)

    def training_candidates(self, arm: str) -> int:
        """How many candidates a training group of `arm` has."""
        own = getattr(self.arms[arm], "candidates", None)
        return self.sampling.candidates if own is None else own

    def training_cap(self, arm: str) -> int:
        """The longest completion of `arm` in training (tokens)."""
        own = getattr(self.arms[arm], "max_completion_tokens", None)
        return self.sampling.max_completion_tokens if own is None else own

    @property
    def evaluation_modes(self) -> tuple[Mode, ...]:
        """The modes that every arm is evaluated in."""
        return self.evaluation.modes or (self.sampling.mode,)

    @property
    def evaluation_candidates(self) -> int:
        """How many candidates an item has in evaluation."""
        own = self.evaluation.candidates
        return self.sampling.candidates if own is None else own

    @property
    def in_sample_seeds(self) -> tuple[int, ...]:
        """The seeds of the in-sample evaluation; none when there is none."""
        if not self.evaluation.in_sample:
            return ()
        return self.evaluation.in_sample_seeds or self.evaluation.seeds


def _detail(place: tuple[str, ...], message: str) -> InitErrorDetails:
    return InitErrorDetails(type=PydanticCustomError("impossible", message), loc=place, input=None)


def _located(place: tuple[str, ...], message: str) -> ValidationError:
    return ValidationError.from_exception_data("TaskSpec", [_detail(place, message)])
