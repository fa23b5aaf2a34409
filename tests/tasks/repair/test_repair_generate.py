"""Puzzles: made the same way every time, right by construction, and silent about the answer."""

import ast
from dataclasses import replace
from itertools import islice
from random import Random

import pytest

from loratrial.errors import DataError
from loratrial.tasks.repair.families import FAMILIES, draw_distinct_inputs
from loratrial.tasks.repair.generate import Shape, generate, split_of
from loratrial.tasks.repair.language import Expression, parse
from loratrial.tasks.repair.mutations import mutants
from loratrial.tasks.repair.puzzle import Puzzle
from loratrial.tasks.repair.scoring import failures
from loratrial.tasks.repair.search import in_turns

SHAPE = Shape(("sums", "membership"), examples=3, hidden=8, matching_share=1.0)


@pytest.fixture(scope="module")
def puzzles() -> list[Puzzle]:
    return list(generate("train", 24, SHAPE, seed=1))


def stored(puzzle: Puzzle, which: str) -> list[dict[str, object]]:
    return [{"inputs": case.inputs, "output": case.output} for case in getattr(puzzle, which)]


def test_the_same_seed_makes_the_same_puzzles_and_a_larger_count_only_adds(puzzles: list[Puzzle]) -> None:
    assert list(islice(generate("train", 6, SHAPE, seed=1), 6)) == puzzles[:6]


def test_seed_and_split_make_other_puzzles(puzzles: list[Puzzle]) -> None:
    assert next(generate("train", 1, SHAPE, seed=2)) != puzzles[0]
    assert next(generate("dev", 1, SHAPE, seed=1)) != puzzles[0]


def test_the_right_candidate_passes_everything_and_each_wrong_one_fails_a_hidden_input(
    puzzles: list[Puzzle],
) -> None:
    for puzzle in puzzles:
        for place, candidate in enumerate(puzzle.candidates):
            assert not failures(candidate, stored(puzzle, "examples"))
            failed = failures(candidate, stored(puzzle, "hidden"))
            assert bool(failed) == (place != puzzle.right)
            assert puzzle.verdicts[place].failed_hidden == len(failed)
        assert failures(puzzle.broken, stored(puzzle, "hidden"))
        assert puzzle.broken not in puzzle.candidates


def test_the_named_mutation_breaks_the_right_candidate(puzzles: list[Puzzle]) -> None:
    for puzzle in puzzles:
        right = parse(puzzle.candidates[puzzle.right])
        assert isinstance(right, Expression)
        named = [each for each in mutants(right.tree, puzzle.kinds) if each.operator == puzzle.mutation]
        assert puzzle.broken in {ast.unparse(mutant.tree) for mutant in named}


def test_labels_are_balanced_in_every_four_puzzles(puzzles: list[Puzzle]) -> None:
    for start in range(0, len(puzzles), 4):
        assert {puzzle.right for puzzle in puzzles[start : start + 4]} == {0, 1, 2, 3}


def test_families_take_turns_and_give_their_level(puzzles: list[Puzzle]) -> None:
    assert [puzzle.family for puzzle in puzzles[:4]] == ["sums", "membership", "sums", "membership"]
    assert {puzzle.level for puzzle in puzzles} == {1}
    assert {family.level for family in FAMILIES.values()} == {1, 2, 3, 4, 5}


def test_shown_and_hidden_inputs_are_all_different(puzzles: list[Puzzle]) -> None:
    for puzzle in puzzles:
        inputs = [repr(case.inputs) for case in (*puzzle.examples, *puzzle.hidden)]
        assert len(inputs) == 3 + 8
        assert len(set(inputs)) == len(inputs)


def test_no_puzzle_is_made_twice(puzzles: list[Puzzle]) -> None:
    keys = {frozenset((puzzle.broken, *puzzle.candidates)) for puzzle in puzzles}
    assert len(keys) == len(puzzles)


def test_without_matching_the_examples_rule_out_exactly_one_wrong_candidate() -> None:
    for puzzle in generate("train", 8, replace(SHAPE, matching_share=0.0, examples=1), seed=4):
        failing = [place for place, verdict in enumerate(puzzle.verdicts) if verdict.failed_examples]
        assert len(failing) == 1
        assert failing != [puzzle.right]


def test_an_expression_is_right_in_one_split_only() -> None:
    for split in ("train", "dev", "test"):
        for puzzle in generate(split, 4, SHAPE, seed=0):
            assert split_of(puzzle.candidates[puzzle.right]) == split


def test_a_family_that_runs_dry_is_an_error_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loratrial.tasks.repair.generate._attempt", lambda *args: None)
    with pytest.raises(DataError, match="family sums gave no new puzzle for dev"):
        next(generate("dev", 2, SHAPE, seed=0))


def test_a_puzzle_that_is_known_is_drawn_again(
    puzzles: list[Puzzle], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([puzzles[0], puzzles[0], None, puzzles[1]])
    monkeypatch.setattr("loratrial.tasks.repair.generate._attempt", lambda *args: next(answers))
    assert list(generate("train", 2, SHAPE, seed=0)) == puzzles[:2]


def test_inputs_are_distinct_or_none_are_given() -> None:
    draws = draw_distinct_inputs({"x": "int"}, 12, Random(0))
    assert len({repr(inputs) for inputs in draws}) == 12
    assert draw_distinct_inputs({"x": "int"}, 40, Random(0)) == []


def test_operators_take_turns_in_the_pool() -> None:
    edits = [("AOR", str(number)) for number in range(9)] + [("CRP", "a"), ("UOI", "b")]
    turns = in_turns(edits, Random(5))
    assert {operator for operator, _ in turns[:3]} == {"AOR", "CRP", "UOI"}
    assert sorted(turns) == sorted(edits)
