"""The forms of names: of trials, arms, revisions, and of base models, told apart by form alone.

Left out: whether what is named exists.
"""

import re
from typing import Literal

BUNDLED_MODELS = ("smollm2-135m", "tiny", "tiny-llama")
"""The models that need no hub, by alias."""

NAME_PATTERN = "^[a-z0-9][a-z0-9-]*$"
REVISION_PATTERN = "^[0-9a-f]{40}$"
ARM_NAME = re.compile("[a-z0-9][a-z0-9_-]*")

PATTERNS_IN_WORDS = {
    NAME_PATTERN: "must be of small letters, digits and hyphens, and start with a letter or digit",
    REVISION_PATTERN: "must be a commit of 40 hex digits",
}

Source = Literal["bundled", "path", "hub", "unknown"]

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_PATH_STARTS = ("/", "./", "../", "~/")


def source_of(base: str) -> Source:
    """What `model.base` is; no trial file with `unknown` is accepted."""
    if base in BUNDLED_MODELS:
        return "bundled"
    if base.startswith(_PATH_STARTS):
        return "path"
    return "hub" if _HUB_ID.fullmatch(base) else "unknown"
