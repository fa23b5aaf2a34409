import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from loratrial.statistics.paired import paired_difference, sign_flip_p_value

values = st.floats(-100, 100, allow_nan=False).map(lambda number: round(number, 3))


@settings(deadline=None, derandomize=True, max_examples=60)
@given(st.lists(values, min_size=5, max_size=12, unique=True))
def test_with_one_item_a_cluster_it_is_the_paired_t_interval(differences):
    found = paired_difference(differences, [str(number) for number in range(len(differences))])
    expected = stats.ttest_1samp(differences, 0).confidence_interval(0.95)
    assert found.interval == pytest.approx((expected.low, expected.high), rel=1e-9, abs=1e-9)


def test_unequal_clusters_weigh_by_their_items_as_in_the_definition():
    differences = [1.0, 2.0, 3.0, 0.0, 4.0, 2.0, 1.0, 3.0]
    clusters = ["a", "a", "a", "b", "c", "c", "d", "e"]
    mean = 2.0
    # sums of residuals by cluster: a 0, b -2, c 2, d -1, e 1
    error = math.sqrt(5 / 4 * (0 + 4 + 4 + 1 + 1)) / 8
    reach = 2.7764451052 * error
    found = paired_difference(differences, clusters)
    assert (found.difference, found.n_items, found.n_clusters) == (mean, 8, 5)
    assert found.standard_error == pytest.approx(error)
    assert found.interval == pytest.approx((mean - reach, mean + reach))


def test_the_order_of_items_does_not_matter_to_the_last_bit():
    chance = np.random.default_rng(3)
    rows = [(float(value), f"c{index % 7}") for index, value in enumerate(chance.normal(size=40))]
    mixed = [rows[index] for index in chance.permutation(40)]
    first = paired_difference(*zip(*rows, strict=True))
    second = paired_difference(*zip(*mixed, strict=True))
    assert first.difference == second.difference
    assert first.standard_error == pytest.approx(second.standard_error, rel=1e-12)


def test_fewer_than_five_clusters_have_a_difference_and_a_reason_but_no_interval():
    found = paired_difference([1.0, 2.0, 3.0, 4.0], ["a", "b", "c", "d"])
    assert found.difference == 2.5
    assert found.interval is None
    assert found.standard_error is None
    assert found.note == "4 streams, fewer than 5: too few for an interval"
    assert paired_difference([1.0], ["a"]).note == "1 stream, fewer than 5: too few for an interval"


@pytest.mark.parametrize("difference", [0.0, 0.1, -3.0])
def test_clusters_that_all_differ_alike_give_no_interval_of_width_zero(difference):
    found = paired_difference([difference] * 6, list("aabcde"))
    assert found.difference == pytest.approx(difference)
    assert found.interval is None
    assert "every stream differs by the same" in found.note


def test_nothing_to_compare_is_an_error():
    with pytest.raises(ValueError, match="no item"):
        paired_difference([], [])


def test_the_interval_covers_where_one_that_ignores_clusters_does_not():
    chance = np.random.default_rng(11)
    sizes = [2, 4, 6, 8, 10, 4, 6, 8, 2, 10]
    clusters = [f"c{number}" for number, size in enumerate(sizes) for _ in range(size)]
    covered = naive = 0
    for _ in range(400):
        shared = np.repeat(chance.normal(size=10), sizes)
        differences = (shared + chance.normal(size=len(clusters))).tolist()
        low, high = paired_difference(differences, clusters).interval
        covered += low <= 0 <= high
        plain = stats.ttest_1samp(differences, 0).confidence_interval(0.95)
        naive += plain.low <= 0 <= plain.high
    assert covered / 400 >= 0.90
    assert naive / 400 < 0.75


@settings(deadline=None, derandomize=True, max_examples=60)
@given(st.lists(st.integers(-9, 9), min_size=2, max_size=8))
def test_the_p_value_counts_every_flip_of_signs(sums):
    flips = list(itertools.product((1, -1), repeat=len(sums)))
    far = sum(
        abs(sum(sign * value for sign, value in zip(flip, sums, strict=True))) >= abs(sum(sums))
        for flip in flips
    )
    assert sign_flip_p_value(sums) == far / len(flips)


def test_the_least_p_value_is_two_of_all_flips():
    assert sign_flip_p_value([1.0, 2.0, 3.0, 1.5]) == 2 / 2**4
    assert sign_flip_p_value([0.1] * 10) == 2 / 2**10


@pytest.mark.parametrize("n", [1, 17])
def test_one_cluster_or_more_than_sixteen_have_no_p_value(n):
    assert sign_flip_p_value([1.0] * n) is None
