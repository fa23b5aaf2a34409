import json
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loratrial.errors import DataError
from loratrial.tasks.dataset import canonical_line, dataset_files, dataset_hash, read, write
from loratrial.tasks.task import Dataset, Item, Stream, Target


def small() -> Dataset:
    streams = (
        Stream("a", "train", (Item("a", 0, {"text": "é\u2028\x85 line"}), Item("a", 1, {"text": "two"}))),
        Stream("b", "eval", (Item("b", 0, {"n": 1.5, "list": [None, True]}),)),
    )
    targets = {
        (item.stream, item.index): Target(item.stream, item.index, {"label": f"{item.stream}{item.index}"})
        for stream in streams
        for item in stream.items
    }
    return Dataset(streams, targets)


def rewrite(folder: Path, name: str, old: str, new: str) -> None:
    path = folder / name
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8", newline="\n")


def test_a_written_dataset_reads_back_equal(tmp_path: Path) -> None:
    digest = write(small(), tmp_path)
    assert read(tmp_path) == small()
    assert digest == dataset_hash(small()) == dataset_hash(read(tmp_path))


def test_files_are_canonical_lines_and_labels_stand_in_targets_only(tmp_path: Path) -> None:
    write(small(), tmp_path)
    items = (tmp_path / "items.jsonl").read_bytes()
    assert (
        items.split(b"\n")[0]
        == '{"index":0,"public":{"text":"é\u2028\x85 line"},"split":"train","stream":"a"}'.encode()
    )
    assert items.endswith(b"\n")
    assert b"label" not in items
    assert (tmp_path / "targets.jsonl").read_bytes().split(b"\n")[
        0
    ] == b'{"index":0,"private":{"label":"a0"},"stream":"a"}'
    assert sorted(path.name for path in tmp_path.iterdir()) == ["items.jsonl", "targets.jsonl"]


def test_the_hash_is_that_of_the_listing_of_both_files() -> None:
    files = dataset_files(small())
    listing = "".join(
        f"{sha256(files[name]).hexdigest()}  {name}\n" for name in ("items.jsonl", "targets.jsonl")
    )
    assert dataset_hash(small()) == sha256(listing.encode()).hexdigest()


def test_the_hash_moves_with_an_item_and_with_a_label() -> None:
    data = small()
    other_label = Dataset(data.streams, {**data.targets, ("b", 0): Target("b", 0, {"label": "x"})})
    other_item = Dataset((data.streams[0], Stream("b", "eval", (Item("b", 0, {}),))), data.targets)
    assert len({dataset_hash(data), dataset_hash(other_label), dataset_hash(other_item)}) == 3


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None, derandomize=True, max_examples=60)
@given(
    public=st.dictionaries(st.text(), json_values, max_size=3),
    private=st.dictionaries(st.text(), json_values, max_size=3),
)
def test_any_json_survives_unless_it_holds_a_lone_surrogate(
    tmp_path_factory: pytest.TempPathFactory, public: dict[str, object], private: dict[str, object]
) -> None:
    folder = tmp_path_factory.mktemp("data")
    data = Dataset((Stream("s", "train", (Item("s", 0, public),)),), {("s", 0): Target("s", 0, private)})
    write(data, folder)
    assert read(folder) == data


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("\ud800", "lone surrogate (U+D800)"),
        ({"k\udfff": 1}, "lone surrogate (U+DFFF)"),
        (float("nan"), "nan"),
        ({"deep": [1.0, float("inf")]}, "value.deep[1] is inf"),
        ((1, 2), "tuple"),
        ({1: "a"}, "key 1"),
        ({"s": {1, 2}}, "set"),
    ],
)
def test_what_json_does_not_give_back_is_refused(value: object, says: str) -> None:
    with pytest.raises(DataError) as refusal:
        canonical_line(value)
    assert says in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_refused_dataset_leaves_the_old_files_alone(tmp_path: Path) -> None:
    write(small(), tmp_path)
    bad = Dataset(
        (Stream("a", "train", (Item("a", 0, {"text": "\ud800"}),)),), {("a", 0): Target("a", 0, {})}
    )
    with pytest.raises(DataError, match="surrogate"):
        write(bad, tmp_path)
    assert read(tmp_path) == small()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda d: replace(d, streams=(*d.streams, d.streams[0])), "stands twice"),
        (lambda d: replace(d, streams=(*d.streams, Stream("c", "eval", ()))), "no items"),
        (
            lambda d: replace(d, streams=(Stream("a", "train", d.streams[0].items[::-1]), d.streams[1])),
            "number the items",
        ),
        (lambda d: replace(d, streams=d.streams[:1]), "belongs to no item"),
        (lambda d: replace(d, targets={}), "has no target"),
        (lambda d: replace(d, targets={**d.targets, ("a", 0): d.targets["a", 1]}), "names another item"),
    ],
)
def test_items_and_targets_that_do_not_pair_up_are_not_written(
    tmp_path: Path, change: object, says: str
) -> None:
    with pytest.raises(DataError, match=says):
        write(change(small()), tmp_path)  # type: ignore[operator]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "old", "new", "says"),
    [
        (
            "targets.jsonl",
            '{"index":1,"private":{"label":"a1"},"stream":"a"}\n',
            "",
            "no target for item 1 of stream 'a'",
        ),
        ("targets.jsonl", '"index":1', '"index":0', "line 2: a second target"),
        ("targets.jsonl", '"index":1', '"index":7', "line 2: no item 7"),
        ("targets.jsonl", '"stream":"b"', '"stream":"z"', "line 3: no item 0 in stream 'z'"),
        ("targets.jsonl", '"private":{"label":"b0"}', '"private":[]', "line 3: a target needs"),
        ("items.jsonl", '"index":1', '"index":2', "line 2: stream 'a' has item 2 where item 1 was due"),
        ("items.jsonl", '"index":1', '"index":true', "line 2: needs the text `stream` and the count `index`"),
        ("items.jsonl", '"index":1', '"index":-1', "line 2: needs the text"),
        ("items.jsonl", '"public":{"text":"two"}', '"public":3', "line 2: an item needs"),
        (
            "items.jsonl",
            '"two"},"split":"train"',
            '"two"},"split":"eval"',
            "line 2: stream 'a' stands in two splits",
        ),
        ("items.jsonl", '{"index":1', '{"index":1,"index":1', "line 2: not JSON (a key stands twice"),
        ("items.jsonl", "1.5", "NaN", "line 3: not JSON (NaN is no JSON number)"),
        ("items.jsonl", '"two"}', '"two"', "line 2: not JSON"),
        (
            "items.jsonl",
            '{"index":1,"public":{"text":"two"},"split":"train","stream":"a"}',
            "[1]",
            "line 2: a list where a map",
        ),
    ],
)
def test_a_damaged_dataset_is_refused_with_file_and_line(
    tmp_path: Path, name: str, old: str, new: str, says: str
) -> None:
    write(small(), tmp_path)
    rewrite(tmp_path, name, old, new)
    with pytest.raises(DataError) as refusal:
        read(tmp_path)
    assert name in str(refusal.value)
    assert says in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_deeply_nested_json_is_refused_and_does_not_overflow(tmp_path: Path) -> None:
    write(small(), tmp_path)
    (tmp_path / "items.jsonl").write_text("[" * 100_000)
    with pytest.raises(DataError, match="line 1: not JSON"):
        read(tmp_path)


def test_a_missing_file_and_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"items\.jsonl: cannot be read"):
        read(tmp_path)
    write(small(), tmp_path)
    (tmp_path / "targets.jsonl").write_bytes(b"\xff\n")
    with pytest.raises(DataError, match=r"targets\.jsonl: not UTF-8 at byte 0"):
        read(tmp_path)


def test_blank_lines_are_harmless(tmp_path: Path) -> None:
    write(small(), tmp_path)
    path = tmp_path / "items.jsonl"
    path.write_bytes(b"\n" + path.read_bytes() + b"\n")
    assert read(tmp_path) == small()


def test_a_line_does_not_depend_on_the_order_of_its_keys() -> None:
    assert canonical_line({"b": 1, "a": [2]}) == canonical_line({"a": [2], "b": 1}) == '{"a":[2],"b":1}\n'
    assert json.loads(canonical_line({"x": "ü"})) == {"x": "ü"}
