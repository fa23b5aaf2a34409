"""When two values say the same: tokens and signatures.

Keys, lines and attributes are the business of other modules. The rules are those of the published notes
system, except that numbers are written in plain decimal (its code writes 1000000 as `1e+06`).
"""

import json
import re
import unicodedata
from collections.abc import Iterator
from decimal import Decimal

from loratrial.tasks.task import Json

Signature = str
"""A value up to case, order and punctuation, as JSON text: `["tokens", ["cotton", "linen"]]`, `["unknown"]`
or `["empty"]`; the form in which the published rows carry it."""

UNKNOWN: Signature = '["unknown"]'
EMPTY: Signature = '["empty"]'

_ALIASES = {
    "colour": "color",
    "colours": "colors",
    **dict.fromkeys(("centimeter", "centimeters", "centimetre", "centimetres"), "cm"),
    **dict.fromkeys(("kilogram", "kilograms"), "kg"),
    **dict.fromkeys(("dollar", "dollars"), "usd"),
    **dict.fromkeys(("euro", "euros"), "eur"),
}
_UNKNOWN_TEXTS = {("unknown",), ("explicitly", "unknown"), ("null",), ("not", "known")}
_EMPTY_TEXTS = {
    ("no", "preference"),
    ("no", "preferences"),
    ("no", "stated", "preference"),
    ("none",),
    ("empty",),
}
_TOKEN = re.compile(
    r"(?<![^\W_])[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"(?:t[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?(?:z|[+-][0-9]{2}:[0-9]{2})?)?(?![^\W_])"
    r"|[^\W_]+(?:\.[0-9]+)?"
)


def tokens(text: str) -> tuple[str, ...]:
    """The tokens of `text` in order: ISO dates whole, otherwise runs of letters and digits with one optional
    decimal part, after NFKC, casefolding and unit aliases."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return tuple(_ALIASES.get(token, token) for token in _TOKEN.findall(folded))


def text_signature(text: str) -> Signature:
    """The signature of a value that somebody wrote."""
    words = tokens(text)
    if words in _UNKNOWN_TEXTS:
        return UNKNOWN
    if words in _EMPTY_TEXTS:
        return EMPTY
    return json.dumps(["tokens", sorted(words)])


def value_signature(value: Json) -> Signature:
    """The signature of a true value: None is unknown, an empty list is empty, anything else is its text."""
    return text_signature(render_value(value))


def render_value(value: Json) -> str:
    """A true value as canonical notes write it: `unknown`, `no preference`, or its parts after one another
    with commas (`48000, SEK, year`)."""
    if value is None:
        return "unknown"
    return ", ".join(_leaves(value)) or "no preference"


def _leaves(value: Json) -> Iterator[str]:
    if value is None:
        return
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from _leaves(inner)
    else:
        yield _plain(value)


def _plain(value: str | bool | int | float) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        text = format(Decimal(repr(value)), "f")
        return text.rstrip("0").rstrip(".") if "." in text else text
    return str(value)
