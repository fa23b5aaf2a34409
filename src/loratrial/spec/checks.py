"""Which combinations of keys a trial file may not have, and in which order its arms are made.

Left out: what one key alone may say, which `models.py` holds.
"""

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING

from loratrial.spec.names import ARM_NAME, BUNDLED_MODELS
from loratrial.tasks.choosing import offers_choice
from loratrial.tasks.registry import find_task

if TYPE_CHECKING:
    from loratrial.spec.models import TrialSpec

Problem = tuple[tuple[str, ...], str]
"""Where (the path of keys) and what (one clause)."""


def problems(spec: "TrialSpec") -> list[Problem]:
    """Everything that is impossible in `spec`, in the order of the file."""
    found = [*_control(spec), *_model(spec), *_adapter(spec), *_sampling(spec)]
    return [*found, *_modes(spec), *_arms(spec), *_evaluation(spec)]


def arm_order(spec: "TrialSpec") -> list[str]:
    """The arms so that each follows the one that it starts from and the one whose prices it plays back,
    otherwise in the order of the file."""
    order: list[str] = []

    def add(name: str, above: tuple[str, ...]) -> None:
        if name in order or name in above or name not in spec.arms:
            return
        for needed in needs(spec, name):
            add(needed, (*above, name))
        order.append(name)

    for name in spec.arms:
        add(name, ())
    return order


def needs(spec: "TrialSpec", name: str) -> list[str]:
    """The arms that have to be trained before `name`: its parent, then the one whose prices it plays back."""
    arm = spec.arms[name]
    price = getattr(arm, "token_price", None)
    return [each for each in (arm.parent, getattr(price, "of", None)) if each is not None]


def cautions(spec: "TrialSpec") -> list[str]:
    """What a trial may do, but hardly wants to: one sentence each, told before a run and in its result."""
    found = []
    for name, arm in spec.arms.items():
        if getattr(arm, "token_price", None) and getattr(arm, "advantage", None) == "group_std":
            found.append(
                f"arm {name!r}: advantages divided by the group's standard deviation cancel the size of a "
                "token price in every group whose answers are all right, so that any price teaches the same "
                'there; advantage = "leave_one_out" keeps it'
            )
    return found


def _circle(spec: "TrialSpec", name: str) -> list[str]:
    """The way from `name` through what it needs back to `name`; nothing when there is none."""

    def search(at: str, way: list[str]) -> list[str]:
        for needed in needs(spec, at) if at in spec.arms else []:
            if needed == name:
                return [*way, name]
            if needed not in way and (found := search(needed, [*way, needed])):
                return found
        return []

    return search(name, [name])


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
        elif circle := _circle(spec, name):
            yield ("arms", name, "from"), f"arms run in a circle: {' from '.join(circle)}"
        if arm.learns_from_samples and spec.training_candidates(name) < 2:
            own = getattr(arm, "candidates", None) is not None
            place = ("arms", name, "candidates") if own else ("sampling", "candidates")
            yield place, f"arm {name!r} compares the candidates of a group: it needs at least 2 (found 1)"
        own_cap = getattr(arm, "max_completion_tokens", None)
        if own_cap is not None and own_cap >= spec.sampling.max_tokens:
            yield (
                ("arms", name, "max_completion_tokens"),
                f"{own_cap} leaves no room for a prompt within "
                f"sampling.max_tokens = {spec.sampling.max_tokens}",
            )
        yield from _token_price(spec, name)


def _token_price(spec: "TrialSpec", name: str) -> Iterator[Problem]:
    price = getattr(spec.arms[name], "token_price", None)
    if price is None:
        return
    place = ("arms", name, "token_price")
    if spec.sampling.mode == "direct":
        yield place, 'has nothing to charge for: sampling.mode = "direct" has no reasoning tokens'
    if price.controller == "replay":
        if price.of not in spec.arms:
            yield (*place, "of"), _unknown_arm(spec, price.of)
        elif getattr(spec.arms[price.of], "token_price", None) is None:
            yield (*place, "of"), f"arm {price.of!r} has no token price to play back"
        return
    low, high = getattr(price, "min_price", price.price), getattr(price, "max_price", price.price)
    if low >= high and hasattr(price, "max_price"):
        yield (*place, "min_price"), f"{low} is not below max_price = {high}"
    elif not low <= price.price <= high:
        yield (*place, "price"), f"{price.price} is not between min_price = {low} and max_price = {high}"


def _modes(spec: "TrialSpec") -> Iterator[Problem]:
    if offers_choice(find_task(spec.task.kind)):
        return
    why = f"task {spec.task.kind!r} has no labels to choose among"
    if spec.sampling.mode != "text":
        yield ("sampling", "mode"), f'only "text" is possible (found {spec.sampling.mode!r}): {why}'
    if spec.sampling.rotate_labels:
        yield ("sampling", "rotate_labels"), f"has no use: {why}"
    for mode in spec.evaluation.modes or ():
        if mode != "text":
            yield ("evaluation", "modes"), f'only "text" is possible (found {mode!r}): {why}'


def _evaluation(spec: "TrialSpec") -> Iterator[Problem]:
    evaluation = spec.evaluation
    for mode in _repeated(evaluation.modes or ()):
        yield ("evaluation", "modes"), f"{mode!r} stands twice"
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
