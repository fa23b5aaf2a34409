"""The texts of the repair task: the prompt, and the worked answer that a supervised example teaches."""

from collections.abc import Mapping
from typing import Any

from loratrial.tasks.repair.describe import describe
from loratrial.tasks.repair.language import Expression, parse
from loratrial.tasks.repair.puzzle import ANSWER_PREFIX, LABELS
from loratrial.tasks.repair.scoring import StoredCase, failures, outcome_on
from loratrial.tasks.repair.values import Value
from loratrial.tasks.task import Message

_QUESTIONS: Mapping[str, str] = {
    "text": "Which candidate is right for every input? Answer with one letter: A, B, C or D.",
    "direct": "Which candidate is right for every input? Answer with one letter: A, B, C or D.",
    "reasoning": "Which candidate is right for every input? Work it out, then answer with one letter.",
}
"""What a prompt ends on, by the mode that the answer is asked for in."""


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
        _QUESTIONS[public.get("mode", "text")],
    ]
    return (Message("user", "\n".join(lines)),)


def worked_answer(public: Mapping[str, Any], private: Mapping[str, Any], label: str) -> str:
    """Runs each candidate on the examples, says which fail and what the others mean, then the answer:
    `label`, under which `public` shows the right one."""
    wanted = ", ".join(case["output"] for case in public["examples"])
    lines = [f"The examples give {wanted}."]
    for each, source in zip(LABELS, public["candidates"], strict=True):
        expression = parse(source)
        gives = ", ".join(_output(expression, case) for case in public["examples"])
        failed = failures(source, public["examples"])
        if failed:
            places = ", ".join(str(place + 1) for place in failed)
            lines.append(f"{each} gives {gives}: fails on example{'s' * (len(failed) > 1)} {places}.")
        elif isinstance(expression, Expression):
            meaning = describe(expression.tree, private["kinds"], private["wording"])
            lines.append(f"{each} gives {gives}: passes. It means {meaning}.")
    lines.append(f"What is wanted is {public['description']}.")
    return "\n".join([*lines, f"{ANSWER_PREFIX} {label}"])


def _inputs(case: StoredCase) -> str:
    return ", ".join(f"{name} = {text}" for name, text in case["inputs"].items())


def _output(expression: Any, case: StoredCase) -> str:
    outcome = outcome_on(expression, case)
    return repr(outcome.value) if isinstance(outcome, Value) else f"no value ({outcome.kind})"
