from hypothesis import given, settings
from hypothesis import strategies as st

from loratrial.evidence.order import walk_order
from loratrial.tasks.task import Item, Stream


def streams(*lengths: int) -> list[Stream]:
    names = [f"s{number}" for number in range(len(lengths))]
    return [
        Stream(name, "train", tuple(Item(name, index, {}) for index in range(length)))
        for name, length in zip(names, lengths, strict=True)
    ]


def told(waves) -> list[str]:
    return [" ".join(f"{stream.id}.{item.index}" for stream, item in wave) for wave in waves]


def test_one_stream_at_a_time_is_walked_to_its_end():
    assert told(walk_order(streams(2, 1), 1)) == ["s0.0", "s0.1", "s1.0"]


def test_a_block_goes_side_by_side_and_a_shorter_stream_drops_out():
    assert told(walk_order(streams(3, 1, 2), 2)) == ["s0.0 s1.0", "s0.1", "s0.2", "s2.0", "s2.1"]


def test_zero_is_all_streams_in_one_block():
    assert told(walk_order(streams(1, 2, 1), 0)) == ["s0.0 s1.0 s2.0", "s1.1"]


def test_no_streams_make_no_waves():
    assert list(walk_order([], 0)) == []


@settings(deadline=None, derandomize=True, max_examples=60)
@given(st.lists(st.integers(1, 4), max_size=6), st.integers(0, 7))
def test_every_item_comes_once_in_its_streams_order_and_never_beside_its_own_stream(lengths, parallel):
    waves = list(walk_order(streams(*lengths), parallel))
    seen: dict[str, list[int]] = {}
    for wave in waves:
        assert len({stream.id for stream, _ in wave}) == len(wave) <= (parallel or len(lengths))
        for stream, item in wave:
            seen.setdefault(stream.id, []).append(item.index)
    assert seen == {f"s{number}": list(range(length)) for number, length in enumerate(lengths)}
