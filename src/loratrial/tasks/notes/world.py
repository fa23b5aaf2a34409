"""The invented world: which attributes a user can have, the values that they can take, and people's names.

Values collide on purpose: sizes of different things share one list of numbers, materials and colors come
back in many attributes. Each vocabulary has two halves, so that training and evaluation can be given values
of their own. All of it is made up for this project.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

Family = Literal["person", "size", "favorite", "list", "compound", "temporary", "intent"]
"""`person`, `size` and `favorite` have atomic values; `list` and `compound` match only as a whole;
`temporary` adds changes that end by themselves; `intent` adds purchase intents with status and deadline."""

Shape = Literal["atom", "list", "compound", "intent"]
Half = Literal["first", "second", "both"]


@dataclass(frozen=True)
class Attribute:
    """One thing that can be known about a user.

    `key` is its name and its canonical key. `phrases` are the two wordings that statements use for it.
    `vocabulary` names its values; a compound value has one part (name, vocabulary) for each entry of `parts`
    and is said as `said`. A `fixed` attribute is never corrected. An intent stands for two facts; `key` is
    then what follows `intent status` and `intent deadline`.
    """

    key: str
    family: Family
    shape: Shape
    phrases: tuple[str, str]
    vocabulary: str = ""
    parts: tuple[tuple[str, str], ...] = ()
    said: str = ""
    fixed: bool = False


VOCABULARIES: dict[str, tuple[str, ...]] = {
    "city": (
        "Lisbon",
        "Oslo",
        "Ghent",
        "Turin",
        "Kyoto",
        "Lima",
        "Quito",
        "Cork",
        "Riga",
        "Porto",
        "Graz",
        "Bern",
    ),
    "job": (
        "baker",
        "nurse",
        "pilot",
        "tailor",
        "teacher",
        "welder",
        "editor",
        "farmer",
        "plumber",
        "chemist",
    ),
    "language": (
        "Spanish",
        "Polish",
        "Korean",
        "Dutch",
        "Greek",
        "Hindi",
        "Turkish",
        "Finnish",
        "Czech",
        "Welsh",
    ),
    "pet": ("cat", "dog", "parrot", "rabbit", "hamster", "turtle", "goldfish", "canary"),
    "size": ("36", "37", "38", "39", "40", "41", "42", "43", "44", "45", "46", "47"),
    "color": ("red", "navy", "green", "black", "white", "teal", "grey", "purple", "orange", "brown"),
    "material": ("linen", "wool", "cotton", "leather", "silk", "denim", "suede", "fleece", "hemp", "velvet"),
    "brand": ("Rains", "Patagonia", "Veja", "Filson", "Camper", "Asket", "Norda", "Fjello", "Sarva", "Tekla"),
    "pattern": ("striped", "plain", "checked", "dotted", "floral", "paisley", "tartan", "camouflage"),
    "occasion": ("work", "travel", "weddings", "hiking", "parties", "concerts", "picnics", "sailing"),
    "amount": ("48000", "52000", "61000", "39500", "1000000", "75000", "83500", "27000"),
    "currency": ("SEK", "EUR", "USD", "GBP", "JPY", "CHF", "NOK", "CAD"),
    "period": ("year", "month"),
    "level": ("bachelor", "master", "doctorate", "diploma"),
    "field": (
        "biology",
        "history",
        "human-computer interaction",
        "physics",
        "law",
        "fine arts",
        "music",
        "geology",
    ),
    "system": ("EU", "UK", "US", "JP"),
    "height": ("158 cm", "163 cm", "167.5 cm", "171 cm", "174 cm", "178 cm", "182.5 cm", "190 cm"),
}

_FAVORITES = ("hats", "shoes", "gloves", "socks", "bags")
_SIZES = ("hats", "shoes", "gloves", "shirts", "pants", "belts")
_LISTS = ("pants", "shirts", "jackets", "coats", "accessories", "outerwear")
_SEASONS = ("summer", "winter")
_RECIPIENTS = ("self", "gift")
_INTENTS = (
    ("future-trip", "shoes"),
    ("urgent-gift", "shirts"),
    ("garden-party", "hats"),
    ("job-interview", "jackets"),
    ("ski-week", "gloves"),
    ("birthday-surprise", "bags"),
)


def _person(key: str, other: str, vocabulary: str, fixed: bool = False) -> Attribute:
    return Attribute(key, "person", "atom", (key, other), vocabulary, fixed=fixed)


NAME = Attribute("name", "person", "atom", ("name", "full name"), "name", fixed=True)

ATTRIBUTES: tuple[Attribute, ...] = (
    NAME,
    _person("home city", "current city", "city"),
    _person("occupation", "job", "job"),
    _person("native language", "first language", "language"),
    _person("pet", "current pet", "pet"),
    *(
        Attribute(
            f"default size {category}",
            "size",
            "atom",
            (f"default size for {category}", f"{category.removesuffix('s')} size"),
            "size",
        )
        for category in _SIZES
    ),
    *(
        Attribute(
            f"favorite {kind} {category}",
            "favorite",
            "atom",
            (f"favorite {kind} for {category}", f"preferred {category.removesuffix('s')} {kind}"),
            kind,
        )
        for kind, category in product(("color", "material", "brand", "pattern"), _FAVORITES)
    ),
    *(
        Attribute(
            f"{kind}s {category}",
            "list",
            "list",
            (f"preferred {kind}s for {category}", f"usual {category} {kind}s"),
            kind,
        )
        for kind, category in product(("color", "material", "brand", "pattern", "occasion"), _LISTS)
    ),
    *(
        Attribute(
            f"materials {category} {season}",
            "list",
            "list",
            (
                f"preferred materials for {category} in context {season}",
                f"usual {season} {category} materials",
            ),
            "material",
        )
        for category, season in product(_LISTS, _SEASONS)
    ),
    Attribute(
        "income",
        "compound",
        "compound",
        ("income", "current income"),
        parts=(("amount", "amount"), ("currency", "currency"), ("period", "period")),
        said="{amount} {currency} per {period}",
    ),
    Attribute(
        "education",
        "compound",
        "compound",
        ("education", "full education"),
        parts=(("level", "level"), ("field", "field")),
        said="{level} in {field}",
    ),
    Attribute("height", "compound", "atom", ("height", "current height"), "height"),
    *(
        Attribute(
            f"default size {category}",
            "compound",
            "compound",
            (f"default size for {category}", f"{category.removesuffix('s')} size"),
            parts=(("size", "size"), ("sizing_system", "system")),
            said="size {size} in {sizing_system}",
        )
        for category in ("jackets", "coats", "socks")
    ),
    *(
        Attribute(
            f"{name} {category} {recipient}",
            "intent",
            "intent",
            (
                f"purchase intent {name} ({category}, recipient {recipient})",
                f"{name} intent ({recipient}, {category})",
            ),
        )
        for (name, category), recipient in product(_INTENTS, _RECIPIENTS)
    ),
)

_FIRST_NAMES = {
    "train": (
        "Nora",
        "Omar",
        "Ines",
        "Piotr",
        "Leila",
        "Jonas",
        "Mei",
        "Tomas",
        "Aisha",
        "Viktor",
        "Carla",
        "Deniz",
    ),
    "eval": (
        "Ravi",
        "Greta",
        "Hugo",
        "Sanna",
        "Kofi",
        "Elif",
        "Bruno",
        "Yuki",
        "Marta",
        "Idris",
        "Lotte",
        "Emil",
    ),
}
_LAST_NAMES = {
    "train": (
        "Lindholm",
        "Haddad",
        "Moreau",
        "Kowal",
        "Sato",
        "Berger",
        "Okafor",
        "Silva",
        "Novak",
        "Duarte",
    ),
    "eval": ("Larsen", "Iyer", "Castell", "Bauer", "Mensah", "Aydin", "Rossi", "Tanaka", "Vidal", "Holm"),
}
FOREIGN_LAST_NAMES = ("Lindqvist", "Hadley", "Laurent", "Baumann", "Iversen")
"""Last names of near-namesakes: no user has them."""


def names(split: str) -> list[str]:
    """Every name that a user of this split can have, first names mixed; the two splits share none."""
    return [f"{first} {last}" for last, first in product(_LAST_NAMES[split], _FIRST_NAMES[split])]


MAX_USERS = min(len(names("train")), len(names("eval")))


def attributes_of(families: Sequence[Family]) -> tuple[Attribute, ...]:
    """The attributes of these families, in the order of the world."""
    return tuple(attribute for attribute in ATTRIBUTES if attribute.family in families)


def vocabulary(name: str, half: Half) -> tuple[str, ...]:
    """The values of one vocabulary, or of one half of it (every other value, so that halves are alike)."""
    words = VOCABULARIES[name]
    if half == "both":
        return words
    return words[0::2] if half == "first" else words[1::2]
