"""The texts of the repair task: the prompt, and the worked answer that a supervised example teaches."""

from collections.abc import Mapping
from typing import Any

from loratrial.tasks.repair.describe import describe
from loratrial.tasks.repair.language import Expression, parse
from loratrial.tasks.repair.puzzle import LABELS
from loratrial.tasks.repair.scoring import StoredCase, failures, outcome_on
from loratrial.tasks.repair.values import Value
from loratrial.tasks.task import Message


def messages(public: Mapping[str, Any]) -> tuple[Message, ...]:
    """One user message: what is wanted, examples, the broken expression, four candidates, the question."""
    lines = [
        "A Python expression is broken. Choose its repair.",
        f"It should give: {public['description']}.",
        "Examples of what it should give:",
        *(f"{_inputs(case)} gives {case['output']}" for case in public["examples"]),
        f"Broken: {public['broken']}",
        "Candidates:",
        *(f"{label}: {text}" for label, text in zip(LABELS, public["candidates"], strict=True)),
        "Which candidate is right for every input? Answer with one letter: A, B, C or D.",
    ]
    return (Message("user", "\n".join(lines)),)


def worked_answer(public: Mapping[str, Any], private: Mapping[str, Any]) -> str:
    """Runs each candidate on the examples, says which fail and what the others mean, then the answer."""
    wanted = ", ".join(case["output"] for case in public["examples"])
    lines = [f"The examples give {wanted}."]
    for label, source in zip(LABELS, public["candidates"], strict=True):
        expression = parse(source)
        gives = ", ".join(_output(expression, case) for case in public["examples"])
        failed = failures(source, public["examples"])
        if failed:
            places = ", ".join(str(place + 1) for place in failed)
            lines.append(f"{label} gives {gives}: fails on example{'s' * (len(failed) > 1)} {places}.")
        elif isinstance(expression, Expression):
            meaning = describe(expression.tree, private["kinds"], private["wording"])
            lines.append(f"{label} gives {gives}: passes. It means {meaning}.")
    lines.append(f"What is wanted is {public['description']}.")
    return "\n".join([*lines, f"Answer: {private['right']}"])


def _inputs(case: StoredCase) -> str:
    return ", ".join(f"{name} = {text}" for name, text in case["inputs"].items())


def _output(expression: Any, case: StoredCase) -> str:
    outcome = outcome_on(expression, case)
    return repr(outcome.value) if isinstance(outcome, Value) else f"no value ({outcome.kind})"
