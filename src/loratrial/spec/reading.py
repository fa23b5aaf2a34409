"""From the text of a trial file, and `--set` overrides, to a checked `TrialSpec` or an error of one line.

Left out: the checks themselves, which stand in `models.py` and `checks.py`.
"""

import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from loratrial.errors import TrialFileError
from loratrial.spec.arms import ARM_MODELS, PRICE_MODELS
from loratrial.spec.models import TrialSpec
from loratrial.spec.names import PATTERNS_IN_WORDS
from loratrial.spec.section import Section
from loratrial.tasks.registry import find_task

_LONGEST_FOUND = 60

_TYPES = {
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "string_type": "must be a text",
    "bool_type": "must be true or false",
    "tuple_type": "must be a list",
    "list_type": "must be a list",
    "model_type": "must be a table",
    "model_attributes_type": "must be a table",
    "dict_type": "must be a table",
    "mapping_type": "must be a table",
    "finite_number": "must be a finite number",
    "too_short": "must not be empty",
    "string_too_short": "must not be empty",
}


def load(path: Path | str, overrides: Sequence[str] = ()) -> TrialSpec:
    """The trial that the file at `path` describes, with `overrides` (`key.path=value`) put in.

    Raises TrialFileError, of one line, for whatever the file or an override has wrong.
    """
    return parse(read_text(path), str(path), overrides)


def read_text(path: Path | str) -> str:
    """The text of a trial file. Raises TrialFileError when it cannot be read as UTF-8 text."""
    path = Path(path)
    if path.is_dir():
        raise TrialFileError(f"{path}: is a folder; name the trial file in it")
    try:
        return path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    except FileNotFoundError:
        raise TrialFileError(f"{path}: no such file{_sibling(path)}") from None
    except UnicodeDecodeError as problem:
        raise TrialFileError(f"{path}: is not UTF-8 text (byte {problem.start}); save it as UTF-8") from None
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise TrialFileError(f"{path}: cannot be read: {reason}") from None


def _sibling(path: Path) -> str:
    near = get_close_matches(path.name, [other.name for other in path.parent.glob("*.toml")], n=1)
    return f"; did you mean {path.parent / near[0]}?" if near else ""


def parse(text: str, filename: str = "trial file", overrides: Sequence[str] = ()) -> TrialSpec:
    """As `load`, from text; `filename` is what errors name."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise TrialFileError(f"{filename}: is not valid TOML: {problem}") from None
    except RecursionError:
        raise TrialFileError(f"{filename}: is not valid TOML: nested too deeply") from None
    overridden = [_override(data, override) for override in overrides]
    try:
        return TrialSpec.model_validate_json(json.dumps(data, default=_refuse_date), strict=True)
    except ValidationError as problem:
        raise TrialFileError(_one_line(problem, data, filename, overridden)) from None
    except TypeError as problem:
        raise TrialFileError(f"{filename}: {problem}") from None


def _refuse_date(value: Any) -> str:
    # every other value of TOML has a JSON value of the same type
    raise TypeError(f"the date or time {value.isoformat()} has to stand in quotes")


def _override(data: dict[str, Any], override: str) -> tuple[str, ...]:
    """Put one `key.path=value` into `data`; gives its path."""
    key, equals, value = override.partition("=")
    path = tuple(part.strip() for part in key.split("."))
    if not equals or not all(path):
        raise TrialFileError(f"--set {override}: write it as key.path=value, such as trial.seed=7")
    table = data
    for depth, part in enumerate(path[:-1], start=1):
        table = table.setdefault(part, {})
        if not isinstance(table, dict):
            raise TrialFileError(f"--set {override}: {'.'.join(path[:depth])} is not a table")
    table[path[-1]] = _toml_value(value.strip())
    return path


def _toml_value(text: str) -> Any:
    """`text` as a TOML value; what is none, such as a bare word, is itself."""
    try:
        table = tomllib.loads(f"value = {text}")
    except (tomllib.TOMLDecodeError, RecursionError):
        return text
    return table["value"] if len(table) == 1 and "\n" not in text else text


def _one_line(
    problem: ValidationError, data: dict[str, Any], filename: str, overridden: list[tuple[str, ...]]
) -> str:
    # an unknown key first: a missing one is often the same key, misspelt
    details = sorted(problem.errors(), key=lambda detail: detail["type"] != "extra_forbidden")
    place, message = _told(details[0], data)
    more = f" (and {len(details) - 1} more)" if len(details) > 1 else ""
    location = _location(details[0])
    by_override = any(path[: len(location)] == location[: len(path)] for path in overridden)
    origin = f"{filename} with --set" if by_override else filename
    return ": ".join([origin, *([".".join(place)] if place else []), f"{message}{more}"])


def _location(detail: ErrorDetails) -> tuple[str, ...]:
    parts = tuple(str(part) for part in detail["loc"])
    # pydantic names the member of a union after the table that it reads; "impossible" is located by us
    if detail["type"] == "impossible" or parts[:1] != ("arms",):
        return parts
    if parts[2:3] and parts[2] in ARM_MODELS:
        parts = (*parts[:2], *parts[3:])
    if parts[2:3] == ("token_price",) and parts[3:4] and parts[3] in PRICE_MODELS:
        parts = (*parts[:3], *parts[4:])
    return parts


def _union(place: tuple[str, ...]) -> tuple[str, Mapping[str, type[Section]]]:
    """The key that tells which member of a union the table at `place` is, and the members."""
    return ("controller", PRICE_MODELS) if place[2:3] == ("token_price",) else ("method", ARM_MODELS)


def _told(detail: ErrorDetails, data: dict[str, Any]) -> tuple[tuple[str, ...], str]:
    """Where one problem is, and what it is."""
    place, kind = _location(detail), detail["type"]
    context: dict[str, Any] = detail.get("ctx", {})
    if kind == "extra_forbidden":
        return place[:-1], _unknown_key(place, data)
    if kind == "union_tag_not_found":
        key, members = _union(place)
        return (*place, key), f"is required: one of {', '.join(members)}"
    if kind == "union_tag_invalid":
        key, members = _union(place)
        found = f"found {context['tag']!r}{_meant(context['tag'], members)}"
        return (*place, key), f"must be one of {', '.join(members)} ({found})"
    if kind == "json_invalid":
        return place, "a value is nested too deeply or is not valid Unicode"
    if kind == "missing":
        return place, "is required"
    if kind in ("impossible", "value_error"):
        return place, _flat(detail["msg"].removeprefix("Value error, "))
    if kind == "none_required":
        return (
            place,
            "an untrained arm starts from no other; leave this out, or give the arm a training method",
        )
    found = _found(detail["input"])
    said = _TYPES.get(kind) or _flat(detail["msg"].replace("Input should be", "must be"))
    if kind == "string_pattern_mismatch":
        said = PATTERNS_IN_WORDS.get(context["pattern"], said)
    return place, f"{said[:1].lower()}{said[1:]} (found {found})"


def _flat(text: str) -> str:
    return " ".join(text.split())


def _found(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST_FOUND else f"{text[:_LONGEST_FOUND]}..."


def _unknown_key(place: tuple[str, ...], data: dict[str, Any]) -> str:
    """ "unknown key", with the known key that is nearest to it."""
    keys = _known_keys(place[:-1], data)
    what = "key" if place[:-1] else "table"
    return f"unknown {what} {place[-1]!r}{_meant(place[-1], keys)}"


def _meant(found: str, known: Iterable[str]) -> str:
    near = get_close_matches(found, known, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def _known_keys(table: tuple[str, ...], data: dict[str, Any]) -> list[str]:
    """The keys that `table` may have; none where it is a table within a task's options."""
    if not table:
        return _keys(TrialSpec)
    if table == ("task",):
        return ["kind", *_keys(find_task(data["task"]["kind"]).options_model)]
    if table[0] == "arms" and len(table) == 2:
        return _keys(ARM_MODELS[data["arms"][table[1]]["method"]])
    if table[0] == "arms" and table[2:] == ("token_price",):
        return _keys(PRICE_MODELS[data["arms"][table[1]]["token_price"]["controller"]])
    return (
        _keys(cast(type[BaseModel], TrialSpec.model_fields[table[0]].annotation)) if len(table) == 1 else []
    )


def _keys(model: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]
