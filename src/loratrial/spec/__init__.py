"""The trial file: one experiment in TOML, read strictly and written back with every default.

`load` or `parse` give a `TrialSpec`; `resolved_toml` writes it out; `spec_hash` names it. Left out: whatever
needs a model or a dataset to know (whether a path exists, whether a device is there).
"""

from loratrial.spec.arms import (
    ArmSpec,
    DualPrice,
    FixedPrice,
    GrpoArm,
    IntegralPrice,
    MultiplicativePrice,
    ReinforceArm,
    ReplayedPrice,
    SupervisedArm,
    TokenPrice,
    UntrainedArm,
)
from loratrial.spec.checks import arm_order, cautions, needs
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
    "DualPrice",
    "EvaluationSpec",
    "FixedPrice",
    "GrpoArm",
    "IntegralPrice",
    "ModelSpec",
    "MultiplicativePrice",
    "ReinforceArm",
    "ReplayedPrice",
    "SamplingSpec",
    "SupervisedArm",
    "TaskSpec",
    "TokenPrice",
    "TrialSection",
    "TrialSpec",
    "UntrainedArm",
    "arm_order",
    "canonical_json",
    "cautions",
    "load",
    "needs",
    "parse",
    "read_text",
    "resolved_toml",
    "spec_hash",
]
