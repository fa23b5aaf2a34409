import inspect
import json
import re

import pytest

from loratrial.tasks.notes import NotesOptions, NotesTask
from loratrial.tasks.notes.gold import canonical_notes
from loratrial.tasks.notes.prompts import INSTRUCTIONS, Layout, history_text
from loratrial.tasks.notes.world import VOCABULARIES
from loratrial.tasks.task import Item

ITEM = Item(
    "s",
    1,
    {
        "current_time": "2026-03-06T09:01:00Z",
        "sessions": [
            {
                "start": "2026-03-01T09:00:00Z",
                "statements": [
                    {"time": "2026-03-01T09:00:00Z", "text": "My name is Nora."},
                    {"time": "2026-03-01T09:00:01Z", "text": "It rained."},
                ],
            },
            {
                "start": "2026-03-06T09:00:00Z",
                "statements": [{"time": "2026-03-06T09:00:00Z", "text": "My hat size: 42."}],
            },
        ],
    },
)


def prompt(layout: Layout, state: str, item: Item = ITEM) -> str:
    task = NotesTask.create(NotesOptions(train_users=0, eval_users=0, layout=layout), None, 0)
    system, user = task.messages(item, state)
    assert (system.role, user.role) == ("system", "user")
    return user.content


def test_the_published_layout_is_that_of_the_published_rows() -> None:
    assert prompt("published", "") == (
        "Current time: 2026-03-06T09:01:00Z\n"
        "\n"
        "Session 1:\n"
        "[2026-03-01T09:00:00Z] My name is Nora.\n"
        "[2026-03-01T09:00:01Z] It rained.\n"
        "\n"
        "Session 2:\n"
        "[2026-03-06T09:00:00Z] My hat size: 42.\n"
        "\n"
        "Previous saved notes:\n"
        "(none)"
    )
    assert prompt("published", "name: Nora\nhats: 1").endswith(
        "\n\nPrevious saved notes:\nname: Nora\nhats: 1"
    )


def test_the_stable_layout_puts_what_changes_last() -> None:
    assert prompt("stable", "name: Nora") == (
        "Session 1, 2026-03-01 09:00:\n"
        "- My name is Nora.\n"
        "- It rained.\n"
        "\n"
        "Session 2, 2026-03-06 09:00:\n"
        "- My hat size: 42.\n"
        "\n"
        "Current time: 2026-03-06T09:01:00Z\n"
        "Saved notes:\n"
        "name: Nora"
    )
    assert prompt("stable", "").endswith("Saved notes:\n(none)")


def test_a_stable_prompt_extends_the_one_of_the_session_before(hard: NotesTask) -> None:
    for stream in hard.dataset.streams:
        for before, after in zip(stream.items, stream.items[1:], strict=False):
            told = history_text(before.public)
            system, user = hard.messages(before, "some: notes")
            next_system, next_user = hard.messages(after, "other: notes")
            assert user.content.startswith(told)
            assert next_user.content.startswith(told)
            assert system == next_system
            assert "Current time" not in told


def test_instructions_are_as_long_as_they_claim_and_state_every_rule() -> None:
    brief, full = INSTRUCTIONS["brief"], INSTRUCTIONS["full"]
    assert len(brief.split()) <= 110 < len(full.split())
    for text in (brief, full):
        flat = " ".join(text.split())
        for rule in (
            "new",
            "changed",
            "reuse",
            "`unknown`",
            "`no preference`",
            "chatter|small talk",
            "[Oo]ther people",
            "No changes.",
        ):
            assert re.search(rule, flat), rule
    task = NotesTask.create(NotesOptions(train_users=0, eval_users=0, instructions="full"), None, 0)
    assert task.messages(ITEM, "")[0].content == full


def test_instructions_name_no_value_that_a_user_can_have() -> None:
    values = {word.casefold() for words in VOCABULARIES.values() for word in words}
    for text in INSTRUCTIONS.values():
        assert not values & set(re.findall(r"\w+", text.casefold()))


def test_messages_take_an_item_and_notes_and_nothing_else() -> None:
    assert list(inspect.signature(NotesTask.messages).parameters) == ["self", "item", "state"]


@pytest.mark.parametrize("layout", ["stable", "published"])
def test_no_label_is_in_any_prompt(hard: NotesTask, layout: Layout) -> None:
    """Neither hashes nor signatures nor lines of the canonical notes, whose keys no statement uses."""
    task = NotesTask(hard.options.model_copy(update={"layout": layout}), hard.dataset)
    for stream in task.dataset.streams:
        for item in stream.items:
            private = task.dataset.target(item).private
            shown = "\n".join(message.content for message in task.messages(item, ""))
            assert private["profile_sha256"] not in shown
            assert not [signature for signature in private["signatures"] if signature in shown]
            lines = set(shown.split("\n"))
            assert not lines & set(canonical_notes(private).split("\n"))


def test_a_prompt_does_not_move_when_its_label_does(hard: NotesTask) -> None:
    stream = hard.dataset.streams[0]
    targets = {
        place: type(t)(t.stream, t.index, {**t.private, "attributes": []})
        for place, t in hard.dataset.targets.items()
    }
    other = NotesTask(hard.options, type(hard.dataset)(hard.dataset.streams, targets))
    for item in stream.items:
        assert other.messages(item, "") == hard.messages(item, "")
        assert "attributes" not in json.dumps([message.content for message in other.messages(item, "")])


def test_no_later_session_is_in_an_earlier_prompt(hard: NotesTask) -> None:
    for stream in hard.dataset.streams:
        sessions = stream.items[-1].public["sessions"]
        for item in stream.items:
            shown = hard.messages(item, "")[1].content
            assert f"Session {item.index + 1}," in shown
            assert f"Session {item.index + 2}," not in shown
            told = {said["text"] for session in sessions[: item.index + 1] for said in session["statements"]}
            later = {said["text"] for session in sessions[item.index + 1 :] for said in session["statements"]}
            assert not [text for text in later - told if f"- {text}\n" in shown]
