"""JSON with one spelling: the same value makes the same bytes, so that bytes can be hashed and compared.

Keys sorted, no spaces, text as itself in UTF-8. A lone surrogate, which UTF-8 cannot hold, is written as its
`\\udXXX` escape and read back as itself. NaN and infinities are refused in both directions, because JSON
has no word for them.
"""

import json
import re
from hashlib import sha256
from typing import Any, NoReturn

_SURROGATE = re.compile("[\ud800-\udfff]")
_SPLIT_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def canonical(value: Any) -> str:
    """The one spelling of `value` on one line.

    Raises ValueError for NaN, an infinity, or text that holds both halves of a surrogate pair as two
    characters (JSON would give them back as one), and TypeError for what is no JSON value.
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    if _SURROGATE.search(text) is None:
        return text
    if _SPLIT_PAIR.search(text):
        raise ValueError("text holds a surrogate pair as two characters, which JSON cannot give back")
    return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def pretty(value: Any) -> str:
    """`value` indented for a human reader, keys in the order given, with a newline at its end."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n"


def parse(text: str | bytes) -> Any:
    """The value that `text` spells; raises ValueError for anything else, NaN and infinities among it."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def sha256_text(value: Any) -> str:
    """SHA-256, in hex, of the canonical JSON of `value`."""
    return sha256(canonical(value).encode()).hexdigest()


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON value")
