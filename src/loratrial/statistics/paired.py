"""The mean of paired differences over clustered items, and what may be said of it.

Items of one stream share carried state, so they are no independent observations: the stream is the
cluster. Left out on purpose: corrections for looking at several figures or arms, and bootstraps.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student_t

FEWEST_CLUSTERS = 5
"""With fewer clusters no interval is given: cluster-robust errors are then far too small."""

MOST_FLIPPED = 16
"""With more clusters than this the sign flips are no longer counted out."""

CONFIDENCE = 0.95


@dataclass(frozen=True)
class PairedDifference:
    """The mean of the differences, in the unit of the figure."""

    difference: float
    n_items: int
    n_clusters: int
    standard_error: float | None = None
    interval: tuple[float, float] | None = None
    """At 95 %; None where `note` says why."""
    p_value: float | None = None
    """Exact, two-sided, from sign flips of whole clusters; None with one cluster or more than 16."""
    note: str = ""


def paired_difference(differences: Sequence[float], clusters: Sequence[str]) -> PairedDifference:
    """The mean of `differences`, one an item, with an interval that respects `clusters`, one an item.

    With n items, G clusters, residuals e_i = d_i - mean, the variance of the mean is
    G / (G - 1) x sum over clusters of (sum of the cluster's e_i) ^ 2 / n ^ 2, and the interval takes
    Student's t with G - 1 degrees of freedom: CR1 for a regression on a constant (Cameron and Miller 2015,
    "A Practitioner's Guide to Cluster-Robust Inference", sections II and VI; for evaluations Miller 2024,
    arXiv 2411.00640). Cluster sizes may differ; with one item a cluster it is the paired t interval.

    Raises ValueError when there is no item.
    """
    if not differences:
        raise ValueError("no item to compare")
    n_items = len(differences)
    mean = math.fsum(differences) / n_items
    members: dict[str, list[float]] = {}
    for difference, cluster in zip(differences, clusters, strict=True):
        members.setdefault(cluster, []).append(difference)
    n_clusters = len(members)
    p_value = sign_flip_p_value([math.fsum(values) for values in members.values()])
    if n_clusters < FEWEST_CLUSTERS:
        counted = f"{n_clusters} stream{'' if n_clusters == 1 else 's'}"
        note = f"{counted}, fewer than {FEWEST_CLUSTERS}: too few for an interval"
        return PairedDifference(mean, n_items, n_clusters, p_value=p_value, note=note)
    squares = math.fsum(math.fsum(value - mean for value in values) ** 2 for values in members.values())
    error = math.sqrt(n_clusters / (n_clusters - 1) * squares) / n_items
    if error <= 1e-12 * max(abs(difference) for difference in differences):
        note = "every stream differs by the same: no interval can be drawn from that"
        return PairedDifference(mean, n_items, n_clusters, p_value=p_value, note=note)
    reach = float(student_t.ppf((1 + CONFIDENCE) / 2, n_clusters - 1)) * error
    return PairedDifference(mean, n_items, n_clusters, error, (mean - reach, mean + reach), p_value)


def sign_flip_p_value(sums: Sequence[float]) -> float | None:
    """The share of all sign flips of `sums`, one a cluster, whose total is as far from 0 as theirs.

    Exact under the null that a cluster's sum is as likely to have either sign (Fisher's randomization test;
    Canay, Romano and Shaikh 2017, Econometrica 85(3), for few clusters). The least it can be is
    2 / 2 ^ G. None for one cluster, which can say nothing, and for more than 16.
    """
    if not 2 <= len(sums) <= MOST_FLIPPED:
        return None
    # the first sign is held: the other half of the flips mirrors this one
    totals = np.array([sums[0]], dtype=np.float64)
    for value in sums[1:]:
        totals = np.concatenate([totals + value, totals - value])
    slack = 1e-9 * math.fsum(abs(value) for value in sums)
    return int(np.count_nonzero(np.abs(totals) >= abs(math.fsum(sums)) - slack)) / len(totals)
