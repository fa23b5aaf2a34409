"""The order of a walk: which groups are sampled, and which of them together.

A pure function of the streams and of how many go side by side, so that the walk follows it and the recount
checks that it was followed. What happens at each group is the walk's.
"""

from collections.abc import Iterator, Sequence

from loratrial.tasks.task import Item, Stream

Wave = list[tuple[Stream, Item]]
"""Groups that are sampled together: at most one item of each stream."""


def walk_order(streams: Sequence[Stream], parallel: int) -> Iterator[Wave]:
    """The waves of one pass: streams in blocks of `parallel` (0: all in one block), and within a block the
    first item of every stream, then the second, and so on; a shorter stream drops out at its end.

    Every item comes once, and the items of a stream in their order.
    """
    size = parallel or max(1, len(streams))
    for start in range(0, len(streams), size):
        block = streams[start : start + size]
        for place in range(max(len(stream.items) for stream in block)):
            yield [(stream, stream.items[place]) for stream in block if place < len(stream.items)]
