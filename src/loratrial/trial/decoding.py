"""How the groups of a trial are sampled, from its trial file."""

from loratrial.spec import TrialSpec
from loratrial.tasks.choosing import Mode
from loratrial.trial.walk import Decoding


def evaluation_decoding(spec: TrialSpec, mode: Mode) -> Decoding:
    """The decoding of an evaluation in `mode`: the same for every arm."""
    return _decoding(spec, mode, spec.evaluation_candidates, spec.sampling.max_completion_tokens)


def training_decoding(spec: TrialSpec, arm: str) -> Decoding:
    """The decoding of an arm's training."""
    return _decoding(spec, spec.sampling.mode, spec.training_candidates(arm), spec.training_cap(arm))


def _decoding(spec: TrialSpec, mode: Mode, n_candidates: int, max_completion_tokens: int) -> Decoding:
    return Decoding(
        trial_seed=spec.trial.seed,
        n_candidates=n_candidates,
        temperature=spec.sampling.temperature,
        max_completion_tokens=max_completion_tokens,
        max_tokens=spec.sampling.max_tokens,
        mode=mode,
        rotate_labels=spec.sampling.rotate_labels,
    )
