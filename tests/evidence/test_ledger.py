import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loratrial.errors import RunFolderError
from loratrial.evidence.jsonio import canonical, parse, pretty
from loratrial.evidence.ledger import (
    CandidateRecord,
    LedgerWriter,
    ids_sha256,
    messages_sha256,
    read_groups,
)
from loratrial.tasks.task import Message, Reading, Score

BASE = CandidateRecord(
    walk="eval-7",
    arm="trained",
    group=0,
    stream="ann",
    item=0,
    candidate=0,
    n_candidates=3,
    seed=11,
    policy_version=0,
    messages_sha256="a" * 64,
    prompt_ids_sha256="b" * 64,
    n_prompt_tokens=5,
    mode="text",
    rotation=0,
    token_ids=(1, 2),
    supplied_ids=(),
    n_reasoning=1,
    text="hi",
    finish="stop",
    logprobs=(-0.5, -1.25),
    reading=Reading(valid=True, state="s", facts=[["a", 1]], problem=""),
    score=Score(reward=1, figures={"recall": 0.5}, detail={"missing": ["b"]}),
    price=None,
    priced_reward=None,
    carried=True,
)


def group(ordinal: int, n_candidates: int = 3, **changes) -> list[CandidateRecord]:
    return [
        replace(
            BASE,
            group=ordinal,
            item=ordinal,
            candidate=candidate,
            n_candidates=n_candidates,
            carried=candidate == 0,
            **changes,
        )
        for candidate in range(n_candidates)
    ]


def written(path, n_groups: int) -> bytes:
    with LedgerWriter(path) as ledger:
        for ordinal in range(ledger.n_groups, n_groups):
            ledger.append_group(group(ordinal))
    return path.read_bytes()


anything = st.text(st.characters(exclude_categories=()), max_size=20)
unpaired = anything.filter(lambda text: json.loads(json.dumps(text)) == text)


@settings(deadline=None, derandomize=True, max_examples=80)
@given(
    text=unpaired,
    state=unpaired,
    logprobs=st.lists(st.floats(-(2.0**100), 0, width=32), max_size=6),
    reward=st.one_of(st.integers(-5, 500), st.floats(-1, 1)),
    facts=st.recursive(
        st.none() | st.booleans() | st.integers() | unpaired, lambda inner: st.lists(inner, max_size=3)
    ),
)
def test_a_record_comes_back_from_its_line_equal(text, state, logprobs, reward, facts):
    record = replace(
        BASE,
        text=text,
        logprobs=tuple(logprobs),
        reading=replace(BASE.reading, state=state, facts=facts),
        score=replace(BASE.score, reward=reward),
    )
    line = record.to_json()
    again = CandidateRecord.from_json(line.encode())
    assert "\n" not in line
    assert again.to_json() == line
    assert replace(again, logprobs=()) == replace(record, logprobs=())
    assert np.array_equal(np.float32(again.logprobs), np.float32(logprobs))


def test_a_lone_surrogate_survives_and_the_line_is_still_utf8():
    record = replace(BASE, text="half \ud83d of a face")
    assert CandidateRecord.from_json(record.to_json().encode("utf-8")) == record


def test_a_split_surrogate_pair_is_refused_because_json_would_join_it():
    with pytest.raises(ValueError, match="surrogate pair"):
        replace(BASE, text="\ud83d\ude00").to_json()


def test_logprobs_are_written_as_the_shortest_float32():
    line = replace(BASE, logprobs=(float(np.float32(-0.1)), -1e-9)).to_json()
    assert '"logprobs":[-0.1,-1e-09]' in line


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, 1e39])
def test_no_ledger_holds_a_number_that_is_not_finite(number):
    with pytest.raises(ValueError):
        replace(BASE, logprobs=(number, 0.0)).to_json()
    if number != 1e39:
        with pytest.raises(ValueError):
            replace(BASE, score=Score(reward=number, figures={})).to_json()
        with pytest.raises(ValueError):
            parse(json.dumps([number]))


def test_json_that_is_nested_past_the_stack_is_a_value_error():
    with pytest.raises(ValueError, match="nested"):
        parse("[" * 200_000)


def test_canonical_json_does_not_depend_on_the_order_of_keys():
    assert canonical({"b": 1, "a": "é"}) == canonical({"a": "é", "b": 1}) == '{"a":"é","b":1}'
    assert parse(pretty({"b": "\ud800"})) == {"b": "\ud800"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": "11"}, "'seed' is str"),
        ({"seed": True}, "'seed' is bool"),
        ({"carried": 1}, "'carried' is int"),
        ({"extra": 1}, "an unknown field 'extra'"),
        ({"finish": "tired"}, "finish is 'tired'"),
        ({"token_ids": [1, 2.0]}, "token_ids holds float"),
        ({"logprobs": ["x"]}, "logprobs holds str"),
        ({"reading": {}}, "reading has no field 'facts'"),
        ({"score": {"reward": 1, "figures": {"recall": "x"}, "detail": {}}}, "figures holds str"),
    ],
)
def test_a_line_of_another_form_is_refused_by_field(change, message):
    value = {**json.loads(BASE.to_json()), **change}
    with pytest.raises(ValueError, match=message):
        CandidateRecord.from_json(json.dumps(value))


def test_a_line_that_is_no_object_is_refused():
    with pytest.raises(ValueError, match="no object"):
        CandidateRecord.from_json("[]")


def test_the_same_groups_make_the_same_bytes(tmp_path):
    assert written(tmp_path / "a.jsonl", 3) == written(tmp_path / "b.jsonl", 3)


def test_groups_are_read_back_in_order(tmp_path):
    written(tmp_path / "ledger.jsonl", 3)
    assert list(read_groups(tmp_path / "ledger.jsonl")) == [group(0), group(1), group(2)]


@settings(deadline=None, derandomize=True, max_examples=60)
@given(data=st.data())
def test_a_file_cut_anywhere_resumes_to_the_uninterrupted_bytes(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("cut") / "ledger.jsonl"
    whole = written(path, 3)
    cut = data.draw(st.integers(0, len(whole)))
    path.write_bytes(whole[:cut])
    with LedgerWriter(path) as ledger:
        size = len(whole) // 3
        assert ledger.n_groups == cut // size
    assert path.read_bytes() == whole[: cut // size * size]
    assert written(path, 3) == whole


def test_a_torn_last_group_is_an_error_to_a_reader_and_names_its_line(tmp_path):
    path = tmp_path / "ledger.jsonl"
    whole = written(path, 2)
    path.write_bytes(whole[:-5])
    with pytest.raises(RunFolderError, match=r"ledger\.jsonl:4: the last group is torn"):
        list(read_groups(path))


def test_a_missing_ledger_is_named(tmp_path):
    with pytest.raises(RunFolderError, match=r"gone\.jsonl is missing"):
        list(read_groups(tmp_path / "gone.jsonl"))


def lines_changed(path, change) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    change(lines)
    path.write_bytes(b"".join(lines))


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda lines: lines.__setitem__(1, b'{"walk": \n'), 2),
        (lambda lines: lines.pop(1), 2),
        (lambda lines: lines.insert(1, lines[1]), 3),
        (lambda lines: lines.__setitem__(slice(0, 6), lines[3:6] + lines[0:3]), 1),
        (lambda lines: lines.__setitem__(slice(3, 6), []), 4),
        (lambda lines: lines.__setitem__(4, lines[4].replace(b'"ann"', b'"bob"')), 5),
        (lambda lines: lines.insert(3, b"\xff\n"), 4),
    ],
    ids=["damaged", "dropped", "doubled", "swapped", "group dropped", "other stream", "not utf-8"],
)
def test_damage_before_the_tail_is_refused_by_line_and_the_file_is_left_alone(tmp_path, change, line):
    path = tmp_path / "ledger.jsonl"
    written(path, 3)
    lines_changed(path, change)
    damaged = path.read_bytes()
    with pytest.raises(RunFolderError, match=rf"ledger\.jsonl:{line}: "):
        LedgerWriter(path)
    with pytest.raises(RunFolderError, match=rf"ledger\.jsonl:{line}: "):
        list(read_groups(path))
    assert path.read_bytes() == damaged


@pytest.mark.parametrize(
    "records",
    [
        [],
        group(0)[:2],
        group(1),
        [*group(0)[:2], replace(group(0)[2], candidate=1)],
        group(0, logprobs=(0.0,)),
    ],
    ids=["empty", "short", "not next", "candidate twice", "log-probability missing"],
)
def test_a_group_that_is_not_the_next_whole_one_is_not_written(tmp_path, records):
    with LedgerWriter(tmp_path / "ledger.jsonl") as ledger, pytest.raises(ValueError, match="ledger"):
        ledger.append_group(records)
    assert (tmp_path / "ledger.jsonl").read_bytes() == b""


def test_a_walk_that_goes_back_forgets_the_later_groups(tmp_path):
    path = tmp_path / "ledger.jsonl"
    whole = written(path, 3)
    with LedgerWriter(path) as ledger:
        with pytest.raises(ValueError, match="holds 3 groups"):
            ledger.truncate(4)
        ledger.truncate(1)
        ledger.append_group(group(1))
        assert ledger.n_groups == 2
    assert path.read_bytes() == whole[: len(whole) // 3 * 2]
    with LedgerWriter(path) as ledger:
        ledger.truncate(0)
    assert path.read_bytes() == b""


def test_hashes_tell_prompts_apart():
    assert messages_sha256([Message("user", "a")]) != messages_sha256([Message("system", "a")])
    assert ids_sha256([1, 23]) != ids_sha256([12, 3])
    assert ids_sha256([np.int64(1)]) == ids_sha256([1])
