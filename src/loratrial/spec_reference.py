"""The page docs/trial-file.md, written from the models of the trial file so that it cannot say anything else.

`python -m loratrial.spec_reference` rewrites it. Left out: advice on values, which the guide gives.
"""

import json
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from loratrial.spec.arms import ARM_MODELS, PRICE_MODELS, TokenPrice
from loratrial.spec.models import (
    AdapterSpec,
    EvaluationSpec,
    ModelSpec,
    SamplingSpec,
    TaskSpec,
    TrialSection,
)
from loratrial.tasks.registry import find_task, known_kinds

PAGE = Path(__file__).parents[2] / "docs" / "trial-file.md"
"""Where the page stands in a checkout of the repository."""

EXAMPLE = """\
[trial]
name = "first"
control = "warm"

[model]
base = "smollm2-135m"

[task]
kind = "notes"

[arms.base]
method = "none"

[arms.warm]
from = "base"
method = "supervised"

[arms.grpo]
from = "warm"
method = "grpo"
"""

_INTRODUCTION = f"""\
# The trial file

This page is generated from the models that read the file; rewrite it with `make docs`.

A trial is one TOML file. It is read strictly: an unknown key, a value of another type (`"4"` for `4`, `1.0`
for a whole number) or settings that make no sense together are refused in one line that says where and what.
Every run folder holds the file as it was understood, with every default written out. This is a whole file:

```toml
{EXAMPLE}```

`--set key.path=value` puts one value into the file for one run: `--set arms.grpo.learning_rate=2e-5`. The
value is TOML; a bare word is a text.
"""

_ARMS = """\
## `[arms.NAME]`

One table an arm; `NAME` is of small letters, digits, `-` and `_`. `method` says how the arm is made, and
which other keys its table has.
"""

_PRICES = """\
## `[arms.NAME.token_price]`

What each reasoning token costs: an arm that has this table learns from (raw reward - price x reasoning
tokens), the raw reward stays as it is, and evaluation knows no price. `controller` says how the price moves
from update to update, and which other keys the table has.
"""

_TABLES: tuple[tuple[str, type[BaseModel]], ...] = (
    ("[trial]", TrialSection),
    ("[model]", ModelSpec),
    ("[adapter]", AdapterSpec),
    ("[sampling]", SamplingSpec),
    ("[evaluation]", EvaluationSpec),
)

_BOUNDS = ((Ge, "ge", "≥"), (Gt, "gt", ">"), (Le, "le", "≤"), (Lt, "lt", "<"))


def page() -> str:
    """The whole page, as Markdown."""
    parts = [_INTRODUCTION]
    parts += [_section(f"`{name}`", model) for name, model in _TABLES[:3]]
    parts.append(_task_section())
    parts += [_section(f"`{name}`", model) for name, model in _TABLES[3:]]
    parts.append(_ARMS)
    for method, model in ARM_MODELS.items():
        parts.append(_section(f'`method = "{method}"`', model, level="###", skip=("method",)))
    parts.append(_PRICES)
    for controller, model in PRICE_MODELS.items():
        parts.append(_section(f'`controller = "{controller}"`', model, level="###", skip=("controller",)))
    return "\n".join(parts)


def _section(title: str, model: type[BaseModel], level: str = "##", skip: tuple[str, ...] = ()) -> str:
    lines = [f"{level} {title}", "", _first_paragraph(model), "", *_rows(model, skip), ""]
    return "\n".join(lines)


def _task_section() -> str:
    kind = TaskSpec.model_fields["kind"]
    lines = ["## `[task]`", "", _first_paragraph(TaskSpec), "", _HEAD, _RULE, _row("kind", kind), ""]
    for name in known_kinds():
        model = find_task(name).options_model
        lines += [f'### `kind = "{name}"`', "", _first_paragraph(model), "", *_rows(model), ""]
    return "\n".join(lines)


_HEAD = "| key | type | default | meaning |"
_RULE = "| --- | --- | --- | --- |"


def _rows(model: type[BaseModel], skip: tuple[str, ...] = ()) -> list[str]:
    fields = {field.alias or name: field for name, field in model.model_fields.items() if name not in skip}
    rows = [_row(name, field) for name, field in fields.items() if field.annotation is not type(None)]
    return [_HEAD, _RULE, *rows] if rows else ["No other key."]


def _row(name: str, field: FieldInfo) -> str:
    kind = " ".join(part for part in (_type(field.annotation), _bounds(field.metadata)) if part)
    meaning = (field.description or "").replace("|", "\\|")
    return f"| `{name}` | {kind} | {_default(field)} | {meaning} |"


def _type(annotation: Any) -> str:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        inner = _type(arguments[0])
        bounds = _bounds([limit for extra in arguments[1:] for limit in getattr(extra, "metadata", [extra])])
        return f"{inner} {bounds}".strip()
    if origin is Literal:
        return " or ".join(f"`{json.dumps(value)}`" for value in arguments)
    if annotation == TokenPrice or set(arguments) == set(PRICE_MODELS.values()):
        return "table"
    if origin in (Union, UnionType):
        return " or ".join(_type(part) for part in arguments if part is not type(None))
    if origin in (tuple, list):
        return f"list of: {_type(arguments[0])}"
    return {int: "whole number", float: "number", str: "text", bool: "true or false"}[annotation]


def _bounds(metadata: list[Any]) -> str:
    limits = {type(limit): limit for limit in metadata}
    said = [f"{sign} {getattr(limits[kind], name):,}" for kind, name, sign in _BOUNDS if kind in limits]
    # the widest whole number that a seed may be says nothing to a reader
    return ", ".join(text for text in said if text != f"< {2**63:,}")


def _default(field: FieldInfo) -> str:
    if field.default is PydanticUndefined:
        return "required"
    if field.default is None:
        return "not set"
    return f"`{json.dumps(field.default, ensure_ascii=False)}`"


def _first_paragraph(model: type[BaseModel]) -> str:
    return " ".join((model.__doc__ or "").strip().split("\n\n")[0].split())


def main() -> None:
    """Rewrite the page in this checkout."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
