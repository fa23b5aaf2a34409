import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from loratrial.evidence.learning_record import expected_group, group_advantages, group_differences

rewards = st.lists(st.integers(0, 9), min_size=2, max_size=6)


def test_group_std_is_the_reward_less_the_mean_over_the_population_deviation():
    assert group_advantages([0, 2, 2, 4], "group_std") == pytest.approx([-(2**0.5), 0, 0, 2**0.5])


def test_leave_one_out_is_the_reward_less_the_mean_of_the_others():
    assert group_advantages([1, 0, 0, 3], "leave_one_out") == pytest.approx([0, -4 / 3, -4 / 3, 8 / 3])


@settings(deadline=None, derandomize=True, max_examples=50)
@given(rewards, st.sampled_from(["group_std", "leave_one_out"]))
def test_advantages_sum_to_zero_and_keep_the_order_of_rewards(values, kind):
    assume(len(set(values)) > 1)
    found = group_advantages(values, kind)
    assert sum(found) == pytest.approx(0, abs=1e-9)
    assert sorted(range(len(values)), key=lambda i: (values[i], i)) == sorted(
        range(len(values)), key=lambda i: (round(found[i], 9), i)
    )


@pytest.mark.parametrize("kind", ["group_std", "leave_one_out"])
def test_four_times_a_fraction_is_a_tie_and_teaches_nothing(kind):
    expected = expected_group(0, [0.1 + 0.2] * 4, 4, kind)
    assert expected["tied"] is True
    assert expected["advantages"] == [0.0] * 4


def test_a_group_with_nothing_valid_teaches_nothing_even_when_its_rewards_differ():
    expected = expected_group(0, [0, -1], 0, "group_std")
    assert (expected["tied"], expected["advantages"]) == (False, [0.0, 0.0])


def test_advantages_may_differ_by_no_more_than_a_billionth():
    expected = expected_group(3, [0, 1], 2, "group_std")
    near = {**expected, "advantages": [-1.0 + 1e-10, 1.0]}
    far = {**expected, "advantages": [-1.0 + 1e-8, 1.0]}
    assert group_differences(near, expected) == []
    assert group_differences(far, expected)[0].startswith("group 3: advantages ")
