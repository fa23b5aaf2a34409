"""The recount of an arm's training: its ledger, and its learning record against that ledger.

Left out: losses, norms and times, which no file but the record itself can prove.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loratrial.errors import RunFolderError
from loratrial.evidence.findings import Findings
from loratrial.evidence.learning_record import (
    TOLERANCE,
    expected_group,
    group_differences,
    group_ordinals,
    price_trace,
    read_updates,
)
from loratrial.evidence.opened import OpenedRun
from loratrial.evidence.prices import Outcome, expected_prices
from loratrial.evidence.recount_ledger import Recounted, Sampled, recount_ledger
from loratrial.spec import GrpoArm, ReinforceArm, ReplayedPrice


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
        Sampled(run.spec.training_candidates(arm), run.spec.sampling.mode, run.spec.training_cap(arm)),
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
    prices = _Prices(run, arm, spec)
    n_seen = n_updates = 0
    first_number: int | None = None
    previous: list[int] = []
    for line, entry in enumerate(read_updates(path), start=1):
        findings.checked["updates"] += 1
        ordinals = group_ordinals(entry)
        again = bool(ordinals) and ordinals == previous
        start = n_seen - len(previous) if again else n_seen
        end = start + len(ordinals)
        if not ordinals or end > len(groups) or ordinals != list(range(start, end)):
            findings.add(path, line, f"groups {ordinals} where group {n_seen} of {len(groups)} comes next")
            return None
        taken = groups[start:end]
        if not again:
            prices.look(taken)
        expected = [
            expected_group(
                start + at,
                group.summary.rewards,
                group.summary.n_valid,
                spec.advantage,
                prices.charged,
                group.summary.lengths,
            )
            for at, group in enumerate(taken)
        ]
        for what in prices.differences(entry):
            findings.add(path, line, what)
        if not again:
            for group, derived in zip(taken, expected, strict=True):
                for what in prices.ledger_differences(group, derived):
                    findings.add(run.folder.training_ledger(arm), group.line, what)
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


class _Prices:
    """The prices of one arm's training, look by look."""

    def __init__(self, run: OpenedRun, arm: str, spec: GrpoArm | ReinforceArm) -> None:
        self._price = spec.token_price
        self._outcomes: list[Outcome] = []
        self._replayed: list[float] = []
        self.charged: float | None = None
        """At the last look; None where there is no price."""
        if isinstance(self._price, ReplayedPrice):
            self._replayed = price_trace(read_updates(run.folder.updates(self._price.of)))

    def look(self, groups: Sequence[Recounted]) -> None:
        """What these groups were charged, and what follows from them."""
        if self._price is None:
            return
        charged = expected_prices(self._price, self._outcomes, self._replayed)
        self.charged = charged[-1] if charged else None
        rewards = [reward for group in groups for reward in group.summary.rewards]
        lengths = [length for group in groups for length in group.summary.lengths]
        self._outcomes.append((rewards, lengths))

    def differences(self, entry: Mapping[str, Any]) -> Iterator[str]:
        if not _same_price(entry.get("price"), self.charged):
            yield f"price is {entry.get('price')!r}, recounted {self.charged!r}"

    def ledger_differences(self, group: Recounted, derived: Mapping[str, Any]) -> Iterator[str]:
        """What the ledger says otherwise of what one group was charged."""
        priced = derived.get("priced_rewards", [None] * len(group.summary.rewards))
        for found, expected in zip(group.summary.priced_rewards, priced, strict=True):
            if not _same_price(found, expected):
                yield f"priced_reward is {found!r}, recounted {expected!r}"
        for found in group.summary.prices:
            if not _same_price(found, self.charged):
                yield f"price is {found!r}, recounted {self.charged!r}"


def _same_price(found: Any, expected: float | None) -> bool:
    if found is None or expected is None:
        return found is expected
    return isinstance(found, int | float) and math.isclose(found, expected, rel_tol=TOLERANCE, abs_tol=1e-15)


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
