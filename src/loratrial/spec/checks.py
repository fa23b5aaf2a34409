"""Which combinations of keys a trial file may not have, and in which order its arms are made.

Left out: what one key alone may say, which `models.py` holds.
"""

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING

from loratrial.spec.names import ARM_NAME, BUNDLED_MODELS

if TYPE_CHECKING:
    from loratrial.spec.models import TrialSpec

Problem = tuple[tuple[str, ...], str]
"""Where (the path of keys) and what (one clause)."""


def problems(spec: "TrialSpec") -> list[Problem]:
    """Everything that is impossible in `spec`, in the order of the file."""
    found = [*_control(spec), *_model(spec), *_adapter(spec), *_sampling(spec), *_arms(spec)]
    return [*found, *_evaluation(spec)]


def arm_order(spec: "TrialSpec") -> list[str]:
    """The arms so that each follows the one that it starts from, otherwise in the order of the file."""
    order: list[str] = []
    for name in spec.arms:
        line = _line_of(spec, name)
        order += [ancestor for ancestor in reversed(line) if ancestor not in order]
    return order


def _line_of(spec: "TrialSpec", name: str) -> list[str]:
    """`name`, its parent, its parent's parent and so on; ends before an arm that repeats or is unknown."""
    line: list[str] = []
    at: str | None = name
    while at is not None and at in spec.arms and at not in line:
        line.append(at)
        at = spec.arms[at].parent
    return line


def _unknown_arm(spec: "TrialSpec", name: str) -> str:
    near = get_close_matches(name, spec.arms, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else f" (arms: {', '.join(spec.arms)})"
    return f"unknown arm {name!r}{hint}"


def _repeated(values: Sequence[object]) -> list[object]:
    return sorted({value for value in values if values.count(value) > 1}, key=str)


def _control(spec: "TrialSpec") -> Iterator[Problem]:
    if spec.arms and spec.trial.control not in spec.arms:
        yield ("trial", "control"), _unknown_arm(spec, spec.trial.control)


def _model(spec: "TrialSpec") -> Iterator[Problem]:
    model = spec.model
    if model.source == "unknown":
        near = get_close_matches(model.base, BUNDLED_MODELS, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        yield (
            ("model", "base"),
            f"{hint}{model.base!r} is neither a bundled model ({', '.join(BUNDLED_MODELS)}), "
            "nor a path (start it with ./), nor a hub id (owner/name)",
        )
    elif model.source == "hub" and model.revision is None:
        yield (
            ("model", "revision"),
            f"is required for the hub model {model.base!r}: its commit, 40 hex digits",
        )
    elif model.source != "hub" and model.revision is not None:
        yield (
            ("model", "revision"),
            f"is of no use here: only a hub model has one, and {model.base!r} is a {model.source} model",
        )


def _adapter(spec: "TrialSpec") -> Iterator[Problem]:
    for name in _repeated(spec.adapter.targets):
        yield ("adapter", "targets"), f"{name!r} stands twice"
    sampled = [name for name, arm in spec.arms.items() if arm.learns_from_samples]
    if spec.adapter.dropout > 0 and sampled:
        yield (
            ("adapter", "dropout"),
            f"must be 0, as arm {sampled[0]!r} has to be trained as it sampled",
        )


def _sampling(spec: "TrialSpec") -> Iterator[Problem]:
    sampling = spec.sampling
    whole = "log-probabilities are of the whole distribution, so nothing may be cut from it"
    if sampling.top_p != 1.0:
        yield ("sampling", "top_p"), f"only 1.0 is supported (found {sampling.top_p}): {whole}"
    if sampling.top_k != 0:
        yield ("sampling", "top_k"), f"only 0 is supported (found {sampling.top_k}): {whole}"
    if sampling.max_completion_tokens >= sampling.max_tokens:
        yield (
            ("sampling", "max_completion_tokens"),
            f"{sampling.max_completion_tokens} leaves no room for a prompt within "
            f"max_tokens = {sampling.max_tokens}",
        )


def _arms(spec: "TrialSpec") -> Iterator[Problem]:
    if not spec.arms:
        yield ("arms",), 'no arm: write at least [arms.base] with method = "none"'
    for name, arm in spec.arms.items():
        if not ARM_NAME.fullmatch(name):
            yield (
                ("arms", name),
                "an arm's name is of small letters, digits, '-' and '_', and starts with a letter or digit",
            )
        elif arm.parent == name:
            yield ("arms", name, "from"), "an arm cannot start from itself"
        elif arm.parent is not None and arm.parent not in spec.arms:
            yield ("arms", name, "from"), _unknown_arm(spec, arm.parent)
        elif arm.parent is not None and spec.arms[_line_of(spec, name)[-1]].parent == name:
            circle = " from ".join([*_line_of(spec, name), name])
            yield ("arms", name, "from"), f"arms run in a circle: {circle}"
        if arm.learns_from_samples and spec.training_candidates(name) < 2:
            own = getattr(arm, "candidates", None) is not None
            place = ("arms", name, "candidates") if own else ("sampling", "candidates")
            yield place, f"arm {name!r} compares the candidates of a group: it needs at least 2 (found 1)"


def _evaluation(spec: "TrialSpec") -> Iterator[Problem]:
    evaluation = spec.evaluation
    for key in ("seeds", "in_sample_seeds"):
        for seed in _repeated(getattr(evaluation, key) or ()):
            yield ("evaluation", key), f"seed {seed} stands twice: the same samples would count twice"
    if evaluation.in_sample_seeds is not None and not evaluation.in_sample:
        yield ("evaluation", "in_sample_seeds"), "has no use without in_sample = true"
    if evaluation.in_sample and evaluation.split == "train":
        yield ("evaluation", "in_sample"), "the split is the training split already"
    if evaluation.arms is None:
        return
    for name in evaluation.arms:
        if name not in spec.arms:
            yield ("evaluation", "arms"), _unknown_arm(spec, name)
    for repeated in _repeated(evaluation.arms):
        yield ("evaluation", "arms"), f"{repeated!r} stands twice"
    if spec.trial.control in spec.arms and spec.trial.control not in evaluation.arms:
        yield ("evaluation", "arms"), f"the control {spec.trial.control!r} has to be evaluated: add it"
