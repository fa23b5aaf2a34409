import json
import re
from collections import Counter
from string import Formatter

import pytest
from pydantic import ValidationError

from loratrial.tasks.dataset import dataset_files, dataset_hash
from loratrial.tasks.notes import NotesOptions, NotesTask
from loratrial.tasks.notes.assignment import content
from loratrial.tasks.notes.generate import generate, histories, profile_hash
from loratrial.tasks.notes.values import value_signature
from loratrial.tasks.notes.wording import DISTRACTOR_KINDS, FIRST, SECOND, Templates
from loratrial.tasks.notes.world import (
    ATTRIBUTES,
    FOREIGN_LAST_NAMES,
    MAX_USERS,
    VOCABULARIES,
    names,
    vocabulary,
)
from loratrial.tasks.task import Dataset

PINNED = "3cd25164294ac7340344dd35494753765a3b50b81164467758a2353abc9f9fa8"

GROUPS = {
    "person": {"name", "home city", "occupation", "native language", "pet"},
    "size": {f"default size {thing}" for thing in ("hats", "shoes", "gloves", "shirts", "pants", "belts")},
}


def texts(dataset: Dataset, split: str) -> list[str]:
    return [
        said["text"]
        for stream in dataset.split(split)
        for session in stream.items[-1].public["sessions"]
        for said in session["statements"]
    ]


def test_the_same_options_and_seed_make_the_same_bytes() -> None:
    options = NotesOptions(train_users=2, eval_users=1)
    assert dataset_files(generate(options, 3)) == dataset_files(generate(options, 3))
    assert dataset_hash(generate(options, 3)) != dataset_hash(generate(options, 4))


def test_the_data_seed_takes_the_place_of_the_trial_seed() -> None:
    options = NotesOptions(train_users=1, eval_users=1)
    fixed = options.model_copy(update={"data_seed": 7})
    assert generate(fixed, 1) == generate(fixed, 2) == generate(options, 7) != generate(options, 1)
    assert NotesTask.create(fixed, None, 1).dataset == generate(options, 7)


def test_bytes_of_a_small_dataset_have_not_moved() -> None:
    """A move changes every generated dataset: it belongs into the notes of a release."""
    assert dataset_hash(generate(NotesOptions(train_users=1, eval_users=1, sessions=2), 0)) == PINNED


def test_more_users_of_one_split_change_no_other_user() -> None:
    few = generate(NotesOptions(train_users=2, eval_users=1), 3)
    many = generate(NotesOptions(train_users=3, eval_users=4), 3)
    assert many.split("train")[:2] == few.split("train")
    assert many.split("eval")[:1] == few.split("eval")
    assert all(many.targets[place] == target for place, target in few.targets.items())


def test_layout_instructions_and_reward_are_not_part_of_the_data() -> None:
    changed = NotesOptions(layout="published", instructions="full", reward="assignment_f1")
    assert generate(changed, 3) == generate(NotesOptions(), 3)


def test_streams_splits_and_items_are_as_many_as_asked() -> None:
    dataset = generate(NotesOptions(train_users=3, eval_users=2, sessions=5), 3)
    assert [stream.id for stream in dataset.streams] == [
        "train-01",
        "train-02",
        "train-03",
        "eval-01",
        "eval-02",
    ]
    assert {stream.split for stream in dataset.streams} == {"train", "eval"}
    assert {len(stream.items) for stream in dataset.streams} == {5}
    assert generate(NotesOptions(train_users=0, eval_users=0), 3) == Dataset((), {})


def test_sessions_have_the_facts_and_the_share_of_distractors_asked_for() -> None:
    options = NotesOptions(train_users=20, eval_users=0, statements=4, distractors=0.4)
    counts: Counter[bool] = Counter()
    for _, _, history in histories(options, 3):
        for session in history.sessions:
            facts = [said for said in session.statements if said.distractor is None]
            assert len(facts) == 4
            assert all(bool(said.events) != bool(said.distractor) for said in session.statements)
            counts.update(said.distractor is not None for said in session.statements)
    assert counts[True] / counts.total() == pytest.approx(0.4, abs=0.03)
    none = histories(options.model_copy(update={"distractors": 0.0}), 3)
    assert all(said.distractor is None for _, _, h in none for s in h.sessions for said in s.statements)


def test_updates_are_the_share_asked_for() -> None:
    def share(updates: float) -> float:
        options = NotesOptions(train_users=12, eval_users=0, updates=updates, sessions=4)
        events = [
            event
            for _, _, h in histories(options, 3)
            for s in h.sessions[1:]
            for said in s.statements
            for event in said.events
        ]
        return sum(event.kind != "state" for event in events) / len(events)

    assert share(0.0) == 0
    assert share(1.0) == 1
    assert share(0.4) == pytest.approx(0.4, abs=0.12)


@pytest.mark.parametrize("family", ["person", "size"])
def test_only_the_families_asked_for_are_in_the_target(family: str) -> None:
    dataset = generate(NotesOptions(attributes=(family,), sessions=6, statements=4), 3)
    seen = {a["key"] for target in dataset.targets.values() for a in target.private["attributes"]}
    assert seen == GROUPS[family]


def test_a_user_with_nothing_new_to_say_chats_and_is_still_labelled() -> None:
    options = NotesOptions(
        attributes=("intent",), sessions=6, statements=8, updates=0.0, train_users=1, eval_users=0
    )
    drawn = histories(options, 3)
    assert any(said.distractor == "chatter" for _, _, h in drawn for s in h.sessions for said in s.statements)
    NotesTask.create(options, None, 3).validate()


def test_sessions_are_chronological_and_notes_are_taken_after_the_last_statement(hard: NotesTask) -> None:
    crowded = NotesOptions(
        train_users=1,
        eval_users=0,
        sessions=2,
        statements=50,
        distractors=0.5,
        attributes=hard.options.attributes,
    )
    for _, _, history in [*histories(hard.options, 5), *histories(crowded, 5)]:
        times = [
            time for s in history.sessions for time in (*(said.time for said in s.statements), s.current_time)
        ]
        assert times == sorted(set(times))


def test_users_names_and_profiles_are_disjoint_between_splits() -> None:
    drawn = histories(NotesOptions(train_users=60, eval_users=60, sessions=1), 3)
    assert len({history.name for _, _, history in drawn}) == 120
    assert len({profile_hash(history) for _, _, history in drawn}) == 120
    parts = {
        split: {part for _, s, h in drawn if s == split for part in h.name.split()}
        for split in ("train", "eval")
    }
    assert not parts["train"] & parts["eval"]
    assert not set(FOREIGN_LAST_NAMES) & {part for split in parts.values() for part in split}
    assert MAX_USERS == len(set(names("train"))) == len(set(names("eval")))


def skeletons(templates: Templates) -> set[str]:
    groups = [
        *templates.bodies.values(),
        *templates.distractors.values(),
        *templates.openers.values(),
        (templates.until,),
    ]
    return {text for group in groups for text in group if text}


def test_the_template_sets_share_no_template_and_no_phrase() -> None:
    assert not skeletons(FIRST) & skeletons(SECOND)
    assert set(FIRST.bodies) == set(SECOND.bodies)
    assert set(FIRST.openers) == set(SECOND.openers)
    assert set(FIRST.distractors) == set(SECOND.distractors) == set(DISTRACTOR_KINDS)
    assert all(attribute.phrases[0] != attribute.phrases[1] for attribute in ATTRIBUTES)


def matcher(templates: Templates) -> re.Pattern[str]:
    """What any statement of these templates looks like; their phrases stand for `what`."""
    phrases = "|".join(re.escape(attribute.phrases[templates.phrase]) for attribute in ATTRIBUTES)

    def pattern(text: str) -> str:
        return "".join(
            re.escape(literal) + ("" if field is None else f"(?:{phrases})" if field == "what" else ".+?")
            for literal, field, _, _ in Formatter().parse(text)
        )

    openers = "|".join(pattern(text) for group in templates.openers.values() for text in group)
    bodies = "|".join(pattern(text) for group in templates.bodies.values() for text in group)
    distractors = "|".join(pattern(text) for group in templates.distractors.values() for text in group)
    return re.compile(
        f"(?:(?:{openers})(?:{bodies})(?:{pattern(templates.until)})?|{distractors})", re.IGNORECASE
    )


def test_held_out_templates_stay_out_of_the_other_split(hard: NotesTask) -> None:
    first, second = matcher(FIRST), matcher(SECOND)
    train, held_out = texts(hard.dataset, "train"), texts(hard.dataset, "eval")
    assert train
    assert held_out
    assert all(first.fullmatch(text) and not second.fullmatch(text) for text in train)
    assert all(second.fullmatch(text) and not first.fullmatch(text) for text in held_out)


def test_without_held_out_templates_both_splits_use_both_sets(easy: NotesTask) -> None:
    second = matcher(SECOND)
    for split in ("train", "eval"):
        found = [bool(second.fullmatch(text)) for text in texts(easy.dataset, split)]
        assert any(found)
        assert not all(found)


def test_held_out_values_stay_out_of_the_other_split(hard: NotesTask) -> None:
    words = {
        half: {word for name in VOCABULARIES for word in vocabulary(name, half)}
        for half in ("first", "second")
    }
    own = {"train": words["first"], "eval": words["second"]}
    other = {"train": words["second"] - words["first"], "eval": words["first"] - words["second"]}
    checked = 0
    for stream in hard.dataset.streams:
        for attribute in hard.dataset.target(stream.items[-1]).private["attributes"]:
            value = attribute["value"]
            if attribute["key"] == "name" or attribute["key"].startswith("intent") or not value:
                continue
            leaves = (
                value.values() if isinstance(value, dict) else value if isinstance(value, list) else [value]
            )
            assert set(leaves) <= own[stream.split]
            checked += 1
    assert checked > 50
    for split in ("train", "eval"):
        for text in texts(hard.dataset, split):
            found = set(re.findall(r"[\w.]+", text)) & {word for word in other[split] if len(word) > 4}
            assert not found - {"plain", "music", "history", "travel"}, text


def test_halves_of_a_vocabulary_are_disjoint_whole_and_big_enough_to_correct_a_value() -> None:
    for name, words in VOCABULARIES.items():
        first, second = vocabulary(name, "first"), vocabulary(name, "second")
        assert sorted((*first, *second)) == sorted(words) == sorted(vocabulary(name, "both"))
        assert len({value_signature(word) for word in words}) == len(words)
        assert not set(first) & set(second)
    for attribute in ATTRIBUTES:
        if attribute.vocabulary in VOCABULARIES:
            assert min(len(vocabulary(attribute.vocabulary, half)) for half in ("first", "second")) >= 4


def test_values_collide_between_attributes_of_one_user(hard: NotesTask) -> None:
    collisions = 0
    for stream in hard.dataset.streams:
        attributes = hard.dataset.target(stream.items[-1]).private["attributes"]
        lists = [
            value_signature(a["value"]) for a in attributes if isinstance(a["value"], list) and a["value"]
        ]
        sizes = [a["value"] for a in attributes if "size" in a["key"] and isinstance(a["value"], str)]
        collisions += (len(lists) > len(set(lists))) + (len(sizes) > len(set(sizes)))
    assert collisions > 3


def test_every_kind_of_distractor_is_drawn_and_none_is_an_event(hard: NotesTask) -> None:
    kinds = {
        said.distractor for _, _, h in histories(hard.options, 5) for s in h.sessions for said in s.statements
    }
    assert kinds == {*DISTRACTOR_KINDS, None}


def test_a_namesake_is_near_and_never_the_user(hard: NotesTask) -> None:
    seen = 0
    for _, _, history in histories(hard.options, 5):
        first, last = history.name.split()
        for session in history.sessions:
            for said in session.statements:
                if said.distractor == "namesake":
                    assert history.name not in said.text
                    assert first in said.text or last in said.text
                    seen += 1
    assert seen > 10


def test_a_statement_says_the_value_of_its_event(hard: NotesTask) -> None:
    """Whatever the wording, the parts of the value stand in the text: the label can be learned from it."""
    for _, _, history in histories(hard.options, 5):
        for session in history.sessions:
            for said in session.statements:
                for event in said.events:
                    value = event.value
                    parts = (
                        value.values()
                        if isinstance(value, dict)
                        else value
                        if isinstance(value, list)
                        else [value]
                    )
                    assert all(part is None or part in said.text for part in parts)
                    assert event.until is None or event.until in said.text
                    assert event.time == said.time


def test_public_items_hold_plain_text_and_times_only(hard: NotesTask) -> None:
    for stream in hard.dataset.streams:
        for item in stream.items:
            assert set(item.public) == {"current_time", "sessions"}
            assert len(item.public["sessions"]) == item.index + 1
            for session in item.public["sessions"]:
                assert set(session) == {"start", "statements"}
                assert all(set(said) == {"time", "text"} for said in session["statements"])


def test_no_public_text_names_a_label_or_a_profile(hard: NotesTask) -> None:
    items = dataset_files(hard.dataset)["items.jsonl"].decode()
    for word in ("target", "profile", "signature", "stale", "set_temporarily", "distractor", "namesake"):
        assert word not in items.casefold()
    for target in hard.dataset.targets.values():
        assert target.private["profile_sha256"] not in items


def test_an_item_holds_nothing_of_a_later_session(hard: NotesTask) -> None:
    for stream in hard.dataset.streams:
        last = stream.items[-1].public["sessions"]
        for item in stream.items:
            assert item.public["sessions"] == last[: item.index + 1]
            later = {said["time"] for session in last[item.index + 1 :] for said in session["statements"]}
            assert not later & set(re.findall(r'"time": "([^"]+)"', json.dumps(item.public)))


def test_a_target_holds_the_unique_signatures_of_its_attributes(hard: NotesTask) -> None:
    for target in hard.dataset.targets.values():
        attributes = target.private["attributes"]
        assert target.private["signatures"] == sorted({value_signature(a["value"]) for a in attributes})
        assert len({content(a["key"]) for a in attributes}) == len(attributes)
        for a in attributes:
            assert value_signature(a["value"]) not in {value_signature(old) for old in a["stale"]}


@pytest.mark.parametrize(
    "wrong",
    [
        {"unheard": 1},
        {"attributes": ("temporary",)},
        {"attributes": ()},
        {"attributes": ("shoes",)},
        {"sessions": 0},
        {"distractors": 1.0},
        {"updates": -0.1},
        {"train_users": MAX_USERS + 1},
        {"reward": "recall"},
        {"disjoint": ("names",)},
        {"data_seed": -1},
    ],
)
def test_impossible_options_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        NotesOptions.model_validate(wrong)


def test_every_option_is_described() -> None:
    assert all(field.description for field in NotesOptions.model_fields.values())
