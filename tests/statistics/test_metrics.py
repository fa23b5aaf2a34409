import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loratrial.statistics.metrics import (
    FigureMean,
    figure_means,
    item_values,
    paired_differences,
    pooled,
    stream_means,
)


def recalls(stream, item, *numbers):
    return item_values(stream, item, [{"recall": number} for number in numbers])


def test_items_count_once_however_many_candidates_they_have():
    items = [recalls("a", 0, 1.0, 0.0, 0.5), recalls("a", 1, 1.0)]
    assert figure_means(items)["recall"] == FigureMean(mean=0.75, total=2.5, n_items=2)


def test_totals_are_over_all_candidates_and_stay_whole():
    items = [item_values("a", 0, [{"matched": 3}, {"matched": 4}]), item_values("a", 1, [{"matched": 2}])]
    total = figure_means(items)["matched"].total
    assert total == 9
    assert isinstance(total, int)


@pytest.mark.parametrize(("exact", "passes"), [((0, 0, 1), 1), ((0, 0, 0), 0), ((1, 1, 1), 1)])
def test_an_item_passes_when_one_of_its_candidates_is_exact(exact, passes):
    values = item_values("a", 0, [{"exact": each} for each in exact])
    assert values.values["pass_at_k"] == passes


def test_one_candidate_has_no_pass_at_k():
    assert "pass_at_k" not in item_values("a", 0, [{"exact": 1}]).values


def test_a_figure_that_a_candidate_or_an_item_lacks_is_not_counted_as_zero():
    first = item_values("a", 0, [{"recall": 1.0, "corrections": 0.5}, {"recall": 0.0}])
    second = recalls("a", 1, 1.0)
    assert figure_means([first, second])["corrections"] == FigureMean(0.5, 0.5, 1)


def test_seeds_are_repeats_of_an_item_and_no_new_items():
    together = pooled([[recalls("a", 0, 1.0), recalls("a", 1, 0.0)], [recalls("a", 0, 0.5)]])
    assert [item.values["recall"] for item in together] == [0.75, 0.0]
    assert figure_means(together)["recall"] == FigureMean(0.375, 1.5, 2)


def test_streams_have_their_own_means():
    items = [recalls("a", 0, 1.0), recalls("a", 1, 0.0), recalls("b", 0, 0.25)]
    assert stream_means(items) == {"a": {"recall": 0.5}, "b": {"recall": 0.25}}


def test_differences_are_paired_by_item_and_not_by_place_in_the_file():
    control = [recalls("a", 0, 0.1), recalls("b", 0, 0.6)]
    arm = [recalls("b", 0, 0.7), recalls("a", 0, 0.4)]
    found = paired_differences(arm, control)["recall"]
    assert found.difference == pytest.approx(0.2)
    assert (found.n_items, found.n_clusters) == (2, 2)


def test_a_difference_needs_the_figure_in_both_arms():
    arm = [
        item_values("a", 0, [{"recall": 1.0, "late": 1}]),
        item_values("b", 0, [{"recall": 1.0, "late": 1}]),
    ]
    control = [item_values("a", 0, [{"recall": 0.0, "late": 0}]), item_values("b", 0, [{"recall": 0.0}])]
    found = paired_differences(arm, control)
    assert found["recall"].n_items == 2
    assert found["late"].n_items == 1


@settings(deadline=None, derandomize=True, max_examples=60)
@given(st.lists(st.lists(st.floats(0, 1), min_size=1, max_size=4), min_size=1, max_size=8), st.randoms())
def test_figures_do_not_depend_on_the_order_of_items(rows, chance):
    items = [recalls(f"s{index % 3}", index, *row) for index, row in enumerate(rows)]
    mixed = list(items)
    chance.shuffle(mixed)
    assert figure_means(mixed) == figure_means(items)
    assert {name: item["recall"] for name, item in stream_means(mixed).items()} == {
        name: item["recall"] for name, item in stream_means(items).items()
    }
