"""Advantages against numbers worked out by hand, and against the recount's own formulas."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loratrial.evidence.learning_record import group_advantages
from loratrial.learning.advantages import advantages, group_std, is_tied, leave_one_out

REWARDS = st.lists(
    st.one_of(st.integers(-20, 20), st.floats(-10, 10, allow_subnormal=False).map(lambda r: round(r, 6))),
    min_size=2,
    max_size=8,
)


def test_group_std_by_hand():
    # mean 2, deviations -2, 0, 0, 2, population variance 2
    assert group_std([0, 2, 2, 4]) == pytest.approx([-math.sqrt(2), 0, 0, math.sqrt(2)])
    assert group_std([1, 0, 0, 0]) == pytest.approx([math.sqrt(3), *[-1 / math.sqrt(3)] * 3])


def test_leave_one_out_by_hand():
    assert leave_one_out([0, 2, 2, 4]) == pytest.approx([-8 / 3, 0, 0, 8 / 3])
    assert leave_one_out([1, 0]) == [1, -1]


def test_four_times_two_fifths_are_tied_and_so_is_any_equal_reward():
    assert is_tied([0.4, 0.4, 0.4, 0.4])
    assert is_tied([0.1 + 0.2] * 3)
    assert is_tied([1, 1.0])
    assert is_tied([7])


def test_a_difference_in_the_last_bit_is_no_tie():
    assert not is_tied([0.1 + 0.2, 0.3])
    for kind in ("group_std", "leave_one_out"):
        higher, lower = advantages([0.1 + 0.2, 0.3], kind)
        assert higher >= 0 >= lower
        assert higher > lower


@settings(deadline=None, derandomize=True, max_examples=200)
@given(rewards=REWARDS)
def test_untied_groups_have_centred_advantages_in_the_order_of_their_rewards(rewards):
    if is_tied(rewards):
        return
    n = len(rewards)
    for kind in ("group_std", "leave_one_out"):
        found = advantages(rewards, kind)
        assert found == pytest.approx(group_advantages(rewards, kind), rel=1e-9, abs=1e-9)
        assert sum(found) == pytest.approx(0, abs=1e-6 * max(1, *map(abs, found)))
        highest, lowest = rewards.index(max(rewards)), rewards.index(min(rewards))
        assert found[highest] == max(found) > 0 > min(found) == found[lowest]
    assert sum(value**2 for value in group_std(rewards)) / n == pytest.approx(1)
    mean = sum(rewards) / n
    assert leave_one_out(rewards) == pytest.approx([(r - mean) * n / (n - 1) for r in rewards], abs=1e-9)
