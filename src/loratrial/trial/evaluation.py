"""Evaluating one arm: the walk without a learner, once for each evaluation seed and split."""

from loratrial.evidence.ledger import LedgerWriter
from loratrial.evidence.opened import Evaluation, OpenedRun
from loratrial.policy.policy import Policy
from loratrial.progress import Progress
from loratrial.trial.decoding import evaluation_decoding
from loratrial.trial.walk import align, walk, waves_of


def evaluate(run: OpenedRun, policy: Policy, arm: str, evaluation: Evaluation, progress: Progress) -> None:
    """Evaluate `policy` as `arm`; goes on where an interrupted evaluation ended, and does nothing when it is
    whole."""
    path = run.folder.evaluation_ledger(arm, evaluation.section, evaluation.seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    waves = waves_of(run.evaluation_places(evaluation), run.spec.evaluation.parallel_streams)
    n_groups = sum(len(wave) for wave in waves)
    with LedgerWriter(path) as ledger:
        done = align(ledger, waves)
        if done == n_groups:
            return
        name = f"evaluate {arm} on {evaluation.section}, seed {evaluation.seed}"
        with progress.stage(name, n_groups, "items", done) as stage:
            walk(
                policy,
                run.task,
                arm,
                waves,
                evaluation_decoding(run.spec, evaluation.mode),
                ledger,
                advance=stage.advance,
            )
