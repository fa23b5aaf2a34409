"""CPython itself, in a process with hard limits, scores candidates as the restricted evaluator does."""

import json
import subprocess
import sys
from random import Random

from loratrial.tasks.repair import RepairTask
from loratrial.tasks.repair.scoring import failures

SCORER = """
import json, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (2**29, 2**29))
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
resource.setrlimit(resource.RLIMIT_NOFILE, (16, 16))
NAMES = ("abs", "all", "any", "len", "max", "min", "sorted", "sum")
ALLOWED = {"__builtins__": {name: getattr(__builtins__, name) for name in NAMES}}
def gives(source, case):
    names = {name: eval(text, {"__builtins__": {}}) for name, text in case["inputs"].items()}
    try:
        return repr(eval(source, dict(ALLOWED), names))
    except Exception as error:
        return type(error).__name__
for line in sys.stdin:
    source, cases = json.loads(line)
    print(json.dumps([place for place, case in enumerate(cases) if gives(source, case) != case["output"]]))
"""


def test_both_scorers_fail_the_same_cases_of_ten_thousand(default_task: RepairTask) -> None:
    work = []
    random = Random(0)
    for stream in default_task.dataset.streams:
        item = stream.items[0]
        cases = [*item.public["examples"], *default_task.dataset.target(item).private["hidden"]]
        expressions = [*item.public["candidates"], item.public["broken"]]
        work += [(expression, cases) for expression in expressions]
        other = random.choice(default_task.dataset.streams).items[0]
        work.append((random.choice(other.public["candidates"]), cases))
    assert sum(len(cases) for _, cases in work) > 10_000
    done = subprocess.run(
        [sys.executable, "-I", "-c", SCORER],
        input="\n".join(map(json.dumps, work)),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    theirs = [json.loads(line) for line in done.stdout.splitlines()]
    assert theirs == [failures(expression, cases) for expression, cases in work]
    assert sum(map(len, theirs)) > 1_000
