"""Policies with no model, walked like any arm: what a reward is worth to an answer that nothing learned.

The carry rule is the walk's own. Left out: sampling, tokens and seeds, which such policies do not have.
"""

from collections.abc import Sequence

from loratrial.evidence.judge import answer_figures, carried_state, judge
from loratrial.statistics.metrics import ItemValues, item_values
from loratrial.tasks.task import Reference, Stream, Task


def reference_values(task: Task, reference: Reference, streams: Sequence[Stream]) -> list[ItemValues]:
    """What `reference` scores on every item of `streams`, one answer each, its own state carried along."""
    found: list[ItemValues] = []
    for stream in streams:
        state = ""
        for item in stream.items:
            text = reference(item, state, task.dataset.target(item))
            reading, score = judge(task, item, text, "stop", state)
            state = carried_state([reading], state)
            found.append(item_values(stream.id, item.index, [answer_figures(reading, score)]))
    return found
