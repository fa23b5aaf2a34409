"""The trial file: one experiment in TOML, read strictly and written back with every default.

`load` or `parse` give a `TrialSpec`; `resolved_toml` writes it out; `spec_hash` names it. Left out: whatever
needs a model or a dataset to know (whether a path exists, whether a device is there).
"""

from loratrial.spec.arms import ArmSpec, GrpoArm, ReinforceArm, SupervisedArm, UntrainedArm
from loratrial.spec.checks import arm_order
from loratrial.spec.models import (
    AdapterSpec,
    EvaluationSpec,
    ModelSpec,
    SamplingSpec,
    TaskSpec,
    TrialSection,
    TrialSpec,
)
from loratrial.spec.names import BUNDLED_MODELS
from loratrial.spec.reading import load, parse, read_text
from loratrial.spec.writing import canonical_json, resolved_toml, spec_hash

__all__ = [
    "BUNDLED_MODELS",
    "AdapterSpec",
    "ArmSpec",
    "EvaluationSpec",
    "GrpoArm",
    "ModelSpec",
    "ReinforceArm",
    "SamplingSpec",
    "SupervisedArm",
    "TaskSpec",
    "TrialSection",
    "TrialSpec",
    "UntrainedArm",
    "arm_order",
    "canonical_json",
    "load",
    "parse",
    "read_text",
    "resolved_toml",
    "spec_hash",
]
