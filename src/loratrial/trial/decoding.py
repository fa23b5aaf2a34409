"""How the groups of a trial are sampled, from its trial file."""

from loratrial.spec import TrialSpec
from loratrial.trial.walk import Decoding


def decoding_of(spec: TrialSpec, n_candidates: int) -> Decoding:
    """The decoding of every walk of the trial, with groups of `n_candidates`."""
    return Decoding(
        trial_seed=spec.trial.seed,
        n_candidates=n_candidates,
        temperature=spec.sampling.temperature,
        max_completion_tokens=spec.sampling.max_completion_tokens,
        max_tokens=spec.sampling.max_tokens,
    )
