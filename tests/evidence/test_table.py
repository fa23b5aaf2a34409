import copy
import json

import pytest
from rich.console import Console

from loratrial.evidence.figures import build_result
from loratrial.evidence.table import difference_text, picture, plain, render, sentences, value_text

SHARE = {"name": "recall", "label": "recall", "kind": "share", "better": "higher"}
MEAN = {"name": "cost", "label": "cost", "kind": "mean", "better": "lower"}


@pytest.fixture(scope="module")
def built(pristine):
    return build_result(pristine)


@pytest.fixture
def result(built):
    return copy.deepcopy(built)


def interval(result, low, high, split="eval"):
    figure = result["sections"][split]["differences"]["trained"]["pooled"]["recall"]
    figure.update(difference=(low + high) / 2, interval=[low, high])
    return next(each for each in sentences(result, split) if each.startswith("trained"))


def test_shares_are_per_cent_and_their_differences_points():
    assert value_text(SHARE, 0.7375) == "73.8 %"
    assert difference_text(SHARE, 0.176) == "+17.6"
    assert difference_text(SHARE, -0.00001) == "+0.0"
    assert (value_text(MEAN, 746.03), difference_text(MEAN, -10.37)) == ("746.03", "-10.37")


def test_a_result_read_from_its_file_makes_the_same_table(pristine, result):
    assert plain(json.loads((pristine / "result.json").read_bytes())) == plain(result)


def test_the_table_has_the_headline_figures_only_unless_all_are_asked_for(result):
    assert "pass@3" not in plain(result)
    assert "pass@3" in plain(result, every_figure=True)


def test_the_picture_holds_the_table_and_loads_nothing(result):
    drawn = picture(result)
    assert drawn.startswith("<svg")
    assert "warm" in drawn
    for outside in ("url(http", "@import", "<script"):
        assert outside not in drawn


def test_the_table_has_every_arm_figure_reference_and_number_of_items(result):
    text = plain(result, every_figure=True)
    for word in ("base", "warm", "trained", "loo", "recall", "unsupported", "pass@3", "valid", "tokens"):
        assert word in text
    for word in ("oracle", "everything", "12 items in 5 streams", "seeds 7, 8", "split train (in-sample)"):
        assert word in text


def test_a_figure_that_an_arm_lacks_is_an_empty_cell(result):
    del result["sections"]["eval"]["differences"]["trained"]["pooled"]["extra"]
    del result["sections"]["eval"]["arms"]["base"]["pooled"]["extra"]
    row = next(line for line in plain(result).splitlines() if "unsupported" in line)
    assert row.split("│")[2].strip() == ""


def test_an_interval_over_zero_shows_no_difference(result):
    assert interval(result, -0.1, 0.3).endswith("the interval holds 0, so no difference is shown.")


@pytest.mark.parametrize(
    ("better", "low", "high", "word"),
    [
        ("higher", 0.1, 0.3, "better"),
        ("higher", -0.3, -0.1, "worse"),
        ("lower", -0.3, -0.1, "better"),
        ("neither", 0.1, 0.3, "different"),
    ],
)
def test_an_interval_without_zero_says_which_way(result, better, low, high, word):
    result["figures"][0]["better"] = better
    assert interval(result, low, high).endswith(f"the interval leaves out 0: {word}.")


def test_too_few_streams_are_said_to_hold_for_these_items_only(result):
    said = sentences(result, "train")
    assert said[0] == "In-sample: the trained arms learned from these very items."
    assert any("2 streams, fewer than 5: too few for an interval" in each for each in said)
    assert any("not beyond them" in each for each in said)


def test_a_reference_that_no_arm_beats_is_said_and_the_oracle_is_not(result):
    said = sentences(result, "eval")
    assert "No arm does better in recall than these, with no model: everything (100.0 %)." in said
    assert not any("oracle" in each or "empty" in each for each in said)


def test_a_single_arm_is_compared_with_nothing(result):
    result["sections"]["eval"].update(differences={}, references={})
    result["training"] = {}
    assert sentences(result, "eval") == ["One arm only: nothing is compared."]
    assert "training" not in plain(result).replace("split train", "")


def test_a_training_without_groups_has_no_reward(result):
    result["training"]["loo"].update(mean_reward_first_quarter=None, mean_reward_last_quarter=None)
    assert "none to none" in plain(result)


def test_words_of_a_task_are_never_taken_for_markup(result):
    result["figures"][0]["label"] = "[red]recall[/red]"
    assert "[red]recall[/red]" in plain(result)


def test_a_terminal_of_eighty_columns_shows_the_table(result):
    console = Console(width=80, record=True, file=None, quiet=False, force_terminal=True)
    with console.capture() as captured:
        console.print(render(result))
    assert "trained" in captured.get()
