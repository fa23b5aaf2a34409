"""result.json: every figure of the result table, as a pure function of trial, data and ledgers.

`build_result` believes the scores that the ledgers hold; the recount derives them again and builds the same
table from what it found. Left out: how a table is shown, and the definitions, which `statistics` holds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from loratrial.errors import RunFolderError
from loratrial.evidence.folder import FORMAT
from loratrial.evidence.judge import answer_figures
from loratrial.evidence.learning_record import price_summary, read_updates
from loratrial.evidence.ledger import CandidateRecord, read_groups
from loratrial.evidence.opened import Evaluation, OpenedRun, open_run
from loratrial.evidence.references import reference_values
from loratrial.spec import cautions
from loratrial.statistics.metrics import (
    PASS_AT_K,
    ItemValues,
    figure_means,
    item_values,
    paired_differences,
    pooled,
    stream_means,
)
from loratrial.statistics.paired import PairedDifference
from loratrial.tasks.task import Figure

TOKENS = "tokens"
REASONING_TOKENS = "reasoning_tokens"
TRUNCATED = "truncated"


@dataclass(frozen=True)
class GroupSummary:
    """What the result needs of one group."""

    walk: str
    values: ItemValues
    seeds: tuple[int, ...]
    """Of its candidates: equal for arms that may be compared."""
    rewards: tuple[int | float, ...]
    """Raw."""
    lengths: tuple[int, ...]
    """Reasoning tokens."""
    prices: tuple[float | None, ...]
    priced_rewards: tuple[float | None, ...]
    n_valid: int
    n_tokens: int

    @property
    def tied(self) -> bool:
        """Raw rewards all equal, compared before any arithmetic."""
        return len(set(self.rewards)) == 1


def summarize(group: Sequence[CandidateRecord]) -> GroupSummary:
    """One group of a ledger without its texts."""
    figures = [
        {
            **answer_figures(record.reading, record.score),
            TOKENS: len(record.token_ids),
            REASONING_TOKENS: record.n_reasoning,
            TRUNCATED: int(record.finish == "length"),
        }
        for record in group
    ]
    return GroupSummary(
        group[0].walk,
        item_values(group[0].stream, group[0].item, figures),
        tuple(record.seed for record in group),
        tuple(record.score.reward for record in group),
        tuple(record.n_reasoning for record in group),
        tuple(record.price for record in group),
        tuple(record.priced_reward for record in group),
        sum(record.reading.valid for record in group),
        sum(len(record.token_ids) for record in group),
    )


@dataclass(frozen=True)
class Measured:
    """Everything that a run's ledgers say, without the texts."""

    evaluations: Mapping[tuple[str, str, int], Sequence[GroupSummary]]
    """By arm, section and seed."""
    trainings: Mapping[str, Sequence[GroupSummary]]
    """By arm, for those that learned from their own samples."""


def build_result(folder: Path) -> dict[str, Any]:
    """The result of the run in `folder`, as `docs/run-folder.md` describes it; JSON values only.

    Raises RunFolderError when a ledger is missing or damaged, or when arms were not measured alike.
    """
    run = open_run(folder, complete=False)
    return result_of(run, measure(run))


def measure(run: OpenedRun) -> Measured:
    """Read every ledger of a run, believing its scores."""
    return Measured(
        {
            (arm, evaluation.section, evaluation.seed): [
                summarize(group)
                for group in read_groups(
                    run.folder.evaluation_ledger(arm, evaluation.section, evaluation.seed)
                )
            ]
            for arm in run.spec.evaluated_arms
            for evaluation in run.evaluations()
        },
        {
            arm: [summarize(group) for group in read_groups(run.folder.training_ledger(arm))]
            for arm in run.sampled_arms()
        },
    )


def result_of(run: OpenedRun, measured: Measured) -> dict[str, Any]:
    """The result from what was measured, believed or derived again.

    Raises RunFolderError, with what differs, when an arm was not measured as the control was.
    """
    sections: dict[str, Any] = {}
    for section in dict.fromkeys(evaluation.section for evaluation in run.evaluations()):
        sections[section] = _section_result(
            run, measured, [each for each in run.evaluations() if each.section == section]
        )
    return {
        "format": FORMAT,
        "trial": run.spec.trial.name,
        "task": run.task.kind,
        "scorer_version": run.task.scorer_version,
        "control": run.spec.trial.control,
        "split": run.spec.evaluation.split,
        "arms": {name: {"method": arm.method, "from": arm.parent} for name, arm in run.spec.arms.items()},
        "n_candidates": run.spec.evaluation_candidates,
        "cautions": cautions(run.spec),
        "figures": [asdict(figure) for figure in _shown_figures(run, sections)],
        "sections": sections,
        "training": {arm: _training_result(run, arm, groups) for arm, groups in measured.trainings.items()},
    }


def _shown_figures(run: OpenedRun, sections: Mapping[str, Any]) -> list[Figure]:
    """The task's figures in its order, the primary one first, then those that every task has; only measured
    ones."""
    choosing = run.spec.evaluation_modes != ("text",)
    common = [
        Figure(PASS_AT_K, f"pass@{run.spec.evaluation_candidates}", "share", "higher", headline=False),
        Figure("reward", "raw reward", "mean", "higher", headline=False),
        Figure("valid", "valid", "share", "higher"),
        Figure(REASONING_TOKENS, "reasoning tokens", "mean", "neither", headline=choosing),
        Figure(TRUNCATED, "truncated", "share", "neither", headline=choosing),
        Figure(TOKENS, "tokens", "mean", "neither", headline=not choosing),
    ]
    own = {figure.name for figure in run.task.figures}
    measured = {
        name for section in sections.values() for arm in section["arms"].values() for name in arm["pooled"]
    }
    figures = [*run.task.figures, *(figure for figure in common if figure.name not in own)]
    return [figure for figure in figures if figure.name in measured]


def _section_result(run: OpenedRun, measured: Measured, evaluations: Sequence[Evaluation]) -> dict[str, Any]:
    section, split = evaluations[0].section, evaluations[0].split
    seeds = [evaluation.seed for evaluation in evaluations]
    control = run.spec.trial.control
    of_arm = {
        arm: {seed: measured.evaluations[arm, section, seed] for seed in seeds}
        for arm in run.spec.evaluated_arms
    }
    arms = {arm: _arm_result(groups) for arm, groups in of_arm.items()}
    differences = {}
    for arm in of_arm:
        if arm == control:
            continue
        if differing := unmatched(of_arm[arm], of_arm[control]):
            raise RunFolderError(
                f"{run.folder.root}: arms {arm!r} and {control!r} were not measured alike on {section!r}: "
                f"{'; '.join(differing[:5])}"
            )
        differences[arm] = _difference_result(of_arm[arm], of_arm[control])
    streams = run.task.dataset.split(split)
    return {
        "split": split,
        "mode": evaluations[0].mode,
        "in_sample": evaluations[0].in_sample,
        "seeds": seeds,
        "n_streams": len(streams),
        "n_items": sum(len(stream.items) for stream in streams),
        "arms": arms,
        "differences": differences,
        "references": {
            name: _means(reference_values(run.task, reference, streams))
            for name, reference in run.task.references().items()
        },
    }


def _arm_result(by_seed: Mapping[int, Sequence[GroupSummary]]) -> dict[str, Any]:
    values = {seed: [group.values for group in groups] for seed, groups in by_seed.items()}
    together = pooled(values.values())
    return {
        "pooled": _means(together),
        "seeds": {str(seed): _means(items) for seed, items in values.items()},
        "streams": stream_means(together),
    }


def _difference_result(
    arm: Mapping[int, Sequence[GroupSummary]], control: Mapping[int, Sequence[GroupSummary]]
) -> dict[str, Any]:
    ours = {seed: [group.values for group in groups] for seed, groups in arm.items()}
    theirs = {seed: [group.values for group in groups] for seed, groups in control.items()}
    return {
        "pooled": _differences(paired_differences(pooled(ours.values()), pooled(theirs.values()))),
        "seeds": {str(seed): _differences(paired_differences(ours[seed], theirs[seed])) for seed in ours},
    }


def _means(items: Sequence[ItemValues]) -> dict[str, Any]:
    return {name: asdict(figure) for name, figure in figure_means(items).items()}


def _differences(differences: Mapping[str, PairedDifference]) -> dict[str, Any]:
    return {
        name: {**asdict(each), "interval": list(each.interval) if each.interval else None}
        for name, each in differences.items()
    }


def unmatched(
    arm: Mapping[int, Sequence[GroupSummary]], control: Mapping[int, Sequence[GroupSummary]]
) -> list[str]:
    """What keeps two arms from being compared item by item; nothing when they were measured alike."""
    if arm.keys() != control.keys():
        return [f"seeds {sorted(arm)} and {sorted(control)}"]
    found: list[str] = []
    for seed in arm:
        ours = {(group.walk, *group.values.key): group.seeds for group in arm[seed]}
        theirs = {(group.walk, *group.values.key): group.seeds for group in control[seed]}
        if len(ours) < len(arm[seed]) or len(theirs) < len(control[seed]):
            found.append(f"seed {seed} has an item twice")
        for walk, stream, item in sorted(ours.keys() ^ theirs.keys()):
            found.append(f"{walk} of stream {stream!r} item {item} is in one of them only")
        for key in sorted(ours.keys() & theirs.keys()):
            if ours[key] != theirs[key]:
                what = "candidates" if len(ours[key]) != len(theirs[key]) else "candidate seeds"
                found.append(f"{key[0]} of stream {key[1]!r} item {key[2]} has other {what}")
    return found


def _training_result(run: OpenedRun, arm: str, groups: Sequence[GroupSummary]) -> dict[str, Any]:
    quarter = max(1, len(groups) // 4)
    updates = list(read_updates(run.folder.updates(arm)))
    return {
        "groups": len(groups),
        "tied_groups": sum(group.tied for group in groups),
        "invalid_groups": sum(group.n_valid == 0 for group in groups),
        "updates": sum(line.get("update") is not None for line in updates),
        "price": price_summary(updates),
        "candidates": sum(len(group.rewards) for group in groups),
        "tokens": sum(group.n_tokens for group in groups),
        "mean_reward_first_quarter": _mean_reward(groups[:quarter]),
        "mean_reward_last_quarter": _mean_reward(groups[-quarter:]),
    }


def _mean_reward(groups: Sequence[GroupSummary]) -> float | None:
    means = figure_means([group.values for group in groups])
    return means["reward"].mean if groups else None
