"""The recount of an arm's training: its ledger, and its learning record against that ledger.

Left out: losses, norms and times, which no file but the record itself can prove.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loratrial.errors import RunFolderError
from loratrial.evidence.findings import Findings
from loratrial.evidence.learning_record import expected_group, group_differences, read_updates
from loratrial.evidence.opened import OpenedRun
from loratrial.evidence.recount_ledger import Recounted, recount_ledger
from loratrial.spec import GrpoArm, ReinforceArm


@dataclass(frozen=True)
class RecountedTraining:
    """What an arm's training came to."""

    groups: list[Recounted]
    final_version: int | None
    """The policy version that it left; None where the files do not say."""


def recount_training(
    run: OpenedRun, arm: str, spec: GrpoArm | ReinforceArm, findings: Findings
) -> RecountedTraining:
    """Recount one arm's training ledger against the walk, then its learning record against the ledger."""
    path = run.folder.training_ledger(arm)
    groups = recount_ledger(
        run,
        arm,
        path,
        run.training_places(spec),
        run.spec.training_candidates(arm),
        findings,
        may_end_early=spec.max_groups is not None,
    )
    if spec.max_groups is not None:
        n_all = sum(1 for _ in run.training_places(spec))
        # a wave that was begun is learned from as a whole
        if not min(spec.max_groups, n_all) <= len(groups) < spec.max_groups + spec.parallel_streams:
            what = f"{len(groups)} groups, the trial says max_groups = {spec.max_groups} of {n_all}"
            findings.add(path, None, what)
    try:
        n_updates = _recount_updates(run, arm, spec, groups, findings)
    except RunFolderError as error:
        findings.add_error(run.folder.updates(arm), error)
        n_updates = None
    if not groups or n_updates is None:
        return RecountedTraining(groups, None)
    return RecountedTraining(groups, groups[0].policy_version + n_updates)


def _recount_updates(
    run: OpenedRun,
    arm: str,
    spec: GrpoArm | ReinforceArm,
    groups: Sequence[Recounted],
    findings: Findings,
) -> int | None:
    """The learning record against the derived rewards: its lines take the groups one after the other, and
    lines that make several updates from the same groups follow each other.

    Gives the updates made, or None when the groups of the record are not those of the ledger.
    """
    path = run.folder.updates(arm)
    n_seen = n_updates = 0
    first_number: int | None = None
    previous: list[int] = []
    for line, entry in enumerate(read_updates(path), start=1):
        findings.checked["updates"] += 1
        ordinals = _ordinals(entry)
        again = bool(ordinals) and ordinals == previous
        start = n_seen - len(previous) if again else n_seen
        end = start + len(ordinals)
        if not ordinals or end > len(groups) or ordinals != list(range(start, end)):
            findings.add(path, line, f"groups {ordinals} where group {n_seen} of {len(groups)} comes next")
            return None
        expected = [
            expected_group(start + at, group.summary.rewards, group.summary.n_valid, spec.advantage)
            for at, group in enumerate(groups[start:end])
        ]
        for said, derived in zip(entry["groups"], expected, strict=True):
            for what in group_differences(said, derived):
                findings.add(path, line, what)
        if not again:
            _check_versions(run, arm, groups, range(start, end), n_updates, findings)
        update = entry.get("update")
        if first_number is None and isinstance(update, int):
            first_number = update
        if update is not None and update != (first_number or 0) + n_updates:
            findings.add(path, line, f"update is {update!r}, {n_updates} were made before it")
        learns = any(any(derived["advantages"]) for derived in expected)
        if (update is not None) != learns:
            findings.add(path, line, f"update is {update!r}, but {'a' if learns else 'no'} group teaches")
        n_updates += update is not None
        n_seen, previous = end, ordinals
    if n_seen < len(groups):
        findings.add(path, None, f"ends before group {n_seen} of {len(groups)}")
        return None
    return n_updates


def _ordinals(entry: dict[str, Any]) -> list[int]:
    """The groups that one line of the record names; none when it has another form."""
    groups = entry.get("groups")
    if not isinstance(groups, list) or not all(isinstance(group, dict) for group in groups):
        return []
    return [group.get("group", -1) for group in groups]


def _check_versions(
    run: OpenedRun,
    arm: str,
    groups: Sequence[Recounted],
    ordinals: Iterable[int],
    n_updates: int,
    findings: Findings,
) -> None:
    """Groups were sampled by the policy as it was after `n_updates` updates."""
    for ordinal in ordinals:
        made = groups[ordinal].policy_version - groups[0].policy_version
        if made != n_updates:
            what = f"policy_version {groups[ordinal].policy_version} after {n_updates} updates"
            findings.add(run.folder.training_ledger(arm), groups[ordinal].line, what)


def check_evaluated_version(
    run: OpenedRun,
    arm: str,
    path: Path,
    groups: Sequence[Recounted],
    training: RecountedTraining | None,
    findings: Findings,
) -> None:
    """An evaluation learns nothing: one policy version throughout, that of the arm as it was trained."""
    expected = groups[0].policy_version if groups else 0
    if run.spec.arms[arm].method == "none":
        expected = 0
    elif training is not None and training.final_version is not None:
        expected = training.final_version
    for group in groups:
        if group.policy_version != expected:
            findings.add(path, group.line, f"policy_version {group.policy_version}, the arm's is {expected}")
