"""A dataset of any task as two files: what prompts may show (`items.jsonl`) and labels (`targets.jsonl`).

The files are canonical JSON lines, so that the same dataset has the same bytes and the same hash everywhere.
Labels stay in a file of their own, which need not travel with the items. Left out on purpose: compression,
Parquet, and any knowledge of what a task keeps inside an item.
"""

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from loratrial.errors import DataError
from loratrial.tasks.task import Dataset, Item, Json, Stream, Target

ITEMS = "items.jsonl"
TARGETS = "targets.jsonl"


def canonical_line(value: Json) -> str:
    """`value` as one line of canonical JSON: sorted keys, no spaces, plain UTF-8, a newline at the end.

    Raises DataError for what JSON cannot hold or would not give back equal: non-finite numbers, keys that
    are not strings, tuples, other objects, and lone surrogates (which no UTF-8 file can hold).
    """
    _check_json(value, "value")
    line = json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    try:
        line.encode()
    except UnicodeEncodeError as error:
        raise DataError(
            f"text with a lone surrogate (U+{ord(error.object[error.start]):04X}) cannot be written as "
            "UTF-8: replace that character"
        ) from None
    return line + "\n"


def _check_json(value: Json, where: str) -> None:
    if value is None or isinstance(value, str | bool | int):
        return
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            raise DataError(f"{where} is {value}, which JSON cannot hold: use a finite number")
        return
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise DataError(f"{where} has the key {key!r}, which is no text: use text keys")
            _check_json(inner, f"{where}.{key}")
        return
    if isinstance(value, list):
        for index, inner in enumerate(value):
            _check_json(inner, f"{where}[{index}]")
        return
    raise DataError(
        f"{where} is a {type(value).__name__}, which JSON does not give back: use a list, map or text"
    )


def dataset_files(dataset: Dataset) -> dict[str, bytes]:
    """The bytes of both files by name: items in the order of the streams, targets in the order of the items.

    Raises DataError when streams repeat or are empty, when indices are not 0, 1, 2, ..., or when items and
    targets do not pair up.
    """
    items: list[str] = []
    targets: list[str] = []
    seen: set[str] = set()
    for stream in dataset.streams:
        if stream.id in seen:
            raise DataError(f"stream {stream.id!r} stands twice in the dataset: give each stream its own id")
        seen.add(stream.id)
        if not stream.items:
            raise DataError(f"stream {stream.id!r} has no items: leave it out")
        for position, item in enumerate(stream.items):
            if (item.stream, item.index) != (stream.id, position):
                raise DataError(
                    f"item {position} of stream {stream.id!r} says ({item.stream!r}, {item.index}): "
                    "number the items of a stream 0, 1, 2, ..."
                )
            target = dataset.targets.get((stream.id, position))
            if target is None:
                raise DataError(f"item {position} of stream {stream.id!r} has no target: add one")
            if (target.stream, target.index) != (stream.id, position):
                raise DataError(f"the target of item {position} of stream {stream.id!r} names another item")
            items.append(
                canonical_line(
                    {"stream": stream.id, "split": stream.split, "index": position, "public": item.public}
                )
            )
            targets.append(
                canonical_line({"stream": stream.id, "index": position, "private": target.private})
            )
    if len(dataset.targets) > len(targets):
        known = {(item.stream, item.index) for stream in dataset.streams for item in stream.items}
        stream_id, index = next(place for place in dataset.targets if place not in known)
        raise DataError(f"the target ({stream_id!r}, {index}) belongs to no item: remove it")
    return {ITEMS: "".join(items).encode(), TARGETS: "".join(targets).encode()}


def dataset_hash(dataset: Dataset) -> str:
    """One SHA-256 (hex) over both files: what `sha256sum items.jsonl targets.jsonl | sha256sum` prints."""
    return _hash(dataset_files(dataset))


def _hash(files: Mapping[str, bytes]) -> str:
    listing = "".join(f"{sha256(files[name]).hexdigest()}  {name}\n" for name in (ITEMS, TARGETS))
    return sha256(listing.encode()).hexdigest()


def write(dataset: Dataset, folder: Path) -> str:
    """Write both files into `folder` (made when absent) and return the dataset's hash.

    Each file is written beside its place and renamed. Raises DataError as `dataset_files` does, before
    anything is written.
    """
    files = dataset_files(dataset)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        beside = folder / f"{name}.part"
        beside.write_bytes(content)
        beside.replace(folder / name)
    return _hash(files)


def read(folder: Path) -> Dataset:
    """The dataset of `folder`. Raises DataError, naming file and line, when it is not whole."""
    items: dict[str, list[Item]] = {}
    splits: dict[str, str] = {}
    for where, record in _records(folder / ITEMS):
        stream_id, index = _place(record, where)
        split = record.get("split")
        public = record.get("public")
        if not isinstance(split, str) or not isinstance(public, dict):
            raise DataError(f"{where}: an item needs the text `split` and the map `public`: write it again")
        if splits.setdefault(stream_id, split) != split:
            raise DataError(f"{where}: stream {stream_id!r} stands in two splits: keep a stream in one split")
        row = items.setdefault(stream_id, [])
        if index != len(row):
            raise DataError(
                f"{where}: stream {stream_id!r} has item {index} where item {len(row)} was due: "
                "keep the items of a stream complete and in order"
            )
        row.append(Item(stream_id, index, public))
    known = {(item.stream, item.index) for row in items.values() for item in row}
    targets: dict[tuple[str, int], Target] = {}
    for where, record in _records(folder / TARGETS):
        place = _place(record, where)
        private = record.get("private")
        if not isinstance(private, dict):
            raise DataError(f"{where}: a target needs the map `private`: write it again")
        if place in targets:
            raise DataError(f"{where}: a second target for item {place[1]} of stream {place[0]!r}: keep one")
        if place not in known:
            raise DataError(f"{where}: no item {place[1]} in stream {place[0]!r}: remove this target")
        targets[place] = Target(*place, private)
    for stream_id, index in sorted(known - targets.keys()):
        raise DataError(
            f"{folder / TARGETS}: no target for item {index} of stream {stream_id!r}: add it, or write the "
            "dataset again"
        )
    streams = tuple(Stream(stream_id, splits[stream_id], tuple(row)) for stream_id, row in items.items())
    return Dataset(streams, targets)


def _records(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        text = path.read_bytes().decode()
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}): write the dataset first") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 at byte {error.start}: write the dataset again") from None
    # Only \n ends a line: other line separators may stand inside a JSON text.
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            record = json.loads(line, object_pairs_hook=_without_repeats, parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{where}: not JSON ({error}): write the dataset again") from None
        if not isinstance(record, dict):
            raise DataError(
                f"{where}: a {type(record).__name__} where a map was due: write the dataset again"
            )
        yield where, record


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        raise ValueError("a key stands twice in one map")
    return record


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


def _place(record: Mapping[str, Any], where: str) -> tuple[str, int]:
    stream_id, index = record.get("stream"), record.get("index")
    if not isinstance(stream_id, str) or type(index) is not int or index < 0:
        raise DataError(f"{where}: needs the text `stream` and the count `index`: write the dataset again")
    return stream_id, index
