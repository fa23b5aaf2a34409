from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from loratrial.tasks.notes import NotesTask
from loratrial.tasks.notes.events import Event, Standing, replay
from loratrial.tasks.notes.generate import histories


def at(day: int, hour: int = 9) -> str:
    return f"2026-03-{day:02d}T{hour:02d}:00:00Z"


def value(log: Sequence[Event], now: str, attribute: str = "hat") -> object:
    return next(standing.value for standing in replay(log, now) if standing.attribute == attribute)


def test_a_correction_wins_and_the_old_value_is_stale() -> None:
    log = [Event("state", at(1), "hat", "41"), Event("correct", at(2), "hat", "42")]
    assert replay(log, at(1)) == (Standing("hat", "41", "state"),)
    assert replay(log, at(2)) == (Standing("hat", "42", "correct", ("41",)),)


def test_what_is_said_later_is_not_known_yet() -> None:
    assert replay([Event("state", at(2), "hat", "41")], at(1)) == ()


def test_a_retracted_value_is_unknown() -> None:
    log = [Event("state", at(1), "hat", "41"), Event("retract", at(2), "hat")]
    assert replay(log, at(3)) == (Standing("hat", None, "retract", ("41",)),)


def test_a_temporary_value_ends_at_its_exclusive_end_and_the_earlier_value_returns() -> None:
    log = [Event("state", at(1), "hat", "41"), Event("set_temporarily", at(2), "hat", "45", until=at(5))]
    assert replay(log, "2026-03-05T08:59:59Z") == (Standing("hat", "45", "set_temporarily", ("41",)),)
    assert replay(log, at(5)) == (Standing("hat", "41", "expire", ("45",)),)


def test_a_correction_ends_a_temporary_value() -> None:
    log = [
        Event("state", at(1), "hat", "41"),
        Event("set_temporarily", at(2), "hat", "45", until=at(9)),
        Event("correct", at(3), "hat", "42"),
    ]
    assert replay(log, at(4)) == (Standing("hat", "42", "correct", ("41", "45")),)
    assert replay(log, at(10)) == (Standing("hat", "42", "correct", ("41", "45")),)


def test_a_repetition_changes_nothing_even_when_it_names_another_value() -> None:
    log = [Event("state", at(1), "hat", "41"), Event("repeat", at(2), "hat", "99")]
    assert replay(log, at(3)) == replay(log[:1], at(3))


def test_a_value_that_comes_back_is_not_stale() -> None:
    log = [
        Event("state", at(1), "hat", ["a", "b"]),
        Event("correct", at(2), "hat", "c"),
        Event("correct", at(3), "hat", ["B", "A"]),
    ]
    assert replay(log, at(4)) == (Standing("hat", ["B", "A"], "correct", ("c",)),)


def intent(deadline: str) -> list[Event]:
    return [
        Event("state", at(1), "status", "active", deadline_in="deadline"),
        Event("state", at(1), "deadline", deadline),
    ]


def test_an_intent_expires_strictly_after_its_deadline() -> None:
    log = intent(at(5))
    assert value(log, at(5), "status") == "active"
    assert replay(log, "2026-03-05T09:00:01Z")[0] == Standing("status", "expired", "expire", ("active",))


def test_a_completed_or_cancelled_intent_does_not_expire() -> None:
    assert value([*intent(at(5)), Event("complete", at(3), "status")], at(9), "status") == "completed"
    assert value([*intent(at(5)), Event("cancel", at(3), "status")], at(9), "status") == "cancelled"


def test_a_moved_deadline_keeps_the_intent_active() -> None:
    log = [*intent(at(5)), Event("correct", at(4), "deadline", at(20))]
    assert value(log, at(9), "status") == "active"
    assert value(log, at(21), "status") == "expired"


def test_a_withdrawn_deadline_never_passes() -> None:
    assert value([*intent(at(5)), Event("retract", at(4), "deadline")], at(30), "status") == "active"


def slow_replay(log: Sequence[Event], now: str) -> dict[str, object]:
    """The same truth told differently: for each attribute, look backwards for what decides its value."""

    def permanent(attribute: str) -> object:
        for event in reversed(log):
            if event.attribute == attribute and event.time <= now:
                if event.kind == "complete":
                    return "completed"
                if event.kind == "cancel":
                    return "cancelled"
                if event.kind in ("state", "correct", "retract"):
                    return event.value
        return None

    def standing(attribute: str) -> object:
        for event in reversed(log):
            if event.attribute == attribute and event.time <= now and event.kind != "repeat":
                if event.kind == "set_temporarily" and event.until is not None and now < event.until:
                    return event.value
                break
        return permanent(attribute)

    truth = {event.attribute: standing(event.attribute) for event in log if event.time <= now}
    for event in log:
        if event.deadline_in in truth and truth[event.attribute] == "active":
            deadline = truth[event.deadline_in]
            if isinstance(deadline, str) and deadline < now:
                truth[event.attribute] = "expired"
    return truth


drawn_events = st.lists(
    st.builds(
        lambda kind, day, attribute, value, length: Event(
            kind,
            at(day),
            attribute,
            None if kind == "retract" else value,
            until=at(day + length) if kind == "set_temporarily" else None,
        ),
        st.sampled_from(["state", "correct", "retract", "set_temporarily", "repeat"]),
        st.integers(1, 20),
        st.sampled_from(["hat", "shoe"]),
        st.sampled_from(["41", "42", ["a", "b"]]),
        st.integers(1, 6),
    ),
    max_size=8,
).map(lambda events: sorted(events, key=lambda event: event.time))


@settings(deadline=None, derandomize=True, max_examples=200)
@given(drawn_events, st.integers(1, 28))
def test_replay_agrees_with_an_independent_replay_on_drawn_logs(log: list[Event], day: int) -> None:
    assert {standing.attribute: standing.value for standing in replay(log, at(day))} == slow_replay(
        log, at(day)
    )


def test_every_label_is_the_replay_of_what_was_said_so_far(hard: NotesTask) -> None:
    checked = 0
    for stream_id, _, history in histories(hard.options, 5):
        for index, session in enumerate(history.sessions):
            told = [
                event
                for past in history.sessions[: index + 1]
                for said in past.statements
                for event in said.events
            ]
            private = hard.dataset.targets[stream_id, index].private
            label = {attribute["key"]: attribute["value"] for attribute in private["attributes"]}
            assert label == slow_replay(told, session.current_time)
            checked += 1
    assert checked == 80


def test_the_generated_truth_holds_every_kind_of_event_and_both_boundaries(hard: NotesTask) -> None:
    drawn = histories(hard.options, 5)
    events = [event for _, _, history in drawn for event in history.log()]
    assert {event.kind for event in events} == {
        "state", "correct", "retract", "set_temporarily", "complete", "cancel", "repeat",
    }  # fmt: skip
    kinds = {a["kind"] for target in hard.dataset.targets.values() for a in target.private["attributes"]}
    assert kinds == {"state", "correct", "retract", "set_temporarily", "expire", "complete", "cancel"}
    ends = deadlines = 0
    for _, _, history in drawn:
        times = {session.current_time for session in history.sessions}
        ends += sum(event.until in times for event in history.log() if event.until)
        deadlines += sum(event.value in times for event in history.log() if "deadline" in event.attribute)
    assert ends > 0
    assert deadlines > 0


def test_a_temporary_value_returns_in_the_generated_labels(hard: NotesTask) -> None:
    returned = 0
    for _, _, history in histories(hard.options, 5):
        log = history.log()
        for event in log:
            if event.kind != "set_temporarily" or event.until is None:
                continue
            later = [
                e
                for e in log
                if e.attribute == event.attribute and e.time > event.time and e.kind != "repeat"
            ]
            if later:
                continue
            before = value([e for e in log if e.time < event.time], event.time, event.attribute)
            for session in history.sessions:
                if session.current_time >= event.until:
                    assert value(log, session.current_time, event.attribute) == before
                    returned += 1
    assert returned > 0
