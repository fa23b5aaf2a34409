"""The generated dataset: users, their sessions as public items, and the replayed truth as private targets.

Each user is drawn from a seed of its own, so that more users of one split change no other user. Layout,
instructions and reward are not part of the data.
"""

from collections.abc import Mapping
from dataclasses import asdict
from hashlib import sha256
from random import Random

from loratrial.seeds import derive_seed
from loratrial.tasks.dataset import canonical_line
from loratrial.tasks.notes.events import Event, replay
from loratrial.tasks.notes.options import NotesOptions
from loratrial.tasks.notes.sessions import History, draw_history
from loratrial.tasks.notes.values import value_signature
from loratrial.tasks.notes.world import names
from loratrial.tasks.task import Dataset, Item, Json, Stream, Target


def generate(options: NotesOptions, seed: int) -> Dataset:
    """The dataset that `options` describe; `options.data_seed`, when given, takes the place of `seed`."""
    data_seed = seed if options.data_seed is None else options.data_seed
    streams: list[Stream] = []
    targets: dict[tuple[str, int], Target] = {}
    for stream_id, split, history in histories(options, data_seed):
        items = tuple(Item(stream_id, index, public(history, index)) for index in range(options.sessions))
        streams.append(Stream(stream_id, split, items))
        profile = profile_hash(history)
        for index in range(options.sessions):
            targets[stream_id, index] = Target(stream_id, index, private(history, index, profile))
    return Dataset(tuple(streams), targets)


def histories(options: NotesOptions, data_seed: int) -> list[tuple[str, str, History]]:
    """(stream id, split, history) of every user, training users first."""
    drawn = []
    for split, n_users in (("train", options.train_users), ("eval", options.eval_users)):
        pool = names(split)
        Random(derive_seed("notes-names", data_seed, split)).shuffle(pool)
        for number in range(n_users):
            rng = Random(derive_seed("notes-user", data_seed, split, number))
            drawn.append(
                (f"{split}-{number + 1:02d}", split, draw_history(rng, options, split, pool[number]))
            )
    return drawn


def public(history: History, index: int) -> dict[str, Json]:
    """What a prompt may show at session `index`: the sessions so far in plain text, and the current time."""
    return {
        "current_time": history.sessions[index].current_time,
        "sessions": [
            {
                "start": session.start,
                "statements": [{"time": said.time, "text": said.text} for said in session.statements],
            }
            for session in history.sessions[: index + 1]
        ],
    }


def private(history: History, index: int, profile: str) -> dict[str, Json]:
    """The label of session `index`: the attributes as they stand at its current time, each with the kind of
    event that set its value and the earlier values that no longer hold; the unique signatures; and the hash
    of the whole profile."""
    now = history.sessions[index].current_time
    attributes = attributes_at(history.log(), now)
    return {
        "current_time": now,
        "attributes": attributes,
        "signatures": sorted({value_signature(attribute["value"]) for attribute in attributes}),
        "profile_sha256": profile,
    }


def attributes_at(log: tuple[Event, ...], now: str) -> list[Mapping[str, Json]]:
    """What stands at `now`, as maps of key, value, kind and stale values."""
    return [
        {
            "key": standing.attribute,
            "value": standing.value,
            "kind": standing.kind,
            "stale": list(standing.earlier),
        }
        for standing in replay(log, now)
    ]


def profile_hash(history: History) -> str:
    """SHA-256 (hex) of a user's full truth: name and event log."""
    truth = {"name": history.name, "events": [asdict(event) for event in history.log()]}
    return sha256(canonical_line(truth).encode()).hexdigest()
