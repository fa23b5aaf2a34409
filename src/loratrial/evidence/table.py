"""A result as a table for terminals, and as the sentences that it supports; both from result.json alone.

Left out: any figure that the result does not hold, and colour as a carrier of meaning.
"""

import re
from collections.abc import Iterator
from io import StringIO
from typing import Any

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

Result = dict[str, Any]

ORACLE = "oracle"
"""The reference that sees the labels: a ceiling, not a rival."""

_PLAIN_WIDTH = 200
_PICTURE_WIDTH = 100
_REFERENCE_FIGURES = 4


def render(result: Result, *, every_figure: bool = False) -> RenderableType:
    """Every split as a table of figures by arms, the references below, and what can be said.

    The headline figures only, unless `every_figure`.
    """
    if not every_figure:
        result = {**result, "figures": [figure for figure in result["figures"] if figure["headline"]]}
    parts: list[RenderableType] = []
    for name, split in result["sections"].items():
        parts += [_split_table(result, name, split)]
        if split["references"]:
            parts += [Text(), _reference_table(result, split)]
        parts += [Text(), *(Text(sentence) for sentence in sentences(result, name)), Text()]
    if result["training"]:
        parts.append(_training_table(result))
    return Group(*parts)


def plain(result: Result, *, every_figure: bool = False) -> str:
    """As `render`, in characters that any text file holds."""
    console = Console(file=StringIO(), width=_PLAIN_WIDTH, no_color=True, force_terminal=False, emoji=False)
    with console.capture() as captured:
        console.print(render(result, every_figure=every_figure))
    return "\n".join(line.rstrip() for line in captured.get().splitlines()).rstrip() + "\n"


def picture(result: Result, *, every_figure: bool = False) -> str:
    """As `render`, drawn as a terminal: an SVG that loads nothing from anywhere."""
    # the template of rich asks a server for its font; the viewer's own monospace font does as well
    template = re.sub(r"@font-face \{\{.*?\}\}\n", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    console = Console(file=StringIO(), width=_PICTURE_WIDTH, record=True, force_terminal=True)
    console.print(render(result, every_figure=every_figure))
    return console.export_svg(title=f"loratrial: {result['trial']}", code_format=template, unique_id="result")


def sentences(result: Result, split: str) -> list[str]:
    """What the primary figure says on one split: one sentence an arm, and what weakens them all."""
    return list(_sentences(result, split))


def value_text(figure: dict[str, Any], value: float) -> str:
    """A figure's value: shares in per cent, other means with two decimals."""
    return f"{100 * value:.1f} %" if figure["kind"] == "share" else f"{value:.2f}"


def difference_text(figure: dict[str, Any], value: float) -> str:
    """A difference with its sign: of shares in percentage points, of other means with two decimals."""
    # adding 0 turns the negative zero that rounding leaves into a plain one
    number = round(100 * value, 1) + 0.0 if figure["kind"] == "share" else round(value, 2) + 0.0
    return f"{number:+.1f}" if figure["kind"] == "share" else f"{number:+.2f}"


def interval_text(figure: dict[str, Any], difference: dict[str, Any]) -> str:
    """The ends of a difference's interval, or that there is none."""
    if difference["interval"] is None:
        return "no interval"
    low, high = (difference_text(figure, end) for end in difference["interval"])
    return f"{low} to {high}"


def _split_table(result: Result, name: str, split: dict[str, Any]) -> Table:
    control = result["control"]
    label = " (in-sample)" if split["in_sample"] else ""
    table = Table(
        title=Text(f"{result['trial']}: split {name}{label}"),
        caption=Text(
            f"{split['n_items']} items in {split['n_streams']} streams, {result['n_candidates']} candidates, "
            f"seeds {', '.join(str(seed) for seed in split['seeds'])}. Below a value: its difference to "
            f"{control}, paired item by item, with a 95 % interval clustered by stream."
        ),
    )
    for heading in ("", control, *split["differences"]):
        table.add_column(Text(heading), justify="right" if heading else "left")
    for figure in result["figures"]:
        row = [figure["label"], _value(figure, split["arms"][control]["pooled"])]
        for arm, differences in split["differences"].items():
            value = _value(figure, split["arms"][arm]["pooled"])
            difference = differences["pooled"].get(figure["name"])
            row.append(f"{value}\n{_difference(figure, difference)}" if difference else value)
        table.add_row(*(Text(cell) for cell in row))
    return table


def _reference_table(result: Result, split: dict[str, Any]) -> Table:
    figures = [
        figure
        for figure in result["figures"]
        if any(figure["name"] in means for means in split["references"].values())
    ][:_REFERENCE_FIGURES]
    table = Table(title="with no model")
    table.add_column("")
    for figure in figures:
        table.add_column(Text(figure["label"]), justify="right")
    for name, means in split["references"].items():
        table.add_row(Text(name), *(Text(_value(figure, means)) for figure in figures))
    return table


def _training_table(result: Result) -> Table:
    table = Table(title="training")
    for heading in ("", "updates", "groups", "tied", "invalid", "tokens", "reward, first and last quarter"):
        table.add_column(heading, justify="right" if heading else "left")
    for arm, training in result["training"].items():
        ends = (training["mean_reward_first_quarter"], training["mean_reward_last_quarter"])
        counts = ("updates", "groups", "tied_groups", "invalid_groups", "tokens")
        table.add_row(
            Text(arm),
            *(str(training[count]) for count in counts),
            " to ".join("none" if end is None else f"{end:.2f}" for end in ends),
        )
    return table


def _value(figure: dict[str, Any], means: dict[str, Any]) -> str:
    return value_text(figure, means[figure["name"]]["mean"]) if figure["name"] in means else ""


def _difference(figure: dict[str, Any], difference: dict[str, Any]) -> str:
    return f"{difference_text(figure, difference['difference'])} ({interval_text(figure, difference)})"


def _sentences(result: Result, split_name: str) -> Iterator[str]:
    split = result["sections"][split_name]
    figure = result["figures"][0]
    if split["in_sample"]:
        yield "In-sample: the trained arms learned from these very items."
    if not split["differences"]:
        yield "One arm only: nothing is compared."
    for arm, differences in split["differences"].items():
        if figure["name"] in differences["pooled"]:
            yield _comparison(figure, arm, result["control"], differences["pooled"][figure["name"]])
    yield from _rivals(figure, split)


def _comparison(figure: dict[str, Any], arm: str, control: str, difference: dict[str, Any]) -> str:
    unit = " points" if figure["kind"] == "share" else ""
    size = f"{figure['label']} {difference_text(figure, difference['difference'])}{unit}"
    start = f"{arm} against {control}: {size}"
    if difference["interval"] is None:
        return f"{start}; {difference['note']}. The difference holds for these items, not beyond them."
    low, high = difference["interval"]
    where = f"95 % interval {interval_text(figure, difference)}, {difference['n_clusters']} streams"
    if low <= 0 <= high:
        return f"{start} ({where}); the interval holds 0, so no difference is shown."
    better = (low > 0) == (figure["better"] == "higher")
    judged = "different" if figure["better"] == "neither" else "better" if better else "worse"
    return f"{start} ({where}); the interval leaves out 0: {judged}."


def _rivals(figure: dict[str, Any], split: dict[str, Any]) -> Iterator[str]:
    """References that no arm beats, so that a figure which can be gamed shows."""
    sign = -1 if figure["better"] == "lower" else 1
    name = figure["name"]
    arms = [sign * arm["pooled"][name]["mean"] for arm in split["arms"].values() if name in arm["pooled"]]
    if not arms or figure["better"] == "neither":
        return
    unbeaten = [
        f"{reference} ({value_text(figure, means[name]['mean'])})"
        for reference, means in split["references"].items()
        if reference != ORACLE and name in means and sign * means[name]["mean"] >= max(arms)
    ]
    if unbeaten:
        yield f"No arm does better in {figure['label']} than these, with no model: {', '.join(unbeaten)}."
