"""Which answer an output gives: harmless differences are read, hedges and silence are not."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loratrial.tasks.repair.answers import read_label

CANDIDATES = ("x + y", "x - y", "abs(x) + y", "x")


@pytest.mark.parametrize(
    "text",
    [
        "Answer: B",
        "answer: B.",
        "ANSWER:B",
        "Answer: b",
        "**Answer:** B",
        "**Answer**: **B**",
        "Answer: (B)",
        "Answer: `B`",
        "Answer: B\n\n",
        "The answer is B.",
        "The answer is: B",
        "The right answer is **B** because y is taken away.",
        "Answer: B: x - y",
        "Answer: A\nNo, wait.\nAnswer: B",
        "A\nB",
        "B",
        " b ",
        "(B)",
        "B.",
        "B)",
        "**B**",
        "Answer:\nB",
        "B: x - y",
        "B) `x - y`",
        "A: passes\nB: fails\n\nB",
        "Answer: A or C, I first thought. Answer: B",
    ],
)
def test_b_is_read(text: str) -> None:
    assert read_label(text, CANDIDATES) == "B"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x - y",
        "Answer:",
        "Answer: E",
        "Answer: Both",
        "Answer: a + b",
        "Answer: A or B",
        "Answer: A, B, C or D",
        "Answer: A/B",
        "Answer: C. Answer: A and B",
        "Answer with one letter: A, B, C or D.",
        "A: x + y\nB: x - y\nC: abs(x) + y\nD: x",
        "B: x + y",
        "I think that B might be right",
        "E",
        "Because",
    ],
)
def test_no_single_answer_is_read(text: str) -> None:
    assert read_label(text, CANDIDATES) is None


@settings(deadline=None, derandomize=True, max_examples=300)
@given(st.text(max_size=80) | st.text("AanswerBCDr:*` \n().,or", max_size=80))
def test_any_text_is_read_without_an_error(text: str) -> None:
    assert read_label(text, CANDIDATES) in ("A", "B", "C", "D", None)


@settings(deadline=None, derandomize=True, max_examples=100)
@given(st.text(max_size=60), st.sampled_from("ABCD"))
def test_the_last_statement_counts_whatever_stands_before_it(before: str, label: str) -> None:
    assert read_label(f"{before}\nAnswer: {label}", CANDIDATES) == label


@pytest.mark.parametrize("piece", [" ", "\n", "*", "Answer: ", "answer", "A", "A\n", "(", "Answer: A or "])
def test_reading_time_grows_with_length_only(piece: str) -> None:
    start = time.perf_counter()
    read_label(piece * 100_000, CANDIDATES)
    assert time.perf_counter() - start < 2
