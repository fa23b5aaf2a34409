"""How things are said: two disjoint sets of templates, for facts and for what only looks like facts.

A fact is an opener for the kind of event and a body for the kind of value. The sets share no template, and
each has its own phrase for every attribute, so that wording can be held out. What is said is decided
elsewhere.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal

from loratrial.tasks.notes.events import Event
from loratrial.tasks.notes.world import FOREIGN_LAST_NAMES, Attribute
from loratrial.tasks.task import Json

DistractorKind = Literal["chatter", "third_party", "shop_display", "hypothetical", "quoted", "namesake"]
DISTRACTOR_KINDS: tuple[DistractorKind, ...] = (
    "chatter",
    "third_party",
    "shop_display",
    "hypothetical",
    "quoted",
    "namesake",
)


@dataclass(frozen=True)
class Templates:
    """One set of wordings; `phrase` is the place of its phrases in `Attribute.phrases`."""

    phrase: int
    openers: Mapping[str, Sequence[str]]
    bodies: Mapping[str, Sequence[str]]
    until: str
    distractors: Mapping[DistractorKind, Sequence[str]]


FIRST = Templates(
    phrase=0,
    openers={
        "state": ("", "for my records, "),
        "correct": ("correction: ", "I was wrong earlier; "),
        "retract": ("please drop my earlier answer; ",),
        "repeat": ("just confirming again: ", "as I said, "),
        "set_temporarily": ("for now only, ",),
        "complete": ("",),
        "cancel": ("",),
    },
    bodies={
        "value": ("my {what} {be} {value}.", "my {what}: {value}."),
        "unknown": ("my {what} {be} explicitly unknown.", "my {what}: unknown."),
        "empty": ("my {what}: no stated preference.", "on my {what} I have no preference."),
        "intent": ("my {what} is active; deadline {deadline}.",),
        "deadline": ("the deadline of my {what} is {deadline}.",),
        "complete": ("I completed my {what}.", "my {what} is completed."),
        "cancel": ("I cancelled my {what}.", "my {what} is cancelled."),
    },
    until=" This applies until {until}; after that my earlier answer counts again.",
    distractors={
        "chatter": (
            "A pigeon sat on the windowsill all morning.",
            "There was a long queue at the café.",
            "The tram was late again.",
            "My coffee went cold while I was typing.",
            "It rained for most of the night.",
        ),
        "third_party": (
            "My sister told me that her {what} {be} {value}.",
            "A colleague named {value} as {what}; that is their answer, not mine.",
        ),
        "shop_display": (
            "A shop window advertised {value} as the {what} to have. I only describe the display.",
            "An advert in the station named {value} as the {what} of the year.",
        ),
        "hypothetical": (
            "If I lived another life, my {what} could be {value}, but I do not.",
            "Suppose for a moment that my {what} {be} {value}; that is not so.",
        ),
        "quoted": (
            'The man before me said: "My {what} {be} {value}."',
            'On the radio someone sang "my {what}: {value}".',
        ),
        "namesake": (
            "{namesake}, who is not me, has {value} as {what}.",
            "I got mail meant for {namesake}, saying that the {what} {be} {value}.",
        ),
    },
)

SECOND = Templates(
    phrase=1,
    openers={
        "state": ("", "please write down: "),
        "correct": ("that has changed: ", "replace what you have: "),
        "retract": ("forget what I told you there: ",),
        "repeat": ("nothing new, still the same: ", "to repeat myself: "),
        "set_temporarily": ("just for a while: ",),
        "complete": ("good news: ",),
        "cancel": ("change of plan: ",),
    },
    bodies={
        "value": ("my own {what} {be} {value}.", "as for my {what}: {value}."),
        "unknown": ("as for my {what}: not known.", "my own {what} {be} unknown."),
        "empty": ("as for my {what}: no preference.", "I really have no preference for my {what}."),
        "intent": ("as for my {what}: active, with {deadline} as its deadline.",),
        "deadline": ("my {what} has another deadline: {deadline}.",),
        "complete": ("the {what} has been completed.",),
        "cancel": ("the {what} has been cancelled.",),
    },
    until=" That ends at {until}, and then what I said before is true again.",
    distractors={
        "chatter": (
            "Somebody is practising the trumpet next door.",
            "The elevator smells of fresh paint.",
            "I walked the long way round the park.",
            "Lunch was late but good.",
            "The neighbours have a new doorbell.",
        ),
        "third_party": (
            "According to my uncle, his {what} {be} {value}.",
            "My flatmate wants {value} as {what}, which is not my case.",
        ),
        "shop_display": (
            "The market praised {value} as the {what} of the season; I bought nothing.",
            "A poster showed {value} as the best {what}, which says nothing about me.",
        ),
        "hypothetical": (
            "Were I someone else, {value} would do as my {what}.",
            "In a dream my {what} {be} {value}; awake it is not.",
        ),
        "quoted": (
            'My grandfather used to joke: "my {what} {be} {value}".',
            'A character in the book says "{value} is my {what}".',
        ),
        "namesake": (
            "People mix me up with {namesake}, whose {what} {be} {value}.",
            "It was {namesake} and not I who chose {value} as {what}.",
        ),
    },
)


def say_value(attribute: Attribute, value: Json) -> str:
    """A true value as a person says it: `48000 SEK per year`, `linen, cotton`."""
    if isinstance(value, dict):
        return attribute.said.format(**value)
    return ", ".join(value) if isinstance(value, list) else str(value)


def say_fact(rng: Random, templates: Templates, attribute: Attribute, events: Sequence[Event]) -> str:
    """The statement that tells `events`, which concern one attribute or one intent."""
    event = events[0]
    words = {"what": attribute.phrases[templates.phrase], "be": _be(attribute)}
    if attribute.shape == "intent":
        words["deadline"] = events[-1].value
    else:
        words["value"] = say_value(attribute, event.value)
    text = rng.choice(templates.openers[event.kind])
    text += rng.choice(templates.bodies[_body(attribute, event)]).format(**words)
    if event.until is not None:
        text += templates.until.format(until=event.until)
    return text[0].upper() + text[1:]


def _body(attribute: Attribute, event: Event) -> str:
    if attribute.shape == "intent":
        return {"complete": "complete", "cancel": "cancel", "correct": "deadline"}.get(event.kind, "intent")
    if event.value is None:
        return "unknown"
    return "value" if event.value != [] else "empty"


def say_distractor(
    rng: Random,
    templates: Templates,
    kind: DistractorKind,
    name: str,
    attribute: Attribute,
    value: Json,
) -> str:
    """A statement that says nothing true about the user called `name`, though it may use the words that one
    would."""
    first, last = name.split(" ", 1)
    namesake = rng.choice((f"{first} {rng.choice(FOREIGN_LAST_NAMES)}", f"{first[:-1]} {last}"))
    text = rng.choice(templates.distractors[kind]).format(
        what=attribute.phrases[templates.phrase],
        be=_be(attribute),
        value=say_value(attribute, value),
        namesake=namesake,
    )
    return text[0].upper() + text[1:]


def _be(attribute: Attribute) -> str:
    return "are" if attribute.shape == "list" else "is"
