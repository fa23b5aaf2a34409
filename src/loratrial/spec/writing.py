"""A trial written out: every default as TOML that reads back equal, canonical JSON, and its hash."""

import json
from hashlib import sha256
from typing import Any

import tomli_w

from loratrial.spec.models import TrialSpec


def resolved_toml(spec: TrialSpec) -> str:
    """`spec` as a trial file that leaves no default unsaid; a key that is not set stands in a comment."""
    tables: list[str] = []
    for name, table in _plain(spec).items():
        if name == "arms":
            tables += [_table({"arms": {arm: _set(keys)}}, keys) for arm, keys in table.items()]
        else:
            tables.append(_table({name: _set(table)}, table))
    return "\n".join(tables)


def canonical_json(spec: TrialSpec) -> str:
    """`spec` with every default as JSON with sorted keys: equal trials give equal text."""
    return json.dumps(_plain(spec), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def spec_hash(spec: TrialSpec) -> str:
    """SHA-256 of the canonical JSON, in 64 hex digits."""
    return sha256(canonical_json(spec).encode()).hexdigest()


def _plain(spec: TrialSpec) -> dict[str, Any]:
    return spec.model_dump(mode="json", by_alias=True)


def _set(table: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in table.items() if value is not None}


def _table(nested: dict[str, Any], keys: dict[str, Any]) -> str:
    unset = [key for key, value in keys.items() if value is None]
    return tomli_w.dumps(nested) + "".join(f"# {key} is not set\n" for key in unset)
